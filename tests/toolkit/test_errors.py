"""An error's first line, however it was written."""

from __future__ import annotations

import pytest

from conflictvla.toolkit.errors import describe_error, first_line


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
