"""The simulator's states beside a rollout dataset: written with it, read back an episode at a time."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from ...toolkit.arrays import FloatArray
from ...toolkit.errors import DatasetError, first_line
from .schema import SIM_STATES

EPISODES_PER_FILE = 200


class SimStateWriter:
    """Writes states episode by episode, in numbered files of many episodes.

    Args:
        root: The dataset's folder.
    """

    def __init__(self, root: Path) -> None:
        self._folder = root / SIM_STATES
        self._folder.mkdir()
        self._writer: pq.ParquetWriter | None = None
        self._episodes = 0

    def add(self, states: FloatArray) -> None:
        """Append the next episode's states, shape (H + 1, n)."""
        if self._episodes % EPISODES_PER_FILE == 0:
            self.close()
            file = self._folder / f"file-{self._episodes // EPISODES_PER_FILE:03d}.parquet"
            # Neighbouring states share their leading bytes: split by byte, they compress.
            self._writer = pq.ParquetWriter(
                file,
                SCHEMA,
                compression="zstd",
                use_dictionary=False,
                use_byte_stream_split=["state.list.element"],
                write_page_checksum=True,
            )
        rows, width = states.shape
        table = pa.table(
            {
                "episode_index": pa.array(np.full(rows, self._episodes), pa.int32()),
                "frame_index": pa.array(np.arange(rows), pa.int32()),
                "state": pa.ListArray.from_arrays(
                    pa.array(np.arange(rows + 1) * width, pa.int32()), pa.array(np.ascontiguousarray(states).ravel())
                ),
            },
            schema=SCHEMA,
        )
        assert self._writer is not None
        self._writer.write_table(table)
        self._episodes += 1

    def close(self) -> None:
        """Finish the present file."""
        if self._writer is not None:
            self._writer.close()
            self._writer = None


SCHEMA = pa.schema(
    [("episode_index", pa.int32()), ("frame_index", pa.int32()), ("state", pa.list_(pa.field("element", pa.float64())))]
)


def read_sim_states(dataset: Path, episodes: Iterable[int]) -> dict[int, FloatArray]:
    """States of some episodes by episode index, each of shape (H + 1, n).

    Raises:
        DatasetError: The dataset has no states, or not those.
    """
    wanted = sorted(set(episodes))
    found: dict[int, FloatArray] = {}
    for number in sorted({index // EPISODES_PER_FILE for index in wanted}):
        file = dataset / SIM_STATES / f"file-{number:03d}.parquet"
        try:
            found |= _by_episode(_read(file, wanted), wanted)
        except (OSError, ValueError, TypeError, LookupError, pa.ArrowException) as error:
            reason = first_line(error)
            raise DatasetError(f"{file}: no simulator states to read ({reason})") from error
    missing = [index for index in wanted if index not in found]
    if missing:
        raise DatasetError(f"{dataset / SIM_STATES}: no states of episode {missing[0]}")
    return found


def _read(file: Path, wanted: list[int]) -> pa.Table:
    """The row groups with wanted episodes.

    One after the other and in this thread: a filtered read by Arrow's own threads can wait for good on a damaged file.
    """
    parquet = pq.ParquetFile(file, page_checksum_verification=True)
    groups = []
    for group in range(parquet.metadata.num_row_groups):
        statistics = parquet.metadata.row_group(group).column(0).statistics
        known = statistics is not None and statistics.has_min_max
        if not known or any(statistics.min <= episode <= statistics.max for episode in wanted):
            groups.append(group)
    return parquet.read_row_groups(groups, use_threads=False)


def _by_episode(table: pa.Table, wanted: list[int]) -> dict[int, FloatArray]:
    index = table["episode_index"].to_numpy()
    found = {}
    for episode in np.intersect1d(index, wanted):
        states = table["state"].filter(pa.array(index == episode)).combine_chunks()
        found[int(episode)] = states.flatten().to_numpy().reshape(len(states), -1)
    return found
