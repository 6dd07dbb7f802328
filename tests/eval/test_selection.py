"""Users say what to run in their own short way; what fits nothing is refused with the closest that does."""

from __future__ import annotations

import tracemalloc
from collections.abc import Sequence

import pytest

from conflictvla.builders.tasks_dataset.reading import load_instances
from conflictvla.eval.selection import (
    HorizonKind,
    choose_prompts,
    find_case,
    parse_numbers,
    select_conflicts,
    with_horizons,
)
from conflictvla.toolkit.errors import InvalidInputError, NotFoundError
from conflictvla.toolkit.records import HORIZONS, Arm, Family, Level, Prompt

INSTANCES = load_instances()
CONFLICTS = [i for i in INSTANCES if i.arm is Arm.CONFLICT]
BOTH = (Prompt.P0, Prompt.P1)


def test_without_patterns_every_conflict_is_selected_and_no_reference() -> None:
    assert select_conflicts(INSTANCES, None, BOTH) == tuple(CONFLICTS)


def test_only_the_prompts_asked_for_are_selected() -> None:
    assert {i.prompt for i in select_conflicts(INSTANCES, None, (Prompt.P1,))} == {Prompt.P1}


def test_wildcards_pick_a_family_and_level() -> None:
    picked = select_conflicts(INSTANCES, "*/grounding/L1/*", (Prompt.P0,))

    expected = [i for i in CONFLICTS if (i.family, i.level, i.prompt) == (Family.GROUNDING, Level.L1, Prompt.P0)]
    assert picked == tuple(expected) != ()


def test_patterns_add_up_without_repeating_anything() -> None:
    one = str(CONFLICTS[0].case_id)

    picked = select_conflicts(INSTANCES, f" {one} , *{one[-8:]},, {one}", BOTH)

    assert [i.instance_id for i in picked] == [f"{one}/P0", f"{one}/P1"]


def test_pattern_that_fits_nothing_is_refused_though_others_fit() -> None:
    with pytest.raises(NotFoundError, match=r"no case '\*/grounded/\*': .*conflictvla tasks list"):
        select_conflicts(INSTANCES, "*/grounding/*,*/grounded/*", BOTH)


@pytest.mark.parametrize("patterns", ["", "  ", " , ,"])
def test_a_list_of_no_patterns_is_refused_with_what_to_write(patterns: str) -> None:
    with pytest.raises(InvalidInputError, match="--cases is empty: write case ids with"):
        select_conflicts(INSTANCES, patterns, BOTH)


@pytest.mark.parametrize("prompts", [(Prompt.P0,), BOTH])
def test_cases_are_counted_once_under_however_many_prompts(prompts: Sequence[str]) -> None:
    count = len({i.case_id for i in CONFLICTS})
    with pytest.raises(NotFoundError, match=f"no case 'zzz': the first of {count:,} is 'libero_"):
        select_conflicts(INSTANCES, "zzz", prompts)


def test_misspelt_id_is_answered_with_the_closest() -> None:
    one = str(CONFLICTS[0].case_id)

    with pytest.raises(NotFoundError, match=f"did you mean '{one}'"):
        select_conflicts(INSTANCES, one + "x", BOTH)


def test_patterns_are_case_sensitive_on_every_system() -> None:
    with pytest.raises(NotFoundError):
        select_conflicts(INSTANCES, "*/l1/*", BOTH)


def test_case_is_found_by_its_id_or_an_unambiguous_beginning() -> None:
    one = CONFLICTS[0]

    assert find_case(INSTANCES, str(one.case_id)) == one
    assert find_case(INSTANCES, str(one.case_id)[:-4]) == one


def test_ambiguous_beginning_is_refused_with_a_count_and_an_example() -> None:
    goal = sum(i.suite == "libero_goal" for i in CONFLICTS) // 2

    with pytest.raises(InvalidInputError, match=f"{goal} cases begin with 'libero_goal/', such as libero_goal/"):
        find_case(INSTANCES, "libero_goal/")


def test_unknown_case_is_refused() -> None:
    with pytest.raises(NotFoundError, match="no case 'nowhere'"):
        find_case(INSTANCES, "nowhere")


@pytest.mark.parametrize(
    ("text", "expected"),
    [("P0", (Prompt.P0,)), (" P1 , P0,", (Prompt.P1, Prompt.P0)), ("P0,P0", (Prompt.P0,))],
)
def test_prompts_are_read_in_the_order_given_each_once(text: str, expected: tuple[Prompt, ...]) -> None:
    assert tuple(condition.name for condition in choose_prompts(text)) == expected


@pytest.mark.parametrize("text", ["P2", "p0", "P0;P1"])
def test_unknown_prompt_is_refused_with_the_choices(text: str) -> None:
    with pytest.raises(NotFoundError, match=rf"no prompt condition '{text}'.*known: P0, P1"):
        choose_prompts(text)


@pytest.mark.parametrize("text", ["", " ", ","])
def test_no_prompt_at_all_is_refused(text: str) -> None:
    with pytest.raises(InvalidInputError, match="--prompts is empty"):
        choose_prompts(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [("0-4", (0, 1, 2, 3, 4)), ("7,0", (0, 7)), (" 3 - 3 ", (3,)), ("2,1-3,2", (1, 2, 3)), ("0", (0,))],
)
def test_numbers_are_sorted_and_each_once(text: str, expected: tuple[int, ...]) -> None:
    assert parse_numbers(text, "--init-states") == expected


@pytest.mark.parametrize("text", ["", "a", "4-0", "1-", "-1", "1,,2", "1.5", "0-4-8", "0–4"])
def test_text_that_is_no_list_of_numbers_is_refused_by_its_option(text: str) -> None:
    with pytest.raises(
        InvalidInputError, match=r"--init-states '.*' is not a list of numbers: write it like 0-4 or 0,7"
    ):
        parse_numbers(text, "--init-states")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("0-99999999", "--seeds '0-99999999' is more than 10,000 numbers"),
        ("0-10000", "--seeds '0-10000' is more than 10,000 numbers"),
        ("0-9999,20000", "--seeds '0-9999,20000' is more than 10,000 numbers"),
        ("4294967296", "--seeds: 4294967296 is too large: at most 4294967295"),
        ("0-" + 5000 * "9", "--seeds: 99999.*[.]{3} is too large"),
        ("1," * 100, "--seeds '1,1,.*[.]{3}' is not a list of numbers"),
    ],
)
def test_numbers_that_would_fill_the_memory_are_refused_before_they_are_listed(text: str, message: str) -> None:
    tracemalloc.start()
    with pytest.raises(InvalidInputError, match=message) as refused:
        parse_numbers(text, "--seeds")
    assert tracemalloc.get_traced_memory()[1] < 4e6
    tracemalloc.stop()
    assert len(str(refused.value)) < 160


def test_as_many_and_as_large_numbers_as_are_allowed_are_read() -> None:
    assert len(parse_numbers("1-10000,1,00000000000007", "--seeds")) == 10_000
    assert parse_numbers("4294967295", "--seeds") == (4294967295,)


def test_release_without_cases_is_distinguished_from_a_misspelt_id() -> None:
    assert select_conflicts([], None, BOTH) == ()
    with pytest.raises(NotFoundError, match=r"no case '\*': there are none at all"):
        select_conflicts([], "*", BOTH)


def test_horizons_are_the_releases_or_on_request_those_of_the_base_tasks() -> None:
    base = with_horizons(INSTANCES, HorizonKind.BASE)

    assert with_horizons(INSTANCES, HorizonKind.PLAN) == INSTANCES
    assert [i.horizon for i in base] == [HORIZONS[i.suite] for i in INSTANCES]
    assert any(i.horizon < released.horizon for i, released in zip(base, INSTANCES, strict=True))
