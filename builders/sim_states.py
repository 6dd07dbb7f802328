"""The simulator's states beside a rollout data set: written with it, read back an episode at a time."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from ..toolkit.errors import DatasetError
from .rollout_schema import SIM_STATES

EPISODES_PER_FILE = 200

Array = npt.NDArray[np.float64]


class SimStateWriter:
    """Writes states episode by episode, in numbered files of many episodes.

    Args:
        root: The data set's folder.
    """

    def __init__(self, root: Path) -> None:
        self._folder = root / SIM_STATES
        self._folder.mkdir()
        self._writer: pq.ParquetWriter | None = None
        self._episodes = 0

    def add(self, states: Array) -> None:
        """Append the next episode's states, shape (H + 1, n)."""
        if self._episodes % EPISODES_PER_FILE == 0:
            self.close()
            file = self._folder / f"file-{self._episodes // EPISODES_PER_FILE:03d}.parquet"
            # Neighbouring states share their leading bytes: split by byte, they compress.
            self._writer = pq.ParquetWriter(
                file, SCHEMA, compression="zstd", use_dictionary=False, use_byte_stream_split=["state.list.element"]
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


def read_sim_states(dataset: Path, episodes: Iterable[int]) -> dict[int, Array]:
    """States of some episodes by episode index, each of shape (H + 1, n).

    Raises:
        DatasetError: The data set has no states, or not those.
    """
    wanted = sorted(set(episodes))
    found: dict[int, Array] = {}
    for number in sorted({index // EPISODES_PER_FILE for index in wanted}):
        file = dataset / SIM_STATES / f"file-{number:03d}.parquet"
        try:
            table = pq.read_table(file, filters=[("episode_index", "in", wanted)])
        except (OSError, ValueError) as error:
            raise DatasetError(f"{file}: no simulator states to read ({str(error).splitlines()[0]})") from error
        index = table["episode_index"].to_numpy()
        for episode in np.unique(index):
            states = table["state"].filter(pa.array(index == episode)).combine_chunks()
            found[int(episode)] = states.flatten().to_numpy().reshape(len(states), -1)
    missing = [index for index in wanted if index not in found]
    if missing:
        raise DatasetError(f"{dataset / SIM_STATES}: no states of episode {missing[0]}")
    return found
