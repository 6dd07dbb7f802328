"""A scene resets completely, where the stock environment does not."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import product
from typing import Any

import numpy as np
import pytest

from conflictvla.toolkit.arrays import FloatArray
from conflictvla.toolkit.errors import InvalidInputError, NotFoundError
from conflictvla.toolkit.libero.base_tasks import base_task, base_tasks, bddl_path, initial_states
from conflictvla.toolkit.libero.install import load_libero, quiet
from conflictvla.toolkit.records import HORIZONS, SETTLE_STEPS, SUITES, BaseTask
from conflictvla.toolkit.simulation.scene import NO_OP, Scene
from conflictvla.toolkit.simulation.scene_pool import ScenePool
from conflictvla.toolkit.simulation.stepping import mujoco_library

from ...stock_libero import StockLibero, largest_difference, start_difference

START_MM, START_DEG = 0.3, 0.1
"""How far from the peers' a start may be, see the protocol."""

REPEATS = 10
ACTIONS = np.random.default_rng(7).uniform(-1.0, 1.0, (12, 7))


@pytest.fixture(scope="module")
def scene() -> Scene:
    return Scene(base_task("libero_goal", "put_the_bowl_on_the_plate"))


@pytest.fixture(scope="module")
def stock() -> Any:
    """LIBERO's own environment of the same task, as its evaluation scripts use it."""
    task = base_task("libero_goal", "put_the_bowl_on_the_plate")
    with quiet():
        env = load_libero().env_wrapper.ControlEnv(
            bddl_file_name=bddl_path(task), use_camera_obs=False, has_offscreen_renderer=False
        )
        env.seed(0)
        env.reset()
    return env


def _trajectory(scene: Scene) -> str:
    for action in ACTIONS:
        scene.step(action)
    return scene.state().sha256()


def _leave_as_is(scene: Scene) -> None:
    """Begin the next episode right where the last one ended."""


def _shake(scene: Scene) -> None:
    for action in np.random.default_rng(1).uniform(-1.0, 1.0, (15, 7)):
        scene.step(action)


def _close_hand(scene: Scene) -> None:
    for _ in range(6):
        scene.step([0.0, 0.0, -1.0, 0.0, 0.0, 0.5, 1.0])


def _other_initial_state(scene: Scene) -> None:
    scene.reset(31)
    _close_hand(scene)


def _ask_for_success(scene: Scene) -> None:
    scene.succeeded()


BEFORE = (_leave_as_is, _shake, _close_hand, _other_initial_state, _ask_for_success)


def test_one_action_sequence_gives_the_same_bits_whatever_ran_before(scene: Scene) -> None:
    hashes = set()
    for repeat in range(REPEATS):
        BEFORE[repeat % len(BEFORE)](scene)
        scene.reset(3)
        hashes.add(_trajectory(scene))
    assert len(hashes) == 1


def test_a_newly_built_scene_gives_the_same_bits_as_a_used_one(scene: Scene) -> None:
    _shake(scene)
    scene.reset(3)
    used = scene.state().sha256(), _trajectory(scene)
    new_scene = Scene(scene.task)
    new_scene.reset(3)
    assert (new_scene.state().sha256(), _trajectory(new_scene)) == used
    assert new_scene.scene_sha256 == scene.scene_sha256


def test_the_stock_environment_differs_between_repeats(stock: Any) -> None:
    state = initial_states(base_task("libero_goal", "put_the_bowl_on_the_plate"))[3]

    def final_positions() -> np.ndarray[Any, Any]:
        stock.set_init_state(state)
        for _ in range(SETTLE_STEPS):
            stock.step(NO_OP)
        for action in ACTIONS:
            stock.step(action)
        return np.array(stock.sim.data.qpos)

    first, second = final_positions(), final_positions()
    assert np.abs(first - second).max() > 1e-6


@pytest.mark.parametrize("suite", SUITES)
def test_entities_touch_when_libero_says_so(suite: str) -> None:
    scene = Scene(base_tasks(suite)[0])
    libero = scene.libero
    libero_says = partial(type(libero).check_contact, libero)
    assets = [*libero.objects_dict.values(), *libero.fixtures_dict.values(), libero.robots[0].gripper]
    asked = [*product(assets, repeat=2), *((asset, None) for asset in assets)]
    asked += [(asset.contact_geoms, asset.contact_geoms[0]) for asset in assets]
    scene.reset(0)
    answers = set()
    for step in range(24):
        for pair in asked:
            answer = libero.check_contact(*pair)
            assert answer == libero_says(*pair), (step, pair)
            answers.add(answer)
        scene.step([0.3, 0.0, -1.0, 0.0, 0.0, 0.5, 1.0])
    assert answers == {True, False}


def test_a_stock_reset_draws_the_fixtures_anew(stock: Any) -> None:
    def cabinet() -> np.ndarray[Any, Any]:
        with quiet():
            stock.reset()
        return np.array(stock.sim.model.body_pos[stock.env.obj_body_id["wooden_cabinet_1"]])

    assert np.abs(cabinet() - cabinet()).max() > 1e-4


def test_a_reset_leaves_the_fixtures_where_they_were_built(scene: Scene) -> None:
    body = scene.libero.obj_body_id["wooden_cabinet_1"]
    before = np.array(scene.model.body_pos[body])
    scene.model.body_pos[body] += 0.1
    scene.reset(0)
    np.testing.assert_array_equal(scene.model.body_pos[body], before)


def test_another_seed_is_another_scene(scene: Scene) -> None:
    assert Scene(scene.task, seed=1).scene_sha256 != scene.scene_sha256


def test_building_a_scene_leaves_numpys_global_generator_alone(scene: Scene) -> None:
    np.random.seed(123)  # noqa: NPY002
    expected = np.random.random(3)  # noqa: NPY002
    np.random.seed(123)  # noqa: NPY002
    Scene(scene.task)
    np.testing.assert_array_equal(np.random.random(3), expected)  # noqa: NPY002


def test_the_initial_state_is_liberos(scene: Scene) -> None:
    scene.reset(5, settle_steps=0)
    recorded = initial_states(scene.task)[5]
    np.testing.assert_array_equal(scene.data.qpos, recorded[1 : 1 + scene.model.nq])
    assert scene.data.time == 0.0


@pytest.mark.parametrize("suite", SUITES)
def test_a_policy_begins_where_every_peer_begins(suite: str) -> None:
    task = base_tasks(suite)[3]
    ours, stock = Scene(task), StockLibero(task)
    for init_state in (0, 4):
        away_mm, turned_deg = start_difference(ours, stock, init_state)
        assert away_mm <= START_MM
        assert turned_deg <= START_DEG


@pytest.mark.slow
@pytest.mark.parametrize("task", base_tasks(), ids=lambda task: task.task_id)
def test_every_base_task_begins_where_every_peer_begins(task: BaseTask) -> None:
    ours, stock = Scene(task), StockLibero(task)
    differences = [start_difference(ours, stock, init_state) for init_state in range(5)]
    assert np.max(differences, axis=0).tolist() <= [START_MM, START_DEG]


@pytest.mark.parametrize(
    "task_id",
    [
        "libero_goal/put_the_bowl_on_the_plate",
        pytest.param("libero_spatial/0", marks=pytest.mark.slow),
        pytest.param("libero_object/0", marks=pytest.mark.slow),
        pytest.param("libero_10/2", marks=pytest.mark.slow),
    ],
)
def test_start_and_steps_equal_liberos_to_the_last_bit(task_id: str) -> None:
    """The start and 200 random actions, where the fixtures stand alike and the solver starts cold."""
    suite, name = task_id.split("/")
    task = base_tasks(suite)[int(name)] if name.isdigit() else base_task(suite, name)
    actions = np.random.default_rng(0).uniform(-1.0, 1.0, (200, 7))
    assert largest_difference(Scene(task), StockLibero(task), actions) == 0.0


class _Substeps:
    """Keeps arm joints, fingertips' position and hand orientation after each substep, as MuJoCo then has them."""

    def __init__(self, scene: Scene) -> None:
        self._scene = scene
        self.seen: list[tuple[FloatArray, FloatArray, FloatArray]] = []

    def begin_step(self) -> None:
        self.seen = []

    def end_substep(self) -> None:
        self.seen.append((self._scene.joint_pos_rad(), self._scene.grip_pos(), self._scene.grip_quat_wxyz()))


def test_liberos_observation_is_of_the_last_but_one_substep(scene: Scene) -> None:
    """What docs/pages/settings.md says of the difference: its joints are 2 ms old, its poses and pictures 4 ms."""
    stock = StockLibero(scene.task)
    stock.begin_in(scene, 1)
    scene.reset(1)
    scene.substep_watch = substeps = _Substeps(scene)
    for action in np.random.default_rng(2).uniform(-1.0, 1.0, (30, 7)):
        scene.step(action)
        seen = stock.env.step(action)[0]
        joints, position, quat = substeps.seen[-2]
        np.testing.assert_array_equal(joints, seen["robot0_joint_pos"])
        # MuJoCo computes poses at the beginning of a substep, from the joints that the one before it left.
        np.testing.assert_array_equal(position, seen["robot0_eef_pos"])
        np.testing.assert_array_equal(quat[[1, 2, 3, 0]], seen["robot0_eef_quat"])


@pytest.mark.parametrize("wrong", [-1, 50])
def test_an_initial_state_that_does_not_exist_is_refused(scene: Scene, wrong: int) -> None:
    with pytest.raises(InvalidInputError, match=r"choose 0 to 49"):
        scene.reset(wrong)


def test_success_is_not_there_at_the_start(scene: Scene) -> None:
    scene.reset(0)
    assert not scene.succeeded()
    assert not scene.holds(("on", "akita_black_bowl_1", "plate_1"))


def test_actions_beyond_the_limits_are_clipped(scene: Scene) -> None:
    def after(scale: float) -> str:
        scene.reset(0)
        scene.step(scale * np.array([1.0, -1.0, 1.0, 1.0, 1.0, -1.0, 1.0]))
        return scene.state().sha256()

    assert after(1.0) == after(40.0)


def test_a_mujoco_without_its_library_says_what_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mujoco_library, "NAMES", ("libmujoco.none",))
    with pytest.raises(InvalidInputError, match=r"holds none of libmujoco\.none: install mujoco 3\.2\.3"):
        mujoco_library.library_file()


def test_a_pool_builds_each_scene_once_and_gives_up_the_least_used() -> None:
    pool = ScenePool(capacity=1)
    first = pool.scene("libero_goal", "put_the_bowl_on_the_plate")
    assert pool.scene("libero_goal", "put_the_bowl_on_the_plate") is first
    pool.scene("libero_goal", "turn_on_the_stove")
    assert pool.scene("libero_goal", "put_the_bowl_on_the_plate") is not first


def test_there_are_forty_base_tasks_with_their_protocol_horizons() -> None:
    tasks = base_tasks()
    assert [task.suite for task in tasks] == [suite for suite in SUITES for _ in range(10)]
    assert {(task.suite, task.horizon) for task in tasks} == set(HORIZONS.items())
    assert len({task.task_id for task in tasks}) == 40


def test_the_instruction_is_the_benchmarks_own_not_the_bddl_files() -> None:
    task = base_task("libero_goal", "open_the_middle_drawer_of_the_cabinet")
    assert task.instruction == "open the middle drawer of the cabinet"
    assert task.goal == (("open", "wooden_cabinet_1_middle_region"),)


@pytest.mark.parametrize("ask", [lambda: base_tasks("libero_gaol"), lambda: base_task("libero_goal", "put_the_bowl")])
def test_a_wrong_name_is_answered_with_the_closest(ask: Callable[[], object]) -> None:
    with pytest.raises(NotFoundError, match=r"did you mean"):
        ask()
