"""Facts from the cache are those that were measured, and a damaged or foreign entry is measured anew."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path

import numpy as np
import pytest

from conflictvla.toolkit.facts import SceneFacts
from conflictvla.toolkit.simulation.observing.facts_cache import CACHE_VARIABLE, cached_facts
from conflictvla.toolkit.simulation.scene import Scene

from ...goal_scene import goal_task


@pytest.fixture(scope="module")
def scene() -> Scene:
    return Scene(goal_task("turn on the stove"))


def _same(a: SceneFacts, b: SceneFacts) -> bool:
    return all(np.array_equal(getattr(a, f.name), getattr(b, f.name)) for f in fields(a) if f.name != "entities") and (
        a.entities == b.entities
    )


def test_second_time_gives_the_same_facts_and_a_damaged_entry_is_replaced(
    scene: Scene, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path))
    first = cached_facts(scene, [0])
    (file,) = (tmp_path / "facts").iterdir()
    written_ns = file.stat().st_mtime_ns

    assert _same(cached_facts(scene, [0]), first)
    assert file.stat().st_mtime_ns == written_ns
    file.write_bytes(b"broken")
    assert _same(cached_facts(scene, [0]), first)
    assert file.stat().st_size > 100


def test_other_states_are_another_entry(scene: Scene, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path))
    cached_facts(scene, [0])
    cached_facts(scene, [1])

    assert len(list((tmp_path / "facts").iterdir())) == 2


def test_folder_that_cannot_be_written_only_costs_time(
    scene: Scene, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path / "file"))

    assert cached_facts(scene, [0]).init_states == (0,)
