"""One recorded rollout as a record, and so as a row of ``meta/episodes``: the columns follow from the fields."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, get_args, get_origin

import pyarrow as pa

from ...toolkit.records import Arm, Family, LanguageProbe, Level, VisualProbe
from ..record_fields import field_hints, row_reader, without_none

Int32 = Annotated[int, pa.int32()]
Int64 = Annotated[int, pa.int64()]
Float32s = Annotated[tuple[float, ...], pa.list_(pa.float32())]
Int32s = Annotated[tuple[int, ...], pa.list_(pa.int32())]


@dataclass(frozen=True, slots=True, kw_only=True)
class EpisodeRecord:
    """Who did what, where, under which versions, and how it ended. Recordings of other software may lack some fields.

    Attributes:
        rollout_id: See ``schema.rollout_name``.
        case_id: Of a control the case that it repairs; None for references, as ``family`` and ``level`` are.
        prompt: Name of the prompt condition.
        prompt_text: The exact string that the policy received.
        prompt_version: Version of the condition's words.
        visual_settings: What was drawn for the visual probe, as JSON.
        success_step: Executed actions until the reference goal was reached; None where it was not.
        end: Why the rollout ended: ``success``, ``refused``, ``horizon`` or ``policy_error``.
        moving_at_end: Whether the arm moved in the last second; see ``eval.measures.process.stops_for_good``.
        step_goals: What each step of the instruction's plan brings about, such as ``on(akita_black_bowl_1, plate_1)``;
            empty for a step without a goal in the scene. See ``toolkit.step_goals``.
        step_goal_met: After how many executed actions each was first met: 0 at the start, -1 for never.
        refusal_kind: ``refusal`` or ``question``; None, as the next two are, where the policy did not refuse.
        refusal_text: What the policy said, in one line.
        refusal_step: After how many executed actions; behind them the arm rests for ``REST_STEPS`` more.
        targets: Names of the used target slots.
        final_eef_pos_m: Gripper site after the last action, shape (3,).
        final_target_pos_m: Targets after the last action, slot by slot, as in the frame feature.
        objects: Names of the used object slots.
        fixtures: Names of the used fixture slots.
        goal_entities: Those of the objects and fixtures that the reference goal is about.
        clipped_actions: How many executed actions the policy gave outside [-1, 1].
        cost: What the rollout pays (CC) by the conditions of ``cost_spec``.
        cost_amounts: What each condition contributes to it.
        cost_spec: A ``(:cost ...)`` block of constrained BDDL.
        policy_family: The policy's architecture family, such as ``Continuous-Action VLAs``; None where unknown.
        settled_state_sha256: Hash of the complete simulator state after settling.
        rounding_kernel: OpenBLAS kernel of the process: under the same one and the same versions, a rollout replays to
            the last bit.
    """

    rollout_id: str
    arm: Arm
    instance_id: str
    case_id: str | None
    pair_id: str
    suite: str
    base_task: str
    base_task_index: Int32
    family: Family | None
    level: Level | None
    prompt: str
    instruction: str
    prompt_text: str
    prompt_sha256: str
    prompt_version: str | None
    language_probe: LanguageProbe
    visual_probe: VisualProbe
    visual_settings: str
    init_state: Int32
    seed: Int64
    horizon: Int32
    success: bool
    success_step: Int32 | None
    end: str
    moving_at_end: bool | None
    step_goals: tuple[str, ...] | None
    step_goal_met: Int32s | None
    refusal_kind: str | None
    refusal_text: str | None
    refusal_step: Int32 | None
    targets: tuple[str, ...]
    final_eef_pos_m: Float32s
    final_target_pos_m: Float32s
    objects: tuple[str, ...] | None
    fixtures: tuple[str, ...] | None
    goal_entities: tuple[str, ...] | None
    final_object_pos_m: Float32s | None
    final_object_quat_wxyz: Float32s | None
    final_gripper_contact: Float32s | None
    clipped_actions: Int32 | None
    cost: float | None
    cost_amounts: tuple[float, ...] | None
    cost_spec: str | None
    policy_name: str
    policy_revision: str
    policy_settings: str
    policy_family: str | None
    scene_sha256: str
    settled_state_sha256: str
    protocol_version: str
    tasks_version: str
    schema_version: str
    conflictvla_version: str
    libero_distribution: str
    mujoco_version: str
    robosuite_version: str
    numpy_version: str
    rounding_kernel: str | None

    @classmethod
    def from_row(cls, row: Mapping[str, Any]) -> EpisodeRecord:
        """The record of a row with ``EPISODE_COLUMNS``, as Arrow or JSON gives it; other columns are left out."""
        return _read_row(row)


def episodes_table(episodes: Sequence[EpisodeRecord]) -> pa.Table:
    """The records as an Arrow table with ``EPISODE_COLUMNS``."""
    columns = {name: [getattr(episode, name) for episode in episodes] for name in EPISODE_COLUMNS}
    return pa.table(columns, schema=pa.schema(list(EPISODE_COLUMNS.items())))


def _arrow_type(hint: Any) -> pa.DataType:
    kind = without_none(hint)
    if get_origin(kind) is Annotated:
        return get_args(kind)[1]
    if get_origin(kind) is tuple:
        return pa.list_(_arrow_type(get_args(kind)[0]))
    if issubclass(kind, str):
        return pa.string()
    return {bool: pa.bool_(), float: pa.float64()}[kind]


_read_row = row_reader(EpisodeRecord)

EPISODE_COLUMNS: dict[str, pa.DataType] = {name: _arrow_type(hint) for name, hint in field_hints(EpisodeRecord).items()}
"""Columns added to LeRobot's ``meta/episodes``, one for each field of ``EpisodeRecord``, in its order."""

VERSION_FIELDS = (
    "protocol_version",
    "tasks_version",
    "schema_version",
    "conflictvla_version",
    "libero_distribution",
    "mujoco_version",
    "robosuite_version",
    "numpy_version",
)
"""Columns that say by which definitions and software a rollout was made."""

OPTIONAL_COLUMNS: dict[str, str | None] = {
    "prompt_version": None,
    "language_probe": LanguageProbe.W0.value,
    "visual_probe": VisualProbe.V0.value,
    "visual_settings": "{}",
    "moving_at_end": None,
    "step_goals": None,
    "step_goal_met": None,
    "refusal_kind": None,
    "refusal_text": None,
    "refusal_step": None,
    "objects": None,
    "fixtures": None,
    "goal_entities": None,
    "final_object_pos_m": None,
    "final_object_quat_wxyz": None,
    "final_gripper_contact": None,
    "clipped_actions": None,
    "cost": None,
    "cost_amounts": None,
    "cost_spec": None,
    "rounding_kernel": None,
    "policy_family": None,
}
"""Columns that recordings of other software may lack, and as what they are then read."""

PROBES = {"language_probe": LanguageProbe.W0.value, "visual_probe": VisualProbe.V0.value}
"""Columns of probes, and their value where there is none."""
