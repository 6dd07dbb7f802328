"""Who stands where: eight policies of known kind, every column best first, and the scale's marks from real rollouts."""

from __future__ import annotations

import html
import io
import json
import math
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from conflictvla.eval.leaderboard.board import table_page
from conflictvla.eval.leaderboard.columns import COLUMNS, BoardColumn, find_column, shown_columns
from conflictvla.eval.leaderboard.listing import NARROW, board_table, controls_text
from conflictvla.eval.leaderboard.ranking import Filters, Premises, Standing, placed_entries
from conflictvla.eval.policies.scripted.agents import AGENTS
from conflictvla.eval.rollouts.jobs import Job
from conflictvla.eval.rollouts.rollout import run_rollout
from conflictvla.eval.rollouts.versions import installed_versions
from conflictvla.eval.scores.scores import score
from conflictvla.eval.statistics.intervals import Interval
from conflictvla.eval.submissions.coverage import PARTIAL, Coverage
from conflictvla.eval.submissions.results import POLICY, SCRIPTED_AGENT, Entry, result_of
from conflictvla.eval.submissions.results_file import read_results, result_json
from conflictvla.eval.submissions.submit import SubmissionSource, check_submission
from conflictvla.toolkit.records import Prompt

from ..in_process import conflictvla
from ..submissions.recorded import SCENES, SUITE, TASK, release, write
from ..synthetic_rollouts import small_evaluation, write_dataset
from .policy_kinds import KINDS, Kind, result_of_kind, write_kinds


@pytest.fixture(scope="module")
def board(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_kinds(tmp_path_factory.mktemp("kinds"))


@pytest.fixture(scope="module")
def entries(board: Path) -> tuple[Entry, ...]:
    return read_results(board)


def named(entries: tuple[Entry, ...], name: str) -> Entry:
    return next(entry for entry in entries if entry.result.policy_name == name)


def test_eight_policies_of_known_kind_stand_in_the_order_that_is_meant(entries: tuple[Entry, ...]) -> None:
    placed = placed_entries(entries, Filters())
    assert [one.entry.result.policy_name for one in placed] == list(KINDS)
    assert [one.rank for one in placed] == [1, 1, 3, 4, 5, 6, None, None]
    assert [one.standing for one in placed] == 6 * [Standing.RANKED] + 2 * [Standing.BELOW_GATE]
    responses = {one.entry.result.policy_name: one.row.response.value for one in placed}
    assert responses["full_responder"] == 1.0
    assert responses["half_responder"] == pytest.approx(0.5)
    assert responses["late_detector"] == pytest.approx(0.4)
    assert responses["persistent"] == 0.0
    assert math.isnan(responses["incapable"])


def test_rgsr_alone_would_have_put_the_incapable_and_the_fumbling_first(entries: tuple[Entry, ...]) -> None:
    rgsr = {entry.result.policy_name: entry.result.rows[0].measures["RGSR"].value for entry in entries}
    assert rgsr["incapable"] == rgsr["random"] == rgsr["fumbling_persistent"] == rgsr["full_responder"] == 0.0


def test_controls_tell_an_answer_to_premises_from_one_to_wording(entries: tuple[Entry, ...]) -> None:
    placed = {one.entry.result.policy_name: one for one in placed_entries(entries, Filters())}
    assert placed["full_responder"].premises is Premises.TOLD_FROM_WORDING
    assert placed["wording_reactive"].premises is Premises.NOT_TOLD_FROM_WORDING
    assert placed["late_detector"].premises is Premises.NO_CONTROLS
    effect = placed["full_responder"].row.premise_effect
    assert effect is not None
    assert effect.value == 1.0
    assert placed["wording_reactive"].row.value("premise_effect").value == 0.0


INCAPABLE = replace(KINDS["incapable"], answers_controls=False)


@pytest.mark.parametrize(
    ("name", "kind", "controls", "premises", "tasks", "shown"),
    [
        ("full_responder", None, None, Premises.TOLD_FROM_WORDING, 6, "controls ✓ · 24 of 24"),
        ("full_responder", None, 21, Premises.TOLD_FROM_WORDING, 6, "controls ✓ · 21 of 24"),
        ("full_responder", None, 20, Premises.TOO_FEW, 5, "controls: too few · 20 of 24"),
        ("full_responder", None, 5, Premises.TOO_FEW, 2, "controls: too few · 5 of 24"),
        ("full_responder", None, 4, Premises.TOO_FEW, 1, "controls: too few · 4 of 24"),
        ("wording_reactive", None, None, Premises.NOT_TOLD_FROM_WORDING, 6, "controls: wording · 24 of 24"),
        ("wording_reactive", None, 4, Premises.TOO_FEW, 1, "controls: too few · 4 of 24"),
        ("incapable", INCAPABLE, None, Premises.TOO_FEW, 0, "controls: too few · 24 of 24"),
        ("late_detector", None, None, Premises.NO_CONTROLS, 0, ""),
    ],
)
def test_controls_give_a_verdict_only_where_there_are_enough_and_the_row_says_how_many(
    tmp_path: Path, name: str, kind: Kind | None, controls: int | None, premises: Premises, tasks: int, shown: str
) -> None:
    result = result_of_kind(tmp_path, name, kind, controls)
    (tmp_path / "results").mkdir()
    (tmp_path / "results/a.json").write_text(result_json(result), encoding="utf-8")
    (placed,) = placed_entries(read_results(tmp_path), Filters())
    assert (placed.premises, placed.row.effect_tasks, controls_text(placed)) == (premises, tasks, shown)
    assert (placed.row.premise_effect is None) == (premises is Premises.NO_CONTROLS)
    board = conflictvla("leaderboard", "--data", tmp_path, "--terminal").stdout
    assert shown in " ".join(board.split())
    (row,) = json.loads(conflictvla("leaderboard", "--data", tmp_path, "--json").stdout)
    assert (row["controls"], row["control_pairs"]) == (premises.value, placed.row.controls)


@pytest.mark.parametrize(
    ("low", "standing"),
    [(0.0, Standing.BELOW_GATE), (0.199, Standing.BELOW_GATE), (math.nan, Standing.NO_INTERVAL)],
)
def test_a_policy_that_does_not_pass_the_gate_is_not_ranked_however_clear_its_response(
    entries: tuple[Entry, ...], low: float, standing: Standing
) -> None:
    full = named(entries, "full_responder")
    rows = tuple(
        replace(row, measures={**row.measures, "PCSR": Interval(value=0.5, low=low, high=1.0)})
        for row in full.result.rows
    )
    (placed,) = placed_entries([replace(full, result=replace(full.result, rows=rows))], Filters())
    assert (placed.standing, placed.rank) == (standing, None)


@pytest.mark.parametrize("base_tasks", [1, 2])
def test_pairs_of_a_single_base_task_are_named_as_what_keeps_a_policy_from_a_rank(
    base_tasks: int, tmp_path: Path
) -> None:
    everything = [r for r in small_evaluation(prompts=[Prompt.P0]) if r.episode.suite == "libero_goal"]
    names = sorted({r.episode.base_task for r in everything})[:base_tasks]
    scores = score(write_dataset(tmp_path / "run", [r for r in everything if r.episode.base_task in names]))
    result = result_of(scores, coverage=Coverage(kind=PARTIAL, rollouts=9, of=14_530), kind=POLICY)
    (tmp_path / "results").mkdir()
    (tmp_path / "results" / result.file_name).write_text(result_json(result))
    terminal = conflictvla("leaderboard", "--data", tmp_path, "--terminal").stdout
    for shown in (terminal, html.unescape(table_page(read_results(tmp_path), Filters()))):
        text = " ".join(shown.split())
        assert ("pairs of a single base task give PCSR no interval" in text) == (base_tasks == 1)
        assert "PCSR's interval begins below" not in text


@pytest.mark.parametrize("column", COLUMNS, ids=lambda column: column.name)
def test_every_column_sorts_best_first_within_each_standing_and_ranks_stay(
    entries: tuple[Entry, ...], column: BoardColumn
) -> None:
    wanted = find_column(column.name)
    placed = placed_entries(entries, Filters(), wanted)
    assert {one.entry.name: one.rank for one in placed} == {
        one.entry.name: one.rank for one in placed_entries(entries, Filters())
    }
    for standing in Standing:
        numbers = [wanted.number(one.entry, one.row) for one in placed if one.standing is standing]
        defined = [number for number in numbers if not math.isnan(number)]
        assert numbers[: len(defined)] == sorted(defined, reverse=wanted.highest_first)


def test_a_family_is_ranked_by_its_own_response_behind_the_same_gate(entries: tuple[Entry, ...]) -> None:
    # The half responder answers conflicts of instruction, and completes the goal under those of grounding.
    placed = {
        family: {one.entry.result.policy_name: one for one in placed_entries(entries, Filters(family=family))}
        for family in ("instruction", "grounding")
    }
    assert placed["instruction"]["half_responder"].row.response.value == 1.0
    assert placed["grounding"]["half_responder"].row.response.value == 0.0
    assert placed["grounding"]["incapable"].rank is None


def test_the_terminal_and_json_have_the_same_order_and_what_was_run(board: Path) -> None:
    done = conflictvla("leaderboard", "--data", board, "--json")
    rows = json.loads(done.stdout)
    assert [row["policy"] for row in rows] == list(KINDS)
    assert {row["coverage"] for row in rows} == {"complete"}
    assert (rows[0]["init_states"], rows[0]["seeds"], rows[0]["prompts"]) == ([0], [7], ["P0"])
    shown = conflictvla("leaderboard", "--data", board, "--terminal", "--sort", "TAR").stdout
    assert "Not ranked: PCSR's interval begins below 20%" in " ".join(shown.split())
    places = [shown.index(name[:12]) for name in ("full_responder", "late_detector", "persistent", "random")]
    assert places == sorted(places)
    wrong = conflictvla("leaderboard", "--data", board, "--terminal", "--sort", "TRA")
    assert (wrong.returncode, wrong.stderr.count("\n")) == (2, 1)
    assert "no column 'TRA' in --sort: did you mean 'TAR'" in wrong.stderr


@pytest.mark.parametrize("column", COLUMNS, ids=lambda column: column.name)
@pytest.mark.parametrize(("width", "with_intervals"), [(80, None), (120, True)])
def test_the_terminals_table_is_whole(
    entries: tuple[Entry, ...], column: BoardColumn, width: int, *, with_intervals: bool | None
) -> None:
    out = io.StringIO()
    Console(file=out, width=width).print(board_table(entries, Filters(), column, width=width))
    words, placed = out.getvalue().split(), placed_entries(entries, Filters(), column)
    shown = [one for one in shown_columns(entries) if one.name in (*NARROW, column.name)]
    assert "…" not in out.getvalue()
    assert {word for one in shown for word in one.head.split()} <= set(words)
    cells = [one.cell(place.entry, place.row) for place in placed for one in shown]
    assert Counter(cell.value for cell in cells if " " not in cell.value) <= Counter(words)
    intervals = Counter(cell.short_interval for cell in cells if cell.short_interval)
    assert intervals <= Counter(words) or not (with_intervals or intervals & Counter(words))
    assert all(place.entry.result.policy_name[:14] in out.getvalue() for place in placed)  # longer ones may be broken


def test_scripted_agents_mark_the_scale_in_a_known_order_and_are_not_ranked(tmp_path: Path) -> None:
    scene = SCENES.scene(SUITE, TASK)
    (tmp_path / "results").mkdir()
    for name in ("persist", "fail_persist", "detect_late", "refuse"):
        rollouts = [
            run_rollout(
                scene, AGENTS[name](), Job(instance=instance, init_state=0, seed=0), versions=installed_versions()
            )
            for instance in release()
        ]
        source = SubmissionSource(folder=write(tmp_path / name, rollouts, states=False), repo_id="", commit="")
        result = check_submission(source, release(), kind=SCRIPTED_AGENT).result
        (tmp_path / "results" / result.file_name).write_text(result_json(result), encoding="utf-8")
    placed = placed_entries(read_results(tmp_path), Filters())
    assert {(one.standing, one.rank) for one in placed} == {(Standing.SCALE, None)}
    response = {one.entry.result.policy_name: one.row.response.value for one in placed}
    assert [one.entry.result.policy_name for one in placed][:2] == ["refuse", "detect_late"]
    assert response["refuse"] > 0.95
    assert response["refuse"] - 0.1 > response["detect_late"] > response["fail_persist"] + 0.05
    assert response["persist"] == 0.0
    assert response["fail_persist"] < 0.05
