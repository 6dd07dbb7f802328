"""Who stands where on the leaderboard: the ranked, those that cannot be ranked, and the marks of the scale.

Ranked is the response of policies that pass the capability gate. Those below the gate stand apart and unranked, since a
policy that can do nothing completes no goal under conflict either; so do those whose pairs are of one base task, from
which nobody can tell whether they pass. Scripted agents with known answers are the scale's
marks.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from ...toolkit.records import Prompt
from ..measures.response import is_capable
from ..submissions.results import ALL, SCRIPTED_AGENT, Entry, Result, ResultRow
from .columns import RESPONSE, BoardColumn

FEWEST_TASKS = 6
"""Base tasks from which on controls say anything: with fewer no sign-flip over base tasks can reject at 5%."""


class Standing(StrEnum):
    """Where an entry stands."""

    RANKED = "ranked"
    BELOW_GATE = "below the gate"
    NO_INTERVAL = "one base task"
    SCALE = "scale"


class Premises(StrEnum):
    """What the controls of an entry say about its response."""

    TOLD_FROM_WORDING = "premises told from wording"
    NOT_TOLD_FROM_WORDING = "not told from wording"
    TOO_FEW = "too few controls to tell"
    NO_CONTROLS = "no controls"


@dataclass(frozen=True, slots=True, kw_only=True)
class Filters:
    """What is shown.

    Attributes:
        prompt: Prompt condition.
        family: A conflict family, or ``all``.
        level: A level, or ``all``.
        verified_only: Whether unverified results are left out.
        text: Part of a policy's name.
    """

    prompt: str = Prompt.P0.value
    family: str = ALL
    level: str = ALL
    verified_only: bool = False
    text: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlacedEntry:
    """An entry and its place.

    Attributes:
        entry: The entry.
        row: Its row that the filters choose.
        standing: Where it stands.
        rank: From 1, equal for equal responses, among all the ranked entries that the filters leave; None for the
            others, and where the response is undefined.
    """

    entry: Entry
    row: ResultRow
    standing: Standing
    rank: int | None

    @property
    def premises(self) -> Premises:
        """Whether the response is one to premises: the effect's interval is above zero or not; or nothing is known."""
        effect = self.row.premise_effect
        if effect is None:
            return Premises.NO_CONTROLS
        if self.row.effect_tasks < FEWEST_TASKS or math.isnan(effect.low):
            return Premises.TOO_FEW
        return Premises.TOLD_FROM_WORDING if effect.low > 0 else Premises.NOT_TOLD_FROM_WORDING


def matching_entries(entries: Sequence[Entry], filters: Filters) -> list[tuple[Entry, ResultRow]]:
    """Entries that fit the filters, each with its row."""
    found = []
    for entry in entries:
        row = entry.result.row(filters.prompt, filters.family, filters.level)
        if row is None or (filters.verified_only and entry.verification is None):
            continue
        if filters.text.strip().lower() in entry.result.policy_name.lower():
            found.append((entry, row))
    return found


def placed_entries(
    entries: Sequence[Entry], filters: Filters, column: BoardColumn = RESPONSE
) -> tuple[PlacedEntry, ...]:
    """Entries that fit the filters, by standing, and within each by a column, best first.

    Where the response is equal, the one with the larger premise effect comes first, then the name decides. Ranks are by
    response, whatever the entries are sorted by.

    Args:
        entries: All entries.
        filters: Which of them, and over which pairs.
        column: What to sort by.
    """
    found = matching_entries(entries, filters)
    ranked = [
        row.response.value for entry, row in found if standing_of(entry.result, filters.prompt) is Standing.RANKED
    ]
    placed = []
    for entry, row in found:
        standing = standing_of(entry.result, filters.prompt)
        response = row.response.value
        has_rank = standing is Standing.RANKED and not math.isnan(response)
        rank = 1 + sum(other > response for other in ranked) if has_rank else None
        placed.append(PlacedEntry(entry=entry, row=row, standing=standing, rank=rank))

    def order(one: PlacedEntry) -> tuple[object, ...]:
        by_name = (one.entry.result.policy_name, one.entry.name)
        return [*Standing].index(one.standing), column.order(one.entry, one.row), *_fallback(one.row), *by_name

    return tuple(sorted(placed, key=order))


def standing_of(result: Result, prompt: str) -> Standing:
    """Where a result stands under a prompt condition; the gate looks at PCSR over all its pairs there."""
    if result.kind == SCRIPTED_AGENT:
        return Standing.SCALE
    row = result.row(prompt)
    if row and math.isnan(row.measures["PCSR"].low):  # as pairs of a single base task leave it
        return Standing.NO_INTERVAL
    return Standing.RANKED if row and is_capable(row.measures["PCSR"].low) else Standing.BELOW_GATE


def _fallback(row: ResultRow) -> tuple[float, float]:
    """Response, then premise effect, the largest first and undefined ones last."""
    values = (row.response.value, row.value("premise_effect").value)
    first, second = (math.inf if math.isnan(value) else -value for value in values)
    return first, second
