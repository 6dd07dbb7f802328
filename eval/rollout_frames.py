"""Frames of a LeRobot v3 data set: Arrow list columns into flat float32 arrays, with every value checked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from ..builders.rollout_schema import FRAME_FEATURES
from ..toolkit.errors import DatasetError

Float32Array = npt.NDArray[np.float32]
IntArray = npt.NDArray[np.int64]

RECORD_AGAIN = "record this episode again"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FrameTable:
    """All frames of one data set, in the order of its files.

    Attributes:
        values: For each feature read, float32 of shape (F, width), finite.
        offsets: Where each episode's frames begin, and F at the end, shape (N + 1,).
        episode_index: LeRobot's episode number of each run of frames, shape (N,), unique.
    """

    values: dict[str, Float32Array]
    offsets: IntArray
    episode_index: IntArray


def open_parquet(file: Path) -> pq.ParquetFile:
    """Open a parquet file.

    Raises:
        DatasetError: If it has no valid footer, as a recording that was killed leaves it.
    """
    try:
        return pq.ParquetFile(file)
    except (OSError, pa.ArrowException) as error:
        raise DatasetError(
            f"{file}: not a complete parquet file ({_first_line(error)}): its recording or copy was cut short, "
            "copy it again or record again"
        ) from error


def read_columns(file: Path, parquet: pq.ParquetFile, columns: Sequence[str]) -> pa.Table:
    """Read named columns of an open parquet file.

    Raises:
        DatasetError: If a column is missing, or its pages are damaged.
    """
    missing = [name for name in columns if name not in parquet.schema_arrow.names]
    if missing:
        raise DatasetError(f"{file}: column '{missing[0]}' is missing: record again with conflictvla's recorder")
    try:
        return parquet.read(columns=list(columns))
    except (OSError, pa.ArrowException) as error:
        raise DatasetError(
            f"{file}: damaged data pages ({_first_line(error)}): copy it again or record again"
        ) from error


def parquet_files(folder: Path, part: str) -> list[Path]:
    """Parquet files under ``folder/part``, sorted by path, so that chunks and files follow their numbers.

    Raises:
        DatasetError: If there is none.
    """
    files = sorted((folder / part).glob("**/*.parquet"))
    if not files:
        raise DatasetError(
            f"{folder / part}: holds no parquet file: the data set is incomplete, copy or record it again"
        )
    return files


def read_frames(folder: Path, features: Sequence[str]) -> FrameTable:
    """Read the frames of one data set.

    Args:
        folder: The data set's folder.
        features: Names from ``FRAME_FEATURES`` to read; the columns of all of them must exist.

    Raises:
        DatasetError: If a file is truncated, a column missing or of the wrong width, a value NaN, infinite or (for
            actions) outside [-1, 1], or an episode's frames are not contiguous and numbered from 0.
    """
    opened = [(file, open_parquet(file)) for file in parquet_files(folder, "data")]
    total = sum(parquet.metadata.num_rows for _, parquet in opened)
    values = {name: np.empty((total, FRAME_FEATURES[name][0]), np.float32) for name in features}
    episode_of_frame = np.empty(total, np.int64)
    frame_of_frame = np.empty(total, np.int64)
    start = 0
    for file, parquet in opened:
        stop = start + parquet.metadata.num_rows
        missing = [name for name in FRAME_FEATURES if name not in parquet.schema_arrow.names]
        if missing:
            raise DatasetError(f"{file}: column '{missing[0]}' is missing: record again with conflictvla's recorder")
        table = read_columns(file, parquet, ["episode_index", "frame_index", *features])
        episode_of_frame[start:stop] = _integers(file, table, "episode_index")
        frame_of_frame[start:stop] = _integers(file, table, "frame_index")
        for name in features:
            block = values[name][start:stop]
            _fill(file, name, table[name], block, episode_of_frame[start:stop])
            _check_values(file, name, block, episode_of_frame[start:stop], frame_of_frame[start:stop])
        start = stop
    offsets, episode_index = _runs(folder, episode_of_frame, frame_of_frame)
    return FrameTable(values=values, offsets=offsets, episode_index=episode_index)


def _first_line(error: Exception) -> str:
    return str(error).splitlines()[0] if str(error) else type(error).__name__


def _integers(file: Path, table: pa.Table, name: str) -> IntArray:
    column = table[name]
    if column.null_count or not pa.types.is_integer(column.type):
        raise DatasetError(
            f"{file}: column '{name}' is {column.type} with {column.null_count} nulls, not whole numbers"
        )
    return np.asarray(column.to_numpy(), np.int64)


def _fill(file: Path, name: str, column: pa.ChunkedArray, block: Float32Array, episodes: IntArray) -> None:
    """Copy a list column into ``block``, shape (rows, width), chunk by chunk."""
    width = block.shape[1]
    kind = column.type
    is_list = pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind)
    if not is_list or not pa.types.is_floating(kind.value_type):
        raise DatasetError(f"{file}: column '{name}' is {kind}, not lists of {width} floats: record again")
    row = 0
    for chunk in column.chunks:
        wrong = pc.fill_null(pc.not_equal(pc.list_value_length(chunk), width), fill_value=True)
        if pc.any(wrong).as_py():
            at = row + pc.index(wrong, value=True).as_py()
            raise DatasetError(
                f"{file}: episode {int(episodes[at])}, field '{name}': a frame holds {chunk[at - row].as_py()!r:.80}, "
                f"not {width} numbers: {RECORD_AGAIN}"
            )
        flat = chunk.flatten().to_numpy(zero_copy_only=False)
        block[row : row + len(chunk)] = flat.reshape(-1, width)
        row += len(chunk)


def _check_values(file: Path, name: str, block: Float32Array, episodes: IntArray, steps: IntArray) -> None:
    finite = np.isfinite(block)
    if not finite.all():
        row, part = _first(~finite)
        raise DatasetError(
            f"{file}: episode {int(episodes[row])}, frame {int(steps[row])}, field '{name}', component "
            f"{FRAME_FEATURES[name][1][part]}: {block[row, part]} is not a finite number: {RECORD_AGAIN}"
        )
    if name == "action" and block.size and (block.max() > 1 or block.min() < -1):
        row, part = _first(np.abs(block) > 1)
        raise DatasetError(
            f"{file}: episode {int(episodes[row])}, frame {int(steps[row])}, field 'action', component "
            f"{FRAME_FEATURES[name][1][part]}: {block[row, part]} is outside [-1, 1], but actions are recorded "
            f"as executed, after clipping: {RECORD_AGAIN}"
        )


def _first(mask: npt.NDArray[np.bool_]) -> tuple[int, int]:
    row, part = np.unravel_index(int(mask.argmax()), mask.shape)
    return int(row), int(part)


def _runs(folder: Path, episodes: IntArray, steps: IntArray) -> tuple[IntArray, IntArray]:
    """Offsets and number of each episode's run of frames."""
    if not len(episodes):
        raise DatasetError(f"{folder / 'data'}: holds no frames: record again")
    starts = np.concatenate([[0], np.flatnonzero(np.diff(episodes)) + 1]).astype(np.int64)
    numbers = episodes[starts]
    repeated = _repeated(numbers)
    if repeated is not None:
        raise DatasetError(
            f"{folder / 'data'}: the frames of episode {repeated} are not contiguous: the data files were mixed up "
            "or written twice, record again"
        )
    offsets = np.append(starts, len(episodes))
    expected = np.arange(len(episodes)) - np.repeat(starts, np.diff(offsets))
    wrong = np.flatnonzero(steps != expected)
    if len(wrong):
        at = wrong[0]
        raise DatasetError(
            f"{folder / 'data'}: episode {int(episodes[at])}, field 'frame_index': {int(steps[at])} where "
            f"{int(expected[at])} should follow, so frames are missing or out of order: {RECORD_AGAIN}"
        )
    return offsets, numbers


def _repeated(numbers: IntArray) -> int | None:
    ordered = np.sort(numbers)
    twice = ordered[1:][np.diff(ordered) == 0]
    return int(twice[0]) if len(twice) else None
