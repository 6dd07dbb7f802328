"""Scene facts: what is in a scene, what it can do, and where everything is in each initial state.

Facts are measured in the simulator (``simulation.observing.scene_facts``), never read off names. They are plain arrays,
so that a checker needs no simulator.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .arrays import BoolArray, FloatArray
from .errors import NotFoundError, choices


@dataclass(frozen=True, slots=True, kw_only=True)
class Entity:
    """An object or fixture of a scene, the table, or a part of one that is handled by itself, such as a drawer.

    Attributes:
        name: The simulator's name, such as ``akita_black_bowl_1``.
        category: LIBERO's category, such as ``akita_black_bowl``; ``drawer`` for a drawer, ``compartment`` for one of
            a caddy's, ``table`` for what everything stands on, where that is a table.
        part_of: Name of the whole, for a part.
        rank: A part's place in its row, from the top, from 0.
        row_length: How many parts the row has.
        movable: Whether it moves freely, by its joints; fixtures and their parts do not.
        opens: Whether a hinge or slide lets it be opened.
        switches: Whether it can be turned on and off.
        size_m: Extents along its own axes, shape (3,).
        opening_m: Width and depth of the hollow that can be reached from outside, larger first, along its own axes;
            None without one.
        side: Which part of its whole it is by its place, such as ``back``; None where it is known by its rank.
        room_under_m: Height of its underside over its lowest point, for half of its footprint at most; None for parts
            and the table.
    """

    name: str
    category: str
    part_of: str | None
    rank: int | None
    row_length: int | None
    movable: bool
    opens: bool
    switches: bool
    size_m: tuple[float, float, float]
    opening_m: tuple[float, float] | None
    side: str | None = None
    room_under_m: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SceneFacts:
    """Everything the checker may know about one base task's scene, over S initial states and E entities.

    Attributes:
        task_id: The base task.
        scene_sha256: Hash of the scene that was measured.
        workspace: LIBERO's name of what everything stands on, such as ``kitchen_table``.
        init_states: Numbers of the initial states, length S.
        entities: The entities, length E.
        position_m: Body positions in the world, in m, shape (S, E, 3).
        box_m: Axis-aligned bounding boxes in the world, lower and upper corner, in m, shape (S, E, 2, 3).
        on: Whether entity i rests on entity j, shape (S, E, E).
        inside: Whether entity i is inside entity j, shape (S, E, E).
        is_open: Whether an entity that opens is open, shape (S, E).
        is_on: Whether an entity that switches is on, shape (S, E).
    """

    task_id: str
    scene_sha256: str
    workspace: str
    init_states: tuple[int, ...]
    entities: tuple[Entity, ...]
    position_m: FloatArray
    box_m: FloatArray
    on: BoolArray
    inside: BoolArray
    is_open: BoolArray
    is_on: BoolArray

    def index(self, name: str) -> int:
        """Position of an entity in ``entities``.

        Raises:
            NotFoundError: The scene has no such entity.
        """
        for index, entity in enumerate(self.entities):
            if entity.name == name:
                return index
        known = [entity.name for entity in self.entities]
        raise NotFoundError(f"no entity '{name}' in {self.task_id}: {choices(name, known)}")

    def gap_m(self, i: int, j: int) -> FloatArray:
        """Distance between the bounding boxes of two entities in each state, in m, 0 where they overlap, shape (S,)."""
        return np.asarray(np.linalg.norm(self._box_gaps(i, j), axis=1))

    def horizontal_gap_m(self, i: int, j: int) -> FloatArray:
        """Horizontal distance between the bounding boxes in each state, in m, 0 where they overlap, shape (S,)."""
        return np.asarray(np.linalg.norm(self._box_gaps(i, j)[:, :2], axis=1))

    def _box_gaps(self, i: int, j: int) -> FloatArray:
        low_i, high_i = self.box_m[:, i, 0], self.box_m[:, i, 1]
        low_j, high_j = self.box_m[:, j, 0], self.box_m[:, j, 1]
        gaps: FloatArray = np.maximum(0.0, np.maximum(low_j - high_i, low_i - high_j))
        return gaps
