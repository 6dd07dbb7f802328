"""Where the parts of an unfinished run lie, and how far it is.

A run that will be the dataset ``persist`` has its parts beside it, in the hidden folder ``.persist``: ``run.json`` with
its settings, ``plans`` with the rollouts that each call has asked for, and ``shards`` with those that are finished.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from ...toolkit.counting import counted
from ...toolkit.errors import DatasetError, first_line
from .schema import file_stem

SETTINGS_FILE = "run.json"
PLANS = "plans"
SHARDS = "shards"
NEXT = "next"
"""The dataset that is about to take its place; complete wherever it exists."""
PREVIOUS = "previous"
"""The dataset whose place it takes."""
FAILURES_FILE = "failures.jsonl"
"""How the name of the list of failed rollouts ends, beside the dataset."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedRollout:
    """A rollout that a call has asked for.

    Attributes:
        rollout_id: Its id.
        prompt_text: The exact string for the policy.
        horizon: Its horizon.
    """

    rollout_id: str
    prompt_text: str
    horizon: int


@dataclass(frozen=True, slots=True, kw_only=True)
class UnfinishedRun:
    """A run that is not finished, or that is being extended.

    Attributes:
        folder: Its hidden folder.
        done: How many of its rollouts are there, those of the dataset that it extends among them.
        planned: How many it will have.
    """

    folder: Path
    done: int
    planned: int

    @property
    def dataset(self) -> Path:
        """The dataset that it will be, or extend."""
        return self.folder.with_name(self.folder.name[1:])

    def __str__(self) -> str:
        what = f"{self.dataset}: unfinished, {self.done:,} of {counted(self.planned, 'rollout')}"
        return f"{what}: give the command again that runs it"


def work_folder(dataset: Path) -> Path:
    """The hidden folder of the run that will be a dataset."""
    return dataset.with_name(f".{dataset.name}")


def failures_file(dataset: Path) -> Path:
    """The list of the failed rollouts that a dataset is without."""
    return dataset.with_name(f"{dataset.name}.{FAILURES_FILE}")


def finished_folder(dataset: Path) -> Path | None:
    """The finished dataset of a run, wherever an interruption has left it; None where there is none."""
    hidden = work_folder(dataset)
    places = (dataset, hidden / NEXT, hidden / PREVIOUS)
    return next((place for place in places if (place / "meta" / "info.json").is_file()), None)


def unfinished_run(folder: Path) -> UnfinishedRun | None:
    """The unfinished run of a hidden folder; None where it is none.

    Raises:
        DatasetError: Its files are damaged.
    """
    if not folder.name.startswith(".") or not (folder / SETTINGS_FILE).is_file():
        return None
    there = finished_folder(folder.with_name(folder.name[1:]))
    finished = {file_stem(name) for name in finished_ids(there)} if there else set()
    planned = {file_stem(each.rollout_id) for each in planned_rollouts(folder)} | finished
    done = finished | (shard_stems(folder) & planned)
    return UnfinishedRun(folder=folder, done=len(done), planned=len(planned))


def recorded_stems(dataset: Path) -> set[str]:
    """The rollouts that a run has recorded, finished or not, by the stems of their files; none where there is no run.

    Raises:
        DatasetError: Its episodes cannot be read.
    """
    there = finished_folder(dataset)
    return shard_stems(work_folder(dataset)) | {file_stem(name) for name in (finished_ids(there) if there else ())}


def planned_rollouts(folder: Path) -> Iterator[PlannedRollout]:
    """All rollouts that calls have asked for; some perhaps several times.

    Raises:
        DatasetError: A plan is damaged.
    """
    for file in sorted((folder / PLANS).glob("*.json")):
        try:
            for row in json.loads(file.read_text(encoding="utf-8")):
                yield PlannedRollout(**row)
        except (OSError, ValueError, TypeError) as error:
            raise DatasetError(
                f"{file}: not a complete plan of this version of conflictvla: go on with the version that wrote it, or "
                "remove it and give the command again"
            ) from error


def shard_stems(folder: Path) -> set[str]:
    """The finished rollouts of a run's hidden folder, by the stems of their files."""
    return {file.stem for file in (folder / SHARDS).glob("*.parquet")}


def finished_ids(dataset: Path) -> list[str]:
    """Ids of the rollouts of a finished dataset.

    Raises:
        DatasetError: Its episodes cannot be read.
    """
    ids: list[str] = []
    for file in sorted((dataset / "meta" / "episodes").rglob("*.parquet")):
        try:
            ids.extend(pq.read_table(file, columns=["rollout_id"])["rollout_id"].to_pylist())
        except (OSError, ValueError, LookupError, pa.ArrowException) as error:
            raise DatasetError(f"{file}: unreadable ({first_line(error)}): copy it again or record again") from error
    return ids
