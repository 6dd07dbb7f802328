"""Policies for the preflight checks: one that honours every convention, and others broken on purpose, each in one way.

They act on what they are shown: where picture or state are not as in training, they wander off.
"""

from __future__ import annotations

import time

import numpy as np

from conflictvla.eval.policies.conventions import Conventions, shortest_axis_angle, turned
from conflictvla.eval.policies.interface import Episode, Observation, PolicyInfo
from conflictvla.eval.policies.scripted.agents import Persist
from conflictvla.toolkit.arrays import FloatArray, Image
from conflictvla.toolkit.errors import PolicyError
from conflictvla.toolkit.prompts import PREMISE_CHECK
from conflictvla.toolkit.simulation.pictures.rendering import camera_of

SIZE = 32
CHUNK = 4
FAR = 15.0
"""Mean difference of two pictures, in grey levels, from which they are not of one scene."""


class Sound:
    """Goes for the target when it sees what it was trained on: pictures turned by 180 degrees, long rotations.

    Attributes:
        conventions: What it believes to be handed.
    """

    conventions = Conventions()

    def __init__(self) -> None:
        self.info = PolicyInfo(name=type(self).__name__.lower(), revision="1")
        self._expert = Persist()
        self.drawn = np.random.default_rng(0)

    def reset(self, episode: Episode) -> None:
        self._expert.reset(episode)
        self._scene = episode.scene
        self.heard = self.hear(episode.instruction)
        self._own = self.hear(episode.instance.instruction)

    def act(self, observation: Observation) -> FloatArray:
        chunk = np.repeat(self._expert.act(observation), self.length(), axis=0)
        picture = self.look(observation)
        if not (self.recognises(picture) and self.knows(observation.state)):
            chunk[:, :3] = [0.0, 0.0, 0.5]
        chunk[:, 3] += self.impression(picture) + 0.01 * observation.state[2]
        if self.heard != self._own:
            chunk[:, 1] += 0.05 + len(self.heard) % 7 / 20.0
        return self.speak(chunk)

    def hear(self, instruction: str) -> str:
        return instruction.removeprefix(PREMISE_CHECK.text(""))

    def look(self, observation: Observation) -> Image:
        return turned(observation.image("agentview", SIZE), self.conventions.images)

    def recognises(self, picture: Image) -> bool:
        """Whether it looks as in training, which is what the simulator shows, turned by 180 degrees."""
        trained = turned(camera_of(self._scene, SIZE).image("agentview"), "rotated")
        return float(np.abs(picture.astype(float) - trained).mean()) < FAR

    def impression(self, picture: Image) -> float:
        """A little of the picture that reaches the actions whatever it shows."""
        return float(picture.mean()) / 10_000.0

    def knows(self, state: FloatArray) -> bool:
        return bool(np.linalg.norm(state[3:6]) >= np.pi and state[2] > 0.5)

    def length(self) -> int:
        return CHUNK

    def speak(self, chunk: FloatArray) -> FloatArray:
        return chunk


class Raises(Sound):
    def act(self, observation: Observation) -> FloatArray:
        raise KeyError("observation.images.image2")


class RaisesAtLength(Sound):
    def act(self, observation: Observation) -> FloatArray:
        raise ValueError("first line\nsecond line\nthird line")


class Unreachable(Sound):
    def act(self, observation: Observation) -> FloatArray:
        raise PolicyError("ws://gpu:8000: the connection was lost")


class NarrowActions(Sound):
    def speak(self, chunk: FloatArray) -> FloatArray:
        return chunk[:, :6]


class UnevenChunks(Sound):
    def length(self) -> int:
        return int(self.drawn.integers(2, 6))


class EndlessChunks(Sound):
    def length(self) -> int:
        return 80


class Unnormalised(Sound):
    def speak(self, chunk: FloatArray) -> FloatArray:
        return np.concatenate([127.0 * chunk[:, :6], chunk[:, 6:]], axis=1)


class Metres(Sound):
    def speak(self, chunk: FloatArray) -> FloatArray:
        return np.concatenate([0.05 * chunk[:, :6], chunk[:, 6:]], axis=1)


class GripperFlipped(Sound):
    def speak(self, chunk: FloatArray) -> FloatArray:
        return np.concatenate([chunk[:, :6], -chunk[:, 6:]], axis=1)


class GripperOpenHigh(Sound):
    def speak(self, chunk: FloatArray) -> FloatArray:
        return np.concatenate([chunk[:, :6], (1.0 - chunk[:, 6:]) / 2.0], axis=1)


class Deaf(Sound):
    def hear(self, instruction: str) -> str:
        return ""


class ShortOfHearing(Sound):
    def hear(self, instruction: str) -> str:
        return " ".join(instruction.split()[:20])


class Blind(Sound):
    def recognises(self, picture: Image) -> bool:
        return True

    def impression(self, picture: Image) -> float:
        return 0.0


class Mirrored(Sound):
    """Believes that it hands itself turned pictures, and hands itself the scene as it looks."""

    conventions = Conventions(images="upright")


class UpsideDown(Sound):
    conventions = Conventions(images="raw")


class ShortRotations(Sound):
    """Was trained on rotations of at most pi."""

    def knows(self, state: FloatArray) -> bool:
        return bool(np.allclose(shortest_axis_angle(state[3:6]), state[3:6]) and state[2] > 0.5)


class Unseeded(Sound):
    def speak(self, chunk: FloatArray) -> FloatArray:
        return chunk + 0.01 * self.drawn.standard_normal(chunk.shape)


class Remembers(Sound):
    """Is offset once it has acted for a while, as by a history that is not cleared."""

    before = 0.0

    def act(self, observation: Observation) -> FloatArray:
        chunk = super().act(observation)
        if observation.step > 4:
            self.before = 0.01
        return chunk + self.before


class Slow(Sound):
    def act(self, observation: Observation) -> FloatArray:
        time.sleep(0.3)
        return super().act(observation)

    def length(self) -> int:
        return 1
