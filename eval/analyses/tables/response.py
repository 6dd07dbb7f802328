"""The response by prompt condition, conflict family and level, with the PCSR that says whether it can be ranked."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from ....toolkit.records import Family, Level
from ...measures.outcome import premise_consistent_success_rate
from ...measures.response import CAPABILITY_GATE
from ...statistics.intervals import cluster_intervals
from ...statistics.resampling import generator
from ..analysis import Analysis
from ..columns import count_fields, interval_fields, interval_values, intervals, percent, plain, text_fields
from ..groups import base_task_clusters, groups_of, rows_where, success
from ..response import response_of

SCHEMA = pa.schema(
    [
        *text_fields("policy", "prompt", "among"),
        *interval_fields("PCSR", "response"),
        *count_fields("n", "undefined"),
    ]
)

ALL_PAIRS = "all pairs"


def response_table(pairs: pa.Table) -> pa.Table:
    """The response of each policy under each prompt condition: over all pairs, by conflict family, and by level.

    Args:
        pairs: A table with ``PAIR_COLUMNS``.

    Returns:
        ``policy``, ``prompt``, ``among`` (``all pairs``, a family or a level), then PCSR and response with intervals
        over base tasks, as fractions; ``n``, the pairs that the response is over, and ``undefined``, those of D_Q that
        have no TAR.
    """
    rows = []
    for group in groups_of(pairs, None, primary_only=False):
        for among, chosen in _parts(pairs.take(pa.array(group.rows))):
            if chosen.num_rows:
                rows.append({"policy": group.policy, "prompt": group.prompt, "among": among, **_values(chosen)})
    return pa.Table.from_pylist(rows, schema=SCHEMA)


def _parts(pairs: pa.Table) -> Iterator[tuple[str, pa.Table]]:
    yield ALL_PAIRS, pairs
    for column, names in (("family", tuple(Family)), ("level", tuple(Level))):
        for name in names:
            yield name.value, rows_where(pairs, {column: name.value})


def _values(pairs: pa.Table) -> dict[str, Any]:
    pcsr = premise_consistent_success_rate(success(pairs, "reference"))
    (capability,) = cluster_intervals([pcsr], base_task_clusters(pairs), generator())
    found = response_of(pairs)
    return {
        **interval_values("PCSR", capability),
        **interval_values("response", found.response),
        "n": found.n,
        "undefined": found.undefined,
    }


ANALYSIS = Analysis(
    name="response",
    title="Response to a conflict, among capable pairs",
    note="Percent, with 95% intervals over base tasks: mean of 1 - max(y-, persistence) over the pairs whose reference "
    f"succeeds. Ranked where PCSR's interval begins at {percent(CAPABILITY_GATE, 0)}% or above.",
    compute=lambda scored: response_table(scored.pairs),
    labels=(plain("policy"), plain("prompt"), plain("among")),
    numbers=(intervals("PCSR", "PCSR ↑"), intervals("response", "response ↑"), plain("n"), plain("undefined")),
)
