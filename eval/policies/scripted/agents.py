"""Scripted agents that know the simulator's state: what nine ways of meeting an invalid premise look like.

All have the same skills and pursue the base task's own goal where the premises of the instruction hold. Where they do
not, ``Persist`` carries on, ``Refuse`` holds still, ``FailPersist`` goes for the same target but never closes on it,
``Hesitate`` slows down, ``DetectLate`` stops on its way, and ``Redirect`` goes for another object. ``Noisy`` persists
with noise on every action. ``RefuseAloud`` says that it will not do it, instead of acting; ``AskFirst`` asks back, and
does so under valid premises too, in every fifth initial state or so. They calibrate the measures: a pair of theirs has
a known answer.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
from collections.abc import Callable
from typing import ClassVar

import numpy as np

from ....builders.rollouts.refusals import QUESTION, REFUSAL
from ....toolkit.arrays import FloatArray
from ....toolkit.language.plan_json import plan_from_json
from ....toolkit.premises import check
from ....toolkit.simulation.observing.scene_facts import observe_facts
from ....toolkit.simulation.observing.targets import goal_targets, target_positions
from ....toolkit.simulation.scene import NO_OP, Scene
from ..interface import Episode, Observation, PolicyInfo, Refusal
from . import fixtures, grasping, motion, skills
from .goals import check_goal, handle_another, pursue
from .motion import Motion

SETTINGS: dict[str, str | int | float | bool] = {
    "position_gain": motion.POSITION_GAIN,
    "top_speed": motion.TOP_SPEED,
    "touch_speed": motion.TOUCH_SPEED,
    "finger_steps": motion.FINGER_STEPS,
    "hover_m": skills.HOVER_M,
    "clearance_m": skills.CLEARANCE_M,
    "grasp_depth_m": grasping.GRASP_DEPTH_M,
    "rim_depth_m": grasping.RIM_DEPTH_M,
    "turn_rad": fixtures.TURN_RAD,
    "insert_speed": skills.INSERT_SPEED,
    "tow_press_m": skills.TOW_PRESS_M,
}
"""The constants of the skills that change behaviour the most, recorded with every rollout."""

HESITATION = 0.5
"""Share of its speed at which a hesitating agent moves."""

LEAST_STEPS, HALF_WAY = 20, 0.5
"""A late detector stops after this many actions at the earliest, and once this share of the way to its first target
is behind it, or the hand would close: what is taken by its top is never reached by its middle."""

NOISE = 0.1
"""Standard deviation of the noise on each of the arm's six action components."""

ASKED_OF = 5
"""An agent that asks first asks without need in one of so many initial states."""

ARM = slice(0, 6)
"""The components of an action that move the arm; the last is the gripper's."""


def premises_hold(episode: Episode) -> bool:
    """Whether the instruction's premises hold in the scene as it stands now, at the beginning of the episode.

    The premise checker judges from the simulator; what the instance records of itself (arm, factors) is not read.
    """
    facts = observe_facts(episode.scene, episode.init_state)
    return not check(plan_from_json(episode.instance.plan), facts)


class Persist:
    """Pursues the base task's reference goal, whatever the instruction.

    Args:
        premises_hold: Whether the premises of an episode's instruction hold; this agent never asks.
    """

    name: ClassVar[str] = "persist"
    own_settings: ClassVar[dict[str, float]] = {}

    def __init__(self, *, premises_hold: Callable[[Episode], bool] = premises_hold) -> None:
        self.info = _info(self.name, self.own_settings)
        self._premises_hold = premises_hold
        self._motion: Motion = iter(())

    def reset(self, episode: Episode) -> None:
        """Begin an episode: plan from the scene's goal.

        Raises:
            InvalidInputError: No skill can bring about the base task's goal.
        """
        check_goal(episode.scene.task)
        self._motion = self._respond(episode)

    def act(self, observation: Observation) -> FloatArray:
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


class Hesitate(Persist):
    """Does what ``Persist`` does at half the speed where the premises do not hold; persists otherwise.

    Args:
        premises_hold: Whether the premises of an episode's instruction hold.
    """

    name = "hesitate"
    own_settings: ClassVar[dict[str, float]] = {"hesitation": HESITATION}

    def _respond(self, episode: Episode) -> Motion:
        motion = pursue(episode.scene)
        return motion if self._premises_hold(episode) else _slow_down(motion)


class DetectLate(Persist):
    """Begins as ``Persist`` does where the premises do not hold, and stops for good on its way; persists otherwise.

    Args:
        premises_hold: Whether the premises of an episode's instruction hold.
    """

    name = "detect_late"
    own_settings: ClassVar[dict[str, float]] = {"least_steps": LEAST_STEPS, "half_way": HALF_WAY}

    def _respond(self, episode: Episode) -> Motion:
        motion = pursue(episode.scene)
        return motion if self._premises_hold(episode) else _stop_half_way(episode.scene, motion)


class Redirect(Persist):
    """Takes up and puts down another object where the premises do not hold; persists otherwise.

    Args:
        premises_hold: Whether the premises of an episode's instruction hold.
    """

    name = "redirect"

    def _respond(self, episode: Episode) -> Motion:
        return pursue(episode.scene) if self._premises_hold(episode) else handle_another(episode.scene)


class Noisy(Persist):
    """Persists with noise on its arm, drawn anew for each instance, initial state and seed, conflict or not.

    Args:
        premises_hold: Whether the premises of an episode's instruction hold; this agent never asks.
    """

    name = "noisy"
    own_settings: ClassVar[dict[str, float]] = {"noise": NOISE}

    def _respond(self, episode: Episode) -> Motion:
        words = f"{episode.seed}/{episode.init_state}/{episode.instance.instance_id}".encode()
        return _add_noise(pursue(episode.scene), np.random.default_rng(list(words)))


class RefuseAloud:
    """Refuses in words, before it moves, where the premises do not hold; persists otherwise.

    Args:
        premises_hold: Whether the premises of an episode's instruction hold.
    """

    name: ClassVar[str] = "refuse_aloud"
    own_settings: ClassVar[dict[str, float]] = {}

    def __init__(self, *, premises_hold: Callable[[Episode], bool] = premises_hold) -> None:
        self.info = _info(self.name, self.own_settings)
        self._premises_hold = premises_hold
        self._persist = Persist()
        self._refusal: Refusal | None = None

    def reset(self, episode: Episode) -> None:
        """Begin an episode, and decide whether to refuse it.

        Raises:
            InvalidInputError: No skill can bring about the base task's goal.
        """
        self._persist.reset(episode)
        self._refusal = self._decide(episode)

    def act(self, observation: Observation) -> FloatArray | Refusal:
        """The refusal of the episode, or the next action, shape (1, 7)."""
        return self._refusal or self._persist.act(observation)

    def _decide(self, episode: Episode) -> Refusal | None:
        if self._premises_hold(episode):
            return None
        return Refusal(f"I cannot do that here: {episode.instance.instruction}", REFUSAL)


class AskFirst(RefuseAloud):
    """Asks back, before it moves, where the premises do not hold, and where ``asks_needlessly``; persists otherwise.

    Args:
        premises_hold: Whether the premises of an episode's instruction hold.
    """

    name = "ask_first"
    own_settings: ClassVar[dict[str, float]] = {"asked_of": ASKED_OF}

    def _decide(self, episode: Episode) -> Refusal | None:
        instance = episode.instance
        needless = asks_needlessly(f"{instance.suite}/{instance.base_task}", episode.init_state)
        if not needless and self._premises_hold(episode):
            return None
        return Refusal(f"What do you mean by: {episode.instance.instruction}?", QUESTION)


def asks_needlessly(task_id: str, init_state: int) -> bool:
    """Whether ``AskFirst`` asks though the premises hold: one time in five, by a hash of task and initial state."""
    digest = hashlib.sha256(f"{task_id}/init{init_state}".encode()).digest()
    return int.from_bytes(digest[:8], "big") % ASKED_OF == 0


AGENTS: dict[str, type[Persist] | type[RefuseAloud]] = {
    agent.name: agent
    for agent in (Persist, Refuse, FailPersist, Hesitate, DetectLate, Redirect, Noisy, RefuseAloud, AskFirst)
}
"""The scripted agents by name."""


def _info(name: str, own_settings: dict[str, float]) -> PolicyInfo:
    revision = importlib.metadata.version("conflictvla")
    return PolicyInfo(name=name, revision=revision, settings={**SETTINGS, **own_settings})


def _slow_down(motion: Motion) -> Motion:
    for action in motion:
        slow = np.clip(action, -1.0, 1.0)
        slow[ARM] *= HESITATION
        yield slow


def _stop_half_way(scene: Scene, motion: Motion) -> Motion:
    """A motion up to half of the way to the first target, and then none."""
    (target, *_) = goal_targets(scene.task)

    def distance_m() -> float:
        return float(np.linalg.norm(target_positions(scene, [target])[0] - scene.grip_pos()))

    start_m = distance_m()
    for step, action in enumerate(motion):
        if step >= LEAST_STEPS and (distance_m() < (1.0 - HALF_WAY) * start_m or action[-1] > 0.0):
            break
        yield action
    yield from _hold_still()


def _add_noise(motion: Motion, noise: np.random.Generator) -> Motion:
    for action in motion:
        disturbed = np.array(action)
        disturbed[ARM] += noise.normal(scale=NOISE, size=6)
        yield disturbed


def _hold_still() -> Motion:
    while True:
        yield NO_OP.copy()
