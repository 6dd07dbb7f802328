"""What must hold of episode rows: each field by itself, and fields with each other."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from ....builders.rollouts.episode_record import OPTIONAL_COLUMNS
from ....builders.rollouts.refusals import LONGEST_REFUSAL, REFUSAL_KINDS, REFUSED, REST_STEPS, is_refusal_text
from ....builders.rollouts.schema import ENTITY_SLOTS, FIXTURE_SLOTS, OBJECT_SLOTS, ROLLOUT_SCHEMA_VERSION, TARGET_SLOTS
from ....toolkit.arrays import BoolArray
from ....toolkit.prompts import PROMPT_NAME
from ....toolkit.records import Arm, Family, LanguageProbe, Level, VisualProbe
from ..defects import Defect, Inspection
from ..layout import RECORD_AGAIN
from ..list_columns import list_lengths, pad_lists

OF_CASES = ("case_id", "family", "level")
"""Columns that are null for references and set for conflicts and controls."""

ALLOWED: dict[str, tuple[str, ...]] = {
    "arm": tuple(Arm),
    "family": tuple(Family),
    "level": tuple(Level),
    "language_probe": tuple(LanguageProbe),
    "visual_probe": tuple(VisualProbe),
    "end": ("success", REFUSED, "horizon", "policy_error"),
    "refusal_kind": REFUSAL_KINDS,
}
"""Columns with a closed set of values. Suites are open: a user's own tasks may be rolled out too."""

NO_SUCH_STEP = "is a step that the episode does not have"

COST_ROUNDING = 1e-6
"""By how much a cost may differ from the sum of its amounts, which depends on their order."""


def check_episodes(table: pa.Table, where: Path, inspection: Inspection) -> pa.Table:
    """The episode rows without defect.

    Args:
        table: With the columns of ``episode_files.COLUMNS``.
        where: What messages call the place of the episodes.
        inspection: What to do with defects.

    Raises:
        DatasetError: For the first defect, unless the inspection is partial.
    """
    check = _Check(where=where, inspection=inspection)
    for rule in (
        _check_rows,
        _check_outcome,
        _check_refusal,
        _check_prompts,
        _check_final,
        _check_goals,
        _check_entities,
        _check_cost,
    ):
        table = rule(check, table)
    if inspection.partial:
        repeated = pa.chunked_array([_occur_again(table["rollout_id"].to_numpy().astype(str))])
        table = check.refuse(table, repeated, "rollout_id", "occurs twice", "keep one dataset of each run")
    return table


@dataclass(frozen=True, slots=True, kw_only=True)
class _Check:
    """Takes bad rows out of a table of episodes, or raises for the first."""

    where: Path
    inspection: Inspection

    def refuse(
        self, table: pa.Table, bad: pa.ChunkedArray, field: str, rule: str, todo: str = RECORD_AGAIN
    ) -> pa.Table:
        """The table without the rows where ``bad`` is true; null counts as bad."""
        bad = pc.fill_null(bad, fill_value=True)
        if not pc.any(bad).as_py():
            return table
        for row in table.filter(bad).select(["episode_index", "rollout_id", field]).to_pylist():
            value = str(row[field])
            shown = value if len(value) <= 60 else value[:57] + "..."
            episode = f"{row['episode_index']} ({row['rollout_id']})"
            message = f"{self.where}: episode {episode}, field '{field}': {shown!r} {rule}: {todo}"
            self.inspection.report(Defect(file=str(self.where), episode=episode, field=field, message=message))
        return table.filter(pc.invert(bad)).combine_chunks()


def _check_rows(check: _Check, table: pa.Table) -> pa.Table:
    may_lack = (name for name, read_as in OPTIONAL_COLUMNS.items() if read_as is None)
    nullable = {*OF_CASES, *may_lack, "success_step"}
    for name in table.column_names:
        if name not in nullable:
            table = check.refuse(table, pc.is_null(table[name]), name, "is empty")
    repeated = pa.chunked_array([_occur_again(table["episode_index"].to_numpy())])
    table = check.refuse(table, repeated, "episode_index", "occurs twice")
    for name, allowed in ALLOWED.items():
        unknown = pc.invert(pc.is_in(table[name], value_set=pa.array([*allowed, None], pa.string())))
        table = check.refuse(table, unknown, name, f"is none of {', '.join(allowed)}")
    nameless = pc.invert(pc.match_substring_regex(table["prompt"], f"^(?:{PROMPT_NAME.pattern})$"))
    table = check.refuse(table, nameless, "prompt", "is no name of a prompt condition")
    for name in OF_CASES:
        wrong = pc.not_equal(pc.is_null(table[name]), pc.equal(table["arm"], Arm.REFERENCE.value))
        table = check.refuse(table, wrong, name, "contradicts the field 'arm'")
    major = ROLLOUT_SCHEMA_VERSION.partition(".")[0] + "."
    other = pc.invert(pc.starts_with(table["schema_version"], major))
    return check.refuse(table, other, "schema_version", f"is not {major}x", "read it with the version that recorded it")


def _check_outcome(check: _Check, table: pa.Table) -> pa.Table:
    wrong = pc.xor(table["success"], pc.equal(table["end"], "success"))
    table = check.refuse(table, wrong, "end", "contradicts the field 'success'")
    wrong = pc.xor(table["success"], pc.is_valid(table["success_step"]))
    table = check.refuse(table, wrong, "success_step", "contradicts the field 'success'")
    too_long = pc.greater(table["length"], table["horizon"])
    table = check.refuse(table, too_long, "length", "is more than the horizon")
    table = check.refuse(table, _outside(table["success_step"], 1, table["length"]), "success_step", NO_SUCH_STEP)
    clipped = _outside(table["clipped_actions"], 0, table["length"])
    table = check.refuse(table, clipped, "clipped_actions", "is not between 0 and the episode's length")
    many = pc.greater(pc.list_value_length(table["targets"]), TARGET_SLOTS)
    return check.refuse(table, many, "targets", f"names more than {TARGET_SLOTS} targets")


def _check_refusal(check: _Check, table: pa.Table) -> pa.Table:
    """A refused rollout has kind, text and step of the refusal, and the steps of rest behind it; no other has."""
    for name in ("refusal_kind", "refusal_text", "refusal_step"):
        wrong = pc.xor(pc.is_valid(table[name]), pc.equal(table["end"], REFUSED))
        table = check.refuse(table, wrong, name, "contradicts the field 'end'")
    texts = table["refusal_text"].to_pylist()
    unfit = pa.chunked_array([[text is not None and not is_refusal_text(text) for text in texts]], pa.bool_())
    rule = f"is not one line of at most {LONGEST_REFUSAL} characters that can be printed"
    table = check.refuse(table, unfit, "refusal_text", rule)
    # A policy is asked while actions are left, so it cannot refuse at the horizon.
    last = pc.subtract(table["horizon"], 1)
    table = check.refuse(table, _outside(table["refusal_step"], 0, last), "refusal_step", NO_SUCH_STEP)
    rested = pc.add(pc.cast(table["refusal_step"], pa.int64()), REST_STEPS)
    rested = pc.min_element_wise(rested, table["horizon"], skip_nulls=False)
    other = pc.not_equal(pc.coalesce(rested, table["length"]), table["length"])
    rule = f"does not fit the episode's length, which is {REST_STEPS} more or the horizon"
    return check.refuse(table, other, "refusal_step", rule)


def _check_prompts(check: _Check, table: pa.Table) -> pa.Table:
    texts = pc.dictionary_encode(table["prompt_text"]).combine_chunks()
    hashes = pa.array([hashlib.sha256(text.encode()).hexdigest() for text in texts.dictionary.to_pylist()], pa.string())
    expected = hashes.take(texts.indices)
    wrong = pc.not_equal(table["prompt_sha256"], expected)
    rule = "is not the hash of prompt_text, so what the policy read is unknown"
    return check.refuse(table, wrong, "prompt_sha256", rule)


def _check_final(check: _Check, table: pa.Table) -> pa.Table:
    for name, width in (("final_eef_pos_m", 3), ("final_target_pos_m", 3 * TARGET_SLOTS)):
        lengths = np.asarray(pc.list_value_length(table[name]).to_numpy(), np.int64)
        targets = np.asarray(pc.list_value_length(table["targets"]).to_numpy(), np.int64)
        least = np.full(len(targets), 3) if name == "final_eef_pos_m" else 3 * targets
        wrong = pa.chunked_array([(lengths < least) | (lengths > width)])
        table = check.refuse(table, wrong, name, "does not hold the positions after the last action")
        broken = ~np.isfinite(pad_lists(table[name], width)).all(axis=1)
        table = check.refuse(table, pa.chunked_array([broken]), name, "is not finite")
    return table


def _check_entities(check: _Check, table: pa.Table) -> pa.Table:
    """Objects and fixtures of the scene, and where they are in the end: as many as there are slots, or not recorded."""
    for name in ("fixtures", "goal_entities", "final_object_pos_m", "final_gripper_contact"):
        wrong = pc.xor(pc.is_null(table[name]), pc.is_null(table["objects"]))
        table = check.refuse(table, wrong, name, "contradicts the field 'objects': both are recorded, or neither")
    for name, slots in (("objects", OBJECT_SLOTS), ("fixtures", FIXTURE_SLOTS)):
        many = pc.greater(list_lengths(table[name]), slots)
        table = check.refuse(table, many, name, f"names more than {slots} {name}")
    for name, width in (
        ("final_object_pos_m", 3 * OBJECT_SLOTS),
        ("final_object_quat_wxyz", 4 * OBJECT_SLOTS),
        ("final_gripper_contact", ENTITY_SLOTS),
    ):
        other = pc.and_(pc.is_valid(table[name]), pc.not_equal(list_lengths(table[name]), width))
        table = check.refuse(table, other, name, f"does not hold {width} numbers, as the state after the last action")
        broken = ~np.isfinite(pad_lists(table[name], width)).all(axis=1)
        table = check.refuse(table, pa.chunked_array([broken]), name, "is not finite")
    return table


def _check_goals(check: _Check, table: pa.Table) -> pa.Table:
    """The goals of the steps and when they were met: both recorded, or neither, one for one."""
    goals, met = table["step_goals"], table["step_goal_met"]
    wrong = pc.xor(pc.is_null(goals), pc.is_null(met))
    table = check.refuse(
        table, wrong, "step_goal_met", "contradicts the field 'step_goals': both are recorded, or neither"
    )
    counts = [list_lengths(table[name]) for name in ("step_goals", "step_goal_met")]
    table = check.refuse(
        table, pc.not_equal(*counts), "step_goal_met", "does not hold one number for each of step_goals"
    )
    width = int(pc.max(list_lengths(table["step_goal_met"])).as_py() or 0)
    steps = pad_lists(table["step_goal_met"], width)
    off = ((steps < -1) | (steps > np.asarray(table["length"].to_numpy())[:, None])).any(axis=1)
    return check.refuse(table, pa.chunked_array([off]), "step_goal_met", "holds a step that the episode does not have")


def _check_cost(check: _Check, table: pa.Table) -> pa.Table:
    """The cost, its amounts and its conditions: all recorded, or none."""
    for name in ("cost_amounts", "cost_spec"):
        wrong = pc.xor(pc.is_null(table[name]), pc.is_null(table["cost"]))
        table = check.refuse(table, wrong, name, "contradicts the field 'cost': both are recorded, or neither")
    known = np.asarray(pc.is_valid(table["cost"]).to_numpy(), np.bool_)
    width = int(pc.max(list_lengths(table["cost_amounts"])).as_py() or 0)
    amounts = pad_lists(table["cost_amounts"], width)
    cost = np.asarray(table["cost"].to_numpy(), np.float64)
    off = known & ~((amounts >= 0).all(axis=1) & (np.abs(amounts.sum(axis=1) - cost) <= COST_ROUNDING))
    return check.refuse(table, pa.chunked_array([off]), "cost", "is not the sum of its amounts, none below 0")


def _outside(steps: pa.ChunkedArray, first: int, last: pa.ChunkedArray) -> pa.ChunkedArray:
    """Whether each number is below the first or above the last that can be; null is neither."""
    return pc.or_(pc.less(pc.coalesce(steps, first), first), pc.greater(pc.coalesce(steps, first), last))


def _occur_again(values: npt.NDArray[Any]) -> BoolArray:
    """Whether each value occurs more than once, shape (N,)."""
    _, number, count = np.unique(values, return_inverse=True, return_counts=True)
    return np.asarray(count[number] > 1, np.bool_)
