"""Physical premises: what no motion can do, and what only seems so."""

from __future__ import annotations

from dataclasses import replace

import pytest

from conflictvla.toolkit.language.plan import Demand, Plan, Relation, Step, Verb
from conflictvla.toolkit.premises import check
from conflictvla.toolkit.records import Family

from ..goal_scene import (
    BOTTLE,
    BOWL,
    CABINET,
    CHEESE,
    ENTITIES,
    IN,
    ON,
    PLATE,
    RACK,
    SCENE,
    STOVE,
    TOP_DRAWER,
    demand,
    only_violation,
    plan,
    put,
)


@pytest.mark.parametrize(
    ("step", "premise", "margin"),
    [
        (put(STOVE, ON, CABINET), "movable(stove)", None),
        (
            Step(verb=Verb.PUSH, object=CABINET, relation=Relation.IN_FRONT_OF, destination=STOVE),
            "movable(cabinet)",
            None,
        ),
        (Step(verb=Verb.OPEN, object=BOWL), "opens(bowl)", None),
        (Step(verb=Verb.CLOSE, object=PLATE), "opens(plate)", None),
        (Step(verb=Verb.TURN_ON, object=RACK), "switches(rack)", None),
        (Step(verb=Verb.TURN_OFF, object=BOTTLE), "switches(wine bottle)", None),
        (put(BOWL, IN, BOTTLE), "opening(wine bottle)", 0.05),  # no opening: the bowl's least side is off
    ],
)
def test_step_that_no_motion_can_do_is_a_physical_conflict(step: Step, premise: str, margin: float | None) -> None:
    violation = only_violation(plan(step))

    assert (violation.family, violation.premise) == (Family.PHYSICAL, premise)
    assert violation.margin == (None if margin is None else pytest.approx(margin))
    assert violation.certain


def test_object_that_looks_as_if_it_could_be_carried_is_no_conflict_though_it_is_fixed() -> None:
    violation = only_violation(plan(put(RACK, ON, STOVE)))

    assert violation.premise == "movable(rack)"
    assert not violation.certain


def test_what_is_shut_and_must_not_be_opened_cannot_be_filled() -> None:
    step = put(BOWL, IN, TOP_DRAWER, demand(Demand.NOT_OPENED, TOP_DRAWER))
    violation = only_violation(plan(step))

    assert (violation.family, violation.premise) == (Family.PHYSICAL, "accessible(drawer(top, cabinet))")
    assert violation.certain
    assert violation.observed == "the top drawer is shut in 2 of 2 initial states, and opening it is ruled out"


@pytest.mark.parametrize("open_states", [1, 2])
def test_drawer_that_is_open_at_the_start_can_be_filled_without_opening_it(open_states: int) -> None:
    """Open everywhere it is no conflict; open in some states it is one that does not hold in all."""
    is_open = SCENE.is_open.copy()
    is_open[:open_states, SCENE.index("drawer_0")] = True
    step = put(BOWL, IN, TOP_DRAWER, demand(Demand.NOT_OPENED, TOP_DRAWER))

    found = check(plan(step), replace(SCENE, is_open=is_open))

    assert [violation.violated for violation in found] == ([] if open_states == 2 else [1])


@pytest.mark.parametrize(
    "checked",
    [
        plan(put(BOWL, IN, TOP_DRAWER)),
        plan(put(BOWL, ON, CABINET, demand(Demand.NOT_OPENED, TOP_DRAWER))),
        plan(
            Step(verb=Verb.OPEN, object=replace(TOP_DRAWER, of=None)),
            put(BOWL, IN, TOP_DRAWER, demand(Demand.NOT_OPENED, TOP_DRAWER)),
        ),
    ],
)
def test_shut_drawer_that_may_be_opened_or_is_not_needed_is_no_conflict(checked: Plan) -> None:
    assert check(checked, SCENE) == ()


def test_fixture_put_into_something_small_violates_two_premises() -> None:
    found = check(plan(put(CABINET, IN, BOWL)), SCENE)

    assert [violation.premise for violation in found] == ["movable(cabinet)", "fits(cabinet, bowl)"]
    assert found[1].margin == pytest.approx(0.22 - 0.09)


def test_two_objects_put_into_one_closed_object_miss_the_same_opening() -> None:
    assert only_violation(plan(put(CHEESE, IN, BOTTLE), put(BOWL, IN, BOTTLE))).premise == "opening(wine bottle)"


@pytest.mark.parametrize(
    "step",
    [
        put(CHEESE, IN, BOWL),
        put(BOTTLE, IN, TOP_DRAWER),
        put(BOWL, IN, CABINET),  # into one of its drawers
        Step(verb=Verb.OPEN, object=CABINET),
        Step(verb=Verb.CLOSE, object=TOP_DRAWER),
        Step(verb=Verb.TURN_OFF, object=STOVE),
        Step(verb=Verb.PUSH, object=PLATE, relation=Relation.IN_FRONT_OF, destination=STOVE),
    ],
)
def test_step_that_can_be_done_gives_no_finding(step: Step) -> None:
    assert check(plan(step), SCENE) == ()


@pytest.mark.parametrize(
    "step",
    [
        pytest.param(Step(verb=Verb.OPEN, object=BOTTLE), id="wine bottles open in daily life"),
        pytest.param(Step(verb=Verb.OPEN, object=STOVE), id="many a stove has an oven door"),
        pytest.param(put(BOTTLE, IN, RACK), id="in the rack may mean on it"),
    ],
)
def test_step_with_another_meaning_is_unclear_and_never_a_factor(step: Step) -> None:
    assert (only_violation(plan(step)).violated, only_violation(plan(step)).unclear) == (0, 2)


def test_object_that_is_barely_too_large_is_unclear() -> None:
    larger = replace(ENTITIES[1], size_m=(0.095, 0.095, 0.02))  # into 9 cm: 5 mm too much, within the margin of 1 cm
    facts = replace(SCENE, entities=(ENTITIES[0], larger, *ENTITIES[2:]))

    violation = only_violation(plan(put(CHEESE, IN, BOWL)), facts)

    assert (violation.violated, violation.unclear) == (0, 2)
    assert violation.margin == pytest.approx(0.005)
