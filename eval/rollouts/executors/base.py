"""What every executor shares: the protocol, running one job, and what becomes of jobs whose process died."""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from ....toolkit.errors import InvalidInputError, PolicyError, UnavailablePolicyError
from ....toolkit.simulation.scene_pool import ScenePool
from ...policies.interface import Policy, PolicyInfo
from ...policies.registry import load_policy
from ...policies.timed import TimedPolicy
from ..jobs import Failure, Job, Outcome, batches
from ..rollout import rollout_id, run_rollout
from ..versions import installed_versions

BATCH = 20
"""Most rollouts handed out together."""

CRASHES = 3
"""How many times a rollout is tried whose process dies."""

TRIES = 3
"""How many times a rollout is tried whose policy does not answer: its server is gone, or a time limit has passed."""

PAUSE_S = 5.0
"""Pause before such a rollout is tried again from its start."""

LONGER = 6.0
"""By how much the next pause is longer: 5 s, then 30 s. A server is waited for beside that; see ``link.WAIT_S``."""

LONGEST_LIMIT_S = 604_800
"""Longest limit on an answer, in s: a week."""

Take = Callable[[Job], bool]
"""Whether a job is to be run now; asked just before it is."""


def take_all(_: Job) -> bool:
    """Run every job."""
    return True


@dataclass(frozen=True, slots=True, kw_only=True)
class Patience:
    """How long a policy is waited for.

    Attributes:
        answer_limit_s: Longest time that it may take for an answer, in s, at most ``LONGEST_LIMIT_S``; None for no
            limit.
        pause_s: Pause before a rollout is tried again in which it did not answer, in s.

    Raises:
        InvalidInputError: The limit is not positive, or too long.
    """

    answer_limit_s: float | None = None
    pause_s: float = PAUSE_S

    def __post_init__(self) -> None:
        limit_s = self.answer_limit_s
        if limit_s is not None and not 0 < limit_s <= LONGEST_LIMIT_S:  # NaN neither
            raise InvalidInputError(
                f"an answer limit of {limit_s:.15g} s: choose more than 0 and at most {LONGEST_LIMIT_S:,} s, a week"
            )


class Executor(Protocol):
    """Runs jobs, and yields what became of each in whatever order they finish.

    The rollouts are the same bits under every executor. Scenes stay warm in the processes that run them, and jobs of
    one base task stay together.
    """

    def run(
        self, policy: Policy | str, jobs: Sequence[Job], *, stop_on_failure: bool, take: Take = take_all
    ) -> Iterator[Outcome]:
        """Run the jobs and yield each when it is done. One in which the policy does not answer is tried again.

        Args:
            policy: The policy, or its name.
            jobs: Rollouts to run.
            stop_on_failure: Whether to raise the first failure of the policy, or yield it and go on.
            take: Asked about each job when its turn has come, perhaps on another thread; if it says no, the job is
                left out.

        Raises:
            PolicyError: The policy failed and ``stop_on_failure`` is set.
        """


class PolicySource:
    """The policy to ask next: limited in time, and loaded anew by its name after it has hung.

    Args:
        policy: The policy, or its name.
        patience: How long it is waited for.

    Attributes:
        patience: How long it is waited for.
        info: Where it comes from; None until it was loaded for the first time.
    """

    def __init__(self, policy: Policy | str, patience: Patience) -> None:
        self.patience = patience
        self.info: PolicyInfo | None = None
        self._given = policy
        self._policy: Policy | None = None

    def policy(self) -> Policy:
        """The policy, the same object as long as it answers.

        Raises:
            PolicyError: No policy server answers.
        """
        limit_s = self.patience.answer_limit_s
        if self._policy is None or (self._hung and isinstance(self._given, str)):
            loaded = load_policy(self._given) if isinstance(self._given, str) else self._given
            self._policy = loaded if limit_s is None else TimedPolicy(loaded, limit_s)
            self.info = loaded.info
        return self._policy

    @property
    def can_answer(self) -> bool:
        """Whether asking again makes sense: not of an object that has hung."""
        return isinstance(self._given, str) or not self._hung

    @property
    def _hung(self) -> bool:
        return isinstance(self._policy, TimedPolicy) and self._policy.hung


def run_job(source: PolicySource, job: Job, scenes: ScenePool) -> Outcome:
    """Run one rollout; a failing policy gives an outcome too.

    Where the policy does not answer, the rollout is tried again from its start, ``TRIES`` times in all.

    Raises:
        PolicyError: The policy's server was never reached.
    """
    scene = scenes.scene(job.instance.suite, job.instance.base_task)
    pause_s = source.patience.pause_s
    for attempt in range(1, TRIES + 1):
        try:
            return Outcome(job=job, rollout=run_rollout(scene, source.policy(), job, versions=installed_versions()))
        except PolicyError as error:
            if _is_unavailable(error) and attempt < TRIES and source.can_answer:
                time.sleep(pause_s)
                pause_s *= LONGER
                continue
            if source.info is None:
                raise
            tried = f" ({attempt} tries)" if attempt > 1 else ""
            failure = Failure(rollout_id=rollout_id(source.info, job), error=f"{error}{tried}")
            return Outcome(job=job, rollout=None, failure=failure)
    raise AssertionError  # the loop returns


def _is_unavailable(error: BaseException | None) -> bool:
    """Whether an error says, or has as its cause, that the policy did not answer."""
    while error is not None:
        if isinstance(error, UnavailablePolicyError):
            return True
        error = error.__cause__
    return False


def run_job_in_worker(spec: str, patience: Patience, job: Job) -> Outcome:
    """Run one rollout in a worker process, whose policy and scenes stay warm from job to job."""
    return run_job(_worker_policy(spec, patience), job, _worker_scenes())


@functools.cache
def _worker_policy(spec: str, patience: Patience) -> PolicySource:
    return PolicySource(spec, patience)


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
