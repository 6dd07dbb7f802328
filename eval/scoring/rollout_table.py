"""One row a rollout: its policy and task, whether it succeeded, and its behaviour metrics."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ...builders.rollouts.episode_record import PROBES
from ...toolkit.arrays import FloatArray
from ...toolkit.records import Arm
from ..measures import process
from ..measures.behaviour import BEHAVIOUR_METRICS, Jerk, duration_s, gripper_movement_m, jerk, path_length
from ..recordings.rollout_set import RolloutSet
from .pair_table import endings_of, policy_labels

JOINTS, FINGERS = "observation.joint_pos_rad", "observation.gripper_pos_m"

MOTION_FEATURES = (JOINTS, FINGERS)
"""Frame features that only supplementary and behaviour metrics need; without one, what needs it is NaN."""

TRAJECTORY_COLUMNS: dict[str, pa.DataType] = {
    **{name: pa.string() for name in ("rollout_id", "policy", "prompt", "arm", "suite", "base_task")},
    **{name: pa.string() for name in ("family", "level", *PROBES)},
    "init_state": pa.int64(),
    "seed": pa.int64(),
    "success": pa.bool_(),
    **{metric.name: pa.float64() for metric in BEHAVIOUR_METRICS},
}

REFERENCE_COLUMNS: dict[str, pa.DataType] = {
    **{name: pa.string() for name in ("rollout_id", "policy", "prompt", "suite", "base_task", *PROBES)},
    "init_state": pa.int64(),
    "seed": pa.int64(),
    "success": pa.bool_(),
    "refusal": pa.string(),
    "ending": pa.string(),
    "cost": pa.float64(),
}


def reference_table(rollouts: RolloutSet) -> pa.Table:
    """How every reference rollout ended that the policy did not break off, and what it cost.

    Returns:
        Rows with ``REFERENCE_COLUMNS``: ``refusal`` is its kind, null where none was given; ``ending`` one of
        ``ENDINGS``; ``cost`` is NaN where unrecorded.
    """
    episodes = rollouts.episodes
    norm = process.arm_action_norm(rollouts.feature("action"))
    stops = process.stops_for_good(norm, rollouts.offsets, rollouts.steps_to_end)
    columns = {
        "policy": pa.array(policy_labels(episodes), pa.string()),
        "refusal": episodes["refusal_kind"],
        "ending": pa.array(endings_of(rollouts, stops), pa.string()),
        "cost": pc.fill_null(episodes["cost"], np.nan),
    }
    arrays = [
        (columns[name] if name in columns else episodes[name]).cast(kind) for name, kind in REFERENCE_COLUMNS.items()
    ]
    table = pa.table(arrays, schema=pa.schema(list(REFERENCE_COLUMNS.items())))
    usable = pc.and_(pc.equal(episodes["arm"], Arm.REFERENCE.value), pc.not_equal(episodes["end"], "policy_error"))
    return table.filter(usable)


def trajectory_table(rollouts: RolloutSet) -> pa.Table:
    """The behaviour metrics of every rollout that the policy did not break off.

    Args:
        rollouts: Read with ``MOTION_FEATURES`` where recorded.

    Returns:
        Rows with ``TRAJECTORY_COLUMNS``; ``family`` and ``level`` are null for reference rollouts.
    """
    offsets = rollouts.offsets
    cartesian = jerk(rollouts.feature("observation.eef_pos_m"), offsets)
    nothing: FloatArray = np.full(len(rollouts), np.nan)
    joint = Jerk(mean=nothing, p95=nothing)
    joint_path, fingers = nothing, nothing
    if JOINTS in rollouts.frames:
        joint = jerk(rollouts.feature(JOINTS), offsets)
        joint_path = path_length(rollouts.feature(JOINTS), offsets)
    if FINGERS in rollouts.frames:
        fingers = gripper_movement_m(rollouts.feature(FINGERS), offsets)
    columns = {
        "policy": policy_labels(rollouts.episodes),
        "duration_s": duration_s(offsets),
        "gripper_movement_m": fingers,
        "mean_cartesian_jerk_m_s3": cartesian.mean,
        "p95_cartesian_jerk_m_s3": cartesian.p95,
        "mean_joint_jerk_rad_s3": joint.mean,
        "p95_joint_jerk_rad_s3": joint.p95,
        "cartesian_path_m": path_length(rollouts.feature("observation.eef_pos_m"), offsets),
        "joint_path_rad": joint_path,
    }
    arrays = [
        pa.array(columns[name], kind) if name in columns else rollouts.episodes[name].cast(kind).combine_chunks()
        for name, kind in TRAJECTORY_COLUMNS.items()
    ]
    table = pa.table(arrays, schema=pa.schema(list(TRAJECTORY_COLUMNS.items())))
    return table.filter(pc.not_equal(rollouts.episodes["end"], "policy_error"))
