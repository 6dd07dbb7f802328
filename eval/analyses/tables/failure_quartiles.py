"""How the capability-qualified failures of each policy are distributed: the numbers of the paper's Figure 3."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa

from ...measures import PROCESS_MEASURES, Measure
from ...measures.outcome import qualified_failures
from ..analysis import Analysis, Row
from ..columns import arrow, column, count_fields, number_fields, percent, plain, text_fields
from ..groups import groups_of, success

QUARTILES = {"q1": 0.25, "median": 0.5, "q3": 0.75}
"""Suffixes of the columns, and which share of the failures is at or below."""

SCHEMA = pa.schema(
    [
        *text_fields("policy", "prompt"),
        *number_fields(*(f"{measure.name}_{name}" for measure in PROCESS_MEASURES for name in QUARTILES)),
        *count_fields("n"),
    ]
)


def failure_quartiles(pairs: pa.Table) -> pa.Table:
    """Quartiles of the process measures over each policy's qualified failures D_QF, under its primary prompt condition.

    Args:
        pairs: With ``PAIR_COLUMNS``.

    Returns:
        For each policy and process measure ``_q1``, ``_median`` and ``_q3`` as fractions, over the failures where it is
        defined, interpolated linearly; NaN where there is none. ``n`` counts the failures.
    """
    rows = []
    for group in groups_of(pairs, None, primary_only=True):
        chosen = pairs.take(pa.array(group.rows))
        failed = chosen.filter(pa.array(qualified_failures(success(chosen, "reference"), success(chosen, "conflict"))))
        row: dict[str, Any] = {"policy": group.policy, "prompt": group.prompt, "n": failed.num_rows}
        for measure in PROCESS_MEASURES:
            values = failed[measure.name].to_numpy()
            defined = values[np.isfinite(values)]
            found = np.quantile(defined, [*QUARTILES.values()]) if len(defined) else np.full(len(QUARTILES), np.nan)
            row |= {f"{measure.name}_{name}": float(value) for name, value in zip(QUARTILES, found, strict=True)}
        rows.append(row)
    return pa.Table.from_pylist(rows, schema=SCHEMA)


def _three(measure: Measure) -> Callable[[Row], str]:
    return lambda row: " / ".join(percent(row[f"{measure.name}_{name}"]) for name in QUARTILES)


ANALYSIS = Analysis(
    name="failure_quartiles",
    title="Capability-qualified failures: quartiles",
    note="Percent: lower quartile / median / upper quartile over the failures, as drawn in their distribution; the "
    "paper reads the upper quartile of TAR and the median of Early20. No intervals: these describe the failures seen.",
    compute=lambda scored: failure_quartiles(scored.pairs),
    labels=(plain("policy"), plain("prompt")),
    numbers=(
        *(column(f"{measure.symbol} {arrow(measure)}", _three(measure)) for measure in PROCESS_MEASURES),
        plain("n"),
    ),
)
