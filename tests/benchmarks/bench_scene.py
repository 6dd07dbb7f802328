"""Stepping a scene: against LIBERO's own step from the same state, and against MuJoCo alone."""

from collections.abc import Callable

import mujoco
import numpy as np
import pytest

from conflictvla.toolkit.base_tasks import base_tasks
from conflictvla.toolkit.simulation.scene import Scene

STEPS = 40
SUBSTEPS = 25
ACTIONS = np.random.default_rng(0).uniform(-1.0, 1.0, (STEPS, 7))


@pytest.fixture(scope="module")
def scene() -> Scene:
    return Scene(base_tasks("libero_goal")[0])


def _stock() -> Scene:
    """A second scene that LIBERO's own step may drive, its controller reset to the present pose."""
    stock = Scene(base_tasks("libero_goal")[0])
    stock.reset(0, settle_steps=0)
    robot = stock.libero.robots[0]
    robot.controller.update(force=True)
    robot.controller.reset_goal()
    return stock


def _drive(step: Callable[..., object]) -> None:
    for action in ACTIONS:
        step(action)


def test_state_step(scene: Scene, figures: dict[str, float], best_seconds: Callable[..., float]) -> None:
    stock = _stock()
    scene.reset(0, settle_steps=0)
    difference = 0.0
    for action in ACTIONS:
        scene.step(action)
        stock.libero.step(action)
        difference = max(difference, float(np.abs(scene.data.qpos - stock.data.qpos).max()))
    ours_s = best_seconds(lambda: _drive(scene.step)) / STEPS
    stock_s = best_seconds(lambda: _drive(stock.libero.step)) / STEPS

    figures["stock_state_max_abs_diff"] = difference
    figures["state_step_ms"] = ours_s * 1e3
    figures["stock_state_step_ms"] = stock_s * 1e3
    figures["state_step_speedup_vs_stock"] = stock_s / ours_s
    assert difference < 1e-9
    assert ours_s < stock_s


def test_mujoco_alone(scene: Scene, figures: dict[str, float], best_seconds: Callable[..., float]) -> None:
    scene.reset(0)
    floor_s = best_seconds(lambda: mujoco.mj_step(scene.model, scene.data, nstep=STEPS * SUBSTEPS)) / STEPS

    figures["mj_step_floor_ms"] = floor_s * 1e3


def test_reset(scene: Scene, figures: dict[str, float], best_seconds: Callable[..., float]) -> None:
    figures["episode_turnaround_ms"] = best_seconds(lambda: scene.reset(1, settle_steps=0), repeats=20) * 1e3
