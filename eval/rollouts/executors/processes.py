"""Rollouts in several processes of this machine."""

# The pool of the package pebble, which replaces dead workers itself, was tried: a worker that dies while idle ends its
# run, and it gives the jobs of one base task to all workers, each of which then builds the scene.

from __future__ import annotations

import contextlib
import queue
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool

from ....toolkit.errors import InvalidInputError
from ....toolkit.processes import MOST_WORKERS, worker_processes
from ...policies.interface import Policy
from ..jobs import Job, Outcome
from .base import (
    CRASHES,
    PAUSE_S,
    Patience,
    Take,
    batches_for,
    crashed_outcome,
    raise_failure,
    require_name,
    run_job_in_worker,
    take_all,
)


class Processes:
    """Runs jobs in several processes of this machine; one that dies is replaced and its rollout run again.

    Args:
        workers: How many processes.
        answer_limit_s: Longest time that the policy may take for an answer, in s; None for no limit.
        pause_s: Pause before a rollout is tried again in which the policy did not answer, in s.

    Raises:
        InvalidInputError: There is no worker, or there are more than ``MOST_WORKERS``.
    """

    def __init__(self, workers: int, *, answer_limit_s: float | None = None, pause_s: float = PAUSE_S) -> None:
        if workers < 1:
            raise InvalidInputError(f"{workers} workers: at least 1 is needed")
        if workers > MOST_WORKERS:
            raise InvalidInputError(f"{workers} workers: at most {MOST_WORKERS} run on one machine")
        self._workers, self._patience = workers, Patience(answer_limit_s=answer_limit_s, pause_s=pause_s)

    def run(
        self, policy: Policy | str, jobs: Sequence[Job], *, stop_on_failure: bool, take: Take = take_all
    ) -> Iterator[Outcome]:
        """Run the jobs; see ``Executor.run``."""
        spec = require_name(policy)
        todo: queue.SimpleQueue[tuple[Job, ...]] = queue.SimpleQueue()
        for batch in batches_for(jobs, self._workers):
            todo.put(batch)
        done: queue.SimpleQueue[Outcome | Exception | None] = queue.SimpleQueue()
        stop = threading.Event()
        threads = [
            threading.Thread(target=_drive_worker, args=(spec, self._patience, take, todo, done, stop), daemon=True)
            for _ in range(self._workers)
        ]
        for thread in threads:
            thread.start()
        try:
            for _ in jobs:
                result = done.get()
                if result is None:
                    continue
                if isinstance(result, Exception):
                    raise result
                if stop_on_failure:
                    raise_failure(result)
                yield result
        finally:
            stop.set()
            for thread in threads:
                thread.join()


def _drive_worker(
    spec: str,
    patience: Patience,
    take: Take,
    todo: queue.SimpleQueue[tuple[Job, ...]],
    done: queue.SimpleQueue[Outcome | Exception | None],
    stop: threading.Event,
) -> None:
    """Feed one worker process, job by job, until nothing is left; None stands for a job that was not to be run."""
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
                if not take(job):
                    done.put(None)
                    continue
                pool, outcome = _run_in(pool, spec, patience, job)
                done.put(outcome)
    except Exception as error:  # of any kind: the consumer must get it instead of waiting
        done.put(error)
    finally:
        pool.shutdown(wait=False, cancel_futures=True)


def _run_in(pool: ProcessPoolExecutor, spec: str, patience: Patience, job: Job) -> tuple[ProcessPoolExecutor, Outcome]:
    """Run a job in the process; where the process dies, in a new one."""
    for _ in range(CRASHES):
        with contextlib.suppress(BrokenProcessPool):
            return pool, pool.submit(run_job_in_worker, spec, patience, job).result()
        pool.shutdown(wait=False)
        pool = worker_processes(1)
    return pool, crashed_outcome(spec, job)
