"""Does the premise-check prompt change anything?"""

from __future__ import annotations

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

SCHEMA = pa.schema(
    [
        *text_fields("policy", "measure"),
        *number_fields("P0", "P1"),
        *interval_fields("difference"),
        *number_fields("p", "q"),
        *count_fields("n"),
    ]
)


def prompt_effect(pairs: pa.Table) -> pa.Table:
    """P1 - P0 of each measure and the selectivity, over cases and initial states rolled out under both prompts.

    Returns:
        A row for each policy and measure: both means, their difference with its interval over base tasks, and the
        p-value of a paired sign-flip permutation test, with ``q`` adjusted over the table. ``n`` counts what is
        compared: for a process measure the pairs where it is defined under both prompts. A policy with one prompt
        has no row.
    """
    rows = []
    for policy in sorted(set(pairs["policy"].to_pylist())):
        both = _under_both_prompts(pairs.filter(pc.equal(pairs["policy"], policy)))
        if both.num_rows:
            rows += [{"policy": policy, **change.columns("P0", "P1")} for change in measure_changes(both, "_P1")]
    return table_with_false_discovery(rows, SCHEMA)


def _under_both_prompts(pairs: pa.Table) -> pa.Table:
    """One row for each case, initial state and seed that has a pair under P0 and one under P1 (columns ``*_P1``)."""
    keys = ["suite", "base_task", "case_id", "init_state", "seed"]
    measured = [*keys, "reference_success", "conflict_success", *PROCESS_NAMES]
    p0, p1 = (pairs.filter(pc.equal(pairs["prompt"], prompt.value)).select(measured) for prompt in Prompt)
    joined = p0.join(p1, keys=keys, right_suffix="_P1", join_type="inner")
    return joined.sort_by([(key, "ascending") for key in keys])


ANALYSIS = Analysis(
    name="prompt_effect",
    title="Premise-check prompt (P1) against the instruction alone (P0)",
    note="Percent, with 95% intervals over base tasks; p: paired sign-flip test; q: Benjamini-Hochberg.",
    compute=lambda scored: prompt_effect(scored.pairs),
    labels=(plain("policy"), column("measure", measure_symbol)),
    numbers=(
        percents("P0"),
        percents("P1"),
        column("P1 − P0", difference_text),
        p_values("p"),
        p_values("q"),
        plain("n"),
    ),
)
