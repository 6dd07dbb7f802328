"""Runs that grow, are cut into shards, stopped and merged: the same dataset to the last byte as of a run in one go."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from conflictvla.eval.recordings.finding import find_datasets, find_runs
from conflictvla.eval.rollouts.jobs import Job, jobs_of_shard, parse_shard
from conflictvla.eval.rollouts.run import RunProgress
from conflictvla.eval.rollouts.run_folder.merging import finish_runs, merge_runs
from conflictvla.eval.rollouts.run_folder.settings import settings_of_records
from conflictvla.toolkit.errors import ConflictVLAError, DatasetError, InvalidInputError, PolicyError
from conflictvla.toolkit.simulation.scene_pool import ScenePool

from ...synthetic_rollouts import make_record
from .short_runs import ALL, BASE_TASKS, Seen, content, instances_of, run


@pytest.fixture(scope="module")
def one_go(scenes: ScenePool, tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    out = tmp_path_factory.mktemp("one_go")
    assert run(scenes, out).rollouts == ALL
    return content(out)


def test_a_run_that_grows_by_states_and_cases_runs_only_what_is_missing(
    scenes: ScenePool, one_go: dict[str, bytes], tmp_path: Path
) -> None:
    growing = [((BASE_TASKS[1:], [1]), 2), ((BASE_TASKS[1:], [0, 1]), 2), ((BASE_TASKS, [0, 1]), 4)]
    for (tasks, states), new in growing:
        seen = Seen()
        finished = run(scenes, tmp_path, tasks=tasks, states=states, seen=seen)
        total = 2 * len(tasks) * len(states)
        assert seen.steps == [(done, total) for done in range(total - new, total + 1)]
        assert (finished.rollouts, finished.unfinished) == (total, None)
    assert content(tmp_path) == one_go
    assert sorted(path.name for path in tmp_path.iterdir()) == ["drift"]


def test_a_finished_run_given_again_changes_nothing(
    scenes: ScenePool, one_go: dict[str, bytes], tmp_path: Path
) -> None:
    for _ in range(2):
        seen = Seen()
        finished = run(scenes, tmp_path, seen=seen)
        assert (finished.dataset, finished.rollouts) == (tmp_path / "drift", ALL)
    assert seen.steps == [(ALL, ALL)]
    assert content(tmp_path) == one_go


def test_the_last_shard_writes_the_dataset(scenes: ScenePool, one_go: dict[str, bytes], tmp_path: Path) -> None:
    seen = Seen()
    first = run(scenes, tmp_path, shard="2/2", seen=seen)
    assert seen.steps == [(done, 4) for done in range(5)]
    assert (first.dataset, first.rollouts) == (None, 0)
    assert str(first.unfinished) == (
        f"{tmp_path / 'drift'}: unfinished, 4 of 8 rollouts: give the command again that runs it"
    )
    with pytest.raises(DatasetError, match="drift: unfinished, 4 of 8 rollouts: give the command again that runs it"):
        find_datasets(tmp_path)
    with pytest.raises(InvalidInputError, match="unfinished, 4 of 8 rollouts"):
        finish_runs(tmp_path)
    assert run(scenes, tmp_path, shard="1/2").rollouts == ALL
    assert content(tmp_path) == one_go


def test_shards_have_base_tasks_as_a_whole_and_are_balanced() -> None:
    jobs = [Job(instance=instance, init_state=state, seed=0) for instance in instances_of() for state in range(5)]
    for count in (1, 2, 3, 7, 40):
        shards = [jobs_of_shard(jobs, parse_shard(f"{number}/{count}")) for number in range(1, count + 1)]
        assert sorted(map(jobs.index, (job for shard in shards for job in shard))) == list(range(len(jobs)))
        if count == 2:
            assert [{job.instance.base_task for job in shard} for shard in shards] == [{name} for name in BASE_TASKS]
        assert max(map(len, shards)) - min(map(len, shards)) <= 1
    assert jobs_of_shard([], parse_shard("1/2")) == []


@pytest.mark.parametrize("text", ["0/2", "3/2", "2", "1/", "a/b", "-1/2", "1/0"])
def test_a_shard_that_does_not_exist_is_refused(text: str) -> None:
    with pytest.raises(InvalidInputError, match="write it like 1/8"):
        parse_shard(text)


def test_other_settings_are_refused_by_a_finished_run_too(scenes: ScenePool, tmp_path: Path) -> None:
    run(scenes, tmp_path, states=[0])
    before = content(tmp_path)
    with pytest.raises(InvalidInputError, match=r"drift: was run with other policy_revision \(1 there, 2 here\); give"):
        run(scenes, tmp_path, policy="misbehaving:Revised")
    assert content(tmp_path) == before


def test_failed_rollouts_are_run_again_by_the_same_command_and_no_others(
    scenes: ScenePool, one_go: dict[str, bytes], tmp_path: Path
) -> None:
    failed = run(scenes, tmp_path, policy="misbehaving:Sulks", keep_going=True)
    listed = tmp_path / "drift.failures.jsonl"
    assert (failed.rollouts, len(failed.failures), len(listed.read_text().splitlines())) == (4, 4, 4)
    again, seen = run(scenes, tmp_path, states=[0], seen=(seen := Seen())), seen
    assert (seen.ran, again.rollouts) == (2, 6)
    assert [json.loads(line)["rollout_id"] for line in listed.read_text().splitlines()] == [
        failure.rollout_id for failure in again.failures
    ]
    assert all("/init1/" in failure.rollout_id for failure in again.failures)
    assert run(scenes, tmp_path).failures == ()
    assert content(tmp_path) == one_go


def test_a_run_killed_while_it_exchanged_the_dataset_goes_on(
    scenes: ScenePool, one_go: dict[str, bytes], tmp_path: Path
) -> None:
    """The moment between two renames, made by hand: the old dataset is aside, the new one not in its place."""
    run(scenes, tmp_path, states=[0])
    with pytest.raises(PolicyError):
        run(scenes, tmp_path, policy="misbehaving:Sulks")
    assert str(find_runs(tmp_path).unfinished[0]).endswith(
        "unfinished, 5 of 8 rollouts: give the command again that runs it"
    )
    hidden = tmp_path / ".drift"
    shutil.copytree(tmp_path / "drift", hidden / "next")
    os.rename(tmp_path / "drift", hidden / "previous")
    (hidden / ".next-killed").mkdir()
    assert find_runs(tmp_path).unfinished[0].done == 5
    assert run(scenes, tmp_path).rollouts == ALL
    assert content(tmp_path) == one_go


def test_an_exchange_that_another_process_began_and_did_not_end_loses_nothing(
    scenes: ScenePool, one_go: dict[str, bytes], tmp_path: Path
) -> None:
    """It was killed between its renames while this process was still at work."""
    run(scenes, tmp_path, states=[0])

    class Killed(Seen):
        def __call__(self, state: RunProgress) -> None:
            if state.done == state.total:
                os.rename(tmp_path / "drift", tmp_path / ".drift" / "previous")

    assert run(scenes, tmp_path, seen=Killed()).rollouts == ALL
    assert content(tmp_path) == one_go


def test_a_dataset_extended_by_another_process_meanwhile_is_extended_further(
    scenes: ScenePool, one_go: dict[str, bytes], tmp_path: Path
) -> None:
    run(scenes, tmp_path, tasks=BASE_TASKS[1:], states=[0])

    class Meanwhile(Seen):
        def __call__(self, state: RunProgress) -> None:
            if state.done == 2 and state.job is None:  # planned, and nothing run yet
                elsewhere = run(scenes, tmp_path, tasks=BASE_TASKS[1:], states=[1])
                assert elsewhere.unfinished is not None

    run(scenes, tmp_path, tasks=BASE_TASKS, states=[0], seen=Meanwhile())
    assert run(scenes, tmp_path).rollouts == ALL
    assert content(tmp_path) == one_go


def test_a_folder_left_without_settings_is_begun_anew(
    scenes: ScenePool, one_go: dict[str, bytes], tmp_path: Path
) -> None:
    """As a process leaves it that is killed while it removes the folder, or begins it."""
    (tmp_path / ".drift" / "shards").mkdir(parents=True)
    (tmp_path / ".drift" / "shards" / "torn.parquet").write_text("")
    (tmp_path / ".drift.removed-before").mkdir()
    assert run(scenes, tmp_path).rollouts == ALL
    assert content(tmp_path) == one_go


def test_merged_runs_are_the_run_in_one_go_with_references_that_both_have(
    scenes: ScenePool, one_go: dict[str, bytes], tmp_path: Path
) -> None:
    run(scenes, tmp_path / "a" / "rollouts", tasks=BASE_TASKS[:1])
    run(scenes, tmp_path / "b" / "deep" / "down", tasks=BASE_TASKS, states=[0])
    run(scenes, tmp_path / "c", shard="1/2")  # unfinished
    (merged,), unfinished = merge_runs([tmp_path / name for name in "abc"], tmp_path / "out")
    assert (merged.dataset, merged.rollouts) == (tmp_path / "out" / "rollouts" / "drift", ALL)
    assert merged.repeated == 4
    assert [(each.done, each.planned) for each in unfinished] == [(4, 8)]
    assert content(tmp_path / "out" / "rollouts") == one_go
    with pytest.raises(InvalidInputError, match="drift: exists already"):
        merge_runs([tmp_path / "a"], tmp_path / "out")


def test_several_policies_are_merged_into_a_dataset_each(scenes: ScenePool, tmp_path: Path) -> None:
    run(scenes, tmp_path / "a", tasks=BASE_TASKS[1:], states=[0])
    run(scenes, tmp_path / "b", tasks=BASE_TASKS[1:], states=[0], policy="misbehaving:OtherName")
    merged, _ = merge_runs([tmp_path / "a", tmp_path / "b"], tmp_path / "out")
    assert [(each.dataset.name, each.rollouts) for each in merged] == [("drift", 2), ("other", 2)]
    assert [folder.name for folder in find_datasets(tmp_path / "out")] == ["drift", "other"]


@pytest.mark.parametrize(
    ("policy", "states", "message"),
    [
        ("misbehaving:Revised", [1], r"b/drift: was run with other policy_revision \(1 there, 2 here\)"),
        ("misbehaving:Otherwise", [0], r"is in .*a/drift and in .*b/drift with another final_eef_pos_m: leave one"),
    ],
)
def test_runs_that_do_not_fit_are_not_merged(
    scenes: ScenePool, tmp_path: Path, policy: str, states: list[int], message: str
) -> None:
    run(scenes, tmp_path / "a", tasks=BASE_TASKS[1:], states=[0])
    run(scenes, tmp_path / "b", tasks=BASE_TASKS[1:], states=states, policy=policy)
    with pytest.raises(InvalidInputError, match=message):
        merge_runs([tmp_path / "a", tmp_path / "b"], tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_process_that_finds_the_run_finished_and_extended_by_another_says_what_is_there_now(
    scenes: ScenePool, tmp_path: Path
) -> None:
    run(scenes, tmp_path, tasks=BASE_TASKS[1:], states=[0])

    class Meanwhile(Seen):
        def __call__(self, state: RunProgress) -> None:
            if state.done == 0 and state.job is None:  # planned, and nothing run yet
                assert run(scenes, tmp_path, tasks=BASE_TASKS, states=[0]).rollouts == 4

    seen = Meanwhile()
    ended = run(scenes, tmp_path, tasks=BASE_TASKS[:1], states=[0], seen=seen)
    assert (seen.ran, ended.rollouts) == (0, 4)


def damaged(out: Path, part: str) -> Path:
    """A file of a run with a finished dataset and an unfinished extension, cut to its first half."""
    file = next((out / part).rglob("*.parquet")) if (out / part).is_dir() else out / part
    file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])
    return file


@pytest.fixture(scope="module")
def half_extended(scenes: ScenePool, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A dataset of one initial state, a finished rollout of another, and a list of failures."""
    out = tmp_path_factory.mktemp("half")
    run(scenes, out, states=[0])
    with pytest.raises(PolicyError):
        run(scenes, out, policy="misbehaving:Sulks")
    (out / "drift.failures.jsonl").write_text('{"rollout_id": "one", "error": "none"}\n')
    return out


@pytest.mark.parametrize(
    "part", ["drift/data", "drift/meta/episodes", "drift/sim_states", ".drift/shards", "drift.failures.jsonl"]
)
def test_what_cannot_be_extended_is_found_before_anything_is_run(
    part: str, half_extended: Path, scenes: ScenePool, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    shutil.copytree(half_extended, out)
    file, seen = damaged(out, part), Seen()
    before = content(out)
    with pytest.raises(ConflictVLAError) as refused:
        run(scenes, out, seen=seen)
    assert str(refused.value).startswith(f"{file}: ")
    assert len(str(refused.value).splitlines()) == 1
    assert (seen.states, content(out)) == ([], before)


@pytest.mark.parametrize("part", ["data", "sim_states"])
def test_a_dataset_whose_files_do_not_fit_each_other_is_neither_extended_nor_merged(
    part: str, scenes: ScenePool, tmp_path: Path
) -> None:
    run(scenes, tmp_path / "a", tasks=BASE_TASKS[1:], states=[0], policy="misbehaving:OtherName")
    run(scenes, tmp_path / "b", tasks=BASE_TASKS[1:], states=[0])
    for file in (tmp_path / "b" / "drift" / part).rglob("*.parquet"):
        pq.write_table(pq.read_table(file).slice(1), file)
    with pytest.raises(DatasetError, match=r"drift: episode \d has \d+ frames and \d+ states: copy it again"):
        run(scenes, tmp_path / "b", tasks=BASE_TASKS[1:], states=[0, 1])
    with pytest.raises(DatasetError, match="copy it again"):
        merge_runs([tmp_path / "a", tmp_path / "b"], tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("copies", [2, 3])
def test_a_rollout_counts_once_as_repeated_however_often_it_is_there(
    copies: int, scenes: ScenePool, tmp_path: Path
) -> None:
    run(scenes, tmp_path / "0", tasks=BASE_TASKS[1:], states=[0, 1])
    for copy in range(1, copies):
        run(scenes, tmp_path / str(copy), tasks=BASE_TASKS[1:], states=[0])
    (merged,), _ = merge_runs([tmp_path / str(copy) for copy in range(copies)], tmp_path / "out")
    assert (merged.rollouts, merged.repeated) == (4, 2)


def test_settings_that_are_no_json_are_one_line() -> None:
    with pytest.raises(DatasetError, match="policy_settings is not a JSON object"):
        settings_of_records([make_record(policy_settings="[1")])


def test_nothing_to_merge_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(DatasetError, match="nothing to merge"):
        merge_runs([tmp_path], tmp_path / "out")
    with pytest.raises(DatasetError, match="nothing to finish"):
        finish_runs(tmp_path)
