"""Which candidates become cases: a deterministic, stratified choice in which no idea dominates.

A *cell* is a base task, a family and a level. Cases are drawn one by one: first until every cell with enough candidates
has two, then for the base tasks that have fewest, until there are as many as wanted. Within a cell it takes the
candidate whose operators, and then whose factors, have been used least so far in the family. Chance enters only through
a seed made of the cell's name. Two cases of a base task always differ in at least one factor. ``lite`` marks some of
the cases for a smaller evaluation.
"""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from ...toolkit.operators import ideas
from ...toolkit.records import Family, Level
from .case import Candidate, Case, TaskCandidates, content_hash

SELECTION_SEED = 20260101

RELEASE_CASES = 1413
"""How many cases the release holds."""

CASES_FIRST = 2
"""How many cases every cell gets before any gets more."""

LONG_WORDS = 40
"""Longer instructions are taken only where nothing shorter is as little used."""

Cell = tuple[int, Family, Level]


@dataclass
class _Draw:
    """What is left to draw from, and what has been drawn."""

    cells: dict[Cell, list[Candidate]]
    used: Counter[tuple[Family, str]] = field(default_factory=Counter)
    signatures: defaultdict[int, set[frozenset[str]]] = field(default_factory=lambda: defaultdict(set))
    picked: dict[Cell, list[Candidate]] = field(default_factory=dict)
    of_task: Counter[int] = field(default_factory=Counter)
    of_kind: Counter[tuple[Family, Level]] = field(default_factory=Counter)

    def take(self, cell: Cell) -> bool:
        """Draw one more for the cell; False where nothing new is left."""
        task, family, level = cell
        left = self.cells[cell]
        while left:
            best = min(left, key=lambda c: self._weight(c))
            left.remove(best)
            signature = frozenset(factor.premise for factor in best.factors)
            if signature in self.signatures[task]:
                continue
            self.signatures[task].add(signature)
            self.used.update((family, part) for part in ideas(best.operator))
            self.used.update((family, factor.premise) for factor in best.factors)
            self.picked.setdefault(cell, []).append(best)
            self.of_task[task] += 1
            self.of_kind[family, level] += 1
            return True
        return False

    def _weight(self, candidate: Candidate) -> tuple[int, int, int]:
        family = candidate.family
        most_used = max(self.used[family, part] for part in ideas(candidate.operator))
        repeated = sum(self.used[family, factor.premise] for factor in candidate.factors)
        return most_used, repeated, max(0, len(candidate.instruction.split()) - LONG_WORDS)


def select_cases(
    tasks: Sequence[TaskCandidates], *, total: int | None = None, per_cell: int | None = None
) -> tuple[Case, ...]:
    """Choose cases; deterministic, whatever the machine or worker count.

    Args:
        tasks: The candidates of every base task.
        total: How many cases in all; fewer where validity allows no more. None for as many as there are.
        per_cell: Most cases of one base task, family and level; None for any number.

    Returns:
        The cases in the order of base task, level, family and draw.
    """
    draw = _Draw(_cells(tasks))
    open_cells = set(draw.cells)
    count = 0
    while open_cells and (total is None or count < total):
        cell = min(open_cells, key=lambda cell: _rank(cell, draw))
        full = per_cell is not None and len(draw.picked.get(cell, ())) >= per_cell
        if full or not draw.take(cell):
            open_cells.remove(cell)
            continue
        count += 1
    return tuple(_cases(tasks, draw.picked))


def _cells(tasks: Sequence[TaskCandidates]) -> dict[Cell, list[Candidate]]:
    cells: dict[Cell, list[Candidate]] = {}
    for number, task in enumerate(tasks):
        for level in Level:
            for family in Family:
                cell = [c for c in task.candidates if c.family is family and c.level is level]
                name = f"{SELECTION_SEED}/{task.task.task_id}/{family}/{level}"
                random.Random(name).shuffle(cell)  # reproducible, not secret
                cells[number, family, level] = cell
    return cells


def _rank(cell: Cell, draw: _Draw) -> tuple[int, ...]:
    """Rank of a cell among those that wait for a case: the smallest comes first."""
    task, family, level = cell
    own = len(draw.picked.get(cell, ()))
    first = min(own, CASES_FIRST)
    of_task = draw.of_task[task] if first == CASES_FIRST else 0
    return first, of_task, own, draw.of_kind[family, level], task, *_cell_order(family, level)


def _cell_order(family: Family, level: Level) -> tuple[int, int]:
    return list(Level).index(level), list(Family).index(family)


def _cases(tasks: Sequence[TaskCandidates], picked: dict[Cell, list[Candidate]]) -> Iterator[Case]:
    for cell in sorted(picked, key=lambda cell: (cell[0], *_cell_order(cell[1], cell[2]))):
        for number, candidate in enumerate(picked[cell]):
            yield _case(tasks[cell[0]], candidate, number)


def _case(task: TaskCandidates, candidate: Candidate, number: int) -> Case:
    content = content_hash(candidate.plan, candidate.instruction)
    return Case(
        case_id=f"{task.task.task_id}/{candidate.family}/{candidate.level}/{number:02d}-{content}",
        task=task.task,
        base_plan=task.base_plan,
        targets=task.targets,
        candidate=candidate,
    )
