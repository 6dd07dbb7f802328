"""Policies for tests of one checkpoint a suite: each notes when it is loaded, and how many are loaded at once."""

from __future__ import annotations

import gc
import os
import weakref
from pathlib import Path
from typing import ClassVar

import numpy as np

from conflictvla.eval.policies.interface import Episode, Observation, PolicyInfo
from conflictvla.toolkit.arrays import FloatArray

LOADED_FILE = "SUITE_CHECKPOINTS_LOADED"
REVISION_FILE = "SUITE_CHECKPOINTS_REVISION"


class StillCheckpoint:
    """Stands still."""

    revision = "still-1"
    alive: ClassVar[weakref.WeakSet[StillCheckpoint]] = weakref.WeakSet()

    def __init__(self) -> None:
        self.alive.add(self)
        gc.collect()
        settings: dict[str, str | int | float | bool] = {"rate": 20, "of": self.revision}
        self.info = PolicyInfo(name="checkpoint", revision=self.revision, settings=settings, family="Scripted")
        with Path(os.environ[LOADED_FILE]).open("a") as log:
            log.write(f"{os.getpid()} {self.revision} {len(self.alive)}\n")
        self._suites: set[str] = set()

    def reset(self, episode: Episode) -> None:
        self._suites.add(episode.instance.suite)
        assert len(self._suites) == 1, "a checkpoint of one suite was asked for another's"

    def act(self, observation: Observation) -> FloatArray:
        return np.zeros((4, 7))


class OtherCheckpoint(StillCheckpoint):
    """Stands still too, under another revision."""

    revision = "still-2"


class ChangingCheckpoint(StillCheckpoint):
    """Its revision is what a file holds, as a folder of weights can be overwritten."""

    def __init__(self) -> None:
        self.revision = Path(os.environ[REVISION_FILE]).read_text()
        super().__init__()
