"""The dataset of tasks: its schema, its ways in, and its refusals."""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from datasets import ClassLabel, Features, Value, load_dataset

from conflictvla.builders.cases.case import Candidate, Case, content_hash
from conflictvla.builders.cases.instances import plan_horizon
from conflictvla.builders.probes.dataset import card_with_probes
from conflictvla.builders.probes.instances import LEVELS, ProbeInstance
from conflictvla.builders.release_folder import check_writable
from conflictvla.builders.tasks_dataset.card import task_card
from conflictvla.builders.tasks_dataset.columns import CONFIGS
from conflictvla.builders.tasks_dataset.reading import load_instances, load_tasks, packaged_tasks
from conflictvla.builders.tasks_dataset.writing import write_tasks
from conflictvla.toolkit.errors import DatasetError, InvalidInputError, NotFoundError
from conflictvla.toolkit.language.plan_json import plan_from_json, plan_to_json
from conflictvla.toolkit.libero.base_tasks import base_task
from conflictvla.toolkit.prompts import BUILT_IN, PLACEBO, PREMISE_CHECK, RELEASED
from conflictvla.toolkit.records import HORIZONS, PROTOCOL_VERSION, SUITES, Arm, Family, Level, Prompt

from ..file_hashes import file_hashes

INSTANCES = load_instances()
REFERENCES = {i.instance_id: i for i in INSTANCES if i.arm is Arm.REFERENCE}
CONFLICTS = [i for i in INSTANCES if i.arm is Arm.CONFLICT]
COLUMNS = {
    "instance_id",
    "case_id",
    "pair_id",
    "suite",
    "base_task",
    "base_task_index",
    "base_instruction",
    "instruction",
    "prompt",
    "prompt_text",
    "prompt_version",
    "family",
    "level",
    "operator",
    "plan",
    "factors",
    "targets",
    "reference_goal",
    "bddl_file",
    "horizon",
    "review",
    "lite",
    "tasks_version",
    "protocol_version",
}


def _released(count: int) -> list[Case]:
    """Some of the shipped cases, as the builder had them."""
    cases = []
    for i in [i for i in CONFLICTS if i.prompt == Prompt.P0][:count]:
        assert i.operator is not None
        assert i.family is not None
        assert i.level is not None
        candidate = Candidate(
            plan=i.plan,
            instruction=i.instruction,
            operator=i.operator,
            family=i.family,
            level=i.level,
            factors=i.factors,
        )
        base_plan = REFERENCES[i.pair_id].plan
        task = base_task(i.suite, i.base_task)
        cases.append(
            Case(case_id=str(i.case_id), task=task, base_plan=base_plan, targets=i.targets, candidate=candidate)
        )
    return cases


@pytest.fixture
def release(tmp_path: Path) -> Path:
    """A small release of its own, safe to damage."""
    folder = tmp_path / "release"
    write_tasks(_released(5), folder)
    return folder


@pytest.mark.parametrize("config", CONFIGS)
def test_columns_are_those_of_the_specification(config: str) -> None:
    without = {"instance_id", "pair_id", "prompt", "prompt_text", "prompt_version"} if config == "cases" else set()

    assert set(load_tasks(config).column_names) == COLUMNS - without


def test_closed_sets_are_class_labels() -> None:
    features = load_tasks().features

    assert features["suite"] == ClassLabel(names=list(SUITES))
    assert features["family"] == ClassLabel(names=list(Family))
    assert features["level"] == ClassLabel(names=list(Level))
    assert features["prompt"] == features["prompt_text"] == Value("string")
    assert features["base_task_index"] == Value("int32")
    assert features["factors"].feature["margin"] == Value("float64")


def test_every_case_is_there_once_under_each_prompt_and_every_base_task_too() -> None:
    cases, instances, references = (load_tasks(config) for config in ("cases", "instances", "references"))

    assert len(instances) == 2 * len(cases)
    assert Counter(i.prompt for i in CONFLICTS) == {prompt: len(cases) for prompt in RELEASED}
    assert sorted(cases["case_id"]) == sorted({str(i.case_id) for i in CONFLICTS})
    assert len(references) == 2 * len({i.base_task for i in CONFLICTS}) == 80


def test_default_config_is_the_instances() -> None:
    assert load_tasks().to_list() == load_tasks("instances").to_list()


@pytest.mark.parametrize("config", CONFIGS)
def test_hub_loader_gives_the_same_rows_and_features(config: str, tmp_path: Path) -> None:
    loaded = load_dataset(str(packaged_tasks()), config, split="test", cache_dir=str(tmp_path))

    assert loaded.features == load_tasks(config).features
    assert loaded.to_list() == load_tasks(config).to_list()


def test_hub_loader_gives_the_instances_where_no_config_is_named(tmp_path: Path) -> None:
    loaded = load_dataset(str(packaged_tasks()), split="test", cache_dir=str(tmp_path))

    assert loaded["instance_id"][:3] == load_tasks()["instance_id"][:3]


def test_ids_are_unique_and_made_of_what_they_name() -> None:
    assert len({i.instance_id for i in INSTANCES}) == len(INSTANCES)
    for i in CONFLICTS:
        number = str(i.case_id).rpartition("/")[2].partition("-")[0]
        expected = f"{i.suite}/{i.base_task}/{i.family}/{i.level}/{number}-{content_hash(i.plan, i.instruction)}"
        assert i.case_id == expected
        assert i.instance_id == f"{expected}/{i.prompt}"
        assert number.isdigit()


def test_every_conflict_is_paired_with_the_reference_of_its_task_and_prompt() -> None:
    for conflict in CONFLICTS:
        reference = REFERENCES[conflict.pair_id]
        assert (reference.suite, reference.base_task, reference.prompt) == (
            conflict.suite,
            conflict.base_task,
            conflict.prompt,
        )
        assert conflict.base_instruction == reference.instruction
        assert conflict.targets == reference.targets != ()


def test_horizons_grow_with_the_steps_of_the_plan_and_are_never_less_than_the_suites() -> None:
    grown = 0
    for conflict in CONFLICTS:
        reference = REFERENCES[conflict.pair_id]
        steps, base_steps = (len(plan_from_json(i.plan).steps) for i in (conflict, reference))
        assert reference.horizon == HORIZONS[reference.suite]
        assert conflict.horizon == max(reference.horizon, math.ceil(reference.horizon * steps / base_steps))
        grown += conflict.horizon > reference.horizon
    assert grown > 0


@pytest.mark.parametrize(("steps", "base_steps", "horizon"), [(1, 1, 5), (1, 2, 5), (2, 1, 10), (3, 2, 8), (2, 3, 5)])
def test_a_plan_horizon_is_rounded_up(steps: int, base_steps: int, horizon: int) -> None:
    assert plan_horizon(5, steps, base_steps=base_steps) == horizon


def test_both_prompts_of_a_case_differ_in_nothing_but_the_prompt() -> None:
    def content(i):
        return replace(i, instance_id="", pair_id="", prompt="", prompt_text="", prompt_version="")

    by_case = {prompt: {i.case_id: content(i) for i in CONFLICTS if i.prompt == prompt} for prompt in RELEASED}

    assert by_case[Prompt.P0] == by_case[Prompt.P1]


def test_reference_carries_the_benchmarks_own_words_and_no_conflict() -> None:
    for reference in REFERENCES.values():
        task = base_task(reference.suite, reference.base_task)
        assert reference.instruction == reference.base_instruction == task.instruction
        assert (reference.case_id, reference.family, reference.level, reference.operator) == (None,) * 4
        assert reference.factors == ()
        assert reference.pair_id == reference.instance_id


@pytest.mark.parametrize("config", ["instances", "references", "probes"])
def test_every_row_holds_the_exact_string_for_the_policy(config: str) -> None:
    rows = load_tasks(config).select_columns(["instruction", "prompt", "prompt_text", "prompt_version"]).to_list()

    assert {row["prompt"] for row in rows} == set(RELEASED)
    for row in rows:
        assert row["prompt_text"] == (PREMISE_CHECK.text("") if row["prompt"] == "P1" else "") + row["instruction"]
        assert row["prompt_version"] == BUILT_IN[row["prompt"]].version


def test_the_shipped_card_shows_the_words_of_p1_and_of_the_placebo() -> None:
    card = (packaged_tasks() / "README.md").read_text(encoding="utf-8")

    assert PREMISE_CHECK.wording in card.splitlines()
    assert PLACEBO.wording in card.splitlines()


def test_rows_say_where_they_come_from_and_who_read_them() -> None:
    for row in load_tasks("cases").to_list():
        task = base_task(SUITES[row["suite"]], row["base_task"])
        assert row["bddl_file"] == task.bddl_file
        assert json.loads(row["reference_goal"]) == [list(predicate) for predicate in task.goal]
        assert re.fullmatch("accept, stage [12], automated reading", row["review"])
        assert row["protocol_version"] == PROTOCOL_VERSION
        assert plan_to_json(plan_from_json(row["plan"])) == row["plan"]


def test_written_cases_come_back_as_they_were(release: Path) -> None:
    ids = [case.case_id for case in _released(5)]

    read = load_instances(release)

    assert [i for i in read if i.arm is Arm.CONFLICT] == [i for i in CONFLICTS if i.case_id in ids]
    assert [i for i in read if i.arm is Arm.REFERENCE] == [
        REFERENCES[p] for p in dict.fromkeys(i.pair_id for i in read)
    ]


def test_same_cases_give_the_same_bytes(release: Path, tmp_path: Path) -> None:
    write_tasks(_released(5), tmp_path / "again")

    assert file_hashes(tmp_path / "again") == file_hashes(release)
    assert set(file_hashes(release)) == {"README.md", *(f"{config}/test.parquet" for config in CONFIGS)}


def test_card_counts_the_cases_and_shows_a_snippet(release: Path) -> None:
    card = (release / "README.md").read_text(encoding="utf-8")

    assert "5 conflict cases on 1 LIBERO tasks; 10 instances, each case under two prompt conditions" in " ".join(
        card.split()
    )
    assert "load_dataset(" in card
    assert "| all | " in card


def test_shipped_card_is_that_of_the_shipped_cases() -> None:
    card = (packaged_tasks() / "README.md").read_text(encoding="utf-8")
    cells = Counter((i.family, i.level) for i in CONFLICTS if i.prompt == Prompt.P0)

    for family in Family:
        row = [cells[family, level] for level in Level]
        assert f"| {family} | {' | '.join(str(count) for count in [*row, sum(row)])} |" in card


def test_shipped_card_is_what_the_templates_give() -> None:
    probes = [ProbeInstance(instance=i, substitutions=()) for i in load_instances(language=LEVELS)]
    card = (packaged_tasks() / "README.md").read_text(encoding="utf-8")

    assert card_with_probes(task_card(_released(len(CONFLICTS))), probes) == card


def test_empty_folder_is_filled_and_a_full_one_is_refused(release: Path, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    write_tasks(_released(1), tmp_path / "empty")
    before = file_hashes(release)

    with pytest.raises(InvalidInputError, match="exists and is not empty; choose another folder"):
        write_tasks(_released(1), release)

    assert len(load_tasks("cases", tmp_path / "empty")) == 1
    assert file_hashes(release) == before


@pytest.mark.parametrize("place", ["file", "file/below"])
def test_place_that_cannot_be_a_folder_is_refused_before_any_work(place: str, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("here already")

    with pytest.raises(InvalidInputError, match=r"choose another folder") as error:
        check_writable(tmp_path / place)

    assert "\n" not in str(error.value)


def test_failure_halfway_leaves_nothing_behind(tmp_path: Path) -> None:
    broken = _released(2)
    factor = replace(broken[1].candidate.factors[0], margin="wide")  # type: ignore[arg-type]
    broken[1] = replace(broken[1], candidate=replace(broken[1].candidate, factors=(factor,)))

    with pytest.raises((pa.ArrowException, TypeError, ValueError)):
        write_tasks(broken, tmp_path / "out")

    assert list(tmp_path.iterdir()) == []


def test_unknown_config_is_refused_with_the_choices() -> None:
    with pytest.raises(NotFoundError, match=r"no config 'instance'.*did you mean 'instances'"):
        load_tasks("instance")


def test_folder_without_a_release_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DatasetError, match=r"not a task release, instances/test\.parquet is missing"):
        load_tasks(path=tmp_path)


def _truncate(file: Path) -> None:
    file.write_bytes(file.read_bytes()[:-100])


def _empty(file: Path) -> None:
    file.write_bytes(b"")


def _overwrite_pages(file: Path) -> None:
    content = file.read_bytes()
    file.write_bytes(content[:4] + bytes(300) + content[304:])


def _other_table(file: Path) -> None:
    pq.write_table(pa.table({"something": [1, 2]}), file)


def _without_plan(file: Path) -> None:
    pq.write_table(pq.read_table(file).drop_columns(["plan"]), file)


@pytest.mark.parametrize("damage", [_truncate, _empty, _overwrite_pages, _other_table, _without_plan])
def test_damaged_file_is_named_in_one_line(damage: Callable[[Path], None], release: Path) -> None:
    file = release / "instances" / "test.parquet"
    damage(file)

    with pytest.raises(DatasetError) as error:
        load_instances(release)

    assert str(file) in str(error.value)
    assert "\n" not in str(error.value)
    assert "write it anew" in str(error.value)


def test_features_travel_in_the_file_itself() -> None:
    schema = pq.read_schema(packaged_tasks() / "instances" / "test.parquet")

    features = json.loads(schema.metadata[b"huggingface"])["info"]["features"]
    assert Features.from_dict(features) == load_tasks().features
