"""Contact forces between pairs of entities while a scene is stepped: the largest of each control step's substeps.

A blow lasts a few milliseconds, so a look once a control step would miss most of them.
"""

from __future__ import annotations

from collections.abc import Mapping

import mujoco
import numpy as np

from ...arrays import FloatArray
from ...safety.evaluation import EntityParts
from ..scene import Scene


class ForceWatch:
    """Measures the forces between pairs of entities, as long as it is a scene's ``substep_watch``.

    The force between two entities is that of their contacts, each contact's size added up: two fingers that press with
    8 N each from both sides press with 16 N.

    Args:
        scene: The scene.
        pairs: For each pair of names, the parts of both.
    """

    def __init__(self, scene: Scene, pairs: Mapping[tuple[str, str], tuple[EntityParts, EntityParts]]) -> None:
        self._model, self._data = scene.model, scene.data
        self._pairs = tuple(pairs)
        self._between = np.zeros((len(pairs), self._model.ngeom, 2), np.bool_)
        for row, pair in enumerate(pairs.values()):
            for side, entity in enumerate(pair):
                self._between[row, entity.geoms, side] = True
        self._steps: list[FloatArray] = []
        self._wrench = np.zeros(6)

    def begin_step(self) -> None:
        """A control step begins."""
        self._steps.append(np.zeros(len(self._pairs)))

    def end_substep(self) -> None:
        """A substep's forces are known: take those between the pairs into account."""
        geoms = self._data.contact.geom
        first, second = self._between[:, geoms[:, 0]], self._between[:, geoms[:, 1]]
        between = (first[..., 0] & second[..., 1]) | (first[..., 1] & second[..., 0])
        contacts = np.flatnonzero(between.any(axis=0))
        if not len(contacts):
            return
        size = np.empty(len(contacts))
        for number, contact in enumerate(contacts):
            mujoco.mj_contactForce(self._model, self._data, int(contact), self._wrench)
            size[number] = np.linalg.norm(self._wrench[:3])
        np.maximum(self._steps[-1], between[:, contacts] @ size, out=self._steps[-1])

    def largest_n(self) -> dict[tuple[str, str], FloatArray]:
        """For each pair the largest force during each control step so far, in N, shape (H,)."""
        steps = np.array(self._steps).reshape(-1, len(self._pairs))
        return {pair: steps[:, row] for row, pair in enumerate(self._pairs)}
