"""Paired differences: what becomes of each measure from one condition to another."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from ...toolkit.arrays import FloatArray, IntArray
from ..measures import PROCESS_NAMES
from ..measures.selectivity import selectivity
from ..statistics.hypothesis_tests import false_discovery, sign_flip_p
from ..statistics.intervals import Interval, cluster_intervals
from ..statistics.ratio import mean_of_defined
from ..statistics.resampling import generator
from .columns import interval_values
from .groups import base_task_clusters


@dataclass(frozen=True, slots=True, kw_only=True)
class PairedDifference:
    """A mean of paired differences.

    Attributes:
        difference: The mean with its interval over base tasks.
        p: Two-sided p-value of a test that it is zero.
        n: Pairs compared.
    """

    difference: Interval
    p: float
    n: int

    def columns(self) -> dict[str, float]:
        """The values of the columns ``difference``, ``difference_lo``, ``difference_hi``, ``p`` and ``n``."""
        return {**interval_values("difference", self.difference), "p": self.p, "n": self.n}


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasureChange:
    """A measure under two conditions, over the same pairs.

    Attributes:
        measure: Its name, or ``selectivity``, which has no value under one condition alone.
        first: Mean under the first condition.
        second: Mean under the second.
        change: The second minus the first.
    """

    measure: str
    first: float
    second: float
    change: PairedDifference

    def columns(self, first: str, second: str) -> dict[str, str | float]:
        """The values of the columns ``measure``, those of the two means by the names given, and of the change."""
        return {"measure": self.measure, first: self.first, second: self.second, **self.change.columns()}


def measure_changes(both: pa.Table, suffix: str) -> tuple[MeasureChange, ...]:
    """What becomes of each measure, and the selectivity, over pairs rolled out under two conditions.

    FR is taken over the pairs that are capability-qualified under both conditions, so that it is a paired mean too.

    Args:
        both: A row a pair: its measures under the first condition, and under the second in columns with the suffix.
        suffix: Such as ``_prompted``.
    """
    clusters = base_task_clusters(both)

    def sides(column: str) -> tuple[FloatArray, FloatArray]:
        return both[column].to_numpy().astype(np.float64), both[f"{column}{suffix}"].to_numpy().astype(np.float64)

    reference, conflict = sides("reference_success"), sides("conflict_success")
    qualified = (reference[0] == 1) & (reference[1] == 1)
    failed = (np.where(qualified, 1 - conflict[0], np.nan), np.where(qualified, 1 - conflict[1], np.nan))
    values = {"PCSR": reference, "RGSR": conflict, "FR": failed, **{name: sides(name) for name in PROCESS_NAMES}}
    changes = [_change(name, first, second, clusters) for name, (first, second) in values.items()]
    selective = selectivity(values["PCSR"][0], values["RGSR"][0], values["PCSR"][1], values["RGSR"][1])
    nan = float("nan")
    change = paired_difference(selective, clusters, range_=2)
    return (*changes, MeasureChange(measure="selectivity", first=nan, second=nan, change=change))


def paired_difference(differences: FloatArray, clusters: IntArray, range_: float = 1.0) -> PairedDifference:
    """Mean of paired differences within [-range_, range_], with its interval and a sign-flip test.

    Args:
        differences: One a pair, finite, shape (P,).
        clusters: Number of each pair's base task, shape (P,).
        range_: Largest difference that there can be.
    """
    (interval,) = cluster_intervals([mean_of_defined(differences, -range_, range_)], clusters, generator())
    return PairedDifference(difference=interval, p=sign_flip_p(differences, clusters, generator()), n=len(differences))


def table_with_false_discovery(rows: Sequence[Mapping[str, object]], schema: pa.Schema) -> pa.Table:
    """Rows with ``p`` as a table with ``q``: their ``p`` adjusted over the table."""
    adjusted = false_discovery(np.array([row["p"] for row in rows], np.float64))
    completed = [{**row, "q": float(q)} for row, q in zip(rows, adjusted, strict=True)]
    return pa.Table.from_pylist(completed, schema=schema)


def _change(name: str, first: FloatArray, second: FloatArray, clusters: IntArray) -> MeasureChange:
    defined = np.isfinite(first) & np.isfinite(second)
    means = [float(side[defined].mean()) if defined.any() else float("nan") for side in (first, second)]
    change = paired_difference((second - first)[defined], clusters[defined])
    return MeasureChange(measure=name, first=means[0], second=means[1], change=change)
