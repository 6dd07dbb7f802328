"""Columns of tables: their Arrow fields and values, and their text for people, in percent with one decimal."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable

import pyarrow as pa

from ...builders.rollouts.episode_record import PROBES
from ..measures import MEASURES, Measure
from ..statistics.intervals import Interval
from .analysis import Cell, Column, Row

UNDEFINED = "–"
"""Printed where a value is undefined: never a zero."""

SYMBOLS = {measure.name: measure.symbol for measure in MEASURES}

ENDS = ("", "_lo", "_hi")
"""Suffixes of a value and the ends of its interval."""


def text_fields(*names: str) -> list[tuple[str, pa.DataType]]:
    """Arrow fields of columns of words."""
    return [(name, pa.string()) for name in names]


def number_fields(*names: str) -> list[tuple[str, pa.DataType]]:
    """Arrow fields of columns of numbers."""
    return [(name, pa.float64()) for name in names]


def interval_fields(*names: str) -> list[tuple[str, pa.DataType]]:
    """Arrow fields of columns with intervals: each value, its ``_lo`` and its ``_hi``."""
    return number_fields(*(f"{name}{end}" for name in names for end in ENDS))


def count_fields(*names: str) -> list[tuple[str, pa.DataType]]:
    """Arrow fields of columns of counts."""
    return [(name, pa.int64()) for name in names]


def interval_values(name: str, interval: Interval) -> dict[str, float]:
    """The values of ``interval_fields`` in one row."""
    return {name: interval.value, f"{name}_lo": interval.low, f"{name}_hi": interval.high}


def values_of_intervals(names: Iterable[str], intervals: Iterable[Interval]) -> dict[str, float]:
    """The values of ``interval_fields`` of several columns in one row."""
    row: dict[str, float] = {}
    for name, interval in zip(names, intervals, strict=True):
        row |= interval_values(name, interval)
    return row


def percent(fraction: float, decimals: int = 1) -> str:
    """A fraction in percent; a dash where it is NaN.

    >>> percent(0.7114)
    '71.1'
    """
    return rounded(100 * fraction, decimals)


def rounded(value: float, decimals: int = 1) -> str:
    """A number as it is, such as a cost; a dash where it is NaN."""
    # Adding zero turns a rounded -0.0 into 0.0.
    return UNDEFINED if math.isnan(value) else f"{round(value, decimals) + 0.0:.{decimals}f}"


def p_value(p: float) -> str:
    """A p-value with three decimals, ``< 0.001`` below that; a dash where it is NaN."""
    if math.isnan(p):
        return UNDEFINED
    return "< 0.001" if p < 0.001 else f"{p:.3f}"


def signed(difference: float, shown: Callable[[float], str] = percent) -> str:
    """A difference with its sign, in percent or as ``shown`` has it; a dash where it is NaN."""
    text = shown(difference)
    return "+" + text if difference > 0 and text != "0.0" else text.replace("-", "−")


def arrow(measure: Measure) -> str:
    """Points towards the clearer response to an invalid premise, and for PCSR towards competence."""
    return "↑" if measure.higher_is_better else "↓"


def interval_cell(row: Row, name: str, shown: Callable[[float], str] = percent) -> Cell:
    """A value with its interval, in percent or as ``shown`` has it."""
    low, high = row[f"{name}_lo"], row[f"{name}_hi"]
    if math.isnan(low):
        return Cell(value=shown(row[name]))
    return Cell(
        value=shown(row[name]),
        interval=f"{shown(low)}–{shown(high)}",
        short_interval=f"{percent(low, 0)}–{percent(high, 0)}" if shown is percent else f"{shown(low)}–{shown(high)}",
    )


def difference_text(row: Row, shown: Callable[[float], str] = percent, name: str = "difference") -> str:
    """A difference with its interval, in percent or as ``shown`` has it."""
    low, high = row[f"{name}_lo"], row[f"{name}_hi"]
    interval = "" if math.isnan(low) else f" ({signed(low, shown)} to {signed(high, shown)})"
    return signed(row[name], shown) + interval


def probe_text(row: Row) -> str:
    """Under which probe a row is, such as ``V3`` or ``W2 V3``; empty without one."""
    return " ".join(str(row[name]) for name, level in PROBES.items() if row[name] != level)


def measure_symbol(row: Row) -> str:
    """The printed symbol of the row's ``measure``; its name where it is none of the protocol's."""
    return str(SYMBOLS.get(row["measure"], row["measure"]))


def column(head: str, text: Callable[[Row], str]) -> Column:
    """A column of any text."""
    return Column(head=head, cell=lambda row: Cell(value=text(row)))


def plain(name: str, head: str | None = None) -> Column:
    """A column of words or counts as they are."""
    return column(_head(name, head), lambda row: str(row[name]))


def percents(name: str, head: str | None = None) -> Column:
    """A column of fractions in percent."""
    return column(_head(name, head), lambda row: percent(row[name]))


def p_values(name: str) -> Column:
    """A column of p-values."""
    return column(_head(name), lambda row: p_value(row[name]))


def numbers(name: str, decimals: int, head: str) -> Column:
    """A column of numbers with so many decimals; a dash where one is NaN."""
    return column(head, lambda row: rounded(row[name], decimals).replace("-", "−"))


def intervals(name: str, head: str | None = None, shown: Callable[[float], str] = percent) -> Column:
    """A column of values with their intervals, in percent or as ``shown`` has them."""
    return Column(head=_head(name, head), cell=lambda row: interval_cell(row, name, shown), name=name)


def _head(name: str, head: str | None = None) -> str:
    return head or name.replace("_", " ")
