"""Scenes that LIBERO steps by its own code, to compare ours with."""

import numpy as np

from conflictvla.toolkit.arrays import FloatArray
from conflictvla.toolkit.records import BaseTask
from conflictvla.toolkit.simulation.scene import Scene


def stock_scene(task: BaseTask) -> Scene:
    """A scene whose ``libero.step`` is LIBERO's own, with everything on that LIBERO has on."""
    found = Scene(task)
    found.model.opt.disableflags = 0
    found.model.vis.global_.bvactive = 1
    del found.libero.check_contact
    return found


def reset_stock(stock: Scene) -> None:
    """LIBERO's step leaves its controller's goal and the gripper's command behind: reset them by hand."""
    stock.reset(0, settle_steps=0)
    robot = stock.libero.robots[0]
    robot.controller.update(force=True)
    robot.controller.reset_goal()
    robot.gripper.current_action = np.zeros(2)


def largest_difference(scene: Scene, stock: Scene, actions: FloatArray) -> float:
    """The largest difference of the full states while actions are executed from the first initial state."""
    reset_stock(stock)
    scene.reset(0, settle_steps=0)
    difference = 0.0
    for action in actions:
        scene.step(action)
        stock.libero.step(action)
        difference = max(difference, float(np.abs(scene.physics()[1:] - stock.physics()[1:]).max()))
    return difference
