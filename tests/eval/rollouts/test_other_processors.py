"""Recordings of another kind of processor: its rounding is imitated by the libraries' own switches."""

from __future__ import annotations

import json
import os
import platform
import re
import subprocess
import sys
from pathlib import Path

import pytest

from conflictvla.builders.tasks_dataset.reading import load_instances
from conflictvla.eval.rollouts.replay import OTHER_PROCESSORS_TOLERANCE
from conflictvla.eval.rollouts.run import run_policy, with_references
from conflictvla.toolkit.records import Arm
from conflictvla.toolkit.rounding import rounding_kernel

pytestmark = pytest.mark.skipif(platform.machine() not in ("x86_64", "AMD64"), reason="imitates x86 processors")

OTHER_PROCESSOR = {"OPENBLAS_CORETYPE": "Prescott"}
"""OpenBLAS without AVX2 and FMA, as on a processor that lacks them."""


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A reference in which the agent carries the bowl to the plate, and a conflict."""
    instances = load_instances()
    conflict = next(i for i in instances if i.arm is Arm.CONFLICT and i.base_task == "put_the_bowl_on_the_plate")
    chosen = with_references([conflict], instances)
    run = run_policy("refuse", chosen, tmp_path_factory.mktemp("out"), init_states=[0])
    assert run.dataset is not None
    return run.dataset


def replayed_elsewhere(folder: Path, *options: str) -> tuple[int, list[dict[str, object]]]:
    """Exit code and what ``conflictvla replay --json`` prints in a process that rounds differently."""
    done = subprocess.run(
        [sys.executable, "-m", "conflictvla.cli", "replay", str(folder), "--json", *options],
        env=os.environ | OTHER_PROCESSOR,
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, json.loads(done.stdout)


def test_another_processors_recording_replays_step_by_step(recorded: Path) -> None:
    code, checks = replayed_elsewhere(recorded)
    assert code == 1
    kernel = rounding_kernel()
    message = rf"settled_state_sha256 .* by its {kernel} kernel, .* here: set OPENBLAS_CORETYPE={kernel}, or give --tol"
    assert all(re.match(message, str(check["difference"])) for check in checks)

    code, checks = replayed_elsewhere(recorded, "--tolerance", str(OTHER_PROCESSORS_TOLERANCE))
    assert (code, [check["difference"] for check in checks]) == (0, [None, None])
    assert all(0.0 < float(str(check["largest"])) < OTHER_PROCESSORS_TOLERANCE for check in checks)
