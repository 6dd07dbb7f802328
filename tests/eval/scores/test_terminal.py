"""Tables in the terminal: at 80 columns every head and every value is whole, whatever policies and tasks are called."""

from __future__ import annotations

import io
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from conflictvla.builders.rollouts.schema import Rollout
from conflictvla.eval.analyses.analysis import Cell
from conflictvla.eval.analyses.registry import analyses
from conflictvla.eval.analyses.tables.measures import GROUPINGS
from conflictvla.eval.scores.comparison import compare_policies, comparison_table
from conflictvla.eval.scores.scores import Scores, score
from conflictvla.eval.scores.terminal import print_table, print_text_table
from conflictvla.eval.scores.text_tables import TextTable, text_table
from conflictvla.toolkit.records import Arm, Prompt, VisualProbe

from ..analyses.test_probe_effects import everywhere, seen_under
from ..synthetic_rollouts import small_evaluation, with_controls, write_dataset

LONG_NAME = "my-finetuned_openvla-oft_on_libero_spatial-v2"
LONG_TASK = "put_both_the_alphabet_soup_and_the_tomato_sauce_in_the_basket"


def refusing(rollout: Rollout) -> Rollout:
    """The same rollout, refused at its end."""
    refusal = {"refusal_kind": "question", "refusal_text": "which?", "refusal_step": len(rollout.frames["action"]) - 2}
    outcome = {"end": "refused", "success": False, "success_step": None}
    return replace(rollout, episode=replace(rollout.episode, **refusal, **outcome))  # type: ignore[arg-type]


def evaluation(policy: str) -> list[Rollout]:
    """An evaluation that gives rows to nearly every table: controls, a probe, refusals and repeats."""
    rollouts = [
        replace(r, episode=replace(r.episode, base_task=LONG_TASK)) if r.episode.base_task == "pick_up_the_milk" else r
        for r in with_controls(small_evaluation(policy))
    ]
    probed = seen_under(VisualProbe.V2, [r for r in rollouts if r.episode.prompt == Prompt.P0], everywhere)
    repeats = [
        replace(r, episode=replace(r.episode, seed=8, rollout_id=f"{r.episode.rollout_id}/8"))
        for r in rollouts
        if r.episode.arm is Arm.REFERENCE
    ]
    asked = [refusing(r) if r.episode.arm is Arm.CONFLICT and r.episode.init_state else r for r in rollouts]
    return [*asked, *probed, *repeats]


@pytest.fixture(scope="module")
def scores(tmp_path_factory: pytest.TempPathFactory) -> Scores:
    root = tmp_path_factory.mktemp("run")
    for policy in ("fail_persist", LONG_NAME):
        write_dataset(root / policy, evaluation(policy))
    return score(root, supplementary=True)


def printed(scores: Scores, name: str, width: int) -> str:
    out = io.StringIO()
    print_table(scores, name, Console(file=out, width=width))
    return out.getvalue()


def numbers(table: TextTable) -> set[str]:
    """Values of the columns of numbers, and their words where they have several."""
    cells: list[Cell] = [cell for row in table.cells for cell in row[table.labels :]]
    return {word.strip("()") for cell in cells for word in cell.value.split()}


@pytest.mark.parametrize("name", [analysis.slug for analysis in analyses()])
def test_every_table_has_its_heads_and_values_whole_at_80_columns(scores: Scores, name: str) -> None:
    table = text_table(scores, name)
    text = printed(scores, name, 80)
    words = set(text.translate(str.maketrans("*▲▼()", "     ")).split())
    heads = {word for head in table.header for word in head.split()}
    if table.name.replace("-", "_") in GROUPINGS:  # its policies stand above their groups, the prompt in the title
        heads -= {"policy", "prompt"}
    assert "…" not in text
    assert heads <= words
    assert numbers(table) <= words
    assert max(map(len, text.splitlines())) <= 80


def test_where_there_is_room_each_row_is_one_line(scores: Scores) -> None:
    wide = printed(scores, "detection", 200).splitlines()
    (row,) = (line for line in wide if "fail_persist" in line and "P0" in line and "either" in line)
    assert "(" in row


def test_comparisons_are_whole_too(tmp_path: Path) -> None:
    sides = [score(write_dataset(tmp_path / name, evaluation(name))) for name in ("fail_persist", LONG_NAME)]
    table = comparison_table(compare_policies(*sides))
    out = io.StringIO()
    print_text_table(table, Console(file=out, width=80))
    assert "…" not in out.getvalue()
    assert numbers(table) <= set(out.getvalue().translate(str.maketrans("()", "  ")).split())
