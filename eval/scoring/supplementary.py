"""Supplementary measures of every pair: beside the protocol's own, never in their place."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from ...builders.rollouts.schema import ENTITY_SLOTS, OBJECT_SLOTS
from ...toolkit.arrays import FloatArray, ObjectArray
from ..measures import wrong_objects
from ..measures.divergence import first_divergence_step
from ..measures.holding import carries_other
from ..measures.paths import gripper_paths
from ..measures.position import position_similarity
from ..measures.warping import warping_similarity
from ..recordings.list_columns import pad_lists
from ..recordings.rollout_set import RolloutSet
from .pairs import Pairing
from .scene_entities import recorded_entities

SUPPLEMENTARY_COLUMNS: dict[str, pa.DataType] = {
    "position_similarity": pa.float64(),
    "warping_similarity": pa.float64(),
    "divergence_step": pa.float64(),
    "reference_carries_other": pa.float64(),
    "conflict_carries_other": pa.float64(),
    "other_approach": pa.float64(),
    "reference_touches_other": pa.float64(),
    "conflict_touches_other": pa.float64(),
    "reference_grasps_other": pa.float64(),
    "conflict_grasps_other": pa.float64(),
    "conflict_touched": pa.string(),
    "carries_other_undefined": pa.string(),
    "other_approach_undefined": pa.string(),
    "touches_other_undefined": pa.string(),
}
"""Columns behind ``PAIR_COLUMNS``. ``divergence_step`` is NaN where the grippers do not part. ``*_carries_other``,
``*_touches_other`` and ``*_grasps_other`` are 0 or 1. ``conflict_touched`` names the wrong objects that the conflict
rollout touches and the objects that it grasps, which are marked; null where contacts were not recorded. ``*_undefined``
says why a measure is NaN, null where it is not; grasps are undefined where touches are."""

UNDEFINED_COLUMNS = {
    "carries_other": "carries_other_undefined",
    "other_approach": "other_approach_undefined",
    "touches_other": "touches_other_undefined",
    "grasps_other": "touches_other_undefined",
}
"""Supplementary measures that may be undefined, and the columns that say why."""
NO_FINGERS = "the fingers were not recorded"
NO_OBJECTS = "objects and contacts were not recorded"
NO_OTHER_OBJECT = "the scene has no object beside those of the goal"
FINGERS = "observation.gripper_pos_m"
OBJECTS = "observation.object_pos_m"
CONTACT = "observation.gripper_contact"

WRONG_OBJECT_FEATURES = (OBJECTS, CONTACT)
"""Frame features that the measures of wrong objects need; without them these are NaN."""


def with_supplementary(pairs: pa.Table, rollouts: RolloutSet, pairing: Pairing) -> pa.Table:
    """The pairs with ``SUPPLEMENTARY_COLUMNS`` behind their own.

    Args:
        pairs: From ``score_pairs``, in the pairing's order.
        rollouts: The rollouts, read with ``observation.gripper_pos_m`` and ``WRONG_OBJECT_FEATURES`` where recorded.
        pairing: Which of them belong together.
    """
    reference, conflict = pairing.reference, pairing.conflict
    eef_pos_m, steps = rollouts.feature("observation.eef_pos_m"), rollouts.steps_to_end
    paths = gripper_paths(eef_pos_m, rollouts.offsets, rollouts.final_eef_pos_m, steps)
    carries = _carries_other(rollouts)
    columns = {
        "position_similarity": position_similarity(paths, reference, conflict),
        "warping_similarity": warping_similarity(paths, reference, conflict),
        "divergence_step": first_divergence_step(paths, reference, conflict),
        "reference_carries_other": carries[reference],
        "conflict_carries_other": carries[conflict],
        "carries_other_undefined": _reasons(carries[conflict], NO_FINGERS),
        **_wrong_object_columns(rollouts, pairing),
    }
    for name, kind in SUPPLEMENTARY_COLUMNS.items():
        pairs = pairs.append_column(pa.field(name, kind), pa.array(columns[name], kind))
    return pairs


def _carries_other(rollouts: RolloutSet) -> FloatArray:
    if FINGERS not in rollouts.frames:
        return np.full(len(rollouts), np.nan)
    return carries_other(
        rollouts.feature("action"),
        rollouts.feature(FINGERS),
        rollouts.feature("observation.eef_pos_m"),
        rollouts.feature("observation.target_pos_m"),
        rollouts.offsets,
    ).astype(np.float64)


def _wrong_object_columns(rollouts: RolloutSet, pairing: Pairing) -> dict[str, Any]:
    reference, conflict = pairing.reference, pairing.conflict
    entities = recorded_entities(rollouts.episodes)
    recorded = entities.recorded & (OBJECTS in rollouts.frames) & (CONTACT in rollouts.frames)
    nothing: FloatArray = np.full(len(rollouts), np.nan)
    approach, touches, grasps = nothing[conflict], nothing, nothing
    names: ObjectArray = np.full(len(rollouts), None, dtype=object)
    if recorded.any():
        offsets, contact = rollouts.offsets, rollouts.feature(CONTACT)
        final_pos = pad_lists(rollouts.episodes["final_object_pos_m"], 3 * OBJECT_SLOTS).reshape(-1, OBJECT_SLOTS, 3)
        final_contact = pad_lists(rollouts.episodes["final_gripper_contact"], ENTITY_SLOTS)
        approach = wrong_objects.other_approach(
            rollouts.feature("observation.eef_pos_m"),
            rollouts.feature(OBJECTS),
            offsets,
            rollouts.final_eef_pos_m,
            final_pos,
            entities.other[:, :OBJECT_SLOTS],
            reference,
            conflict,
        )
        touched = wrong_objects.touch_flags(contact, offsets, final_contact) & entities.other
        grasped = wrong_objects.grasp_flags(contact, offsets) & entities.movable_other
        touches = np.where(recorded, touched.any(axis=1), np.nan)
        grasps = np.where(recorded, grasped.any(axis=1), np.nan)
        names = entities.names_of(touched, grasped)
    missing = _reasons(touches[conflict], NO_OBJECTS)
    return {
        "other_approach": approach,
        "reference_touches_other": touches[reference],
        "conflict_touches_other": touches[conflict],
        "reference_grasps_other": grasps[reference],
        "conflict_grasps_other": grasps[conflict],
        "conflict_touched": names[conflict],
        "other_approach_undefined": np.where(recorded[conflict], _reasons(approach, NO_OTHER_OBJECT), missing),
        "touches_other_undefined": missing,
    }


def _reasons(values: FloatArray, reason: str) -> ObjectArray:
    """The reason where a value is NaN, None elsewhere."""
    reasons = np.full(len(values), None, dtype=object)
    reasons[np.isnan(values)] = reason
    return reasons
