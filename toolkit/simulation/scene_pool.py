"""Scenes for use again: building one takes seconds, resetting it milliseconds."""

from __future__ import annotations

import gc
from collections import OrderedDict

from ..libero.base_tasks import base_task
from .scene import Scene


class ScenePool:
    """Scenes by base task, the least recently used given up first.

    A scene's reset is complete, so a rollout in a used scene equals one in a new scene, bit by bit.

    Args:
        capacity: Most scenes held at once; each has meshes and textures of 200 to 400 MB. Rollouts come base task
            by base task, so few are needed.
    """

    def __init__(self, capacity: int = 2) -> None:
        self._capacity = capacity
        self._scenes: OrderedDict[tuple[str, str], Scene] = OrderedDict()

    def scene(self, suite: str, task: str) -> Scene:
        """The scene of a base task, built when first asked for."""
        key = suite, task
        if key not in self._scenes:
            while len(self._scenes) >= self._capacity:
                self._scenes.popitem(last=False)
                gc.collect()  # LIBERO's objects hold each other, and the model with them
            self._scenes[key] = Scene(base_task(suite, task))
        self._scenes.move_to_end(key)
        return self._scenes[key]
