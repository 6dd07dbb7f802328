"""Replay: execute recorded actions again, without the policy, and compare what happens with what was recorded."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ...builders.rollouts.episode_record import EpisodeRecord
from ...builders.rollouts.refusals import REFUSED
from ...builders.rollouts.schema import FRAME_FEATURES, SIM_STATES
from ...builders.rollouts.sim_states import read_sim_states
from ...toolkit.arrays import Float32Array, FloatArray
from ...toolkit.counting import counted
from ...toolkit.errors import InvalidInputError
from ...toolkit.rounding import VARIABLE, rounding_kernel
from ...toolkit.simulation.scene import Scene
from ...toolkit.simulation.scene_pool import ScenePool
from ..recordings.reading import read_rollouts
from ..recordings.rollout_set import RolloutSet
from .recorder import Recorder, Recording

REPLAYED = ("action", "observation.eef_pos_m", "observation.joint_pos_rad", "observation.target_pos_m")
"""Features that a recording needs to be replayed."""

COMPARED = tuple(name for name in FRAME_FEATURES if name not in REPLAYED)
"""Features that are compared where the recording has them."""

OTHER_PROCESSORS_TOLERANCE = 0.01
"""Tolerance under which recordings of other x86 processors replay step by step: all steps together, in m and rad."""

SIM_STATE = "sim_state"
FINAL = {
    f"final_{name}": f"observation.{name}"
    for name in ("eef_pos_m", "target_pos_m", "object_pos_m", "object_quat_wxyz", "gripper_contact")
}
"""Columns of an episode that hold a feature as it is after the last action; others may record two of them."""

CONTACT = "observation.gripper_contact"


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayCheck:
    """What replaying a rollout showed.

    Attributes:
        rollout_id: Which rollout.
        difference: The first difference, with values; None where everything agrees.
        largest: Largest difference of a recorded position, in m and rad; the sum over the steps where each started
            from its recorded state. NaN where nothing could be executed.
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
    """Replay the rollouts of a dataset, or a random sample.

    Where ``rounding_kernel`` is that of the recording, with the same software, everything agrees to the last bit
    (tolerance 0). Elsewhere rounding differs, and contact magnifies that to centimetres within seconds. With a
    tolerance, each step therefore starts from its recorded state where these are recorded, and what it leads to is
    compared; the differences of all steps must add up to no more, so that many small liberties do not make a large one.
    For other kernels of x86 processors ``OTHER_PROCESSORS_TOLERANCE`` is enough
    (``tests/benchmarks/bench_processors.py`` measures it).

    Args:
        folder: The dataset.
        sample: Replay only that many; all by default.
        seed: Seed of the draw.
        tolerance: Largest difference of a recorded position that still counts as equal, in m and rad.
        scenes: Warm scenes to use.

    Raises:
        DatasetError: The dataset is damaged.
        InvalidInputError: The sample is not positive.
    """
    if sample is not None and sample < 1:
        raise InvalidInputError(f"--sample {sample}: at least 1 is needed")
    rollouts = read_rollouts(folder, REPLAYED, optional=COMPARED)
    rows = list(range(len(rollouts)))
    if sample is not None:
        rows = draw_sample(len(rows), sample, seed)
    checks = replay_rows(folder, rollouts, rows, tolerance=tolerance, scenes=scenes)
    return tuple(checks[row] for row in rows)


def draw_sample(count: int, sample: int, seed: int) -> list[int]:
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
    """Replay some rollouts of one dataset; see ``replay_rollouts``.

    Args:
        folder: The dataset, for the simulator's states where it has them.
        rollouts: Its rollouts, read with at least ``REPLAYED``.
        rows: Which of them.
        tolerance: See ``replay_rollouts``.
        scenes: Warm scenes to use.
        progress: Called with each rollout's id when it was replayed.
    """
    pool, checks = scenes or ScenePool(), {}
    has_states = (folder / SIM_STATES).is_dir()
    for row in sorted(rows, key=lambda row: str(rollouts.episodes["base_task"][row])):
        states = read_sim_states(folder, [row])[row] if has_states else None
        checks[row] = _replay(rollouts, row, states, pool, tolerance)
        if progress:
            progress(checks[row].rollout_id)
    return checks


def _replay(
    rollouts: RolloutSet, row: int, states: FloatArray | None, pool: ScenePool, tolerance: float
) -> ReplayCheck:
    episode = rollouts.record(row)
    scene = pool.scene(episode.suite, episode.base_task)
    scene.reset(episode.init_state)
    found = _start_difference(scene, episode, tolerance)
    steps = len(rollouts.rollout_feature("action", row))
    if states is not None and states.shape != (steps + 1, len(scene.physics())):
        done = counted(steps, "action")
        found = f"{SIM_STATE} has shape {states.shape}, but {done} in this scene give {counted(steps + 1, 'state')}"
    if found is not None:
        return ReplayCheck(rollout_id=episode.rollout_id, difference=found, largest=float("nan"))
    # Rounding differs between processors and contact magnifies it: with a tolerance, each step starts from its record.
    corrections = states if tolerance > 0 else None
    recording, early = _execute(scene, rollouts.rollout_feature("action", row), episode, corrections)
    recorded = {name: rollouts.rollout_feature(name, row) for name in rollouts.frames if name != "action"}
    if tolerance > 0:  # whether two objects touch is not a distance
        recorded.pop(CONTACT, None)
    if corrections is None:
        differences = _differences(recording, recorded, states)
    else:  # in an impact, rounding moves velocities far more than positions
        positions = slice(1 + scene.model.nq)
        placed = replace(recording, sim_states=recording.sim_states[:, positions])
        differences = _accumulate(_differences(placed, recorded, corrections[:, positions]))
    beyond = [text for size, text in differences if not size <= tolerance]
    outcome = early or _outcome_difference(scene, recording, episode, tolerance)
    return ReplayCheck(
        rollout_id=episode.rollout_id,
        difference=beyond[0] if beyond else outcome,
        largest=max(size for size, _ in differences),
    )


def _start_difference(scene: Scene, episode: EpisodeRecord, tolerance: float) -> str | None:
    here = {"scene_sha256": scene.scene_sha256}
    if tolerance == 0:  # a hash knows no tolerance
        here["settled_state_sha256"] = scene.state().sha256()
    for name, value in here.items():
        recorded: str = getattr(episode, name)
        if value != recorded:
            hint = _rounding_hint(episode.rounding_kernel) if name == "settled_state_sha256" else ""
            return f"{name} is {value[:12]} here, {recorded[:12]} as recorded{hint}"
    return None


def _rounding_hint(recorded: str | None) -> str:
    """What to do where the settled states differ; other software may not have recorded how it rounded."""
    tolerate = f"give --tolerance {OTHER_PROCESSORS_TOLERANCE}"
    if recorded is None:
        return f"; where it was recorded on another kind of processor, or under another {VARIABLE}, {tolerate}"
    here = rounding_kernel()
    if recorded == here:
        return ""
    return f"; OpenBLAS rounded by its {recorded} kernel, and by {here} here: set {VARIABLE}={recorded}, or {tolerate}"


def _execute(
    scene: Scene, actions: Float32Array, episode: EpisodeRecord, corrections: FloatArray | None
) -> tuple[Recording, str | None]:
    """Execute the actions, each from its recorded state where ``corrections`` has them, shape (H + 1, n).

    Returns:
        What a recording of it holds, and where the goal was reached before the last of them.
    """
    recorder, early = Recorder(scene, episode.targets), None
    policy_acts = len(actions) if episode.refusal_step is None else episode.refusal_step + 1
    for step, action in enumerate(actions):
        recorder.append(action)
        if corrections is not None:
            scene.correct(corrections[step])
        if 0 < step < policy_acts and early is None and scene.succeeded():
            early = f"the goal is reached after {counted(step, 'action')}, but the rollout goes on"
        scene.step(action)
    recording = recorder.finish()
    if corrections is not None:
        scene.correct(corrections[-1])
    return recording, early


def _differences(
    recording: Recording, recorded: Mapping[str, Float32Array], states: FloatArray | None
) -> list[tuple[float, str]]:
    """Size of the largest difference at each step, and where it is."""
    sizes = {name: _largest(recording.frames[name], values) for name, values in recorded.items()}
    if states is not None:
        sizes[SIM_STATE] = _largest(recording.sim_states, states)
    found = []
    for step in range(max(len(size) for size in sizes.values())):
        name, size = max(((n, float(s[step])) for n, s in sizes.items() if step < len(s)), key=lambda item: item[1])
        found.append((size, f"{name} at step {step} is off by {size:.2g}"))
    return found


def _accumulate(differences: list[tuple[float, str]]) -> list[tuple[float, str]]:
    """For each step the sum of the differences until then."""
    totals = np.cumsum([size for size, _ in differences]).tolist()
    return [(total, f"{text}, {total:.2g} in all") for total, (_, text) in zip(totals, differences, strict=True)]


def _largest(here: npt.NDArray[Any], recorded: npt.NDArray[Any]) -> FloatArray:
    """Largest difference at each step; NaN is beyond any tolerance."""
    off = np.abs(here.astype(np.float64) - recorded).max(axis=1)
    return np.where(np.isnan(off), np.inf, off)


def _outcome_difference(scene: Scene, recording: Recording, episode: EpisodeRecord, tolerance: float) -> str | None:
    # What happens while the arm rests after a refusal is no doing of the policy's.
    reached = episode.end != REFUSED and scene.succeeded()
    steps = len(recording.frames["action"])
    if reached != episode.success:
        outcome = "is reached" if reached else "is not reached"
        return f"success is recorded as {episode.success}, but the goal {outcome} after {counted(steps, 'action')}"
    for name, size in final_differences(recording, episode).items():
        if not size <= tolerance and not (tolerance > 0 and FINAL[name] == CONTACT):
            return f"{name} is off by {size:.2g}"
    return None


def final_differences(recording: Recording, episode: EpisodeRecord) -> dict[str, float]:
    """How far the recorded end of an episode is from that of a recording, by column, in its unit.

    Args:
        recording: The recording.
        episode: The episode; columns that it lacks are left out.
    """
    found = {}
    for name, feature in FINAL.items():
        values: tuple[float, ...] | None = getattr(episode, name)
        if values is not None:
            here = recording.final[feature]
            recorded = np.zeros_like(here)
            recorded[: len(values)] = values[: len(here)]
            found[name] = float(np.abs(here - recorded).max())
    return found
