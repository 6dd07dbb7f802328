"""A finished dataset read back rollout by rollout, as it was recorded, so that it can become part of another."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from ...toolkit.arrays import IntArray
from ...toolkit.counting import counted
from ...toolkit.errors import DatasetError, first_line
from .episode_record import EPISODE_COLUMNS, OPTIONAL_COLUMNS, EpisodeRecord
from .schema import FRAME_FEATURES, SIM_STATES, Rollout
from .sim_states import read_sim_states

AGAIN = "copy it again or record again"


class RecordedDataset:
    """A dataset of ours on disk.

    Args:
        folder: Its folder.

    Attributes:
        folder: Its folder.
        records: The records of its episodes, by their rows.

    Raises:
        DatasetError: Its episodes cannot be read.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        rows = list(itertools.chain.from_iterable(map(_episode_rows, _files(folder, "meta/episodes"))))
        self.records = tuple(_record(folder, row) for row in rows)
        self._numbers = [int(row["episode_index"]) for row in rows]
        self._places: dict[int, tuple[Path, int, int]] | None = None
        self._frames: tuple[Path, pa.Table] | None = None

    def rollout(self, row: int) -> Rollout:
        """One rollout with its frames and states; neighbours are read fastest one after the other.

        Raises:
            DatasetError: They are damaged or missing.
        """
        number = self._numbers[row]
        try:
            self._places = self._places or _frame_places(self.folder)
            file, start, length = self._places[number]
            frames = self._frames_of(file).slice(start, length)
            values = {name: _matrix(frames[name], width) for name, (width, _) in FRAME_FEATURES.items()}
        except (OSError, ValueError, LookupError, pa.ArrowException) as error:
            reason = first_line(error)
            raise DatasetError(f"{self.folder}: frames of episode {number} cannot be read ({reason})") from error
        states = read_sim_states(self.folder, [number])[number]
        if len(states) != length + 1:
            raise DatasetError(
                f"{self.folder}: episode {number} has {counted(length, 'frame')}, but {counted(len(states), 'state')}"
            )
        return Rollout(episode=self.records[row], frames=values, sim_states=states)

    def _frames_of(self, file: Path) -> pa.Table:
        if self._frames is None or self._frames[0] != file:
            self._frames = None  # before the next is read: each may be some hundred MB
            self._frames = (file, pq.read_table(file, columns=list(FRAME_FEATURES)))
        return self._frames[1]


def check_complete(folder: Path) -> None:
    """Make sure, without reading all frames, that every episode of a dataset has its frames and states.

    Raises:
        DatasetError: A file is missing, damaged or cut short, or is not of this dataset.
    """
    places = _frame_places(folder)
    for file in _files(folder, "data"):
        missing = FRAME_FEATURES.keys() - set(_read(file, pq.read_schema).names)
        if missing:
            raise DatasetError(f"{file}: column '{min(missing)}' is missing: {AGAIN}")
    states = Counter[int]()
    for file in _files(folder, SIM_STATES):
        states.update(_episode_numbers(file).tolist())
    for number in itertools.chain.from_iterable(map(_episode_numbers, _files(folder, "meta/episodes"))):
        _, _, length = places.get(number, (None, 0, 0))
        if not length or states[number] != length + 1:
            raise DatasetError(f"{folder}: episode {number} has {length} frames and {states[number]} states: {AGAIN}")


def _frame_places(folder: Path) -> dict[int, tuple[Path, int, int]]:
    """File, first row and number of rows of each episode's frames."""
    places: dict[int, tuple[Path, int, int]] = {}
    for file in _files(folder, "data"):
        numbers = _episode_numbers(file)
        starts = np.flatnonzero(np.diff(numbers, prepend=-1))
        lengths = np.diff(starts, append=len(numbers))
        places |= {int(numbers[start]): (file, int(start), int(n)) for start, n in zip(starts, lengths, strict=True)}
    return places


def _files(folder: Path, part: str) -> list[Path]:
    files = sorted((folder / part).rglob("*.parquet"))
    if not files:
        raise DatasetError(f"{folder / part}: holds no parquet file: the dataset is incomplete, copy it again")
    return files


def _episode_rows(file: Path) -> list[dict[str, Any]]:
    known = [name for name in _read(file, pq.read_schema).names if name in EPISODE_COLUMNS]
    return _read(file, lambda file: pq.read_table(file, columns=["episode_index", *known]).to_pylist())


def _episode_numbers(file: Path) -> IntArray:
    """The episode of each of the rows of a file."""
    return _read(file, lambda file: np.asarray(_column(file, "episode_index").to_numpy(), np.int64))


def _column(file: Path, name: str) -> pa.ChunkedArray:
    return pq.read_table(file, columns=[name])[name]


def _read[T](file: Path, read: Callable[[Path], T]) -> T:
    try:
        return read(file)
    except (OSError, ValueError, LookupError, pa.ArrowException) as error:
        raise DatasetError(f"{file}: unreadable ({first_line(error)}): {AGAIN}") from error


def _record(folder: Path, row: dict[str, Any]) -> EpisodeRecord:
    try:
        return EpisodeRecord.from_row({**OPTIONAL_COLUMNS, **row})
    except (KeyError, ValueError, TypeError) as error:
        number = row.get("episode_index")
        raise DatasetError(f"{folder}: episode {number} is not a rollout of ours ({first_line(error)})") from error


def _matrix(column: pa.ChunkedArray, width: int) -> Any:
    return np.array(column.combine_chunks().flatten().to_numpy(), np.float32).reshape(-1, width)
