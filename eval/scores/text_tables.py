"""Every table of a set of scores as text: for the terminal, markdown, LaTeX, and as data for CSV and JSON."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from rich import box
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from ...toolkit.errors import NotFoundError, choices
from ..analyses.groups import GROUPINGS, PROBES
from ..measures import MEASURES
from ..measures.behaviour import BEHAVIOUR_METRICS
from .score_tables import TITLES, UNDEFINED, arrow, cell, group_column, percent, print_table, rounded, shown_measures
from .scores import Scores

Row = dict[str, Any]
Column = tuple[str, Callable[[Row], str]]

SYMBOLS = {measure.name: measure.symbol for measure in MEASURES}
METRICS = {metric.name: metric for metric in BEHAVIOUR_METRICS}


@dataclass(frozen=True, slots=True, kw_only=True)
class TextTable:
    """One table in words and numbers.

    Attributes:
        name: File name without ending, and what ``conflictvla score --by`` calls it.
        title: Above the table.
        note: What its numbers are.
        header: Column heads.
        rows: Cells as text, as many as heads.
        labels: How many columns on the left are words.
        data: The same with full precision, as fractions and counts.
    """

    name: str
    title: str
    note: str
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    labels: int
    data: pa.Table


@dataclass(frozen=True, slots=True, kw_only=True)
class _Kind:
    """How one table beside the groupings is made and shown."""

    title: str
    note: str
    data: Callable[[Scores], pa.Table]
    labels: tuple[Column, ...]
    numbers: tuple[Column, ...]
    supplementary: bool = False


def p_value(p: float) -> str:
    """A p-value with three decimals, ``< 0.001`` below that; a dash where it is NaN."""
    if math.isnan(p):
        return UNDEFINED
    return "< 0.001" if p < 0.001 else f"{p:.3f}"


def signed(difference: float, shown: Callable[[float], str] = percent) -> str:
    """A difference with its sign, in percent or as ``shown`` has it; a dash where it is NaN."""
    text = shown(difference)
    return "+" + text if difference > 0 and text != "0.0" else text.replace("-", "−")


def table_names(scores: Scores) -> tuple[str, ...]:
    """Names of the tables that these scores have."""
    groupings = [name for name in GROUPINGS if name not in PROBES or scores.probed.num_rows]
    kinds = [name for name, kind in KINDS.items() if scores.has_supplementary or not kind.supplementary]
    return (*groupings, *(name for name in kinds if name != PROBE_EFFECT or scores.probed.num_rows))


def text_table(scores: Scores, name: str) -> TextTable:
    """One table as text.

    Args:
        scores: What to show.
        name: One of ``table_names``; underscores and hyphens are the same.

    Raises:
        NotFoundError: If there is no such table.
        InvalidInputError: If it needs the supplementary measures and they were not taken.
    """
    if name.replace("-", "_") in GROUPINGS:
        return _grouping(scores, name.replace("-", "_"))
    name = name.replace("_", "-")
    if name not in KINDS:
        raise NotFoundError(f"no table '{name}': {choices(name, [*GROUPINGS, *KINDS])}")
    kind = KINDS[name]
    data = kind.data(scores)
    columns = (*kind.labels, *kind.numbers)
    return TextTable(
        name=name,
        title=kind.title,
        note=kind.note,
        header=tuple(head for head, _ in columns),
        rows=tuple(tuple(text(row) for _, text in columns) for row in data.to_pylist()),
        labels=len(kind.labels),
        data=data,
    )


def print_any_table(scores: Scores, name: str, console: Console) -> None:
    """Print one table; see ``text_table``."""
    if name.replace("-", "_") in GROUPINGS:
        print_table(scores, name.replace("-", "_"), console)
    else:
        print_text_table(text_table(scores, name), console)


def print_text_table(shown: TextTable, console: Console) -> None:
    """Print a table that is text already."""
    table = Table(
        title=f"[bold]{escape(shown.title)}[/bold]",
        caption=escape(shown.note if shown.rows else f"no rows; {shown.note}"),
        title_justify="left",
        caption_justify="left",
        box=box.SIMPLE_HEAD,
        padding=(0, 1, 0, 0),
        pad_edge=False,
    )
    for index, head in enumerate(shown.header):
        table.add_column(escape(head), justify="left" if index < shown.labels else "right")
    for row in shown.rows:
        table.add_row(*map(escape, row))
    console.print(table)


def quoted(text: str, most: int = 200) -> str:
    """Words of a stranger as a markdown code span of one line, cut short: they stay words, whatever they hold."""
    kept = " ".join(text.split())[:most]
    return "`" + kept.replace("`", "'").replace("|", "¦") + "`" if kept else ""


def markdown(table: TextTable) -> str:
    """A table as GitHub markdown."""
    lines = [table.header, ["---"] * table.labels + ["---:"] * (len(table.header) - table.labels), *table.rows]
    return "".join("| " + " | ".join(text.replace("|", "\\|") for text in line) + " |\n" for line in lines)


def latex(table: TextTable) -> str:
    """A table as a LaTeX tabular; needs the package booktabs."""
    columns = "l" * table.labels + "r" * (len(table.header) - table.labels)
    lines = [
        f"% {table.title}. {table.note}",
        f"\\begin{{tabular}}{{{columns}}}",
        "\\toprule",
        " & ".join(map(_latex_text, table.header)) + " \\\\",
        "\\midrule",
        *(" & ".join(map(_latex_text, row)) + " \\\\" for row in table.rows),
        "\\bottomrule",
        "\\end{tabular}",
    ]
    return "\n".join(lines) + "\n"


LATEX = {
    "\\": "\\textbackslash{}",
    "&": "\\&",
    "%": "\\%",
    "$": "\\$",
    "#": "\\#",
    "_": "\\_",
    "{": "\\{",
    "}": "\\}",
    "~": "\\textasciitilde{}",
    "^": "\\textasciicircum{}",
    "Δ": "$\\Delta$",
    "ρ": "$\\rho$",
    "³": "$^3$",
    "↑": "$\\uparrow$",
    "↓": "$\\downarrow$",
    "−": "$-$",
    "–": "--",
    "<": "$<$",
}


def _latex_text(text: str) -> str:
    return "".join(LATEX.get(character, character) for character in text)


def _grouping(scores: Scores, by: str) -> TextTable:
    measures, group = shown_measures(by), group_column(by)
    keys = ("policy", "prompt", *([group] if group not in (None, "prompt") else []))
    data = scores.table(by)
    rows = []
    for row in data.to_pylist():
        cells = [cell(row, measure.name) for measure in measures]
        texts = [f"{part.value} ({part.interval})" if part.interval else part.value for part in cells]
        rows.append((*(str(row[str(key)]) for key in keys), *texts, str(row["n"])))
    return TextTable(
        name=by,
        title=TITLES[by],
        note="Percent, with 95% intervals over base tasks.",
        header=(*map(str, keys), *(f"{measure.symbol} {arrow(measure)}" for measure in measures), "n"),
        rows=tuple(rows),
        labels=len(keys),
        data=data,
    )


def _text(name: str) -> Column:
    return name.replace("_", " "), lambda row: str(row[name])


def _count(name: str, head: str | None = None) -> Column:
    return head or name.replace("_", " "), lambda row: str(row[name])


def _percent(name: str, head: str | None = None) -> Column:
    return head or name.replace("_", " "), lambda row: percent(row[name])


def _interval(name: str, head: str | None = None, shown: Callable[[float], str] = percent) -> Column:
    def text(row: Row) -> str:
        low, high = row[f"{name}_lo"], row[f"{name}_hi"]
        interval = "" if math.isnan(low) else f" ({shown(low)}–{shown(high)})"
        return shown(row[name]) + interval

    return head or name.replace("_", " "), text


def _amount(name: str, head: str | None = None) -> Column:
    return _interval(name, head, rounded)


def _p(name: str) -> Column:
    return name.replace("_", " "), lambda row: p_value(row[name])


def difference_text(row: Row, shown: Callable[[float], str] = percent) -> str:
    """``difference`` with its interval, in percent or as ``shown`` has it."""
    low, high = row["difference_lo"], row["difference_hi"]
    interval = "" if math.isnan(low) else f" ({signed(low, shown)} to {signed(high, shown)})"
    return signed(row["difference"], shown) + interval


def _number(name: str, decimals: int, head: str) -> Column:
    return head, lambda row: UNDEFINED if math.isnan(row[name]) else f"{row[name]:.{decimals}f}".replace("-", "−")


def probe_text(row: Row) -> str:
    """Under which probe a row is, such as ``V3`` or ``W2 V3``; empty without one."""
    return " ".join(str(row[name]) for name, level in PROBES.items() if row[name] != level)


PROBE_EFFECT = "probe-effect"

METRIC: Column = ("metric", lambda row: METRICS[row["metric"]].title)

KINDS: dict[str, _Kind] = {
    "outcome-tests": _Kind(
        title="Outcome with valid against invalid premises",
        note="p: sign-flip test over base tasks; q: Benjamini-Hochberg over the table; McNemar's test takes pairs as "
        "independent.",
        data=Scores.outcome_tests,
        labels=(_text("policy"), _text("prompt")),
        numbers=(_count("reference_only"), _count("conflict_only"), _p("p"), _p("q"), _p("mcnemar_p"), _count("n")),
    ),
    "prompt-effect": _Kind(
        title="Premise-check prompt (P1) against the instruction alone (P0)",
        note="Percent, with 95% intervals over base tasks; p: paired sign-flip test; q: Benjamini-Hochberg.",
        data=Scores.prompt_effect,
        labels=(_text("policy"), ("measure", lambda row: str(SYMBOLS.get(row["measure"], row["measure"])))),
        numbers=(_percent("P0"), _percent("P1"), ("P1 − P0", difference_text), _p("p"), _p("q"), _count("n")),
    ),
    PROBE_EFFECT: _Kind(
        title="Under a language or visual probe against none",
        note="Percent, on the same cases, initial states and prompts, with 95% intervals over base tasks; p: paired "
        "sign-flip test; q: Benjamini-Hochberg. Selectivity is about 0 where valid and invalid tasks suffer alike.",
        data=Scores.probe_effect,
        labels=(
            _text("policy"),
            _text("prompt"),
            ("probe", probe_text),
            ("measure", lambda row: str(SYMBOLS.get(row["measure"], row["measure"]))),
        ),
        numbers=(
            _percent("without"),
            _percent("under"),
            ("difference", difference_text),
            _p("p"),
            _p("q"),
            _count("n"),
        ),
    ),
    "abstention": _Kind(
        title="Arm at rest until the end (supplementary)",
        note="Percent of rollouts, with 95% intervals over base tasks.",
        data=Scores.abstention,
        labels=(_text("policy"), _text("prompt")),
        numbers=(_interval("conflict"), _interval("reference"), _count("n")),
    ),
    "cost": _Kind(
        title="What acting costs (CC)",
        note="Mean cost of a rollout, with 95% intervals over base tasks; free: percent of conflict rollouts that pay "
        "nothing.",
        data=Scores.costs,
        labels=(_text("policy"), _text("prompt"), _text("among")),
        numbers=(
            _amount("conflict_cost", "conflict"),
            _amount("reference_cost", "reference"),
            *(_percent(name) for name in ("free", "RGSR", "TAR")),
            _count("n"),
        ),
    ),
    "noise-floor": _Kind(
        title="Noise floor: reference rollouts that differ in nothing but the seed (supplementary)",
        note="Percent, with 95% intervals over base tasks; PCSR and RGSR are the two seeds' success rates.",
        data=Scores.noise_floor,
        labels=(_text("policy"), _text("prompt")),
        numbers=(*(_interval(measure.name, measure.symbol) for measure in MEASURES), _count("n")),
    ),
    "supplementary": _Kind(
        title="Supplementary measures",
        note="Percent, with 95% intervals over base tasks. PS: position similarity; WS: similarity under time warping; "
        "parts: grippers come to be 2 cm apart, at the median step given.",
        data=Scores.supplementary,
        labels=(_text("policy"), _text("prompt"), _text("among")),
        numbers=(
            _interval("position_similarity", "PS"),
            _interval("warping_similarity", "WS"),
            _interval("parts"),
            _number("median_divergence_step", 0, "median step"),
            _count("n"),
        ),
        supplementary=True,
    ),
    "wrong-objects": _Kind(
        title="Approach, contact and grasp of the wrong thing (supplementary)",
        note="Percent, with 95% intervals over base tasks. Approaches: an object that the goal does not name, beyond "
        "the reference rollout; touches: such an object or fixture; grasps: an object that is no target, for half a "
        "second; carries: what moves along is no target.",
        data=Scores.wrong_objects,
        labels=(_text("policy"), _text("prompt"), _text("among"), _text("measure")),
        numbers=(_interval("conflict"), _interval("reference"), _count("n")),
        supplementary=True,
    ),
    "behaviour": _Kind(
        title="Behaviour of successful rollouts against premise-consistent P0",
        note="Median over base tasks of the change of the mean and of the median absolute deviation, in percent; "
        "significant: base tasks with q < 0.05 (Mann-Whitney U, Benjamini-Hochberg), of those compared.",
        data=Scores.behaviour,
        labels=(_text("policy"), _text("suite"), _text("condition"), METRIC),
        numbers=(
            ("change", lambda row: signed(row["change"])),
            ("change of MAD", lambda row: signed(row["mad_change"])),
            ("significant", lambda row: f"{row['significant']}/{row['tasks']}"),
            _percent("baseline_success_rate", "success P0"),
            _percent("success_rate", "success"),
        ),
        supplementary=True,
    ),
    "behaviour-correlation": _Kind(
        title="Loss of success rate against change of behaviour",
        note="Spearman's rank correlation over policies, suites and conditions, which are not independent.",
        data=Scores.behaviour_correlation,
        labels=(METRIC,),
        numbers=(_number("rho", 2, "ρ"), _p("p"), _p("q"), _count("n")),
        supplementary=True,
    ),
}
"""Tables beside ``groups.GROUPINGS``, by name."""
