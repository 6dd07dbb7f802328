"""What a recorded rollout holds: one set of names for the recorder, the reader and every dataset in between.

Rollouts are kept as a LeRobotDataset v3.0: one row a frame under ``data/``, one row an episode under
``meta/episodes/``. A frame holds the state *before* its action, so a rollout of H executed actions has H frames; the
state after the last action is kept with the episode (``final_*``), since the closest approach may be there.

Features have one width in every scene, as LeRobot asks. Scenes differ in their objects, so objects and fixtures have
slots, and each episode names what is in them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from ...toolkit.arrays import Float32Array, FloatArray
from ...toolkit.records import Arm, Family, LanguageProbe, Level, Prompt, VisualProbe

ROLLOUT_SCHEMA_VERSION = "1.3"
"""1.1 adds what stands in the scene and what is touched, 1.2 the probes and the cost, 1.3 how the process rounds.
Earlier recordings are read without: see ``ADDED_FEATURES`` and ``ADDED_COLUMNS``."""

TARGET_SLOTS = 4
"""Most targets of a base task; unused slots are zero, and ``targets`` says how many are used."""
OBJECT_SLOTS = 10
"""Most movable objects of a scene; LIBERO's suites have up to 8, variants of them up to 9."""

FIXTURE_SLOTS = 4
"""Most fixtures of a scene; LIBERO's suites have up to 3 beside the table."""

THING_SLOTS = OBJECT_SLOTS + FIXTURE_SLOTS
"""Slots of everything that the gripper's contacts are told apart by: objects first, then fixtures."""


FRAME_FEATURES: dict[str, tuple[int, tuple[str, ...]]] = {
    "observation.state": (8, ("x", "y", "z", "axis_angle_x", "axis_angle_y", "axis_angle_z", "finger_1", "finger_2")),
    "action": (7, ("x", "y", "z", "axis_angle_x", "axis_angle_y", "axis_angle_z", "gripper")),
    "observation.eef_pos_m": (3, ("x", "y", "z")),
    "observation.eef_quat_wxyz": (4, ("w", "x", "y", "z")),
    "observation.joint_pos_rad": (7, tuple(f"joint_{i}" for i in range(1, 8))),
    "observation.gripper_pos_m": (2, ("finger_1", "finger_2")),
    "observation.target_pos_m": (
        3 * TARGET_SLOTS,
        tuple(f"target_{k}_{axis}" for k in range(TARGET_SLOTS) for axis in "xyz"),
    ),
    "observation.object_pos_m": (
        3 * OBJECT_SLOTS,
        tuple(f"object_{k}_{axis}" for k in range(OBJECT_SLOTS) for axis in "xyz"),
    ),
    "observation.object_quat_wxyz": (
        4 * OBJECT_SLOTS,
        tuple(f"object_{k}_{part}" for k in range(OBJECT_SLOTS) for part in "wxyz"),
    ),
    "observation.gripper_contact": (
        THING_SLOTS,
        (*(f"object_{k}" for k in range(OBJECT_SLOTS)), *(f"fixture_{k}" for k in range(FIXTURE_SLOTS))),
    ),
}
"""Float32 features of a frame: width and component names. ``action`` is as executed, after clipping to [-1, 1].
``object_*`` are the bodies of the episode's ``objects``, in that order. ``gripper_contact`` is, for each of its
``objects`` and then its ``fixtures``, 0 where the gripper does not touch it, 1 where it does, and 2 where both fingers
do. Unused slots are zero."""

ADDED_FEATURES = ("observation.object_pos_m", "observation.object_quat_wxyz", "observation.gripper_contact")
"""Features that recordings of schema 1.0 lack."""

SIM_STATES = "sim_states"
"""Folder beside ``data`` with the simulator's states, for replay and rendering: parquet with the columns
``episode_index``, ``frame_index`` (H + 1 rows an episode) and ``state``. LeRobot's reader passes it by."""

EPISODE_COLUMNS: dict[str, pa.DataType] = {
    "rollout_id": pa.string(),
    "arm": pa.string(),
    "instance_id": pa.string(),
    "case_id": pa.string(),
    "pair_id": pa.string(),
    "suite": pa.string(),
    "base_task": pa.string(),
    "base_task_index": pa.int32(),
    "family": pa.string(),
    "level": pa.string(),
    "prompt": pa.string(),
    "instruction": pa.string(),
    "prompt_text": pa.string(),
    "prompt_sha256": pa.string(),
    "language_probe": pa.string(),
    "visual_probe": pa.string(),
    "visual_settings": pa.string(),
    "init_state": pa.int32(),
    "seed": pa.int64(),
    "horizon": pa.int32(),
    "success": pa.bool_(),
    "success_step": pa.int32(),
    "end": pa.string(),
    "targets": pa.list_(pa.string()),
    "final_eef_pos_m": pa.list_(pa.float32()),
    "final_target_pos_m": pa.list_(pa.float32()),
    "objects": pa.list_(pa.string()),
    "fixtures": pa.list_(pa.string()),
    "goal_things": pa.list_(pa.string()),
    "final_object_pos_m": pa.list_(pa.float32()),
    "final_object_quat_wxyz": pa.list_(pa.float32()),
    "final_gripper_contact": pa.list_(pa.float32()),
    "clipped_actions": pa.int32(),
    "cost": pa.float64(),
    "cost_amounts": pa.list_(pa.float64()),
    "cost_spec": pa.string(),
    "policy_name": pa.string(),
    "policy_revision": pa.string(),
    "policy_settings": pa.string(),
    "scene_sha256": pa.string(),
    "settled_state_sha256": pa.string(),
    "protocol_version": pa.string(),
    "tasks_version": pa.string(),
    "schema_version": pa.string(),
    "conflictvla_version": pa.string(),
    "libero_distribution": pa.string(),
    "mujoco_version": pa.string(),
    "robosuite_version": pa.string(),
    "numpy_version": pa.string(),
    "rounding_kernel": pa.string(),
}
"""Columns added to LeRobot's ``meta/episodes``. ``case_id``, ``family`` and ``level`` are null for references;
``success_step`` counts executed actions and is null where the goal was not reached; ``end`` says why the rollout
ended: ``success``, ``horizon`` or ``policy_error``. ``visual_settings`` is what was drawn for the visual probe, as
JSON. ``objects`` and ``fixtures`` name the slots that are used,
``goal_things`` those of them that the reference goal is about, and ``clipped_actions`` counts the executed actions that
the policy gave outside [-1, 1]. ``cost`` is what the rollout pays (CC) by the conditions of ``cost_spec``, a
``(:cost ...)`` block of constrained BDDL, and ``cost_amounts`` what each of them contributes. ``rounding_kernel`` is
the OpenBLAS kernel of the process: under the same one, with the same versions, a rollout replays to the last bit."""


def rollout_name(
    policy_name: str, instance_id: str, init_state: int, seed: int, visual_probe: str = VisualProbe.V0
) -> str:
    """The ``rollout_id``: unique among the rollouts of all policies of different names."""
    name = f"{policy_name}/{instance_id}/init{init_state}/seed{seed}"
    return name if visual_probe == VisualProbe.V0 else f"{name}/{visual_probe}"


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

ADDED_COLUMNS: dict[str, str | None] = {
    "language_probe": LanguageProbe.W0.value,
    "visual_probe": VisualProbe.V0.value,
    "visual_settings": "{}",
    "objects": None,
    "fixtures": None,
    "goal_things": None,
    "final_object_pos_m": None,
    "final_object_quat_wxyz": None,
    "final_gripper_contact": None,
    "clipped_actions": None,
    "cost": None,
    "cost_amounts": None,
    "cost_spec": None,
    "rounding_kernel": None,
}
"""Columns that earlier recordings lack, and as what they are then read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EpisodeRecord:
    """One row of ``meta/episodes``, field for field ``EPISODE_COLUMNS``."""

    rollout_id: str
    arm: Arm
    instance_id: str
    case_id: str | None
    pair_id: str
    suite: str
    base_task: str
    base_task_index: int
    family: Family | None
    level: Level | None
    prompt: Prompt
    instruction: str
    prompt_text: str
    prompt_sha256: str
    language_probe: LanguageProbe
    visual_probe: VisualProbe
    visual_settings: str
    init_state: int
    seed: int
    horizon: int
    success: bool
    success_step: int | None
    end: str
    targets: tuple[str, ...]
    final_eef_pos_m: tuple[float, ...]
    final_target_pos_m: tuple[float, ...]
    objects: tuple[str, ...]
    fixtures: tuple[str, ...]
    goal_things: tuple[str, ...]
    final_object_pos_m: tuple[float, ...]
    final_object_quat_wxyz: tuple[float, ...]
    final_gripper_contact: tuple[float, ...]
    clipped_actions: int
    cost: float
    cost_amounts: tuple[float, ...]
    cost_spec: str
    policy_name: str
    policy_revision: str
    policy_settings: str
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
    rounding_kernel: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Rollout:
    """A finished rollout: its episode row and its frames.

    Attributes:
        episode: Who did what, where, under which versions, and how it ended.
        frames: For each name in ``FRAME_FEATURES`` an array of shape (H, width), float32.
        sim_states: MuJoCo's full physics state before each action and after the last, shape (H + 1, n), float64.
    """

    episode: EpisodeRecord
    frames: dict[str, Float32Array]
    sim_states: FloatArray


def episodes_table(episodes: list[EpisodeRecord]) -> pa.Table:
    """The episode rows as an Arrow table with the columns and types of ``EPISODE_COLUMNS``."""
    columns: dict[str, list[Any]] = {name: [getattr(episode, name) for episode in episodes] for name in EPISODE_COLUMNS}
    schema = pa.schema(list(EPISODE_COLUMNS.items()))
    return pa.table(columns, schema=schema)
