"""A finished dataset read back rollout by rollout, as it was recorded, so that it can become part of another."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from ...toolkit.errors import DatasetError, first_line
from .episode_record import EPISODE_COLUMNS, OPTIONAL_COLUMNS, EpisodeRecord
from .schema import FRAME_FEATURES, Rollout
from .sim_states import read_sim_states


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
            file, start, length = self._frame_places()[number]
            frames = self._frames_of(file).slice(start, length)
            values = {name: _matrix(frames[name], width) for name, (width, _) in FRAME_FEATURES.items()}
        except (OSError, ValueError, LookupError, pa.ArrowException) as error:
            reason = first_line(error)
            raise DatasetError(f"{self.folder}: frames of episode {number} cannot be read ({reason})") from error
        states = read_sim_states(self.folder, [number])[number]
        if len(states) != length + 1:
            raise DatasetError(f"{self.folder}: episode {number} has {length} frames, but {len(states)} states")
        return Rollout(episode=self.records[row], frames=values, sim_states=states)

    def _frame_places(self) -> dict[int, tuple[Path, int, int]]:
        """File, first row and number of rows of each episode's frames."""
        if self._places is None:
            self._places = {}
            for file in _files(self.folder, "data"):
                numbers = pq.read_table(file, columns=["episode_index"])["episode_index"].to_numpy()
                starts = np.flatnonzero(np.diff(numbers, prepend=numbers[0] - 1))
                lengths = np.diff(starts, append=len(numbers))
                self._places |= {
                    int(numbers[start]): (file, int(start), int(n)) for start, n in zip(starts, lengths, strict=True)
                }
        return self._places

    def _frames_of(self, file: Path) -> pa.Table:
        if self._frames is None or self._frames[0] != file:
            self._frames = None  # before the next is read: each may be some hundred MB
            self._frames = (file, pq.read_table(file, columns=list(FRAME_FEATURES)))
        return self._frames[1]


def _files(folder: Path, part: str) -> list[Path]:
    files = sorted((folder / part).rglob("*.parquet"))
    if not files:
        raise DatasetError(f"{folder / part}: holds no parquet file: the dataset is incomplete, copy it again")
    return files


def _episode_rows(file: Path) -> list[dict[str, Any]]:
    try:
        known = [name for name in pq.read_schema(file).names if name in EPISODE_COLUMNS]
        rows: list[dict[str, Any]] = pq.read_table(file, columns=["episode_index", *known]).to_pylist()
    except (OSError, ValueError, LookupError, pa.ArrowException) as error:
        raise DatasetError(f"{file}: unreadable ({first_line(error)}): copy it again or record again") from error
    return rows


def _record(folder: Path, row: dict[str, Any]) -> EpisodeRecord:
    try:
        return EpisodeRecord.from_row({**OPTIONAL_COLUMNS, **row})
    except (KeyError, ValueError, TypeError) as error:
        number = row.get("episode_index")
        raise DatasetError(f"{folder}: episode {number} is not a rollout of ours ({first_line(error)})") from error


def _matrix(column: pa.ChunkedArray, width: int) -> Any:
    return np.array(column.combine_chunks().flatten().to_numpy(), np.float32).reshape(-1, width)
