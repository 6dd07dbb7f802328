"""The form of an operator: an edit of one step."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from ..language.plan import Claim, Constraint, Reference, Step
from ..records import Family
from .surroundings import Surroundings

StepEdit = Callable[[Step, Surroundings], Iterator[Step]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Operator:
    """A named idea of how to break a step.

    Attributes:
        name: Stable name, recorded with every case.
        family: The conflict family it aims at.
        edit: Proposes edited steps, in a fixed order; may propose none.
    """

    name: str
    family: Family
    edit: StepEdit

    def then(self, other: Operator) -> Operator:
        """Both edits on one step: a compound conflict."""

        def both(step: Step, around: Surroundings) -> Iterator[Step]:
            for first in self.edit(step, around):
                yield from other.edit(first, around)

        return Operator(name=f"{self.name}+{other.name}", family=self.family, edit=both)


def with_constraint(step: Step, constraint: Constraint) -> Step:
    """The step with one more constraint."""
    return replace(step, constraints=(*step.constraints, constraint))


def with_claim(reference: Reference, claim: Claim) -> Reference:
    """The reference with one more claim about where it is."""
    return replace(reference, claims=(*reference.claims, claim))
