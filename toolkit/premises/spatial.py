"""Spatial premises: where the instruction presupposes something to be, before anything is done.

Every rule is three-valued. A claim is *true* where it plainly holds, *false* where it is off by a margin that leaves no
reasonable reading, and *unclear* in between; only a claim that is false in every initial state makes a case.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from ..arrays import BoolArray, FloatArray
from ..facts import SceneFacts
from ..language.plan import Claim, Plan, Reference, Relation
from ..language.vocabulary import Vocabulary
from ..records import Family
from .grounding import candidates, phrase
from .violation import Violation

MARGIN_M = 0.04
"""A relation is false only where it is off by at least this much."""

NEXT_TO_M = 0.06
"""Two entities are next to each other where less than this lies between them, seen from above."""

FAR_APART_M = 0.20
"""And not next to each other where more than this does: both are beyond dispute."""

TRUE, UNCLEAR, FALSE = 1, 0, -1

DIRECTIONS = {
    Relation.IN_FRONT_OF: (0, 1),
    Relation.BEHIND: (0, -1),
    Relation.RIGHT_OF: (1, 1),
    Relation.LEFT_OF: (1, -1),
}
"""Axis and sign of each direction in the world, as the viewer of the agentview camera sees it."""


@dataclass(frozen=True, slots=True)
class ClaimTruth:
    """Whether a relation holds in each of S states.

    Attributes:
        truth: 1 true, 0 unclear, -1 false, shape (S,).
        off_m: Distance to truth in m, shape (S,).
    """

    truth: npt.NDArray[np.int_]
    off_m: FloatArray


def spatial_violations(plan: Plan, facts: SceneFacts, words: Vocabulary) -> Iterator[Violation]:
    """Violations about every claim of the plan whose noun phrases are grounded."""
    moved: set[str] = set()
    for step in plan.steps:
        for reference in Plan(steps=(step,)).references():
            for claim in reference.claims:
                for violation in _claim_violations(reference, claim, facts, words):
                    yield _after_moves(violation, reference, claim, moved)
        if step.destination is not None:
            moved.add(step.object.noun)


def _after_moves(violation: Violation, reference: Reference, claim: Claim, moved: set[str]) -> Violation:
    """What an earlier step has moved may by then be where the claim places it: that is no longer beyond dispute."""
    if moved.isdisjoint({reference.noun, *(landmark.noun for landmark in claim.landmarks)}):
        return violation
    return replace(violation, violated=0, unclear=violation.states)


def claim_premise(reference: Reference, claim: Claim) -> str:
    """The claim in functional notation, such as ``on(bowl, stove)``."""
    return f"{claim.relation}({', '.join(phrase(r) for r in (reference, *claim.landmarks))})"


def picked_out(reference: Reference, facts: SceneFacts, words: Vocabulary) -> list[int]:
    """Indices of the entities that the noun phrase could mean, of which its claims pick out those that they hold for.

    A claim that plainly holds for none picks out nothing: all that fit the other words are left.
    """
    found = candidates(reference, facts, words)
    for claim in reference.claims:
        landmarks = [candidates(landmark, facts, words) for landmark in claim.landmarks]
        fitting = [
            subject
            for subject in found
            if any(
                subject not in marks and np.all(judge(claim.relation, subject, marks, facts).truth == TRUE)
                for marks in itertools.product(*landmarks)
            )
        ]
        found = fitting or found
    return found


def _claim_violations(reference: Reference, claim: Claim, facts: SceneFacts, words: Vocabulary) -> Iterator[Violation]:
    subjects = candidates(reference, facts, words)
    landmarks = [candidates(landmark, facts, words) for landmark in claim.landmarks]
    judgements = [
        judge(claim.relation, subject, marks, facts)
        for subject in subjects
        for marks in itertools.product(*landmarks)
        if subject not in marks
    ]
    if not judgements:
        return  # nothing grounded to judge: grounding reports it
    # The claim holds where any candidate fits it, and fails only where every candidate fails it.
    truth = np.max([judgement.truth for judgement in judgements], axis=0)
    if np.all(truth == TRUE):
        return
    off_m = np.min([judgement.off_m for judgement in judgements], axis=0)
    where = " and ".join(f"the {landmark.name}" for landmark in claim.landmarks)
    yield Violation(
        family=Family.SPATIAL,
        premise=claim_premise(reference, claim),
        expected=f"the {reference.name} {claim.relation} {where} at the start",
        observed=_observation(claim.relation, float(off_m.min())),
        margin=float(off_m.min()),
        violated=int(np.sum(truth == FALSE)),
        unclear=int(np.sum(truth == UNCLEAR)),
        states=len(truth),
    )


def _observation(relation: Relation, off_m: float) -> str:
    centimetres = f"{100.0 * off_m:.1f} cm"
    if relation is Relation.NEXT_TO:
        return f"at least {centimetres} more lies between them than between neighbours ({100 * NEXT_TO_M:.0f} cm)"
    if relation is Relation.BETWEEN:
        return f"at least {centimetres} off the space between them"
    if relation in DIRECTIONS:
        return f"on the other side, with at least {centimetres} between them, seen from the camera"
    if relation is Relation.AT_CENTER:
        return f"at least {centimetres} outside of the middle fifth"
    return f"at least {centimetres} apart from there"


def judge(relation: Relation, subject: int, landmarks: tuple[int, ...], facts: SceneFacts) -> ClaimTruth:
    """Whether an entity is where a relation to its landmarks places it.

    Args:
        relation: The relation.
        subject: Index of the entity.
        landmarks: Indices of its landmarks, two for ``between``.
        facts: The scene's facts.
    """
    match relation:
        case Relation.ON:
            return _by_contact(facts.on[:, subject, landmarks[0]], facts.gap_m(subject, landmarks[0]))
        case Relation.IN:
            return _inside(subject, landmarks[0], facts)
        case Relation.UNDER:
            gap = facts.horizontal_gap_m(subject, landmarks[0])
            return _by_contact(np.zeros(len(gap), dtype=np.bool_), gap)
        case Relation.NEXT_TO:
            gap = facts.horizontal_gap_m(subject, landmarks[0])
            truth = np.where(gap <= NEXT_TO_M, TRUE, np.where(gap >= FAR_APART_M, FALSE, UNCLEAR))
            return ClaimTruth(truth, np.maximum(0.0, gap - NEXT_TO_M))
        case Relation.IN_FRONT_OF | Relation.BEHIND | Relation.LEFT_OF | Relation.RIGHT_OF:
            return _towards(relation, subject, landmarks[0], facts)
        case Relation.AT_CENTER:
            return _at_center(subject, landmarks[0], facts)
        case Relation.BETWEEN:
            return _between(subject, landmarks[0], landmarks[1], facts)


def _by_contact(holds: BoolArray, gap_m: FloatArray) -> ClaimTruth:
    """True where it holds in the simulator; false where the two are plainly apart."""
    truth = np.where(holds, TRUE, np.where(gap_m >= MARGIN_M, FALSE, UNCLEAR))
    return ClaimTruth(truth, gap_m)


def _inside(subject: int, landmark: int, facts: SceneFacts) -> ClaimTruth:
    """False where the subject's middle is outside a shut landmark's box, or all of it outside an open one's."""
    middle = facts.box_m[:, subject].mean(axis=1)
    low, high = facts.box_m[:, landmark, 0], facts.box_m[:, landmark, 1]
    outside = np.linalg.norm(np.maximum(0.0, np.maximum(low - middle, middle - high)), axis=1)
    # A bottle right behind a bowl looks as if it stood in it; what stands before a shut drawer does not.
    shut = facts.entities[landmark].opens & ~facts.is_open[:, landmark]
    return _by_contact(facts.inside[:, subject, landmark], np.where(shut, outside, facts.gap_m(subject, landmark)))


def _towards(relation: Relation, subject: int, landmark: int, facts: SceneFacts) -> ClaimTruth:
    """In LIBERO's viewer frame front is +x and right is +y: true or false by the gap between the boxes on that axis.

    False is only what is clear of the landmark on the other side, so that "a little to the left" cannot save it.
    """
    axis, sign = DIRECTIONS[relation]
    low, high = facts.box_m[:, :, 0, axis], facts.box_m[:, :, 1, axis]
    beyond = low[:, subject] - high[:, landmark] if sign > 0 else low[:, landmark] - high[:, subject]
    opposite = low[:, landmark] - high[:, subject] if sign > 0 else low[:, subject] - high[:, landmark]
    middle = sign * (facts.box_m[:, subject].mean(axis=1) - facts.box_m[:, landmark].mean(axis=1))[:, axis]
    # A cabinet's front is also where its drawers are, a stove's where its knob is.
    own_front = facts.entities[landmark].opens or facts.entities[landmark].switches
    never = UNCLEAR if own_front and relation in (Relation.IN_FRONT_OF, Relation.BEHIND) else FALSE
    truth = np.where((beyond >= 0.0) & (middle > 0.0), TRUE, np.where(opposite >= MARGIN_M, never, UNCLEAR))
    return ClaimTruth(truth, np.maximum(0.0, opposite))


def _at_center(subject: int, landmark: int, facts: SceneFacts) -> ClaimTruth:
    """True within a fifth of the table's shorter side from its middle, false beyond a third of it, seen from above."""
    middle = facts.box_m[:, landmark].mean(axis=1)[:, :2]
    off = np.linalg.norm(facts.box_m[:, subject].mean(axis=1)[:, :2] - middle, axis=1)
    side = np.min((facts.box_m[:, landmark, 1] - facts.box_m[:, landmark, 0])[:, :2], axis=1)
    truth = np.where(off <= 0.2 * side, TRUE, np.where(off >= 0.33 * side, FALSE, UNCLEAR))
    return ClaimTruth(truth, np.maximum(0.0, off - 0.2 * side))


def _between(subject: int, first: int, second: int, facts: SceneFacts) -> ClaimTruth:
    """True on the segment between the two; false outside the circle on it, by the subject's own size and the margin.

    Inside the circle the two appear more than a right angle apart, seen from the subject: it is off their line, and
    yet somebody looking from a side could call it between them.
    """
    a, b, p = (facts.box_m[:, i].mean(axis=1)[:, :2] for i in (first, second, subject))
    along = b - a
    share = np.clip(np.sum((p - a) * along, axis=1) / np.maximum(np.sum(along**2, axis=1), 1e-9), 0.0, 1.0)
    off_line = np.linalg.norm(p - (a + share[:, None] * along), axis=1)
    off_circle = np.linalg.norm(p - 0.5 * (a + b), axis=1) - 0.5 * np.linalg.norm(along, axis=1)
    radius = 0.5 * np.max(facts.box_m[:, subject, 1, :2] - facts.box_m[:, subject, 0, :2], axis=1)
    within = (off_line <= radius) & (share > 0.0) & (share < 1.0)
    truth = np.where(within, TRUE, np.where(off_circle >= radius + 2.0 * MARGIN_M, FALSE, UNCLEAR))
    return ClaimTruth(truth, np.maximum(0.0, off_circle - radius))
