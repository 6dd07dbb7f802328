"""Episodes of a dataset: read from its files, checked row by row."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ....builders.rollouts.episode_record import EPISODE_COLUMNS
from ....builders.rollouts.schema import TARGET_SLOTS
from ....toolkit.arrays import FloatArray, IntArray
from ....toolkit.errors import DatasetError
from ..defects import Defect, Inspection
from ..layout import Layout
from ..list_columns import pad_lists
from .checks import check_episodes
from .files import read_episode_file


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class EpisodeTable:
    """The episode rows of one dataset, N of them, in the order of its files.

    Attributes:
        table: The columns of ``EPISODE_COLUMNS``, cast to their types.
        episode_index: Number of each episode within the dataset, shape (N,), unique.
        length: Frames that each episode claims to have, shape (N,).
        final_eef_pos_m: Gripper site after the last action, shape (N, 3).
        final_target_pos_m: Targets after the last action, shape (N, 3 * TARGET_SLOTS), unused slots zero.
        target_count: Used target slots, shape (N,).
        total: Rows that the files hold, those left out included.
        left_out: Numbers of episodes whose rows were left out.
    """

    table: pa.Table
    episode_index: IntArray
    length: IntArray
    final_eef_pos_m: FloatArray
    final_target_pos_m: FloatArray
    target_count: IntArray
    total: int
    left_out: frozenset[int]


def read_episodes(layout: Layout, inspection: Inspection) -> EpisodeTable:
    """Read and check the episode rows of one dataset.

    Raises:
        DatasetError: If a file is truncated, a column missing or of the wrong type, or a row contradicts itself; with
            a partial inspection only where nothing is left.
    """
    everything = _read_files(layout, inspection)
    table = check_episodes(everything, layout.episodes_where, inspection)
    if not table.num_rows:
        first = inspection.defects[0]
        raise DatasetError(f"{layout.episodes_where}: no episode is without defect, the first: {first}")
    left_out = set(everything["episode_index"].to_pylist()) - set(table["episode_index"].to_pylist())
    return EpisodeTable(
        table=table.select(list(EPISODE_COLUMNS)),
        episode_index=np.asarray(table["episode_index"].to_numpy(), np.int64),
        length=np.asarray(table["length"].to_numpy(), np.int64),
        final_eef_pos_m=pad_lists(table["final_eef_pos_m"], 3),
        final_target_pos_m=pad_lists(table["final_target_pos_m"], 3 * TARGET_SLOTS),
        target_count=np.asarray(pc.list_value_length(table["targets"]).to_numpy(), np.int64),
        total=everything.num_rows,
        left_out=frozenset(number for number in left_out if number is not None),
    )


def _read_files(layout: Layout, inspection: Inspection) -> pa.Table:
    """The rows of all files that can be read."""
    tables = []
    for file in layout.episode_files():
        try:
            tables.append(read_episode_file(file, layout))
        except DatasetError as error:
            inspection.report(Defect(file=str(file), episode="", field="", message=str(error)), error)
    table = pa.concat_tables(tables).combine_chunks() if tables else None
    if table is None or not table.num_rows:
        raise DatasetError(f"{layout.episodes_where}: holds no episode: record again")
    return table
