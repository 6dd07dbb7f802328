"""How the solver's functions are compiled.

All of them divide as NumPy does, without asking for zero first. Those that allocate nothing do not count references to
their arrays either: with the small arrays of a contact, that would take longer than their work. None is kept compiled
by itself, since Numba does not notice changes in the files of what a function calls; who calls them keeps the whole.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numba


def allocating[F: Callable[..., Any]](function: F) -> F:
    """Compile a function that allocates arrays."""
    return _compiled(function)


def kernel[F: Callable[..., Any]](function: F) -> F:
    """Compile a function that does not."""
    return _compiled(function, _nrt=False)


def inlined[F: Callable[..., Any]](function: F) -> F:
    """Compile a function that does not either, as part of each that calls it."""
    return _compiled(function, _nrt=False, inline="always")


def _compiled[F: Callable[..., Any]](function: F, **options: Any) -> F:
    compiled: F = numba.njit(error_model="numpy", **options)(function)
    return compiled


def sources_sha256() -> str:
    """Hash of the files that the solver is compiled from."""
    files = [*sorted(Path(__file__).parent.glob("*.py")), Path(__file__).parents[1] / "mujoco_library.py"]
    digest = hashlib.sha256()
    for file in files:
        digest.update(file.read_bytes())
    return digest.hexdigest()
