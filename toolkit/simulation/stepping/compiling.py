"""How the functions of a simulation's step are compiled.

A kernel divides as NumPy does, without asking for zero first. It allocates nothing and so counts no references to
memory: with the few numbers of a contact, that would take longer than the work. Only compiled code can call it, since
what Python would need for that takes a quarter of the time to compile. No kernel is cached by itself, since
Numba does not notice changes in the files of what a function calls; the function that calls them all is.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numba
from numba.core.registry import CPUDispatcher

ERROR_MODEL: Final = "numpy"


class _Kernel(CPUDispatcher):
    """A compiled function that Python cannot call."""

    def __call__(self, *_arguments: object) -> None:
        raise TypeError(f"{self.py_func.__name__}: only compiled code can call it")


def cached[F: Callable[..., Any]](*, sources: str) -> Callable[[F], F]:
    """Compile a function that Python calls, and cache the result on disk for other processes.

    Args:
        sources: Hash of all files that the function is compiled from.
    """

    def compile_cached(function: F) -> F:
        # Numba itself looks for changes in the function's own file alone, and fails on an entry that was cached when
        # a record had another name; so the entry's name tells one version of the sources from another.
        function.__qualname__ += f"_{sources[:16]}"
        options: dict[str, Any] = {"cache": True, "no_cfunc_wrapper": True}
        compiled: Any = numba.njit(**options)(function)
        typed: F = compiled
        return typed

    return compile_cached


def kernel[F: Callable[..., Any]](function: F) -> F:
    """Compile a kernel."""
    return _compile(function)


def inlined[F: Callable[..., Any]](function: F) -> F:
    """Compile a kernel as part of the one that calls it; worth it for large ones that are called in one place."""
    return _compile(function, inline="always")


def _compile[F: Callable[..., Any]](function: F, **options: Any) -> F:
    options |= {"_nrt": False, "no_cpython_wrapper": True, "no_cfunc_wrapper": True}
    compiled: Any = numba.njit(error_model=ERROR_MODEL, **options)(function)
    compiled.__class__ = _Kernel
    typed: F = compiled
    return typed
