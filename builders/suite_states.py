"""Initial states of a suite in a folder, drawn and written beside its task files."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path

import numpy as np

from ..toolkit.atomic_files import write_atomic
from ..toolkit.errors import NotFoundError, choices
from ..toolkit.libero.base_tasks import base_tasks
from ..toolkit.libero.suite_folders import STATES, read_suite, suite_folders


def write_suite_states(
    name: str, *, count: int, seed: int = 0, progress: Callable[[str], None] | None = None
) -> tuple[Path, ...]:
    """Draw the initial states of all tasks of a suite; the same bytes for the same seed and software.

    Args:
        name: The suite's name.
        count: How many states a task gets.
        seed: Seed of the draws.
        progress: Called with each task's name when its states are written.

    Raises:
        NotFoundError: No folder has a suite of that name.
        InvalidInputError: The folder cannot be written, or a task's states never hold.
    """
    from ..toolkit.simulation.initial_states import draw_initial_states
    from ..toolkit.simulation.scene import Scene

    folders = suite_folders()
    if name not in folders:
        raise NotFoundError(f"no folder has a suite '{name}': {choices(name, sorted(folders))}")
    suite = read_suite(folders[name])
    written = []
    for task in base_tasks(name):
        states = draw_initial_states(Scene(task), count, seed=seed)
        file, content = suite.states_file(task.index), io.BytesIO()
        np.savez_compressed(content, allow_pickle=False, **{STATES: states})
        write_atomic(file, content.getvalue())
        written.append(file)
        if progress:
            progress(task.name)
    return tuple(written)
