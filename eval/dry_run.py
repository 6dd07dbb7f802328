"""What a run would take: how many rollouts, hours at a rate that is measured here, and room on disk."""

from __future__ import annotations

import tempfile
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from ..builders.rollouts.schema import Rollout
from ..builders.rollouts.shards import write_shard
from ..toolkit.errors import ConflictVLAError, MissingExtraError, PolicyError
from ..toolkit.records import Instance
from ..toolkit.simulation.scene_pool import ScenePool
from .policies.interface import Policy
from .policies.registry import policy_for_run
from .rollouts.executors.base import Patience, PolicySource, raise_failure, run_job
from .rollouts.jobs import Job
from .rollouts.run import check_rollout_count

BUDGET_S = 60.0
"""After so long no further suite is measured; the others count as those that were."""

ANSWER_LIMIT_S = 120.0
"""Longest time for one answer of the policy while it is measured."""

STEPS, FEW_STEPS = 60, 10
"""How many actions are timed, and how many where the policy is slow."""

SLOW_S = 2.0
"""A policy is slow where a rollout of one action takes longer."""

PERSISTENT = "persist"
"""The scripted agent whose rollouts stand for a policy's on disk where the policy cannot be measured."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rate:
    """What rollouts of a suite take.

    Attributes:
        start_s: Time of a rollout of one action: reset, settling, first answer; in s.
        action_s: Time of each further action, in s.
        action_bytes: Room on disk for each action.
    """

    start_s: float
    action_s: float
    action_bytes: float


@dataclass(frozen=True, slots=True, kw_only=True)
class RolloutCount:
    """How many rollouts an arm has under a prompt condition."""

    arm: str
    prompt: str
    rollouts: int


@dataclass(frozen=True, slots=True, kw_only=True)
class DryRun:
    """What a run would take.

    Attributes:
        policy: The policy's name; None where it cannot be loaded here.
        rollouts: How many rollouts.
        counts: How many by arm and prompt condition.
        hours: Most hours in one process, if no rollout reaches its goal; None where the policy could not be measured.
        action_s: Time of an action, mean over the measured suites, in s; None where it was not measured.
        measured_on: Suites on which the policy was measured.
        not_measured: Why it could not be measured; None where it could.
        gigabytes: Room that the finished dataset takes if no rollout reaches its goal, in 10^9 bytes.
    """

    policy: str | None
    rollouts: int
    counts: tuple[RolloutCount, ...]
    hours: float | None
    action_s: float | None
    measured_on: tuple[str, ...]
    not_measured: str | None
    gigabytes: float


def dry_run(
    policy: Policy | str,
    instances: Sequence[Instance],
    *,
    repeats: int = 1,
    progress: Callable[[str], None] | None = None,
) -> DryRun:
    """Work out what a run would take; a few short rollouts are executed, and nothing of them stays.

    Args:
        policy: The policy, or its name.
        instances: The instances of the run.
        repeats: In how many rollouts each of them is run: initial states times seeds times visual probes.
        progress: Called with each suite before it is measured.

    Raises:
        InvalidInputError, NotFoundError: The policy's name makes no sense, it has no checkpoint for a suite, or the run
            has more rollouts than one call takes.
    """
    check_rollout_count(len(instances), repeats)
    first = {instance.suite: instance for instance in reversed(instances)}
    rates: dict[str, Rate] = {}
    name: str | None = None
    not_measured: str | None = None
    try:
        runnable, info = policy_for_run(policy, list(first))
        name = info.name
        rates = _rates(runnable, dict(sorted(first.items())), progress or (lambda _: None))
    except (PolicyError, MissingExtraError) as error:
        not_measured = str(error)
    on_disk = rates or _rates(PERSISTENT, dict([next(iter(first.items()))]), lambda _: None)
    actions = repeats * sum(instance.horizon for instance in instances)
    seconds = None if not rates else repeats * sum(_seconds(instance, rates) for instance in instances)
    counts = Counter((str(instance.arm), str(instance.prompt)) for instance in instances)
    return DryRun(
        policy=name,
        rollouts=repeats * len(instances),
        counts=tuple(RolloutCount(arm=a, prompt=p, rollouts=repeats * n) for (a, p), n in counts.items()),
        hours=None if seconds is None else seconds / 3600,
        action_s=sum(rate.action_s for rate in rates.values()) / len(rates) if rates else None,
        measured_on=tuple(rates),
        not_measured=not_measured,
        gigabytes=actions * sum(rate.action_bytes for rate in on_disk.values()) / len(on_disk) / 1e9,
    )


def _seconds(instance: Instance, rates: dict[str, Rate]) -> float:
    """Most seconds of a rollout; of a suite that was not measured the mean of those that were."""
    known = [rates[instance.suite]] if instance.suite in rates else list(rates.values())
    each = (rate.start_s + rate.action_s * (instance.horizon - 1) for rate in known)
    return sum(each) / len(known)


def _rates(policy: Policy | str, instances: dict[str, Instance], progress: Callable[[str], None]) -> dict[str, Rate]:
    """The rate of each suite, of as many as there is time for."""
    source, scenes = PolicySource(policy, Patience(answer_limit_s=ANSWER_LIMIT_S, pause_s=0.0)), ScenePool()
    began, found = time.monotonic(), dict[str, Rate]()
    for suite, instance in instances.items():
        if found and time.monotonic() - began > BUDGET_S:
            break
        progress(suite)
        found[suite] = _rate(source, instance, scenes)
    return found


def _rate(source: PolicySource, instance: Instance, scenes: ScenePool) -> Rate:
    _timed(source, instance, scenes, steps=1)  # builds the scene and loads the model
    short_s, short = _timed(source, instance, scenes, steps=1)
    long_s, long = _timed(source, instance, scenes, steps=FEW_STEPS if short_s > SLOW_S else STEPS)
    further = max(1, len(long.sim_states) - len(short.sim_states))
    with tempfile.TemporaryDirectory() as folder:
        sizes = [write_shard(rollout, Path(folder)).stat().st_size for rollout in (short, long)]
    return Rate(
        start_s=short_s,
        action_s=max(0.0, long_s - short_s) / further,
        action_bytes=(sizes[1] - sizes[0]) / further,
    )


def _timed(source: PolicySource, instance: Instance, scenes: ScenePool, *, steps: int) -> tuple[float, Rollout]:
    """Seconds of a rollout that is cut to so many actions, and the rollout."""
    job = Job(instance=replace(instance, horizon=min(steps, instance.horizon)), init_state=0, seed=0)
    began = time.perf_counter()
    outcome = run_job(source, job, scenes)
    seconds = time.perf_counter() - began
    raise_failure(outcome)
    if outcome.rollout is None:
        raise ConflictVLAError("a rollout gave neither frames nor a failure")
    return seconds, outcome.rollout
