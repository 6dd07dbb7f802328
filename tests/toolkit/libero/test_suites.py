"""Suites that are folders: the package's graded one, and one of a user's own with states drawn for it."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from conflictvla.builders.suite_states import write_suite_states
from conflictvla.toolkit.errors import InvalidInputError, NotFoundError
from conflictvla.toolkit.libero import base_tasks as tasks_module
from conflictvla.toolkit.libero.base_tasks import base_tasks, initial_states, task_constraints
from conflictvla.toolkit.libero.suite_folders import SUITES_VARIABLE, packaged_suites, read_suite, suite_folders
from conflictvla.toolkit.safety import print_constraints, read_constraints
from conflictvla.toolkit.simulation.scene import Scene

GRADED = ("safety_l0", "safety_l1", "safety_l2")


def _forget() -> None:
    """As in a new process: what is known of suites is read once."""
    for remembered in (suite_folders, tasks_module._suite, tasks_module._suite_tasks, initial_states, task_constraints):
        remembered.cache_clear()


@pytest.fixture
def own_suite(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A suite of one of the package's tasks, without initial states."""
    folder = tmp_path / "my_suite"
    folder.mkdir()
    name = "state_preservation_put_the_bowl_on_the_stove"
    shutil.copy(packaged_suites() / "safety_l1" / f"{name}.bddl", folder)
    (folder / "suite.json").write_text(json.dumps({"horizon": 120, "tasks": [name]}))
    monkeypatch.setenv(SUITES_VARIABLE, str(tmp_path))
    _forget()
    yield folder
    _forget()


def test_the_graded_suite_has_the_same_tasks_at_three_levels() -> None:
    names = [[task.name for task in base_tasks(suite)] for suite in GRADED]
    assert names[0] == names[1] == names[2]
    assert len(names[0]) == 4
    for suite in GRADED:
        for task in base_tasks(suite):
            assert task.horizon == 300
            assert " ".join(task.name.split("_")[2:]) == task.instruction
            constraints = task_constraints(task)
            assert constraints.cost is not None
            assert read_constraints(print_constraints(constraints), task.bddl_file) == constraints
            states = initial_states(task)
            assert len(states) == 20
            assert np.isfinite(states).all()
            assert len(np.unique(states, axis=0)) == 20
            assert not states[:, 0].any()
    moving = [len(task_constraints(base_tasks(suite)[-1]).moving) for suite in GRADED]
    assert moving == [0, 1, 2]


def test_states_of_an_own_suite_are_drawn_from_a_seed_and_hold(own_suite: Path) -> None:
    (task,) = base_tasks("my_suite")
    assert (task.task_id, task.horizon) == (f"my_suite/{task.name}", 120)
    with pytest.raises(
        InvalidInputError, match="no initial states; draw them with  conflictvla suites states my_suite"
    ):
        initial_states(task)
    (file,) = write_suite_states("my_suite", count=2)
    first = file.read_bytes()
    scene = Scene(task)
    for init_state in range(2):
        scene.reset(init_state)
        assert scene.holds(("on", "butter_1", "akita_black_bowl_1"))
        assert not scene.succeeded()
        speed = np.abs(scene.data.qvel).max()
        assert speed < 0.05  # at rest, nothing falls into place
    write_suite_states("my_suite", count=2)
    assert file.read_bytes() == first
    write_suite_states("my_suite", count=2, seed=1)
    assert file.read_bytes() != first
    assert [path.name for path in own_suite.iterdir() if path.name.startswith(".")] == []


def test_what_is_wrong_with_a_suite_is_one_line(own_suite: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(NotFoundError, match="has a suite 'my_siute': did you mean 'my_suite'"):
        base_tasks("my_siute")
    with pytest.raises(NotFoundError, match="no folder has a suite 'libero_goal'"):
        write_suite_states("libero_goal", count=1)
    settings = own_suite / "suite.json"
    settings.write_text('{"horizon": 120, "tasks": ["nothing"]}')
    with pytest.raises(InvalidInputError, match=r"nothing\.bddl: there is no such file"):
        read_suite(own_suite)
    settings.write_text('{"tasks": []}')
    with pytest.raises(InvalidInputError, match=r"suite\.json: write \{\"horizon\": 300"):
        read_suite(own_suite)
    (own_suite / "nothing.bddl").write_text("(define (problem x)")
    settings.write_text('{"horizon": 120, "tasks": ["nothing"]}')
    with pytest.raises(InvalidInputError, match=r"nothing\.bddl: "):
        read_suite(own_suite)
    (own_suite / "state_preservation_put_the_bowl_on_the_stove.npz").write_text("no states")
    shutil.copytree(own_suite, own_suite.parent / "safety_l0")
    suite_folders.cache_clear()
    with pytest.raises(InvalidInputError, match="there is another suite 'safety_l0'"):
        suite_folders()
    monkeypatch.setenv(SUITES_VARIABLE, str(own_suite.parent / "nowhere"))
    suite_folders.cache_clear()
    with pytest.raises(InvalidInputError, match="nowhere: no suite there"):
        suite_folders()
