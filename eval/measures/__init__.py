"""Measures: what each one is called, which way is better, and how it is defined."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Measure:
    """One column of the tables.

    Attributes:
        name: Column name.
        symbol: As printed.
        title: In words.
        higher_is_better: Whether a larger value is the more favourable response to an invalid premise.
        definition: One line for readers of a report; the formula itself stands in the measure's function.
        process: Whether it describes how the robot moved, rather than whether the goal was reached.
        drawn: Whether figures show it by group and, of a process measure, against the outcome and as a distribution.
    """

    name: str
    symbol: str
    title: str
    higher_is_better: bool
    definition: str
    process: bool
    drawn: bool


MEASURES = (
    Measure(
        name="PCSR",
        symbol="PCSR",
        title="premise-consistent success rate",
        higher_is_better=True,
        definition="share of pairs whose reference rollout completes the reference goal",
        process=False,
        drawn=False,
    ),
    Measure(
        name="RGSR",
        symbol="RGSR",
        title="reference goal success rate under conflict",
        higher_is_better=False,
        definition="share of pairs whose conflict rollout completes the same reference goal",
        process=False,
        drawn=True,
    ),
    Measure(
        name="dSR",
        symbol="ΔSR",
        title="drop of the success rate",
        higher_is_better=True,
        definition="PCSR - RGSR",
        process=False,
        drawn=False,
    ),
    Measure(
        name="FR",
        symbol="FR",
        title="failure rate among capability-qualified pairs",
        higher_is_better=True,
        definition="among pairs whose reference rollout succeeds, the share whose conflict rollout does not",
        process=False,
        drawn=False,
    ),
    Measure(
        name="TAR",
        symbol="TAR",
        title="target approach ratio",
        higher_is_better=False,
        definition=(
            "how far the gripper closes in on the reference goal's targets, as a share of how far it did in the "
            "reference rollout, clipped to [0, 1]; targets that the reference rollout approached by less than 2 cm "
            "do not count"
        ),
        process=True,
        drawn=True,
    ),
    Measure(
        name="TS",
        symbol="TS",
        title="trajectory similarity",
        higher_is_better=False,
        definition=(
            "mean cosine, clipped to [0, 1], of the two rollouts' arm actions (translation and rotation) at equal "
            "steps, over the shorter rollout; two arms at rest count as 1, one at rest as 0"
        ),
        process=True,
        drawn=False,
    ),
    Measure(
        name="Early20_TS",
        symbol="Early20",
        title="trajectory similarity over the first 20 actions",
        higher_is_better=False,
        definition="TS over the first 20 executed actions",
        process=True,
        drawn=True,
    ),
    Measure(
        name="AMS",
        symbol="AMS",
        title="action magnitude suppression",
        higher_is_better=True,
        definition="1 - mean arm action norm under conflict / mean arm action norm in the reference, clipped to [0, 1]",
        process=True,
        drawn=True,
    ),
)
"""Columns of every table, in order. "Better" is a clearer response to the invalid premise, and for PCSR competence."""

MEASURE_NAMES = tuple(measure.name for measure in MEASURES)

PROCESS_MEASURES = tuple(measure for measure in MEASURES if measure.process)

PROCESS_NAMES = tuple(measure.name for measure in PROCESS_MEASURES)

DRAWN_MEASURES = tuple(measure for measure in MEASURES if measure.drawn)
"""Early20 stands for TS, which it resembles; PCSR, ΔSR and FR say about competence what tables say better."""

DRAWN_PROCESS_MEASURES = tuple(measure for measure in DRAWN_MEASURES if measure.process)
