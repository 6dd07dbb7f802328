"""Pictures are LIBERO's, are made only when asked for, and can be made again from recorded states."""

from __future__ import annotations

import dataclasses
import os
import subprocess
import sys
import weakref
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from conflictvla.builders.tasks_dataset.reading import load_instances
from conflictvla.eval.policies.interface import Episode, Observation, PolicyInfo
from conflictvla.eval.rollouts.executors.in_process import InProcess
from conflictvla.eval.rollouts.render import render_rollouts
from conflictvla.eval.rollouts.run import run_policy
from conflictvla.toolkit.arrays import FloatArray
from conflictvla.toolkit.errors import InvalidInputError, NotFoundError
from conflictvla.toolkit.libero.base_tasks import base_task
from conflictvla.toolkit.records import Arm
from conflictvla.toolkit.simulation.pictures.rendering import CAMERAS, Camera, camera_of
from conflictvla.toolkit.simulation.scene import Scene
from conflictvla.toolkit.simulation.scene_pool import ScenePool

from ....eval.rendered_frames import render_frames

SIZE = 64
CHUNK = 5


@pytest.fixture(scope="module")
def scene() -> Scene:
    found = Scene(base_task("libero_goal", "turn_on_the_stove"))
    found.reset(0)
    try:
        camera_of(found, SIZE)
    except InvalidInputError as error:
        pytest.skip(str(error))
    return found


class Looks:
    """Asks for both views once a chunk, and keeps what it saw."""

    def __init__(self) -> None:
        self.info = PolicyInfo(name="looks", revision="1")
        self.seen: dict[int, tuple[Any, Any]] = {}

    def reset(self, episode: Episode) -> None:
        self.seen = {}

    def act(self, observation: Observation) -> FloatArray:
        first, second = (observation.image(camera, SIZE) for camera in CAMERAS)
        self.seen[observation.step] = first, second
        return np.tile([0.3, 0.2, -0.4, 0.0, 0.0, 0.3, 1.0], (CHUNK, 1))


STOCK_VIEWS = """
import sys
import numpy as np
from conflictvla.toolkit.libero.base_tasks import base_task, bddl_path, initial_states
from conflictvla.toolkit.libero.install import load_libero, quiet

task = base_task("libero_goal", "turn_on_the_stove")
fixtures = np.load(sys.argv[1])
with quiet():
    size = int(sys.argv[3])
    env = load_libero().env_wrapper.OffScreenRenderEnv(
        bddl_file_name=bddl_path(task), camera_heights=size, camera_widths=size
    )
    env.reset()
env.sim.model.body_pos[:], env.sim.model.body_quat[:] = fixtures["pos"], fixtures["quat"]
seen = env.set_init_state(initial_states(task)[4])
np.savez(sys.argv[2], **{name: value for name, value in seen.items() if name.endswith("_image")})
"""


def test_views_are_liberos_own_upright(scene: Scene, tmp_path: Path) -> None:
    """LIBERO's renderer needs its backend chosen before it is imported, hence a process of its own."""
    np.savez(tmp_path / "fixtures.npz", pos=scene.model.body_pos, quat=scene.model.body_quat)
    arguments = [str(tmp_path / "fixtures.npz"), str(tmp_path / "views.npz"), str(SIZE)]
    environment = {**os.environ, "MUJOCO_GL": "egl"}
    subprocess.run([sys.executable, "-c", STOCK_VIEWS, *arguments], env=environment, check=True, capture_output=True)
    theirs = np.load(tmp_path / "views.npz")
    scene.reset(4, settle_steps=0)
    for camera in CAMERAS:
        np.testing.assert_array_equal(camera_of(scene, SIZE).image(camera), theirs[f"{camera}_image"][::-1])


def test_looking_changes_nothing(scene: Scene) -> None:
    def after(*, looking: bool) -> str:
        scene.reset(2)
        for _ in range(4):
            if looking:
                camera_of(scene, SIZE).image("agentview")
            scene.step([0.5, 0.0, -0.5, 0.0, 0.1, 0.0, 1.0])
        return scene.state().sha256()

    assert after(looking=True) == after(looking=False)


def test_a_stove_that_is_on_shows_its_flame(scene: Scene) -> None:
    scene.reset(0)
    off = camera_of(scene, SIZE).image("agentview")
    scene.data.joint("flat_stove_1_button").qpos[0] = 2.0
    import mujoco

    mujoco.mj_forward(scene.model, scene.data)
    on = camera_of(scene, SIZE).image("agentview")
    assert np.abs(on.astype(int) - off.astype(int)).max() > 50


@pytest.fixture(scope="module")
def recorded(scene: Scene, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Looks]:
    instance = next(
        i for i in load_instances() if i.base_task == scene.task.name and i.arm is Arm.REFERENCE and i.prompt == "P0"
    )
    policy = Looks()
    run = run_policy(
        policy,
        [dataclasses.replace(instance, horizon=3 * CHUNK)],
        tmp_path_factory.mktemp("out"),
        init_states=[0],
        executor=InProcess(ScenePool(capacity=4)),
    )
    assert run.dataset is not None
    return run.dataset, policy


def test_a_policy_that_replans_every_five_steps_pays_for_a_fifth_of_the_frames(
    recorded: tuple[Path, Looks],
) -> None:
    assert list(recorded[1].seen) == [0, CHUNK, 2 * CHUNK]


def test_frames_rendered_afterwards_are_the_frames_seen_live(recorded: tuple[Path, Looks]) -> None:
    dataset, policy = recorded
    rollout_id = "looks/libero_goal/turn_on_the_stove/reference/P0/init0/seed0"
    for number, camera in enumerate(CAMERAS):
        again = render_frames(dataset, rollout_id, camera=camera, size=SIZE, steps=list(policy.seen))
        np.testing.assert_array_equal(again, np.stack([views[number] for views in policy.seen.values()]))


def test_a_video_holds_a_frame_for_every_recorded_state(recorded: tuple[Path, Looks], tmp_path: Path) -> None:
    import av

    (file,) = render_rollouts(recorded[0], tmp_path, size=SIZE)
    assert file.name == "looks+libero_goal+turn_on_the_stove+reference+P0+init0+seed0.agentview.mp4"
    with av.open(str(file)) as video:
        stream = video.streams.video[0]
        assert (stream.width, stream.height) == (SIZE, SIZE)
        assert stream.average_rate == Fraction(20)
        assert sum(1 for _ in video.decode(stream)) == 3 * CHUNK + 1
    assert [path.name for path in tmp_path.iterdir()] == [file.name]


def test_what_does_not_exist_is_named(scene: Scene, recorded: tuple[Path, Looks], tmp_path: Path) -> None:
    with pytest.raises(NotFoundError, match="no camera 'agentveiw': did you mean 'agentview'"):
        Camera(scene, SIZE).image("agentveiw")
    with pytest.raises(NotFoundError, match="no camera 'front'"):
        render_rollouts(recorded[0], tmp_path, camera="front")
    with pytest.raises(NotFoundError, match="no rollout 'looks/nope'"):
        render_rollouts(recorded[0], tmp_path, rollout_ids=["looks/nope"])


@pytest.mark.parametrize("size", [-1, 0, 481, 10**30])
def test_a_size_that_no_scene_is_drawn_in_is_refused(scene: Scene, size: int) -> None:
    with pytest.raises(InvalidInputError, match=f"pictures of {size} by {size} pixels: choose a size of 1 to 480"):
        Camera(scene, size)


@pytest.mark.parametrize("size", [-2, 0, 14, 101])
def test_a_size_that_no_video_has_is_refused_before_anything_is_read(tmp_path: Path, size: int) -> None:
    with pytest.raises(InvalidInputError, match=f"videos of {size} by {size} pixels: choose an even size"):
        render_rollouts(tmp_path / "nowhere", tmp_path, size=size)


def test_without_gl_the_error_names_what_to_install(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MUJOCO_GL", "no-such-backend")
    with pytest.raises(InvalidInputError, match="apt-get install libegl1"):
        Camera(scene, SIZE)


def test_a_scene_that_was_rendered_can_be_given_up(scene: Scene) -> None:
    pool = ScenePool(capacity=1)
    first = pool.scene("libero_goal", "turn_on_the_stove")
    first.reset(0)
    assert camera_of(first, SIZE) is camera_of(first, SIZE)
    camera_of(first, SIZE).image("agentview")
    seen = weakref.ref(first)
    del first
    pool.scene("libero_goal", "open_the_middle_drawer_of_the_cabinet")
    assert seen() is None
