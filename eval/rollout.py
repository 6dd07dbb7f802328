"""One closed-loop rollout: reset, ask the policy, execute, record."""

from __future__ import annotations

import functools
import json
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from ..builders.rollout_schema import FRAME_FEATURES, ROLLOUT_SCHEMA_VERSION, TARGET_SLOTS, EpisodeRecord, Rollout
from ..toolkit.errors import PolicyError
from ..toolkit.prompts import prompt_sha256, prompt_text
from ..toolkit.records import PROTOCOL_VERSION, Instance
from ..toolkit.simulation.scene import Scene
from ..toolkit.simulation.targets import target_positions
from .policies.policy import Array, Episode, Image, Observation, Policy, PolicyInfo
from .provenance import Versions

ACTION_WIDTH = 7

Array32 = npt.NDArray[np.float32]


def rollout_id(policy: PolicyInfo, instance: Instance, init_state: int, seed: int) -> str:
    """Unique name of a rollout: policy, instance, initial state and seed."""
    return f"{policy.name}/{instance.instance_id}/init{init_state}/seed{seed}"


def run_rollout(
    scene: Scene, policy: Policy, instance: Instance, *, init_state: int, seed: int, versions: Versions
) -> Rollout:
    """Execute one rollout to success or horizon.

    Args:
        scene: The scene of the instance's base task; it is reset here.
        policy: The policy.
        instance: What it is told.
        init_state: LIBERO's number of the initial state.
        seed: Seed for the policy.
        versions: Installed software.

    Raises:
        PolicyError: The policy raised, or its actions cannot be executed.
    """
    scene.reset(init_state)
    settled = scene.state().sha256()
    text = prompt_text(instance.instruction, instance.prompt)
    episode = Episode(instruction=text, init_state=init_state, seed=seed, instance=instance, scene=scene)
    where = rollout_id(policy.info, instance, init_state, seed)
    frames = _Frames(scene, instance.targets)
    try:
        policy.reset(episode)
    except Exception as error:
        raise PolicyError(f"{where}: the policy raised in reset: {_said(error)}") from error
    success_step = _execute(scene, policy, instance.horizon, frames, where)
    final_eef, final_targets = frames.positions()
    return Rollout(
        episode=EpisodeRecord(
            rollout_id=where,
            arm=instance.arm,
            instance_id=instance.instance_id,
            case_id=instance.case_id,
            pair_id=instance.pair_id,
            suite=instance.suite,
            base_task=instance.base_task,
            base_task_index=instance.base_task_index,
            family=instance.family,
            level=instance.level,
            prompt=instance.prompt,
            instruction=instance.instruction,
            prompt_text=text,
            prompt_sha256=prompt_sha256(text),
            init_state=init_state,
            seed=seed,
            horizon=instance.horizon,
            success=success_step is not None,
            success_step=success_step,
            end="horizon" if success_step is None else "success",
            targets=instance.targets,
            final_eef_pos_m=tuple(final_eef.tolist()),
            final_target_pos_m=tuple(final_targets.tolist()),
            policy_name=policy.info.name,
            policy_revision=policy.info.revision,
            policy_settings=json.dumps(policy.info.settings, sort_keys=True),
            scene_sha256=scene.scene_sha256,
            settled_state_sha256=settled,
            protocol_version=PROTOCOL_VERSION,
            tasks_version=instance.tasks_version,
            schema_version=ROLLOUT_SCHEMA_VERSION,
            conflictvla_version=versions.conflictvla,
            libero_distribution=versions.libero_distribution,
            mujoco_version=versions.mujoco,
            robosuite_version=versions.robosuite,
            numpy_version=versions.numpy,
        ),
        frames=frames.arrays(),
        sim_states=frames.sim_states(),
    )


def _execute(scene: Scene, policy: Policy, horizon: int, frames: _Frames, where: str) -> int | None:
    """Run the closed loop; returns after how many actions the goal was reached, or None."""
    done = 0
    while done < horizon:
        for action in _ask(policy, observe(scene, done), where)[: horizon - done]:
            # What is recorded is what is executed: rounded to float32 first.
            executed = np.clip(action, -1.0, 1.0).astype(np.float32)
            frames.append(executed)
            scene.step(executed)
            done += 1
            if scene.succeeded():
                return done
    return None


def _ask(policy: Policy, observation: Observation, where: str) -> Array:
    """A chunk of actions from the policy, checked."""
    at = f"{where}: step {observation.step}"
    try:
        chunk = np.asarray(policy.act(observation), dtype=np.float64)
    except Exception as error:
        raise PolicyError(f"{at}: the policy raised: {_said(error)}") from error
    if chunk.ndim != 2 or chunk.shape[0] == 0 or chunk.shape[1] != ACTION_WIDTH:
        raise PolicyError(f"{at}: actions have shape {chunk.shape}; return (n, {ACTION_WIDTH}) with n >= 1")
    if not np.isfinite(chunk).all():
        raise PolicyError(f"{at}: actions hold NaN or infinity; return finite numbers in [-1, 1]")
    return chunk


def observe(scene: Scene, step: int) -> Observation:
    """What the policy sees of the scene now."""
    pos, quat, fingers = scene.grip_pos(), scene.grip_quat_wxyz(), scene.gripper_pos_m()
    return Observation(
        step=step,
        eef_pos_m=pos,
        eef_quat_wxyz=quat,
        joint_pos_rad=scene.joint_pos_rad(),
        gripper_pos_m=fingers,
        state=np.concatenate([pos, axis_angle(quat), fingers]),
        camera=functools.partial(_view, scene),
    )


def _view(scene: Scene, camera: str, size: int) -> Image:
    """Rendering is imported and set up only when a policy looks."""
    from ..toolkit.simulation.rendering import camera_of

    return camera_of(scene, size).image(camera)


def axis_angle(quat_wxyz: Array) -> Array:
    """A unit quaternion as axis times angle, the angle in [0, 2 pi] as in robosuite: antipodes are kept apart."""
    w = float(np.clip(quat_wxyz[0], -1.0, 1.0))
    sine = np.sqrt(1.0 - w * w)
    if sine < 1e-9:
        return np.zeros(3)
    vector: Array = quat_wxyz[1:] * (2.0 * np.arccos(w) / sine)
    return vector


def positions(scene: Scene, targets: Sequence[str]) -> tuple[Array32, Array32]:
    """What is recorded of the positions now: gripper (3,) and targets (3 * TARGET_SLOTS,), unused slots zero."""
    slots = np.zeros(3 * TARGET_SLOTS, dtype=np.float32)
    slots[: 3 * len(targets)] = target_positions(scene, tuple(targets)).ravel()
    return scene.grip_pos().astype(np.float32), slots


def observed_features(scene: Scene, targets: Sequence[str]) -> dict[str, Array32]:
    """What a frame records of the present state: every feature of ``FRAME_FEATURES`` but the action."""
    seen = observe(scene, 0)
    eef, slots = positions(scene, targets)
    row: dict[str, npt.NDArray[np.floating]] = {
        "observation.state": seen.state,
        "observation.eef_pos_m": eef,
        "observation.eef_quat_wxyz": seen.eef_quat_wxyz,
        "observation.joint_pos_rad": seen.joint_pos_rad,
        "observation.gripper_pos_m": seen.gripper_pos_m,
        "observation.target_pos_m": slots,
    }
    return {name: value.astype(np.float32) for name, value in row.items()}


class _Frames:
    """Frames of one rollout while it runs."""

    def __init__(self, scene: Scene, targets: tuple[str, ...]) -> None:
        self._scene, self._targets = scene, targets
        self._rows: dict[str, list[npt.NDArray[np.float32]]] = {name: [] for name in FRAME_FEATURES}
        self._states: list[Array] = []

    def positions(self) -> tuple[Array32, Array32]:
        """Gripper position (3,) and target positions (3 * TARGET_SLOTS,), unused slots zero."""
        return positions(self._scene, self._targets)

    def append(self, action: Array32) -> None:
        """Record the present state and the action about to be executed."""
        for name, value in {"action": action, **observed_features(self._scene, self._targets)}.items():
            self._rows[name].append(value)
        self._states.append(self._scene.physics())

    def sim_states(self) -> Array:
        """Physics states before each action and now, shape (H + 1, n)."""
        return np.stack([*self._states, self._scene.physics()])

    def arrays(self) -> dict[str, npt.NDArray[np.float32]]:
        """The frames as arrays of shape (H, width)."""
        return {
            name: np.stack(rows) if rows else np.zeros((0, FRAME_FEATURES[name][0]), dtype=np.float32)
            for name, rows in self._rows.items()
        }


def _said(error: Exception) -> str:
    first = str(error).strip().splitlines()
    return f"{type(error).__name__}: {first[0]}" if first else type(error).__name__
