"""Examples in docstrings are run: what they show is what comes out."""

from __future__ import annotations

import doctest
import importlib
from pathlib import Path

import pytest

from .conftest import REPOSITORY

FLOORS = ("cli", "toolkit", "builders", "eval")


def _module(path: Path) -> str:
    return ".".join(("conflictvla", *path.relative_to(REPOSITORY).with_suffix("").parts))


MODULES = [
    _module(path)
    for floor in FLOORS
    for path in sorted((REPOSITORY / floor).rglob("*.py"))
    if ">>> " in path.read_text(encoding="utf-8")
]


@pytest.mark.parametrize("name", MODULES)
def test_examples_in_docstrings_hold(name: str) -> None:
    found = doctest.testmod(importlib.import_module(name))

    assert found.attempted > 0
    assert found.failed == 0
