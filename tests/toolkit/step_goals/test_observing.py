"""Step goals found in recorded states: LIBERO's own predicates to the step, ours by the premise checker's facts."""

from __future__ import annotations

import functools
from dataclasses import dataclass

import numpy as np
import pytest

from conflictvla.eval.policies.scripted.goals import handle_another, pursue
from conflictvla.eval.policies.scripted.motion import Motion
from conflictvla.toolkit.arrays import FloatArray
from conflictvla.toolkit.facts import SceneFacts
from conflictvla.toolkit.language.parsing.libero import parse_base_instruction
from conflictvla.toolkit.language.plan_json import plan_to_json
from conflictvla.toolkit.libero.base_tasks import base_tasks
from conflictvla.toolkit.premises.spatial import NEXT_TO_M
from conflictvla.toolkit.records import BaseTask
from conflictvla.toolkit.simulation.observing.scene_entities import ObservedStates
from conflictvla.toolkit.simulation.observing.scene_facts import observe_facts
from conflictvla.toolkit.simulation.observing.scene_parts import scene_parts
from conflictvla.toolkit.simulation.scene import Scene
from conflictvla.toolkit.step_goals.goals import GoalPredicate, StepGoal
from conflictvla.toolkit.step_goals.meter import StepGoalMeter
from conflictvla.toolkit.step_goals.observing import GoalObserver

TASKS = base_tasks()
SAMPLE = (3, 23, 30, 33, 36, 38, 39)
"""Onto a plate; a drawer opened and filled; a basket; a drawer shut; beside a plate; two on a stove; a microwave."""

EVERY = 10
"""Every so many states the facts of the premise checker are measured, which takes longer than a step."""


def tasks() -> list[object]:
    return [
        pytest.param(task, id=task.name, marks=() if index in SAMPLE else pytest.mark.slow)
        for index, task in enumerate(TASKS)
    ]


@functools.lru_cache(maxsize=1)
def scene_of(task: BaseTask) -> Scene:
    return Scene(task)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Seen:
    """States of a motion in a scene, with LIBERO's own answers in each and the checker's facts in some."""

    states: FloatArray
    observed: ObservedStates
    answers: dict[tuple[str, ...], list[bool]]
    facts: dict[int, SceneFacts]


def see(scene: Scene, motion: Motion, predicates: tuple[tuple[str, ...], ...], *, with_facts: bool = False) -> Seen:
    """Let a motion go on until the goal is reached, for 400 steps at most."""
    parts = scene_parts(scene, hollows=False)
    answers: dict[tuple[str, ...], list[bool]] = {predicate: [] for predicate in predicates}
    states, contacts, places, turns, facts = [], [], [], [], {}
    for step in range(401):
        states.append(scene.physics())
        contacts.append(scene.data.contact.geom.copy())
        places.append(scene.data.xpos.copy())
        turns.append(scene.data.xquat.copy())
        for predicate in predicates:
            answers[predicate].append(scene.holds(predicate))
        if with_facts and step % EVERY == 0:
            facts[step] = observe_facts(scene, 0, parts)
        if scene.succeeded():
            break
        scene.step(next(motion))
    observed = ObservedStates(contacts=contacts, body_pos_m=np.array(places), body_quat_wxyz=np.array(turns))
    return Seen(states=np.array(states), observed=observed, answers=answers, facts=facts)


def goal_of(predicate: tuple[str, ...]) -> StepGoal:
    return StepGoal(predicate=GoalPredicate(predicate[0]), subjects=predicate[1:2], places=predicate[2:])


@pytest.mark.parametrize("task", tasks())
def test_the_goals_of_a_base_task_hold_where_libero_says_so_and_are_met_at_success(task: BaseTask) -> None:
    scene = scene_of(task)
    scene.reset(0)
    plan = plan_to_json(parse_base_instruction(task.instruction))
    meter = StepGoalMeter(scene, 0, plan)
    seen = see(scene, pursue(scene), task.goal)
    assert scene.succeeded()

    observer = GoalObserver(scene, scene_parts(scene, hollows=False), observe_facts(scene, 0), {})
    for predicate, answers in seen.answers.items():
        assert observer.holds(goal_of(predicate), seen.states, seen.observed).tolist() == answers, predicate
    met = meter.finish(seen.states, seen.observed)
    assert met is not None
    assert "" not in met.goals
    assert min(met.met) >= 0
    # The last part of the goal is named by the instruction, and no other is undone before.
    assert max(met.met) == len(seen.states) - 1


@pytest.mark.parametrize("index", [23, 32])
def test_states_of_joints_are_liberos_and_asking_lights_no_flame(index: int) -> None:
    scene = scene_of(TASKS[index])
    scene.reset(0)
    things = [name for name in scene.libero.fixtures_dict if "stove" in name or "cabinet" in name]
    regions = [name for name, site in scene.libero.object_sites_dict.items() if site.joints]
    stoves = [name for name in things if "stove" in name]
    predicates = tuple((word, name) for word in ("open", "close") for name in (*regions, *set(things) - set(stoves)))
    predicates += tuple((word, name) for word in ("turnon", "turnoff") for name in stoves)
    seen = see(scene, pursue(scene), predicates)
    assert any(len(set(answers)) == 2 for answers in seen.answers.values())

    observer = GoalObserver(scene, scene_parts(scene, hollows=False), observe_facts(scene, 0), {})
    flame = [dict(scene.libero.get_object(name).object_properties["vis_site_names"]) for name in stoves]
    for predicate, answers in seen.answers.items():
        shown = observer.holds(goal_of(predicate), seen.states[:-1], seen.observed).tolist()
        assert shown == answers[:-1], predicate
    assert flame == [dict(scene.libero.get_object(name).object_properties["vis_site_names"]) for name in stoves]


def test_what_rests_on_a_place_and_what_lies_next_to_it_is_what_the_checker_would_say() -> None:
    """A bowl that is taken up from the table and put onto the plate, looked at beside all that stands there."""
    scene = scene_of(next(task for task in TASKS if task.name == "put_the_bowl_on_the_plate"))
    scene.reset(0)
    seen = see(scene, pursue(scene), (), with_facts=True)
    facts = seen.facts[0]
    observer = GoalObserver(scene, scene_parts(scene, hollows=False), facts, {})
    bowl = facts.index("akita_black_bowl_1")
    compared = list(seen.facts)
    for place in ("plate_1", "main_table", "flat_stove_1", "wooden_cabinet_1", "cream_cheese_1"):
        other = facts.index(place)
        rests, beside = (
            observer.holds(
                StepGoal(predicate=predicate, subjects=("akita_black_bowl_1",), places=(place,)),
                seen.states,
                seen.observed,
            )[compared]
            for predicate in (GoalPredicate.RESTS_ON, GoalPredicate.NEXT_TO)
        )
        assert rests.tolist() == [bool(found.on[0, bowl, other]) for found in seen.facts.values()]
        near = [bool(found.horizontal_gap_m(bowl, other)[0] <= NEXT_TO_M) for found in seen.facts.values()]
        assert not np.any(beside & ~np.array(near))
    # Carried over the plate it is near, but not yet next to it.
    height_m = seen.observed.body_pos_m[:, scene.libero.obj_body_id["akita_black_bowl_1"], 2]
    lifted = height_m > height_m[0] + 0.03
    assert lifted.any()
    goal = StepGoal(predicate=GoalPredicate.NEXT_TO, subjects=("akita_black_bowl_1",), places=("plate_1",))
    assert not observer.holds(goal, seen.states, seen.observed)[lifted].any()


def test_any_of_several_subjects_will_do_and_a_number_of_them_is_needed_at_once() -> None:
    scene = scene_of(TASKS[38])
    scene.reset(0)
    seen = see(scene, pursue(scene), TASKS[38].goal)
    observer = GoalObserver(scene, scene_parts(scene, hollows=False), observe_facts(scene, 0), {})
    pots, place = ("moka_pot_1", "moka_pot_2"), ("flat_stove_1_cook_region",)
    one, both = (StepGoal(predicate=GoalPredicate.ON, subjects=pots, places=place, count=count) for count in (1, 2))
    (first,) = observer.first_met([one], seen.states, seen.observed)
    (second,) = observer.first_met([both], seen.states, seen.observed)
    assert 0 < first < second == len(seen.states) - 1


def test_a_fixture_was_not_brought_to_where_it_stands() -> None:
    scene = scene_of(TASKS[23])
    scene.reset(0)
    seen = see(scene, handle_another(scene), ())
    observer = GoalObserver(scene, scene_parts(scene, hollows=False), observe_facts(scene, 0), {})
    goal = StepGoal(predicate=GoalPredicate.NEXT_TO, subjects=("flat_stove_1",), places=("wooden_cabinet_1",))
    assert not observer.holds(goal, seen.states, seen.observed).any()


def test_looking_at_goals_leaves_the_scene_to_the_last_bit() -> None:
    scene = scene_of(TASKS[23])
    scene.reset(1)
    before = scene.state().sha256()
    plan = plan_to_json(parse_base_instruction(TASKS[23].instruction))
    meter = StepGoalMeter(scene, 1, plan)
    seen = see(scene, pursue(scene), ())
    after = scene.state().sha256()
    meter.finish(seen.states, seen.observed)
    assert scene.state().sha256() == after
    scene.reset(1)
    assert scene.state().sha256() == before


def test_a_plan_that_makes_no_sense_has_no_goals_and_stops_no_rollout() -> None:
    scene = scene_of(TASKS[23])
    scene.reset(0)
    seen = see(scene, iter([np.zeros(7)] * 401), ())
    assert StepGoalMeter(scene, 0, "{}").finish(seen.states, seen.observed) is None
