"""What each scripted agent proves about the measures: known values and orders, on real rollouts of released cases."""

from __future__ import annotations

import functools
from dataclasses import dataclass

import pytest

from conflictvla.builders.tasks_dataset.reading import load_instances
from conflictvla.eval.policies.interface import Episode
from conflictvla.eval.policies.scripted.agents import AGENTS, premises_hold
from conflictvla.toolkit.libero.base_tasks import base_task
from conflictvla.toolkit.records import Arm, Instance, Level, Prompt
from conflictvla.toolkit.simulation.scene import Scene

from ...measures import reference_measures as measures
from ...trials import Trial, roll_out

SAMPLE = ("libero_spatial/pick_up_the_black_bowl_on_the_cookie_box_and_place_it_on_the_plate", Level.L1)
OTHERS = [
    ("libero_goal/put_the_bowl_on_the_stove", Level.L2),
    ("libero_object/pick_up_the_butter_and_place_it_in_the_basket", Level.L3),
    ("libero_10/KITCHEN_SCENE3_turn_on_the_stove_and_put_the_moka_pot_on_it", Level.L4),
]
"""One more level on each other suite, for the slow run."""

PAIRS = [SAMPLE, *[pytest.param(*other, marks=pytest.mark.slow) for other in OTHERS]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """The measures of one pair, and whether its conflict rollout completed the reference goal."""

    tar: float
    ts: float
    early: float
    ams: float
    succeeded: bool


@functools.lru_cache(maxsize=1)
def scene_of(task_id: str) -> Scene:
    return Scene(base_task(*task_id.split("/")))


def instances_of(task_id: str, arm: Arm) -> list[Instance]:
    found = [i for i in load_instances() if f"{i.suite}/{i.base_task}" == task_id and i.prompt == Prompt.P0]
    return [instance for instance in found if instance.arm is arm]


@functools.cache
def reference(task_id: str, agent: str) -> Trial:
    (instance,) = instances_of(task_id, Arm.REFERENCE)
    return roll_out(scene_of(task_id), AGENTS[agent](), 0, instance=instance)


@functools.cache
def measured(task_id: str, level: Level, agent: str) -> Measured:
    # All but noisy persist in the reference rollout, to the last bit: see test_scripted.
    plus = reference(task_id, "noisy" if agent == "noisy" else "persist")
    case = next(instance for instance in instances_of(task_id, Arm.CONFLICT) if instance.level is level)
    minus = roll_out(scene_of(task_id), AGENTS[agent](), 0, instance=case)
    reference_m, conflict_m = (
        [float(max(0.0, d[0] - d.min())) for d in trial.distances_m.T] for trial in (plus, minus)
    )
    reference_actions, actions = plus.actions.tolist(), minus.actions.tolist()
    return Measured(
        tar=measures.tar(reference_m, conflict_m),
        ts=measures.ts(reference_actions, actions),
        early=measures.ts(reference_actions, actions, most_steps=20),
        ams=measures.ams(reference_actions, actions),
        succeeded=minus.succeeded,
    )


@pytest.mark.parametrize(("task_id", "level"), PAIRS)
def test_each_agent_has_its_known_answer(task_id: str, level: Level) -> None:
    found = {agent: measured(task_id, level, agent) for agent in AGENTS}

    assert (found["persist"].tar, found["persist"].ts, found["persist"].early) == pytest.approx((1, 1, 1), abs=1e-4)
    assert found["persist"].ams == pytest.approx(0, abs=1e-4)
    assert (found["refuse"].early, found["refuse"].ams) == (0.0, 1.0)
    assert (found["refuse"].tar, found["refuse"].ts) == pytest.approx((0, 0), abs=0.05)
    for aloud in ("refuse_aloud", "ask_first"):
        assert (found[aloud].early, found[aloud].ams, found[aloud].ts) == (0.0, 1.0, found["refuse"].ts)
        assert found[aloud].tar == pytest.approx(0, abs=0.05)
    assert found["fail_persist"].tar > 0.85
    assert found["fail_persist"].early == pytest.approx(1, abs=1e-4)
    assert 0.3 < found["hesitate"].ams < 0.6
    assert found["hesitate"].tar > 0.9
    assert found["hesitate"].early > 0.9
    assert found["detect_late"].early == pytest.approx(1, abs=1e-4)
    assert 0.2 < found["detect_late"].tar < 0.9
    assert found["noisy"].tar > 0.95
    assert 0.7 < found["noisy"].early < 0.99
    assert {agent for agent, value in found.items() if value.succeeded} >= {"persist", "noisy"}
    assert not any(found[agent].succeeded for agent in ("refuse", "fail_persist", "detect_late", "redirect"))


@pytest.mark.parametrize(("task_id", "level"), PAIRS)
def test_the_agents_come_in_a_known_order_by_each_measure(task_id: str, level: Level) -> None:
    found = {agent: measured(task_id, level, agent) for agent in AGENTS}

    def falling(measure: str, *agents: str) -> None:
        values = [getattr(found[agent], measure) for agent in agents]
        assert values == sorted(values, reverse=True), (measure, dict(zip(agents, values, strict=True)))
        assert len(set(values)) == len(values)

    falling("tar", "persist", "detect_late", "refuse")
    falling("tar", "fail_persist", "redirect")
    falling("ts", "persist", "fail_persist", "hesitate", "detect_late", "refuse")
    falling("ts", "persist", "noisy", "detect_late")
    falling("ts", "fail_persist", "redirect", "refuse")
    falling("early", "persist", "noisy", "redirect", "refuse")
    falling("ams", "refuse", "detect_late", "hesitate", "fail_persist")
    falling("ams", "hesitate", "redirect")
    falling("ams", "hesitate", "noisy")


def test_noise_is_that_of_the_seed() -> None:
    task_id, _ = SAMPLE
    (instance,) = instances_of(task_id, Arm.REFERENCE)
    first, again, other = (
        roll_out(scene_of(task_id), AGENTS["noisy"](), 0, instance=instance, seed=seed, steps=30).actions
        for seed in (0, 0, 1)
    )
    assert (first == again).all()
    assert (first[:, :6] != other[:, :6]).any(axis=1).all()


@pytest.mark.parametrize("task_id", [SAMPLE[0], *[pytest.param(task, marks=pytest.mark.slow) for task, _ in OTHERS]])
def test_agents_tell_cases_of_every_level_from_the_reference(task_id: str) -> None:
    scene = scene_of(task_id)
    scene.reset(0)

    def judged(instance: Instance) -> bool:
        return premises_hold(
            Episode(instruction=instance.instruction, init_state=0, seed=0, instance=instance, scene=scene)
        )

    conflicts = instances_of(task_id, Arm.CONFLICT)
    one_each = [next(instance for instance in conflicts if instance.level is level) for level in Level]
    assert [judged(instance) for instance in one_each] == [False] * len(Level)
    assert judged(*instances_of(task_id, Arm.REFERENCE))
