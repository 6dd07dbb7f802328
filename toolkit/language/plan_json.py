"""Plans as JSON, as the datasets' columns hold them."""

from __future__ import annotations

import json
from enum import StrEnum
from typing import Any

from ..errors import InvalidInputError
from .plan import Claim, Constraint, Demand, Plan, Reference, Relation, Step, Verb


def plan_to_json(plan: Plan) -> str:
    """The plan as compact JSON with sorted keys; absent parts are left out."""
    return json.dumps(_compact(plan), sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def plan_from_json(text: str) -> Plan:
    """The inverse of ``plan_to_json``.

    Raises:
        InvalidInputError: The text is not a plan.
    """
    try:
        fields = _object(json.loads(text), "plan", ("steps",))
        return Plan(steps=tuple(_step(step) for step in _list(fields, "steps")))
    except (TypeError, ValueError, RecursionError) as error:
        why = str(error).partition("\n")[0]
        raise InvalidInputError(f"not a plan: {str(text)[:80]!r} ({why})") from error


def _compact(value: Any) -> Any:
    if isinstance(value, Plan | Step | Constraint | Reference | Claim):
        fields = {name: _compact(getattr(value, name)) for name in value.__slots__}
        return {name: field for name, field in fields.items() if field not in (None, [])}
    if isinstance(value, tuple):
        return [_compact(item) for item in value]
    return str(value) if isinstance(value, StrEnum) else value


def _object(value: Any, what: str, names: tuple[str, ...]) -> dict[str, Any]:
    """An object that has no fields but these."""
    if not isinstance(value, dict):
        raise InvalidInputError(f"a {what} is an object, not {value!r:.40}")
    for name in value:
        if name not in names:
            raise InvalidInputError(f"a {what} has no field {name!r:.40}")
    return value


def _list(fields: dict[str, Any], name: str) -> list[Any]:
    """A list, empty where it is absent."""
    value = fields.get(name, [])
    if not isinstance(value, list):
        raise InvalidInputError(f"'{name}' is a list, not {value!r:.40}")
    return value


def _text(fields: dict[str, Any], name: str) -> str:
    value = fields.get(name)
    if not isinstance(value, str) or not value:
        raise InvalidInputError(f"'{name}' is a text, not {value!r:.40}")
    return value


def _optional_text(fields: dict[str, Any], name: str) -> str | None:
    return None if fields.get(name) is None else _text(fields, name)


def _optional_count(fields: dict[str, Any]) -> int | None:
    value = fields.get("count")
    # True and False are integers to Python, but not to a reader.
    if value is not None and (not isinstance(value, int) or isinstance(value, bool) or value < 0):
        raise InvalidInputError(f"'count' is a whole number, not {value!r:.40}")
    return value


def _reference(value: Any) -> Reference:
    fields = _object(value, "reference", ("noun", "adjective", "ordinal", "of", "count", "claims"))
    return Reference(
        noun=_text(fields, "noun"),
        adjective=_optional_text(fields, "adjective"),
        ordinal=_optional_text(fields, "ordinal"),
        of=_optional_reference(fields.get("of")),
        count=_optional_count(fields),
        claims=tuple(_claim(claim) for claim in _list(fields, "claims")),
    )


def _claim(value: Any) -> Claim:
    fields = _object(value, "claim", ("relation", "landmarks"))
    return Claim(
        relation=Relation(_text(fields, "relation")),
        landmarks=tuple(_reference(landmark) for landmark in _list(fields, "landmarks")),
    )


def _optional_reference(value: Any) -> Reference | None:
    return None if value is None else _reference(value)


def _optional_relation(fields: dict[str, Any]) -> Relation | None:
    name = _optional_text(fields, "relation")
    return None if name is None else Relation(name)


def _constraint(value: Any) -> Constraint:
    fields = _object(value, "constraint", ("demand", "subject", "relation", "landmark"))
    return Constraint(
        demand=Demand(_text(fields, "demand")),
        subject=_reference(fields.get("subject")),
        relation=_optional_relation(fields),
        landmark=_optional_reference(fields.get("landmark")),
    )


def _step(value: Any) -> Step:
    fields = _object(value, "step", ("verb", "object", "relation", "destination", "constraints"))
    return Step(
        verb=Verb(_text(fields, "verb")),
        object=_reference(fields.get("object")),
        relation=_optional_relation(fields),
        destination=_optional_reference(fields.get("destination")),
        constraints=tuple(_constraint(constraint) for constraint in _list(fields, "constraints")),
    )
