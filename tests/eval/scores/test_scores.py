"""Scores from datasets on disk: tables, tests, the scores file, and what is printed."""

from __future__ import annotations

import io
import json
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from rich.console import Console

from conflictvla.builders.rollouts.schema import Rollout
from conflictvla.eval.measures import MEASURE_NAMES
from conflictvla.eval.recordings.reading import read_rollouts
from conflictvla.eval.scores.formats import markdown
from conflictvla.eval.scores.scores import Scores, read_scores, score, score_rollouts
from conflictvla.eval.scores.terminal import print_table
from conflictvla.eval.scores.text_tables import text_table
from conflictvla.eval.scoring.pair_table import ENDINGS
from conflictvla.toolkit.errors import DatasetError, NotFoundError
from conflictvla.toolkit.records import PROTOCOL_VERSION, Arm, Family, Prompt

from ..synthetic_rollouts import make_record, reaching_rollout, small_evaluation, write_dataset, write_two_policies

GROUP_COLUMN = {
    "overall": [],
    "family": ["family"],
    "level": ["level"],
    "suite": ["suite"],
    "prompt": [],
    "qualified": [],
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_two_policies(tmp_path_factory.mktemp("run"))


@pytest.fixture(scope="module")
def scores(folder: Path) -> Scores:
    return score(folder)


def row(table: pa.Table, **where: str) -> dict[str, float]:
    (found,) = [row for row in table.to_pylist() if all(row[name] == value for name, value in where.items())]
    return dict(found)


@pytest.mark.parametrize("by", GROUP_COLUMN)
def test_tables_have_the_promised_columns(scores: Scores, by: str) -> None:
    measures = [f"{name}{end}" for name in MEASURE_NAMES for end in ("", "_lo", "_hi")]
    table = scores.table(by)
    assert table.column_names == ["policy", "prompt", *GROUP_COLUMN[by], *measures, "n"]
    for name in measures:
        values = table[name].to_numpy()
        least = -1.0 if name.startswith("dSR") else 0.0
        assert ((values >= least) & (values <= 1.0) | np.isnan(values)).all()


def test_outcomes_by_hand(scores: Scores) -> None:
    # 24 pairs a policy under P0: the milk is out of reach in one of two initial states (4 pairs without y+), and the
    # first of four cases works in the first initial state of three base tasks (3 pairs with y-, all qualified).
    found = row(scores.table(), policy="persist")
    assert found["n"] == 24
    assert found["PCSR"] == pytest.approx(20 / 24)
    assert found["RGSR"] == pytest.approx(3 / 24)
    assert found["dSR"] == pytest.approx(17 / 24)
    assert found["FR"] == pytest.approx(17 / 20)


def test_approach_by_hand(scores: Scores) -> None:
    # Three cases of four reach 0.9 of the way, the fourth does not move off.
    assert row(scores.table(), policy="persist")["TAR"] == pytest.approx(0.75 * 0.9, abs=1e-5)
    by_family = scores.table("family")
    assert row(by_family, policy="persist", family="physical")["TAR"] == pytest.approx(0.0, abs=1e-5)
    assert row(by_family, policy="persist", family="spatial")["TAR"] == pytest.approx(0.9, abs=1e-5)


def test_main_tables_are_over_p0(scores: Scores) -> None:
    for by in ("overall", "family", "level", "suite", "qualified"):
        assert set(scores.table(by)["prompt"].to_pylist()) == {"P0"}
    assert scores.table("prompt")["prompt"].to_pylist() == ["P0", "P1", "P0", "P1"]


def test_a_policy_with_p1_alone_is_shown_under_p1(tmp_path: Path) -> None:
    found = score(write_dataset(tmp_path / "a", small_evaluation(prompts=[Prompt.P1])))
    assert found.table()["prompt"].to_pylist() == ["P1"]
    assert found.table("prompt_effect").num_rows == 0


def test_rows_follow_the_papers_order(scores: Scores) -> None:
    assert scores.table("family")["family"].to_pylist() == [family.value for family in Family] * 2
    assert scores.table("suite")["suite"].to_pylist() == ["libero_object", "libero_goal"] * 2


def test_qualified_failures_are_conditioned(scores: Scores) -> None:
    found = row(scores.table("qualified"), policy="persist")
    assert (found["n"], found["PCSR"], found["RGSR"]) == (17, 1.0, 0.0)
    assert found["FR"] == pytest.approx(17 / 20)
    pairs = [p for p in scores.pairs.to_pylist() if p["policy"] == "persist" and p["prompt"] == "P0"]
    failed = [p["Early20_TS"] for p in pairs if p["reference_success"] and not p["conflict_success"]]
    assert found["Early20_TS"] == pytest.approx(sum(failed) / 17)


def test_a_suite_of_one_base_task_has_no_interval(scores: Scores) -> None:
    found = row(scores.table("suite"), policy="persist", suite="libero_object")
    assert not math.isnan(found["TAR"])
    assert math.isnan(found["TAR_lo"])


def test_a_grouping_that_does_not_exist_names_those_that_do(scores: Scores) -> None:
    with pytest.raises(NotFoundError, match="did you mean 'family'"):
        scores.table("familly")


def test_the_prompt_has_no_effect_on_equal_outcomes(scores: Scores) -> None:
    effect = scores.table("prompt_effect")
    assert effect.num_rows == 2 * 8
    selective = row(effect, policy="persist", measure="selectivity")
    assert (selective["difference"], selective["p"], selective["n"]) == (0.0, 1.0, 24)
    assert row(effect, policy="stop", measure="PCSR")["under"] == pytest.approx(20 / 24)


def test_each_prompt_condition_is_compared_with_p0_in_a_family_of_tests_of_its_own(tmp_path: Path) -> None:
    prompts = ["P0", "P1", "placebo", "careful"]
    several = score(write_dataset(tmp_path / "several", small_evaluation(prompts=prompts)))
    effect = several.table("prompt_effect")
    assert list(dict.fromkeys(effect["prompt"].to_pylist())) == ["P1", "placebo", "careful"]
    assert effect.num_rows == 3 * 8
    two = score(write_dataset(tmp_path / "two", small_evaluation(prompts=["P0", "P1"]))).table("prompt_effect")
    of_p1 = [r for r in effect.to_pylist() if r["prompt"] == "P1"]
    assert [(r["measure"], r["q"], r["n"]) for r in of_p1] == [(r["measure"], r["q"], r["n"]) for r in two.to_pylist()]
    assert several.table("prompt")["prompt"].to_pylist() == prompts
    assert several.table("overall")["prompt"].to_pylist() == ["P0"]


def test_conditions_without_p0_have_tables_and_no_effect(tmp_path: Path) -> None:
    found = score(write_dataset(tmp_path / "own", small_evaluation(prompts=["placebo", "careful"])))
    assert found.table()["prompt"].to_pylist() == ["placebo"]
    assert found.table("prompt_effect").num_rows == 0


def test_the_prompt_effect_is_p1_minus_p0(tmp_path: Path) -> None:
    # Under P1 alone every conflict rollout fails, while nothing changes with valid premises.
    def failing(made: Rollout) -> Rollout:
        if made.episode.arm is Arm.REFERENCE or made.episode.prompt == Prompt.P0:
            return made
        return replace(made, episode=replace(made.episode, success=False, success_step=None, end="horizon"))

    effect = score(write_dataset(tmp_path / "a", [failing(made) for made in small_evaluation()])).table("prompt_effect")
    found = row(effect, policy="persist", measure="RGSR")
    assert (found["P0"], found["under"], found["difference"]) == (0.125, 0.0, -0.125)
    assert row(effect, policy="persist", measure="selectivity")["difference"] == -0.125


def test_outcome_tests_count_discordant_pairs(scores: Scores) -> None:
    found = row(scores.table("outcome_tests"), policy="stop", prompt="P0")
    assert (found["reference_only"], found["conflict_only"]) == (17, 0)
    assert found["mcnemar_p"] == pytest.approx(2 * 0.5**17)
    # The drop is positive on all three base tasks: of the 8 sign patterns two are as extreme.
    assert found["p"] == pytest.approx(2 / 8)


def test_undefined_approach_is_counted_with_its_reason(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    rollouts = [
        reaching_rollout(make_record(), rng, steps=8, reach=0.01),
        reaching_rollout(make_record(arm=Arm.CONFLICT), rng, steps=8),
    ]
    found = score(write_dataset(tmp_path / "a", rollouts))
    assert found.table("undefined").to_pylist() == [
        {
            "policy": "persist",
            "prompt": "P0",
            "measure": "TAR",
            "reason": "the reference rollout approached no target by 0.02 m",
            "n": 1,
        }
    ]
    written = json.loads(found.to_json())["tables"]["overall"][0]
    assert written["TAR"] is None
    assert written["undefined"]["TAR"] == "no pair with a target that its reference rollout approached by 0.02 m"
    assert written["undefined"]["FR"] == "no pair whose reference rollout succeeds"
    assert written["undefined"]["TS"] == "pairs from fewer than two base tasks"


def test_revisions_of_one_policy_are_rows_of_their_own(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    rollouts = [
        reaching_rollout(make_record(arm=arm, policy_revision=revision, rollout_id=f"{arm}{revision}"), rng, steps=8)
        for revision in ("r1", "r2")
        for arm in (Arm.REFERENCE, Arm.CONFLICT)
    ]
    found = score(write_dataset(tmp_path / "a", rollouts))
    assert found.policies == ("persist@r1", "persist@r2")


def test_refused_pairs_are_in_the_scores_file_by_field(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    records = [
        make_record(),
        make_record(arm=Arm.CONFLICT, mujoco_version="3.3.0"),
        make_record(arm=Arm.CONFLICT, case=1),
    ]
    found = score(write_dataset(tmp_path / "a", [reaching_rollout(record, rng) for record in records]))
    content = json.loads(found.to_json())
    assert (content["pairs_scored"], content["pairs_refused"]) == (1, 1)
    assert content["refusals_by_field"] == {"mujoco_version": 1}


def test_nothing_but_refusals_gives_empty_tables(tmp_path: Path) -> None:
    rollouts = [reaching_rollout(make_record(arm=Arm.CONFLICT), np.random.default_rng(0))]
    found = score(write_dataset(tmp_path / "a", rollouts))
    assert found.table("family").num_rows == 0
    assert json.loads(found.to_json())["pairs_refused"] == 1
    print_table(found, console=Console(file=io.StringIO()))


def test_the_same_rollouts_give_the_same_bytes(folder: Path, scores: Scores, tmp_path: Path) -> None:
    first = scores.write(tmp_path / "one.json").read_bytes()
    write_dataset(
        tmp_path / "elsewhere/everything",
        [*small_evaluation("stop", reach=0.0)[::-1], *small_evaluation("persist", reach=0.9)],
    )
    assert score(tmp_path / "elsewhere").write(tmp_path / "two.json").read_bytes() == first
    assert score_rollouts([read_rollouts(folder)]).to_json().encode() == first
    assert str(folder).encode() not in first


def test_a_changed_frame_changes_the_hash(scores: Scores, tmp_path: Path) -> None:
    rollouts = small_evaluation("persist", reach=0.9)
    rollouts[3].frames["action"][5, 6] = 0.5
    write_dataset(tmp_path / "persist", rollouts)
    write_dataset(tmp_path / "stop", small_evaluation("stop", reach=0.0))
    changed = score(tmp_path)
    # The gripper is in no measure, yet the recording is another one.
    assert changed.pairs.equals(scores.pairs)
    assert changed.provenance.rollouts_sha256 != scores.provenance.rollouts_sha256


def test_a_scores_file_is_read_back_whole(scores: Scores, tmp_path: Path) -> None:
    back = read_scores(scores.write(tmp_path / "scores.json"))
    assert back.to_json() == scores.to_json()


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"scores_version": "9"}'])
def test_a_file_that_holds_no_scores_is_refused(tmp_path: Path, text: str) -> None:
    file = tmp_path / "scores.json"
    file.write_text(text)
    with pytest.raises(DatasetError, match=r"scores\.json: (not a scores file|scores_version is 9)"):
        read_scores(file)


def test_no_rollouts_are_refused() -> None:
    with pytest.raises(DatasetError, match="no rollouts to score"):
        score_rollouts([])


@pytest.mark.parametrize("by", GROUP_COLUMN)
def test_printed_tables_fit_a_terminal_of_80_columns(scores: Scores, by: str) -> None:
    out = io.StringIO()
    print_table(scores, by, Console(file=out, width=80))
    text = out.getvalue()
    assert "…" not in text
    assert f"protocol {PROTOCOL_VERSION}" in text
    assert "persist" in text


def test_markdown_shows_percent_and_interval(scores: Scores) -> None:
    first = markdown(text_table(scores, "overall")).splitlines()
    assert first[0].startswith("| policy | prompt | PCSR ↑ | RGSR ↓ | ΔSR ↑ | FR ↑ | TAR ↓ |")
    assert first[2].startswith("| persist | P0 | 83.3 (2.6–100.0) | 12.5 (")
    assert "| **0.0** (0.0–0.0) |" in first[3]


def test_the_curve_of_failed_persistence_falls(scores: Scores) -> None:
    curve = scores.failed_persistence("persist")
    assert curve.shape == (21, 21)
    assert curve[0, 0] == 1.0
    assert (np.diff(curve, axis=0) <= 0).all()
    assert (np.diff(curve, axis=1) <= 0).all()
    assert np.isnan(scores.failed_persistence("nobody")).all()


def test_abstention_counts_arms_that_stay_at_rest(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    still = reaching_rollout(make_record(arm=Arm.CONFLICT), rng, steps=30)
    still.frames["action"][5:, :6] = 0.0
    found = score(write_dataset(tmp_path / "a", [reaching_rollout(make_record(), rng), still])).table("abstention")
    assert (found["conflict"].to_pylist(), found["reference"].to_pylist()) == ([1.0], [0.0])


def test_resting_after_the_goal_is_reached_is_no_abstention(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    done = reaching_rollout(make_record(arm=Arm.CONFLICT, success=True, steps=30), rng, steps=30)
    done.frames["action"][5:, :6] = 0.0
    found = score(write_dataset(tmp_path / "a", [reaching_rollout(make_record(), rng), done])).table("abstention")
    assert found["conflict"].to_pylist() == [0.0]


def test_endings_tell_success_refusal_moving_and_rest_apart_and_count_a_reference_once(tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    reference = reaching_rollout(make_record(success=True, steps=30), rng, steps=30)
    cases = [make_record(arm=Arm.CONFLICT, case=case) for case in range(4)]
    conflicts = [
        reaching_rollout(make_record(arm=Arm.CONFLICT, success=True, steps=30), rng, steps=30),
        *(reaching_rollout(case, rng) for case in cases[1:]),
    ]
    for still in conflicts[2:]:
        still.frames["action"][-20:, :6] = 0.0
    found = score(write_dataset(tmp_path / "a", [reference, *conflicts])).table("endings").to_pylist()

    shares = {row["arm"]: ([row[name] for name in ENDINGS], row["n"]) for row in found}
    assert shares == {"conflict": ([0.25, 0.0, 0.25, 0.5], 4), "reference": ([1.0, 0.0, 0.0, 0.0], 1)}
