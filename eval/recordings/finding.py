"""Finding recorded rollouts in a folder, at any depth: finished datasets, and runs that are not finished.

Links to folders are not followed, and hidden folders are not entered.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from ...builders.rollouts.run_layout import FAILURES_FILE, UnfinishedRun, failures_file, unfinished_run
from ...toolkit.counting import counted
from ...toolkit.errors import DatasetError
from .layout import is_dataset


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedFailures:
    """A list of rollouts that failed, so that no dataset has them."""

    file: Path
    rollouts: int

    def __str__(self) -> str:
        return f"{self.file}: {counted(self.rollouts, 'rollout')} failed, so missing here: give the run's command again"


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundRuns:
    """What a folder holds.

    Attributes:
        datasets: Folders of the finished datasets, sorted.
        unfinished: Runs that are not finished, or that extend one of the datasets.
        failures: Lists of failed rollouts, of these datasets or of runs of which nothing else is left.
    """

    datasets: tuple[Path, ...]
    unfinished: tuple[UnfinishedRun, ...]
    failures: tuple[ListedFailures, ...] = ()


def find_runs(path: Path | str) -> FoundRuns:
    """The datasets and unfinished runs in a folder, at any depth.

    Raises:
        DatasetError: There is no such folder, a dataset was left half written, or an unfinished run is damaged.
    """
    path = Path(path)
    if not path.is_dir():
        state = "is a file, not a folder" if path.exists() else "no such folder"
        raise DatasetError(
            f"{path}: {state}: give a rollout dataset, a folder that contains some, or hf://OWNER/NAME@REVISION"
        )
    datasets, unfinished, failures = list[Path](), list[UnfinishedRun](), set[Path]()
    for folder in _folders(path):
        if run := unfinished_run(folder):
            unfinished.append(run)
        elif is_dataset(folder):
            datasets.append(folder)
            failures.add(failures_file(folder))
        elif _is_half_written(folder):
            raise DatasetError(
                f"{folder}: not a LeRobot dataset, meta/info.json is missing, so it was left half written: "
                "record these rollouts again"
            )
        else:
            failures |= set(folder.glob(f"*.{FAILURES_FILE}"))
    listed = tuple(_listed(file) for file in sorted(failures) if file.is_file())
    return FoundRuns(datasets=tuple(sorted(datasets)), unfinished=tuple(unfinished), failures=listed)


def find_datasets(path: Path | str) -> tuple[Path, ...]:
    """Folders of the rollout datasets at a path, sorted by name.

    Args:
        path: One dataset, or a folder that holds some at any depth, such as a run's output folder.

    Raises:
        DatasetError: If there is none, it is not finished, or a folder among them was left half written.
    """
    found = find_runs(path)
    if found.datasets:
        return found.datasets
    if found.unfinished:
        raise DatasetError(str(found.unfinished[0]))
    if found.failures:
        raise DatasetError(f"{path}: no finished rollout; {found.failures[0]}")
    raise DatasetError(
        f"{path}: not a LeRobot dataset (no meta/info.json), nor does it contain one (links to folders are not "
        "followed): give the folder that `conflictvla run --out` wrote"
    )


def find_dataset(path: Path | str) -> Path:
    """The one dataset at a path; see ``find_datasets``.

    Raises:
        DatasetError: If there is none, or there are several.
    """
    folders = find_datasets(path)
    if len(folders) != 1:
        raise DatasetError(f"{path}: holds {len(folders)} datasets: name one of them, such as {folders[0]}")
    return folders[0]


def _listed(file: Path) -> ListedFailures:
    try:
        lines = file.read_bytes().splitlines()
    except OSError as error:
        raise DatasetError(f"{file}: unreadable ({error.strerror}): copy it again, or remove it") from error
    return ListedFailures(file=file, rollouts=sum(bool(line.strip()) for line in lines))


def _folders(path: Path) -> Iterator[Path]:
    """A folder and those in it, but not what datasets hold, nor hidden folders other than those of runs."""
    yield path
    if _is_entered(path):
        for folder, children, _ in os.walk(path):
            inside = [Path(folder) / name for name in sorted(children)]
            inside = [child for child in inside if not child.is_symlink()]
            yield from (child for child in inside if not child.name.startswith(".") or unfinished_run(child))
            children[:] = [child.name for child in inside if not child.name.startswith(".") and _is_entered(child)]


def _is_entered(folder: Path) -> bool:
    return not (is_dataset(folder) or _is_half_written(folder) or unfinished_run(folder))


def _is_half_written(folder: Path) -> bool:
    """Whether a folder looks like a LeRobot dataset without its description."""
    return not is_dataset(folder) and ((folder / "meta" / "episodes").is_dir() or any(folder.glob("data/chunk-*")))
