"""A record becomes plain values, and comes back from them, whatever fields it has."""

from __future__ import annotations

import json
from dataclasses import dataclass

import pytest

from conflictvla.builders.record_fields import as_plain, field_values, row_reader
from conflictvla.toolkit.records import Factor, Family, Level

FACTOR = Factor(family=Family.SPATIAL, premise="on(bowl, stove)", expected="on it", observed="0.2 m off", margin=0.2)


@dataclass(frozen=True, slots=True, kw_only=True)
class Note:
    level: Level | None
    factors: tuple[Factor, ...]
    numbers: tuple[float, ...] | None
    text: str


@pytest.mark.parametrize(
    "note",
    [
        Note(level=Level.L2, factors=(FACTOR, FACTOR), numbers=(1.0, 2.5), text="both"),
        Note(level=None, factors=(), numbers=None, text=""),
    ],
)
def test_record_comes_back_from_json(note: Note) -> None:
    row = json.loads(json.dumps(as_plain(note)))

    assert row_reader(Note)({**row, "another column": 1}) == note


def test_plain_values_are_of_pythons_own_types() -> None:
    plain = as_plain(FACTOR)

    assert plain == {**field_values(FACTOR), "family": "spatial"}
    assert type(plain["family"]) is str


def test_row_without_a_column_or_with_an_unknown_name_is_refused() -> None:
    row = as_plain(FACTOR)
    with pytest.raises(KeyError, match="premise"):
        row_reader(Factor)({name: value for name, value in row.items() if name != "premise"})
    with pytest.raises(ValueError, match="somewhere"):
        row_reader(Factor)({**row, "family": "somewhere"})


def test_fields_of_a_record_are_named_with_their_values() -> None:
    assert list(field_values(FACTOR)) == ["family", "premise", "expected", "observed", "margin"]
