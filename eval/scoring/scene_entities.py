"""Which of a recorded scene's objects and fixtures the reference goal is about, slot by slot."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ...builders.rollouts.schema import ENTITY_SLOTS, OBJECT_SLOTS
from ...toolkit.arrays import BoolArray, IntArray, ObjectArray
from .pairs import row_codes

FIELDS = ("objects", "fixtures", "goal_entities", "targets")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RecordedEntities:
    """What stands in the scenes of N rollouts, by slot: objects first, then fixtures.

    Attributes:
        recorded: Whether a rollout's objects were recorded, shape (N,).
        names: Names of what each of the distinct scenes holds, empty for unused slots, shape (S, ENTITY_SLOTS).
        scene: Which of them is each rollout's, shape (N,).
        other: Objects and fixtures that no predicate of the reference goal names, shape (N, ENTITY_SLOTS).
        movable_other: Movable objects that are no target, shape (N, ENTITY_SLOTS).
    """

    recorded: BoolArray
    names: ObjectArray
    scene: IntArray
    other: BoolArray
    movable_other: BoolArray

    def names_of(self, touched: BoolArray, grasped: BoolArray) -> ObjectArray:
        """Names of what is touched or grasped, such as ``plate_1 (grasped), wine_rack_1``; None where not recorded.

        Args:
            touched: Shape (N, ENTITY_SLOTS).
            grasped: Shape (N, ENTITY_SLOTS).
        """
        text = np.full(len(self.recorded), None, dtype=object)
        text[self.recorded] = ""
        for row in np.flatnonzero((touched | grasped).any(axis=1) & self.recorded):
            names = self.names[self.scene[row]]
            text[row] = ", ".join(
                names[slot] + (" (grasped)" if grasped[row, slot] else "")
                for slot in np.flatnonzero(touched[row] | grasped[row])
            )
        return text


def recorded_entities(episodes: pa.Table) -> RecordedEntities:
    """What stands in the scene of each episode.

    Args:
        episodes: With the columns ``FIELDS``; all but ``targets`` may be null.
    """
    codes, first, scene = np.unique(row_codes(episodes, FIELDS), return_index=True, return_inverse=True)
    names = np.full((len(codes), ENTITY_SLOTS), "", dtype=object)
    other, movable_other = (np.zeros((len(codes), ENTITY_SLOTS), np.bool_) for _ in range(2))
    for row, episode in enumerate(episodes.select(list(FIELDS)).take(pa.array(first)).to_pylist()):
        objects, fixtures, goal = (episode[name] or [] for name in FIELDS[:3])
        names[row] = _in_slots(objects, fixtures)
        used = names[row] != ""
        other[row] = used & ~np.isin(names[row].astype(str), goal)
        movable_other[row] = used & ~np.isin(names[row].astype(str), episode["targets"])
    movable_other[:, OBJECT_SLOTS:] = False
    recorded = np.asarray(pc.is_valid(episodes["objects"]).to_numpy(), np.bool_)
    return RecordedEntities(
        recorded=recorded, names=names, scene=scene, other=other[scene], movable_other=movable_other[scene]
    )


def _in_slots(objects: Sequence[str], fixtures: Sequence[str]) -> list[str]:
    slots = [""] * ENTITY_SLOTS
    slots[: len(objects)] = objects
    slots[OBJECT_SLOTS : OBJECT_SLOTS + len(fixtures)] = fixtures
    return slots
