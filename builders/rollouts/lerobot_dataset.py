"""Rollouts as a LeRobotDataset v3.0, written by LeRobot itself.

LeRobot has no interface for facts about an episode, so these are added to ``meta/episodes`` once it has finished; its
own reader carries unknown columns along and can filter by them.
"""

from __future__ import annotations

import contextlib
import importlib.util
import os
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from ...toolkit.errors import InvalidInputError, MissingExtraError, first_line
from ...toolkit.libero.install import quiet
from ...toolkit.records import CONTROL_HZ
from .episode_record import EpisodeRecord, episodes_table
from .schema import FRAME_FEATURES, Rollout
from .shards import read_shard
from .sim_states import SimStateWriter

ROBOT_TYPE = "panda"
WRITING = "writing rollouts as a LeRobot dataset"


def write_lerobot_dataset(
    shards: Sequence[Path], out: Path, *, repo_id: str, progress: Callable[[], None] | None = None
) -> tuple[EpisodeRecord, ...]:
    """Write finished rollouts as one dataset, atomically.

    Args:
        shards: Rollout shards, in the order in which the episodes are to be numbered.
        out: Folder of the new dataset.
        repo_id: Name that the dataset would have on the Hub.
        progress: Called after each episode.

    Returns:
        The episodes written, in their order.

    Raises:
        InvalidInputError: There is nothing to write, or the folder exists already or cannot be written.
        MissingExtraError: LeRobot is not installed.
        DatasetError: A shard is damaged.
    """
    if not shards:
        raise InvalidInputError(f"{out}: no rollouts to write")
    return write_rollouts(map(read_shard, shards), out, repo_id=repo_id, progress=progress)


def write_rollouts(
    rollouts: Iterable[Rollout], out: Path, *, repo_id: str, progress: Callable[[], None] | None = None
) -> tuple[EpisodeRecord, ...]:
    """Write rollouts as one dataset, atomically; one at a time is in memory.

    Args:
        rollouts: At least one, in the order in which the episodes are to be numbered.
        out: As for ``write_lerobot_dataset``, as the rest is.
        repo_id: Name that the dataset would have on the Hub.
        progress: Called after each episode.

    Returns:
        The episodes written, in their order.

    Raises:
        InvalidInputError: The folder exists already or cannot be written.
        MissingExtraError: LeRobot is not installed.
    """
    if out.exists():
        raise InvalidInputError(f"{out}: exists already; choose another folder or remove it")
    lerobot_dataset = _import_lerobot()
    aside: Path | None = None
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        aside = Path(tempfile.mkdtemp(prefix=f".{out.name}-", dir=out.parent))
        episodes = _write_aside(lerobot_dataset, rollouts, aside / out.name, repo_id, progress)
        os.replace(aside / out.name, out)
    except OSError as error:
        why = os.strerror(error.errno) if error.errno else first_line(error)
        raise InvalidInputError(f"{out}: cannot be written ({why}); make room or choose another place") from error
    finally:
        if aside is not None:
            shutil.rmtree(aside, ignore_errors=True)
    return episodes


def _write_aside(
    lerobot_dataset: Any, rollouts: Iterable[Rollout], root: Path, repo_id: str, progress: Callable[[], None] | None
) -> tuple[EpisodeRecord, ...]:
    with _silence_lerobot(), _skip_embedding_images(), contextlib.ExitStack() as closing:
        dataset = lerobot_dataset.create(
            repo_id=repo_id,
            fps=CONTROL_HZ,
            features=lerobot_features(),
            root=root,
            robot_type=ROBOT_TYPE,
            use_videos=False,
        )
        closing.callback(dataset.finalize)  # else LeRobot would do so later, after the folder is gone
        states = SimStateWriter(root)
        closing.callback(states.close)
        episodes = [_add_episode(dataset, states, rollout, progress) for rollout in rollouts]
    _add_episode_columns(root, episodes)
    return tuple(episodes)


def check_lerobot() -> None:
    """Make sure, before rollouts are run, that they can be written as a dataset; without LeRobot's slow import.

    Raises:
        MissingExtraError: LeRobot is not installed.
    """
    if importlib.util.find_spec("lerobot") is None:
        raise MissingExtraError(WRITING, "lerobot", "lerobot")


def lerobot_features() -> dict[str, dict[str, Any]]:
    """The frame features in LeRobot's notation."""
    return {
        name: {"dtype": "float32", "shape": (width,), "names": list(names)}
        for name, (width, names) in FRAME_FEATURES.items()
    }


def _add_episode(
    dataset: Any, states: SimStateWriter, rollout: Rollout, progress: Callable[[], None] | None
) -> EpisodeRecord:
    states.add(rollout.sim_states)
    for t in range(len(rollout.frames["action"])):
        frame: dict[str, Any] = {name: rollout.frames[name][t] for name in FRAME_FEATURES}
        dataset.add_frame({**frame, "task": rollout.episode.prompt_text})
    dataset.save_episode()
    if progress:
        progress()
    return rollout.episode


def _add_episode_columns(root: Path, episodes: Sequence[EpisodeRecord]) -> None:
    added = episodes_table(list(episodes))
    for file in sorted((root / "meta" / "episodes").rglob("*.parquet")):
        table = pq.read_table(file)
        rows = added.take(table.column("episode_index"))
        for name in added.column_names:
            table = table.append_column(pa.field(name, added.schema.field(name).type), rows.column(name))
        pq.write_table(table, file)


def _import_lerobot() -> Any:
    try:
        with _silence_lerobot():
            from lerobot.datasets.lerobot_dataset import LeRobotDataset
    except ImportError as error:
        raise MissingExtraError(WRITING, "lerobot", "lerobot") from error
    return LeRobotDataset


@contextlib.contextmanager
def _skip_embedding_images() -> Iterator[None]:
    """Keep LeRobot from going through all frames, one by one, for images to embed: there are none.

    That takes four fifths of the time in which it writes frames, and changes nothing in the tables.
    """
    from lerobot.datasets import dataset_writer

    embed = dataset_writer.embed_images
    dataset_writer.embed_images = lambda dataset: dataset
    try:
        yield
    finally:
        dataset_writer.embed_images = embed


@contextlib.contextmanager
def _silence_lerobot() -> Iterator[None]:
    """Keep LeRobot's messages on video codecs and a progress bar per episode off the terminal."""
    from datasets.utils.logging import disable_progress_bar, enable_progress_bar, is_progress_bar_enabled

    bars = is_progress_bar_enabled()
    disable_progress_bar()
    try:
        with quiet():
            yield
    finally:
        if bars:
            enable_progress_bar()
