"""Whether cost conditions hold, from what the simulator showed: contacts, poses and velocities as plain arrays.

All states of a rollout are evaluated together, in a few array operations a condition.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from ..arrays import BoolArray, FloatArray, IntArray
from .conditions import ROBOT, Condition, CostSpec, Predicate


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class EntityParts:
    """What a name stands for in the simulator's model.

    Attributes:
        geoms: Numbers of its colliding geoms, in the model's order; these are its parts.
        bodies: Numbers of its bodies; empty for a region.
        main: Number of the body whose position is the entity's; None for a region.
        fall_dof: Degree of freedom of its vertical velocity; None for what does not move freely.
    """

    geoms: IntArray
    bodies: IntArray
    main: int | None = None
    fall_dof: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Evidence:
    """What the simulator showed of a rollout of H actions, in its T = H + 1 states.

    Attributes:
        entities: What the names in the conditions stand for.
        geom_count: How many geoms the model has.
        moment: State of each of K contacts, shape (K,).
        geoms: The two geoms of each, shape (K, 2).
        body_pos_m: Where each body is, shape (T, B, 3).
        body_quat_wxyz: How it is turned, shape (T, B, 4).
        qvel: Velocities of all joints, shape (T, nv).
        distance_m: For each pair of entities that a ``CheckDistance`` names the distance, shape (T,); infinite where it
            is beyond every limit.
        force_n: For each pair of entities that a ``CheckForce`` names the largest force during each action, shape (H,).
    """

    entities: Mapping[str, EntityParts]
    geom_count: int
    moment: IntArray
    geoms: IntArray
    body_pos_m: FloatArray
    body_quat_wxyz: FloatArray
    qvel: FloatArray
    distance_m: Mapping[tuple[str, str], FloatArray] = field(default_factory=dict)
    force_n: Mapping[tuple[str, str], FloatArray] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class CostResult:
    """What a rollout pays.

    Attributes:
        total: CC.
        amounts: What each condition contributes, in the order of ``CostSpec.conditions``.
    """

    total: float
    amounts: tuple[float, ...]


def evaluate_cost(spec: CostSpec, evidence: Evidence) -> CostResult:
    """CC of a rollout: instantaneous conditions in the states before each action, terminal ones in the last."""
    amounts = [float(_holds(condition, evidence)[:-1].sum()) for condition in spec.instantaneous]
    amounts += [spec.alpha * float(_holds(condition, evidence)[-1]) for condition in spec.terminal]
    return CostResult(total=float(sum(amounts)), amounts=tuple(amounts))


def _holds(condition: Condition, evidence: Evidence) -> BoolArray:
    """Whether a condition holds in each state, shape (T,)."""
    if isinstance(condition, Predicate):
        return PREDICATES[condition.name](condition, evidence)
    parts = np.array([_holds(part, evidence) for part in condition.conditions])
    if condition.operator == "Not":
        return np.asarray(~parts[0])
    return np.asarray(parts.all(axis=0) if condition.operator == "And" else parts.any(axis=0))


def _in_contact(predicate: Predicate, evidence: Evidence) -> BoolArray:
    """Some geom of one entity touches some geom of the other."""
    one, other = (evidence.entities[name].geoms for name in predicate.entities)
    return _touching(evidence, one, other)


def _in_contact_part(predicate: Predicate, evidence: Evidence) -> BoolArray:
    """Some geom of the given parts of one touches some geom of the given parts of the other."""
    one, other = (
        evidence.entities[name].geoms[list(numbers)]
        for name, numbers in zip(predicate.entities, predicate.parts, strict=True)
    )
    return _touching(evidence, one, other)


def _check_force(predicate: Predicate, evidence: Evidence) -> BoolArray:
    """During the next action the forces between the two, added up over their contacts, exceed the limit."""
    force = evidence.force_n[predicate.entities[0], predicate.entities[1]]
    return np.append(force > _limit(predicate), np.False_)


def _check_distance(predicate: Predicate, evidence: Evidence) -> BoolArray:
    """The two are closer than the limit."""
    return np.asarray(evidence.distance_m[predicate.entities[0], predicate.entities[1]] < _limit(predicate))


def _dropped_mask(predicate: Predicate, evidence: Evidence) -> BoolArray:
    """It goes down faster than the limit, and the robot does not touch it."""
    dropped = evidence.entities[predicate.entities[0]]
    if dropped.fall_dof is None:
        return np.zeros(len(evidence.qvel), np.bool_)
    held = _touching(evidence, dropped.geoms, evidence.entities[ROBOT].geoms)
    return np.asarray((evidence.qvel[:, dropped.fall_dof] < -_limit(predicate)) & ~held)


def _moved_mask(predicate: Predicate, evidence: Evidence) -> BoolArray:
    """Some body of it is further than the limit from where it was at the start."""
    place = evidence.body_pos_m[:, evidence.entities[predicate.entities[0]].bodies]
    return np.asarray((np.linalg.norm(place - place[0], axis=2) > _limit(predicate)).any(axis=1))


def _turned_mask(predicate: Predicate, evidence: Evidence) -> BoolArray:
    """Some body of it is turned by more than the limit from how it was at the start, about whatever axis."""
    quat = evidence.body_quat_wxyz[:, evidence.entities[predicate.entities[0]].bodies]
    cosine = np.abs(np.einsum("tbi,bi->tb", quat, quat[0]))
    turned_deg = np.degrees(2.0 * np.arccos(np.minimum(cosine, 1.0)))
    return np.asarray((turned_deg > _limit(predicate)).any(axis=1))


def _tipped_mask(predicate: Predicate, evidence: Evidence) -> BoolArray:
    """What of it was upright at the start leans by more than the limit now."""
    quat = evidence.body_quat_wxyz[:, evidence.entities[predicate.entities[0]].main]
    up = _rotated(_inverse(quat[:1]), np.array([0.0, 0.0, 1.0]))
    now = _rotated(quat, up[0])
    return np.asarray(np.degrees(np.arccos(np.clip(now[:, 2], -1.0, 1.0))) > _limit(predicate))


def _fallen_mask(predicate: Predicate, evidence: Evidence) -> BoolArray:
    """It is lower than it was at the start by more than the limit."""
    height = evidence.body_pos_m[:, evidence.entities[predicate.entities[0]].main, 2]
    return np.asarray(height < height[0] - _limit(predicate))


PREDICATES = {
    "InContact": _in_contact,
    "InContactPart": _in_contact_part,
    "CheckForce": _check_force,
    "CheckDistance": _check_distance,
    "Dropped": _dropped_mask,
    "Moved": _moved_mask,
    "Turned": _turned_mask,
    "Tipped": _tipped_mask,
    "Fallen": _fallen_mask,
}
"""What each predicate of ``conditions.SIGNATURES`` means, state by state."""


def _limit(predicate: Predicate) -> float:
    assert predicate.limit is not None  # as its signature says
    return predicate.limit


def _touching(evidence: Evidence, one: IntArray, other: IntArray) -> BoolArray:
    """Whether two sets of geoms touch in each state, shape (T,)."""
    is_one, is_other = np.zeros((2, evidence.geom_count), np.bool_)
    is_one[one], is_other[other] = True, True
    first, second = evidence.geoms.T
    touching = (is_one[first] & is_other[second]) | (is_other[first] & is_one[second])
    found = np.zeros(len(evidence.body_pos_m), np.bool_)
    found[evidence.moment[touching]] = True
    return found


def _inverse(quat_wxyz: FloatArray) -> FloatArray:
    return np.asarray(quat_wxyz * np.array([1.0, -1.0, -1.0, -1.0]))


def _rotated(quat_wxyz: FloatArray, vector: FloatArray) -> FloatArray:
    """A vector turned by each of T quaternions, shape (T, 3)."""
    # By hand: scipy's rotations round otherwise, and recorded costs are computed again from recorded states.
    w, axis = quat_wxyz[:, :1], quat_wxyz[:, 1:]
    across = 2.0 * np.cross(axis, vector)
    return np.asarray(vector + w * across + np.cross(axis, across))
