"""Suites of base tasks that are folders: those that the package carries, and a user's own.

A suite is a folder with a ``suite.json``, a BDDL file for each task, and beside each an ``.npz`` of initial states. It
answers the questions that a suite of LIBERO's registry answers, so that nothing else needs to know which is which.
"""

from __future__ import annotations

import functools
import json
import os
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np

from ..arrays import FloatArray
from ..errors import InvalidInputError
from .install import quiet

SUITES_VARIABLE = "CONFLICTVLA_SUITES"
"""Environment variable with folders of suites, separated as in ``PATH``."""

SETTINGS_FILE = "suite.json"
STATES = "states"
"""Name of the array of initial states in a task's ``.npz``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SuiteTask:
    """A task of a suite, with the attributes that LIBERO's have."""

    name: str
    language: str
    bddl_file: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SuiteFolder:
    """A suite in a folder; its name is the folder's.

    Attributes:
        folder: The folder.
        horizon: Most executed actions of a rollout.
        tasks: Its tasks in order.
    """

    folder: Path
    horizon: int
    tasks: tuple[SuiteTask, ...]

    @property
    def n_tasks(self) -> int:
        """How many tasks it has."""
        return len(self.tasks)

    def get_task(self, index: int) -> SuiteTask:
        """A task by number."""
        return self.tasks[index]

    def get_task_bddl_file_path(self, index: int) -> str:
        """Path of a task's BDDL file."""
        return str(self.folder / self.tasks[index].bddl_file)

    def states_file(self, index: int) -> Path:
        """Where a task's initial states are."""
        return self.folder / f"{self.tasks[index].name}.npz"

    def get_task_init_states(self, index: int) -> FloatArray:
        """A task's initial states, shape (S, 1 + nq + nv).

        Raises:
            InvalidInputError: It has none, or the file is damaged.
        """
        file = self.states_file(index)
        if not file.is_file():
            raise InvalidInputError(
                f"{file}: no initial states; draw them with  conflictvla suites states {self.folder.name}"
            )
        try:
            with np.load(file, allow_pickle=False) as stored:
                return np.asarray(stored[STATES], np.float64)
        except (OSError, ValueError, KeyError, EOFError) as error:
            raise InvalidInputError(f"{file}: cannot be read as initial states ({error}); draw them anew") from error


@functools.cache
def suite_folders() -> dict[str, Path]:
    """Folders of all suites that are folders, by name: the package's, then those of ``CONFLICTVLA_SUITES``.

    Raises:
        InvalidInputError: Two suites have one name, or a folder named in the variable holds none.
    """
    found: dict[str, Path] = {}
    own = [Path(part).expanduser() for part in os.environ.get(SUITES_VARIABLE, "").split(os.pathsep) if part]
    for place in (packaged_suites(), *own):
        suites = (
            [place] if (place / SETTINGS_FILE).is_file() else sorted(f.parent for f in place.glob(f"*/{SETTINGS_FILE}"))
        )
        if not suites:
            raise InvalidInputError(
                f"{place}: no suite there (named in {SUITES_VARIABLE}): a suite has a {SETTINGS_FILE}"
            )
        for folder in suites:
            if folder.name in found:
                raise InvalidInputError(
                    f"{folder}: there is another suite '{folder.name}', {found[folder.name]}; rename it"
                )
            found[folder.name] = folder
    return found


def packaged_suites() -> Path:
    """Folder of the suites that the package carries."""
    return Path(str(resources.files(__package__))) / "suites"


def read_suite(folder: Path) -> SuiteFolder:
    """A suite from its folder.

    Raises:
        InvalidInputError: It is none, or its settings or a task file are wrong.
    """
    file = folder / SETTINGS_FILE
    try:
        settings = json.loads(file.read_text(encoding="utf-8"))
        horizon, names = int(settings["horizon"]), [str(name) for name in settings["tasks"]]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise InvalidInputError(f'{file}: write {{"horizon": 300, "tasks": ["NAME", ...]}} ({error})') from error
    if horizon < 1 or not names or len(set(names)) < len(names):
        raise InvalidInputError(f"{file}: the horizon must be positive, and each task named once")
    return SuiteFolder(folder=folder, horizon=horizon, tasks=tuple(_task(folder, name) for name in names))


def _task(folder: Path, name: str) -> SuiteTask:
    from libero.libero.envs.bddl_utils import get_problem_info  # only now: its import needs LIBERO set up

    file = folder / f"{name}.bddl"
    if not file.is_file():
        raise InvalidInputError(f"{file}: there is no such file, but {SETTINGS_FILE} names the task")
    try:
        with quiet():
            problem: dict[str, Any] = get_problem_info(str(file))
    except Exception as error:  # LIBERO's parser raises whatever comes
        raise InvalidInputError(f"{file}: LIBERO cannot read it ({error})") from error
    if not problem["language_instruction"]:
        raise InvalidInputError(f"{file}: has no (:language ...) with the instruction")
    return SuiteTask(name=name, language=problem["language_instruction"], bddl_file=file.name)
