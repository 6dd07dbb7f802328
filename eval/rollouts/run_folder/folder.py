"""The folder of a run: begun, shared by several processes, finished as a dataset, and extended later."""

from __future__ import annotations

import contextlib
import hashlib
import itertools
import json
import os
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from ....builders.rollouts.episode_record import EpisodeRecord
from ....builders.rollouts.lerobot_dataset import write_rollouts
from ....builders.rollouts.recorded import check_complete
from ....builders.rollouts.run_layout import (
    NEXT,
    PLANS,
    PREVIOUS,
    SETTINGS_FILE,
    SHARDS,
    PlannedRollout,
    UnfinishedRun,
    failures_file,
    finished_folder,
    planned_rollouts,
    shard_stems,
    unfinished_run,
    work_folder,
)
from ....builders.rollouts.schema import Rollout, file_stem
from ....builders.rollouts.shards import write_shard
from ....toolkit.atomic_files import write_atomic
from ....toolkit.counting import counted
from ....toolkit.errors import DatasetError, InvalidInputError
from ...policies.interface import PolicyInfo
from ..jobs import Failure, Job
from ..rollout import rollout_id
from ..versions import Versions
from .claims import Claims
from .locks import Heartbeat, Lock, Worker, locked
from .recorded_rollouts import RecordedRollout, hub_name, in_order, rollouts_of_dataset, rollouts_of_shards
from .settings import (
    RunSettings,
    differences,
    joined,
    read_settings,
    settings_of_jobs,
    settings_of_records,
    what_to_give,
    who_wrote,
)

FAILURES = "failures"


@dataclass(frozen=True, slots=True, kw_only=True)
class RunState:
    """How far a run is.

    Attributes:
        records: The rollouts of its dataset; none while it is unfinished.
        failures: Rollouts that could not be finished.
        unfinished: How much is missing; None for a finished run.
        left: Which rollouts of an unfinished run have neither been finished nor failed, by the stems of their files.
    """

    records: tuple[EpisodeRecord, ...] = ()
    failures: tuple[Failure, ...] = ()
    unfinished: UnfinishedRun | None = None
    left: frozenset[str] = frozenset()


class RunFolder:
    """A policy's run on disk, as one process sees it; others may work on it at the same time.

    Args:
        dataset: Where its dataset is, or will be.
        wait: Called with one line where another process is waited for.
    """

    def __init__(self, dataset: Path, wait: Callable[[str], None]) -> None:
        self.dataset, self.path = dataset, work_folder(dataset)
        self._wait, self._worker, self._heartbeat = wait, Worker(), Heartbeat()
        self._claims = Claims(self.path, self._worker)
        self._finished: list[RecordedRollout] = []
        self._finished_stems: set[str] = set()

    @contextlib.contextmanager
    def at_work(
        self, policy: PolicyInfo, jobs: Sequence[Job], mine: Sequence[Job], versions: Versions
    ) -> Iterator[None]:
        """Plan rollouts, beside whatever the run has already; while the block runs they can be claimed and stored.

        Args:
            policy: The policy.
            jobs: All rollouts of this call.
            mine: Those of them that this process is to run; where they have failed before, they are tried again.
            versions: Installed software.

        Raises:
            InvalidInputError: The run's settings are others, the folder cannot be written, or is no run's.
            DatasetError: What is there is damaged.
        """
        with self._heartbeat, contextlib.ExitStack() as working:
            with self._locked():
                self._recover()
                self._read_finished()
                self._check(policy, jobs, versions)
                if self.path.exists() or self._missing(policy, mine):
                    self._check_extendable()
                    self._plan(policy, jobs, versions)
                    self._forget_failures(policy, mine)
                    working.enter_context(self._claims.held(self._heartbeat))
            yield

    def open_jobs(self, policy: PolicyInfo, jobs: Sequence[Job]) -> list[Job]:
        """The rollouts of these that are neither finished nor failed; none where another process finished the run."""
        if not (self.path / SETTINGS_FILE).exists():
            return []
        settled = self._finished_stems | shard_stems(self.path) | self._failure_stems()
        return [job for job in jobs if file_stem(rollout_id(policy, job)) not in settled]

    def take(self, where: str) -> bool:
        """Whether this process is to run a rollout now, by its id: no other does, and it is not done."""
        stem = file_stem(where)
        if not self._claims.take(stem):
            return False
        places = (self.path / SHARDS / f"{stem}.parquet", self.path / FAILURES / f"{stem}.json")
        if stem in self._finished_stems or any(place.exists() for place in places):
            self._claims.release(stem)
            return False
        return True

    def unclaimed(self, policy: PolicyInfo, jobs: Iterable[Job]) -> tuple[list[Job], set[Worker]]:
        """Those of these rollouts that no living process has claimed, and which processes have claimed the others."""
        claimed = self._claims.living()
        free, holders = list[Job](), set[Worker]()
        for job in jobs:
            stem = file_stem(rollout_id(policy, job))
            if stem in claimed:
                holder = claimed[stem]
                holders |= {holder} if holder else set()
            else:
                free.append(job)
        return free, holders

    def store(self, rollout: Rollout) -> None:
        """Write a finished rollout; afterwards an interruption cannot lose it."""
        if (self.path / SETTINGS_FILE).exists():  # else another process has run it too, and finished the run
            write_shard(rollout, self.path / SHARDS)
        self._claims.release(file_stem(rollout.episode.rollout_id))

    def fail(self, failure: Failure) -> None:
        """Note that a rollout has failed, and is not to be tried again before the next call."""
        if (self.path / SETTINGS_FILE).exists():
            write_atomic(self.path / FAILURES / f"{file_stem(failure.rollout_id)}.json", json.dumps(asdict(failure)))
        self._claims.release(file_stem(failure.rollout_id))

    def finish(self) -> RunState:
        """Write the dataset, or extend it, if nothing that any call has asked for is missing.

        Raises:
            InvalidInputError: It cannot be written.
            DatasetError: A shard is damaged.
        """
        with self._locked() as lock:
            # Since this process began, another may have extended the dataset, or been killed while it did.
            self._recover()
            self._read_finished()
            if not (self.path / SETTINGS_FILE).exists():
                return self._state()
            unfinished = unfinished_run(self.path)
            settled = self._finished_stems | shard_stems(self.path) | self._failure_stems()
            left = frozenset(file_stem(planned.rollout_id) for planned in planned_rollouts(self.path)) - settled
            if left:
                return RunState(unfinished=unfinished, left=left)
            self._write(lock)
            return self._state()

    def finish_alone(self) -> RunState:
        """As ``finish``, but of a run that this process does not work on.

        Raises:
            InvalidInputError: It cannot be written.
            DatasetError: A shard is damaged.
        """
        with self._heartbeat:
            return self.finish()

    @contextlib.contextmanager
    def _locked(self) -> Iterator[Lock]:
        try:
            self.dataset.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InvalidInputError(f"{self.dataset.parent}: cannot be written ({error.strerror})") from error
        file = self.path.with_name(f"{self.path.name}.lock")
        with locked(file, self._worker, self._heartbeat, self._wait) as lock:
            yield lock

    def _recover(self) -> None:
        """Put right what a process has left that was killed while it exchanged the dataset or removed this folder."""
        there = finished_folder(self.dataset)
        if there is not None and there != self.dataset:
            os.rename(there, self.dataset)
        leftovers = [self.path / NEXT, self.path / PREVIOUS, *self.path.glob(f".{NEXT}-*")]
        leftovers += self.path.parent.glob(f"{self.path.name}.removed-*")
        if not (self.path / SETTINGS_FILE).exists():
            leftovers.append(self.path)
        for leftover in leftovers:
            shutil.rmtree(leftover, ignore_errors=True)

    def _read_finished(self) -> None:
        if self.dataset.exists() and finished_folder(self.dataset) != self.dataset:
            raise InvalidInputError(
                f"{self.dataset}: exists already and is no dataset of rollouts; choose another --out or remove it"
            )
        self._finished = rollouts_of_dataset(self.dataset) if self.dataset.exists() else []
        self._finished_stems = {file_stem(each.record.rollout_id) for each in self._finished}

    def _check(self, policy: PolicyInfo, jobs: Sequence[Job], versions: Versions) -> None:
        """Refuse rollouts that must not be mixed with those that are there."""
        asked = settings_of_jobs(policy, jobs, versions)
        for one, other in itertools.combinations(asked, 2):
            if differing := differences(one, other):
                raise InvalidInputError(
                    f"{self.dataset}: these rollouts differ in their {', '.join(differing)}; run them apart, each with "
                    "an --out of its own"
                )
        asked_ids = {rollout_id(policy, job): job for job in jobs}
        records = [each.record for each in self._finished]
        misfit = _misfit(asked, asked_ids, settings_of_records(records), records)
        if misfit is None:
            misfit = _misfit(asked, asked_ids, self._settings(versions), planned_rollouts(self.path))
            if misfit is not None and self._has_run_nothing():
                self._remove()
                return
        if misfit is not None:
            raise InvalidInputError(f"{self.dataset}: {misfit}")

    def _has_run_nothing(self) -> bool:
        """Whether this folder is left of calls that have ended before their first rollout was finished."""
        return not shard_stems(self.path) and not self._claims.others_at_work()

    def _check_extendable(self) -> None:
        """Read now whatever of the dataset and the shards could keep them from being written as one dataset later."""
        if self.dataset.exists():
            check_complete(self.dataset)
        self._listed_failures()
        rollouts_of_shards(self.path)

    def _settings(self, versions: Versions) -> list[RunSettings]:
        file = self.path / SETTINGS_FILE
        if not file.exists():
            return []
        text = ""
        try:
            text = file.read_bytes().decode(errors="replace")
            return [read_settings(text)]
        except (OSError, ValueError, TypeError, RecursionError) as error:
            raise InvalidInputError(
                f"{file}: {who_wrote(text, versions.conflictvla)}, or choose another --out; "
                f"{counted(len(shard_stems(self.path)), 'finished rollout')} will stay in {self.path / SHARDS}"
            ) from error

    def _missing(self, policy: PolicyInfo, jobs: Sequence[Job]) -> bool:
        return any(file_stem(rollout_id(policy, job)) not in self._finished_stems for job in jobs)

    def _plan(self, policy: PolicyInfo, jobs: Sequence[Job], versions: Versions) -> None:
        """Write down what is to be run."""
        (self.path / SHARDS).mkdir(parents=True, exist_ok=True)
        rows = [
            PlannedRollout(
                rollout_id=rollout_id(policy, job), prompt_text=job.instance.prompt_text, horizon=job.instance.horizon
            )
            for job in jobs
        ]
        text = json.dumps([asdict(row) for row in rows], indent=0)
        write_atomic(self.path / PLANS / f"{hashlib.sha256(text.encode()).hexdigest()[:16]}.json", text)
        settings = self._settings(versions)
        before = settings[0] if settings else None
        merged = before
        for now in settings_of_jobs(policy, jobs, versions):
            merged = now if merged is None else joined(merged, now)
        if merged != before and merged is not None:
            write_atomic(self.path / SETTINGS_FILE, json.dumps(asdict(merged), indent=1, sort_keys=True))

    def _forget_failures(self, policy: PolicyInfo, jobs: Iterable[Job]) -> None:
        failed = self._failure_stems()
        for stem in {file_stem(rollout_id(policy, job)) for job in jobs} & failed:
            (self.path / FAILURES / f"{stem}.json").unlink(missing_ok=True)

    def _write(self, lock: Lock) -> None:
        """Exchange the dataset, if there is one, for one with all rollouts, and remove this folder."""
        new = [
            each
            for each in rollouts_of_shards(self.path)
            if file_stem(each.record.rollout_id) not in self._finished_stems
        ]
        failures = self._failures()
        if new:
            name = new[0].record.policy_name
            shutil.rmtree(self.path / NEXT, ignore_errors=True)
            write_rollouts(in_order([*self._finished, *new]), self.path / NEXT, repo_id=hub_name(name))
            lock.check()
            if self.dataset.exists():
                os.rename(self.dataset, self.path / PREVIOUS)
            os.rename(self.path / NEXT, self.dataset)
            self._finished = rollouts_of_dataset(self.dataset)
        self._write_failures(failures)
        lock.check()
        self._remove()

    def _remove(self) -> None:
        """Remove this folder, at once for everybody else."""
        aside = self.path.with_name(f"{self.path.name}.removed-{self._worker.token}")
        os.rename(self.path, aside)
        shutil.rmtree(aside, ignore_errors=True)

    def _failure_stems(self) -> set[str]:
        return {file.stem for file in (self.path / FAILURES).glob("*.json")}

    def _failures(self) -> list[Failure]:
        found = []
        for file in sorted((self.path / FAILURES).glob("*.json")):
            try:
                found.append(Failure(**json.loads(file.read_text(encoding="utf-8"))))
            except (OSError, ValueError, TypeError) as error:
                raise DatasetError(f"{file}: unreadable; remove it and run again") from error
        return found

    def _listed_failures(self) -> list[Failure]:
        """The failures listed beside the dataset."""
        file = failures_file(self.dataset)
        lines = file.read_text(encoding="utf-8").splitlines() if file.exists() else []
        try:
            return [Failure(**json.loads(line)) for line in lines if line]
        except (ValueError, TypeError) as error:
            raise InvalidInputError(f"{file}: unreadable; remove it and run again") from error

    def _write_failures(self, new: Iterable[Failure]) -> None:
        """List the failures of this run and earlier ones, without those that have succeeded since."""
        finished = {each.record.rollout_id for each in self._finished}
        listed = {failure.rollout_id: failure for failure in (*self._listed_failures(), *new)}
        left = [listed[name] for name in sorted(listed) if name not in finished]
        if left:
            lines = [json.dumps({"rollout_id": failure.rollout_id, "error": failure.error}) for failure in left]
            write_atomic(failures_file(self.dataset), "\n".join(lines) + "\n")
        else:
            failures_file(self.dataset).unlink(missing_ok=True)

    def _state(self) -> RunState:
        records = tuple(each.record for each in self._finished)
        return RunState(records=records, failures=tuple(self._listed_failures()))


def _misfit(
    asked: Iterable[RunSettings],
    jobs: Mapping[str, Job],
    there: Iterable[RunSettings],
    rollouts: Iterable[EpisodeRecord | PlannedRollout],
) -> str | None:
    """Why jobs, by their rollouts' ids, must not be mixed with what is there; None where they may be."""
    for before, now in itertools.product(dict.fromkeys(there), asked):
        if differing := differences(before, now):
            give = what_to_give(before, now)
            return f"was run with other {', '.join(differing)}; {give}, or choose another --out"
    for rollout in rollouts:
        job = jobs.get(rollout.rollout_id)
        for name in ("prompt_text", "horizon"):
            if job is not None and getattr(rollout, name) != getattr(job.instance, name):
                return (
                    f"{rollout.rollout_id} was run with another {name} ({getattr(rollout, name)} there, "
                    f"{getattr(job.instance, name)} here); choose another --out"
                )
    return None
