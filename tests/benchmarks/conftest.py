"""Where benchmarks leave their figures: ``build/benchmarks.json``, rewritten by each ``make bench``.

Files here are named ``bench_*.py``, so that a plain test run leaves them out. Take the smallest of several repeats:
what a machine adds to a measurement by doing other things is never negative.
"""

import json
import os
import platform
import time
from collections.abc import Callable, Iterator
from importlib.metadata import version
from pathlib import Path

import pytest

RESULTS = Path(__file__).resolve().parents[2] / "build" / "benchmarks.json"


@pytest.fixture(scope="session")
def figures() -> Iterator[dict[str, float]]:
    """The figures measured so far, by name; a name ends in its unit or says that it is a ratio."""
    measured: dict[str, float] = {}
    yield measured
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(json.dumps({**measured, "machine": _machine()}, indent=2) + "\n", encoding="utf-8")


@pytest.fixture(scope="session")
def best_seconds() -> Callable[..., float]:
    """A function that times a call: the shortest of ``repeats`` runs, in s."""

    def measure(call: Callable[[], object], *, repeats: int = 5) -> float:
        durations = []
        for _ in range(repeats):
            start = time.perf_counter()
            call()
            durations.append(time.perf_counter() - start)
        return min(durations)

    return measure


def _machine() -> dict[str, str | int | None]:
    return {
        "system": platform.system(),
        "architecture": platform.machine(),
        "processor": _processor(),
        "cpu_count": os.cpu_count(),
        "python": platform.python_version(),
        **{name: version(name) for name in ("numpy", "mujoco", "robosuite")},
    }


def _processor() -> str:
    cpuinfo = Path("/proc/cpuinfo")
    if not cpuinfo.exists():
        return platform.processor()
    for line in cpuinfo.read_text(encoding="utf-8").splitlines():
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return platform.processor()
