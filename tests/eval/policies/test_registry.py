"""A policy is found by whatever names it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from conflictvla.eval.policies.registry import ENTRY_POINTS, load_policy
from conflictvla.toolkit.errors import NotFoundError

MISBEHAVING = Path(__file__).parents[1] / "rollouts"


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A package of a user's that offers policies, as pip would install it."""
    metadata = tmp_path / "drifters-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: drifters\nVersion: 1.0\n")
    entries = "drift = misbehaving:Drift\nabsent = misbehaving:Absent\n"
    (metadata / "entry_points.txt").write_text(f"[{ENTRY_POINTS}]\n{entries}")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.syspath_prepend(str(MISBEHAVING))


@pytest.mark.usefixtures("installed")
def test_a_class_that_an_installed_package_offers_is_found_by_name() -> None:
    assert load_policy("drift").info.name == "drift"
    with pytest.raises(NotFoundError, match="module 'misbehaving' has no 'Absent'"):
        load_policy("absent")


def test_what_nobody_offers_is_refused_with_all_the_ways_to_name_a_policy() -> None:
    with pytest.raises(NotFoundError, match=r"no policy 'persits': did you mean 'persist'.* lerobot:.*module:Class"):
        load_policy("persits")


def test_a_class_in_the_working_directory_is_found_by_the_installed_command(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text("class Mine:\n    pass\n")
    command = [str(Path(sys.executable).with_name("conflictvla")), "probe", "--policy", "mine:Mine"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "Mine needs the attribute info and the methods reset and act" in done.stderr
