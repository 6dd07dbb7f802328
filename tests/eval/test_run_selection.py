"""A run without a choice is the full evaluation; each named part is what it says, and what is missing is named."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from conflictvla.builders.cases.instances import control_instance
from conflictvla.builders.tasks_dataset.reading import load_instances, load_lite_cases, packaged_tasks
from conflictvla.builders.tasks_dataset.writing import instance_row, write_config
from conflictvla.eval.recordings.reading import read_rollouts
from conflictvla.eval.run_selection import FULL_INIT_STATES, RunSelection
from conflictvla.toolkit.errors import DatasetError, InvalidInputError
from conflictvla.toolkit.records import Arm, Prompt

from .in_process import conflictvla

ONE = "libero_goal/turn_on_the_stove/grounding/L1/00*"


def test_without_a_choice_a_run_is_the_full_evaluation_of_14530_rollouts() -> None:
    instances = RunSelection().instances()
    assert len(instances) * len(FULL_INIT_STATES) == 14_530
    counts = Counter((i.arm, i.prompt) for i in instances)
    assert counts == {
        (Arm.REFERENCE, Prompt.P0): 40,
        (Arm.REFERENCE, Prompt.P1): 40,
        (Arm.CONFLICT, Prompt.P0): 1413,
        (Arm.CONFLICT, Prompt.P1): 1413,
    }


def test_lite_is_its_160_cases_and_the_references_of_all_base_tasks() -> None:
    instances = RunSelection(lite=True, prompts=(Prompt.P0,)).instances()
    assert Counter(i.arm for i in instances) == {Arm.REFERENCE: 40, Arm.CONFLICT: 160}
    assert {i.case_id for i in instances if i.arm is Arm.CONFLICT} == load_lite_cases()
    part = RunSelection(lite=True, cases="libero_goal/*").instances()
    assert Counter(i.arm for i in part) == {Arm.REFERENCE: 20, Arm.CONFLICT: 80}


def test_references_only_leaves_every_conflict_out() -> None:
    assert len(RunSelection(references_only=True).instances()) == 80
    of_suite = RunSelection(references_only=True, cases="libero_goal/*", prompts=(Prompt.P1,)).instances()
    assert [(i.arm, i.suite, i.prompt) for i in of_suite] == [(Arm.REFERENCE, "libero_goal", Prompt.P1)] * 10


def test_tasks_without_cases_have_their_references_run_and_nothing_else(tmp_path: Path) -> None:
    for config in ("instances", "cases", "references"):
        table = pq.read_table(packaged_tasks() / config / "test.parquet")
        (tmp_path / config).mkdir()
        pq.write_table(table if config == "references" else table.slice(0, 0), tmp_path / config / "test.parquet")
    assert len(RunSelection(references_only=True, tasks=tmp_path).instances()) == 80
    with pytest.raises(InvalidInputError, match="these tasks have no cases; --references-only runs what they have"):
        RunSelection(tasks=tmp_path).instances()


@pytest.fixture
def release(tmp_path: Path) -> Path:
    """The packaged release with a control of each case of one base task: here its reference's own words."""
    folder = tmp_path / "release"
    folder.mkdir()
    for config in ("instances", "cases", "references"):
        (folder / config).symlink_to(packaged_tasks() / config)
    known = {i.instance_id: i for i in load_instances()}
    controls = [
        control_instance(i, known[i.pair_id], plan=known[i.pair_id].plan, instruction=i.base_instruction)
        for i in known.values()
        if i.arm is Arm.CONFLICT and i.base_task == "turn_on_the_stove"
    ]
    write_config("controls", [instance_row(control, "unreviewed") for control in controls], folder)
    return folder


def test_controls_join_where_the_release_has_them_and_are_recorded_as_such(release: Path, tmp_path: Path) -> None:
    instances = RunSelection(cases=ONE, controls=True, tasks=release).instances()
    assert [(i.arm, i.prompt) for i in instances] == [
        (arm, prompt) for prompt in (Prompt.P0, Prompt.P1) for arm in (Arm.REFERENCE, Arm.CONFLICT, Arm.CONTROL)
    ]
    run = ("run", "--policy", "refuse", "--cases", ONE, "--prompts", "P0", "--init-states", "0", "--controls")
    done = conflictvla(*run, "--tasks", release, "--out", tmp_path / "out")
    assert done.returncode == 0, done.stderr
    records = read_rollouts(tmp_path / "out" / "rollouts" / "refuse").records()
    assert sorted(record.arm for record in records) == [Arm.CONFLICT, Arm.CONTROL, Arm.REFERENCE]


def test_controls_of_a_release_without_them_are_refused_in_one_line(tmp_path: Path) -> None:
    with pytest.raises(
        DatasetError,
        match=r"a task release without controls, controls/test\.parquet is missing; leave --controls out, ",
    ):
        RunSelection(controls=True).instances()
    done = conflictvla("run", "--policy", "refuse", "--controls", "--out", tmp_path / "out")
    assert (done.returncode, len(done.stderr.strip().splitlines())) == (2, 1)
    assert not (tmp_path / "out").exists()


def test_choices_that_leave_nothing_or_exclude_each_other_are_refused() -> None:
    with pytest.raises(InvalidInputError, match="--references-only leaves out what --controls adds"):
        RunSelection(controls=True, references_only=True).instances()
    other = next(str(i.case_id) for i in load_instances() if i.case_id and i.case_id not in load_lite_cases())
    for references_only in (False, True):
        with pytest.raises(InvalidInputError, match="the lite selection has none of --cases; leave one of them out"):
            RunSelection(lite=True, cases=other, references_only=references_only).instances()


def test_several_seeds_are_run_at_once_and_pairs_stay_within_a_seed(tmp_path: Path) -> None:
    run = ("run", "--policy", "noisy", "--cases", ONE, "--prompts", "P0", "--init-states", "0", "--seeds", "0-1,7")
    done = conflictvla(*run, "--out", tmp_path / "out")
    assert done.returncode == 0, done.stderr
    assert "6 rollouts" in done.stdout
    records = read_rollouts(tmp_path / "out" / "rollouts" / "noisy").records()
    assert Counter((record.arm, record.seed) for record in records) == {
        (arm, seed): 1 for arm in (Arm.REFERENCE, Arm.CONFLICT) for seed in (0, 1, 7)
    }
    scored = conflictvla("score", tmp_path / "out")
    assert scored.returncode == 0, scored.stderr
    wrong = conflictvla(*run[:-1], "2-0", "--out", tmp_path / "out2")
    assert (wrong.returncode, "--seeds '2-0' is not a list of numbers" in wrong.stderr) == (2, True)
