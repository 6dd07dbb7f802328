"""One way of rounding on all x86 processors, so that a rollout recorded on one happens again on another, bit for bit.

The controller multiplies matrices with the OpenBLAS that SciPy brings. It has kernels that round differently, and picks
one by the processor when it is loaded, unless an environment variable names one.
"""

from __future__ import annotations

import os
from pathlib import Path

VARIABLE = "OPENBLAS_CORETYPE"
"""Environment variable that names OpenBLAS's kernel; a user's own choice stands."""

KERNEL = "Haswell"
"""Runs wherever there is AVX2; without AVX-512, OpenBLAS itself picks it, or Zen, which rounds alike."""

CPUINFO = Path("/proc/cpuinfo")


def pin_rounding() -> None:
    """Set ``KERNEL`` where it can run. Has no effect in a process that has loaded SciPy's OpenBLAS before."""
    if VARIABLE not in os.environ and _has_avx2():
        os.environ[VARIABLE] = KERNEL


def _has_avx2() -> bool:
    """Whether the processor is known to have AVX2; only Linux's files are read for it."""
    try:
        return " avx2 " in CPUINFO.read_text(encoding="utf-8")
    except OSError:
        return False


def rounding_kernel() -> str:
    """The kernel by which this process rounds, such as ``Haswell``; ``unknown`` where SciPy has another library."""
    import scipy.linalg.cython_blas  # noqa: F401  # loads it
    from threadpoolctl import threadpool_info

    loaded = [library for library in threadpool_info() if "scipy.libs" in library["filepath"]]
    return str(loaded[0].get("architecture", "unknown")) if loaded else "unknown"


def hand_down_rounding() -> None:
    """Let processes that this one starts round as it does, also where ``pin_rounding`` came too late for it."""
    kernel = rounding_kernel()
    if kernel != "unknown":
        os.environ[VARIABLE] = kernel
