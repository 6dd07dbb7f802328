"""How far recordings are from what another kind of processor makes of them, step by step.

Other processors are imitated by the libraries' own switches: OpenBLAS's kernels and the C library's functions, each
without the vector instructions of this machine.
"""

import json
import os
import platform
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from conflictvla.builders.tasks_dataset.reading import load_instances
from conflictvla.eval.rollouts.replay import OTHER_PROCESSORS_TOLERANCE
from conflictvla.eval.rollouts.run import run_policy, with_references
from conflictvla.eval.selection import select_conflicts
from conflictvla.toolkit.records import Prompt

CASES = "libero_goal/put_the_bowl_on_the_plate/*/L1/00*,libero_10/*/grounding/L1/00*,libero_spatial/*/spatial/L2/00*"
PROCESSORS = {
    "openblas_prescott": {"OPENBLAS_CORETYPE": "Prescott"},
    "openblas_zen": {"OPENBLAS_CORETYPE": "Zen"},
    "libm_without_avx_fma": {"GLIBC_TUNABLES": "glibc.cpu.hwcaps=-AVX512F,-AVX2,-AVX,-FMA,-FMA4"},
}


def test_other_processors(tmp_path: Path, figures: dict[str, float]) -> None:
    if platform.machine() not in ("x86_64", "AMD64"):
        pytest.skip("imitates x86 processors")
    everything = load_instances()
    chosen = with_references(select_conflicts(everything, CASES, [Prompt.P0]), everything)
    run = run_policy("persist", chosen, tmp_path, init_states=[0])
    assert run.dataset is not None
    for name, switches in PROCESSORS.items():
        done = subprocess.run(
            [sys.executable, "-m", "conflictvla.cli", "replay", str(run.dataset), "--json", "--tolerance", "1e9"],
            env=os.environ | switches,
            capture_output=True,
            text=True,
            check=True,
        )
        checks = json.loads(done.stdout)
        largest = np.array([check["largest"] for check in checks])
        assert [check["difference"] for check in checks] == [None] * run.rollouts  # outcomes are the same
        figures[f"replay_{name}_rollouts"] = len(largest)
        figures[f"replay_{name}_largest_difference"] = float(largest.max())
        figures[f"replay_{name}_median_difference"] = float(np.median(largest))
        assert largest.max() < OTHER_PROCESSORS_TOLERANCE
