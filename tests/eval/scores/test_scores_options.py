"""Supplementary tables, noise floor, strict and partial scoring, and scoring on a real Ray cluster."""

from __future__ import annotations

import io
import json
import math
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

from conflictvla.builders.rollouts.schema import Rollout
from conflictvla.eval.scores.formats import latex, markdown
from conflictvla.eval.scores.scores import Scores, read_scores, score
from conflictvla.eval.scores.terminal import print_table
from conflictvla.eval.scores.text_tables import table_names, text_table
from conflictvla.toolkit.errors import DatasetError, InvalidInputError, NotFoundError
from conflictvla.toolkit.records import Arm, Prompt

from ..in_process import conflictvla
from ..recordings.test_sources import damage
from ..synthetic_rollouts import make_record, reaching_rollout, small_evaluation, write_dataset, write_two_policies

WITHOUT_POLICY = ("behaviour-correlation", "policy-means", "prompt-moves")
"""Tables whose rows are over several policies."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_two_policies(tmp_path_factory.mktemp("run"))


@pytest.fixture(scope="module")
def scores(folder: Path) -> Scores:
    return score(folder, supplementary=True)


def test_supplementary_means_by_hand(scores: Scores) -> None:
    rows = {(row["policy"], row["prompt"], row["among"]): row for row in scores.table("supplementary").to_pylist()}
    # Three cases of four reach 0.9 of the way at 40/35 of the pace: 0.9 * 40 / 35 > 1 is clipped in its inverse.
    ahead = 0.9 * 40 / 35
    assert rows["persist", "P0", "all pairs"]["position_similarity"] == pytest.approx(0.75 / ahead, abs=1e-5)
    stop = rows["stop", "P0", "all pairs"]
    assert stop["position_similarity"] == pytest.approx(0.0, abs=1e-9)
    assert stop["warping_similarity"] == pytest.approx(0.0, abs=1e-6)
    # 0.3 m in 40 steps: 7.5 mm a step, more than 2 cm apart at step 3.
    assert (stop["parts"], stop["median_divergence_step"], stop["n"]) == (1.0, 3.0, 24)
    assert rows["stop", "P0", "qualified failures"]["n"] == 17


def test_supplementary_measures_leave_the_protocols_own_as_they_are(scores: Scores, folder: Path) -> None:
    plain = score(folder)
    for by in ("overall", "family", "qualified"):
        assert plain.table(by).equals(scores.table(by))
    assert not plain.has_supplementary
    assert plain.provenance == scores.provenance
    for missing in ("supplementary", "behaviour", "behaviour_by_task"):
        with pytest.raises(InvalidInputError, match="were not taken: give --supplementary"):
            plain.table(missing)


def test_a_scores_file_with_supplementary_measures_is_read_back_whole(scores: Scores, tmp_path: Path) -> None:
    assert read_scores(scores.write(tmp_path / "scores.json")).to_json() == scores.to_json()


def seeded(seed: int, *, reach: float, success: bool) -> Rollout:
    record = make_record(seed=seed, success=success, steps=30, rollout_id=f"seed-{seed}")
    return reaching_rollout(record, np.random.default_rng(seed), steps=30, reach=reach)


def test_the_noise_floor_pairs_each_seed_with_the_next(tmp_path: Path) -> None:
    rollouts = [
        seeded(3, reach=0.6, success=False),
        seeded(1, reach=1.0, success=True),
        seeded(2, reach=0.8, success=True),
        reaching_rollout(make_record(arm=Arm.CONFLICT, seed=1), np.random.default_rng(0)),
        replace(seeded(4, reach=1.0, success=True), episode=make_record(seed=4, init_state=1, rollout_id="elsewhere")),
    ]
    rollouts[-1] = reaching_rollout(rollouts[-1].episode, np.random.default_rng(0), steps=30)
    found = score(write_dataset(tmp_path / "a", rollouts))
    assert found.repeats["reference_rollout"].to_pylist() == ["seed-1", "seed-2"]
    assert found.repeats["conflict_rollout"].to_pylist() == ["seed-2", "seed-3"]
    (row,) = found.table("noise_floor").to_pylist()
    assert (row["n"], row["PCSR"], row["RGSR"], row["FR"]) == (2, 1.0, 0.5, 0.5)
    assert row["TAR"] == pytest.approx((0.8 + 0.75) / 2, abs=1e-5)
    # The pairs of the conflict are untouched by the repeats.
    assert found.pairs["reference_rollout"].to_pylist() == ["seed-1"]


def test_references_under_other_horizons_are_no_repeats(tmp_path: Path) -> None:
    rng = np.random.default_rng(4)
    made = [
        reaching_rollout(make_record(seed=seed, horizon=horizon, rollout_id=f"seed-{seed}"), rng)
        for seed, horizon in ((1, 300), (2, 600), (3, 300))
    ]
    found = score(write_dataset(tmp_path / "a", made)).repeats
    assert found["reference_rollout"].to_pylist() == ["seed-1"]
    assert found["conflict_rollout"].to_pylist() == ["seed-3"]


def test_without_repeats_there_is_no_noise_floor(scores: Scores) -> None:
    assert scores.table("noise_floor").num_rows == 0


def test_every_table_as_text_markdown_and_latex(scores: Scores) -> None:
    names = table_names(scores)
    assert {"overall", "qualified", "supplementary", "behaviour", "prompt-effect", "noise-floor"} <= set(names)
    for name in names:
        table = text_table(scores, name)
        assert all(len(row) == len(table.header) for row in table.rows)
        shown = len(table.rows) + len(table.means)
        assert markdown(table).count("\n") == shown + 2
        text = latex(table)
        assert text.count(" \\\\\n") == shown + 1
        assert not any(symbol in text for symbol in "Δ↑↓−–³")
        out = io.StringIO()
        print_table(scores, name, Console(file=out, width=200))
        assert not table.rows or "persist" in out.getvalue() or name in WITHOUT_POLICY
    assert "median\\_x" in latex(replace(text_table(scores, "overall"), header=("median_x",), labels=1))


def test_a_table_that_does_not_exist_names_those_that_do(scores: Scores) -> None:
    with pytest.raises(NotFoundError, match="did you mean 'prompt-effect'"):
        text_table(scores, "prompt_efect")


def test_strict_lists_every_defect_and_writes_nothing(tmp_path: Path) -> None:
    broken = write_dataset(tmp_path / "a", small_evaluation(prompts=[Prompt.P0]), episodes_a_file=10)
    out = tmp_path / "scores.json"
    damage(broken)
    done = conflictvla("score", broken, "--strict", "--out", out)
    assert (done.returncode, done.stdout) == (2, "")
    lines = done.stderr.splitlines()
    # Five defects, and two conflict rollouts whose reference rollout is one of the five... or none: all are named.
    assert len([line for line in lines if line.startswith(str(broken))]) == 5
    assert not out.exists()
    done = conflictvla("score", broken, "--partial", "--out", out)
    assert done.returncode == 1
    assert "left out for 1 defect: action" in done.stderr
    assert json.loads(out.read_text())["left_out_by_field"]["action"] == 1
    assert conflictvla("score", broken).returncode == 2


def test_strict_accepts_what_has_no_defect(folder: Path) -> None:
    assert conflictvla("score", folder, "--strict").returncode == 0


def test_strict_counts_a_refused_pair_as_a_defect(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    records = [make_record(), make_record(arm=Arm.CONFLICT, mujoco_version="3.3.0")]
    broken = write_dataset(tmp_path / "a", [reaching_rollout(record, rng) for record in records])
    done = conflictvla("score", broken, "--strict")
    assert done.returncode == 2
    assert "mujoco_version: reference has 3.2.3, conflict has 3.3.0" in done.stderr
    assert conflictvla("score", broken).returncode == 1


def test_strict_and_partial_exclude_each_other(folder: Path) -> None:
    done = conflictvla("score", folder, "--strict", "--partial")
    assert done.returncode == 2
    assert "give one of them" in done.stderr


@pytest.fixture(scope="module")
def cluster() -> Iterator[str]:
    """Address of a real Ray cluster on this machine."""
    cluster_utils = pytest.importorskip("ray.cluster_utils")
    nodes = cluster_utils.Cluster(initialize_head=True, head_node_args={"num_cpus": 2})
    yield nodes.address
    nodes.shutdown()


def test_scores_from_a_cluster_are_the_same_to_the_last_byte(
    cluster: str, folder: Path, scores: Scores, tmp_path: Path
) -> None:
    out = tmp_path / "scores.json"
    done = conflictvla("score", folder, "--supplementary", "--ray", cluster, "--out", out)
    assert done.returncode == 0, done.stderr
    assert out.read_text() == scores.to_json()


def test_a_defect_found_on_a_cluster_reads_as_it_does_here(cluster: str, tmp_path: Path) -> None:
    broken = write_dataset(tmp_path / "a", small_evaluation(prompts=[Prompt.P0]))
    for file in broken.glob("data/**/*.parquet"):
        file.write_bytes(file.read_bytes()[:1000])
    with pytest.raises(DatasetError) as here:
        score(broken)
    with pytest.raises(DatasetError) as there:
        score(broken, ray_address=cluster)
    assert str(there.value) == str(here.value)


def test_no_cluster_is_one_clear_line(folder: Path) -> None:
    done = conflictvla("score", folder, "--ray", "127.0.0.1:1")
    assert done.returncode == 2
    assert done.stderr.strip().splitlines()[-1].startswith("error: no Ray cluster at '127.0.0.1:1'")


def test_behaviour_of_a_deterministic_policy_has_no_variability_to_compare(scores: Scores) -> None:
    rows = scores.table("behaviour_by_task").to_pylist()
    durations = [row for row in rows if row["metric"] == "duration_s" and row["condition"] == "conflict"]
    # 40 actions with valid premises, 35 under the conflict: (34 - 39) / 39.
    assert {round(row["change"], 9) for row in durations} == {round(-5 / 39, 9)}
    assert all(row["baseline_mad"] == 0.0 or math.isnan(row["baseline_mad"]) for row in durations)
    assert all(math.isnan(row["mad_change"]) for row in durations)
