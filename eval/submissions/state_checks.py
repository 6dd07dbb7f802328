"""What must hold of submitted rollouts in the simulator, for every one of them, without executing them again.

Settled states are made anew; recorded simulator states are looked at: they must show what the frames say, and reach the
goal exactly where success is recorded. What cannot be seen this way is whether one state follows from the one before;
that is what replay is for.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from ...builders.rollouts.episode_record import EpisodeRecord
from ...builders.rollouts.schema import SIM_STATES
from ...builders.rollouts.sim_states import read_sim_states
from ...toolkit.arrays import FloatArray
from ...toolkit.errors import DatasetError
from ...toolkit.probes.visual_settings import read_visual_settings
from ...toolkit.records import VisualProbe
from ...toolkit.simulation.pictures.appearance import entity_materials
from ...toolkit.simulation.scene import Scene
from ...toolkit.simulation.scene_pool import ScenePool
from ..policies.interface import ACTION_WIDTH
from ..recordings.rollout_set import RolloutSet
from ..rollouts.costs import cost_differences
from ..rollouts.recorder import Recorder
from ..rollouts.replay import CONTACT, FINAL, final_differences
from .record_checks import Finding, finding

LOOKED_AT = 6
"""Recorded states of a rollout, spread over it, that are compared with its frames; the last is looked at always."""

SHOWN_TOLERANCE = 1e-6
"""Positions of a recorded state agree with those while it was recorded but for float32 rounding, in m and rad."""


def check_states(
    folder: Path,
    rollouts: RolloutSet,
    scenes: ScenePool,
    *,
    tolerance: float = 0.0,
    progress: Callable[[str], None] | None = None,
) -> tuple[Finding, ...]:
    """Everything that is wrong with one dataset's states.

    Args:
        folder: The dataset.
        rollouts: Its rollouts, read with all features that they have.
        scenes: Warm scenes to use.
        tolerance: Largest difference of a settled position that still counts as equal, in m and rad.
        progress: Told each rollout's id when it was looked at.
    """
    episodes = rollouts.records()
    wrong: dict[str, list[str]] = defaultdict(list)
    has_states = (folder / SIM_STATES).is_dir()
    order = sorted(range(len(episodes)), key=lambda row: _place(episodes[row]))
    settled: tuple[Any, ...] | None = None
    start: FloatArray = np.empty(0)
    here: dict[str, str] = {}
    for row in order:
        episode = episodes[row]
        scene = scenes.scene(episode.suite, episode.base_task)
        if _place(episode) != settled:
            scene.reset(episode.init_state)
            settled, start = _place(episode), scene.physics()
            here = {"scene_sha256": scene.scene_sha256}
            if tolerance == 0:  # a hash knows no tolerance
                here["settled_state_sha256"] = scene.state().sha256()
        said = [f"{name} is not that of this scene" for name, value in here.items() if getattr(episode, name) != value]
        if _wrongly_coloured(episode, scene):
            said.append("the colours of visual_settings are not of this scene's materials")
        if has_states:
            states = read_sim_states(folder, [row])[row]
            said += _state_differences(states, rollouts, row, scene, episode, start, tolerance)
        for what in said:
            wrong[what].append(episode.rollout_id)
        if progress:
            progress(episode.rollout_id)
    return tuple(found for what, concerned in wrong.items() for found in finding("states", what, concerned))


def _place(episode: EpisodeRecord) -> tuple[Any, ...]:
    return episode.suite, episode.base_task, episode.init_state


def _wrongly_coloured(episode: EpisodeRecord, scene: Scene) -> bool:
    try:
        visual = read_visual_settings(episode.visual_settings, episode.rollout_id)
    except DatasetError:
        return False  # said by the checks of the records
    coloured = episode.visual_probe >= VisualProbe.V2
    return set(visual.colours if visual else ()) != set(entity_materials(scene) if coloured else ())


def _state_differences(
    states: FloatArray,
    rollouts: RolloutSet,
    row: int,
    scene: Scene,
    episode: EpisodeRecord,
    start: FloatArray,
    tolerance: float,
) -> Iterator[str]:
    recorded = {name: rollouts.rollout_feature(name, row) for name in rollouts.frames if name != "action"}
    steps = len(rollouts.rollout_feature("action", row))
    if states.shape != (steps + 1, len(start)) or not np.isfinite(states).all():
        yield "the simulator's states do not fit the frames in number or size"
        return
    if not np.abs(states[0] - start).max() <= tolerance:
        yield "the first recorded state is not the settled one"
    looked_at = np.unique(np.linspace(0, steps - 1, LOOKED_AT).astype(int))
    recorder = Recorder(scene, episode.targets)
    for step in looked_at:
        scene.show(states[step])
        recorder.append(np.zeros(ACTION_WIDTH, np.float32))
    scene.show(states[-1])
    shown = recorder.finish()
    for name, values in recorded.items():
        off = np.abs(shown.frames[name] - values[looked_at]).max()
        if name != CONTACT and not off <= SHOWN_TOLERANCE:  # what touches is known only while the simulator steps
            yield f"{name} is not what the recorded states show"
            return
    for name, off in final_differences(shown, episode).items():
        if FINAL[name] != CONTACT and not off <= SHOWN_TOLERANCE:
            yield f"{name} is not what the last recorded state shows"
    if scene.succeeded() != episode.success:
        yield "success is not what the last recorded state shows"
    yield from cost_differences(scene, episode, states)
