"""What do other prompt conditions change, against the instruction alone?"""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from ....toolkit.records import Prompt
from ...measures import PROCESS_NAMES
from ..analysis import Analysis
from ..columns import (
    column,
    count_fields,
    difference_text,
    interval_fields,
    measure_symbol,
    number_fields,
    p_values,
    percents,
    plain,
    text_fields,
)
from ..differences import measure_changes, table_with_false_discovery
from ..groups import ordered

SUFFIX = "_prompted"
"""Of the columns under the other prompt condition."""

SCHEMA = pa.schema(
    [
        *text_fields("policy", "prompt", "measure"),
        *number_fields("P0", "prompted"),
        *interval_fields("difference"),
        *number_fields("p", "q"),
        *count_fields("n"),
    ]
)


def prompt_effect(pairs: pa.Table) -> pa.Table:
    """What each prompt condition changes of each measure against P0, and its selectivity, over the pairs under both.

    Returns:
        A row for each policy, prompt condition other than P0, and measure: the means under P0 and under the condition,
        their difference with its interval over base tasks, and the p-value of a paired sign-flip permutation test, with
        ``q`` adjusted over the condition's rows. ``n`` counts what is compared: for a process measure the pairs where
        it is defined under both. A policy without P0, or with P0 alone, has no row.
    """
    others = ordered(set(pairs["prompt"].to_pylist()) - {Prompt.P0.value}, "prompt")
    tables = [table_with_false_discovery(_rows(pairs, prompt), SCHEMA) for prompt in others]
    rows = [row for table in tables for row in table.to_pylist()]
    return pa.Table.from_pylist(sorted(rows, key=lambda row: str(row["policy"])), schema=SCHEMA)


def _rows(pairs: pa.Table, prompt: str) -> list[dict[str, Any]]:
    """What a prompt condition changes of every policy that has pairs under it and under P0."""
    rows: list[dict[str, Any]] = []
    for policy in sorted(set(pairs["policy"].to_pylist())):
        both = _under_both(pairs.filter(pc.equal(pairs["policy"], policy)), prompt)
        if both.num_rows:
            names = {"policy": policy, "prompt": prompt}
            rows += [names | change.columns("P0", "prompted") for change in measure_changes(both, SUFFIX)]
    return rows


def _under_both(pairs: pa.Table, prompt: str) -> pa.Table:
    """One row for each case, initial state and seed with a pair under P0 and one under the condition (``SUFFIX``)."""
    keys = ["suite", "base_task", "case_id", "init_state", "seed"]
    measured = [*keys, "reference_success", "conflict_success", *PROCESS_NAMES]
    before, after = (
        pairs.filter(pc.equal(pairs["prompt"], name)).select(measured) for name in (Prompt.P0.value, prompt)
    )
    joined = before.join(after, keys=keys, right_suffix=SUFFIX, join_type="inner")
    return joined.sort_by([(key, "ascending") for key in keys])


ANALYSIS = Analysis(
    name="prompt_effect",
    title="Prompt conditions against the instruction alone (P0)",
    note="Percent, with 95% intervals over base tasks; p: paired sign-flip test; q: Benjamini-Hochberg, each prompt "
    "condition its own.",
    compute=lambda scored: prompt_effect(scored.pairs),
    labels=(plain("policy"), plain("prompt"), column("measure", measure_symbol)),
    numbers=(
        percents("P0"),
        percents("prompted", "with prompt"),
        column("change", difference_text),
        p_values("p"),
        p_values("q"),
        plain("n"),
    ),
)
