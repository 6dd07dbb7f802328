"""Rollouts on a Ray cluster: Ray schedules, places and restarts; this module hands out batches and collects rollouts.

A batch is one Ray task that streams its rollouts back one by one, so that a lost node costs only the rollouts that were
being run on it; what had not come back of its batches is handed out again.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from ....toolkit.errors import ConflictVLAError, InvalidInputError
from ....toolkit.ray_cluster import ray_cluster, require_ray
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

CPUS_PER_BATCH = 1


class RayCluster:
    """Runs jobs on a Ray cluster whose nodes have this package installed.

    Args:
        address: The cluster's address; see ``ray_cluster``.
        answer_limit_s: Longest time that the policy may take for an answer, in s; None for no limit.
        pause_s: Pause before a rollout is tried again in which the policy did not answer, in s.

    Raises:
        MissingExtraError: Ray is not installed.
    """

    def __init__(self, address: str, *, answer_limit_s: float | None = None, pause_s: float = PAUSE_S) -> None:
        require_ray("running on a cluster")
        self._address, self._patience = address, Patience(answer_limit_s=answer_limit_s, pause_s=pause_s)

    def run(
        self, policy: Policy | str, jobs: Sequence[Job], *, stop_on_failure: bool, take: Take = take_all
    ) -> Iterator[Outcome]:
        """Run the jobs; see ``Executor.run``. All are taken when their batches are handed to the cluster.

        Raises:
            InvalidInputError: The cluster cannot be reached.
        """
        spec = require_name(policy)
        with ray_cluster(self._address) as ray:
            cpus = int(ray.cluster_resources().get("CPU", 1))
            mine = batches_for([job for job in jobs if take(job)], cpus)
            for outcome in _stream(ray, spec, self._patience, mine):
                if stop_on_failure:
                    raise_failure(outcome)
                yield outcome


def _stream(ray: Any, spec: str, patience: Patience, batches: Sequence[tuple[Job, ...]]) -> Iterator[Outcome]:
    """Outcomes of all batches, in whatever order they come back."""
    remote = ray.remote(num_cpus=CPUS_PER_BATCH, max_retries=0)(_run_batch).options(num_returns="streaming")
    left = {remote.remote(spec, patience, batch): list(batch) for batch in batches}
    crashes: dict[Job, int] = {}
    while left:
        ready, _ = ray.wait(list(left), num_returns=1, fetch_local=False)
        stream = ready[0]
        jobs = left.pop(stream)
        try:
            reference = next(stream)
            outcome = ray.get(reference)
        except StopIteration:
            continue
        except ray.exceptions.RayTaskError as error:
            raise _task_error(error) from error
        except (ray.exceptions.RayError, ConnectionError):
            # The node or process is gone. What it had in hand counts as a crash of the first job left; it had nothing
            # where it died after its last rollout had come back.
            if not jobs:
                continue
            crashes[jobs[0]] = crashes.get(jobs[0], 0) + 1
            if crashes[jobs[0]] >= CRASHES:
                yield crashed_outcome(spec, jobs.pop(0))
            if jobs:
                left[remote.remote(spec, patience, tuple(jobs))] = jobs
            continue
        yield outcome
        left[stream] = jobs[1:]


def _run_batch(spec: str, patience: Patience, jobs: tuple[Job, ...]) -> Iterator[Outcome]:
    """Runs on a worker: the policy and the scenes stay warm there from batch to batch."""
    for job in jobs:
        yield run_job_in_worker(spec, patience, job)


def _task_error(error: Any) -> Exception:
    """The error as it was raised on the worker, where it is one of ours."""
    cause = getattr(error, "cause", None)
    return cause if isinstance(cause, ConflictVLAError) else InvalidInputError(str(error).strip().splitlines()[-1])
