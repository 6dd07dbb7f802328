"""The versions that the code counts on are those that an installation brings."""

import tomllib
from pathlib import Path

from conflictvla.toolkit.libero.install import MUJOCO_VERSION

REPOSITORY = Path(__file__).resolve().parents[3]


def test_mujoco_is_pinned_to_the_version_that_the_solver_follows() -> None:
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert f"mujoco=={MUJOCO_VERSION}" in project["optional-dependencies"]["sim"]
