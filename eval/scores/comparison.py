"""Two policies side by side, on the conflicts that both were rolled out on."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ...builders.rollouts.episode_record import PROBES
from ...toolkit.arrays import FloatArray, IntArray
from ...toolkit.errors import InvalidInputError
from ..analyses.analysis import Cell
from ..analyses.columns import difference_text, interval_values, measure_symbol, p_value, percent, probe_text, rounded
from ..analyses.differences import paired_difference, table_with_false_discovery
from ..analyses.groups import base_task_clusters, place_in_order, rows_where, success
from ..measures import MEASURE_NAMES, PROCESS_NAMES
from ..measures.outcome import qualified_failures
from ..statistics.intervals import ratio_difference
from ..statistics.ratio import Ratio
from ..statistics.resampling import generator
from .scores import Scores, read_scores, score, why_no_pairs
from .text_tables import TextTable

Sides = tuple[FloatArray, FloatArray]
"""One value a shared pair, of the first and of the second policy."""

CONDITION = ("prompt", *PROBES)
"""Under what a pair was rolled out; conditions are never mixed."""

SHARED = ("suite", "base_task", "case_id", *CONDITION, "init_state")
"""What makes a pair of one policy the counterpart of a pair of the other."""

COST = "CC"
"""What a conflict rollout costs; compared where both sides recorded it, and not in percent."""

MEASURED = {
    "PCSR": "reference_success",
    "RGSR": "conflict_success",
    **dict(zip(PROCESS_NAMES, PROCESS_NAMES, strict=True)),
    COST: "conflict_cost",
}
"""Columns of the table of pairs whose means are compared."""

FAILED = "qualified_failure"
"""Pairs of D_QF: what FR counts, over the pairs of D_Q, which each policy has its own of."""

SCHEMA = pa.schema(
    [
        *[(name, pa.string()) for name in (*CONDITION, "measure")],
        *[(name, pa.float64()) for name in ("a", "b", "difference", "difference_lo", "difference_hi", "p", "q")],
        ("n", pa.int64()),
    ]
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """What is compared, and how.

    Attributes:
        a: The first policy.
        b: The second policy.
        table: A row a prompt condition, probe and measure, as ``SCHEMA``: both means, b - a with its interval over
            base tasks, a sign-flip test over base tasks, ``q`` adjusted over the table, and the number of shared pairs.
            FR is over each policy's own D_Q, and ``n`` counts the shared pairs that are in either. ``CC`` is the mean
            cost of a conflict rollout, where both sides recorded it.
        only_a: Pairs of the first policy without a counterpart.
        only_b: Pairs of the second policy without a counterpart.
    """

    a: str
    b: str
    table: pa.Table
    only_a: int
    only_b: int


def load_scores(source: Path | str) -> Scores:
    """Scores from a scores file (``.json``), or of the rollouts at a path or on the Hub."""
    return read_scores(source) if str(source).endswith(".json") else score(source)


def compare_policies(first: Scores, second: Scores) -> Comparison:
    """Compare two policies on the cases, prompt conditions, probes and initial states that both have.

    Where a policy has several seeds, their mean counts, so that each case and initial state weighs once.

    Args:
        first: Scores of one policy.
        second: Scores of the other.

    Raises:
        InvalidInputError: If either holds no or several policies, or they share no pair.
    """
    names = [_only_policy(scores, side) for scores, side in ((first, "A"), (second, "B"))]
    a, b = (_means_over_seeds(pa.concat_tables([scores.pairs, scores.probed])) for scores in (first, second))
    both = a.join(b, keys=list(SHARED), right_suffix="_b", join_type="inner")
    if not both.num_rows:
        raise InvalidInputError(
            f"{names[0]} and {names[1]} share no case, prompt condition, probe and initial state: run both on the same "
            "ones"
        )
    both = both.sort_by([(name, "ascending") for name in SHARED])
    rows = [row for condition in _conditions(both) for row in _rows(condition, both)]
    return Comparison(
        a=names[0],
        b=names[1],
        table=table_with_false_discovery(rows, SCHEMA),
        only_a=a.num_rows - both.num_rows,
        only_b=b.num_rows - both.num_rows,
    )


def comparison_table(comparison: Comparison) -> TextTable:
    """The comparison as text."""
    left_out = f"; without a counterpart: {comparison.only_a} of A, {comparison.only_b} of B"
    rows = []
    for row in comparison.table.to_pylist():
        shown = rounded if row["measure"] == COST else percent
        rows.append(
            (
                f"{row['prompt']} {probe_text(row)}".strip(),
                measure_symbol(row),
                shown(row["a"]),
                shown(row["b"]),
                difference_text(row, shown),
                p_value(row["p"]),
                p_value(row["q"]),
                str(row["n"]),
            )
        )
    return TextTable(
        name="comparison",
        title=f"A: {comparison.a}, B: {comparison.b}",
        note="Percent (CC: cost of a conflict rollout), on shared pairs, with 95% intervals over base tasks; FR over "
        "each policy's own qualified pairs; p: sign-flip test over base tasks; q: Benjamini-Hochberg"
        f"{left_out if comparison.only_a or comparison.only_b else ''}.",
        header=("prompt", "measure", "A", "B", "B − A", "p", "q", "n"),
        cells=tuple(tuple(Cell(value=text) for text in row) for row in rows),
        labels=2,
        data=comparison.table,
    )


def _only_policy(scores: Scores, side: str) -> str:
    policies = sorted({*scores.policies, *scores.probed["policy"].to_pylist()})
    if not policies:
        raise InvalidInputError(f"a comparison is over pairs, and {side} has none: {why_no_pairs(scores)}")
    if len(policies) > 1:
        raise InvalidInputError(
            f"each side of a comparison is one policy, and {side} holds {', '.join(policies)}: give its own folder"
        )
    return str(policies[0])


def _means_over_seeds(pairs: pa.Table) -> pa.Table:
    failed = qualified_failures(success(pairs, "reference"), success(pairs, "conflict"))
    columns = {name: pc.cast(pairs[column], pa.float64()) for name, column in MEASURED.items()}
    columns[FAILED] = pa.array(failed.astype(np.float64))
    table = pa.table({**{name: pairs[name] for name in SHARED}, **columns})
    means = table.group_by(list(SHARED)).aggregate([(name, "mean") for name in columns])
    return means.rename_columns([name.removesuffix("_mean") for name in means.column_names])


def _conditions(both: pa.Table) -> list[dict[str, str]]:
    """What occurs, without a probe first."""
    order = ("language_probe", "visual_probe", "prompt")
    found = {tuple(row[name] for name in order) for row in both.select(order).to_pylist()}
    rows = [dict(zip(order, values, strict=True)) for values in found]
    return sorted(rows, key=lambda row: [place_in_order(row[name], name) for name in order])


def _rows(condition: dict[str, str], everything: pa.Table) -> list[dict[str, Any]]:
    both = rows_where(everything, condition)
    clusters = base_task_clusters(both)
    values = {name: (both[name].to_numpy(), both[f"{name}_b"].to_numpy()) for name in (*MEASURED, FAILED)}
    plus, minus = values["PCSR"], values["RGSR"]
    values["dSR"] = (plus[0] - minus[0], plus[1] - minus[1])
    rows = []
    for name in MEASURE_NAMES:
        if name == "FR":
            found = _failure_rates(values[FAILED], plus, clusters)
        else:
            found = _means(values[name], clusters, 2.0 if name == "dSR" else 1.0)
        rows.append({**condition, "measure": name, **found})
    costs = _means(values[COST], clusters, np.inf)
    return [*rows, {**condition, "measure": COST, **costs}] if costs["n"] else rows


def _means(sides: Sides, clusters: IntArray, range_: float) -> dict[str, Any]:
    first, second = sides
    defined = np.isfinite(first) & np.isfinite(second)
    means = [float(side[defined].mean()) if defined.any() else float("nan") for side in sides]
    return {
        "a": means[0],
        "b": means[1],
        **paired_difference((second - first)[defined], clusters[defined], range_).columns(),
    }


def _failure_rates(failed: Sides, qualified: Sides, clusters: IntArray) -> dict[str, Any]:
    first, second = (Ratio(numerator=up, denominator=down) for up, down in zip(failed, qualified, strict=True))
    interval, p = ratio_difference(first, second, clusters, generator())
    return {
        "a": first.value(),
        "b": second.value(),
        **interval_values("difference", interval),
        "p": p,
        "n": int(((qualified[0] > 0) | (qualified[1] > 0)).sum()),
    }
