"""A run: one policy over many instances, recorded shard by shard, finished as one LeRobot dataset.

What a run consists of is fixed before it starts and stored beside its shards. Called again with the same settings it
continues where it stopped; with others it refuses, since rollouts under different settings must not be mixed.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ...builders.rollouts.episode_record import EpisodeRecord
from ...builders.rollouts.lerobot_dataset import check_lerobot, write_lerobot_dataset
from ...toolkit.atomic_files import write_atomic
from ...toolkit.errors import InvalidInputError
from ...toolkit.libero.base_tasks import base_task, check_init_states
from ...toolkit.records import Arm, Instance, VisualNoise, VisualProbe
from ..policies.interface import Policy
from ..policies.registry import policy_for_run
from .executors.base import Executor
from .executors.in_process import InProcess
from .jobs import Failure, Job, Outcome
from .run_folder import RunFolder
from .versions import installed_versions

FAILURES_FILE = "failures.jsonl"


@dataclass(frozen=True, slots=True, kw_only=True)
class RunProgress:
    """State of a run after a rollout, or after skipping those done before.

    Attributes:
        done: Rollouts that are finished or have failed.
        total: Rollouts of the run.
        job: The rollout just finished; None for those that an earlier call finished.
        success: Whether it reached the reference goal; None where it failed or was finished before.
        error: What went wrong with it, or None.
        clipped_actions: How many of its actions were outside [-1, 1].
    """

    done: int
    total: int
    job: Job | None
    success: bool | None = None
    error: str | None = None
    clipped_actions: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """A finished run.

    Attributes:
        dataset: Folder of the LeRobot v3.0 dataset; None where every rollout failed.
        rollouts: How many rollouts it holds.
        failures: Rollouts that could not be finished; they are listed beside the dataset too.
        clipped: Actions outside [-1, 1], which were clipped, of each rollout that has some, by rollout id.
    """

    dataset: Path | None
    rollouts: int
    failures: tuple[Failure, ...]
    clipped: Mapping[str, int]

    @property
    def clipped_warning(self) -> str | None:
        """A warning about clipped actions; None where there were none."""
        if not self.clipped:
            return None
        return (
            f"{sum(self.clipped.values())} actions in {len(self.clipped)} of {self.rollouts} rollouts were outside "
            "[-1, 1] and were clipped (episode column clipped_actions): if these are many, check how the policy "
            "scales its actions"
        )


def with_references(conflicts: Sequence[Instance], everything: Sequence[Instance]) -> tuple[Instance, ...]:
    """The conflict instances and controls, each base task's after the references they are paired with.

    Args:
        conflicts: Conflict instances and controls to run.
        everything: Where the references are found.

    Raises:
        InvalidInputError: A reference is missing.
    """
    references = {instance.instance_id: instance for instance in everything if instance.arm is Arm.REFERENCE}
    ordered: list[Instance] = []
    for pair_id in dict.fromkeys(conflict.pair_id for conflict in conflicts):
        if pair_id not in references:
            raise InvalidInputError(f"no reference instance '{pair_id}' among the tasks")
        ordered.append(references[pair_id])
        ordered.extend(conflict for conflict in conflicts if conflict.pair_id == pair_id)
    return tuple(ordered)


def run_policy(
    policy: Policy | str,
    instances: Sequence[Instance],
    out: Path,
    *,
    init_states: Sequence[int],
    seeds: Sequence[int] = (0,),
    visual_probes: Sequence[VisualProbe] = (VisualProbe.V0,),
    visual_noise: VisualNoise = VisualNoise.GAUSSIAN,
    executor: Executor | None = None,
    keep_going: bool = False,
    progress: Callable[[RunProgress], None] | None = None,
) -> Run:
    """Run a policy and leave ``out/<policy name>``, a LeRobot v3.0 dataset of its rollouts.

    Args:
        policy: The policy, or its name (see ``load_policy``); only a name can be run in several processes.
        instances: References, conflict instances and controls.
        out: Folder for the dataset; shards are in ``out/.<policy name>`` until it is finished.
        init_states: LIBERO's numbers of the initial states, each run once.
        seeds: Seeds handed to the policy, each run once.
        visual_probes: Under which visual probes each is run.
        visual_noise: Kind of the noise of V4.
        executor: Where rollouts are run; in this process by default. The result does not depend on it.
        keep_going: Whether to go on when the policy fails in a rollout; the failure is recorded.
        progress: Called after each rollout.

    Raises:
        InvalidInputError: The folder holds a run with other settings, or cannot be written.
        PolicyError: The policy failed and ``keep_going`` is off; what was finished stays, and the run can be
            continued.
    """
    check_lerobot()
    for suite, name in {(instance.suite, instance.base_task) for instance in instances}:
        check_init_states(base_task(suite, name), init_states)
    policy, info = policy_for_run(policy, {instance.suite for instance in instances})
    jobs = _jobs(instances, init_states, seeds, visual_probes, visual_noise)
    folder, finished = RunFolder(path=out / f".{info.name}", policy=info), out / info.name
    if finished.exists():
        raise InvalidInputError(f"{finished}: exists already; choose another --out or remove it")
    folder.claim(jobs, seeds, installed_versions())
    failures = _run_missing(policy, jobs, folder, executor or InProcess(), keep_going=keep_going, progress=progress)
    shards = [shard for shard in map(folder.shard, jobs) if shard.exists()]
    episodes: tuple[EpisodeRecord, ...] = ()
    if shards:
        name = info.name.replace("_", "-")
        episodes = write_lerobot_dataset(shards, finished, repo_id=f"conflictvla/rollouts-{name}")
    if failures:
        _write_failures(failures, out / f"{info.name}.{FAILURES_FILE}")
    folder.remove()
    clipped = {episode.rollout_id: episode.clipped_actions for episode in episodes if episode.clipped_actions}
    return Run(dataset=finished if shards else None, rollouts=len(shards), failures=failures, clipped=clipped)


def _jobs(
    instances: Sequence[Instance],
    init_states: Sequence[int],
    seeds: Sequence[int],
    visual_probes: Sequence[VisualProbe],
    visual_noise: VisualNoise,
) -> list[Job]:
    """Jobs grouped by base task, so that each scene is built once."""
    by_task = sorted(instances, key=lambda instance: (instance.suite, instance.base_task_index))
    return [
        Job(instance=instance, init_state=state, seed=seed, visual_probe=probe, visual_noise=visual_noise)
        for instance, seed, state, probe in itertools.product(by_task, seeds, init_states, visual_probes)
    ]


def _run_missing(
    policy: Policy | str,
    jobs: Sequence[Job],
    folder: RunFolder,
    executor: Executor,
    *,
    keep_going: bool,
    progress: Callable[[RunProgress], None] | None,
) -> tuple[Failure, ...]:
    """Run what has no shard yet; each rollout is stored before it is reported."""
    missing = [job for job in jobs if not folder.shard(job).exists()]
    done, failures = len(jobs) - len(missing), []
    report = progress or (lambda _: None)
    report(RunProgress(done=done, total=len(jobs), job=None))
    for outcome in executor.run(policy, missing, stop_on_failure=not keep_going):
        if outcome.rollout is not None:
            folder.store(outcome.rollout)
        if outcome.failure is not None:
            failures.append(outcome.failure)
        done += 1
        report(_progress_of(outcome, done, len(jobs)))
    return tuple(sorted(failures, key=lambda failure: failure.rollout_id))


def _progress_of(outcome: Outcome, done: int, total: int) -> RunProgress:
    if outcome.rollout is None:
        error = outcome.failure.error if outcome.failure else None
        return RunProgress(done=done, total=total, job=outcome.job, error=error)
    episode = outcome.rollout.episode
    return RunProgress(
        done=done,
        total=total,
        job=outcome.job,
        success=episode.success,
        clipped_actions=episode.clipped_actions or 0,
    )


def _write_failures(failures: Sequence[Failure], file: Path) -> None:
    lines = [json.dumps({"rollout_id": failure.rollout_id, "error": failure.error}) for failure in failures]
    write_atomic(file, "\n".join(lines) + "\n")
