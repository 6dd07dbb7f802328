"""What a run is made of: jobs, batches of them, and what became of each."""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence
from dataclasses import dataclass

from ...builders.rollouts.schema import Rollout
from ...toolkit.errors import InvalidInputError
from ...toolkit.records import Instance, VisualNoise, VisualProbe

UNEVEN = 0.1
"""By which share of its length a part of a run may be longer or shorter, so that no base task is cut."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """One rollout to be done.

    Attributes:
        instance: What the policy receives, and where.
        init_state: LIBERO's number of the initial state.
        seed: Seed handed to the policy.
        visual_probe: What is changed in the pictures that it sees.
        visual_noise: Kind of the noise of V4.
        policy_family: The policy's architecture family where the user names one; the policy's own otherwise.
    """

    instance: Instance
    init_state: int
    seed: int
    visual_probe: VisualProbe = VisualProbe.V0
    visual_noise: VisualNoise = VisualNoise.GAUSSIAN
    policy_family: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """A rollout that could not be finished.

    Attributes:
        rollout_id: Its id.
        error: What went wrong, in one line.
    """

    rollout_id: str
    error: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What became of a job: a rollout, or a failure."""

    job: Job
    rollout: Rollout | None
    failure: Failure | None = None


def batches(jobs: Sequence[Job], most: int) -> list[tuple[Job, ...]]:
    """The jobs in batches of one base task each, so that a worker builds few scenes.

    Args:
        jobs: Jobs in order, those of a base task next to each other.
        most: Most jobs of a batch.
    """
    found: list[tuple[Job, ...]] = []
    for _, group in itertools.groupby(jobs, key=lambda job: (job.instance.suite, job.instance.base_task)):
        of_task = tuple(group)
        found.extend(of_task[start : start + most] for start in range(0, len(of_task), most))
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class RunShard:
    """One of several parts of a run, each run by a process of its own.

    Attributes:
        number: Which part, from 1.
        count: How many there are.
    """

    number: int
    count: int

    def __str__(self) -> str:
        return f"{self.number}/{self.count}"


def parse_shard(text: str) -> RunShard:
    """A part of a run from text such as ``2/8``.

    Raises:
        InvalidInputError: It is something else.
    """
    found = re.fullmatch(r"(\d{1,6})/(\d{1,6})", text.strip())
    if found is None or not 1 <= int(found[1]) <= int(found[2]):
        raise InvalidInputError(f"--shard '{text}': write it like 1/8, the first of eight parts; the last is 8/8")
    return RunShard(number=int(found[1]), count=int(found[2]))


def jobs_of_shard(jobs: Sequence[Job], shard: RunShard) -> list[Job]:
    """The jobs of one part: a stretch of them, so that few scenes are built twice, as long as the others.

    The parts depend on the jobs alone. They are cut between base tasks where that makes no more than ``UNEVEN``.

    Args:
        jobs: All jobs of the run, those of a base task next to each other.
        shard: Which part.
    """
    ends = list(itertools.accumulate(job.instance.horizon for job in jobs))
    last_of_tasks = list(itertools.accumulate(len(task) for task in batches(jobs, len(jobs) or 1)))
    borders = [ends[last - 1] for last in last_of_tasks]
    first, last = (_cut(borders, number, shard.count) for number in (shard.number - 1, shard.number))
    return [job for job, end in zip(jobs, ends, strict=True) if first < end - job.instance.horizon / 2 <= last]


def _cut(borders: Sequence[int], number: int, count: int) -> float:
    """Up to how many actions the first parts reach."""
    share = (borders[-1] if borders else 0) / count
    nearest = min((0, *borders), key=lambda border: abs(border - number * share))
    return nearest if abs(nearest - number * share) <= UNEVEN * share else number * share
