"""What the tests of run folders share."""

from __future__ import annotations

import sys

import pytest

from conflictvla.toolkit.simulation.scene_pool import ScenePool

from .short_runs import POLICIES


@pytest.fixture(scope="module", autouse=True)
def importable_policies() -> None:
    sys.path.insert(0, str(POLICIES))


@pytest.fixture(scope="module")
def scenes() -> ScenePool:
    return ScenePool()
