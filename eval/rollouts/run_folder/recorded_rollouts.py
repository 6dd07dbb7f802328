"""Recorded rollouts wherever they lie, finished datasets or shards, so that one dataset can be written of all."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from ....builders.rollouts.episode_record import EpisodeRecord
from ....builders.rollouts.order import rollout_order
from ....builders.rollouts.recorded import RecordedDataset
from ....builders.rollouts.run_layout import SHARDS
from ....builders.rollouts.schema import SIM_STATES, Rollout
from ....builders.rollouts.shards import read_shard, read_shard_record
from ....toolkit.errors import InvalidInputError


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedRollout:
    """A recorded rollout.

    Attributes:
        record: Its record.
        where: The dataset or the unfinished run that it is from.
        load: Reads it whole.
    """

    record: EpisodeRecord
    where: Path
    load: Callable[[], Rollout]


def rollouts_of_dataset(folder: Path) -> list[RecordedRollout]:
    """The rollouts of a finished dataset.

    Raises:
        DatasetError: It is damaged.
        InvalidInputError: It was recorded, or packed, without the simulator's states.
    """
    if not (folder / SIM_STATES).is_dir():
        raise InvalidInputError(
            f"{folder}: has no {SIM_STATES}, without which it can be scored, but neither extended nor merged"
        )
    dataset = RecordedDataset(folder)
    return [
        RecordedRollout(record=record, where=folder, load=partial(dataset.rollout, row))
        for row, record in enumerate(dataset.records)
    ]


def rollouts_of_shards(folder: Path) -> list[RecordedRollout]:
    """The finished rollouts of an unfinished run, by its hidden folder.

    Raises:
        DatasetError: A shard is damaged.
    """
    return [
        RecordedRollout(record=read_shard_record(file), where=folder, load=partial(read_shard, file))
        for file in sorted((folder / SHARDS).glob("*.parquet"))
    ]


def in_order(rollouts: Iterable[RecordedRollout]) -> Iterator[Rollout]:
    """The rollouts in the order of a dataset, one after the other."""
    for each in sorted(rollouts, key=lambda each: rollout_order(each.record)):
        yield each.load()


def hub_name(policy_name: str) -> str:
    """Name that a policy's dataset would have on the Hub."""
    return f"conflictvla/rollouts-{policy_name.replace('_', '-')}"
