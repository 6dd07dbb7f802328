"""Replay: execute recorded actions again, without the policy, and compare what happens with what was recorded."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ..builders.rollout_schema import FRAME_FEATURES, SIM_STATES
from ..builders.sim_states import read_sim_states
from ..toolkit.errors import InvalidInputError
from ..toolkit.simulation.scene import Scene
from ..toolkit.simulation.scene_pool import ScenePool
from .rollout import observed_features, positions
from .rollouts import RolloutSet, read_rollouts

REPLAYED = ("action", "observation.eef_pos_m", "observation.joint_pos_rad", "observation.target_pos_m")
"""Features that a recording needs to be replayed; the others are compared where it has them."""

SIM_STATE = "sim_state"
FINAL = ("final_eef_pos_m", "final_target_pos_m")

Array = npt.NDArray[np.float64]


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
    rollouts = read_rollouts(folder, REPLAYED, optional=[name for name in FRAME_FEATURES if name not in REPLAYED])
    rows = list(range(len(rollouts)))
    if sample is not None:
        rows = drawn(len(rows), sample, seed)
    checks = replay_rows(folder, rollouts, rows, tolerance=tolerance, scenes=scenes)
    return tuple(checks[row] for row in rows)


def drawn(count: int, sample: int, seed: int) -> list[int]:
    """Which of ``count`` rollouts a sample replays, sorted; all where there are no more."""
    if sample >= count:
        return list(range(count))
    return sorted(np.random.default_rng(seed).choice(count, size=sample, replace=False).tolist())


def replay_rows(
    folder: Path,
    rollouts: RolloutSet,
    rows: Sequence[int],
    *,
    tolerance: float = 0.0,
    scenes: ScenePool | None = None,
    progress: Callable[[str], None] | None = None,
) -> dict[int, ReplayCheck]:
    """Replay some rollouts of one data set; see ``replay_rollouts``.

    Args:
        folder: The data set, for the simulator's states where it has them.
        rollouts: Its rollouts, read with at least ``REPLAYED``.
        rows: Which of them.
        tolerance: See ``replay_rollouts``.
        scenes: Warm scenes to use.
        progress: Told each rollout's id when it was replayed.
    """
    pool, checks = scenes or ScenePool(), {}
    has_states = (folder / SIM_STATES).is_dir()
    for row in sorted(rows, key=lambda row: str(rollouts.episodes["base_task"][row])):
        states = read_sim_states(folder, [row])[row] if has_states else None
        checks[row] = _replay(rollouts, row, states, pool, tolerance)
        if progress:
            progress(checks[row].rollout_id)
    return checks


def _replay(rollouts: RolloutSet, row: int, states: Array | None, pool: ScenePool, tolerance: float) -> ReplayCheck:
    episode: dict[str, Any] = rollouts.episodes.slice(row, 1).to_pylist()[0]
    scene = pool.scene(episode["suite"], episode["base_task"])
    scene.reset(episode["init_state"])
    found = _start_difference(scene, episode, tolerance)
    steps = len(rollouts.rollout_feature("action", row))
    if states is not None and states.shape != (steps + 1, len(scene.physics())):
        found = f"{SIM_STATE} has shape {states.shape}, but {steps} actions give {steps + 1} states of this scene"
    if found is not None:
        return ReplayCheck(rollout_id=episode["rollout_id"], difference=found, largest=float("nan"))
    differences = list(_differences(rollouts, row, states, scene, episode))
    largest = max(size for size, _ in differences)
    # NaN is beyond any tolerance.
    beyond = [said for size, said in differences if not size <= tolerance]
    outcome = _outcome_difference(scene, episode, steps, tolerance)
    return ReplayCheck(rollout_id=episode["rollout_id"], difference=beyond[0] if beyond else outcome, largest=largest)


def _start_difference(scene: Scene, episode: dict[str, Any], tolerance: float) -> str | None:
    here = {"scene_sha256": scene.scene_sha256}
    if tolerance == 0:  # a hash knows no tolerance
        here["settled_state_sha256"] = scene.state().sha256()
    for name, value in here.items():
        if value != episode[name]:
            return f"{name} is {value[:12]} here, {episode[name][:12]} as recorded"
    return None


def _differences(
    rollouts: RolloutSet, row: int, states: Array | None, scene: Scene, episode: dict[str, Any]
) -> Iterator[tuple[float, str]]:
    """Size of the difference at each step, and where it is; executes the actions on the way."""
    actions = rollouts.rollout_feature("action", row)
    recorded = {name: rollouts.rollout_feature(name, row) for name in rollouts.frames if name != "action"}
    for step, action in enumerate(actions):
        present = observed_features(scene, episode["targets"])
        sizes = [(name, float(np.abs(present[name] - values[step]).max())) for name, values in recorded.items()]
        if states is not None:
            sizes.append((SIM_STATE, float(np.abs(scene.physics() - states[step]).max())))
        name, size = max(sizes, key=lambda item: item[1])
        yield size, f"{name} at step {step} is off by {size:.2g}"
        if step and scene.succeeded():
            yield float("inf"), f"the goal is reached after {step} actions, but the rollout goes on"
        scene.step(action)
    if states is not None:
        size = float(np.abs(scene.physics() - states[-1]).max())
        yield size, f"{SIM_STATE} after the last action is off by {size:.2g}"


def _outcome_difference(scene: Scene, episode: dict[str, Any], steps: int, tolerance: float) -> str | None:
    reached = scene.succeeded()
    if reached != episode["success"]:
        said = "is reached" if reached else "is not reached"
        return f"success is recorded as {episode['success']}, but the goal {said} after {steps} actions"
    present = dict(zip(FINAL, positions(scene, episode["targets"]), strict=True))
    for name, value in present.items():
        recorded = np.zeros(len(value), np.float32)
        recorded[: len(episode[name])] = episode[name]
        size = float(np.abs(value - recorded).max())
        if not size <= tolerance:
            return f"{name} is off by {size:.2g}"
    return None
