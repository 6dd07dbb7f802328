"""What a run is made of: jobs, batches of them, and what became of each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

from ...builders.rollouts.schema import Rollout
from ...toolkit.records import Instance, VisualNoise, VisualProbe


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """One rollout to be done.

    Attributes:
        instance: What the policy receives, and where.
        init_state: LIBERO's number of the initial state.
        seed: Seed handed to the policy.
        visual_probe: What is changed in the pictures that it sees.
        visual_noise: Kind of the noise of V4.
    """

    instance: Instance
    init_state: int
    seed: int
    visual_probe: VisualProbe = VisualProbe.V0
    visual_noise: VisualNoise = VisualNoise.GAUSSIAN


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
    for _, group in groupby(jobs, key=lambda job: (job.instance.suite, job.instance.base_task)):
        of_task = tuple(group)
        found.extend(of_task[start : start + most] for start in range(0, len(of_task), most))
    return found
