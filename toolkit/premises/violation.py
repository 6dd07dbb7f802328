"""What the checker reports about one premise."""

from __future__ import annotations

from dataclasses import dataclass

from ..records import Factor, Family


@dataclass(frozen=True, slots=True, kw_only=True)
class Violation:
    """A premise that does not clearly hold in every initial state.

    Attributes:
        family: The family that the premise belongs to.
        premise: The premise in functional notation, such as ``exists(mug)``.
        expected: What would have to hold, in words.
        observed: What was found instead, in words and numbers.
        margin: How far the closest state is from satisfying the premise, in metres; None where that has no degree.
        violated: In how many states the premise is clearly false.
        unclear: In how many states neither the premise nor its opposite is beyond dispute.
        states: How many states were looked at.
    """

    family: Family
    premise: str
    expected: str
    observed: str
    margin: float | None = None
    violated: int
    unclear: int = 0
    states: int

    @property
    def certain(self) -> bool:
        """Whether the premise is clearly false in every state."""
        return self.violated == self.states

    def factor(self) -> Factor:
        """The violation as a case's evidence."""
        return Factor(
            family=self.family,
            premise=self.premise,
            expected=self.expected,
            observed=self.observed,
            margin=None if self.margin is None else round(self.margin, 3),
        )
