"""What a run would take: how many rollouts, hours at a rate that is measured here, and room on disk."""

from __future__ import annotations

import tempfile
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from ..builders.rollouts.run_layout import recorded_stems
from ..builders.rollouts.schema import Rollout, file_stem
from ..builders.rollouts.shards import write_shard
from ..toolkit.errors import ConflictVLAError, MissingExtraError, PolicyError
from ..toolkit.records import Instance, VisualProbe
from ..toolkit.simulation.scene_pool import ScenePool
from .policies.interface import Policy, PolicyInfo
from .policies.registry import policy_for_run
from .rollouts.executors.base import Patience, PolicySource, raise_failure, run_job
from .rollouts.jobs import Job, RunShard, jobs_of_shard
from .rollouts.rollout import rollout_id
from .rollouts.run import check_rollout_count, check_states_exist, list_jobs

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
        rollouts: How many rollouts the run has, or the part of it that is meant.
        recorded: How many of them are recorded already; None where the policy cannot be loaded here.
        counts: How many by arm and prompt condition, recorded or not.
        hours: Most hours of the others in one process, if none reaches its goal; None where the policy could not be
            measured.
        action_s: Time of an action, mean over the measured suites, in s; None where it was not measured.
        measured_on: Suites on which the policy was measured.
        not_measured: Why it could not be measured; None where it could.
        gigabytes: Room that the finished dataset takes if no rollout reaches its goal, in 10^9 bytes.
    """

    policy: str | None
    rollouts: int
    recorded: int | None
    counts: tuple[RolloutCount, ...]
    hours: float | None
    action_s: float | None
    measured_on: tuple[str, ...]
    not_measured: str | None
    gigabytes: float


def dry_run(
    policy: Policy | str,
    instances: Sequence[Instance],
    out: Path,
    *,
    init_states: Sequence[int] = (0,),
    seeds: Sequence[int] = (0,),
    visual_probes: Sequence[VisualProbe] = (VisualProbe.V0,),
    shard: RunShard | None = None,
    progress: Callable[[str], None] | None = None,
) -> DryRun:
    """Work out what ``run_policy`` would take; a few short rollouts are executed, and nothing of them stays.

    Args:
        policy: The policy, or its name.
        instances: The instances of the run.
        out: Folder of the run's dataset; what it has recorded already is not run again.
        init_states: As for ``run_policy``, as the next two are.
        seeds: Each run once.
        visual_probes: Each run once.
        shard: The part of the run that is meant; by default all of it.
        progress: Called with each suite before it is measured.

    Raises:
        InvalidInputError, NotFoundError: The policy's name makes no sense, it has no checkpoint for a suite, there
            is no such initial state, or the run has more rollouts than one call takes.
        DatasetError: What the folder holds is damaged.
    """
    check_rollout_count(len(instances), len(init_states) * len(seeds) * len(visual_probes))
    check_states_exist(instances, init_states)
    jobs = list_jobs(instances, init_states, seeds, visual_probes)
    jobs = jobs if shard is None else jobs_of_shard(jobs, shard)
    first = {job.instance.suite: job.instance for job in reversed(jobs)}
    rates: dict[str, Rate] = {}
    info: PolicyInfo | None = None
    not_measured: str | None = None
    try:
        runnable, info = policy_for_run(policy, {instance.suite for instance in instances})
        rates = _rates(runnable, dict(sorted(first.items())), progress or (lambda _: None))
    except (PolicyError, MissingExtraError) as error:
        not_measured = str(error)
    missing = jobs if info is None else _missing(jobs, info, out / info.name)
    on_disk = rates or _rates(PERSISTENT, dict([*first.items()][:1]), lambda _: None)
    action_bytes = [rate.action_bytes for rate in on_disk.values()]
    actions = sum(job.instance.horizon for job in jobs)
    counts = Counter((str(job.instance.arm), str(job.instance.prompt)) for job in jobs)
    return DryRun(
        policy=None if info is None else info.name,
        rollouts=len(jobs),
        recorded=None if info is None else len(jobs) - len(missing),
        counts=tuple(RolloutCount(arm=arm, prompt=prompt, rollouts=n) for (arm, prompt), n in counts.items()),
        hours=None if not_measured is not None else sum(_seconds(job.instance, rates) for job in missing) / 3600,
        action_s=sum(rate.action_s for rate in rates.values()) / len(rates) if rates else None,
        measured_on=tuple(rates),
        not_measured=not_measured,
        gigabytes=actions * sum(action_bytes) / max(len(action_bytes), 1) / 1e9,
    )


def _missing(jobs: Sequence[Job], policy: PolicyInfo, dataset: Path) -> list[Job]:
    """Those of the jobs that a run has not recorded yet."""
    recorded = recorded_stems(dataset)
    return [job for job in jobs if file_stem(rollout_id(policy, job)) not in recorded]


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
