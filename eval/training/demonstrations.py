"""Demonstrations to learn from: the scripted agent's actions along ways that it is pushed off now and then.

What is executed is disturbed, what is recorded is what the agent wanted to do (DART, Laskey et al. 2017): so the
learner sees how to come back from where its own errors will take it.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ...builders.cases.instances import base_instance
from ...toolkit.arrays import Float32Array, FloatArray, IntArray
from ...toolkit.atomic_files import write_atomic
from ...toolkit.errors import DatasetError, first_line
from ...toolkit.records import BaseTask, Prompt
from ...toolkit.simulation.observing.targets import goal_targets
from ...toolkit.simulation.scene import Scene
from ..policies.interface import Episode, Observation, PolicyInfo
from ..policies.learned.scene_vector import SceneNames, SceneVector, nearest_object, scene_names
from ..policies.scripted.goals import check_goal, pursue
from ..policies.scripted.motion import Motion
from ..rollouts.jobs import Job
from ..rollouts.rollout import run_rollout
from ..rollouts.versions import installed_versions

PUSH_CHANCE, PUSH_STEPS = 0.04, (3, 10)
"""How likely a push begins at a step, and how many steps it lasts at least and at most."""

PUSH_SCALE = np.array([0.5, 0.5, 0.5, 0.2, 0.2, 0.2, 0.0])
"""Standard deviation of a push, component by component of the action; the gripper is never disturbed."""

SHAKE = 0.1
"""Standard deviation, at most, of the noise on the arm's components at every step."""

SAME_PLACE_M, SAME_TURN_RAD = 0.04, np.radians(15.0)
"""Hands that close no further apart, as seen from the nearest object, and no further turned, close in the same way."""

HORIZONS = 2
"""How many times a rollout's horizon a demonstration may take: being pushed off the way costs time."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Demonstrations:
    """Demonstrations of one base task.

    Attributes:
        task: The base task's name.
        instruction: Its instruction.
        names: What its scene holds.
        vectors: What is seen before each action, all demonstrations one after the other, shape (N, width).
        actions: What the scripted agent wants to do there, shape (N, 7).
        lengths: How many steps each demonstration has, shape (E,).
        init_states: From where they were tried; those that did not complete the goal are left out.
        seed: Seed of the disturbance.
    """

    task: str
    instruction: str
    names: SceneNames
    vectors: Float32Array
    actions: Float32Array
    lengths: IntArray
    init_states: tuple[int, ...]
    seed: int


class Demonstrator:
    """Pursues the base task's goal under disturbance, and records what it observes and wants to do.

    Args:
        seed: Seed of the disturbance, together with task, initial state and the rollout's seed.
    """

    def __init__(self, seed: int) -> None:
        self.info = PolicyInfo(name="demonstrator", revision="1")
        self.vectors: list[Float32Array] = []
        self.wanted: list[Float32Array] = []
        self._seed = seed
        self._motion: Motion = iter(())

    def reset(self, episode: Episode) -> None:
        """Begin a demonstration."""
        scene = episode.scene
        check_goal(scene.task)
        words = f"{self._seed}/{episode.seed}/{episode.init_state}/{scene.task.task_id}".encode()
        self._disturbance = _disturbance(np.random.default_rng(list(words)))
        self._motion = pursue(scene)
        self._vector = SceneVector(scene, scene_names(scene))
        self.vectors, self.wanted = [], []

    def act(self, observation: Observation) -> FloatArray:
        """The next action, disturbed, shape (1, 7)."""
        del observation  # it reads the simulator itself
        self.vectors.append(self._vector.read())
        wanted = np.clip(next(self._motion), -1.0, 1.0)
        self.wanted.append(wanted.astype(np.float32))
        return np.clip(wanted + next(self._disturbance), -1.0, 1.0)[np.newaxis]


def _disturbance(random: np.random.Generator) -> Motion:
    """What is added to each action: noise at every step, and now and then a push in one direction."""
    shake = random.uniform(0.0, SHAKE) * (PUSH_SCALE > 0.0)
    while True:
        pushed = random.random() < PUSH_CHANCE
        steps = int(random.integers(*PUSH_STEPS, endpoint=True)) if pushed else 1
        push = random.normal(scale=PUSH_SCALE) * pushed
        for _ in range(steps):
            yield push + shake * random.normal(size=7)


def demonstrate(
    task: BaseTask, init_states: Sequence[int], *, seed: int, progress: Callable[[str], None] = lambda _: None
) -> Demonstrations:
    """Record a demonstration of a base task from each of some initial states.

    Args:
        task: The base task.
        init_states: LIBERO's numbers of the initial states.
        seed: Seed of the disturbance.
        progress: Called with the instruction after each demonstration.

    Raises:
        DatasetError: None of them completed the goal.
    """
    scene, demonstrator = Scene(task), Demonstrator(seed)
    instance = base_instance(task, Prompt.P0, plan="{}", targets=goal_targets(task))
    instance = dataclasses.replace(instance, horizon=HORIZONS * task.horizon)
    vectors: list[Float32Array] = []
    actions: list[Float32Array] = []
    for init_state in init_states:
        job = Job(instance=instance, init_state=init_state, seed=seed)
        rollout = run_rollout(scene, demonstrator, job, versions=installed_versions())
        if rollout.episode.success:
            vectors.append(np.array(demonstrator.vectors))
            actions.append(np.array(demonstrator.wanted))
        progress(task.instruction)
    if not vectors:
        raise DatasetError(f"{task.task_id}: none of {len(init_states)} demonstrations completed the goal")
    return Demonstrations(
        task=task.name,
        instruction=task.instruction,
        names=scene_names(scene),
        vectors=np.concatenate(vectors),
        actions=np.concatenate(actions),
        lengths=np.array([len(each) for each in vectors]),
        init_states=tuple(init_states),
        seed=seed,
    )


def agreeing_demonstrations(made: Demonstrations) -> Demonstrations:
    """Those demonstrations whose hand first closes the way it does in most of them.

    The scripted agent takes a bowl here or there by its rim, whichever way the hand meets less; the mean of two such
    ways, which is what a network would learn of both, meets the bowl.
    """
    starts = np.cumsum(made.lengths) - made.lengths
    closing = np.array(
        [
            start + int(np.argmax(made.actions[start : start + length, 6] > 0.0))
            for start, length in zip(starts, made.lengths, strict=True)
        ]
    )
    apart_m, fingers = nearest_object(made.vectors[closing], made.names)
    alike = np.linalg.norm(apart_m[:, np.newaxis] - apart_m, axis=2) < SAME_PLACE_M
    alike &= fingers @ fingers.T > np.cos(SAME_TURN_RAD)
    chosen = alike[alike.sum(axis=1).argmax()]
    rows = np.repeat(chosen, made.lengths)
    return dataclasses.replace(
        made, vectors=made.vectors[rows], actions=made.actions[rows], lengths=made.lengths[chosen]
    )


def write_demonstrations(made: Demonstrations, file: Path) -> None:
    """Write demonstrations as a safetensors file, which is complete or absent."""
    from safetensors.numpy import save

    about = {
        "task": made.task,
        "instruction": made.instruction,
        "init_states": made.init_states,
        "seed": made.seed,
        "objects": made.names.objects,
        "joints": made.names.joints,
    }
    arrays: dict[str, npt.NDArray[Any]] = {"vectors": made.vectors, "actions": made.actions, "lengths": made.lengths}
    write_atomic(file, save(arrays, metadata={"demonstrations": json.dumps(about)}))


def read_demonstrations(file: Path) -> Demonstrations:
    """Read what ``write_demonstrations`` wrote.

    Raises:
        DatasetError: The file is damaged or something else.
    """
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(file, framework="numpy") as content:
            about = json.loads((content.metadata() or {})["demonstrations"])
            arrays = {name: content.get_tensor(name) for name in ("vectors", "actions", "lengths")}
    except (OSError, SafetensorError, KeyError, ValueError) as error:
        raise DatasetError(
            f"{file}: holds no demonstrations ({first_line(error)}): remove it and record them again"
        ) from error
    return Demonstrations(
        task=about["task"],
        instruction=about["instruction"],
        names=SceneNames(objects=tuple(about["objects"]), joints=tuple(about["joints"])),
        init_states=tuple(about["init_states"]),
        seed=about["seed"],
        **arrays,
    )
