"""Controls in a task release: read as an arm of their own, described beside their cases, and judged valid."""

from __future__ import annotations

import re
import shutil
import sys
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml
from datasets import load_dataset

from conflictvla.builders.cases.case import Control
from conflictvla.builders.cases.check import check_release, judge
from conflictvla.builders.cases.instances import conflict_instance, control_instance, reference_instance
from conflictvla.builders.probes.dataset import write_probes
from conflictvla.builders.probes.instances import probe_instances
from conflictvla.builders.record_fields import field_values
from conflictvla.builders.tasks_dataset.columns import CONFIGS, CONTROLS, PROBES, columns_of, features_of
from conflictvla.builders.tasks_dataset.reading import has_controls, load_instances, load_tasks, packaged_tasks
from conflictvla.builders.tasks_dataset.writing import write_tasks
from conflictvla.cli.app import main
from conflictvla.eval.submissions.publish import plan_publication
from conflictvla.toolkit.errors import DatasetError, NotFoundError
from conflictvla.toolkit.language.plan_json import plan_from_json
from conflictvla.toolkit.premises import check
from conflictvla.toolkit.prompts import RELEASED
from conflictvla.toolkit.records import Arm, Instance, Prompt

from ...toolkit.goal_scene import measured_facts
from ...twins import BOWL_TASK, TWINS, twins, write_twins
from ..file_hashes import file_hashes


@pytest.fixture(scope="module")
def release(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_twins(tmp_path_factory.mktemp("twins") / "release")


@pytest.fixture
def copy(release: Path, tmp_path: Path) -> Path:
    """One that is safe to damage."""
    return shutil.copytree(release, tmp_path / "copy")


def of_arm(release: Path, arm: Arm) -> list[Instance]:
    return [instance for instance in load_instances(release) if instance.arm is arm]


def test_a_control_is_its_case_with_other_words_and_no_violated_premise(release: Path) -> None:
    controls, conflicts = of_arm(release, Arm.CONTROL), of_arm(release, Arm.CONFLICT)

    assert len(controls) == len(conflicts) == len(RELEASED) * len(TWINS)
    for control, conflict in zip(controls, conflicts, strict=True):
        assert control.instance_id == f"{conflict.case_id}/control/{conflict.prompt}"
        assert control.factors == ()
        assert conflict.factors != ()
        own = {"arm", "instance_id", "instruction", "prompt_text", "plan", "factors", "horizon"}
        assert conflict.instruction not in str(field_values(control))
        assert control == replace(conflict, **{name: getattr(control, name) for name in own})
        assert control.instruction != conflict.instruction
    assert len({instance.instance_id for instance in load_instances(release)}) == 2 * len(controls) + 6


def test_controls_come_after_references_and_conflicts(release: Path) -> None:
    arms = [instance.arm for instance in load_instances(release)]

    assert arms == sorted(arms, key=list(Arm).index)


def test_the_row_of_a_control_says_which_words_differ(release: Path) -> None:
    rows = {row["instruction"]: row for row in load_tasks(CONTROLS, release).to_list()}

    black, beside = (
        rows["put the black bowl on the plate"],
        rows["put the bowl on the plate that is next to the cabinet"],
    )
    assert black["differing_words"] == [{"case": "red", "control": "black"}]
    assert (black["case_word_count"], black["control_word_count"], black["repairs_to_base"]) == (7, 7, False)
    assert beside["differing_words"] == [{"case": "teapot", "control": "cabinet"}]
    assert black["review"] == "unreviewed"


def test_the_config_has_the_columns_of_instances_and_its_own(release: Path) -> None:
    own = ["differing_words", "case_word_count", "control_word_count", "repairs_to_base"]

    assert list(columns_of(CONTROLS)) == [*columns_of("instances"), *own]
    assert load_tasks(CONTROLS, release).features == features_of(CONTROLS)


def test_the_card_names_the_config_so_that_the_hub_loads_it(release: Path, tmp_path: Path) -> None:
    card = (release / "README.md").read_text(encoding="utf-8")

    header = yaml.safe_load(card.split("---")[1])
    assert [config["config_name"] for config in header["configs"]] == [*CONFIGS, CONTROLS]
    assert "has 7 of the cases with their conflict repaired" in " ".join(card.split())
    loaded = load_dataset(str(release), CONTROLS, split="test", cache_dir=str(tmp_path))
    assert loaded["instance_id"] == load_tasks(CONTROLS, release)["instance_id"]


def test_a_release_without_controls_has_nothing_of_them(tmp_path: Path) -> None:
    write_tasks(twins()[0], tmp_path / "release")

    assert not has_controls(tmp_path / "release")
    assert not {"control", CONTROLS} & set((tmp_path / "release" / "README.md").read_text(encoding="utf-8").split())
    assert {instance.arm for instance in load_instances(tmp_path / "release")} == {Arm.REFERENCE, Arm.CONFLICT}
    with pytest.raises(DatasetError, match=r"a task release without controls, controls/test\.parquet is missing"):
        load_tasks(CONTROLS, tmp_path / "release")


def test_a_control_of_no_case_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    cases, (first, *_) = twins()

    with pytest.raises(NotFoundError, match="a control is of the case 'nothing', which the release does not have"):
        write_tasks(cases, tmp_path / "release", [replace(first, case_id="nothing")])
    assert list(tmp_path.iterdir()) == []


def test_a_conflict_among_the_controls_is_refused(copy: Path) -> None:
    file = copy / CONTROLS / "test.parquet"
    table, conflicts = pq.read_table(file), pq.read_table(copy / "instances" / "test.parquet")
    column = table.column_names.index("factors")
    pq.write_table(table.set_column(column, table.field(column), conflicts["factors"]), file)

    with pytest.raises(DatasetError, match=r"/control/P0' is a conflict by its columns .*, among controls; write it"):
        load_instances(copy)


def test_cases_without_factors_are_refused_and_not_taken_for_controls(copy: Path) -> None:
    file = copy / "instances" / "test.parquet"
    table = pq.read_table(file)
    column = table.column_names.index("factors")
    nothing = pa.array([[]] * table.num_rows, table.field(column).type)
    pq.write_table(table.set_column(column, table.field(column), nothing), file)

    with pytest.raises(DatasetError, match="is a control by its columns case_id and factors, among instances"):
        load_instances(copy)


def test_the_checker_finds_nothing_wrong_with_the_controls(release: Path) -> None:
    assert check_release(load_instances(release), 2) == ()


@pytest.mark.slow
def test_the_checker_finds_nothing_wrong_with_the_controls_in_every_initial_state(release: Path) -> None:
    assert check_release(load_instances(release), 50) == ()


def test_a_control_that_repairs_nothing_is_told_its_premise() -> None:
    cases, controls = twins()
    conflict = cases[0].candidate
    assert check(plan_from_json(conflict.plan), measured_facts(BOWL_TASK))
    unrepaired = Control(case_id=cases[0].case_id, plan=conflict.plan, instruction=conflict.instruction)
    found = judge(_instance(unrepaired), measured_facts(BOWL_TASK))
    assert found is not None
    assert found.startswith("the control is not valid: exists(teapot), none under any of the names")
    for words in (conflict.instruction, "put the thing over there"):
        assert judge(_instance(replace(controls[0], instruction=words)), measured_facts(BOWL_TASK)) == (
            "the plan is not what the instruction says"
        )


def _instance(control: Control) -> Instance:
    (case,) = (case for case in twins()[0] if case.case_id == control.case_id)
    conflict, reference = conflict_instance(case, Prompt.P0), reference_instance(case, Prompt.P0)
    return control_instance(conflict, reference, plan=control.plan, instruction=control.instruction)


def test_probes_are_added_to_a_release_and_its_controls_stay(release: Path, tmp_path: Path) -> None:
    instances = [i for i in load_instances(release) if i.base_task == "put_the_bowl_on_the_plate"]
    probes = probe_instances(instances, lambda _suite, _name: measured_facts(BOWL_TASK))
    assert {probe.instance.arm for probe in probes} == {Arm.REFERENCE, Arm.CONFLICT}

    write_probes(probes, release, tmp_path / "probed")

    hashes = file_hashes(release)
    del hashes["README.md"]
    assert hashes.items() <= file_hashes(tmp_path / "probed").items()
    header = yaml.safe_load((tmp_path / "probed" / "README.md").read_text(encoding="utf-8").split("---")[1])
    assert [config["config_name"] for config in header["configs"]] == [*CONFIGS, CONTROLS, PROBES]


def test_controls_are_published_with_their_release(release: Path, copy: Path) -> None:
    version = load_tasks(path=release)["tasks_version"][0]
    planned = plan_publication(release, repo_id="someone/tasks", version=version)
    assert "controls/test.parquet" in {file.path for file in planned.files}
    (copy / CONTROLS / "test.parquet").write_bytes(b"")
    with pytest.raises(DatasetError, match=r"controls/test\.parquet: cannot be read as tasks"):
        plan_publication(copy, repo_id="someone/tasks", version=version)


def test_a_case_is_shown_with_its_control(
    release: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    case = "libero_goal/put_the_bowl_on_the_plate/grounding/L1/01"
    monkeypatch.setattr(sys, "argv", ["conflictvla", "tasks", "show", case, "--tasks", str(release)])
    with pytest.raises(SystemExit):
        main()

    shown = capsys.readouterr().out
    assert shown.startswith("put the red bowl on the plate\n")
    assert re.search(r"\n +control  put the black bowl on the plate\n", shown)


def test_the_packaged_release_is_read_as_it_is() -> None:
    expected = {Arm.REFERENCE, Arm.CONFLICT} | ({Arm.CONTROL} if has_controls() else set())

    assert {instance.arm for instance in load_instances(packaged_tasks())} == expected


def test_a_control_has_the_horizon_of_its_own_plan() -> None:
    case = next(case for case in twins()[0] if len(plan_from_json(case.candidate.plan).steps) > 1)
    conflict, reference = conflict_instance(case, Prompt.P0), reference_instance(case, Prompt.P0)

    short = control_instance(conflict, reference, plan=reference.plan, instruction=reference.instruction)
    long = control_instance(conflict, reference, plan=conflict.plan, instruction=conflict.instruction)
    assert short.horizon == reference.horizon < conflict.horizon == long.horizon
