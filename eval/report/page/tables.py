"""The page's tables as text: scores by group, what prompt and probes change, and how many base tasks there are."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import groupby
from typing import Any

from ...analyses.analysis import Cell
from ...analyses.columns import SYMBOLS, p_value, percent, probe_text, signed
from ...analyses.groups import base_task_clusters
from ...analyses.tables.measures import GROUPINGS, group_column, shown_measures
from ...measures import Measure
from ...scores.formats import marks_legend
from ...scores.scores import Scores
from ...scores.text_tables import TextTable, text_table
from ...statistics.intervals import FEW_CLUSTERS

SHOWN_ELSEWHERE = {
    *GROUPINGS,
    *("suite_level", "family_level", "failure_quartiles", "policy_means"),
    *("outcome_tests", "prompt_effect", "prompt_moves", "probe_effect", "abstention", "undefined"),
}
"""Tables that the page has a place of its own for; all others of the registry follow one another in one section."""

PROBE_CHANGES = ("PCSR", "RGSR", "selectivity", "TAR", "Early20_TS")
"""What of a probe's effect is shown at once; the rest is in the table of all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TableRow:
    """A row of a score table.

    Attributes:
        policy: The policy.
        group: Its group within the table; empty without groups.
        cells: The measures.
        n: Number of pairs.
        first_of_policy: Whether the row above is of another policy.
        is_mean: Whether it is a mean over policies.
    """

    policy: str
    group: str
    cells: tuple[Cell, ...]
    n: int
    first_of_policy: bool
    is_mean: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class TableView:
    """A score table as text; ``legend`` says what its marks mean, and is empty where it has none."""

    title: str
    legend: str
    group: str | None
    prompts: tuple[str, ...]
    measures: tuple[Measure, ...]
    rows: tuple[TableRow, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """A measure's change with its interval, as text."""

    symbol: str
    difference: str
    low: str
    high: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptChange:
    """What a prompt condition changes of one measure of one policy, as text."""

    policy: str
    prompt: str
    under_p0: str
    under_prompt: str
    change: Change
    p: str
    q: str
    n: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbeChange:
    """What one probe changes of one policy: a change for each of ``PROBE_CHANGES``."""

    policy: str
    condition: str
    changes: tuple[Change, ...]
    n: int


def table_view(scores: Scores, by: str) -> TableView:
    """One of the tables of scores by group."""
    shown, group = text_table(scores, by), group_column(by)
    cells = [*shown.cells, *shown.means]
    rows = tuple(
        TableRow(
            policy=row[0].value,
            group=row[shown.labels - 1].value if group else "",
            cells=row[shown.labels : -1],
            n=int(row[-1].value),
            first_of_policy=number == 0 or cells[number - 1][0] != row[0],
            is_mean=number >= len(shown.cells),
        )
        for number, row in enumerate(cells)
    )
    prompts = tuple(sorted(set(scores.table(by)["prompt"].to_pylist())))
    legend = marks_legend(shown, "Underlined", column="shaded").strip()
    return TableView(
        title=shown.title, legend=legend, group=group, prompts=prompts, measures=shown_measures(by), rows=rows
    )


def further_tables(scores: Scores) -> list[TextTable]:
    """Tables without a place of their own, where the supplementary measures were taken, as for every report."""
    if not scores.has_supplementary:
        return []
    if scores.provenance.conflicts:
        shown = [one for one in scores.analyses() if one.on_page and one.name not in SHOWN_ELSEWHERE]
    else:  # references alone: of all that there is, whatever says something
        shown = [one for one in scores.analyses() if scores.table(one.name).num_rows]
    return [text_table(scores, analysis.name) for analysis in shown]


def prompt_changes(scores: Scores) -> list[PromptChange]:
    """What each prompt condition changes, policy by policy."""
    return [
        PromptChange(
            policy=row["policy"],
            prompt=row["prompt"],
            under_p0=percent(row["P0"]),
            under_prompt=percent(row["under"]),
            change=_change(row),
            p=p_value(row["p"]),
            q=p_value(row["q"]),
            n=row["n"],
        )
        for row in scores.table("prompt_effect").to_pylist()
    ]


def probe_changes(scores: Scores) -> list[ProbeChange]:
    """The effect of each probe in one line, for the measures that tell collapse from care."""
    found = []
    effect = scores.table("probe_effect").to_pylist()
    for key, group in groupby(effect, lambda row: (row["policy"], row["prompt"], probe_text(row))):
        policy, *condition = key
        rows = {row["measure"]: row for row in group}
        changes = tuple(_change(rows[name]) for name in PROBE_CHANGES)
        n = rows["selectivity"]["n"]
        found.append(ProbeChange(policy=policy, condition=" ".join(condition), changes=changes, n=n))
    return found


def few_base_tasks(scores: Scores) -> list[tuple[str, int]]:
    """Policies whose pairs come from too few base tasks for a bootstrap, and how many these are."""
    clusters, policies = base_task_clusters(scores.pairs), scores.pairs["policy"].to_numpy()
    counts = [(policy, len(set(clusters[policies == policy].tolist()))) for policy in scores.policies]
    return [(policy, count) for policy, count in counts if count < FEW_CLUSTERS]


def _change(row: dict[str, Any]) -> Change:
    return Change(
        symbol=SYMBOLS.get(row["measure"], row["measure"]),
        difference=signed(row["difference"]),
        low=signed(row["difference_lo"]),
        high=signed(row["difference_hi"]),
    )
