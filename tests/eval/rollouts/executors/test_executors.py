"""Where rollouts are run makes no difference to them, and a process or node that dies loses nothing."""

from __future__ import annotations

import dataclasses
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from conflictvla.builders.tasks_dataset.reading import load_instances
from conflictvla.eval.rollouts.executors.base import Executor
from conflictvla.eval.rollouts.executors.choose import choose_executor
from conflictvla.eval.rollouts.executors.in_process import InProcess
from conflictvla.eval.rollouts.executors.processes import Processes
from conflictvla.eval.rollouts.jobs import Job, batches
from conflictvla.eval.rollouts.run import Run, RunProgress, run_policy, with_references
from conflictvla.toolkit.errors import InvalidInputError, PolicyError
from conflictvla.toolkit.records import Arm, Instance, Prompt

POLICIES = Path(__file__).parents[1]
BASE_TASKS = ("put_the_bowl_on_the_plate", "turn_on_the_stove")


@pytest.fixture(autouse=True)
def importable_policies(monkeypatch: pytest.MonkeyPatch) -> None:
    """The policies of the folder above, importable by their module's name here and in worker processes."""
    monkeypatch.syspath_prepend(str(POLICIES))
    monkeypatch.setenv("PYTHONPATH", str(POLICIES))


@pytest.fixture(scope="module")
def chosen() -> tuple[Instance, ...]:
    """Two cases and the reference of each of two base tasks, cut to a few steps."""
    instances = load_instances()
    conflicts = [
        next(i for i in instances if i.arm is Arm.CONFLICT and i.prompt == Prompt.P0 and i.base_task == task)
        for task in BASE_TASKS
    ]
    return tuple(dataclasses.replace(i, horizon=8) for i in with_references(conflicts, instances))


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("limit_s", [0.0, -1.0, float("nan"), float("inf"), 1e300])
def test_a_limit_that_no_answer_can_have_is_refused_before_a_run(workers: int, limit_s: float) -> None:
    with pytest.raises(InvalidInputError, match=r"an answer limit of .* s: choose more than 0"):
        choose_executor(workers, None, answer_limit_s=limit_s)


def _run(policy: str, chosen: tuple[Instance, ...], out: Path, executor: Executor, *, keep_going: bool = False) -> Run:
    return run_policy(policy, chosen, out, init_states=[0, 1], seeds=[3], executor=executor, keep_going=keep_going)


def _content(folder: Path) -> dict[str, bytes]:
    return {str(file.relative_to(folder)): file.read_bytes() for file in sorted(folder.rglob("*")) if file.is_file()}


@pytest.fixture(scope="module")
def expected(chosen: tuple[Instance, ...], tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """What an undisturbed run in one process leaves."""
    sys.path.insert(0, str(POLICIES))
    out = tmp_path_factory.mktemp("expected")
    run = _run("misbehaving:Drift", chosen, out, InProcess())
    assert run.rollouts == 8
    return _content(out)


def test_two_processes_leave_the_same_bytes_as_one(
    chosen: tuple[Instance, ...], expected: dict[str, bytes], tmp_path: Path
) -> None:
    _run("misbehaving:Drift", chosen, tmp_path, Processes(2))
    assert _content(tmp_path) == expected


def test_a_worker_that_dies_is_replaced_and_its_rollout_run_again(
    chosen: tuple[Instance, ...], expected: dict[str, bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    flag = tmp_path / "died"
    monkeypatch.setenv("CONFLICTVLA_TEST_FLAG", str(flag))
    _run("misbehaving:DiesOnce", chosen, tmp_path / "out", Processes(2))
    assert flag.exists()
    assert _content(tmp_path / "out") == expected


def test_a_rollout_that_kills_every_process_is_recorded_and_the_others_stay(
    chosen: tuple[Instance, ...], tmp_path: Path
) -> None:
    run = run_policy(
        "misbehaving:DiesAlways", chosen[:2], tmp_path, init_states=[0], executor=Processes(1), keep_going=True
    )
    assert run.rollouts == 1
    assert [failure.error.partition(": ")[2] for failure in run.failures] == ["its process died 3 times"]


@pytest.mark.parametrize("workers", [1, 2])
def test_with_keep_going_failures_are_listed_and_the_rest_is_recorded(
    chosen: tuple[Instance, ...], tmp_path: Path, workers: int
) -> None:
    run = _run("misbehaving:Sulks", chosen, tmp_path, choose_executor(workers, None), keep_going=True)
    assert run.rollouts == 4
    listed = [json.loads(line) for line in (tmp_path / "drift.failures.jsonl").read_text().splitlines()]
    assert [entry["rollout_id"] for entry in listed] == [failure.rollout_id for failure in run.failures]
    assert len(listed) == 4
    assert all("step 2: the policy raised: ValueError: I would rather not" in entry["error"] for entry in listed)


@pytest.mark.parametrize("workers", [1, 2])
def test_without_it_the_first_failure_stops_the_run(chosen: tuple[Instance, ...], tmp_path: Path, workers: int) -> None:
    with pytest.raises(PolicyError, match="I would rather not"):
        _run("misbehaving:Sulks", chosen, tmp_path, choose_executor(workers, None))
    assert not (tmp_path / "drift").exists()
    if workers == 1:  # several processes may fail before any has finished a rollout
        assert list((tmp_path / ".drift" / "shards").glob("*.parquet"))


@pytest.mark.parametrize("workers", [1, 2])
def test_a_policy_that_hangs_is_loaded_anew_and_its_rollout_tried_three_times(
    chosen: tuple[Instance, ...], tmp_path: Path, workers: int
) -> None:
    executor = choose_executor(workers, None, answer_limit_s=1.0, pause_s=0.1)
    run = _run("misbehaving:Hangs", chosen[:2], tmp_path, executor, keep_going=True)
    assert run.rollouts == 2
    assert len(run.failures) == 2
    assert [f.error for f in run.failures] == [
        f"{f.rollout_id}: step 0: it did not answer within 1 s (3 tries)" for f in run.failures
    ]


def test_a_full_disk_stops_the_run_in_one_line_and_leaves_only_complete_shards(tmp_path: Path) -> None:
    """Files larger than a limit cannot be written, as on a full disk."""
    script = (
        "import resource, sys; from pathlib import Path; from test_executors import _run, chosen_in;"
        "from conflictvla.eval.rollouts.executors.in_process import InProcess; chosen = chosen_in();"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (12_000, 12_000));"
        "_run('misbehaving:Drift', chosen, Path(sys.argv[1]), InProcess())"
    )
    command = [sys.executable, "-c", script, str(tmp_path)]
    child = subprocess.run(command, env=_environment(), capture_output=True, text=True, check=False)
    assert child.returncode == 1
    message = child.stderr.splitlines()[-1]
    assert "parquet: cannot be written (File too large); make room or choose another place" in message
    assert list((tmp_path / ".drift" / "shards").iterdir()) == []


def test_a_run_killed_at_any_moment_goes_on_to_the_same_bytes(
    chosen: tuple[Instance, ...], expected: dict[str, bytes], tmp_path: Path
) -> None:
    """Killed with SIGKILL again and again, each time a little later, until it gets through."""
    script = (
        "import sys; from pathlib import Path; from test_executors import _run, chosen_in;"
        "from conflictvla.eval.rollouts.executors.in_process import InProcess;"
        "_run('misbehaving:Drift', chosen_in(), Path(sys.argv[1]), InProcess())"
    )
    shards = tmp_path / ".drift" / "shards"
    killed = 0
    for wanted in (1, 3, 6):
        child = subprocess.Popen([sys.executable, "-c", script, str(tmp_path)], env=_environment())
        while child.poll() is None and len(list(shards.glob("*.parquet"))) < wanted:
            time.sleep(0.01)
        if child.poll() is None:
            child.send_signal(signal.SIGKILL)
            killed += 1
        child.wait()
        assert not (tmp_path / "drift").exists()
    assert killed == 3
    seen: list[RunProgress] = []
    run_policy(
        "misbehaving:Drift", chosen, tmp_path, init_states=[0, 1], seeds=[3], executor=InProcess(), progress=seen.append
    )
    assert seen[0].done >= 6  # nothing that was finished is run again
    assert _content(tmp_path) == expected


def chosen_in() -> tuple[Instance, ...]:
    """The fixture ``chosen``, for the child process."""
    return chosen.__wrapped__()  # type: ignore[attr-defined,no-any-return]  # pytest stores the function there


def _environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": os.pathsep.join([str(POLICIES), str(Path(__file__).parent)])}


def test_jobs_of_one_base_task_stay_together(chosen: tuple[Instance, ...]) -> None:
    jobs = [Job(instance=i, init_state=s, seed=0) for i in chosen for s in range(5)]
    found = batches(jobs, 4)
    assert [job for batch in found for job in batch] == jobs
    assert all(len({job.instance.base_task for job in batch}) == 1 for batch in found)
    assert max(len(batch) for batch in found) <= 4


def test_a_policy_object_cannot_be_run_in_several_processes(chosen: tuple[Instance, ...], tmp_path: Path) -> None:
    from ..misbehaving import Drift

    with pytest.raises(InvalidInputError, match="name it as module:Class"):
        run_policy(Drift(), chosen, tmp_path, init_states=[0], executor=Processes(2))


@pytest.mark.parametrize(("workers", "ray"), [(0, None), (2, "local")])
def test_a_wrong_number_of_workers_is_refused(workers: int, ray: str | None) -> None:
    with pytest.raises(InvalidInputError):
        choose_executor(workers, ray)


@pytest.fixture(scope="module")
def cluster() -> Iterator[object]:
    """A Ray cluster of two nodes on this machine; the head runs no rollouts, so that a node can be killed."""
    from ray.cluster_utils import Cluster

    environment = {"PYTHONPATH": str(POLICIES)}
    os.environ.update(environment)
    found = Cluster(initialize_head=True, head_node_args={"num_cpus": 0})
    yield found
    found.shutdown()


def test_a_ray_cluster_leaves_the_same_bytes_even_when_a_node_is_killed_in_mid_run(
    chosen: tuple[Instance, ...], expected: dict[str, bytes], tmp_path: Path, cluster: object
) -> None:
    first = cluster.add_node(num_cpus=1)  # type: ignore[attr-defined]
    cluster.add_node(num_cpus=1)  # type: ignore[attr-defined]
    cluster.wait_for_nodes()  # type: ignore[attr-defined]
    killed = False

    def kill_a_node(state: RunProgress) -> None:
        nonlocal killed
        if state.done == 2 and not killed:
            killed = True
            cluster.remove_node(first, allow_graceful=False)  # type: ignore[attr-defined]

    run_policy(
        "misbehaving:Drift",
        chosen,
        tmp_path,
        init_states=[0, 1],
        seeds=[3],
        executor=choose_executor(1, cluster.address),  # type: ignore[attr-defined]
        progress=kill_a_node,
    )
    assert killed
    assert _content(tmp_path) == expected


def test_a_cluster_that_is_not_there_is_named(chosen: tuple[Instance, ...], tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match=r"no Ray cluster at '127\.0\.0\.1:1'"):
        _run("misbehaving:Drift", chosen, tmp_path, choose_executor(1, "127.0.0.1:1"))
