"""What is set apart in tables: the best of the policies, extremes, and means over policies."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest

from conflictvla.eval.analyses.analysis import Mark, Marks, Row
from conflictvla.eval.analyses.marks import best_of_policies, extremes_by_policy, means_over_policies
from conflictvla.eval.measures import MEASURE_NAMES, MEASURES

NAN = math.nan


def row(policy: str, value: float, *, prompt: str = "P0", n: int = 10, **changes: Any) -> dict[str, Any]:
    """A row of which each measure has the same value, but for ``changes``."""
    return {"policy": policy, "prompt": prompt, "n": n, **dict.fromkeys(MEASURE_NAMES, value), **changes}


def of_column(marks: Mapping[tuple[int, str], Mark], column: str) -> dict[int, Mark]:
    return {number: mark for (number, name), mark in marks.items() if name == column}


def test_the_best_follows_the_direction_of_each_measure() -> None:
    marks = best_of_policies(None)([row("low", 0.1), row("middle", 0.5), row("high", 0.9)])
    for measure in MEASURES:
        assert of_column(marks, measure.name) == {2 if measure.higher_is_better else 0: Mark.BEST}


def test_values_that_are_equal_as_printed_are_all_marked() -> None:
    marks = best_of_policies(None)([row("a", 0.5, TAR=0.71141), row("b", 0.5, TAR=0.71139), row("c", 0.5, TAR=0.712)])
    assert set(of_column(marks, "TAR")) == {0, 1}


@pytest.mark.parametrize("value", [0.0, 0.5, 1.0, NAN])
@pytest.mark.parametrize("marks", [best_of_policies(None), best_of_policies("family"), extremes_by_policy])
def test_where_all_values_are_tied_as_printed_none_is_marked(
    marks: Callable[[Sequence[Row]], Marks], value: float
) -> None:
    rows = [row(policy, value + n / 10_000, family="spatial") for n, policy in enumerate("abcd")]
    assert marks(rows) == {}


def test_a_single_policy_is_not_the_best_of_anything() -> None:
    assert best_of_policies(None)([row("alone", 0.5)]) == {}
    assert best_of_policies("level")([row("alone", 0.5, level="L1"), row("alone", 0.7, level="L2")]) == {}
    assert of_column(best_of_policies(None)([row("a", 0.5, FR=0.3), row("b", 0.5, FR=NAN)]), "FR") == {}


def test_policies_are_compared_within_group_and_prompt_condition() -> None:
    rows = [row("a", 0.1, level="L1"), row("a", 0.9, level="L2"), row("b", 0.2, level="L1"), row("b", 0.8, level="L2")]
    assert set(of_column(best_of_policies("level")(rows), "RGSR")) == {0, 3}
    assert best_of_policies(None)([row("a", 0.1), row("b", 0.9, prompt="P1")]) == {}


def test_each_policy_has_its_extremes_and_the_column_its_own() -> None:
    rows = [row(policy, value) for policy, value in [("a", 0.2), ("a", 0.4), ("a", 0.3), ("b", 0.5), ("b", 0.1)]]
    assert of_column(extremes_by_policy(rows), "TS") == {
        0: Mark.LOWEST,
        1: Mark.HIGHEST,
        3: Mark.COLUMN_HIGHEST,
        4: Mark.COLUMN_LOWEST,
    }


def test_tied_or_undefined_values_have_no_extremes() -> None:
    assert extremes_by_policy([row("a", 0.2), row("a", 0.2), row("a", NAN)]) == {}


def test_the_mean_counts_each_policy_once_whatever_its_pairs() -> None:
    rows = [row("a", 0.2, n=1000, FR=NAN), row("b", 0.4, n=10), row("c", 0.9, n=10)]
    (mean,) = means_over_policies(None)(rows)
    assert (mean["policy"], mean["prompt"], mean["n"]) == ("mean of 3 policies", "P0", 1020)
    assert mean["TAR"] == pytest.approx(0.5)
    assert mean["FR"] == pytest.approx(0.65)
    assert math.isnan(mean["TAR_lo"])
    assert not means_over_policies(None)(rows[:1])


def test_there_is_a_mean_for_each_family() -> None:
    rows = [row(name, value, family=family) for name, value in (("a", 0.2), ("b", 0.4)) for family in ("spatial", "x")]
    means = means_over_policies("family")(rows)
    assert [(mean["family"], round(mean["AMS"], 6)) for mean in means] == [("spatial", 0.3), ("x", 0.3)]
