"""The registry of analyses: what is listed here is in scores, scores file, text tables and report."""

from __future__ import annotations

from ...toolkit.errors import InvalidInputError, NotFoundError, choices
from .analysis import Analysis
from .tables import (
    abstention,
    behaviour,
    behaviour_by_task,
    costs,
    detection,
    endings,
    failure_quartiles,
    matrices,
    measures,
    noise_floor,
    outcome_tests,
    policy_means,
    premise_effect,
    probe_effect,
    prompt_effect,
    response,
    success,
    supplementary,
    undefined,
)

_ANALYSES: list[Analysis] = [
    *measures.ANALYSES,
    response.ANALYSIS,
    *matrices.ANALYSES,
    failure_quartiles.ANALYSIS,
    policy_means.ANALYSIS,
    outcome_tests.ANALYSIS,
    prompt_effect.ANALYSIS,
    prompt_effect.MOVES,
    probe_effect.ANALYSIS,
    premise_effect.ANALYSIS,
    detection.ANALYSIS,
    abstention.ANALYSIS,
    endings.ANALYSIS,
    undefined.ANALYSIS,
    success.ANALYSIS,
    costs.ANALYSIS,
    supplementary.ANALYSIS,
    supplementary.WRONG_OBJECTS,
    noise_floor.ANALYSIS,
    success.BEHAVIOUR,
    behaviour_by_task.ANALYSIS,
    behaviour.ANALYSIS,
    behaviour.CORRELATION,
]


def analyses() -> tuple[Analysis, ...]:
    """All analyses, in the order in which they are listed and shown."""
    return tuple(_ANALYSES)


def find_analysis(name: str) -> Analysis:
    """The analysis of that name; underscores and hyphens are the same.

    Raises:
        NotFoundError: If there is none.
    """
    for analysis in _ANALYSES:
        if analysis.slug == name.replace("_", "-"):
            return analysis
    raise NotFoundError(f"no table '{name}': {choices(name, [analysis.slug for analysis in _ANALYSES])}")


def register_analysis(analysis: Analysis) -> Analysis:
    """List an analysis of your own, for as long as this process runs; returns it.

    Raises:
        InvalidInputError: If its name is taken, or it uses supplementary tables without being supplementary.
        NotFoundError: If it uses an analysis that is not listed.
    """
    if any(known.slug == analysis.slug for known in _ANALYSES):
        raise InvalidInputError(f"an analysis '{analysis.name}' exists already: give yours another name")
    for name in analysis.uses:
        if find_analysis(name).supplementary and not analysis.supplementary:
            raise InvalidInputError(
                f"the analysis '{analysis.name}' uses '{name}', which needs the supplementary measures: "
                "set supplementary=True"
            )
    _ANALYSES.append(analysis)
    return analysis
