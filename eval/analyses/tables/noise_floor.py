"""Noise floor: how far apart are two rollouts of one policy that differ in nothing but the seed?

A stochastic policy does not repeat itself, so even without a conflict its measures are not those of a rollout with
itself (TAR, TS and Early20 of 1, AMS of 0). What a conflict does is to be compared with this floor. Supplementary.
"""

from __future__ import annotations

import pyarrow as pa

from ...measures import MEASURES
from ..analysis import Analysis
from ..columns import intervals, plain
from .measures import measure_table


def noise_floor_table(repeats: pa.Table) -> pa.Table:
    """The floor of every measure: a row for each policy and prompt condition with repeats.

    Args:
        repeats: Measures of the pairs of ``pair_repeats``, from ``score_pairs``.

    Returns:
        The columns of ``Scores.table("prompt")``. PCSR and RGSR are the success rates of the lower and the higher
        seed, so their difference is noise, and FR is how often a success is not repeated.
    """
    return measure_table(repeats, "prompt")


ANALYSIS = Analysis(
    name="noise_floor",
    title="Noise floor: reference rollouts that differ in nothing but the seed (supplementary)",
    note="Percent, with 95% intervals over base tasks; PCSR and RGSR are the two seeds' success rates.",
    compute=lambda scored: noise_floor_table(scored.repeats),
    labels=(plain("policy"), plain("prompt")),
    numbers=(*(intervals(measure.name, measure.symbol) for measure in MEASURES), plain("n")),
)
