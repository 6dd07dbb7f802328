"""Policies for tests of runs: each can be named as module:Class, as a user's own would be."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import numpy as np

from conflictvla.eval.policies.interface import Episode, Observation, PolicyInfo
from conflictvla.toolkit.arrays import FloatArray


class Drift:
    """Moves a little, depending on the instruction and the seed."""

    def __init__(self) -> None:
        self.info = PolicyInfo(name="drift", revision="1")
        self._action: FloatArray = np.zeros((1, 7))

    def reset(self, episode: Episode) -> None:
        draw = np.random.default_rng([episode.seed, len(episode.instruction)])
        self._action = draw.uniform(-0.2, 0.2, (1, 7))

    def act(self, observation: Observation) -> FloatArray:
        return self._action


class DiesOnce(Drift):
    """Kills its own process at the 4th step of the second episode it is given, once per file."""

    episodes = 0

    def reset(self, episode: Episode) -> None:
        super().reset(episode)
        DiesOnce.episodes += 1

    def act(self, observation: Observation) -> FloatArray:
        flag = Path(os.environ["CONFLICTVLA_TEST_FLAG"])
        if DiesOnce.episodes == 2 and observation.step == 3 and not flag.exists():
            flag.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return super().act(observation)


class DiesAlways(Drift):
    """Kills its own process whenever the instruction is not the reference's."""

    def reset(self, episode: Episode) -> None:
        if episode.instance.case_id is not None:
            os.kill(os.getpid(), signal.SIGKILL)
        super().reset(episode)


class Sulks(Drift):
    """Raises on conflicts, and only on conflicts."""

    def act(self, observation: Observation) -> FloatArray:
        if self._conflict and observation.step == 2:
            raise ValueError("I would rather not")
        return super().act(observation)

    def reset(self, episode: Episode) -> None:
        super().reset(episode)
        self._conflict = episode.instance.case_id is not None


class Hangs(Drift):
    """Never answers on conflicts."""

    def reset(self, episode: Episode) -> None:
        super().reset(episode)
        self._conflict = episode.instance.case_id is not None

    def act(self, observation: Observation) -> FloatArray:
        while self._conflict:
            time.sleep(60.0)
        return super().act(observation)


class Slow(Drift):
    """Takes its time, so that processes meet."""

    def act(self, observation: Observation) -> FloatArray:
        time.sleep(0.1)
        return super().act(observation)


class Otherwise(Drift):
    """Goes by the same name and moves otherwise."""

    def act(self, observation: Observation) -> FloatArray:
        return -super().act(observation)


class Revised(Drift):
    """Another revision."""

    def __init__(self) -> None:
        super().__init__()
        self.info = PolicyInfo(name="drift", revision="2")


class NeverStarts(Revised):
    """Another revision, which cannot begin a rollout."""

    def reset(self, episode: Episode) -> None:
        raise ValueError("no weights")


class OtherName(Drift):
    """Another policy."""

    def __init__(self) -> None:
        super().__init__()
        self.info = PolicyInfo(name="other", revision="1")
