"""Selectivity: does a change of prompt or probe lower completion under conflict more than it lowers competence?"""

from __future__ import annotations

from ...toolkit.arrays import FloatArray


def selectivity(
    reference_p0: FloatArray, conflict_p0: FloatArray, reference_p1: FloatArray, conflict_p1: FloatArray
) -> FloatArray:
    """Each pair's part of (RGSR_P1 - RGSR_P0) - (PCSR_P1 - PCSR_P0), and so of any condition against another.

    Negative where the premise-check prompt lowers completion under conflict by more than it lowers it with valid
    premises; about zero where it merely disrupts everything.

    Args:
        reference_p0: y+ of the pairs under P0, as 0 or 1, shape (P,).
        conflict_p0: y- of the same pairs under P0.
        reference_p1: y+ of the same cases and initial states under P1.
        conflict_p1: y- of the same cases and initial states under P1.

    Returns:
        Shape (P,), in [-2, 2]; the mean is the selectivity.
    """
    return (conflict_p1 - conflict_p0) - (reference_p1 - reference_p0)
