"""How many pairs lack a measure, and why."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from ...scoring.supplementary import UNDEFINED_COLUMNS
from ..analysis import Analysis
from ..columns import count_fields, plain, text_fields

SCHEMA = pa.schema([*text_fields("policy", "prompt", "measure", "reason"), *count_fields("n")])


def undefined_counts(pairs: pa.Table) -> pa.Table:
    """How many pairs lack a measure, and why: a row for each policy, prompt condition, measure and reason.

    Of the supplementary measures only where they were taken.
    """
    columns = {"TAR": "TAR_undefined", **UNDEFINED_COLUMNS}
    rows: list[dict[str, Any]] = []
    for measure, column in columns.items():
        if column not in pairs.column_names:
            continue
        missing = pairs.filter(pc.is_valid(pairs[column]))
        counts = missing.group_by(["policy", "prompt", column]).aggregate([([], "count_all")])
        rows += [
            {name: row[name] for name in ("policy", "prompt")}
            | {"measure": measure, "reason": row[column], "n": row["count_all"]}
            for row in counts.to_pylist()
        ]
    table = pa.Table.from_pylist(rows, schema=SCHEMA)
    order = pa.array([[*columns].index(name) for name in table["measure"].to_pylist()], pa.int64())
    by = ("policy", "prompt", "order", "reason")
    sorted_rows = pc.sort_indices(table.append_column("order", order), sort_keys=[(name, "ascending") for name in by])
    return table.take(sorted_rows)


ANALYSIS = Analysis(
    name="undefined",
    title="Pairs that lack a measure",
    note="Number of pairs by the reason why the measure is undefined.",
    compute=lambda scored: undefined_counts(scored.pairs),
    labels=(plain("policy"), plain("prompt"), plain("measure"), plain("reason")),
    numbers=(plain("n"),),
)
