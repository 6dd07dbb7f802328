"""Language probes of a release: a further config, the rest as it was, and nothing that does not hold its word."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path

import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from datasets import ClassLabel, load_dataset

from conflictvla.builders.cases.check import judge
from conflictvla.builders.probes.instances import PROBES_VERSION, probe_instances
from conflictvla.builders.tasks_dataset.columns import CONFIGS
from conflictvla.builders.tasks_dataset.reading import has_probes, load_instances, load_tasks, packaged_tasks
from conflictvla.eval.scores.scores import score
from conflictvla.toolkit.errors import DatasetError, InvalidInputError
from conflictvla.toolkit.records import Arm, Instance, LanguageProbe, Prompt

from ...eval.in_process import Done, conflictvla
from ...toolkit.goal_scene import measured_facts
from ..file_hashes import file_hashes

LEVELS = tuple(LanguageProbe)[1:]
TASK, GOAL = "put_the_bowl_on_the_plate", "put the bowl on the plate"
OF_TASK = [i for i in load_instances() if i.base_task == TASK]
PROBES = [i for i in load_instances(language=LEVELS) if i.base_task == TASK]


@pytest.fixture
def release(tmp_path: Path) -> Path:
    """A release of one base task without probes, as it was before there were any."""
    folder = tmp_path / "release"
    for config in CONFIGS:
        table = pq.read_table(packaged_tasks() / config / "test.parquet")
        (folder / config).mkdir(parents=True)
        pq.write_table(table.filter(pc.equal(table["base_task"], TASK)), folder / config / "test.parquet")
    card = (packaged_tasks() / "README.md").read_text()
    section, licence = card.index("\n## Language probes"), card.index("\n## Licence")
    block = card.index("- config_name: probes")
    plain = card[:block] + card[card.index("---\n\n#") : section] + card[licence:]
    (folder / "README.md").write_text(plain.replace(f"tasks {PROBES_VERSION}\n", "tasks 1.0.0\n"))
    return folder


def build(out: Path, *options: str | Path) -> Done:
    return conflictvla("tasks", "build", "--out", out, *options)


def test_probes_are_added_and_every_other_file_stays_as_it_was(release: Path, tmp_path: Path) -> None:
    first, again = tmp_path / "first", tmp_path / "again"
    assert (build(first, "--probes", "W1,W2", "--tasks", release).returncode, has_probes(release)) == (0, False)

    before, after = file_hashes(release), file_hashes(first)
    assert {name for name in after if after[name] != before.get(name)} == {"README.md", "probes/test.parquet"}
    written = load_instances(first, LEVELS)
    assert written == tuple(i for i in PROBES if i.language_probe in ("W1", "W2"))
    card = (first / "README.md").read_text()
    assert f"# ConflictVLA tasks {PROBES_VERSION}\n" in card
    assert "| W2 | 2 | 1 |" in card
    loaded = load_dataset(str(first), "probes", split="test", cache_dir=str(tmp_path / "cache"))
    assert loaded.to_list() == load_tasks("probes", first).to_list()

    # Probes that are there already are written anew, to the same bytes.
    assert build(again, "--probes", "W1,W2", "--tasks", first).returncode == 0
    assert file_hashes(again) == after


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--probes", "W9"), "no language probe 'W9' in --probes"),
        (("--probes", "W0"), "no instruction has any of the levels W0"),
        (("--probes", "W1", "--suite", "libero_goal"), "leave --suite, --total and --per-cell out"),
        (("--tasks", "release"), "give --probes too"),
    ],
)
def test_wrong_use_is_one_line_and_leaves_nothing(
    release: Path, tmp_path: Path, options: tuple[str, ...], message: str
) -> None:
    given = [str(release) if option == "release" else option for option in options]
    tasks = [] if "--tasks" in given else ["--tasks", str(release)]
    done = build(tmp_path / "out", *given, *tasks)

    assert (done.returncode, message in done.stderr) == (2, True), done.stderr
    assert not (tmp_path / "out").exists()


def test_release_without_probes_says_so_where_they_are_asked_for(release: Path) -> None:
    with pytest.raises(DatasetError, match="a task release without probes"):
        load_instances(release, LEVELS)
    assert load_instances(release) == tuple(OF_TASK)


def test_plan_that_does_not_give_the_instruction_is_refused() -> None:
    altered = [replace(OF_TASK[0], instruction="put the bowl somewhere"), *OF_TASK[1:]]

    with pytest.raises(InvalidInputError, match="does not give the instruction"):
        probe_instances(altered, lambda *_: measured_facts(GOAL))


def test_both_prompts_have_the_same_words_at_every_level() -> None:
    words = {
        prompt: {(i.case_id, i.language_probe): i.instruction for i in PROBES if i.prompt == prompt}
        for prompt in Prompt
    }

    assert words[Prompt.P0] == words[Prompt.P1]
    assert len({i.instance_id for i in PROBES}) == len(PROBES)


def test_every_level_has_references_for_its_cases() -> None:
    probes = load_instances(language=LEVELS)
    references = {i.instance_id for i in probes if i.arm is Arm.REFERENCE}
    counts = Counter((i.language_probe, i.arm) for i in probes if i.prompt == Prompt.P0)

    assert {i.pair_id for i in probes} <= references
    assert [counts[level, Arm.REFERENCE] for level in LEVELS] == [40, 40, 39, 24]
    assert counts[LanguageProbe.W1, Arm.CONFLICT] == 1413
    features = load_tasks("probes").features
    assert features["language_probe"] == ClassLabel(names=list(LanguageProbe))
    assert set(load_tasks("probes")["tasks_version"]) == {PROBES_VERSION}


def test_shipped_probes_of_a_task_hold_and_tampered_ones_are_named() -> None:
    facts = measured_facts(GOAL)
    assert [i.instance_id for i in PROBES if judge(i, facts)] == []

    probe = next(i for i in PROBES if i.arm is Arm.REFERENCE and i.language_probe == "W3")
    for instruction, message in (
        (GOAL, "not the plan's at level W3"),
        ("set the dish on the dinner plate", "do not mean the same"),
        ("set the soup bowl on the stove", "not the plan's"),
    ):
        reason = judge(replace(probe, instruction=instruction), facts)
        assert reason is not None
        assert message in reason


def _case() -> Instance:
    return next(i for i in load_instances() if i.base_task == "turn_on_the_stove" and i.level == "L1")


def test_run_pairs_each_level_with_its_own_reference(tmp_path: Path) -> None:
    case = str(_case().case_id)
    done = conflictvla(
        "run",
        "--policy",
        "persist",
        "--language",
        "W0,W2",
        "--cases",
        case,
        "--prompts",
        "P0",
        "--init-states",
        "0",
        "--out",
        tmp_path,
    )
    assert done.returncode == 0, done.stderr

    scores = score(tmp_path)
    assert (scores.pairs.num_rows, scores.probed.num_rows, scores.refusals) == (1, 1, ())
    assert scores.pairs["instance_id"].to_pylist() == [f"{case}/P0"]
    assert scores.probed["instance_id"].to_pylist() == [f"{case}/P0/W2"]
    assert scores.probed["instruction"][0].as_py() not in (_case().instruction, scores.pairs["instruction"][0].as_py())
