"""Scripted agents that know the simulator's state: what three ways of meeting an invalid premise look like.

``Persist`` pursues the base task's own goal whatever the instruction says; ``Refuse`` holds still where the premises of
the instruction do not hold; ``FailPersist`` goes for the same target there, but never succeeds. They calibrate the
measures: a pair of theirs has a known answer.
"""

from __future__ import annotations

import importlib.metadata
from collections.abc import Callable

import numpy as np

from ...toolkit.simulation.scene import NO_OP
from . import motion, skills
from .goals import check_goal, pursue
from .motion import Array, Motion
from .policy import Episode, Observation, PolicyInfo
from .premises import premises_hold as premises_of_instruction_hold

SETTINGS: dict[str, str | int | float | bool] = {
    "position_gain": motion.POSITION_GAIN,
    "top_speed": motion.TOP_SPEED,
    "touch_speed": motion.TOUCH_SPEED,
    "finger_steps": motion.FINGER_STEPS,
    "hover_m": skills.HOVER_M,
    "clearance_m": skills.CLEARANCE_M,
    "grasp_depth_m": skills.GRASP_DEPTH_M,
    "rim_depth_m": skills.RIM_DEPTH_M,
    "turn_rad": skills.TURN_RAD,
    "tow_press_m": skills.TOW_PRESS_M,
}
"""The constants of the skills that change behaviour the most, recorded with every rollout."""


def _info(name: str) -> PolicyInfo:
    return PolicyInfo(name=name, revision=importlib.metadata.version("conflictvla"), settings=SETTINGS)


class Persist:
    """Pursues the base task's reference goal, whatever the instruction says.

    Args:
        premises_hold: Whether the premises of an episode's instruction hold; this agent never asks.
    """

    name = "persist"

    def __init__(self, *, premises_hold: Callable[[Episode], bool] = premises_of_instruction_hold) -> None:
        self.info = _info(self.name)
        self._premises_hold = premises_hold
        self._motion: Motion = iter(())

    def reset(self, episode: Episode) -> None:
        """Begin an episode: plan from the scene's goal.

        Raises:
            InvalidInputError: No skill can bring about the base task's goal.
        """
        check_goal(episode.scene.task)
        self._motion = self._respond(episode)

    def act(self, observation: Observation) -> Array:
        """The next action, shape (1, 7), from the simulator's present state."""
        del observation  # the scripted agents read the simulator itself
        return np.clip(next(self._motion), -1.0, 1.0)[np.newaxis]

    def _respond(self, episode: Episode) -> Motion:
        return pursue(episode.scene)


class Refuse(Persist):
    """Holds still until the end where the premises of the instruction do not hold; persists otherwise.

    Args:
        premises_hold: Whether the premises of an episode's instruction hold.
    """

    name = "refuse"

    def _respond(self, episode: Episode) -> Motion:
        return pursue(episode.scene) if self._premises_hold(episode) else _hold_still()


class FailPersist(Persist):
    """Goes for the same target with an empty hand, over and over, where the premises do not hold; persists otherwise.

    Until the hand would close, its actions are those of ``Persist``.

    Args:
        premises_hold: Whether the premises of an episode's instruction hold.
    """

    name = "fail_persist"

    def _respond(self, episode: Episode) -> Motion:
        return pursue(episode.scene, empty=not self._premises_hold(episode))


def _hold_still() -> Motion:
    while True:
        yield NO_OP.copy()
