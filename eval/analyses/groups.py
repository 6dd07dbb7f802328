"""Groups of pairs in the order of the tables."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ...toolkit.arrays import BoolArray, IntArray
from ...toolkit.records import SUITES, Family, LanguageProbe, Level, Prompt, VisualProbe

ORDER: dict[str, tuple[str, ...]] = {
    "prompt": tuple(Prompt),
    "family": tuple(Family),
    "level": tuple(Level),
    "suite": SUITES,
    "language_probe": tuple(LanguageProbe),
    "visual_probe": tuple(VisualProbe),
}
"""Rows follow the paper's order; names that it does not know come after, sorted."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Group:
    """Pairs of one row of a table.

    Attributes:
        policy: Whose pairs they are.
        prompt: Under which prompt condition.
        name: The group's own name, such as ``spatial``; empty where the row is a whole policy.
        rows: Positions in the table of pairs, shape (n,).
    """

    policy: str
    prompt: str
    name: str
    rows: IntArray


def base_task_clusters(pairs: pa.Table) -> IntArray:
    """Number of each pair's base task, in the order of their names, shape (P,)."""
    names = pc.binary_join_element_wise(pairs["suite"], pairs["base_task"], "/")
    return np.asarray(np.unique(names.to_numpy().astype(str), return_inverse=True)[1], np.int64)


def groups_of(pairs: pa.Table, column: str | None, *, primary_only: bool) -> Iterator[Group]:
    """Groups of pairs by policy, prompt condition and, if given, one more column, in the tables' order.

    Args:
        pairs: A table with ``PAIR_COLUMNS``.
        column: ``family``, ``level``, ``suite``, one of ``PROBES``, or None.
        primary_only: Only P0, or for a policy without P0 only the first of its others.
    """
    policies, prompts = (pairs[name].to_numpy() for name in ("policy", "prompt"))
    for policy in sorted(set(policies)):
        of_policy = policies == policy
        conditions = ordered(set(prompts[of_policy]), "prompt")
        for prompt in conditions[:1] if primary_only else conditions:
            rows = np.flatnonzero(of_policy & (prompts == prompt))
            if column is None:
                yield Group(policy=policy, prompt=prompt, name="", rows=rows)
                continue
            values = pairs[column].to_numpy()[rows]
            for name in ordered(set(values), column):
                yield Group(policy=policy, prompt=prompt, name=name, rows=rows[values == name])


def rows_where(table: pa.Table, values: Mapping[str, str]) -> pa.Table:
    """The rows with these values in these columns."""
    for name, value in values.items():
        table = table.filter(pc.equal(table[name], value))
    return table


def success(pairs: pa.Table, arm: str) -> BoolArray:
    """y+ or y-, shape (P,), for ``reference`` or ``conflict``."""
    return np.asarray(pairs[f"{arm}_success"].to_numpy(), np.bool_)


def ordered(values: Iterable[str], column: str) -> list[str]:
    """Values of a column in the tables' order, see ``ORDER``."""
    return sorted(values, key=lambda value: place_in_order(value, column))


def place_in_order(value: str, column: str) -> tuple[int, str]:
    """Sorts values of a column into the tables' order; those of a column without one as text."""
    known = ORDER.get(column, ())
    return (known.index(value) if value in known else len(known)), value
