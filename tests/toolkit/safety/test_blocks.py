"""Constrained BDDL: read, printed, read again; errors name the line; LIBERO's parser ignores both blocks."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from conflictvla.toolkit.errors import InvalidInputError
from conflictvla.toolkit.libero.base_tasks import base_tasks, bddl_path, task_constraints
from conflictvla.toolkit.libero.install import quiet
from conflictvla.toolkit.safety import (
    Combination,
    Constraints,
    CostSpec,
    Predicate,
    print_constraints,
    read_constraints,
)
from conflictvla.toolkit.safety.conditions import SIGNATURES
from conflictvla.toolkit.safety.motions import (
    CircularMotion,
    LinearMotion,
    MovingObject,
    ProjectileMotion,
    WaypointMotion,
)

PAPER = """
(:moving_objects
  (toy_motorbike_1
    (:motion_type linear)
    (:motion_period 125)      ; Full cycle in 125 steps
    (:motion_travel_dist 0.7) ; Travel 0.7 meters
    (:motion_direction (0 1 0))))
(:cost (InContact apple_1 stove_1)
       (InContactPart knife_1 plate_1 (0 3) (0))
       (CheckForce gripper0 apple_1 8.0))
"""


def test_the_papers_examples_are_read() -> None:
    found = read_constraints(PAPER, "paper")
    (motorbike,) = found.moving
    assert motorbike == MovingObject(
        name="toy_motorbike_1", motion=LinearMotion(period=125.0, travel_m=0.7, direction=(0.0, 1.0, 0.0))
    )
    assert found.cost is not None
    assert found.cost.instantaneous == (
        Predicate(name="InContact", entities=("apple_1", "stove_1")),
        Predicate(name="InContactPart", entities=("knife_1", "plate_1"), parts=((0, 3), (0,))),
        Predicate(name="CheckForce", entities=("gripper0", "apple_1"), limit=8.0),
    )
    assert found.cost.terminal == ()


def test_a_condition_outside_a_group_is_asked_when_its_predicate_says() -> None:
    text = "(:cost (:alpha 5) (moved plate_1) (not (incontact a b)) (:terminal (Not (InContact butter_1 bowl_1))))"
    cost = read_constraints(text, "here").cost
    assert cost is not None
    assert cost.alpha == 5.0
    contact = Predicate(name="InContact", entities=("a", "b"))
    assert cost.instantaneous == (Combination(operator="Not", conditions=(contact,)),)
    in_bowl = Predicate(name="InContact", entities=("butter_1", "bowl_1"))
    assert cost.terminal == (
        Predicate(name="Moved", entities=("plate_1",), limit=0.02),
        Combination(operator="Not", conditions=(in_bowl,)),
    )


numbers = st.floats(0.0, 1e6, allow_nan=False).map(abs)
names = st.from_regex(r"[a-z][a-z0-9_]{0,12}", fullmatch=True)
vectors = st.tuples(*[st.floats(-1e3, 1e3).map(lambda x: x + 0.0)] * 3).filter(any)


@st.composite
def predicates(draw: st.DrawFn, *, terminal: bool) -> Predicate:
    known = [name for name in SIGNATURES if not (terminal and name == "CheckForce")]
    name = draw(st.sampled_from(known))
    signature = SIGNATURES[name]
    parts = st.lists(st.integers(0, 99), min_size=1, max_size=3).map(tuple)
    return Predicate(
        name=name,
        entities=tuple(draw(names) for _ in range(signature.entities)),
        parts=tuple(draw(parts) for _ in range(signature.entities)) if signature.parts else (),
        limit=None if signature.limit is None else draw(numbers),
    )


def conditions(*, terminal: bool) -> st.SearchStrategy[Predicate | Combination]:
    def joined(inner: st.SearchStrategy[Predicate | Combination]) -> st.SearchStrategy[Combination]:
        several = st.lists(inner, min_size=1, max_size=3).map(tuple)
        either = st.builds(Combination, operator=st.sampled_from(["And", "Or"]), conditions=several)
        return either | st.builds(Combination, operator=st.just("Not"), conditions=st.tuples(inner))

    return st.recursive(predicates(terminal=terminal), joined, max_leaves=4)


groups = [st.lists(conditions(terminal=end), max_size=3, unique=True).map(tuple) for end in (False, True)]
costs = st.builds(CostSpec, instantaneous=groups[0], terminal=groups[1], alpha=numbers)
periods = st.floats(2.0, 1e4)
motions = st.one_of(
    st.builds(LinearMotion, period=periods, travel_m=numbers, direction=vectors),
    st.builds(CircularMotion, period=periods, centre_m=vectors),
    st.builds(
        WaypointMotion,
        period=periods,
        waypoints=st.lists(st.tuples(vectors, vectors), min_size=1, max_size=3).map(tuple),
    ),
    st.builds(ProjectileMotion, speed_m_s=numbers, direction=vectors, gravity_m_s2=numbers, floor_m=numbers),
)
moving = st.dictionaries(names, motions, max_size=3).map(
    lambda found: tuple(MovingObject(name=name, motion=motion) for name, motion in found.items())
)


@settings(max_examples=60)
@given(st.builds(Constraints, cost=st.none() | costs, moving=moving))
def test_what_is_printed_is_read_back_as_it_was(constraints: Constraints) -> None:
    text = print_constraints(constraints)
    again = read_constraints(text, "printed")
    assert again == constraints
    assert print_constraints(again) == text


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("(:cost\n (InContact a b)", "line 1: '(' is never closed"),
        ("(:cost (InContact a b)))", "line 1: ')' closes nothing"),
        ("(:cost\n\n (InContct a b))", "line 3: no predicate 'incontct': did you mean 'InContact'?"),
        ("(:cost (InContact a))", "line 1: write (InContact ENTITY ENTITY)"),
        ("(:cost\n (CheckForce a b))", "line 2: write (CheckForce ENTITY ENTITY FORCE_IN_N)"),
        ("(:cost (CheckForce a b\n much))", "line 2: 'much' is no number of at least 0"),
        ("(:cost (CheckDistance a b -0.1))", "'-0.1' is no number of at least 0"),
        ("(:cost (InContactPart a b (0 x) (1)))", "'(0 x)' is no list of part numbers"),
        ("(:cost (:terminl (Moved a)))", "no part ':terminl' of a cost: did you mean ':terminal'?"),
        ("(:cost (:terminal (CheckForce a b 3)))", "CheckForce is of the time between two states"),
        ("(:cost (Not (Moved a) (Moved b)))", "Not joins one condition"),
        ("(:cost (:alpha -1))", "'-1' is no number of at least 0"),
        ("(:cost)\n(:cost)", "line 2: a second (:cost ...)"),
        ("(:moving_objects (a (:motion_type linaer)))", "no motion 'linaer': did you mean 'linear'?"),
        ("(:moving_objects\n (a (:motion_period 3)))", "line 2: 'a' has no (:motion_type ...)"),
        ("(:moving_objects (a (:motion_type circular) (:motion_period 9)))", "of 'a' lacks (:motion_center ...)"),
        (
            "(:moving_objects (a (:motion_type circular) (:motion_gravity 9)))",
            "a circular motion has no :motion_gravity",
        ),
        ("(:moving_objects (a (:motion_type circular) (:motion_period 1)))", "'1' is no number of at least 2"),
        (
            "(:moving_objects (a (:motion_type linear) (:motion_direction (0 0 0))))",
            "a direction of (0 0 0) points nowhere",
        ),
        (
            "(:moving_objects (a (:motion_type waypoint)\n (:motion_waypoints ((1 2)))))",
            "line 2: '(1 2)' is no waypoint",
        ),
    ],
)
def test_what_is_wrong_is_named_by_line(text: str, message: str) -> None:
    with pytest.raises(InvalidInputError) as error:
        read_constraints(text, "task.bddl")
    assert str(error.value).startswith("task.bddl: line ")
    assert message in str(error.value)


def test_an_object_that_moves_twice_is_refused() -> None:
    one = "(a (:motion_type circular) (:motion_period 9) (:motion_center (0 0 0)))"
    with pytest.raises(InvalidInputError, match="line 2: 'a' moves twice"):
        read_constraints(f"(:moving_objects {one}\n {one})", "task.bddl")


def test_liberos_parser_passes_the_blocks_by(tmp_path: Path) -> None:
    (task, *_) = base_tasks("libero_goal")
    from libero.libero.envs.bddl_utils import robosuite_parse_problem

    assert task_constraints(task) == Constraints()
    text = Path(bddl_path(task)).read_text(encoding="utf-8")
    constrained = tmp_path / "constrained.bddl"
    constrained.write_text(text.rstrip()[:-1] + PAPER + ")", encoding="utf-8")
    with quiet():
        assert robosuite_parse_problem(str(constrained)) == robosuite_parse_problem(bddl_path(task))
    assert read_constraints(constrained.read_text(encoding="utf-8"), "here") == read_constraints(PAPER, "paper")
