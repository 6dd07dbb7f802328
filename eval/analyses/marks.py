"""What is set apart in a table of measures: the best of the policies, and the extremes of a policy and a column."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence

from ..measures import MEASURES
from .analysis import Mark, Marks, Row

DECIMALS = 1
"""Values that are equal as printed, in percent with so many decimals, are tied: all of them are marked."""


def best_of_policies(group: str | None) -> Callable[[Sequence[Row]], Marks]:
    """Marks the best policy in each measure; which direction is better is in ``MEASURES``.

    Args:
        group: Column of the rows' group, such as ``level``: policies are compared within each group, and always within
            each prompt condition. Where one policy alone has a value, or all are tied, none is the best.
    """

    def marks(rows: Sequence[Row]) -> Marks:
        found: dict[tuple[int, str], Mark] = {}
        for numbers in numbers_by(rows, ("prompt", *([group] if group else []))).values():
            for measure in MEASURES:
                values = _printed(rows, numbers, measure.name)
                if len(set(values.values())) > 1:
                    best = max(values.values()) if measure.higher_is_better else min(values.values())
                    found |= {(number, measure.name): Mark.BEST for number in values if values[number] == best}
        return found

    return marks


def extremes_by_policy(rows: Sequence[Row]) -> Marks:
    """Marks each policy's highest and lowest row in each measure, and the whole column's.

    The paper's Table II marks maximum and minimum "within each metric column". Rows of a policy, or of a column, that
    are all tied have no extremes.
    """
    found: dict[tuple[int, str], Mark] = {}
    for measure in MEASURES:
        for numbers in numbers_by(rows, ("policy", "prompt")).values():
            found |= _extremes(rows, numbers, measure.name, (Mark.LOWEST, Mark.HIGHEST))
        found |= _extremes(rows, range(len(rows)), measure.name, (Mark.COLUMN_LOWEST, Mark.COLUMN_HIGHEST))
    return found


def numbers_by(rows: Sequence[Row], columns: Sequence[str]) -> dict[tuple[str, ...], list[int]]:
    """Numbers of the rows by their values in some columns, in the rows' order."""
    found: dict[tuple[str, ...], list[int]] = {}
    for number, row in enumerate(rows):
        found.setdefault(tuple(row[column] for column in columns), []).append(number)
    return found


def means_over_policies(group: str | None) -> Callable[[Sequence[Row]], Sequence[Row]]:
    """Makes the rows of unweighted means over the policies, for tables with two or more: each policy counts once.

    Args:
        group: Column of the rows' group, such as ``family``: there is a mean for each group of each prompt condition.

    Returns:
        Makes rows with ``policy`` (such as ``mean of 8 policies``), ``prompt``, the group, each measure's mean over the
        policies where it is defined, without an interval, since policies are no sample, and ``n``, all their pairs.
    """

    def means(rows: Sequence[Row]) -> Sequence[Row]:
        return tuple(_mean_rows(rows, group))

    return means


def mean_of_rows(rows: Sequence[Row]) -> dict[str, float]:
    """Unweighted mean of each measure over the rows where it is defined, with NaN as interval."""
    found: dict[str, float] = {}
    for measure in MEASURES:
        values = [row[measure.name] for row in rows if not math.isnan(row[measure.name])]
        mean = math.fsum(values) / len(values) if values else math.nan
        found |= {measure.name: mean, f"{measure.name}_lo": math.nan, f"{measure.name}_hi": math.nan}
    return found


def _mean_rows(rows: Sequence[Row], group: str | None) -> Iterator[Row]:
    columns = ("prompt", *([group] if group and group != "prompt" else []))
    for values, numbers in numbers_by(rows, columns).items():
        chosen = [rows[number] for number in numbers]
        if len({row["policy"] for row in chosen}) > 1:
            who = {"policy": f"mean of {len(chosen)} policies", "n": sum(row["n"] for row in chosen)}
            yield {**dict(zip(columns, values, strict=True)), **who, **mean_of_rows(chosen)}


def _printed(rows: Sequence[Row], numbers: Sequence[int], measure: str) -> Mapping[int, float]:
    """The defined values of some rows, in percent as printed, by number of the row."""
    values = {number: rows[number][measure] for number in numbers}
    return {number: round(100 * value, DECIMALS) for number, value in values.items() if not math.isnan(value)}


def _extremes(
    rows: Sequence[Row], numbers: Sequence[int], measure: str, marks: tuple[Mark, Mark]
) -> dict[tuple[int, str], Mark]:
    values = _printed(rows, numbers, measure)
    ends = (min(values.values()), max(values.values())) if values else (0.0, 0.0)
    if ends[0] == ends[1]:
        return {}
    return {
        (number, measure): mark
        for number, value in values.items()
        for end, mark in zip(ends, marks, strict=True)
        if value == end
    }
