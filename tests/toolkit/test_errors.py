"""An error's first line, however it was written."""

from __future__ import annotations

import pytest

from conflictvla.toolkit.errors import choices, describe_error, first_line


@pytest.mark.parametrize(
    ("error", "line", "described"),
    [
        (ValueError("first\nsecond"), "first", "ValueError: first"),
        (ValueError("\n  first  \nsecond"), "first", "ValueError: first"),
        (ValueError(), "ValueError", "ValueError"),
        (KeyError("key"), "'key'", "KeyError: 'key'"),
    ],
)
def test_an_error_is_described_in_one_line(error: Exception, line: str, described: str) -> None:
    assert (first_line(error), describe_error(error)) == (line, described)


def test_all_names_are_listed_unless_they_are_very_many() -> None:
    names = [f"name_{number}" for number in range(2000)]
    assert choices("table", names[:30]) == f"(known: {', '.join(names[:30])})"
    assert choices("table", names).endswith(", name_49 and 1,950 more)")
    assert choices("nmae_7", names).startswith("did you mean 'name_7'? (known: name_0, ")
