"""What must hold of submitted rollouts in the simulator, for every one of them, without executing them again.

Settled states are made anew. Recorded simulator states must show what the frames hold, and reach the goal exactly where
success is recorded. Whether one state follows from the one before cannot be seen this way; that is what replay is for.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ....builders.rollouts.episode_record import EpisodeRecord
from ....builders.rollouts.schema import SIM_STATES
from ....builders.rollouts.sim_states import read_sim_states
from ....toolkit.arrays import Float32Array, FloatArray
from ....toolkit.errors import DatasetError
from ....toolkit.probes.visual_settings import read_visual_settings
from ....toolkit.records import VisualProbe
from ....toolkit.simulation.observing.scene_entities import observe_states
from ....toolkit.simulation.pictures.appearance import entity_materials
from ....toolkit.simulation.scene import Scene
from ....toolkit.simulation.scene_pool import ScenePool
from ....toolkit.step_goals.meter import StepGoalMeter
from ...policies.interface import ACTION_WIDTH
from ...recordings.rollout_set import RolloutSet
from ...rollouts.costs import cost_differences
from ...rollouts.recorder import Recorder
from ...rollouts.replay import CONTACT, FINAL, final_differences
from .findings import SubmissionFinding, findings
from .frame_checks import Start, start_of

COMPARED_STATES = 6
"""Recorded states of a rollout, spread over it, that are compared with its frames; the last is compared always."""

GOAL_TOLERANCE = 2
"""By how many steps the first state that shows a step's goal may differ, where by rounding objects touch a step earlier
or later."""

SHOWN_TOLERANCE = 1e-6
"""Positions of a recorded state agree with those while it was recorded, except for float32 rounding, in m and rad."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _SettledScene:
    """A scene in one of its initial states.

    Attributes:
        scene: The scene.
        start: The initial state.
        physics: The simulator's state after settling, shape (n,).
        hashes: What a rollout from there records of it, by field.
    """

    scene: Scene
    start: Start
    physics: FloatArray
    hashes: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _RecordedStates:
    """One rollout's states, with what was recorded beside them.

    Attributes:
        episode: Its record.
        frames: Each feature but the actions, shape (H, width).
        steps: Executed actions H.
        states: The simulator's states, shape (H + 1, n) in a recording that fits its scene.
    """

    episode: EpisodeRecord
    frames: Mapping[str, Float32Array]
    steps: int
    states: FloatArray


def check_states(
    folder: Path,
    rollouts: RolloutSet,
    scenes: ScenePool,
    *,
    plans: Mapping[str, str],
    tolerance: float = 0.0,
    progress: Callable[[str], None] | None = None,
) -> tuple[SubmissionFinding, ...]:
    """Everything that is wrong with one dataset's states.

    Args:
        folder: The dataset.
        rollouts: Its rollouts, read with all features that they have.
        scenes: Warm scenes to use.
        plans: The release's plan of each instance, as JSON, by instance id; of others the step goals are not checked.
        tolerance: Largest difference of a settled position that still counts as equal, in m and rad.
        progress: Called with each rollout's id after its check.
    """
    episodes = rollouts.records()
    wrong: dict[str, list[str]] = defaultdict(list)
    has_states = (folder / SIM_STATES).is_dir()
    settled: _SettledScene | None = None
    for row in sorted(range(len(episodes)), key=lambda row: start_of(episodes[row])):
        episode = episodes[row]
        scene = scenes.scene(episode.suite, episode.base_task)
        if settled is None or settled.start != start_of(episode):
            settled = _settle(scene, start_of(episode), tolerance)
        for rule in _start_differences(episode, settled):
            wrong[rule].append(episode.rollout_id)
        plan = plans.get(episode.instance_id)
        # It looks at the scene where the rollout begins, before states are shown in it.
        meter = None if plan is None else StepGoalMeter(scene, episode.init_state, plan)
        if has_states:
            recorded = _recorded_states(folder, rollouts, row, episode)
            for rule in () if meter is None else _goal_differences(recorded, scene, meter):
                wrong[rule].append(episode.rollout_id)
            for rule in _state_differences(recorded, settled, tolerance):
                wrong[rule].append(episode.rollout_id)
        if progress:
            progress(episode.rollout_id)
    return tuple(found for rule, rollout_ids in wrong.items() for found in findings("states", rule, rollout_ids))


def _settle(scene: Scene, start: Start, tolerance: float) -> _SettledScene:
    scene.reset(start[2])
    hashes = {"scene_sha256": scene.scene_sha256}
    if tolerance == 0:  # a hash knows no tolerance
        hashes["settled_state_sha256"] = scene.state().sha256()
    return _SettledScene(scene=scene, start=start, physics=scene.physics(), hashes=hashes)


def _recorded_states(folder: Path, rollouts: RolloutSet, row: int, episode: EpisodeRecord) -> _RecordedStates:
    return _RecordedStates(
        episode=episode,
        frames={name: rollouts.rollout_feature(name, row) for name in rollouts.frames if name != "action"},
        steps=len(rollouts.rollout_feature("action", row)),
        states=read_sim_states(folder, [row])[row],
    )


def _start_differences(episode: EpisodeRecord, settled: _SettledScene) -> Iterator[str]:
    """How a record differs from its scene and initial state."""
    for name, value in settled.hashes.items():
        if getattr(episode, name) != value:
            yield f"{name} is not that of this scene"
    if not _colours_fit(episode, settled.scene):
        yield "the colours of visual_settings are not of this scene's materials"


def _colours_fit(episode: EpisodeRecord, scene: Scene) -> bool:
    try:
        visual = read_visual_settings(episode.visual_settings, episode.rollout_id)
    except DatasetError:
        return True  # the checks of the records report it
    coloured = episode.visual_probe >= VisualProbe.V2
    return set(visual.colours if visual else ()) == set(entity_materials(scene) if coloured else ())


def _goal_differences(recorded: _RecordedStates, scene: Scene, meter: StepGoalMeter) -> Iterator[str]:
    """How the recorded step goals differ from those of the plan, and from when the recorded states show them."""
    episode, states = recorded.episode, recorded.states
    if episode.step_goals is None or episode.step_goal_met is None or len(states) != recorded.steps + 1:
        return
    met = meter.finish(states, observe_states(scene.model, states))
    if met is None or met.goals != episode.step_goals:
        yield "step_goals are not those of the instance's plan"
    elif not all(
        (one < 0) == (other < 0) and abs(one - other) <= GOAL_TOLERANCE
        for one, other in zip(met.met, episode.step_goal_met, strict=True)
    ):
        yield "step_goal_met is not what the recorded states show"


def _state_differences(recorded: _RecordedStates, settled: _SettledScene, tolerance: float) -> Iterator[str]:
    """How recorded states differ from their frames and record."""
    states, scene, episode = recorded.states, settled.scene, recorded.episode
    if states.shape != (recorded.steps + 1, len(settled.physics)) or not np.isfinite(states).all():
        yield "the simulator's states do not fit the frames in number or size"
        return
    if not np.abs(states[0] - settled.physics).max() <= tolerance:
        yield "the first recorded state is not the settled one"
    compared = np.unique(np.linspace(0, recorded.steps - 1, COMPARED_STATES).astype(int))
    recorder = Recorder(scene, episode.targets)
    for step in compared:
        scene.show(states[step])
        recorder.append(np.zeros(ACTION_WIDTH, np.float32))
    scene.show(states[-1])
    shown = recorder.finish()
    for name, values in recorded.frames.items():
        off = np.abs(shown.frames[name] - values[compared]).max()
        if name != CONTACT and not off <= SHOWN_TOLERANCE:  # contacts are known only while the simulator steps
            yield f"{name} is not what the recorded states show"
            return
    for name, off in final_differences(shown, episode).items():
        if FINAL[name] != CONTACT and not off <= SHOWN_TOLERANCE:
            yield f"{name} is not what the last recorded state shows"
    if episode.refusal_step is not None:  # what happens while the arm rests is no doing of the policy's
        scene.show(states[episode.refusal_step])
    if scene.succeeded() != episode.success:
        yield "success is not what the last recorded state shows"
    yield from cost_differences(scene, episode, states)
