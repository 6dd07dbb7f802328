"""Replay: execute recorded actions again, without the policy, and compare what happens with what was recorded."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ..toolkit.errors import InvalidInputError
from ..toolkit.simulation.scene import Scene
from ..toolkit.simulation.scene_pool import ScenePool
from ..toolkit.simulation.targets import target_positions
from .rollouts import RolloutSet, read_rollouts

REPLAYED = ("action", "observation.eef_pos_m", "observation.joint_pos_rad", "observation.target_pos_m")
COMPARED = REPLAYED[1:]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayCheck:
    """What replaying a rollout showed.

    Attributes:
        rollout_id: Which rollout.
        difference: The first thing that differs, with values; None where everything agrees.
        largest: Largest difference of a recorded position, in m and rad; NaN where nothing could be executed.
    """

    rollout_id: str
    difference: str | None
    largest: float


def replay_rollouts(
    folder: Path,
    *,
    sample: int | None = None,
    seed: int = 0,
    tolerance: float = 0.0,
    scenes: ScenePool | None = None,
) -> tuple[ReplayCheck, ...]:
    """Replay the rollouts of a data set, or a random sample.

    On the machine that recorded them, with the same software, positions agree to the last bit (tolerance 0). What
    tolerance other machines need has not been measured.

    Args:
        folder: The data set.
        sample: Replay only that many; all by default.
        seed: Seed of the draw.
        tolerance: Largest difference of a recorded position that still counts as equal, in m and rad.
        scenes: Warm scenes to use.

    Raises:
        DatasetError: The data set is damaged.
        InvalidInputError: The sample is not positive.
    """
    if sample is not None and sample < 1:
        raise InvalidInputError(f"--sample {sample}: at least 1 is needed")
    rollouts = read_rollouts(folder, REPLAYED)
    rows = np.arange(rollouts.episodes.num_rows)
    if sample is not None and sample < len(rows):
        rows = np.sort(np.random.default_rng(seed).choice(rows, size=sample, replace=False))
    pool = scenes or ScenePool()
    order = sorted(rows.tolist(), key=lambda row: str(rollouts.episodes["base_task"][row]))
    checks = {row: _replay(rollouts, row, pool, tolerance) for row in order}
    return tuple(checks[row] for row in rows.tolist())


def _replay(rollouts: RolloutSet, row: int, pool: ScenePool, tolerance: float) -> ReplayCheck:
    episode: dict[str, Any] = rollouts.episodes.slice(row, 1).to_pylist()[0]
    scene = pool.scene(episode["suite"], episode["base_task"])
    scene.reset(episode["init_state"])
    if scene.scene_sha256 != episode["scene_sha256"]:
        found = f"scene_sha256 is {scene.scene_sha256[:12]} here, {episode['scene_sha256'][:12]} as recorded"
        return ReplayCheck(rollout_id=episode["rollout_id"], difference=found, largest=float("nan"))
    differences = list(_differences(rollouts, row, scene, episode))
    largest = max(size for size, _ in differences)
    beyond = [said for size, said in differences if size > tolerance]
    outcome = _outcome_difference(scene, episode, len(differences), tolerance)
    return ReplayCheck(rollout_id=episode["rollout_id"], difference=beyond[0] if beyond else outcome, largest=largest)


def _differences(rollouts: RolloutSet, row: int, scene: Scene, episode: dict[str, Any]) -> Iterator[tuple[float, str]]:
    """Size of the difference at each step, and where it is; executes the actions on the way."""
    actions = rollouts.rollout_feature("action", row)
    recorded = {name: rollouts.rollout_feature(name, row) for name in COMPARED}
    for step, action in enumerate(actions):
        present = _present(scene, episode["targets"])
        name, size = max(
            (
                (name, float(np.abs(present[name] - recorded[name][step][: len(present[name])]).max()))
                for name in COMPARED
            ),
            key=lambda item: item[1],
        )
        yield size, f"{name} at step {step} is off by {size:.2g}"
        scene.step(action)


def _present(scene: Scene, targets: list[str]) -> dict[str, Any]:
    return {
        "observation.eef_pos_m": scene.grip_pos().astype(np.float32),
        "observation.joint_pos_rad": scene.joint_pos_rad().astype(np.float32),
        "observation.target_pos_m": target_positions(scene, targets).ravel().astype(np.float32),
    }


def _outcome_difference(scene: Scene, episode: dict[str, Any], steps: int, tolerance: float) -> str | None:
    reached = scene.succeeded()
    if reached != episode["success"]:
        said = "is reached" if reached else "is not reached"
        return f"success is recorded as {episode['success']}, but the goal {said} after {steps} actions"
    final = np.abs(scene.grip_pos().astype(np.float32) - np.array(episode["final_eef_pos_m"], dtype=np.float32)).max()
    return f"final_eef_pos_m is off by {final:.2g}" if final > tolerance else None
