"""Reference rollouts by themselves: plain success, cost and behaviour, and the word that there are no pairs."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from conflictvla.builders.rollouts.schema import Rollout
from conflictvla.eval.scores.scores import read_scores, score
from conflictvla.eval.statistics.intervals import exact_interval
from conflictvla.toolkit.records import Prompt, VisualProbe

from ..in_process import conflictvla
from ..synthetic_rollouts import make_record, reaching_rollout, small_evaluation, write_dataset

TASKS = {("libero_goal", "push_the_plate"): (True, True, False, False), ("libero_10", "close_it"): (True,) * 4}


def _references(prompt: Prompt = Prompt.P0) -> list[Rollout]:
    """Four rollouts of each of two base tasks; the cost of one is their number."""
    draw = np.random.default_rng(0)
    return [
        reaching_rollout(
            make_record(
                suite=s, base_task=t, init_state=i, success=ok, prompt=prompt, cost=float(i), cost_amounts=(float(i),)
            ),
            draw,
        )
        for (s, t), outcomes in TASKS.items()
        for i, ok in enumerate(outcomes)
    ]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Under a visual probe nothing succeeds, and a rollout that the policy broke off counts nowhere."""
    first = _references()[0]
    failed = replace(first.episode, success=False, success_step=None, end="horizon")
    odd = [
        replace(first, episode=replace(failed, rollout_id="probed", visual_probe=VisualProbe.V1)),
        replace(first, episode=replace(failed, rollout_id="broken", end="policy_error", init_state=9)),
    ]
    out = tmp_path_factory.mktemp("references") / "out"
    write_dataset(out, [*_references(), *_references(Prompt.P1)[:4], *odd])
    return out


def test_success_and_cost_by_hand(folder: Path) -> None:
    rows = {(row["prompt"], row["among"]): row for row in score(folder).table("success").to_pylist()}
    found = {key: (row["success"], row["cost"], row["n"]) for key, row in rows.items()}
    assert found == {
        ("P0", "all"): (0.75, 1.5, 8),
        ("P0", "libero_goal"): (0.5, 1.5, 4),
        ("P0", "libero_goal/push_the_plate"): (0.5, 1.5, 4),
        ("P0", "libero_10"): (1.0, 1.5, 4),
        ("P0", "libero_10/close_it"): (1.0, 1.5, 4),
        ("P1", "all"): (0.5, 1.5, 4),
        ("P1", "libero_goal"): (0.5, 1.5, 4),
        ("P1", "libero_goal/push_the_plate"): (0.5, 1.5, 4),
    }
    single = rows["P0", "libero_10/close_it"]
    # Clopper-Pearson of 4 of 4: the lower end is (0.025)^(1/4).
    assert (single["success_lo"], single["success_hi"]) == (pytest.approx(0.025**0.25), 1.0)
    assert np.isnan(rows["P0", "libero_goal"]["success_lo"])  # one base task says nothing about others


def test_exact_intervals_are_those_of_the_tables() -> None:
    found = exact_interval(2, 4)
    assert found.low == pytest.approx(0.0676, abs=1e-4)
    assert found.high == pytest.approx(0.9324, abs=1e-4)
    assert np.isnan(exact_interval(0, 0).value)


def test_behaviour_is_that_of_the_successful_rollouts(folder: Path) -> None:
    table = score(folder, supplementary=True).table("reference_behaviour").to_pylist()
    rows = {(row["prompt"], row["among"], row["metric"]): row for row in table}
    assert {(prompt, among) for prompt, among, _ in rows} == {
        *((("P0", "all"), ("P0", "libero_goal"), ("P0", "libero_10"))),
        *((("P1", "all"), ("P1", "libero_goal"))),
    }
    duration = rows["P0", "libero_goal", "duration_s"]
    assert duration["mean"] == pytest.approx(39 / 20)  # 40 control steps, the first at 0 s
    assert duration["n"] == 2


def test_references_only_are_scored_and_reported_and_said_to_be_no_pairs(folder: Path, tmp_path: Path) -> None:
    file = tmp_path / "scores.json"
    done = conflictvla("score", folder, "--out", file, "--json")
    assert done.returncode == 0
    assert "no conflict rollouts: what is there shows plain success" in done.stderr
    assert json.loads(done.stdout)[0]["among"] == "all"
    again = read_scores(file)
    # As text, since NaN is no other NaN's equal.
    assert str(again.table("success").to_pylist()) == str(score(folder).table("success").to_pylist())
    assert json.loads(file.read_text())["pairs_scored"] == 0
    shown = conflictvla("score", folder)
    assert (shown.returncode, "libero_10" in shown.stdout, "PCSR" in shown.stdout) == (0, True, False)
    reported = conflictvla("report", folder, "--out", tmp_path / "r.html", "--tables", tmp_path / "t")
    assert reported.returncode == 0, reported.stderr
    page = (tmp_path / "r.html").read_text()
    assert "75.0% by persist (P0), 50.0% by persist (P1)" in page
    assert "There are no pairs: only references were rolled out." in page
    assert page.count("libero_goal/push_the_plate") == 2  # the table of success, P0 and P1
    assert (tmp_path / "t" / "success.csv").is_file()


def test_costs_worked_out_afterwards_take_the_place_of_recorded_ones(folder: Path, tmp_path: Path) -> None:
    ids = [rollout.episode.rollout_id for rollout in _references()]
    pq.write_table(pa.table({"rollout_id": ids, "cost": [7.0] * len(ids)}), tmp_path / "costs.parquet")
    rows = score(folder, costs=tmp_path / "costs.parquet").table("success").to_pylist()
    assert {(row["prompt"], row["cost"]) for row in rows if row["prompt"] == "P0"} == {("P0", 7.0)}
    assert all(np.isnan(row["cost"]) for row in rows if row["prompt"] == "P1")


def test_beside_pairs_the_overall_table_is_shown_and_success_is_there_too(tmp_path: Path) -> None:
    write_dataset(tmp_path / "out", small_evaluation("persist", prompts=[Prompt.P0]))
    done = conflictvla("score", tmp_path / "out")
    assert (done.returncode, "PCSR" in done.stdout, "no pairs" in done.stderr) == (0, True, False)
    scores = score(tmp_path / "out")
    whole = scores.table("success").to_pylist()[0]
    assert (whole["among"], whole["n"]) == ("all", scores.provenance.references)
