"""List columns of Arrow as arrays."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ...toolkit.arrays import FloatArray


def list_lengths(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Length of each list of a column, 0 for null."""
    return pc.fill_null(pc.list_value_length(column), 0)


def pad_lists(column: pa.ChunkedArray, width: int) -> FloatArray:
    """A column of N lists as an array of shape (N, width), zero behind each list's end and for null.

    Args:
        column: Lists of numbers, none longer than ``width``.
        width: Columns of the array.
    """
    lists = column.combine_chunks()
    lengths = np.asarray(list_lengths(lists).to_numpy(zero_copy_only=False), np.int64)
    flat = np.asarray(lists.flatten().to_numpy(zero_copy_only=False), np.float64)
    row = np.repeat(np.arange(len(lists)), lengths)
    starts = np.cumsum(lengths) - lengths
    values = np.zeros((len(lists), width))
    values[row, np.arange(len(flat)) - starts[row]] = flat
    return values
