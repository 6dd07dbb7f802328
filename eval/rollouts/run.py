"""A run: one policy over many instances, recorded shard by shard, finished as one LeRobot dataset.

A run goes on wherever it stopped, and grows: called again, it runs what is missing. Several processes may work on one,
sharing its rollouts or each with a part of its own. Rollouts under different settings are never mixed.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from pathlib import Path

from ...builders.rollouts.lerobot_dataset import check_lerobot
from ...builders.rollouts.run_layout import UnfinishedRun, failures_file
from ...builders.rollouts.schema import file_stem
from ...toolkit.counting import counted
from ...toolkit.errors import InvalidInputError
from ...toolkit.libero.base_tasks import base_task, check_init_states
from ...toolkit.records import Arm, Instance, VisualNoise, VisualProbe
from ..policies.interface import Policy, PolicyInfo
from ..policies.registry import policy_for_run
from ..policies.spec import safe_name
from .executors.base import Executor
from .executors.in_process import InProcess
from .jobs import Failure, Job, Outcome, RunShard, jobs_of_shard
from .rollout import rollout_id
from .run_folder.folder import RunFolder, RunState
from .run_folder.locks import POLL_S
from .versions import installed_versions

MOST_ROLLOUTS = 1_000_000
"""Most rollouts of one call: 68 full evaluations, or years on one machine."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunProgress:
    """State of a run after a rollout, or after skipping those done before.

    Attributes:
        done: Rollouts that are finished or have failed.
        total: Rollouts of the run, or of this process's shard.
        job: The rollout just finished; None for those that an earlier call or another process finished.
        success: Whether it reached the reference goal; None where it failed or was finished before.
        error: What went wrong with it, or None.
        clipped_actions: How many of its actions were outside [-1, 1].
        waiting: What is waited for, in one line, or None.
    """

    done: int
    total: int
    job: Job | None
    success: bool | None = None
    error: str | None = None
    clipped_actions: int = 0
    waiting: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """A run, as far as it is when a call ends.

    Attributes:
        dataset: Folder of the LeRobot v3.0 dataset; None where the run is unfinished, or every rollout failed.
        rollouts: How many rollouts it holds.
        failures: Rollouts that could not be finished; they are listed beside the dataset too.
        clipped: Actions outside [-1, 1], which were clipped, of each rollout that has some, by rollout id.
        unfinished: What is missing, where this call has done its part but others have not; None for a finished run.
        left_in_call: How many rollouts of an unfinished run are left of this call's other parts.
        left_in_others: How many are left that other calls alone have asked for.
        failures_file: The list of the failures; None where there are none, or the run is unfinished.
        failed_in_others: How many of the failures this call has not asked for.
    """

    dataset: Path | None
    rollouts: int
    failures: tuple[Failure, ...]
    clipped: Mapping[str, int]
    unfinished: UnfinishedRun | None = None
    left_in_call: int = 0
    left_in_others: int = 0
    failures_file: Path | None = None
    failed_in_others: int = 0

    @property
    def clipped_warning(self) -> str | None:
        """A warning about clipped actions; None where there were none."""
        if not self.clipped:
            return None
        return (
            f"{counted(sum(self.clipped.values()), 'action')} in {len(self.clipped)} of "
            f"{counted(self.rollouts, 'rollout')} outside [-1, 1], and clipped (episode column clipped_actions): if "
            "these are many, check how the policy scales its actions"
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
    policy_family: str | None = None,
    executor: Executor | None = None,
    keep_going: bool = False,
    shard: RunShard | None = None,
    progress: Callable[[RunProgress], None] | None = None,
) -> Run:
    """Run a policy and leave ``out/<policy name>``, a LeRobot v3.0 dataset of its rollouts.

    What the folder has already is not run again, and the dataset that is there is extended. Several processes may be
    given the same folder at the same time.

    Args:
        policy: The policy, or its name (see ``load_policy``); only a name can be run in several processes.
        instances: References, conflict instances and controls.
        out: Folder for the dataset; shards are in ``out/.<policy name>`` until it is finished.
        init_states: LIBERO's numbers of the initial states, each run once.
        seeds: Seeds handed to the policy, each run once.
        visual_probes: Under which visual probes each is run.
        visual_noise: Kind of the noise of V4.
        policy_family: The policy's architecture family; by default what the policy itself states.
        executor: Where rollouts are run; in this process by default. The result does not depend on it.
        keep_going: Whether to go on when the policy fails in a rollout; the failure is recorded.
        shard: Run this part alone; whichever process runs the last rollout of all parts writes the dataset.
        progress: Called after each rollout.

    Raises:
        InvalidInputError: There are no instances, or more than ``MOST_ROLLOUTS`` rollouts; or the folder holds
            rollouts under other settings, or cannot be written.
        DatasetError: What the folder holds is damaged.
        PolicyError: The policy failed and ``keep_going`` is off; what was finished stays, and the run can be
            continued.
    """
    check_lerobot()
    if not instances:
        raise InvalidInputError("no instances to run: choose some cases, such as those of --lite")
    check_rollout_count(len(instances), len(init_states) * len(seeds) * len(visual_probes))
    check_states_exist(instances, init_states)
    policy, info = policy_for_run(policy, {instance.suite for instance in instances})
    if safe_name(info.name) != info.name:
        raise InvalidInputError(f"policy name '{info.name}': use letters, digits, '-', '_', '.', as a folder has it")
    jobs = [
        replace(job, policy_family=policy_family, visual_noise=visual_noise)
        for job in list_jobs(instances, init_states, seeds, visual_probes)
    ]
    mine = jobs if shard is None else jobs_of_shard(jobs, shard)
    reporter = _Reporter(progress or (lambda _: None), total=len(mine))
    folder = RunFolder(out / info.name, reporter.wait)
    with folder.at_work(info, jobs, mine, installed_versions()):
        _run_missing(policy, info, mine, folder, executor or InProcess(), reporter, keep_going=keep_going)
        state = folder.finish()
    return _run_of(state, folder.dataset, reporter, {rollout_id(info, job) for job in jobs})


def check_states_exist(instances: Sequence[Instance], init_states: Sequence[int]) -> None:
    """Make sure, before anything is run, that the base tasks of these instances have the initial states asked for.

    Raises:
        InvalidInputError: One of them lacks one.
    """
    for suite, name in {(instance.suite, instance.base_task) for instance in instances}:
        check_init_states(base_task(suite, name), init_states)


def check_rollout_count(instances: int, repeats: int) -> None:
    """Make sure, before anything is listed, that a call is not for so many rollouts that their list fills the memory.

    Args:
        instances: How many instances are run.
        repeats: In how many rollouts each of them is run: initial states times seeds times visual probes.

    Raises:
        InvalidInputError: There are more than ``MOST_ROLLOUTS``.
    """
    if instances * repeats > MOST_ROLLOUTS:
        raise InvalidInputError(
            f"{instances * repeats:,} rollouts: one call takes at most {MOST_ROLLOUTS:,}; give fewer cases, initial "
            "states or seeds, and the others in further calls with the same --out"
        )


def _run_of(state: RunState, dataset: Path, reporter: _Reporter, asked: AbstractSet[str]) -> Run:
    """The run after a call that has asked for these rollouts, by their ids."""
    if state.unfinished is not None:
        in_call = len(state.left & {file_stem(each) for each in asked})
        return Run(
            dataset=None,
            rollouts=0,
            failures=tuple(sorted(reporter.failures, key=lambda failure: failure.rollout_id)),
            clipped={},
            unfinished=state.unfinished,
            left_in_call=in_call,
            left_in_others=len(state.left) - in_call,
        )
    return Run(
        dataset=dataset if state.records else None,
        rollouts=len(state.records),
        failures=state.failures,
        clipped={each.rollout_id: each.clipped_actions for each in state.records if each.clipped_actions},
        failures_file=failures_file(dataset) if state.failures else None,
        failed_in_others=sum(failure.rollout_id not in asked for failure in state.failures),
    )


def list_jobs(
    instances: Sequence[Instance],
    init_states: Sequence[int],
    seeds: Sequence[int],
    visual_probes: Sequence[VisualProbe],
) -> list[Job]:
    """Jobs grouped by base task, so that each scene is built once."""
    by_task = sorted(instances, key=lambda instance: (instance.suite, instance.base_task_index))
    return [
        Job(instance=instance, init_state=state, seed=seed, visual_probe=probe)
        for instance, seed, state, probe in itertools.product(by_task, seeds, init_states, visual_probes)
    ]


def _run_missing(
    policy: Policy | str,
    info: PolicyInfo,
    jobs: Sequence[Job],
    folder: RunFolder,
    executor: Executor,
    reporter: _Reporter,
    *,
    keep_going: bool,
) -> None:
    """Run what is neither there nor run by another process, and wait for that; each rollout is stored at once."""
    while True:
        missing = folder.open_jobs(info, jobs)
        reporter.skip(len(jobs) - len(missing))
        if not missing:
            return
        free, holders = folder.unclaimed(info, missing)
        if not free:
            reporter.wait(f"waiting for the last rollouts of {', '.join(sorted(map(str, holders)))}")
            time.sleep(POLL_S)
            continue
        outcomes = executor.run(
            policy, free, stop_on_failure=not keep_going, take=lambda job: folder.take(rollout_id(info, job))
        )
        for outcome in outcomes:
            if outcome.rollout is not None:
                folder.store(outcome.rollout)
            if outcome.failure is not None:
                folder.fail(outcome.failure)
            reporter.add(outcome)


class _Reporter:
    """Reports how far a run is: never backwards, and each rollout once.

    Args:
        progress: What is called.
        total: Rollouts of this process.
    """

    def __init__(self, progress: Callable[[RunProgress], None], *, total: int) -> None:
        self.failures: list[Failure] = []
        self._progress, self._total = progress, total
        self._done: int | None = None
        self._waiting: str | None = None

    def skip(self, done: int) -> None:
        """Report, at the beginning or where it is news, how many are done, whoever has run them."""
        if self._done is None or done > self._done:
            self._done = done
            self._progress(RunProgress(done=done, total=self._total, job=None))

    def add(self, outcome: Outcome) -> None:
        """Report a rollout that was run here."""
        self._done = min(self._total, (self._done or 0) + 1)
        self.failures += [] if outcome.failure is None else [outcome.failure]
        self._progress(_progress_of(outcome, self._done, self._total))

    def wait(self, what: str) -> None:
        """Report once what is waited for."""
        if what != self._waiting:
            self._waiting = what
            self._progress(RunProgress(done=self._done or 0, total=self._total, job=None, waiting=what))


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
