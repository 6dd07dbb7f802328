"""Check a plan against scene facts: which premises do not hold, with what evidence."""

from __future__ import annotations

from ..facts import SceneFacts
from ..language.plan import Plan
from ..language.vocabulary import Vocabulary, load_vocabulary
from ..records import Factor
from .grounding import grounding_violations
from .instruction import instruction_violations
from .physical import physical_violations
from .spatial import spatial_violations
from .violation import Violation


def check(plan: Plan, facts: SceneFacts, vocabulary: Vocabulary | None = None) -> tuple[Violation, ...]:
    """Every premise of the plan that does not clearly hold in every initial state.

    The checker knows nothing of operators: it sees a plan and facts, and nothing of where the plan came from.

    Args:
        plan: The instruction's plan.
        facts: The scene's facts.
        vocabulary: Names of everything in the scenes; the packaged one by default.

    Returns:
        One violation per premise, in the order instruction, grounding, spatial, physical; empty for a valid plan.
    """
    words = vocabulary or load_vocabulary()
    found = (
        *instruction_violations(plan, facts, words),
        *grounding_violations(plan, facts, words),
        *spatial_violations(plan, facts, words),
        *physical_violations(plan, facts, words),
    )
    # The same premise can be mentioned twice ("the mug ... it"); it is still one premise.
    return tuple({(violation.family, violation.premise): violation for violation in reversed(found)}.values())[::-1]


def factors(violations: tuple[Violation, ...]) -> tuple[Factor, ...]:
    """The violations as a case's evidence."""
    return tuple(violation.factor() for violation in violations)
