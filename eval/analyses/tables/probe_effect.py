"""What a probe changes: each measure under it against the same pairs without one."""

from __future__ import annotations

import pyarrow as pa

from ....builders.rollouts.episode_record import PROBES
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
    probe_text,
    text_fields,
)
from ..differences import measure_changes, table_with_false_discovery
from ..groups import place_in_order, rows_where

SAME = ("policy", "prompt", "suite", "base_task", "case_id", "init_state", "seed")
"""What makes a pair under a probe the counterpart of one without."""

SCHEMA = pa.schema(
    [
        *text_fields("policy", "prompt", *PROBES, "measure"),
        *number_fields("without", "under"),
        *interval_fields("difference"),
        *number_fields("p", "q"),
        *count_fields("n"),
    ]
)


def probe_effect(pairs: pa.Table, probed: pa.Table) -> pa.Table:
    """Each measure under each probe minus the same without, and the selectivity, over the same cases and rollouts.

    A policy that merely collapses under a probe loses PCSR with RGSR, so its selectivity is zero or positive; one that
    takes the conflict more seriously keeps its PCSR and has a negative one. RGSR alone cannot tell them apart.

    Args:
        pairs: Pairs without a probe, with ``pair_table.PAIR_COLUMNS``.
        probed: Pairs under one.

    Returns:
        A row for each policy, prompt condition, probe and measure, in that order: both means, the difference with its
        interval over base tasks, and the p-value of a paired sign-flip test, with ``q`` adjusted over the table. ``n``
        counts what is compared: for a process measure the pairs where it is defined both times. A probe without any
        pair in common has no row.
    """
    measured = [*SAME, "reference_success", "conflict_success", *PROCESS_NAMES]
    rows: list[dict[str, object]] = []
    for condition in _conditions(probed):
        under = rows_where(probed, condition).select(measured)
        both = pairs.select(measured).join(under, keys=list(SAME), right_suffix="_probed", join_type="inner")
        if both.num_rows:
            both = both.sort_by([(key, "ascending") for key in SAME])
            rows += [{**condition, **change.columns("without", "under")} for change in measure_changes(both, "_probed")]
    return table_with_false_discovery(rows, SCHEMA)


def _conditions(probed: pa.Table) -> list[dict[str, str]]:
    """Policies, prompt conditions and probes that occur, in the tables' order."""
    names = ("policy", "prompt", *PROBES)
    found = {tuple(row.values()) for row in probed.select(names).to_pylist()}
    rows = [dict(zip(names, row, strict=True)) for row in found]
    return sorted(rows, key=lambda row: [place_in_order(row[name], name) for name in names])


ANALYSIS = Analysis(
    name="probe_effect",
    title="Under a language or visual probe against none",
    note="Percent, on the same cases, initial states and prompts, with 95% intervals over base tasks; p: paired "
    "sign-flip test; q: Benjamini-Hochberg. Selectivity is about 0 where valid and invalid tasks suffer alike.",
    compute=lambda scored: probe_effect(scored.pairs, scored.probed),
    labels=(plain("policy"), plain("prompt"), column("probe", probe_text), column("measure", measure_symbol)),
    numbers=(
        percents("without"),
        percents("under"),
        column("difference", difference_text),
        p_values("p"),
        p_values("q"),
        plain("n"),
    ),
    probes=True,
)
