"""Files that hold frames: parquet with list columns, or NPZ with one array a column, behind one small interface."""

from __future__ import annotations

import zipfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from ....toolkit.arrays import Float32Array, IntArray
from ....toolkit.errors import DatasetError, first_line

Report = Callable[[int, str], None]
"""Called with the row of a frame that cannot be read, and what is wrong with it."""


class FrameFile(Protocol):
    """One opened file of frames."""

    @property
    def file(self) -> Path:
        """Where it is."""

    @property
    def rows(self) -> int:
        """How many frames it holds."""

    @property
    def names(self) -> frozenset[str]:
        """Columns that it has, by our names."""

    def load(self, names: Sequence[str]) -> None:
        """Read these columns, so that the methods below can return them."""

    def integers(self, name: str) -> IntArray:
        """A column of whole numbers, shape (rows,)."""

    def fill(self, name: str, block: Float32Array, report: Report) -> None:
        """Copy a column of vectors into ``block``, shape (rows, width); rows that cannot be read become zeros."""


def open_frames(file: Path, columns: Mapping[str, str]) -> FrameFile:
    """Open a file of frames.

    Args:
        file: Ending in ``.parquet`` or ``.npz``.
        columns: Their names for our columns, where they differ.

    Raises:
        DatasetError: If it is neither, or not a complete file of its kind.
    """
    if file.suffix == ".parquet":
        return ParquetFrames(file=file, parquet=open_parquet(file), columns=columns)
    if file.suffix == ".npz":
        return _open_npz(file, columns)
    raise DatasetError(f"{file}: frames are read from .parquet and .npz files: convert it")


def open_parquet(file: Path) -> pq.ParquetFile:
    """Open a parquet file.

    Raises:
        DatasetError: If it has no valid footer, as a recording that was killed leaves it.
    """
    try:
        return pq.ParquetFile(file)
    except (OSError, pa.ArrowException) as error:
        raise DatasetError(
            f"{file}: not a complete parquet file ({first_line(error)}): its recording or copy was cut short, "
            "copy it again or record again"
        ) from error


def read_columns(file: Path, parquet: pq.ParquetFile, columns: Sequence[str]) -> pa.Table:
    """Read named columns of an open parquet file.

    Raises:
        DatasetError: If a column is missing, or its pages are damaged.
    """
    missing = [name for name in columns if name not in parquet.schema_arrow.names]
    if missing:
        raise _missing_column(file, missing[0])
    try:
        return parquet.read(columns=list(columns))
    except (OSError, pa.ArrowException) as error:
        raise DatasetError(
            f"{file}: damaged data pages ({first_line(error)}): copy it again or record again"
        ) from error


@dataclass(slots=True, kw_only=True)
class ParquetFrames:
    """Frames in a parquet file: vectors as lists, of fixed size or not."""

    file: Path
    parquet: pq.ParquetFile
    columns: Mapping[str, str]
    table: pa.Table = None

    @property
    def rows(self) -> int:
        """Frames in the file."""
        return int(self.parquet.metadata.num_rows)

    @property
    def names(self) -> frozenset[str]:
        """Columns by our names."""
        return frozenset(_our_names(self.parquet.schema_arrow.names, self.columns))

    def load(self, names: Sequence[str]) -> None:
        """Read these columns; those that were read before are released."""
        self.table = None
        theirs = [self.columns.get(name, name) for name in names]
        self.table = read_columns(self.file, self.parquet, theirs).rename_columns(list(names))

    def integers(self, name: str) -> IntArray:
        """A column of whole numbers, shape (rows,)."""
        column = self.table[name]
        if column.null_count or not pa.types.is_integer(column.type):
            raise DatasetError(
                f"{self.file}: column '{name}' is {column.type} with {column.null_count} nulls, not whole numbers"
            )
        return np.asarray(column.to_numpy(), np.int64)

    def fill(self, name: str, block: Float32Array, report: Report) -> None:
        """Copy a column of lists into ``block``, chunk by chunk."""
        column, width = self.table[name], block.shape[1]
        kind = column.type
        is_list = pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind)
        if not is_list or not pa.types.is_floating(kind.value_type):
            raise DatasetError(f"{self.file}: column '{name}' is {kind}, not lists of {width} floats: record again")
        row = 0
        for chunk in column.chunks:
            wrong = pc.fill_null(pc.not_equal(pc.list_value_length(chunk), width), fill_value=True)
            part = block[row : row + len(chunk)]
            if pc.any(wrong).as_py():
                bad = np.asarray(wrong.to_numpy(zero_copy_only=False), np.bool_)
                for at in np.flatnonzero(bad):
                    report(row + int(at), f"a frame holds {chunk[int(at)].as_py()!r:.80}, not {width} numbers")
                part[bad] = 0.0
                chunk, part_rows = chunk.filter(pc.invert(wrong)), ~bad
                part[part_rows] = chunk.flatten().to_numpy(zero_copy_only=False).reshape(-1, width)
            else:
                part[:] = chunk.flatten().to_numpy(zero_copy_only=False).reshape(-1, width)
            row += len(wrong)


@dataclass(slots=True, kw_only=True)
class NpzFrames:
    """Frames in an NPZ file: one array a column, never pickled objects."""

    file: Path
    archive: Mapping[str, npt.NDArray[np.generic]]
    columns: Mapping[str, str]
    rows: int

    @property
    def names(self) -> frozenset[str]:
        """Columns by our names."""
        return frozenset(_our_names(self.archive, self.columns))

    def load(self, names: Sequence[str]) -> None:
        """Check that these columns exist; arrays are read one by one when they are asked for."""
        for name in names:
            if name not in self.names:
                raise _missing_column(self.file, name)

    def integers(self, name: str) -> IntArray:
        """A column of whole numbers, shape (rows,)."""
        values = self.array(name)
        if values.shape != (self.rows,) or not np.issubdtype(values.dtype, np.integer):
            raise DatasetError(
                f"{self.file}: array '{name}' is {values.dtype} of shape {values.shape}, not {self.rows} whole numbers"
            )
        return values.astype(np.int64)

    def fill(self, name: str, block: Float32Array, report: Report) -> None:
        """Copy an array of shape (rows, width) into ``block``; an array has no rows of another width to report."""
        values = self.array(name)
        if values.shape != block.shape or not np.issubdtype(values.dtype, np.floating):
            raise DatasetError(
                f"{self.file}: array '{name}' is {values.dtype} of shape {values.shape}, not floats of shape "
                f"{block.shape}: write it again"
            )
        block[:] = values

    def array(self, name: str) -> npt.NDArray[np.generic]:
        """One array as it is in the file.

        Raises:
            DatasetError: If it is damaged, or holds pickled objects.
        """
        try:
            return np.asarray(self.archive[self.columns.get(name, name)])
        except (OSError, ValueError, zipfile.BadZipFile) as error:
            # Pickled objects could run any code when loaded; numpy refuses them with a ValueError.
            raise DatasetError(f"{self.file}: array '{name}' is unreadable ({first_line(error)})") from error


def _open_npz(file: Path, columns: Mapping[str, str]) -> NpzFrames:
    try:
        archive = np.load(file, allow_pickle=False)
    except (OSError, ValueError, EOFError, zipfile.BadZipFile) as error:
        raise DatasetError(f"{file}: not a complete NPZ file ({first_line(error)}): write it again") from error
    if not isinstance(archive, Mapping):
        raise DatasetError(f"{file}: a single array, not an NPZ file with one array a column: write it again")
    opened = NpzFrames(file=file, archive=archive, columns=columns, rows=0)
    opened.load(["frame_index"])
    opened.rows = opened.array("frame_index").size
    return opened


def _our_names(theirs: Sequence[str] | Mapping[str, object], columns: Mapping[str, str]) -> set[str]:
    present = set(theirs)
    return (present - set(columns.values())) | {ours for ours, name in columns.items() if name in present}


def _missing_column(file: Path, name: str) -> DatasetError:
    return DatasetError(f"{file}: column '{name}' is missing: record again with conflictvla's recorder")
