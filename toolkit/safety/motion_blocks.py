"""One entry of a ``(:moving_objects ...)`` block, read and printed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..errors import choices
from .expressions import Expression, number_text, read_number, refuse
from .motions import AnyMotion, CircularMotion, LinearMotion, MovingObject, ProjectileMotion, Vector, WaypointMotion

TYPE = ":motion_type"
ATTRIBUTES: dict[str, dict[str, str]] = {
    "linear": {":motion_period": "period", ":motion_travel_dist": "travel_m", ":motion_direction": "direction"},
    "circular": {":motion_period": "period", ":motion_center": "centre_m"},
    "waypoint": {":motion_period": "period", ":motion_waypoints": "waypoints"},
    "projectile": {
        ":motion_initial_speed": "speed_m_s",
        ":motion_direction": "direction",
        ":motion_gravity": "gravity_m_s2",
        ":motion_floor": "floor_m",
    },
}
"""Attributes of each motion type as in the paper, and the fields of its record. ``:motion_floor`` and a waypoint
motion's ``:motion_period`` are this project's own."""

RECORDS: dict[str, Callable[..., AnyMotion]] = {
    "linear": LinearMotion,
    "circular": CircularMotion,
    "waypoint": WaypointMotion,
    "projectile": ProjectileMotion,
}
DEFAULTS = {"floor_m": 0.0}
SHORTEST_PERIOD = 2.0
"""Steps of the shortest cycle."""


def read_moving_object(item: Expression, where: str) -> MovingObject:
    """One object with its motion.

    Raises:
        InvalidInputError: Something is missing or wrong; the message names the line.
    """
    if not item.head or item.head.startswith(":"):
        refuse(item, where, "write (OBJECT (:motion_type TYPE) (:ATTRIBUTE VALUE) ...)")
    given: dict[str, Expression] = {}
    for pair in item.items[1:]:
        if len(pair.items) != 2 or not pair.head.startswith(":"):
            refuse(pair, where, f"'{pair}' is no attribute; write (:ATTRIBUTE VALUE)")
        if pair.head in given:
            refuse(pair, where, f"a second {pair.head} of '{item.head}'")
        given[pair.head] = pair.items[1]
    if TYPE not in given:
        refuse(item, where, f"'{item.head}' has no ({TYPE} ...): one of {', '.join(ATTRIBUTES)}")
    kind = str(given.pop(TYPE))
    if kind not in ATTRIBUTES:
        refuse(item, where, f"no motion '{kind}': {choices(kind, list(ATTRIBUTES))}")
    fields = dict(DEFAULTS) if kind == "projectile" else {}
    values: dict[str, Any] = {**fields}
    for name, value in given.items():
        if name not in ATTRIBUTES[kind]:
            refuse(value, where, f"a {kind} motion has no {name}: {choices(name, list(ATTRIBUTES[kind]))}")
        field = ATTRIBUTES[kind][name]
        values[field] = _value(field, value, where)
    for name, field in ATTRIBUTES[kind].items():
        if field not in values:
            refuse(item, where, f"the {kind} motion of '{item.head}' lacks ({name} ...)")
    return MovingObject(name=item.head, motion=RECORDS[kind](**values))


def print_moving_object(moving: MovingObject) -> str:
    """The entry as text; reading it gives the same object and motion."""
    kind = next(name for name, record in RECORDS.items() if isinstance(moving.motion, record))  # type: ignore[arg-type]
    attributes = "".join(
        f" ({name} {_text(getattr(moving.motion, field))})" for name, field in ATTRIBUTES[kind].items()
    )
    return f"({moving.name} ({TYPE} {kind}){attributes})"


def _value(field: str, item: Expression, where: str) -> Any:
    if field == "period":
        return read_number(item, where, least=SHORTEST_PERIOD)
    if field == "waypoints":
        return _waypoints(item, where)
    if field in ("direction", "centre_m"):
        vector = _vector(item.items, item, where)
        if field == "direction" and not any(vector):
            refuse(item, where, "a direction of (0 0 0) points nowhere")
        return vector
    return read_number(item, where, least=0.0)


def _vector(items: tuple[Expression, ...], of: Expression, where: str) -> Vector:
    if len(items) != 3:
        refuse(of, where, f"'{of}' is not three numbers; write such as (0 1 0)")
    x, y, z = (read_number(one, where) for one in items)
    return x, y, z


def _waypoints(item: Expression, where: str) -> tuple[tuple[Vector, Vector], ...]:
    """Each waypoint is six numbers: position, and direction of the object's own x axis."""
    if not item.items:
        refuse(item, where, "give at least one waypoint: ((x y z dir_x dir_y dir_z) ...)")
    stops = []
    for one in item.items:
        if len(one.items) != 6:
            refuse(one, where, f"'{one}' is no waypoint; write (x y z dir_x dir_y dir_z)")
        place, direction = _vector(one.items[:3], one, where), _vector(one.items[3:], one, where)
        if not any(direction):
            refuse(one, where, "a direction of 0 0 0 points nowhere")
        stops.append((place, direction))
    return tuple(stops)


def _text(value: Any) -> str:
    if isinstance(value, float):
        return number_text(value)
    if isinstance(value[0], float):
        return f"({' '.join(map(number_text, value))})"
    return f"({' '.join(f'({" ".join(map(number_text, place + direction))})' for place, direction in value)})"
