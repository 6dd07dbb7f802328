"""Hand-written cases with their controls, as a small task release: what tests of the third arm run and score."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from conflictvla.builders.cases.candidates import conflict_level
from conflictvla.builders.cases.case import Candidate, Case, Control, content_hash
from conflictvla.builders.tasks_dataset.writing import write_tasks
from conflictvla.toolkit.language.parsing.libero import parse_base_instruction
from conflictvla.toolkit.language.plan import Claim, Constraint, Demand, Plan, Reference, Relation, Step, Verb
from conflictvla.toolkit.language.plan_json import plan_to_json
from conflictvla.toolkit.language.render import render
from conflictvla.toolkit.language.wording import plan_wording
from conflictvla.toolkit.premises import check, factors
from conflictvla.toolkit.records import Family, Level
from conflictvla.toolkit.simulation.observing.targets import goal_targets

from .toolkit.goal_scene import BOTTLE, BOWL, CABINET, CHEESE, ON, PLATE, RACK, STOVE, goal_task, measured_facts

TEAPOT = Reference(noun="teapot")
BOWL_TASK, BOTTLE_TASK, STOVE_TASK = "put the bowl on the plate", "put the wine bottle on the rack", "turn on the stove"


@dataclass(frozen=True, slots=True, kw_only=True)
class Twin:
    """A conflict and its repair, on the goal suite's task with this instruction."""

    task: str
    family: Family
    conflict: Plan
    control: Plan


def _put(subject: Reference, place: Reference) -> Step:
    return Step(verb=Verb.PUT, object=subject, relation=ON, destination=place)


def _is(subject: Reference, relation: Relation, landmark: Reference) -> Reference:
    return Reference(noun=subject.noun, claims=(Claim(relation=relation, landmarks=(landmark,)),))


def _painted(subject: Reference, colour: str) -> Reference:
    return Reference(noun=subject.noun, adjective=colour)


def _stays(demand: Demand) -> Step:
    return Step(verb=Verb.TURN_ON, object=STOVE, constraints=(Constraint(demand=demand, subject=STOVE),))


def _twin(task: str, family: Family, conflict: Sequence[Step], control: Sequence[Step]) -> Twin:
    return Twin(task=task, family=family, conflict=Plan(steps=tuple(conflict)), control=Plan(steps=tuple(control)))


TWINS = (
    _twin(
        BOWL_TASK,
        Family.GROUNDING,
        [_put(BOWL, _is(PLATE, Relation.NEXT_TO, TEAPOT))],
        [_put(BOWL, _is(PLATE, Relation.NEXT_TO, CABINET))],
    ),
    _twin(
        BOWL_TASK,
        Family.GROUNDING,
        [_put(_painted(BOWL, "red"), PLATE)],
        [_put(_painted(BOWL, "black"), PLATE)],
    ),
    _twin(
        BOWL_TASK,
        Family.SPATIAL,
        [_put(BOTTLE, RACK), _put(BOWL, _is(PLATE, ON, STOVE))],
        [_put(BOTTLE, RACK), _put(BOWL, _is(PLATE, Relation.IN_FRONT_OF, STOVE))],
    ),
    _twin(
        BOTTLE_TASK,
        Family.GROUNDING,
        [_put(BOTTLE, _painted(RACK, "green"))],
        [_put(BOTTLE, _painted(RACK, "red"))],
    ),
    _twin(
        BOTTLE_TASK,
        Family.SPATIAL,
        [_put(_is(BOTTLE, ON, CABINET), RACK)],
        [_put(_is(BOTTLE, Relation.RIGHT_OF, CABINET), RACK)],
    ),
    _twin(
        STOVE_TASK,
        Family.SPATIAL,
        [Step(verb=Verb.TURN_ON, object=_is(STOVE, Relation.IN_FRONT_OF, PLATE))],
        [Step(verb=Verb.TURN_ON, object=_is(STOVE, Relation.BEHIND, PLATE))],
    ),
    _twin(
        STOVE_TASK,
        Family.INSTRUCTION,
        [_put(CHEESE, PLATE), _stays(Demand.KEEP_OFF)],
        [_put(CHEESE, PLATE), _stays(Demand.KEEP_ON)],
    ),
)


@cache
def twins() -> tuple[tuple[Case, ...], tuple[Control, ...]]:
    """The cases, judged in the first initial state, and a control of each."""
    counted: Counter[tuple[str, Family, Level]] = Counter()
    cases, controls = [], []
    for twin in TWINS:
        task, plan = goal_task(twin.task), plan_to_json(twin.conflict)
        violations = check(twin.conflict, measured_facts(twin.task))
        level = conflict_level(len(twin.conflict.steps), violations, twin.family)
        assert level is not None, (twin, violations)
        candidate = Candidate(
            plan=plan,
            instruction=_words(twin.conflict),
            operator="by_hand",
            family=twin.family,
            level=level,
            factors=factors(violations),
        )
        place = (task.task_id, twin.family, level)
        number = f"{counted[place]:02d}-{content_hash(plan, candidate.instruction)}"
        counted[place] += 1
        case_id = f"{task.task_id}/{twin.family}/{level}/{number}"
        base_plan = plan_to_json(parse_base_instruction(task.instruction))
        cases.append(
            Case(case_id=case_id, task=task, base_plan=base_plan, targets=goal_targets(task), candidate=candidate)
        )
        controls.append(Control(case_id=case_id, plan=plan_to_json(twin.control), instruction=_words(twin.control)))
    return tuple(cases), tuple(controls)


def write_twins(folder: Path) -> Path:
    """Write the release; returns its folder."""
    cases, controls = twins()
    write_tasks(cases, folder, controls)
    return folder


def _words(plan: Plan) -> str:
    return render(plan, plan_wording(plan_to_json(plan)))
