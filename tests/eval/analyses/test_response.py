"""The response of a set of pairs: over capable pairs alone, by family and level, and against controls."""

from __future__ import annotations

import math
from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from conflictvla.eval.analyses.response import premise_effect, response_of
from conflictvla.eval.scores.scores import Scores, score
from conflictvla.toolkit.records import Family, Level

from ..synthetic_rollouts import small_evaluation, write_dataset


@pytest.fixture(scope="module")
def scores(tmp_path_factory: pytest.TempPathFactory) -> Scores:
    """Three base tasks, four cases each, two initial states; one reference of six fails, the fourth case rests."""
    return score(write_dataset(tmp_path_factory.mktemp("a") / "persist", small_evaluation()))


def p0(scores: Scores) -> pa.Table:
    return scores.pairs.filter(pc.equal(scores.pairs["prompt"], "P0"))


def with_column(pairs: pa.Table, name: str, values: Sequence[object]) -> pa.Table:
    return pairs.set_column(pairs.column_names.index(name), name, pa.array(values, pairs.schema.field(name).type))


def test_it_is_over_the_pairs_whose_reference_succeeds_and_those_without_tar_are_counted(scores: Scores) -> None:
    pairs = p0(scores)
    assert response_of(pairs).n == 20  # six references, one fails, four cases each
    tar = [float("nan"), float("nan"), *pairs["TAR"].to_pylist()[2:]]
    found = response_of(with_column(pairs, "TAR", tar))
    assert found.n + found.undefined == 20
    assert found.undefined == 2


def test_its_table_has_a_row_for_all_pairs_each_family_and_each_level_under_each_prompt(scores: Scores) -> None:
    rows = scores.table("response").to_pylist()
    among = ["all pairs", *Family, *Level]
    assert [(row["prompt"], row["among"]) for row in rows] == [(p, name) for p in ("P0", "P1") for name in among]
    by_name = {row["among"]: row for row in rows if row["prompt"] == "P0"}
    # The fourth case of each base task holds still, the first completes the goal in initial state 0.
    assert by_name["physical"]["response"] == 1.0
    assert by_name["instruction"]["response"] < by_name["grounding"]["response"] < by_name["physical"]["response"]
    overall = by_name["all pairs"]
    assert overall["response_lo"] < overall["response"] < overall["response_hi"]
    assert overall["PCSR"] == pytest.approx(5 / 6)


def test_a_policy_that_answers_the_wording_has_a_response_and_no_premise_effect(scores: Scores) -> None:
    pairs = p0(scores)
    same = premise_effect(pairs, pairs)
    assert (same.effect.value, same.controls, same.base_tasks) == (0.0, pairs.num_rows, 3)
    carries_on = with_column(pairs, "conflict_success", [True] * pairs.num_rows)
    found = premise_effect(pairs, carries_on)
    assert found.effect.value == pytest.approx(response_of(pairs).response.value)


def test_without_controls_of_the_same_cases_there_is_no_premise_effect(scores: Scores) -> None:
    pairs = p0(scores)
    for found in (premise_effect(pairs, scores.controls), premise_effect(pairs.slice(0, 12), pairs.slice(12))):
        assert (found.controls, found.base_tasks) == (0, 0)
        assert math.isnan(found.effect.value)


def test_controls_of_pairs_that_nobody_is_capable_of_are_counted_and_have_no_effect(scores: Scores) -> None:
    pairs = with_column(p0(scores), "reference_success", [False] * p0(scores).num_rows)
    found = premise_effect(pairs, pairs)
    assert (found.controls, found.base_tasks) == (pairs.num_rows, 0)
    assert math.isnan(found.effect.value)
