"""JSON files from outside the project, read field by field: each field is checked, unknown ones are refused."""

from __future__ import annotations

import json
import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ....toolkit.errors import DatasetError, first_line
from .limits import LONGEST_TEXT, is_plain_text

LARGEST_FILE_BYTES = 1 << 20

MOST_SHOWN = 20
"""Characters of a wrong value that a message shows."""


class FieldError(ValueError):
    """A field of a JSON file that is not what it has to be: one line, without the file."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JsonObject:
    """One object of a JSON file; its methods give fields of the asked kind, or raise ``FieldError``.

    Attributes:
        values: The fields by name.
        path: Where the object is in its file, as a prefix of its fields' names.
    """

    values: dict[str, Any]
    path: str = ""

    def check_fields(self, names: Collection[str]) -> None:
        """Refuse an object that lacks one of these fields, or has others."""
        for name in names:
            self._value(name)
        for name in self.values:
            if name not in names:
                raise FieldError(f"field {(self.path + name)[:60]!r} is not known")

    def text(self, name: str, most: int = LONGEST_TEXT) -> str:
        """Printable text of at most so many characters."""
        value = self._value(name)
        if not isinstance(value, str) or not is_plain_text(value, most):
            raise self._error(name, f"is no printable text of at most {most} characters")
        return value

    def choice(self, name: str, allowed: Sequence[str]) -> str:
        """One of the allowed texts."""
        value = self.text(name)
        if value not in allowed:
            raise self._error(name, f"is none of {', '.join(allowed)}")
        return value

    def count(self, name: str) -> int:
        """A whole number from 0 to 2**53."""
        return self._count(name, self._value(name))

    def counts(self, name: str, most: int) -> tuple[int, ...]:
        """A list of at most so many whole numbers."""
        return tuple(self._count(name, value) for value in self._list(name, most))

    def fraction(self, name: str, least: float) -> float:
        """A number from ``least`` to 1; NaN for null."""
        value = self._value(name)
        if value is None:
            return math.nan
        if isinstance(value, bool) or not isinstance(value, int | float) or not least <= value <= 1.0:
            raise self._error(name, f"is {str(value)[:MOST_SHOWN]!r}, not within [{least:g}, 1]")
        return float(value)

    def object(self, name: str) -> JsonObject:
        """An object within this one."""
        return self._object(name, self._value(name))

    def objects(self, name: str, most: int) -> tuple[JsonObject, ...]:
        """A list of at most so many objects."""
        values = self._list(name, most)
        return tuple(self._object(f"{name}[{number}]", value) for number, value in enumerate(values))

    def _value(self, name: str) -> Any:
        if name not in self.values:
            raise self._error(name, "is missing")
        return self.values[name]

    def _count(self, name: str, value: Any) -> int:
        if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < 1 << 53:
            raise self._error(name, f"is {str(value)[:MOST_SHOWN]!r}, not a count")
        return value

    def _list(self, name: str, most: int) -> list[Any]:
        value = self._value(name)
        if not isinstance(value, list) or len(value) > most:
            raise self._error(name, f"is no list of at most {most} values")
        return value

    def _object(self, name: str, value: Any) -> JsonObject:
        if not isinstance(value, dict):
            raise self._error(name, "is no object")
        return JsonObject(values=value, path=f"{self.path}{name}.")

    def _error(self, name: str, rule: str) -> FieldError:
        return FieldError(f"field '{self.path}{name}' {rule}")


def read_json_object(file: Path) -> JsonObject:
    """Read a file that holds one JSON object.

    Raises:
        DatasetError: It is no such file, or larger than ``LARGEST_FILE_BYTES``.
    """
    try:
        if file.stat().st_size > LARGEST_FILE_BYTES:
            raise DatasetError(f"{file}: is larger than {LARGEST_FILE_BYTES:,} bytes")
        content = json.loads(file.read_text(encoding="utf-8"), parse_constant=_refuse_constant)
    except (OSError, ValueError, RecursionError) as error:
        if isinstance(error, DatasetError):
            raise
        line = first_line(error)[:200]
        raise DatasetError(f"{file}: unreadable ({line})") from error
    if not isinstance(content, dict):
        raise DatasetError(f"{file}: not a JSON object")
    return JsonObject(values=content)


def _refuse_constant(name: str) -> float:
    raise ValueError(f"{name} is no number of JSON")
