"""Where rollouts are run: in this process, in several, or on a Ray cluster. The rollouts are the same bits everywhere.

An executor takes jobs and yields what became of each, in whatever order they finish. Scenes stay warm in the processes
that run them, and jobs of one base task are kept together.
"""

from __future__ import annotations

import contextlib
import functools
import queue
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from typing import Protocol

from ....toolkit.errors import InvalidInputError, PolicyError
from ....toolkit.processes import worker_processes
from ....toolkit.simulation.scene_pool import ScenePool
from ...policies.interface import Policy
from ...policies.registry import load_policy
from ...policies.timed import TimedPolicy
from ..jobs import Failure, Job, Outcome, batches
from ..rollout import rollout_id, run_rollout
from ..versions import installed_versions

BATCH = 20
"""Most rollouts handed out together."""

CRASHES = 3
"""How many times a rollout is tried whose process dies."""


class Executor(Protocol):
    """Runs jobs."""

    def run(self, policy: Policy | str, jobs: Sequence[Job], *, stop_on_failure: bool) -> Iterator[Outcome]:
        """Run the jobs and yield each when it is done.

        Args:
            policy: The policy, or its name.
            jobs: Rollouts to run.
            stop_on_failure: Whether to raise the first failure of the policy, or yield it and go on.

        Raises:
            PolicyError: The policy failed and ``stop_on_failure`` is set.
        """


class InProcess:
    """Runs jobs one after the other in this process.

    Args:
        scenes: Warm scenes to use; a pool of its own by default.
        answer_limit_s: Longest time that the policy may take for an answer, in s; None for no limit.
    """

    def __init__(self, scenes: ScenePool | None = None, *, answer_limit_s: float | None = None) -> None:
        self._scenes = scenes or ScenePool()
        self._answer_limit_s = answer_limit_s

    def run(self, policy: Policy | str, jobs: Sequence[Job], *, stop_on_failure: bool) -> Iterator[Outcome]:
        """Run the jobs; see ``Executor.run``."""
        ask = _Asked(policy, self._answer_limit_s)
        for job in jobs:
            yield checked(run_job(ask.policy(), job, self._scenes), stop_on_failure=stop_on_failure)


class Processes:
    """Runs jobs in several processes of this machine; one that dies is replaced and its rollout run again.

    Args:
        workers: How many processes.
        answer_limit_s: Longest time that the policy may take for an answer, in s; None for no limit.

    Raises:
        InvalidInputError: There is no worker.
    """

    def __init__(self, workers: int, *, answer_limit_s: float | None = None) -> None:
        if workers < 1:
            raise InvalidInputError(f"{workers} workers: at least 1 is needed")
        self._workers, self._answer_limit_s = workers, answer_limit_s

    def run(self, policy: Policy | str, jobs: Sequence[Job], *, stop_on_failure: bool) -> Iterator[Outcome]:
        """Run the jobs; see ``Executor.run``."""
        spec = named(policy)
        todo: queue.SimpleQueue[tuple[Job, ...]] = queue.SimpleQueue()
        for batch in batches_for(jobs, self._workers):
            todo.put(batch)
        done: queue.SimpleQueue[Outcome | Exception] = queue.SimpleQueue()
        stop = threading.Event()
        threads = [
            threading.Thread(target=_drive_worker, args=(spec, self._answer_limit_s, todo, done, stop), daemon=True)
            for _ in range(self._workers)
        ]
        for thread in threads:
            thread.start()
        try:
            for _ in jobs:
                result = done.get()
                if isinstance(result, Exception):
                    raise result
                yield checked(result, stop_on_failure=stop_on_failure)
        finally:
            stop.set()
            for thread in threads:
                thread.join()


def choose_executor(workers: int, ray: str | None, *, answer_limit_s: float | None = None) -> Executor:
    """The executor for what a user asks for.

    Args:
        workers: Processes on this machine.
        ray: Address of a Ray cluster to use instead, or None.
        answer_limit_s: Longest time that the policy may take for an answer, in s; None for no limit.

    Raises:
        InvalidInputError: Both several workers and a cluster are asked for, or no worker at all.
        MissingExtraError: A cluster is asked for and Ray is not installed.
    """
    if ray is None:
        if workers == 1:
            return InProcess(answer_limit_s=answer_limit_s)
        return Processes(workers, answer_limit_s=answer_limit_s)
    if workers != 1:
        raise InvalidInputError(
            "--workers and --ray exclude each other: on a cluster, Ray decides how many run at once"
        )
    from .ray import RayCluster

    return RayCluster(ray, answer_limit_s=answer_limit_s)


def run_job(policy: Policy, job: Job, scenes: ScenePool) -> Outcome:
    """Run one rollout; a failing policy gives an outcome too."""
    scene = scenes.scene(job.instance.suite, job.instance.base_task)
    try:
        rollout = run_rollout(scene, policy, job, versions=installed_versions())
    except PolicyError as error:
        where = rollout_id(policy.info, job)
        return Outcome(job=job, rollout=None, failure=Failure(rollout_id=where, error=str(error)))
    return Outcome(job=job, rollout=rollout)


def run_job_here(spec: str, answer_limit_s: float | None, job: Job) -> Outcome:
    """Run one rollout in a worker process, which keeps its policy and scenes from job to job."""
    return run_job(_asked_here(spec, answer_limit_s).policy(), job, _worker_scenes())


def named(policy: Policy | str) -> str:
    """The policy's name, which a worker process can load it by.

    Raises:
        InvalidInputError: The policy was given as an object.
    """
    if isinstance(policy, str):
        return policy
    raise InvalidInputError(
        f"the policy '{policy.info.name}' was given as an object, which runs in one process only; "
        "name it as module:Class to run it in several"
    )


def lost(spec: str, job: Job) -> Outcome:
    """The outcome of a job whose process died each time that it was tried."""
    where = rollout_id(load_policy(spec).info, job)
    error = f"{where}: its process died {CRASHES} times"
    return Outcome(job=job, rollout=None, failure=Failure(rollout_id=where, error=error))


def checked(outcome: Outcome, *, stop_on_failure: bool) -> Outcome:
    """The outcome, or the failure raised where a failure is to stop the run."""
    if outcome.failure is not None and stop_on_failure:
        raise PolicyError(outcome.failure.error)
    return outcome


def batches_for(jobs: Sequence[Job], workers: int) -> list[tuple[Job, ...]]:
    """Batches small enough that every worker has something to do until the end."""
    return batches(jobs, max(1, min(BATCH, len(jobs) // (2 * workers))))


def _drive_worker(
    spec: str,
    answer_limit_s: float | None,
    todo: queue.SimpleQueue[tuple[Job, ...]],
    done: queue.SimpleQueue[Outcome | Exception],
    stop: threading.Event,
) -> None:
    """Feed one worker process, job by job, until nothing is left."""
    pool = worker_processes(1)
    try:
        while not stop.is_set():
            try:
                batch = todo.get_nowait()
            except queue.Empty:
                return
            for job in batch:
                if stop.is_set():
                    return
                pool, outcome = _run_in(pool, spec, answer_limit_s, job)
                done.put(outcome)
    except Exception as error:  # whatever it is, the consumer must hear of it instead of waiting
        done.put(error)
    finally:
        pool.shutdown(wait=False, cancel_futures=True)


def _run_in(
    pool: ProcessPoolExecutor, spec: str, answer_limit_s: float | None, job: Job
) -> tuple[ProcessPoolExecutor, Outcome]:
    """Run a job in the process; where the process dies, in a new one."""
    for _ in range(CRASHES):
        with contextlib.suppress(BrokenProcessPool):
            return pool, pool.submit(run_job_here, spec, answer_limit_s, job).result()
        pool.shutdown(wait=False)
        pool = worker_processes(1)
    return pool, lost(spec, job)


class _Asked:
    """A policy that is asked within a time limit, and loaded anew by its name after it has hung."""

    def __init__(self, policy: Policy | str, answer_limit_s: float | None) -> None:
        self._given, self._answer_limit_s = policy, answer_limit_s
        self._policy: Policy | None = None

    def policy(self) -> Policy:
        """The policy to ask next."""
        stale = isinstance(self._policy, TimedPolicy) and self._policy.hung and isinstance(self._given, str)
        if self._policy is None or stale:
            loaded = load_policy(self._given) if isinstance(self._given, str) else self._given
            self._policy = loaded if self._answer_limit_s is None else TimedPolicy(loaded, self._answer_limit_s)
        return self._policy


@functools.cache
def _asked_here(spec: str, answer_limit_s: float | None) -> _Asked:
    return _Asked(spec, answer_limit_s)


@functools.cache
def _worker_scenes() -> ScenePool:
    return ScenePool()
