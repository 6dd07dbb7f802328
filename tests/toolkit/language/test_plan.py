"""Plans survive JSON, and refuse what makes no sense."""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from typing import Any, get_args, get_origin, get_type_hints

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conflictvla.toolkit.errors import InvalidInputError
from conflictvla.toolkit.language.plan import Claim, Constraint, Demand, Plan, Reference, Relation, Step, Verb
from conflictvla.toolkit.language.plan_json import plan_from_json, plan_to_json

from ..goal_scene import BOWL, CABINET, PLATE, STOVE, TOP_DRAWER, claimed, demand, plan, put

PLACED_DEMANDS = (Demand.ALSO_AT, Demand.NOT_AT, Demand.ONLY_AT)
WORDS = st.sampled_from(["bowl", "plate", "wine bottle", "café table", 'a "quoted" thing', "\\"])


def _claims(references: st.SearchStrategy[Reference]) -> st.SearchStrategy[tuple[Claim, ...]]:
    one = st.builds(
        lambda relation, mark: Claim(relation=relation, landmarks=(mark,)),
        st.sampled_from([relation for relation in Relation if relation is not Relation.BETWEEN]),
        references,
    )
    between = st.builds(
        lambda first, second: Claim(relation=Relation.BETWEEN, landmarks=(first, second)), references, references
    )
    return st.lists(one | between, max_size=2).map(tuple)


REFERENCES = st.recursive(
    st.builds(Reference, noun=WORDS),
    lambda inner: st.builds(
        Reference,
        noun=WORDS,
        adjective=st.none() | WORDS,
        ordinal=st.none() | WORDS,
        of=st.none() | inner,
        count=st.none() | st.integers(min_value=0, max_value=9),
        claims=_claims(inner),
    ),
    max_leaves=6,
)
CONSTRAINTS = st.builds(
    Constraint, demand=st.sampled_from([d for d in Demand if d not in PLACED_DEMANDS]), subject=REFERENCES
) | st.builds(
    Constraint,
    demand=st.sampled_from(PLACED_DEMANDS),
    subject=REFERENCES,
    relation=st.sampled_from(list(Relation)),
    landmark=REFERENCES,
)
MOVES = (Verb.PUT, Verb.PLACE, Verb.PUSH)
STEPS = st.builds(
    Step,
    verb=st.sampled_from(MOVES),
    object=REFERENCES,
    relation=st.sampled_from(list(Relation)),
    destination=REFERENCES,
    constraints=st.lists(CONSTRAINTS, max_size=2).map(tuple),
) | st.builds(
    Step,
    verb=st.sampled_from([verb for verb in Verb if verb not in MOVES]),
    object=REFERENCES,
    constraints=st.lists(CONSTRAINTS, max_size=2).map(tuple),
)
PLANS = st.builds(Plan, steps=st.lists(STEPS, min_size=1, max_size=3).map(tuple))


@given(PLANS)
def test_any_plan_survives_json(drawn: Plan) -> None:
    text = plan_to_json(drawn)

    assert plan_from_json(text) == drawn
    assert plan_to_json(plan_from_json(text)) == text


def test_json_is_compact_sorted_and_leaves_out_what_is_absent() -> None:
    assert plan_to_json(plan(put(BOWL, Relation.ON, PLATE))) == (
        '{"steps":[{"destination":{"noun":"plate"},"object":{"noun":"bowl"},"relation":"on","verb":"put"}]}'
    )


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "null",
        "{}",
        '{"steps":[]}',
        '{"steps":[{"verb":"juggle","object":{"noun":"bowl"}}]}',
        '{"steps":[{"verb":"open"}]}',
        '{"steps":[{"verb":"open","object":{"adjective":"red"}}]}',
        '{"steps":[{"verb":"put","object":{"noun":"bowl"}}]}',
        '{"steps":[{"verb":"open","object":"bowl"}]}',
        '{"steps":[{"verb":"open","object":{"noun":7}}]}',
        '{"steps":[{"verb":"open","object":{"noun":["drawer"]}}]}',
        '{"steps":[{"verb":"open","object":{"noun":"drawer","count":true}}]}',
        '{"steps":[{"verb":"open","object":{"noun":"drawer","claims":{"relation":"on"}}}]}',
        '{"steps":[{"verb":"open","object":{"noun":"drawer","colour":"red"}}]}',
        '{"steps":{"verb":"open"}}',
        '{"steps":[{"verb":["open"],"object":{"noun":"drawer"}}]}',
        '{"steps":' + "[" * 100_000,
    ],
    ids=lambda text: text[:60],
)
def test_text_that_is_no_plan_is_refused_in_one_line(text: str) -> None:
    with pytest.raises(InvalidInputError, match="not a plan") as error:
        plan_from_json(text)

    assert "\n" not in str(error.value)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-2, 2) | st.floats(allow_nan=False) | WORDS | st.just(""),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(WORDS | st.just("noun"), inner, max_size=2),
    max_leaves=4,
)


def _places(value: Any, at: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    """Ways to everything inside a JSON value."""
    yield at
    for key, inner in value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ():
        yield from _places(inner, (*at, key))


def _with(value: Any, at: tuple[str | int, ...], other: Any) -> Any:
    if not at:
        return other
    changed = copy.copy(value)
    changed[at[0]] = _with(value[at[0]], at[1:], other)
    return changed


def _is_typed(value: object) -> bool:
    """Whether every field of a plan holds what its annotation says."""
    if not is_dataclass(value):
        return False
    hints = get_type_hints(type(value))
    for field in fields(value):
        found, hint = getattr(value, field.name), hints[field.name]
        items = found if get_origin(hint) is tuple else (found,)
        kinds = get_args(hint)[:1] if get_origin(hint) is tuple else get_args(hint) or (hint,)
        if not isinstance(items, tuple) or any(type(item) not in kinds for item in items):
            return False
        if not all(_is_typed(item) for item in items if is_dataclass(item)):
            return False
    return True


@given(PLANS, JSON, st.data())
def test_a_plan_with_any_part_replaced_is_refused_or_a_plan(drawn: Plan, other: Any, data: st.DataObject) -> None:
    content = json.loads(plan_to_json(drawn))
    text = json.dumps(_with(content, data.draw(st.sampled_from(list(_places(content)))), other))
    try:
        read = plan_from_json(text)
    except InvalidInputError:
        return
    assert _is_typed(read)
    assert plan_from_json(plan_to_json(read)) == read


@given(st.text() | JSON.map(json.dumps))
def test_any_text_is_refused_in_one_line(text: str) -> None:
    with pytest.raises(InvalidInputError, match=r"^not a plan") as error:
        plan_from_json(text)
    assert len(str(error.value).splitlines()) == 1


@pytest.mark.parametrize(("relation", "count"), [(Relation.ON, 0), (Relation.ON, 2), (Relation.BETWEEN, 1)])
def test_claim_with_a_wrong_number_of_landmarks_is_refused(relation: Relation, count: int) -> None:
    wanted = "2 landmarks" if relation is Relation.BETWEEN else "1 landmark"

    with pytest.raises(InvalidInputError, match=f"'{relation}' takes {wanted}, got {count}"):
        Claim(relation=relation, landmarks=(PLATE,) * count)


@pytest.mark.parametrize("kind", list(Demand))
def test_demand_has_a_place_exactly_where_it_needs_one(kind: Demand) -> None:
    needs = kind in PLACED_DEMANDS
    wrong = None if needs else PLATE

    assert demand(kind, BOWL, PLATE if needs else None).demand is kind
    with pytest.raises(InvalidInputError, match=re.escape(f"'{kind}' {'needs' if needs else 'takes no'} relation")):
        demand(kind, BOWL, wrong)


@pytest.mark.parametrize("verb", list(Verb))
def test_step_has_a_destination_exactly_where_it_moves_something(verb: Verb) -> None:
    moves = verb in MOVES

    with pytest.raises(InvalidInputError, match=f"'{verb}' {'needs' if moves else 'takes no'} relation"):
        Step(verb=verb, object=BOWL, relation=None if moves else Relation.ON, destination=None if moves else PLATE)


def test_plan_without_steps_is_refused() -> None:
    with pytest.raises(InvalidInputError, match="at least one step"):
        Plan(steps=())


def test_references_come_in_the_order_of_mention_each_before_its_parts() -> None:
    bowl = claimed(BOWL, Relation.BETWEEN, STOVE, TOP_DRAWER)
    step = put(bowl, Relation.ON, PLATE, demand(Demand.ALSO_AT, BOWL, CABINET))

    nouns = [reference.noun for reference in plan(step).references()]
    assert nouns == ["bowl", "stove", "drawer", "cabinet", "plate", "bowl", "cabinet"]


def test_bare_reference_is_the_same_for_two_mentions_of_one_object() -> None:
    assert claimed(BOWL, Relation.ON, STOVE).bare == BOWL
