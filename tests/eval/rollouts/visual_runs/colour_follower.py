"""A policy that really looks: where it moves follows from the mean colours of both its pictures."""

from __future__ import annotations

import numpy as np

from conflictvla.eval.policies.interface import Episode, Observation, PolicyInfo
from conflictvla.toolkit.arrays import FloatArray, Image

SIZE = 32
CHUNK = 5
CAMERAS = ("agentview", "robot0_eye_in_hand")


class ColourFollower:
    """Moves along the differences between red, green and blue, one picture a translation, the other a rotation."""

    info = PolicyInfo(name="colours", revision="1")

    def __init__(self) -> None:
        self.seen: dict[tuple[str, int], dict[str, Image]] = {}
        self._instance = ""

    def reset(self, episode: Episode) -> None:
        self._instance = f"{episode.instance.arm}/{episode.init_state}"
        self._episodes = getattr(self, "_episodes", 0) + 1

    def act(self, observation: Observation) -> FloatArray:
        views = {camera: observation.image(camera, SIZE) for camera in CAMERAS}
        self.seen[f"{self._episodes} {self._instance}", observation.step] = views
        means = [view.mean(axis=(0, 1)) / 255 for view in views.values()]
        action = np.concatenate([*(4 * (mean - np.roll(mean, 1)) for mean in means), [-1.0]])
        return np.tile(np.clip(action, -1, 1), (CHUNK, 1))
