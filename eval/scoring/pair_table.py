"""From rollouts and pairs to one row of measures a pair: everything that tables, tests and reports are made of."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from ...builders.rollouts.episode_record import EPISODE_COLUMNS
from ...toolkit.arrays import BoolArray, FloatArray, IntArray, ObjectArray
from ..measures import process
from ..recordings.rollout_set import RolloutSet
from .pairs import Pairing

PAIR_COLUMNS: dict[str, pa.DataType] = {
    "policy": pa.string(),
    "policy_family": pa.string(),
    "prompt": pa.string(),
    "language_probe": pa.string(),
    "visual_probe": pa.string(),
    "suite": pa.string(),
    "base_task": pa.string(),
    "family": pa.string(),
    "level": pa.string(),
    "case_id": pa.string(),
    "instance_id": pa.string(),
    "init_state": pa.int64(),
    "seed": pa.int64(),
    "instruction": pa.string(),
    "base_instruction": pa.string(),
    "conflict_rollout": pa.string(),
    "reference_rollout": pa.string(),
    "reference_success": pa.bool_(),
    "conflict_success": pa.bool_(),
    "reference_steps": pa.int64(),
    "conflict_steps": pa.int64(),
    "TAR": pa.float64(),
    "TS": pa.float64(),
    "Early20_TS": pa.float64(),
    "AMS": pa.float64(),
    "reference_stops": pa.bool_(),
    "conflict_stops": pa.bool_(),
    "reference_refusal": pa.string(),
    "conflict_refusal": pa.string(),
    "reference_refusal_step": pa.int64(),
    "conflict_refusal_step": pa.int64(),
    "reference_ending": pa.string(),
    "conflict_ending": pa.string(),
    "TAR_undefined": pa.string(),
    "reference_cost": pa.float64(),
    "conflict_cost": pa.float64(),
}
"""Columns of a pair: its policy (with its architecture family, null where unknown) and task, what was asked, how both
rollouts ended, the process measures (NaN where undefined), whether each arm is at rest until the end without having
reached the goal, what kind of refusal ended each rollout after how many executed actions (both null where none did),
which of ``ENDINGS`` each rollout has, why TAR is undefined (null where it is not), and what each rollout pays (NaN
where that was not recorded)."""

ENDINGS = ("success", "refused", "moving", "at_rest")
"""How a rollout ended: with the goal reached, with the policy's refusal, or at the horizon, with the arm moving in the
last second or at rest through it."""

NO_APPROACH = f"the reference rollout approached no target by {process.LEAST_APPROACH_M:g} m"
NO_TARGET = "the base task names no target"


def score_pairs(rollouts: RolloutSet, pairing: Pairing) -> pa.Table:
    """Measure every pair.

    Args:
        rollouts: The recorded rollouts.
        pairing: Which of them belong together; of control rollouts, these stand in the place of the conflict rollouts.

    Returns:
        P rows with ``PAIR_COLUMNS``, in the pairing's order.
    """
    reference, conflict = pairing.reference, pairing.conflict
    tar, reason = _target_approach(rollouts, reference, conflict)
    norm = process.arm_action_norm(rollouts.feature("action"))
    steps = rollouts.steps_to_end
    mean_norm = process.mean_action_norm(norm, rollouts.offsets, steps)
    similarity = process.trajectory_similarity(
        rollouts.feature("action"), norm, rollouts.offsets, reference, conflict, steps
    )
    success = rollouts.column("success").astype(np.bool_)
    stops = process.stops_for_good(norm, rollouts.offsets, steps) & ~success
    ending = endings_of(rollouts, stops)
    text = {name: rollouts.column(name)[conflict] for name in PAIR_COLUMNS if EPISODE_COLUMNS.get(name) == pa.string()}
    refusal = rollouts.column("refusal_kind")
    refusal_step = rollouts.episodes["refusal_step"].combine_chunks()
    cost = np.asarray(rollouts.episodes["cost"].to_numpy(), np.float64)
    columns = {
        **text,
        "policy": policy_labels(rollouts.episodes)[conflict],
        "init_state": rollouts.column("init_state")[conflict],
        "seed": rollouts.column("seed")[conflict],
        "base_instruction": rollouts.column("instruction")[reference],
        "conflict_rollout": rollouts.column("rollout_id")[conflict],
        "reference_rollout": rollouts.column("rollout_id")[reference],
        "reference_success": success[reference],
        "conflict_success": success[conflict],
        "reference_steps": rollouts.lengths[reference],
        "conflict_steps": rollouts.lengths[conflict],
        "TAR": tar,
        "TS": similarity.whole,
        "Early20_TS": similarity.early,
        "AMS": process.action_magnitude_suppression(mean_norm[reference], mean_norm[conflict]),
        "reference_stops": stops[reference],
        "conflict_stops": stops[conflict],
        "reference_refusal": refusal[reference],
        "conflict_refusal": refusal[conflict],
        "reference_refusal_step": refusal_step.take(pa.array(reference)),
        "conflict_refusal_step": refusal_step.take(pa.array(conflict)),
        "reference_ending": ending[reference],
        "conflict_ending": ending[conflict],
        "TAR_undefined": reason,
        "reference_cost": cost[reference],
        "conflict_cost": cost[conflict],
    }
    arrays = [pa.array(columns[name], kind) for name, kind in PAIR_COLUMNS.items()]
    return pa.table(arrays, schema=pa.schema(list(PAIR_COLUMNS.items())))


def endings_of(rollouts: RolloutSet, stops: BoolArray) -> ObjectArray:
    """Which of ``ENDINGS`` each rollout has, shape (N,), of whether it is at rest until the end, shape (N,)."""
    success = rollouts.column("success").astype(np.bool_)
    refused = np.asarray(rollouts.column("end") == "refused", np.bool_)
    return np.select([success, refused, ~stops], [*ENDINGS[:3]], ENDINGS[3]).astype(object)


def no_pairs() -> pa.Table:
    """The table of no pairs."""
    return pa.schema(list(PAIR_COLUMNS.items())).empty_table()


def policy_labels(episodes: pa.Table) -> ObjectArray:
    """What to call each rollout's policy, shape (N,): its name, with revision and settings only where these vary.

    Two revisions of one policy are two policies, and never averaged together.
    """
    names, revisions, settings = (
        episodes[column].to_pylist() for column in ("policy_name", "policy_revision", "policy_settings")
    )
    known = sorted(set(zip(names, revisions, settings, strict=True)))
    label: dict[tuple[str, str, str], str] = {}
    for name, revision, setting in known:
        same_name = [run for run in known if run[0] == name]
        several_revisions = len({run[1] for run in same_name}) > 1
        several_settings = len({run[2] for run in same_name if run[1] == revision}) > 1
        label[name, revision, setting] = (
            name + (f"@{revision}" if several_revisions else "") + (f" {setting}" if several_settings else "")
        )
    return np.array([label[run] for run in zip(names, revisions, settings, strict=True)], dtype=object)


def _target_approach(rollouts: RolloutSet, reference: IntArray, conflict: IntArray) -> tuple[FloatArray, ObjectArray]:
    """TAR of each pair, and the reason where it is undefined."""
    approach = process.target_approach_m(
        rollouts.feature("observation.eef_pos_m"),
        rollouts.feature("observation.target_pos_m"),
        rollouts.offsets,
        rollouts.final_eef_pos_m,
        rollouts.final_target_pos_m,
        rollouts.target_count,
    )
    tar = process.target_approach_ratio(approach[reference], approach[conflict])
    reason = np.full(len(tar), None, dtype=object)
    reason[np.isnan(tar)] = NO_APPROACH
    reason[rollouts.target_count[reference] == 0] = NO_TARGET
    return tar, reason
