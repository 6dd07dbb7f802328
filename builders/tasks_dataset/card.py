"""The card of a task release: its README on the Hub, with the counts of its cases."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from importlib import resources

from ...toolkit.records import Family, Level, Prompt
from ..cases.case import Case
from ..cases.instances import TASKS_VERSION
from ..review.ledger import read_ledger, review_summary


def task_card(cases: Sequence[Case]) -> str:
    """The release's README: the configs for the Hub, a snippet, the count tables and the limits."""
    template = resources.files("conflictvla.dataset_cards").joinpath("tasks_card.md").read_text(encoding="utf-8")
    base_tasks = len({case.task.task_id for case in cases})
    return template.format(
        version=TASKS_VERSION,
        cases=len(cases),
        instances=len(Prompt) * len(cases),
        references=len(Prompt) * base_tasks,
        base_tasks=base_tasks,
        counts="\n".join(_count_table(cases)),
        by_suite="\n".join(_suite_table(cases)),
        review=review_summary(cases, read_ledger()),
    )


def count_rows(cases: Sequence[Case]) -> list[tuple[str, list[int]]]:
    """How many cases each family has on each level and in all, and all families together, last."""
    rows = []
    for family in (*Family, None):
        levels = [case.candidate.level for case in cases if family in (None, case.candidate.family)]
        rows.append((str(family or "all"), [*(levels.count(level) for level in Level), len(levels)]))
    return rows


def _count_table(cases: Sequence[Case]) -> list[str]:
    lines = [
        "| family | " + " | ".join(Level) + " | all |",
        "| --- | " + " | ".join("---:" for _ in Level) + " | ---: |",
    ]
    return lines + [f"| {name} | " + " | ".join(map(str, counts)) + " |" for name, counts in count_rows(cases)]


def _suite_table(cases: Sequence[Case]) -> list[str]:
    """Cases of each suite, and the fewest and most of one base task."""
    lines = [
        "| suite | base tasks | cases | fewest of a task | most of a task |",
        "| --- | ---: | ---: | ---: | ---: |",
    ]
    for suite in dict.fromkeys(case.task.suite for case in cases):
        of_task = Counter(case.task.task_id for case in cases if case.task.suite == suite)
        counts = (len(of_task), of_task.total(), min(of_task.values()), max(of_task.values()))
        lines.append(f"| {suite} | " + " | ".join(map(str, counts)) + " |")
    return lines
