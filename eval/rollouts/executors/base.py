"""What every executor shares: the protocol, running one job, and what becomes of jobs whose process died."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from typing import Protocol

from ....toolkit.errors import InvalidInputError, PolicyError
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
    """Runs jobs, and yields what became of each in whatever order they finish.

    The rollouts are the same bits under every executor. Scenes stay warm in the processes that run them, and jobs of
    one base task stay together.
    """

    def run(self, policy: Policy | str, jobs: Sequence[Job], *, stop_on_failure: bool) -> Iterator[Outcome]:
        """Run the jobs and yield each when it is done.

        Args:
            policy: The policy, or its name.
            jobs: Rollouts to run.
            stop_on_failure: Whether to raise the first failure of the policy, or yield it and go on.

        Raises:
            PolicyError: The policy failed and ``stop_on_failure`` is set.
        """


class PolicySource:
    """The policy to ask next: limited in time, and loaded anew by its name after it has hung.

    Args:
        policy: The policy, or its name.
        answer_limit_s: Longest time that it may take for an answer, in s; None for no limit.
    """

    def __init__(self, policy: Policy | str, answer_limit_s: float | None) -> None:
        self._given, self._answer_limit_s = policy, answer_limit_s
        self._policy: Policy | None = None

    def policy(self) -> Policy:
        """The policy, the same object as long as it answers."""
        stale = isinstance(self._policy, TimedPolicy) and self._policy.hung and isinstance(self._given, str)
        if self._policy is None or stale:
            loaded = load_policy(self._given) if isinstance(self._given, str) else self._given
            self._policy = loaded if self._answer_limit_s is None else TimedPolicy(loaded, self._answer_limit_s)
        return self._policy


def run_job(policy: Policy, job: Job, scenes: ScenePool) -> Outcome:
    """Run one rollout; a failing policy gives an outcome too."""
    scene = scenes.scene(job.instance.suite, job.instance.base_task)
    try:
        rollout = run_rollout(scene, policy, job, versions=installed_versions())
    except PolicyError as error:
        where = rollout_id(policy.info, job)
        return Outcome(job=job, rollout=None, failure=Failure(rollout_id=where, error=str(error)))
    return Outcome(job=job, rollout=rollout)


def run_job_in_worker(spec: str, answer_limit_s: float | None, job: Job) -> Outcome:
    """Run one rollout in a worker process, whose policy and scenes stay warm from job to job."""
    return run_job(_worker_policy(spec, answer_limit_s).policy(), job, _worker_scenes())


@functools.cache
def _worker_policy(spec: str, answer_limit_s: float | None) -> PolicySource:
    return PolicySource(spec, answer_limit_s)


@functools.cache
def _worker_scenes() -> ScenePool:
    return ScenePool()


def require_name(policy: Policy | str) -> str:
    """The policy's name, by which a worker process can load it.

    Raises:
        InvalidInputError: The policy was given as an object.
    """
    if isinstance(policy, str):
        return policy
    raise InvalidInputError(
        f"the policy '{policy.info.name}' was given as an object, which runs in one process only; "
        "name it as module:Class to run it in several"
    )


def crashed_outcome(spec: str, job: Job) -> Outcome:
    """The outcome of a job whose process died each time that it was tried."""
    where = rollout_id(load_policy(spec).info, job)
    error = f"{where}: its process died {CRASHES} times"
    return Outcome(job=job, rollout=None, failure=Failure(rollout_id=where, error=error))


def raise_failure(outcome: Outcome) -> None:
    """Raise the failure of an outcome that has one.

    Raises:
        PolicyError: The rollout failed.
    """
    if outcome.failure is not None:
        raise PolicyError(outcome.failure.error)


def batches_for(jobs: Sequence[Job], workers: int) -> list[tuple[Job, ...]]:
    """Batches small enough that every worker has something to do until the end."""
    return batches(jobs, max(1, min(BATCH, len(jobs) // (2 * workers))))
