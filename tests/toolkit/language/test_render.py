"""English: the benchmark's own words come back exactly, and what is rendered reads like something one would say."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from conflictvla.builders.tasks_dataset.reading import load_instances
from conflictvla.toolkit.errors import InvalidInputError
from conflictvla.toolkit.language.parsing.libero import parse_base_instruction
from conflictvla.toolkit.language.plan import Demand, Plan, Reference, Relation, Step, Verb
from conflictvla.toolkit.language.plan_json import plan_from_json
from conflictvla.toolkit.language.render import render
from conflictvla.toolkit.language.sentence_forms import IMPERATIVES, SINGLE_WORDINGS
from conflictvla.toolkit.records import Arm, Instance, Prompt

from ..goal_scene import (
    BOTTLE,
    BOWL,
    CABINET,
    CHEESE,
    GOAL_TASKS,
    OPEN_TOP,
    PLATE,
    RACK,
    STOVE,
    TOP_DRAWER,
    TURN_ON,
    claimed,
    demand,
    plan,
    put,
)

CASES = [i for i in load_instances() if i.arm is Arm.CONFLICT and i.prompt == Prompt.P0]
BARE_TOP = Reference(noun="drawer", ordinal="top")
SEAMS = re.compile(r"[A-Z{}_]|  | ,|,,|\.|\b(\w+) \1\b|\ba a\b|^\s|\s$|\bnone\b")


@pytest.mark.parametrize("instruction", [task.instruction for task in GOAL_TASKS])
def test_base_instruction_comes_back_in_the_benchmarks_own_words(instruction: str) -> None:
    assert render(parse_base_instruction(instruction), 0) == instruction


@pytest.mark.parametrize(
    ("rendered", "wording", "expected"),
    [
        (plan(put(BOWL, Relation.ON, CABINET)), 1, "put the bowl on top of the cabinet"),
        (plan(put(BOWL, Relation.IN, TOP_DRAWER)), 0, "put the bowl in the top drawer of the cabinet"),
        (plan(put(BOWL, Relation.IN, TOP_DRAWER)), 1, "put the bowl inside the top drawer of the cabinet"),
        (plan(TURN_ON, put(BOWL, Relation.ON, PLATE)), 1, "turn on the stove and then put the bowl on the plate"),
        (
            plan(TURN_ON, put(BOWL, Relation.ON, PLATE)),
            2,
            "turn on the stove, and after that put the bowl on the plate",
        ),
        (
            plan(put(claimed(BOWL, Relation.BETWEEN, STOVE, RACK), Relation.ON, PLATE)),
            1,
            "put the bowl that is between the stove and the rack on the plate",
        ),
        (
            plan(put(replace(BOWL, adjective="red", count=2), Relation.ON, claimed(PLATE, Relation.ON, STOVE))),
            1,
            "put both red bowls on the plate that is on the stove",
        ),
        (
            plan(put(BOWL, Relation.ON, PLATE, demand(Demand.STAY, BOWL), demand(Demand.EMPTY, PLATE))),
            2,
            "put the bowl on the plate, but keep the bowl exactly where it is and leave the plate empty",
        ),
        (
            plan(put(BOWL, Relation.ON, STOVE, demand(Demand.ONLY_AT, CHEESE, STOVE))),
            1,
            "put the bowl on the stove, but never let anything but the cream cheese be on the stove",
        ),
        (
            plan(put(BOTTLE, Relation.ON, RACK, demand(Demand.ALSO_AT, BOTTLE, STOVE))),
            3,
            "put the wine bottle on the rack and on the stove at the same time",
        ),
        (
            plan(replace(TURN_ON, constraints=(demand(Demand.KEEP_OFF, STOVE),))),
            3,
            "turn on the stove while keeping it switched off",
        ),
        (
            plan(put(BOWL, Relation.IN, TOP_DRAWER, demand(Demand.NOT_OPENED, TOP_DRAWER))),
            4,
            "put the bowl in the top drawer of the cabinet without opening the top drawer",
        ),
    ],
)
def test_plan_reads_like_something_one_would_say(rendered: Plan, wording: int, expected: str) -> None:
    assert render(rendered, wording) == expected


@pytest.mark.parametrize(
    ("reference", "expected"),
    [
        (Reference(noun="bowl", count=1), "the bowl"),
        (Reference(noun="bowl", count=3), "all three bowls"),
        (Reference(noun="bowl", count=7), "all 7 bowls"),
        (Reference(noun="box", count=2), "both boxes"),
        (Reference(noun="knife", count=2), "both knives"),
        (
            Reference(noun="plate", count=2, claims=claimed(PLATE, Relation.ON, CABINET).claims),
            "both plates that are on top of the cabinet",
        ),
        (
            Reference(noun="drawer", ordinal="fourth", of=replace(CABINET, adjective="blue")),
            "the fourth drawer of the blue cabinet",
        ),
    ],
)
def test_noun_phrase_agrees_in_number(reference: Reference, expected: str) -> None:
    assert render(plan(Step(verb=Verb.OPEN, object=reference)), 1) == f"open {expected}"


def test_it_stands_only_where_nothing_else_can_be_meant() -> None:
    closed = demand(Demand.KEEP_CLOSED, TOP_DRAWER)
    bare = demand(Demand.KEEP_CLOSED, BARE_TOP)

    # Of "the top drawer of the cabinet" two entities were named, and beside a destination too.
    assert render(plan(replace(OPEN_TOP, constraints=(closed,))), 3).endswith("while keeping the drawer closed")
    assert render(plan(Step(verb=Verb.OPEN, object=BARE_TOP, constraints=(bare,))), 3).endswith(
        "while keeping it closed"
    )
    assert render(plan(put(BOWL, Relation.ON, PLATE, demand(Demand.STAY, BOWL))), 4).endswith("without moving the bowl")


def test_bare_inside_means_what_was_just_opened() -> None:
    opened = Step(verb=Verb.OPEN, object=BARE_TOP)

    assert render(plan(opened, put(BOWL, Relation.IN, BARE_TOP)), 0) == "open the top drawer and put the bowl inside"


def test_bare_inside_never_follows_a_claim_that_it_could_belong_to() -> None:
    moved = claimed(BOWL, Relation.ON, CABINET)
    opened = Step(verb=Verb.OPEN, object=BARE_TOP)

    assert render(plan(opened, put(moved, Relation.IN, BARE_TOP)), 1).endswith(
        "put the bowl that is on top of the cabinet inside the top drawer"
    )


def test_empty_top_is_said_of_what_has_an_inside_too() -> None:
    step = put(BOWL, Relation.ON, CABINET, demand(Demand.EMPTY, CABINET))

    assert render(plan(step), 4) == "put the bowl on top of the cabinet and leave the top of the cabinet empty"


@pytest.mark.parametrize("wording", range(1, 7))
def test_late_pick_up_cannot_be_heard_of_an_earlier_step(wording: int) -> None:
    late = put(BOWL, Relation.ON, STOVE, demand(Demand.PICK_UP_AFTER, BOWL))
    sentence = render(plan(OPEN_TOP, late), wording)

    assert sentence.endswith(
        ("before picking the bowl up for the first time", "do not pick the bowl up until it is on the stove")
    )


def test_no_demand_can_be_heard_as_one_event_after_the_other() -> None:
    forms = [form for wordings in (*IMPERATIVES.values(), *SINGLE_WORDINGS.values()) for form in wordings]

    assert [form for form in forms if re.search(r"\bends? up\b|\bthat is done\b|\bas well\b", form)] == []


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.case_id)
def test_shipped_instruction_shows_no_template_seams(case: Instance) -> None:
    assert SEAMS.search(case.instruction) is None


def test_same_plan_always_gives_the_same_words() -> None:
    from conflictvla.toolkit.language.wording import wording_of

    for case in CASES:
        assert render(plan_from_json(case.plan), wording_of(case)) == case.instruction


@pytest.mark.parametrize(
    ("instruction", "reason"),
    [
        ("juggle the bowl", "no rule for 'juggle the bowl'"),
        ("put the bowl", "no rule for"),
        ("", "no rule for"),
        ("open the gizmo", "no noun 'gizmo'"),
        ("put the bowl on the moon", "no noun 'moon'"),
    ],
)
def test_instruction_beyond_grammar_or_vocabulary_is_refused(instruction: str, reason: str) -> None:
    with pytest.raises(InvalidInputError, match=reason):
        parse_base_instruction(instruction)
