"""Where a policy is checked: one real scene, in which it acts under observations that are changed on purpose."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ...builders.rollouts.refusals import rest_action
from ...toolkit.arrays import FloatArray, Image
from ...toolkit.errors import PolicyError
from ...toolkit.records import Instance
from ...toolkit.simulation.observing.targets import target_positions
from ...toolkit.simulation.scene import Scene
from ..policies.asking import ask, begin_episode
from ..policies.interface import Episode, Observation, Policy, Refusal
from ..policies.observing import observe

LONGEST_SHOWN = 80
"""Most characters of a refusal's text that are shown."""

Change = Callable[[Observation], Observation]
"""Changes what a policy receives."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DriveResult:
    """What a policy did in a few steps.

    Attributes:
        actions: As it gave them, before clipping, shape (n, 7).
        chunks: How many actions each answer held.
        answers_s: How long each answer took, in s.
        approach_m: How much nearer the gripper came to the nearest target, in m.
        views: How often it asked for a picture.
    """

    actions: FloatArray
    chunks: tuple[int, ...]
    answers_s: tuple[float, ...]
    approach_m: float
    views: int


class PolicyTrial:
    """Asks a policy about one initial state.

    Args:
        policy: The policy.
        scene: The scene of the instance's base task.
        instance: A reference instance.
        init_state: LIBERO's number of the initial state.
        seed: Seed handed to the policy.
    """

    def __init__(self, policy: Policy, scene: Scene, instance: Instance, *, init_state: int, seed: int) -> None:
        self.policy, self._scene, self._instance = policy, scene, instance
        self._init_state, self._seed = init_state, seed

    @property
    def instruction(self) -> str:
        """The base task's own instruction."""
        return self._instance.instruction

    def ask(self, instruction: str | None = None, change: Change | None = None) -> FloatArray:
        """The policy's first answer in an episode, shape (n, 7); where it refuses another prompt, one action of rest.

        Args:
            instruction: The prompt; the base task's own instruction by default.
            change: What is done to the observation.

        Raises:
            PolicyError: The policy raised, refused its own instruction, or its answer is no chunk of actions.
        """
        self._begin(instruction or self._instance.instruction)
        if instruction is None:
            return self._act(0, change or _as_it_is)
        answer = self._answer(0, change or _as_it_is)
        return rest_action()[np.newaxis].astype(np.float64) if isinstance(answer, Refusal) else answer

    def refusal_of(self, conflict: Instance) -> Refusal | None:
        """What the policy first answers to a conflict in this scene, where that is a refusal.

        Args:
            conflict: A conflict instance of the base task.

        Raises:
            PolicyError: The policy raised, or its answer is neither actions nor a refusal.
        """
        self._begin(conflict.prompt_text, conflict)
        answer = self._answer(0, _as_it_is)
        return answer if isinstance(answer, Refusal) else None

    def drive(self, steps: int, change: Change | None = None) -> DriveResult:
        """Let the policy act for some steps.

        Raises:
            PolicyError: The policy raised, refused, or an answer is no chunk of actions.
        """
        self._begin(self._instance.instruction)
        views = 0

        def count_views(observation: Observation) -> Observation:
            def camera(name: str, size: int) -> Image:
                nonlocal views
                views += 1
                return observation.camera(name, size)

            return (change or _as_it_is)(dataclasses.replace(observation, camera=camera))

        away, answers, seconds = [self._target_distance_m()], [], []
        while len(away) <= steps:
            started = time.perf_counter()
            answers.append(self._act(len(away) - 1, count_views))
            seconds.append(time.perf_counter() - started)
            for action in answers[-1][: steps + 1 - len(away)]:
                self._scene.step(np.clip(action, -1.0, 1.0))
                away.append(self._target_distance_m())
        return DriveResult(
            actions=np.concatenate(answers),
            chunks=tuple(len(answer) for answer in answers),
            answers_s=tuple(seconds),
            approach_m=away[0] - min(away),
            views=views,
        )

    def _begin(self, instruction: str, instance: Instance | None = None) -> None:
        self._scene.reset(self._init_state)
        episode = Episode(
            instruction=instruction,
            init_state=self._init_state,
            seed=self._seed,
            instance=instance or self._instance,
            scene=self._scene,
        )
        begin_episode(self.policy, episode)

    def _act(self, step: int, change: Change) -> FloatArray:
        answer = self._answer(step, change)
        if isinstance(answer, Refusal):
            said = f"{answer.kind}, {answer.text[:LONGEST_SHOWN]!r}"
            raise PolicyError(f"step {step}: the policy refuses the base task's own instruction ({said})")
        return answer

    def _answer(self, step: int, change: Change) -> FloatArray | Refusal:
        return ask(self.policy, change(observe(self._scene, step)))

    def _target_distance_m(self) -> float:
        targets = target_positions(self._scene, self._instance.targets)
        return float(np.linalg.norm(targets - self._scene.grip_pos(), axis=1).min())


def difference(one: FloatArray, other: FloatArray) -> float:
    """Largest difference of two chunks in the actions that both have."""
    shared = min(len(one), len(other))
    return float(np.abs(one[:shared] - other[:shared]).max())


def _as_it_is(observation: Observation) -> Observation:
    return observation
