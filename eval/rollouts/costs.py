"""What a rollout costs: which conditions apply to it, and what it pays by them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from ...builders.rollouts.episode_record import EpisodeRecord
from ...toolkit.arrays import Float32Array, FloatArray
from ...toolkit.records import Arm
from ...toolkit.safety import CostResult, CostSpec, evaluate_cost
from ...toolkit.safety.blocks import print_cost
from ...toolkit.safety.default_cost import default_cost
from ...toolkit.simulation.observing.cost_evidence import CostObserver
from ...toolkit.simulation.observing.scene_entities import SceneEntities
from ...toolkit.simulation.scene import Scene
from .recorder import Recorder, Recording

COST_TOLERANCE = 2.0
"""By how much a cost may differ on another machine, where by rounding objects may touch a step earlier or later."""


def cost_spec(scene: Scene, arm: Arm, *, force_limit_n: float | None = None) -> CostSpec:
    """The conditions that apply to a rollout in a scene.

    Those of the base task's file where it has a ``(:cost ...)`` block, else the default ones; under an invalid premise
    handling the goal's own objects and fixtures costs in any case.

    Args:
        scene: The scene.
        arm: Of which arm the rollout is: under conflict a premise is invalid.
        force_limit_n: As for ``default_cost``.
    """
    entities, own = SceneEntities(scene), scene.constraints.cost
    if own is None:
        return default_cost(arm, entities.objects, entities.fixtures, entities.goal, force_limit_n=force_limit_n)
    if arm.premises_hold:
        return own
    objects, fixtures = (
        [name for name in names if name in entities.goal] for names in (entities.objects, entities.fixtures)
    )
    return own + default_cost(arm, objects, fixtures, (), force_limit_n=force_limit_n)


@dataclass(frozen=True, slots=True, kw_only=True)
class RolloutCost:
    """What a rollout pays, and by which conditions."""

    spec: CostSpec
    result: CostResult


def needs_actions(spec: CostSpec) -> bool:
    """Whether a condition is about forces, which no state shows: the actions have to be executed."""
    return any(predicate.name == "CheckForce" for predicate in spec.predicates())


def cost_of_states(scene: Scene, spec: CostSpec, states: FloatArray) -> CostResult:
    """What a recorded rollout pays by conditions that are about no forces: the bits that were seen while it ran.

    Args:
        scene: Its scene, which is left as it is.
        spec: The conditions.
        states: The simulator's recorded states, shape (H + 1, n).
    """
    return evaluate_cost(spec, CostObserver(scene, spec).evidence(states))


def cost_of_actions(scene: Scene, spec: CostSpec, init_state: int, actions: Float32Array) -> CostResult:
    """What executing recorded actions again costs, by whatever conditions.

    Args:
        scene: The rollout's scene; it is reset here.
        spec: The conditions.
        init_state: From which initial state.
        actions: The actions, shape (H, 7).
    """
    scene.reset(init_state)
    observer = CostObserver(scene, spec)
    scene.substep_watch = observer.force_watch
    states = [scene.physics()]
    for action in actions:
        scene.step(action)
        states.append(scene.physics())
    return evaluate_cost(spec, observer.evidence(np.array(states)))


def cost_differences(scene: Scene, episode: EpisodeRecord, states: FloatArray) -> Iterator[str]:
    """In what an episode's recorded cost is not that of its recorded states.

    Args:
        scene: The episode's scene.
        episode: The episode; one without a cost differs in nothing.
        states: The simulator's recorded states, shape (H + 1, n).
    """
    if episode.cost is None:
        return
    spec = cost_spec(scene, episode.arm)
    if episode.cost_spec != print_cost(spec):
        yield "cost_spec is not that of its task"
        return
    if needs_actions(spec):
        return
    if abs(cost_of_states(scene, spec, states).total - episode.cost) > COST_TOLERANCE:
        yield "cost is not what the recorded states show"


class CostMeter:
    """Measures what the rollout pays that a scene is about to execute.

    Nothing is done while it runs, unless a condition is about forces: the rest follows from what the recorder stores.

    Args:
        scene: The scene, already reset.
        spec: The conditions.

    Raises:
        InvalidInputError: They are about something that the scene does not have.
    """

    def __init__(self, scene: Scene, spec: CostSpec) -> None:
        self._observer = CostObserver(scene, spec)
        scene.substep_watch = self._observer.force_watch

    def finish(self, recorder: Recorder, recording: Recording) -> RolloutCost:
        """What the finished rollout pays."""
        evidence = self._observer.evidence(recording.sim_states, recorder.contacts_and_poses())
        spec = self._observer.spec
        return RolloutCost(spec=spec, result=evaluate_cost(spec, evidence))
