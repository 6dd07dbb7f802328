"""Undoing a conflict at its factors makes every shipped case valid; undoing one of them leaves exactly the others.

A factor of words is undone in the words: the constraint, claim, colour or count is dropped, the absent thing replaced.
A physical factor is undone in a world where that one thing can be moved, entered, opened or switched, and all of them
in words as well, by the base task's own step.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import replace

import pytest

from conflictvla.builders.tasks_dataset import load_instances
from conflictvla.toolkit.facts import Entity, SceneFacts
from conflictvla.toolkit.plan import Claim, Constraint, Plan, Reference, Relation, Step, Verb
from conflictvla.toolkit.premises import check
from conflictvla.toolkit.premises.grounding import candidates, phrase
from conflictvla.toolkit.premises.instruction import _demand
from conflictvla.toolkit.premises.spatial import claim_premise
from conflictvla.toolkit.records import Arm, Factor, Family, Instance, Prompt
from conflictvla.toolkit.vocabulary import load_vocabulary

from .goal_scene import (
    BOTTLE,
    BOWL,
    CABINET,
    CHEESE,
    GOAL_TASKS,
    PLATE,
    RACK,
    STOVE,
    TOP_DRAWER,
    measured_facts,
    plan,
    put,
)

WORDS = load_vocabulary()
INSTANCES = load_instances()
BASE_PLANS = {i.base_task: Plan.from_json(i.plan) for i in INSTANCES if i.arm is Arm.REFERENCE}
CASES = [i for i in INSTANCES if i.arm is Arm.CONFLICT and i.prompt is Prompt.P0]
SPARE = (CHEESE, BOTTLE, PLATE, BOWL)


def undo(conflict: Plan, factor: Factor, base: Plan) -> Plan:
    """The plan without what makes the factor's premise false."""
    match factor.family:
        case Family.INSTRUCTION:
            return _without_constraint(conflict, factor.premise)
        case Family.GROUNDING:
            return _grounded(conflict, factor.premise, base)
        case Family.SPATIAL:
            return _mapped(conflict, lambda reference: _without_claim(reference, factor.premise))
        case Family.PHYSICAL:
            return _feasible(conflict, factor.premise, base)


def undo_in_the_world(facts: SceneFacts, factor: Factor) -> SceneFacts:
    """The facts of a world where one physical premise holds."""
    kind, _, arguments = factor.premise.removesuffix(")").partition("(")
    changes: dict[str, dict[str, object]] = {
        "movable": {"movable": True},
        "opens": {"opens": True},
        "switches": {"switches": True},
        "opening": {"opening_m": (9.0, 9.0)},
        "fits": {"opening_m": (9.0, 9.0)},
    }
    changed = arguments.partition(", ")[2] if kind == "fits" else arguments

    def edited(index: int, entity: Entity) -> Entity:
        named = [index in candidates(reference, facts, WORDS) for reference in _spoken(changed)]
        return replace(entity, **changes[kind]) if any(named) else entity  # type: ignore[arg-type]

    return replace(facts, entities=tuple(edited(index, entity) for index, entity in enumerate(facts.entities)))


def _spoken(said: str) -> list[Reference]:
    """References that are written like this in functional notation."""
    drawers = [Reference(noun="drawer", ordinal=ordinal, of=CABINET) for ordinal in ("top", "middle", "bottom")]
    return [
        reference
        for reference in (BOWL, PLATE, CHEESE, BOTTLE, CABINET, STOVE, RACK, *drawers)
        if phrase(reference) == said
    ]


def _without_constraint(conflict: Plan, premise: str) -> Plan:
    def dropped(constraint: Constraint) -> bool:
        return premise.endswith(f", {_demand(constraint)})")

    return Plan(
        steps=tuple(
            replace(step, constraints=tuple(c for c in step.constraints if not dropped(c))) for step in conflict.steps
        )
    )


def _mapped(conflict: Plan, edit: Callable[[Reference], Reference]) -> Plan:
    """The plan with every reference edited, wholes too."""

    def mapped(reference: Reference) -> Reference:
        of = None if reference.of is None else mapped(reference.of)
        return edit(replace(reference, of=of))

    return Plan(
        steps=tuple(
            replace(
                step,
                object=mapped(step.object),
                destination=None if step.destination is None else mapped(step.destination),
            )
            for step in conflict.steps
        )
    )


def _without_claim(reference: Reference, premise: str) -> Reference:
    def dropped(claim: Claim) -> bool:
        return claim_premise(reference, claim) == premise

    return replace(reference, claims=tuple(claim for claim in reference.claims if not dropped(claim)))


def _grounded(conflict: Plan, premise: str, base: Plan) -> Plan:
    kind, _, arguments = premise.removesuffix(")").partition("(")
    noun, _, detail = arguments.partition(", ")
    if kind == "colour":
        return _mapped(conflict, lambda r: replace(r, adjective=None) if (r.noun, r.adjective) == (noun, detail) else r)
    if kind == "count":
        return _mapped(conflict, lambda r: replace(r, count=None) if (r.noun, str(r.count)) == (noun, detail) else r)
    assert kind == "exists"
    if noun.startswith("drawer("):
        return _mapped(conflict, lambda r: replace(r, ordinal="top") if phrase(r) == arguments else r)
    return Plan(
        steps=tuple(
            _with_present(step, noun, base, last=step is conflict.steps[-1], conflict=conflict)
            for step in conflict.steps
        )
    )


def _with_present(step: Step, absent: str, base: Plan, *, last: bool, conflict: Plan) -> Step:
    """The step with the base task's own thing, or another of the scene's, for the absent one."""
    own = base.steps[-1] if last else (base.steps[0] if len(base.steps) > 1 else None)
    if step.object.of is not None and step.object.of.noun == absent:
        return replace(step, object=replace(step.object, of=CABINET))
    if step.object.noun == absent:
        usual = {Verb.OPEN: TOP_DRAWER, Verb.TURN_ON: STOVE}.get(step.verb) or _spare(conflict)
        return replace(step, object=own.object if own and own.verb is step.verb else usual)
    if step.destination is not None and step.destination.noun == absent:
        usual = BOWL if step.relation is Relation.IN and step.object.noun != "bowl" else STOVE
        same = own is not None and own.relation is step.relation
        return replace(step, destination=own.destination if own and same else usual)
    return step


def _spare(conflict: Plan) -> Reference:
    """Something movable that the plan does not mention."""
    mentioned = {reference.noun for reference in conflict.references()}
    return next(thing for thing in SPARE if thing.noun not in mentioned)


def _feasible(conflict: Plan, premise: str, base: Plan) -> Plan:
    """The plan with a valid step, the base task's own where it is the last one, for the one that cannot be done."""
    steps = []
    for index, step in enumerate(conflict.steps):
        place = "" if step.destination is None else phrase(step.destination)
        kind, _, about = premise.removesuffix(")").partition("(")
        if about != {"fits": f"{phrase(step.object)}, {place}", "opening": place}.get(kind, phrase(step.object)):
            steps.append(step)
        elif step is conflict.steps[-1] or len(base.steps) > 1:
            steps.append(base.steps[index] if len(base.steps) > 1 else base.steps[-1])
        else:
            steps.append(put(_spare(base), Relation.ON, STOVE))
    return Plan(steps=tuple(steps))


def _premise_kinds(facts: SceneFacts, checked: Plan) -> list[str]:
    return sorted(finding.premise.partition("(")[0] for finding in check(checked, facts))


def _cases_of(task: str) -> list[Instance]:
    return [case for case in CASES if case.base_task == task]


@pytest.mark.parametrize("task", GOAL_TASKS, ids=lambda task: task.name)
def test_case_without_its_factors_is_valid(task) -> None:
    facts = measured_facts(task.instruction)
    still_wrong = {}
    for case in _cases_of(task.name):
        undone = Plan.from_json(case.plan)
        for factor in sorted(case.factors, key=lambda f: not f.premise.startswith("colour")):
            # A drawer of the pink cabinet is, once the colour is undone, a drawer of the cabinet.
            premise = factor.premise if factor.premise.startswith("colour") else _as_said_now(factor, undone, facts)
            undone = undo(undone, replace(factor, premise=premise), BASE_PLANS[task.name])
        if check(undone, facts):
            still_wrong[case.instruction] = [finding.premise for finding in check(undone, facts)]

    assert _cases_of(task.name)
    assert still_wrong == {}


def _as_said_now(factor: Factor, undone: Plan, facts: SceneFacts) -> str:
    kind = factor.premise.partition("(")[0]
    now = [finding.premise for finding in check(undone, facts) if finding.premise.partition("(")[0] == kind]
    return factor.premise if factor.premise in now or not now else now[0]


@pytest.mark.parametrize("task", GOAL_TASKS, ids=lambda task: task.name)
def test_case_without_one_of_its_factors_keeps_exactly_the_others(task) -> None:
    facts = measured_facts(task.instruction)
    other = {}
    for case, factor in itertools.chain.from_iterable([(c, f) for f in c.factors] for c in _cases_of(task.name)):
        conflict = Plan.from_json(case.plan)
        if factor.family is Family.PHYSICAL:
            found = _premise_kinds(undo_in_the_world(facts, factor), conflict)
        else:
            found = _premise_kinds(facts, undo(conflict, factor, BASE_PLANS[task.name]))
        expected = sorted(f.premise.partition("(")[0] for f in case.factors if f is not factor)
        if found != expected:
            other[f"{case.instruction} without {factor.premise}"] = found

    assert other == {}


def test_undoing_another_premise_changes_nothing() -> None:
    conflict = plan(put(Reference(noun="bowl", adjective="purple"), Relation.ON, PLATE))
    unrelated = Factor(family=Family.GROUNDING, premise="colour(bowl, blue)", expected="", observed="")

    assert undo(conflict, unrelated, BASE_PLANS["put_the_bowl_on_the_plate"]) == conflict
