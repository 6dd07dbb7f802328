"""The card of a task release: its README on the Hub, with the counts of its cases."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from importlib import resources

from ...toolkit.markdown import markdown_table
from ...toolkit.prompts import PLACEBO, PREMISE_CHECK, RELEASED
from ...toolkit.records import Family, Level
from ..cases.case import Case
from ..cases.instances import TASKS_VERSION
from ..review.ledger import read_ledger, review_summary
from .columns import CONTROLS, SPLIT

CONFIG_BLOCK = f"""- config_name: {CONTROLS}
  data_files:
  - split: {SPLIT}
    path: {CONTROLS}/{SPLIT}.parquet
"""

SECTION = """## Controls

The config `controls` has {count} of the cases with their conflict repaired (under P0 and P1): an instruction of the
same form and nearly the same words whose premises hold, and the words that differ. What a policy does less under the
conflict than under its control is due to the premise, and not to the wording.

"""


def task_card(cases: Sequence[Case], controls: int = 0) -> str:
    """The release's README: the configs for the Hub, a snippet, the count tables and the limits.

    Args:
        cases: Its cases.
        controls: How many of them have a control.
    """
    template = resources.files("conflictvla.dataset_cards").joinpath("tasks_card.md").read_text(encoding="utf-8")
    base_tasks = len({case.task.task_id for case in cases})
    return template.format(
        version=TASKS_VERSION,
        cases=len(cases),
        instances=len(RELEASED) * len(cases),
        references=len(RELEASED) * base_tasks,
        premise_check=PREMISE_CHECK.wording,
        premise_check_version=PREMISE_CHECK.version,
        placebo=PLACEBO.wording,
        placebo_version=PLACEBO.version,
        base_tasks=base_tasks,
        controls_config=CONFIG_BLOCK if controls else "",
        controls=SECTION.format(count=controls) if controls else "",
        counts=_count_table(cases),
        by_suite=_suite_table(cases),
        review=review_summary(cases, read_ledger()),
    )


def count_rows(cases: Sequence[Case]) -> list[tuple[str, list[int]]]:
    """How many cases each family has on each level and in all, and all families together, last."""
    rows = []
    for family in (*Family, None):
        levels = [case.candidate.level for case in cases if family in (None, case.candidate.family)]
        rows.append((str(family or "all"), [*(levels.count(level) for level in Level), len(levels)]))
    return rows


def _count_table(cases: Sequence[Case]) -> str:
    return markdown_table(("family", *Level, "all"), [(name, *counts) for name, counts in count_rows(cases)])


def _suite_table(cases: Sequence[Case]) -> str:
    """Cases of each suite, and the fewest and most of one base task."""
    rows = []
    for suite in dict.fromkeys(case.task.suite for case in cases):
        of_task = Counter(case.task.task_id for case in cases if case.task.suite == suite)
        rows.append((suite, len(of_task), of_task.total(), min(of_task.values()), max(of_task.values())))
    return markdown_table(("suite", "base tasks", "cases", "fewest of a task", "most of a task"), rows)
