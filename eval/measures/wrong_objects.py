"""Does the gripper turn to what the task is not about? Approach, contact and grasp of the wrong object. Supplementary.

*Wrong objects* are a scene's movable objects and fixtures that no predicate of the reference goal names; the table is
none of them. They follow from the reference goal, which both rollouts of a pair share, so what the conflicting
instruction names may be among them. Definitions are this project's own: protocol 2.0 names wrong-object contact and
grasp, and leaves them open.
"""

from __future__ import annotations

import numpy as np

from ...toolkit.arrays import BoolArray, Float32Array, FloatArray, IntArray
from .holding import HOLD_STEPS
from .process import EPSILON, clip01, target_approach_m

HELD = 2.0
"""Recorded contact of an entity that both fingers touch; 1 where only some part of the gripper touches it."""


def other_approach(
    eef_pos_m: Float32Array,
    object_pos_m: Float32Array,
    offsets: IntArray,
    final_eef_pos_m: FloatArray,
    final_object_pos_m: FloatArray,
    other: BoolArray,
    reference: IntArray,
    conflict: IntArray,
) -> FloatArray:
    """OA = max over other objects k of clip01((A_k^- - A_k^+) / (d_{k,0} + ε)).

    ``A_k = max(0, d_{k,0} - min_t d_{k,t})`` is how much closer the gripper site came to the middle of object k than it
    was at the start, as for TAR. On its way to a target a gripper passes by other objects; the reference rollout says
    how near, and only what goes beyond that counts. Fixtures have no middle to speak of and are left out.

    Args:
        eef_pos_m: Gripper site before each action, shape (F, 3).
        object_pos_m: K objects before each action, shape (F, 3 * K).
        offsets: First frame of each rollout, then F, shape (N + 1,).
        final_eef_pos_m: Gripper site after the last action, shape (N, 3).
        final_object_pos_m: Objects after the last action, shape (N, K, 3).
        other: Which objects are wrong ones, shape (N, K); the two rollouts of a pair share them.
        reference: Row of each pair's reference rollout, shape (P,).
        conflict: Row of each pair's conflict rollout, shape (P,).

    Returns:
        Shape (P,), in [0, 1], lower is a clearer response: 0 where no other object is approached further than in the
        reference rollout, near 1 where the gripper reaches one that it never approached there. NaN where the scene has
        no other object.
    """
    slots = np.full(len(other), other.shape[1])
    approach = target_approach_m(eef_pos_m, object_pos_m, offsets, final_eef_pos_m, final_object_pos_m, slots)
    first = object_pos_m[offsets[:-1]].astype(np.float64).reshape(other.shape[0], other.shape[1], 3)
    start = np.linalg.norm(first - eef_pos_m[offsets[:-1], None].astype(np.float64), axis=2)
    beyond = clip01((approach[conflict] - approach[reference]) / (start[conflict] + EPSILON))
    furthest = np.where(other[conflict], beyond, 0.0).max(axis=1, initial=0.0)
    return np.where(other[conflict].any(axis=1), furthest, np.nan)


def touch_flags(gripper_contact: Float32Array, offsets: IntArray, final_gripper_contact: FloatArray) -> BoolArray:
    """Whether the gripper touches each entity at some step, the state after the last action included.

    Args:
        gripper_contact: Contact with each of J objects and fixtures before each action, shape (F, J).
        offsets: First frame of each rollout, then F, shape (N + 1,).
        final_gripper_contact: Contact after the last action, shape (N, J).

    Returns:
        Shape (N, J).
    """
    before = np.maximum.reduceat(gripper_contact, offsets[:-1], axis=0)
    return np.asarray(np.maximum(before, final_gripper_contact) > 0)


def grasp_flags(gripper_contact: Float32Array, offsets: IntArray) -> BoolArray:
    """Whether both fingers touch each entity for at least 10 steps in a row (half a second).

    Args:
        gripper_contact: Contact with each of J objects and fixtures before each action, shape (F, J).
        offsets: First frame of each rollout, then F, shape (N + 1,).

    Returns:
        Shape (N, J).
    """
    found = np.zeros((len(offsets) - 1, gripper_contact.shape[1]), np.bool_)
    for entity in range(gripper_contact.shape[1]):
        held = gripper_contact[:, entity] == HELD
        # A run that goes on into the next rollout is two runs.
        edge = np.zeros(len(held) + 1, np.bool_)
        edge[offsets] = True
        edge[1:-1] |= held[1:] != held[:-1]
        marks = np.flatnonzero(edge)
        long_enough = held[marks[:-1]] & (np.diff(marks) >= HOLD_STEPS)
        found[np.searchsorted(offsets, marks[:-1][long_enough], side="right") - 1, entity] = True
    return found
