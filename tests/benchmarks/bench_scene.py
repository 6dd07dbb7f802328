"""Stepping a scene: against LIBERO's own step from the same state, and against MuJoCo alone, on every suite.

Each of our steps includes asking whether the task is solved, as each of LIBERO's does.
"""

from collections.abc import Callable

import mujoco
import numpy as np
import pytest

from conflictvla.eval.policies.observing import observe
from conflictvla.toolkit.arrays import FloatArray
from conflictvla.toolkit.libero.base_tasks import base_tasks
from conflictvla.toolkit.records import SUITES
from conflictvla.toolkit.simulation.scene import Scene

from ..stock_libero import StockLibero, largest_difference, start_difference

STEPS = 40
SUBSTEPS = 25
COMPARED_STEPS = 200
ACTIONS = np.random.default_rng(0).uniform(-1.0, 1.0, (COMPARED_STEPS, 7))
TASK = {"libero_10": 2}
"""Which task of a suite is timed; the first, but for libero_10 one with a stove and two moka pots."""


@pytest.fixture(scope="module", params=SUITES)
def suite(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def scene(suite: str) -> Scene:
    return Scene(base_tasks(suite)[TASK.get(suite, 0)])


@pytest.fixture(scope="module")
def stock(scene: Scene) -> StockLibero:
    return StockLibero(scene.task)


def _drive(step: Callable[..., object]) -> None:
    for action in ACTIONS[:STEPS]:
        step(action)


def test_steps_are_liberos_to_the_last_bit(
    scene: Scene, stock: StockLibero, suite: str, figures: dict[str, float]
) -> None:
    difference = largest_difference(scene, stock, ACTIONS)
    figures[f"stock_state_max_abs_diff_{suite}"] = difference
    figures["stock_state_max_abs_diff"] = max(figures.get("stock_state_max_abs_diff", 0.0), difference)
    assert difference < 1e-9


def test_policies_begin_where_peers_begin(suite: str, figures: dict[str, float]) -> None:
    """The protocol's 200 starts, each against LIBERO's own ``reset``, ``set_init_state`` and ten no-ops."""
    for task in base_tasks(suite):
        scene, stock = Scene(task), StockLibero(task)
        for init_state in range(5):
            away_mm, turned_deg = start_difference(scene, stock, init_state)
            _keep(figures, "start_pose_max_mm", away_mm, max)
            _keep(figures, "start_pose_max_deg", turned_deg, max)
    assert figures["start_pose_max_mm"] <= 0.3
    assert figures["start_pose_max_deg"] <= 0.1


def test_liberos_observation_is_older_than_the_state(
    scene: Scene, stock: StockLibero, figures: dict[str, float]
) -> None:
    """How far LIBERO's 8-D state, sampled before a control step ends, is from the state that our policies receive."""
    stock.begin_in(scene, 0)
    scene.reset(0)
    for action in ACTIONS:
        scene.step(action)
        theirs, ours = stock.env.step(action)[0], observe(scene, 0)
        position = np.abs(ours.eef_pos_m - theirs["robot0_eef_pos"]).max()
        joints = np.abs(ours.joint_pos_rad - theirs["robot0_joint_pos"]).max()
        _keep(figures, "libero_observation_behind_mm", 1e3 * float(position), max)
        _keep(figures, "libero_observation_behind_rad", float(joints), max)


def test_steps_take_less_time_than_liberos(
    scene: Scene, stock: StockLibero, suite: str, figures: dict[str, float], best_seconds: Callable[..., float]
) -> None:
    def step(action: FloatArray) -> bool:
        scene.step(action)
        return scene.succeeded()

    ours_s = stock_s = floor_s = np.inf
    for _ in range(5):  # in turn, so that a slow moment of the machine hits all three
        scene.reset(0, settle_steps=0)
        ours_s = min(ours_s, best_seconds(lambda: _drive(step), repeats=1) / STEPS)
        stock.begin_in(scene, 0)
        stock_s = min(stock_s, best_seconds(lambda: _drive(stock.env.step), repeats=1) / STEPS)
        floor_s = min(floor_s, best_seconds(lambda: _mujoco_alone(scene), repeats=1) / STEPS)

    figures[f"state_step_ms_{suite}"] = ours_s * 1e3
    figures[f"stock_state_step_ms_{suite}"] = stock_s * 1e3
    figures[f"mj_step_floor_ms_{suite}"] = floor_s * 1e3
    figures[f"state_step_speedup_vs_stock_{suite}"] = stock_s / ours_s
    _keep(figures, "state_step_ms", ours_s * 1e3, max)
    _keep(figures, "mj_step_floor_ms", floor_s * 1e3, max)
    _keep(figures, "state_step_speedup_vs_stock", stock_s / ours_s, min)


def _mujoco_alone(scene: Scene) -> None:
    scene.reset(0, settle_steps=0)
    mujoco.mj_step(scene.model, scene.data, nstep=STEPS * SUBSTEPS)


def _keep(figures: dict[str, float], name: str, value: float, worst: Callable[..., float]) -> None:
    """The figure without a suite in its name is the worst of the four."""
    figures[name] = worst(figures.get(name, value), value)


def test_reset(scene: Scene, figures: dict[str, float], best_seconds: Callable[..., float]) -> None:
    turnaround_s = best_seconds(lambda: scene.reset(1, settle_steps=0), repeats=20)
    _keep(figures, "episode_turnaround_ms", turnaround_s * 1e3, max)
    _keep(figures, "settled_reset_ms", best_seconds(lambda: scene.reset(1), repeats=5) * 1e3, max)
