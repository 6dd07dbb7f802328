"""The lite selection: one case of each base task and family, with the levels rotated.

For each family a base task is given one level, so that all levels get equally many base tasks: 10 of 40 in the release,
160 cases in all. The level wanted for base task number t (in the order of suites and tasks) and family number f is
number (t + f) mod 4, so that the four cases of a base task are of four levels. Where a base task has no case of the
level wanted, the levels of the family are assigned anew with as few base tasks as possible on another level than
theirs, counts unchanged (a linear assignment problem, solved exactly). A base task without a case of the family leaves
its level to another base task of its suite, the one with most cases there, which then has two. Within a base task,
family and level it takes the case whose operator's ideas have been used least so far in the family, and of several the
first. Chance is not involved.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np
from scipy.optimize import linear_sum_assignment

from ...toolkit.operators import ideas
from ...toolkit.records import Family, Instance, Level
from .instances import instances_by_task

OTHER_LEVEL = 1
"""What it costs to give a base task another level than the one wanted."""

NO_CASE = 1_000
"""What it costs to give a base task a level of which it has no case: another base task has to stand in."""

ByLevel = Mapping[Level, Sequence[Instance]]


def lite_cases(cases: Sequence[Instance]) -> frozenset[str]:
    """Case ids of the lite selection.

    Args:
        cases: Every case once, as conflict instances under one prompt condition, in the release's order.

    Returns:
        One case for each base task and family, and of each family and level equally many, to within one, as far as
        the cases allow.
    """
    tasks = list(instances_by_task(cases).values())
    suites = [task[0].suite for task in tasks]
    chosen: list[str] = []
    for number, family in enumerate(Family):
        by_level = [_by_level(task, family) for task in tasks]
        used: Counter[str] = Counter()
        for place, level in _places(by_level, suites, number):
            best = min(by_level[place][level], key=lambda case: max(used[idea] for idea in _ideas(case)))
            used.update(_ideas(best))
            chosen.append(str(best.case_id))
    return frozenset(chosen)


def _places(by_level: Sequence[ByLevel], suites: Sequence[str], shift: int) -> list[tuple[int, Level]]:
    """From which base task, by its number, and level of a family a case is taken, each at most once."""
    assigned = list(enumerate(_levels(by_level, shift)))
    places = [(task, level) for task, level in assigned if level in by_level[task]]
    for task, level in assigned:
        others = [
            other
            for other, levels in enumerate(by_level)
            if suites[other] == suites[task] and level in levels and (other, level) not in places
        ]
        if level not in by_level[task] and others:
            places.append((max(others, key=lambda other: len(by_level[other][level])), level))
    return places


def _by_level(task: Sequence[Instance], family: Family) -> dict[Level, list[Instance]]:
    found: dict[Level, list[Instance]] = {}
    for case in task:
        if case.family is family and case.level is not None:
            found.setdefault(case.level, []).append(case)
    return found


def _levels(by_level: Sequence[ByLevel], shift: int) -> list[Level]:
    """A level for each base task, none more than once oftener than another."""
    levels = list(Level)
    slots = [level for level in levels for _ in range(math.ceil(len(by_level) / len(levels)))]
    wanted = [levels[(number + shift) % len(levels)] for number in range(len(by_level))]
    price = np.array(
        [
            [NO_CASE if slot not in available else OTHER_LEVEL * (slot is not level) for slot in slots]
            for available, level in zip(by_level, wanted, strict=True)
        ],
        dtype=np.int64,
    ).reshape(len(by_level), len(slots))
    _, assigned = linear_sum_assignment(price)
    return [slots[slot] for slot in assigned]


def _ideas(case: Instance) -> tuple[str, ...]:
    return tuple(ideas(str(case.operator)))
