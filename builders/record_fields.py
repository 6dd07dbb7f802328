"""The fields of a record and their types: what a dataset's columns, its rows and the way back are derived from."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from enum import StrEnum
from types import UnionType
from typing import Annotated, Any, Union, get_args, get_origin, get_type_hints


def field_hints(record: type) -> dict[str, Any]:
    """Type hint of each field of a dataclass, in its order, with what ``Annotated`` adds."""
    hints = get_type_hints(record, include_extras=True)
    return {field.name: hints[field.name] for field in dataclasses.fields(record)}


def field_values(record: Any) -> dict[str, Any]:
    """Value of each field of a record, such as a record with more fields can be made of."""
    return {field.name: getattr(record, field.name) for field in dataclasses.fields(record)}


def without_none(hint: Any) -> Any:
    """The type of a field where it has a value.

    >>> without_none(int | None)
    <class 'int'>
    """
    if get_origin(hint) in (Union, UnionType):
        (hint,) = (kind for kind in get_args(hint) if kind is not type(None))
    return hint


def as_plain(value: Any) -> Any:
    """A field's value of enums, tuples and records as text, lists and dicts, which Arrow and JSON write.

    >>> from conflictvla.toolkit.records import Factor, Family
    >>> as_plain((Factor(family=Family.SPATIAL, premise="on(bowl, stove)", expected="on it", observed="beside it"),))
    [{'family': 'spatial', 'premise': 'on(bowl, stove)', 'expected': 'on it', 'observed': 'beside it', 'margin': None}]
    """
    if isinstance(value, StrEnum):
        return str(value)
    if isinstance(value, tuple):
        return [as_plain(element) for element in value]
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {name: as_plain(part) for name, part in field_values(value).items()}
    return value


def row_reader[Record](record: type[Record]) -> Callable[[Mapping[str, Any]], Record]:
    """A function that makes the record of a row, the way back from ``as_plain``; other columns are left out.

    It raises whatever a row without one of the columns, or with values of other types, leads to.
    """
    converters = {name: _from_plain(hint) for name, hint in field_hints(record).items()}

    def read(row: Mapping[str, Any]) -> Record:
        fields: dict[str, Any] = {}
        for name, convert in converters.items():
            value = row[name]
            fields[name] = value if value is None or convert is None else convert(value)
        return record(**fields)

    return read


def _from_plain(hint: Any) -> Callable[[Any], Any] | None:
    """What turns a plain value into the field's type; None where it is of that type already."""
    kind = without_none(hint)
    if get_origin(kind) is Annotated:
        kind = get_args(kind)[0]
    if get_origin(kind) is tuple:
        element = _from_plain(get_args(kind)[0])
        return tuple if element is None else lambda values: tuple(map(element, values))
    if dataclasses.is_dataclass(kind):
        return row_reader(kind)  # type: ignore[arg-type]
    return kind if isinstance(kind, type) and issubclass(kind, StrEnum) else None
