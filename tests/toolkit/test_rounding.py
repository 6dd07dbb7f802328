"""One way of rounding, whatever the processor and whatever was imported first."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from conflictvla.toolkit import rounding
from conflictvla.toolkit.rounding import KERNEL, VARIABLE

needs_avx2 = pytest.mark.skipif(not rounding._has_avx2(), reason="needs an x86 processor with AVX2")

KERNEL_HERE = "from conflictvla.toolkit.rounding import rounding_kernel; print(rounding_kernel())"
KERNEL_BELOW = (
    "from concurrent.futures import ProcessPoolExecutor; from multiprocessing import get_context\n"
    "from conflictvla.toolkit.rounding import hand_down_rounding, rounding_kernel\n"
    "hand_down_rounding()\n"
    "below = ProcessPoolExecutor(1, get_context('spawn')).submit(rounding_kernel).result()\n"
    "print(rounding_kernel() == below)"
)
ROLLOUT = (
    "import numpy as np; from conflictvla.toolkit.libero.base_tasks import base_tasks\n"
    "from conflictvla.toolkit.simulation.scene import Scene\n"
    "scene = Scene(base_tasks('libero_goal')[0]); scene.reset(0)\n"
    "for action in np.random.default_rng(0).uniform(-1, 1, (30, 7)): scene.step(action)\n"
    "print(scene.state().sha256())"
)
NO_AVX512 = "AVX512F AVX512CD AVX512_SKX AVX512_CLX AVX512_CNL AVX512_ICL AVX512_SPR"


def python(code: str, **variables: str) -> str:
    """What a new process prints, with only the variables given telling it how to compute."""
    ruled = ("OPENBLAS_", "NPY_", "NUMBA_", "GLIBC_")
    environment = {name: value for name, value in os.environ.items() if not name.startswith(ruled)}
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment | variables, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@needs_avx2
@pytest.mark.parametrize("first", ["", "import numpy; ", "import torch; "])
def test_every_process_rounds_alike(first: str) -> None:
    assert python(f"{first}import conflictvla; {KERNEL_HERE}") == KERNEL


@needs_avx2
def test_a_users_own_choice_stands() -> None:
    assert python(f"import conflictvla; {KERNEL_HERE}", **{VARIABLE: "Nehalem"}) == "Nehalem"


def test_processes_round_as_the_one_that_starts_them_even_where_scipy_came_first() -> None:
    assert python(f"import scipy.linalg\nif __name__ == '__main__':\n  exec({KERNEL_BELOW!r})") == "True"


def test_nothing_is_asked_of_a_processor_that_may_lack_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    for flags in ("flags : sse2 avx fma\n", None):
        file = tmp_path / "cpuinfo"
        if flags is not None:
            file.write_text(flags)
        monkeypatch.setattr(rounding, "CPUINFO", file if flags else tmp_path / "nowhere")
        rounding.pin_rounding()
        assert VARIABLE not in os.environ
    (tmp_path / "cpuinfo").write_text("flags : sse2 avx fma avx2 bmi2\n")
    monkeypatch.setattr(rounding, "CPUINFO", tmp_path / "cpuinfo")
    rounding.pin_rounding()
    assert os.environ[VARIABLE] == KERNEL


@needs_avx2
@pytest.mark.slow
@pytest.mark.parametrize(
    "other",
    [
        {VARIABLE: "Zen"},
        {"NPY_DISABLE_CPU_FEATURES": NO_AVX512},
        {"NUMBA_CPU_NAME": "generic"},
        {"GLIBC_TUNABLES": "glibc.cpu.hwcaps=-AVX512F,-AVX512VL,-AVX512BW,-AVX512DQ"},
    ],
    ids=["Zen", "NumPy without AVX-512", "Numba for any processor", "glibc without AVX-512"],
)
def test_other_processors_give_the_same_bits(other: dict[str, str], tmp_path: Path) -> None:
    assert python(ROLLOUT, NUMBA_CACHE_DIR=str(tmp_path), **other) == python(ROLLOUT)
