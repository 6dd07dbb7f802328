"""What the preflight checks look at, and how each reports."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Literal

import numpy as np

from ...toolkit.arrays import FloatArray
from ...toolkit.records import Instance
from .policy_trial import Change, DriveResult, PolicyTrial, difference

Verdict = Literal["pass", "warn", "fail"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """What a check found.

    Attributes:
        verdict: ``pass``, ``warn`` or ``fail``.
        detail: What was measured.
        advice: What to change; empty where nothing is.
    """

    verdict: Verdict
    detail: str
    advice: str = ""


class Measurements:
    """What several checks share; all but the first answers is measured when it is first needed.

    Args:
        bench: Where the policy is asked.
        prompts: Other instructions of the suite.
        conflicts: Conflict instances of the base task.
        steps: How long the policy acts in each trial.

    Attributes:
        bench: Where the policy is asked.
        prompts: Other instructions of the suite.
        conflicts: Conflict instances of the base task.
        steps: How long the policy acts in each trial.
        first: The very first answer, before an episode could leave anything over, shape (n, 7).
        noise: By how much the answer to an equal question right after it differs.

    Raises:
        PolicyError: The policy gives no actions.
    """

    def __init__(
        self, bench: PolicyTrial, prompts: tuple[str, ...], conflicts: tuple[Instance, ...], steps: int
    ) -> None:
        self.bench, self.prompts, self.conflicts, self.steps = bench, prompts, conflicts, steps
        self.first: FloatArray = bench.ask()
        self.noise = difference(self.first, bench.ask())

    @functools.cached_property
    def drive(self) -> DriveResult:
        """A trial under the conventions as they are."""
        return self.bench.drive(self.steps)

    @functools.cached_property
    def prompt_effect(self) -> float:
        """By how much other prompts change the first answer."""
        return max(difference(self.first, self.bench.ask(prompt)) for prompt in self.prompts)

    def difference_now(self, change: Change | None = None) -> float:
        """By how much the answer to the first question differs now, under a changed observation if one is given."""
        return difference(self.first, self.bench.ask(change=change))

    @property
    def largest(self) -> float:
        """Largest arm component of an action in the trial."""
        return float(np.abs(self.drive.actions[:, :6]).max())

    @property
    def ignores_prompts(self) -> bool:
        """Whether prompts make no difference."""
        return self.prompt_effect <= self.noise
