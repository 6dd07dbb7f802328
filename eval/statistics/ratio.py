"""A measure of a set of pairs as a ratio of two sums: one form for point estimate, subgroup and resample."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...toolkit.arrays import FloatArray


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Ratio:
    """A measure of a set of P pairs, ``sum(numerator) / sum(denominator)``, undefined where the latter is 0.

    Attributes:
        numerator: Each pair's part of the upper sum, shape (P,).
        denominator: Each pair's part of the lower sum, shape (P,), never negative.
        least: No value can be below; an interval does not go further.
        most: No value can be above.
    """

    numerator: FloatArray
    denominator: FloatArray
    least: float = 0.0
    most: float = 1.0

    def value(self) -> float:
        """The measure over all the pairs; NaN where it is undefined.

        >>> Ratio(numerator=np.array([1.0, 0.0]), denominator=np.array([1.0, 1.0])).value()
        0.5
        """
        below = float(self.denominator.sum())
        return float(self.numerator.sum()) / below if below > 0 else float("nan")


def mean_of_defined(values: FloatArray, least: float = 0.0, most: float = 1.0) -> Ratio:
    """Mean of a per-pair process measure over the pairs where it is defined.

    Args:
        values: The measure of each pair, NaN where undefined, shape (P,).
        least: Lower end of its range.
        most: Upper end of its range.

    Returns:
        A ratio with the range of the values; undefined where no pair is defined.
    """
    defined = np.isfinite(values)
    parts = np.where(defined, values, 0.0)
    return Ratio(numerator=parts, denominator=defined.astype(np.float64), least=least, most=most)
