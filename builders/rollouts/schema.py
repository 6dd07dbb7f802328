"""What a recorded rollout holds: one set of names for the recorder, the reader and every dataset in between.

Rollouts are stored as a LeRobotDataset v3.0: one row a frame under ``data/``, one row an episode under
``meta/episodes/``. A frame holds the state *before* its action, so a rollout of H executed actions has H frames; the
state after the last action is in the episode's row (``final_*``), since the closest approach may be there.

Features have one width in every scene, as LeRobot asks. Scenes differ in their objects, so objects and fixtures have
slots, and each episode names what is in them.
"""

from __future__ import annotations

from dataclasses import dataclass

from ...toolkit.arrays import Float32Array, FloatArray
from ...toolkit.records import VisualProbe
from .episode_record import EpisodeRecord

ROLLOUT_SCHEMA_VERSION = "2.0"
"""Version of the columns of episodes and the features of frames."""

TARGET_SLOTS = 4
"""Most targets of a base task; unused slots are zero, and ``targets`` says how many are used."""

OBJECT_SLOTS = 10
"""Most movable objects of a scene; LIBERO's suites have up to 8, variants of them up to 9."""

FIXTURE_SLOTS = 4
"""Most fixtures of a scene; LIBERO's suites have up to 3 beside the table."""

ENTITY_SLOTS = OBJECT_SLOTS + FIXTURE_SLOTS
"""Slots of everything that the gripper's contacts are recorded for: objects first, then fixtures."""

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
        ENTITY_SLOTS,
        (*(f"object_{k}" for k in range(OBJECT_SLOTS)), *(f"fixture_{k}" for k in range(FIXTURE_SLOTS))),
    ),
}
"""Float32 features of a frame: width and component names. ``action`` is as executed, after clipping to [-1, 1].
``object_*`` are the bodies of the episode's ``objects``, in that order. ``gripper_contact`` is, for each of its
``objects`` and then its ``fixtures``, 0 where the gripper does not touch it, 1 where it does, and 2 where both fingers
do. Unused slots are zero."""

OPTIONAL_FEATURES = ("observation.object_pos_m", "observation.object_quat_wxyz", "observation.gripper_contact")
"""Features that recordings of other software may lack; no measure of the protocol needs them."""

SIM_STATES = "sim_states"
"""Folder beside ``data`` with the simulator's states, for replay and rendering: parquet with the columns
``episode_index``, ``frame_index`` (H + 1 rows an episode) and ``state``. LeRobot's reader passes it by."""


def file_stem(rollout_id: str) -> str:
    """A rollout's id as the beginning of a file name: slashes cannot stand in one."""
    return rollout_id.replace("/", "+")


def rollout_name(
    policy_name: str, instance_id: str, init_state: int, seed: int, visual_probe: str = VisualProbe.V0
) -> str:
    """The ``rollout_id``: unique among the rollouts of all policies of different names."""
    name = f"{policy_name}/{instance_id}/init{init_state}/seed{seed}"
    return name if visual_probe == VisualProbe.V0 else f"{name}/{visual_probe}"


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
