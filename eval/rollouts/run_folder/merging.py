"""Runs joined: the rollouts of several folders, finished or not, as one dataset a policy."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, fields
from pathlib import Path

import numpy as np

from ....builders.rollouts.episode_record import EpisodeRecord
from ....builders.rollouts.lerobot_dataset import check_lerobot, write_rollouts
from ....builders.rollouts.recorded import check_complete
from ....builders.rollouts.run_layout import UnfinishedRun, work_folder
from ....builders.rollouts.schema import FRAME_FEATURES
from ....toolkit.errors import DatasetError, InvalidInputError
from ...recordings.finding import find_runs
from ...recordings.layout import is_dataset
from .folder import RunFolder, RunState
from .recorded_rollouts import RecordedRollout, hub_name, in_order, rollouts_of_dataset, rollouts_of_shards
from .settings import RunSettings, differences, settings_of_records

ROLLOUTS = "rollouts"
"""Folder of the datasets within a run's folder."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Merged:
    """A dataset of joined runs.

    Attributes:
        dataset: Its folder.
        rollouts: How many rollouts it holds.
        repeated: How many rollouts were there more than once, each time the same.
    """

    dataset: Path
    rollouts: int
    repeated: int


def merge_runs(sources: Sequence[Path], out: Path) -> tuple[tuple[Merged, ...], tuple[UnfinishedRun, ...]]:
    """Join runs into ``out/rollouts/<policy>``, one dataset for each policy; what is there stays as it is.

    Args:
        sources: Folders with finished datasets and unfinished runs, at any depth.
        out: Folder for the datasets.

    Returns:
        The datasets, and the unfinished runs among the sources: what they have is in the datasets.

    Raises:
        InvalidInputError: A policy was run under different settings, a rollout is there twice and differs, or the
            folder holds such a dataset already or cannot be written.
        DatasetError: There is no run, or one is damaged.
    """
    check_lerobot()
    found: list[RecordedRollout] = []
    unfinished: list[UnfinishedRun] = []
    for source in sources:
        runs = find_runs(source)
        for dataset in runs.datasets:
            found.extend(rollouts_of_dataset(dataset))
        for run in runs.unfinished:
            unfinished.append(run)
            found.extend(rollouts_of_shards(run.folder))
    if not found:
        raise DatasetError(f"{sources[0]}: no finished rollout: nothing to merge")
    names = sorted({each.record.policy_name for each in found})
    folder = out / ROLLOUTS
    for name in names:
        if (folder / name).exists() or work_folder(folder / name).exists():
            raise InvalidInputError(f"{folder / name}: exists already; choose another --out or remove it")
    chosen = {name: _without_repeats([each for each in found if each.record.policy_name == name]) for name in names}
    for dataset in sorted({each.where for rollouts in chosen.values() for each in rollouts if is_dataset(each.where)}):
        check_complete(dataset)
    merged = tuple(_write(chosen[name], folder / name, found) for name in names)
    return merged, tuple(unfinished)


def finish_runs(source: Path, wait: Callable[[str], None] = lambda _: None) -> dict[Path, RunState]:
    """Write the datasets of the unfinished runs in a folder, where no rollout is missing, and extend finished ones.

    Args:
        source: The folder.
        wait: Called with one line where another process is waited for.

    Returns:
        The state of each of them, by its dataset.

    Raises:
        InvalidInputError: A rollout is missing; the line says how many.
        DatasetError: There is no unfinished run, or one is damaged.
    """
    check_lerobot()
    runs = find_runs(source)
    if not runs.unfinished:
        raise DatasetError(f"{source}: nothing to finish; to join several runs, give them and --out")
    states: dict[Path, RunState] = {}
    for run in runs.unfinished:
        state = RunFolder(run.dataset, wait).finish_alone()
        if state.unfinished is not None:
            raise InvalidInputError(f"{state.unfinished}, or join what is there into another folder with --out")
        states[run.dataset] = state
    return states


def _without_repeats(found: Sequence[RecordedRollout]) -> list[RecordedRollout]:
    """Each rollout once.

    Raises:
        InvalidInputError: Two have different settings, or are two versions of one rollout.
    """
    _check_settings(found)
    chosen: dict[str, RecordedRollout] = {}
    for each in found:
        before = chosen.setdefault(each.record.rollout_id, each)
        if before is not each and (field := _difference(before, each)):
            raise InvalidInputError(
                f"{each.record.rollout_id}: is in {before.where} and in {each.where} with another {field}: "
                "leave one of them out"
            )
    return list(chosen.values())


def _check_settings(found: Sequence[RecordedRollout]) -> None:
    """Compare the settings of every rollout with those of each other one: what one does not depend on, others may."""
    known: dict[RunSettings, RecordedRollout] = {}
    for each, here in zip(found, settings_of_records([each.record for each in found]), strict=True):
        if here in known:
            continue
        for there, first in known.items():
            if differing := differences(there, here):
                other_family = there.policy_family != here.policy_family
                todo = "; run one of them again with the --family of the other" if other_family else ""
                raise InvalidInputError(
                    f"{each.where}: was run with other {', '.join(differing)}, there being {first.where}: "
                    f"these runs cannot be merged{todo}"
                )
        known[here] = each


def _difference(first: RecordedRollout, second: RecordedRollout) -> str | None:
    """The first field in which two recordings of a rollout differ; None where they are the same."""
    for field in fields(EpisodeRecord):
        if getattr(first.record, field.name) != getattr(second.record, field.name):
            return field.name
    one, other = first.load(), second.load()
    for name in FRAME_FEATURES:
        if not np.array_equal(one.frames[name], other.frames[name]):
            return name
    return None if np.array_equal(one.sim_states, other.sim_states) else "sim_states"


def _write(chosen: Sequence[RecordedRollout], dataset: Path, found: Iterable[RecordedRollout]) -> Merged:
    name = chosen[0].record.policy_name
    write_rollouts(in_order(chosen), dataset, repo_id=hub_name(name))
    copies = Counter(each.record.rollout_id for each in found if each.record.policy_name == name)
    return Merged(dataset=dataset, rollouts=len(chosen), repeated=sum(count > 1 for count in copies.values()))
