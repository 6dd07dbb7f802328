"""What is wrong with a submission, as the checks report it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

MOST_EXAMPLES = 3
"""Examples that a finding names."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SubmissionFinding:
    """Something that is wrong with a submission.

    Attributes:
        check: Which check found it, one word or two.
        count: How many rollouts (or missing rollouts) it concerns.
        message: What is wrong, with the first examples.
    """

    check: str
    count: int
    message: str

    def __str__(self) -> str:
        return f"{self.check}: {self.message}"


def findings(check: str, rule: str, examples: Sequence[str]) -> Iterator[SubmissionFinding]:
    """The finding that these break a rule; none where there are none.

    Args:
        check: Which check found it.
        rule: What is wrong with them.
        examples: Rollouts that it concerns, or fields.
    """
    if examples:
        yield SubmissionFinding(check=check, count=len(examples), message=f"{rule}: {first_of(examples)}")


def first_of(names: Sequence[str]) -> str:
    """The first of some names, and how many more there are."""
    more = f" and {len(names) - MOST_EXAMPLES:,} more" if len(names) > MOST_EXAMPLES else ""
    return f"{', '.join(names[:MOST_EXAMPLES])}{more}"
