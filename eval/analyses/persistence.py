"""Failed persistence: how much of the reference motion is in the failures of a policy."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ...toolkit.arrays import FloatArray
from ..measures.process import persistence_curve
from .groups import groups_of, success

PERSISTENCE_LEVELS: FloatArray = np.arange(21) / 20
"""Thresholds of the failed-persistence curve, for TAR and for Early20 alike."""


def failed_persistence(pairs: pa.Table, policy: str) -> FloatArray:
    """Share of a policy's qualified failures with TAR >= x and Early20 >= y, over ``PERSISTENCE_LEVELS`` (both axes).

    Args:
        pairs: A table with ``PAIR_COLUMNS``.
        policy: As in its ``policy`` column; P0 counts, or the first of its other prompt conditions.

    Returns:
        Shape (21, 21), TAR along the first axis; NaN where the policy has no qualified failure with a defined TAR.
    """
    for group in groups_of(pairs.filter(pc.equal(pairs["policy"], policy)), None, primary_only=True):
        chosen = pairs.filter(pc.equal(pairs["policy"], policy)).take(pa.array(group.rows))
        failed = chosen.filter(pa.array(success(chosen, "reference") & ~success(chosen, "conflict")))
        return persistence_curve(failed["TAR"].to_numpy(), failed["Early20_TS"].to_numpy(), PERSISTENCE_LEVELS)
    return np.full((len(PERSISTENCE_LEVELS), len(PERSISTENCE_LEVELS)), np.nan)
