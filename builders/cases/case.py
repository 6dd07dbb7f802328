"""Conflict cases, from the candidates of a base task to what is released of them."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

from ...toolkit.records import BaseTask, Factor, Family, Level


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A proposal that the checker confirmed as a conflict of the designed family.

    Attributes:
        plan: The plan as JSON.
        instruction: The plan in English.
        operator: The operator's name.
        family: Conflict family.
        level: Structural level, computed from the steps and the factors.
        factors: The violated premises with evidence from all initial states.
    """

    plan: str
    instruction: str
    operator: str
    family: Family
    level: Level
    factors: tuple[Factor, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskCandidates:
    """All candidates of one base task.

    Attributes:
        task: The base task.
        base_plan: Its own instruction's plan as JSON.
        targets: What the reference goal requires the robot to manipulate.
        proposals: How many plans were proposed.
        candidates: Those that the checker confirmed.
        skipped: Why the task has none: what grammar, vocabulary or checker cannot make sense of yet; None for the rest.
    """

    task: BaseTask
    base_plan: str
    targets: tuple[str, ...]
    proposals: int
    candidates: tuple[Candidate, ...]
    skipped: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A released conflict case.

    Attributes:
        case_id: ``suite/task/family/level/number-hash``.
        task: The base task.
        base_plan: The base instruction's plan as JSON.
        targets: What the reference goal requires the robot to manipulate.
        candidate: The conflict.
    """

    case_id: str
    task: BaseTask
    base_plan: str
    targets: tuple[str, ...]
    candidate: Candidate


@dataclass(frozen=True, slots=True, kw_only=True)
class Control:
    """The repaired twin of a case: its instruction with the premise mended, in the same form and length.

    Attributes:
        case_id: The case.
        plan: The repaired plan as JSON; the checker finds nothing wrong with it.
        instruction: The plan in English.
        repairs_to_base: Whether the smallest repair is the base instruction, which this one then paraphrases.
    """

    case_id: str
    plan: str
    instruction: str
    repairs_to_base: bool = False


def content_hash(plan: str, instruction: str) -> str:
    """What a case's id ends with: another plan or other words are another case."""
    return hashlib.sha256(f"{plan}\n{instruction}".encode()).hexdigest()[:8]
