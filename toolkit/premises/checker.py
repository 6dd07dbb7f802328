"""Judge a plan against scene facts: which premises do not hold, with what evidence."""

from __future__ import annotations

from ..facts import SceneFacts
from ..language.plan import Plan
from ..language.vocabulary import Vocabulary, load_vocabulary
from ..records import Factor
from .finding import Finding
from .grounding import grounding_findings
from .instruction import instruction_findings
from .physical import physical_findings
from .spatial import spatial_findings


def check(plan: Plan, facts: SceneFacts, vocabulary: Vocabulary | None = None) -> tuple[Finding, ...]:
    """Every premise of the plan that does not clearly hold in every initial state.

    The checker knows nothing of operators: it sees a plan and facts, and nothing of where the plan came from.

    Args:
        plan: What is asked for.
        facts: What is the case.
        vocabulary: What things are called; the packaged one by default.

    Returns:
        One finding a premise, in the order instruction, grounding, spatial, physical; empty for a valid plan.
    """
    words = vocabulary or load_vocabulary()
    found = (
        *instruction_findings(plan, facts, words),
        *grounding_findings(plan, facts, words),
        *spatial_findings(plan, facts, words),
        *physical_findings(plan, facts, words),
    )
    # The same premise can be mentioned twice ("the mug ... it"); it is still one premise.
    return tuple({(finding.family, finding.premise): finding for finding in reversed(found)}.values())[::-1]


def factors(findings: tuple[Finding, ...]) -> tuple[Factor, ...]:
    """The findings as a case's evidence."""
    return tuple(finding.factor() for finding in findings)
