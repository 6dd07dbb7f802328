"""Scores under probes: levels are kept apart, compared on the same pairs, and collapse is not taken for care."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from conflictvla.builders.rollouts.schema import Rollout
from conflictvla.eval.scores.comparison import compare_policies, comparison_table
from conflictvla.eval.scores.scores import Scores, read_scores, score
from conflictvla.eval.scores.terminal import print_table
from conflictvla.eval.scores.text_tables import table_names, text_table
from conflictvla.toolkit.errors import InvalidInputError
from conflictvla.toolkit.probes.visual_settings import VisualSettings, visual_settings_json
from conflictvla.toolkit.records import Arm, LanguageProbe, Prompt, VisualProbe

from ..synthetic_rollouts import small_evaluation, write_dataset

Fails = Callable[[Rollout], bool]


def everywhere(rollout: Rollout) -> bool:
    return True


def in_conflicts(rollout: Rollout) -> bool:
    return rollout.episode.arm is Arm.CONFLICT


def seen_under(probe: VisualProbe, rollouts: list[Rollout], fails: Fails) -> list[Rollout]:
    """The same rollouts under a visual probe; those that fail do so, and no others."""
    made = []
    for rollout in rollouts:
        episode = rollout.episode
        outcome = {"success": False, "success_step": None, "end": "horizon"} if fails(rollout) else {}
        settings = visual_settings_json(VisualSettings(brightness=1.1))
        name = f"{episode.rollout_id}/{probe}"
        named = {"rollout_id": name, "visual_probe": probe, "visual_settings": settings}
        made.append(replace(rollout, episode=replace(episode, **named, **outcome)))  # type: ignore[arg-type]
    return made


def evaluation(policy: str, fails: Fails) -> list[Rollout]:
    """24 pairs without a probe, in 5 of 6 references and 3 of 24 conflicts the goal is reached; the same under V2."""
    plain = small_evaluation(policy, prompts=[Prompt.P0])
    return [*plain, *seen_under(VisualProbe.V2, plain, fails)]


def write_both(root: Path) -> Path:
    """A policy that collapses under V2, and one that fails in conflicts only."""
    write_dataset(root / "collapses", evaluation("collapses", everywhere))
    write_dataset(root / "careful", evaluation("careful", in_conflicts))
    return root


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_both(tmp_path_factory.mktemp("probed"))


@pytest.fixture(scope="module")
def scores(folder: Path) -> Scores:
    return score(folder, supplementary=True)


def effect(scores: Scores, policy: str) -> dict[str, dict[str, float]]:
    rows = [row for row in scores.table("probe_effect").to_pylist() if row["policy"] == policy]
    return {row["measure"]: row for row in rows}


def test_tables_of_pairs_without_a_probe_know_nothing_of_the_others(scores: Scores, tmp_path: Path) -> None:
    for policy in ("careful", "collapses"):
        write_dataset(tmp_path / policy, small_evaluation(policy, prompts=[Prompt.P0]))
    plain = score(tmp_path, supplementary=True)
    for name in set(table_names(plain)) - {"behaviour", "behaviour-by-task", "behaviour-correlation"}:
        assert text_table(scores, name).rows == text_table(plain, name).rows
    assert set(text_table(plain, "behaviour").rows) <= set(text_table(scores, "behaviour").rows)
    of_probes = {"visual-probe", "language-probe", "probe-effect"}
    assert of_probes & set(table_names(plain)) == set()
    assert of_probes <= set(table_names(scores))


def test_each_level_has_a_row_and_the_other_axis_is_held_at_none(scores: Scores) -> None:
    rows = [row for row in scores.table("visual_probe").to_pylist() if row["policy"] == "careful"]
    assert [(row["visual_probe"], row["n"]) for row in rows] == [("V0", 24), ("V2", 24)]
    assert [row["PCSR"] for row in rows] == [pytest.approx(20 / 24)] * 2
    assert [row["RGSR"] for row in rows] == [0.125, 0.0]
    assert set(scores.table("language_probe")["language_probe"].to_pylist()) == {"W0"}


def test_a_policy_that_collapses_is_not_taken_for_one_that_is_careful(scores: Scores) -> None:
    collapses, careful = effect(scores, "collapses"), effect(scores, "careful")
    assert collapses["RGSR"]["difference"] == careful["RGSR"]["difference"] == -0.125
    assert careful["PCSR"]["difference"] == 0.0
    assert collapses["PCSR"]["difference"] == pytest.approx(-20 / 24)
    assert careful["selectivity"]["difference"] == -0.125
    assert collapses["selectivity"]["difference"] == pytest.approx(20 / 24 - 3 / 24)
    assert careful["TAR"]["difference"] == 0.0
    assert careful["RGSR"]["n"] == 24


def test_only_pairs_with_a_counterpart_are_compared(tmp_path: Path) -> None:
    plain = small_evaluation("careful", prompts=[Prompt.P0])
    fewer = [made for made in plain if made.episode.init_state == 0]
    found = score(write_dataset(tmp_path / "a", [*fewer, *seen_under(VisualProbe.V4, plain, in_conflicts)]))
    assert effect(found, "careful")["PCSR"]["n"] == 12
    alone = score(write_dataset(tmp_path / "b", seen_under(VisualProbe.V4, plain, everywhere)))
    assert (alone.pairs.num_rows, alone.probed.num_rows, alone.table("probe_effect").num_rows) == (0, 24, 0)
    assert alone.table("visual_probe")["n"].to_pylist() == [24]


def test_a_language_probe_is_compared_like_a_visual_one(tmp_path: Path) -> None:
    plain = small_evaluation("careful", prompts=[Prompt.P0])
    reworded = []
    for made in plain:
        e = made.episode
        ids = {name: f"{getattr(e, name)}/W2" for name in ("rollout_id", "instance_id", "pair_id")}
        reworded.append(replace(made, episode=replace(e, **ids, language_probe=LanguageProbe.W2)))  # type: ignore[arg-type]
    found = score(write_dataset(tmp_path / "a", [*plain, *reworded]))
    (probe,) = {(row["language_probe"], row["visual_probe"]) for row in found.table("probe_effect").to_pylist()}
    assert probe == ("W2", "V0")
    assert found.table("language_probe")["language_probe"].to_pylist() == ["W0", "W2"]
    assert text_table(found, "probe-effect").rows[0][:4] == ("careful", "P0", "W2", "PCSR")


def test_tables_are_printed_by_either_spelling(scores: Scores) -> None:
    printed = io.StringIO()
    for name in ("visual-probe", "visual_probe", "probe_effect"):
        print_table(scores, name, Console(file=printed, width=200))
    assert printed.getvalue().count("By visual probe") == 2
    assert "selectivity" in printed.getvalue()


def test_the_scores_file_keeps_what_probes_changed(scores: Scores, tmp_path: Path) -> None:
    file = scores.write(tmp_path / "scores.json")
    content = json.loads(file.read_text())
    assert len(content["tables"]["visual_probe"]) == 4
    assert [row["measure"] for row in content["probe_effect"]][:2] == ["PCSR", "RGSR"]
    assert read_scores(file).to_json() == file.read_text()


def test_policies_are_compared_level_by_level(folder: Path) -> None:
    careful, collapses = (score(folder / name) for name in ("careful", "collapses"))
    compared = compare_policies(careful, collapses)
    pcsr = [row for row in compared.table.to_pylist() if row["measure"] == "PCSR"]
    assert [(row["visual_probe"], row["n"]) for row in pcsr] == [("V0", 24), ("V2", 24)]
    assert [row["difference"] for row in pcsr] == [0.0, pytest.approx(-20 / 24)]
    assert list(dict.fromkeys(row[0] for row in comparison_table(compared).rows)) == ["P0", "P0 V2"]


def test_probes_under_a_prompt_of_ones_own_come_after_the_built_in_ones(tmp_path: Path) -> None:
    made = small_evaluation("a", prompts=["P0", "Careful"])
    probed = seen_under(VisualProbe.V1, made, in_conflicts)
    found = score(write_dataset(tmp_path / "a", [*made, *probed]))
    assert list(dict.fromkeys(found.table("probe_effect")["prompt"].to_pylist())) == ["P0", "Careful"]
    compared = compare_policies(found, found)
    assert list(dict.fromkeys(compared.table["prompt"].to_pylist())) == ["P0", "Careful"]


def test_policies_without_a_level_in_common_are_not_compared(tmp_path: Path) -> None:
    plain = score(write_dataset(tmp_path / "a", small_evaluation("a", prompts=[Prompt.P0])))
    probed = seen_under(VisualProbe.V1, small_evaluation("b", prompts=[Prompt.P0]), in_conflicts)
    with pytest.raises(InvalidInputError, match="share no case, prompt condition, probe and initial state"):
        compare_policies(plain, score(write_dataset(tmp_path / "b", probed)))
