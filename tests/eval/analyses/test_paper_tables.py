"""The paper's tables and figures in numbers: quartiles, means over policies, what a prompt moves, and matrices."""

from __future__ import annotations

import math
import xml.etree.ElementTree as ElementTree
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from conflictvla.eval.analyses.tables.failure_quartiles import failure_quartiles
from conflictvla.eval.analyses.tables.policy_means import policy_families
from conflictvla.eval.analyses.tables.prompt_effect import ALL_PROCESS, prompt_effect, prompt_moves
from conflictvla.eval.measures import PROCESS_NAMES
from conflictvla.eval.report.figures.panels import failure_distributions, prompt_figures
from conflictvla.eval.report.page.page import render_report
from conflictvla.eval.scores.scores import Scores, score
from conflictvla.eval.scores.text_tables import text_table
from conflictvla.toolkit.records import CONTINUOUS, TOKENIZED

from ..synthetic_rollouts import small_evaluation, write_dataset

REACHES = {"near": 0.9, "half": 0.5, "still": 0.0}
FAMILIES = {"near": TOKENIZED, "half": CONTINUOUS, "still": None}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("three")
    for name, reach in REACHES.items():
        rollouts = [
            replace(made, episode=replace(made.episode, policy_family=FAMILIES[name]))
            for made in small_evaluation(name, reach=reach)
        ]
        write_dataset(root / "rollouts" / name, rollouts)
    return root


@pytest.fixture(scope="module")
def scores(folder: Path) -> Scores:
    return score(folder)


def rows_where(table: pa.Table, **values: Any) -> list[dict[str, Any]]:
    return [row for row in table.to_pylist() if all(row[name] == value for name, value in values.items())]


def test_quartiles_are_those_of_the_qualified_failures(scores: Scores) -> None:
    (found,) = rows_where(scores.table("failure_quartiles"), policy="near")
    failed = [
        row["TAR"]
        for row in rows_where(scores.pairs, policy="near", prompt="P0", reference_success=True, conflict_success=False)
    ]
    assert found["n"] == len(failed) == 17
    quartiles = [found[f"TAR_{name}"] for name in ("q1", "median", "q3")]
    assert quartiles == pytest.approx(np.percentile(failed, [25, 50, 75]).tolist())
    assert quartiles == sorted(quartiles)


def test_without_failures_quartiles_are_undefined(scores: Scores) -> None:
    none = scores.pairs.filter(pa.compute.equal(scores.pairs["conflict_success"], True))  # noqa: FBT003
    rows = failure_quartiles(none).to_pylist()
    assert [row["n"] for row in rows] == [0, 0, 0]
    assert all(math.isnan(row["AMS_median"]) for row in rows)


def test_the_figure_of_distributions_shows_the_quartiles_as_numbers(scores: Scores) -> None:
    (figure,) = [one for one in failure_distributions(scores) if one.name == "failures-tar"]
    shown = text_table(scores, "failure-quartiles")
    texts = {element.text for element in ElementTree.fromstring(figure.plot.render()).iter("text")}
    for row in shown.rows:
        assert row[shown.header.index("TAR ↓")].replace(" / ", " | ") in texts


def test_each_policy_counts_once_in_means(scores: Scores) -> None:
    overall = {row["policy"]: row for row in scores.table("overall").to_pylist()}
    means = scores.table("policy_means")
    (everything,) = rows_where(means, policy_family="all", family="all")
    assert everything["policies"] == 3
    assert everything["TAR"] == pytest.approx(sum(row["TAR"] for row in overall.values()) / 3)
    (tokenized,) = rows_where(means, policy_family=TOKENIZED, family="all")
    assert (tokenized["policies"], tokenized["TAR"]) == (1, pytest.approx(overall["near"]["TAR"]))
    # The paper's order of families, each with all pairs and the four conflict families.
    assert list(dict.fromkeys(means["policy_family"].to_pylist())) == [TOKENIZED, CONTINUOUS, "all"]
    assert means.num_rows == 3 * 5


def test_a_policy_that_was_given_two_families_shows_both() -> None:
    pairs = pa.table({"policy": ["a", "a", "b", "b", "c"], "policy_family": ["x", "y", None, "z", None]})
    assert policy_families(pairs) == {"a": "x / y", "b": "z", "c": None}


def test_a_policy_alone_and_without_a_family_has_no_means(tmp_path: Path) -> None:
    alone = score(write_dataset(tmp_path / "a", small_evaluation()))
    assert alone.table("policy_means").num_rows == 0
    assert text_table(alone, "overall").means == ()


def with_prompt(pairs: pa.Table, name: str, **shifts: float) -> pa.Table:
    """Pairs under P0, and the same under a prompt of that name, their measures moved by the shifts."""
    base = pairs.filter(pa.compute.equal(pairs["prompt"], "P0"))
    moved = base.set_column(base.column_names.index("prompt"), "prompt", pa.array([name] * base.num_rows))
    for measure, shift in shifts.items():
        moved = moved.set_column(
            moved.column_names.index(measure), measure, pa.compute.add(moved[measure], pa.scalar(shift))
        )
    return pa.concat_tables([base, moved])


def test_moves_are_counted_under_any_prompt_condition(scores: Scores) -> None:
    both = with_prompt(scores.pairs, "ask_twice", TAR=-0.1, TS=-0.1, Early20_TS=-0.1, AMS=0.1)
    moves = prompt_moves(prompt_effect(both))
    assert set(moves["prompt"].to_pylist()) == {"ask_twice"}
    for measure in (*PROCESS_NAMES, ALL_PROCESS):
        (found,) = rows_where(moves, measure=measure)
        assert (found["moved"], found["clearly"], found["against"], found["policies"]) == (3, 3, 0, 3)
    (unmoved,) = rows_where(moves, measure="RGSR")
    assert (unmoved["moved"], unmoved["against"], unmoved["policies"]) == (0, 0, 3)


def test_a_move_in_three_process_measures_is_none_in_all(scores: Scores) -> None:
    both = with_prompt(scores.pairs, "ask_twice", TAR=-0.1, TS=-0.1, Early20_TS=-0.1, AMS=-0.1)
    (found,) = rows_where(prompt_moves(prompt_effect(both)), measure=ALL_PROCESS)
    assert (found["moved"], found["against"], found["policies"]) == (0, 0, 3)


def test_several_prompts_are_compared_with_p0_each(scores: Scores) -> None:
    three = pa.concat_tables(
        [scores.pairs, with_prompt(scores.pairs, "zz", TAR=0.05).filter(pa.compute.field("prompt") == "zz")]
    )
    effect = prompt_effect(three)
    assert list(dict.fromkeys(effect["prompt"].to_pylist())) == ["P1", "zz"]
    (found,) = rows_where(effect, policy="near", prompt="zz", measure="TAR")
    assert found["difference"] == pytest.approx(0.05)
    shown = Scores(
        pairs=three,
        probed=scores.probed,
        refusals=(),
        provenance=scores.provenance,
        repeats=scores.repeats,
        references=scores.references,
    )
    assert [figure.name for figure in prompt_figures(shown)] == ["prompt-P1", "prompt-zz"]


def test_fr_is_compared_on_pairs_that_qualify_under_both(scores: Scores) -> None:
    both = with_prompt(scores.pairs, "x")
    failing = np.array(both["prompt"].to_pylist()) == "x"
    # Under x the first base task's references fail, and of the rest every conflict rollout does.
    lost = failing & (np.array(both["base_task"].to_pylist()) == "open_the_middle_drawer")
    for name, values in (
        ("reference_success", np.where(lost, 0, both["reference_success"].to_numpy())),
        ("conflict_success", np.where(failing & ~lost, 0, both["conflict_success"].to_numpy())),
    ):
        both = both.set_column(both.column_names.index(name), name, pa.array(values.astype(np.bool_)))
    (found,) = rows_where(prompt_effect(both), policy="near", measure="FR")
    assert found["n"] == 12  # 20 qualify under P0, 8 of them are pairs of that base task
    assert found["under"] == 1.0
    assert found["P0"] == pytest.approx(10 / 12)


def test_one_figure_shows_all_policies_and_the_counts(scores: Scores) -> None:
    (figure,) = prompt_figures(scores)
    texts = [element.text for element in ElementTree.fromstring(figure.plot.render()).iter("text")]
    assert {"near", "half", "still", "FR ↑", "PCSR ↑", "AMS ↑"} <= set(texts)
    (moved,) = rows_where(scores.table("prompt_moves"), measure="TAR")
    assert f"{moved['moved']} of 3" in texts


def test_matrices_have_a_cell_for_each_suite_and_level(scores: Scores) -> None:
    matrix = scores.table("suite_level")
    (found,) = rows_where(matrix, policy="near", measure="RGSR", suite="libero_goal")
    pairs = rows_where(scores.pairs, policy="near", prompt="P0", suite="libero_goal", level="L1")
    assert found["L1_n"] == len(pairs) == 4
    assert found["L1"] == pytest.approx(np.mean([row["conflict_success"] for row in pairs]))
    by_family = scores.table("family_level")
    (cell,) = rows_where(by_family, policy="near", measure="TAR", family="instruction")
    assert cell["L2_n"] == 0
    assert math.isnan(cell["L2"])
    assert [row[0] for row in text_table(scores, "suite-level").rows] == sorted(
        row["policy"] for row in matrix.to_pylist()
    )


def test_the_page_shows_marks_families_and_counts_without_colour_alone(scores: Scores, folder: Path) -> None:
    page = render_report(scores, folder)
    assert "<u>" in page
    assert '<b class="extreme">▲</b>' in page
    assert "Underlined: the best of the policies" in page
    assert "▲ ▼: the policy&#39;s highest and lowest" in page
    assert f"<small>{TOKENIZED}</small>" in page
    assert "How many policies a prompt moves" in page
    assert "mean of 3 policies" in page
