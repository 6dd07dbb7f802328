"""Videos of recorded rollouts, rendered afterwards from the simulator's recorded states."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

from ...builders.rollouts.episode_record import EpisodeRecord
from ...builders.rollouts.sim_states import read_sim_states
from ...toolkit.arrays import FloatArray, Image
from ...toolkit.atomic_files import atomic_file
from ...toolkit.errors import InvalidInputError, MissingExtraError, NotFoundError, choices
from ...toolkit.probes.visual_settings import read_visual_settings
from ...toolkit.records import CONTROL_HZ
from ...toolkit.simulation.pictures.rendering import CAMERAS, Camera
from ...toolkit.simulation.scene_pool import ScenePool
from ..recordings.reading import read_rollouts
from ..recordings.video_files import video_path

CODEC = "h264"

SMALLEST = 16
"""Smallest width and height of a video: that of one of the codec's blocks."""


def render_rollouts(
    dataset: Path,
    out: Path,
    *,
    rollout_ids: Sequence[str] | None = None,
    camera: str = "agentview",
    size: int = 256,
    progress: Callable[[str], None] | None = None,
) -> tuple[Path, ...]:
    """Write one MP4 a rollout, 20 frames a second, one frame a recorded state, as its visual probe showed it.

    Args:
        dataset: The rollout dataset.
        out: Folder for the videos.
        rollout_ids: Which rollouts; all by default.
        camera: ``agentview`` or ``robot0_eye_in_hand``.
        size: Width and height in pixels, even.
        progress: Called with each rollout's id when its video is written.

    Raises:
        NotFoundError: There is no such rollout or camera.
        DatasetError: The dataset is damaged or has no simulator states.
        InvalidInputError: There are no videos of that size, the folder cannot be written, no GL library works here, or
            the scene is another one.
        MissingExtraError: PyAV, which comes with LeRobot, is not installed.
    """
    if size < SMALLEST or size % 2:
        raise InvalidInputError(f"videos of {size} by {size} pixels: choose an even size of at least {SMALLEST}")
    if camera not in CAMERAS:
        raise NotFoundError(f"no camera '{camera}': {choices(camera, list(CAMERAS))}")
    written = []
    for episode, states, view in _episodes(dataset, rollout_ids, size):
        file = video_path(out, episode.rollout_id, camera)
        visual = read_visual_settings(episode.visual_settings, episode.rollout_id)
        frames = (view.image_of(state, camera, visual, step) for step, state in enumerate(states))
        _write_video(file, frames, size)
        written.append(file)
        if progress:
            progress(episode.rollout_id)
    return tuple(written)


def _episodes(
    dataset: Path, rollout_ids: Sequence[str] | None, size: int
) -> Iterator[tuple[EpisodeRecord, FloatArray, Camera]]:
    """Episodes with their states and a camera in their scene, base task by base task."""
    episodes = read_rollouts(dataset).records()
    known = [episode.rollout_id for episode in episodes]
    for wanted in rollout_ids or ():
        if wanted not in known:
            raise NotFoundError(f"no rollout '{wanted}' in {dataset}: {choices(wanted, known)}")
    chosen = [i for i, episode in enumerate(episodes) if rollout_ids is None or episode.rollout_id in rollout_ids]
    pool = ScenePool(capacity=1)
    for index in sorted(chosen, key=lambda i: (episodes[i].suite, episodes[i].base_task, i)):
        episode = episodes[index]
        scene = pool.scene(episode.suite, episode.base_task)
        if scene.scene_sha256 != episode.scene_sha256:
            raise InvalidInputError(f"{episode.rollout_id}: recorded in another scene (scene_sha256 differs)")
        yield episode, read_sim_states(dataset, [index])[index], Camera(scene, size)


def _write_video(file: Path, frames: Iterator[Image], size: int) -> None:
    try:
        import av
    except ImportError as error:
        raise MissingExtraError("writing videos", "lerobot", "av") from error
    with atomic_file(file) as aside, av.open(str(aside), "w", format="mp4") as container:
        stream: Any = container.add_stream(CODEC, rate=Fraction(CONTROL_HZ))
        stream.width = stream.height = size
        stream.pix_fmt = "yuv420p"
        for frame in frames:
            container.mux(stream.encode(av.VideoFrame.from_ndarray(frame, format="rgb24")))
        container.mux(stream.encode())
