"""Pictures of a recorded rollout, drawn again from its states: what tests compare with what a policy saw."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from conflictvla.builders.rollouts.sim_states import read_sim_states
from conflictvla.eval.recordings.reading import read_rollouts
from conflictvla.toolkit.libero.base_tasks import base_task
from conflictvla.toolkit.probes.visual_settings import read_visual_settings
from conflictvla.toolkit.simulation.pictures.rendering import Camera
from conflictvla.toolkit.simulation.scene import Scene


def render_frames(
    dataset: Path, rollout_id: str, *, camera: str, size: int, steps: Sequence[int]
) -> npt.NDArray[np.uint8]:
    """Shape (steps, size, size, 3)."""
    rollouts = read_rollouts(dataset)
    (row,) = rollouts.rows_of([rollout_id]).tolist()
    episode = rollouts.record(row)
    view = Camera(Scene(base_task(episode.suite, episode.base_task)), size)
    states = read_sim_states(dataset, [row])[row]
    visual = read_visual_settings(episode.visual_settings, rollout_id)
    return np.stack([view.image_of(states[step], camera, visual, step) for step in steps])
