"""Costs worked out afterwards, in place of those recorded with the rollouts."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from ...builders.rollouts.episode_record import EPISODE_COLUMNS
from ...toolkit.errors import DatasetError, first_line
from ...toolkit.records import Arm
from ..scoring.scored_pairs import ScoredPairs

COLUMNS = ("rollout_id", "cost")


def with_costs(scored: ScoredPairs, file: Path) -> ScoredPairs:
    """The same pairs with the costs of a file in place of those recorded.

    Args:
        scored: Measured pairs.
        file: Written by ``conflictvla cost``; rollouts that it does not name have no cost then.

    Raises:
        DatasetError: It is no such file.
    """
    try:
        costs = pq.ParquetFile(file).read(columns=list(COLUMNS))
        costs = costs.cast(pa.schema([(name, EPISODE_COLUMNS[name]) for name in COLUMNS]))
    except (OSError, ValueError, KeyError, pa.ArrowException) as error:
        raise DatasetError(
            f"{file}: not a file of costs ({first_line(error)}): write it with `conflictvla cost`"
        ) from error
    return dataclasses.replace(
        scored,
        **{name: _replace_pair_costs(getattr(scored, name), costs) for name in ("pairs", "probed", "controls")},
        references=_replace_costs(scored.references, costs, of="rollout_id", name="cost"),
    )


def _replace_pair_costs(pairs: pa.Table, costs: pa.Table) -> pa.Table:
    for arm in (Arm.REFERENCE, Arm.CONFLICT):
        pairs = _replace_costs(pairs, costs, of=f"{arm}_rollout", name=f"{arm}_cost")
    return pairs


def _replace_costs(table: pa.Table, costs: pa.Table, *, of: str, name: str) -> pa.Table:
    """The table with the costs of the rollouts that the column ``of`` names in the column ``name``."""
    rows = pc.index_in(table[of], value_set=costs["rollout_id"].combine_chunks())
    found = np.asarray(
        costs["cost"].combine_chunks().take(rows.combine_chunks()).to_numpy(zero_copy_only=False), np.float64
    )
    return table.set_column(table.column_names.index(name), name, pa.array(found, pa.float64()))
