"""The base tasks: LIBERO's own, through the installed package's benchmark registry, and those of suites in folders."""

from __future__ import annotations

import functools
import importlib.metadata
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from ..arrays import FloatArray
from ..errors import InvalidInputError, NotFoundError, choices
from ..records import HORIZONS, SUITES, BaseTask
from ..safety import Constraints, read_constraints
from .install import load_libero, quiet
from .suite_folders import read_suite, suite_folders

LONG_HORIZON = 520
"""Horizon of LIBERO's suites that the protocol does not name, such as libero_90."""

SUITE_ENTRY_POINTS = "conflictvla.suites"
"""Group of entry points in which an installed package offers suites by name: classes with the methods of LIBERO's
``Benchmark``."""


def base_tasks(suite: str | None = None) -> tuple[BaseTask, ...]:
    """The base tasks of one suite, or of the four suites of the benchmark in order.

    Raises:
        NotFoundError: Neither the installed LIBERO nor another installed package has such a suite.
        MissingExtraError: LIBERO is not installed.
    """
    if suite is None:
        return tuple(task for name in SUITES for task in base_tasks(name))
    return _suite_tasks(suite)


def base_task(suite: str, name: str) -> BaseTask:
    """One base task by suite and name.

    Raises:
        NotFoundError: There is none; the message names the closest.
    """
    for task in base_tasks(suite):
        if task.name == name:
            return task
    raise NotFoundError(f"no task '{name}' in {suite}: {choices(name, [task.name for task in base_tasks(suite)])}")


@functools.cache
def initial_states(task: BaseTask) -> FloatArray:
    """LIBERO's recorded initial states of a task.

    Returns:
        Read-only array of shape (50, 1 + nq + nv): time, joint positions, joint velocities, as MuJoCo orders them.
    """
    with quiet():
        states = np.array(_suite(task.suite).get_task_init_states(task.index), dtype=np.float64)
    states.setflags(write=False)
    return states


def check_init_states(task: BaseTask, init_states: Iterable[int]) -> None:
    """Make sure, before anything is built, that a task has the initial states asked for.

    Raises:
        InvalidInputError: It does not have one of them.
    """
    count = len(initial_states(task))
    for state in init_states:
        if not 0 <= state < count:
            raise InvalidInputError(f"initial state {state} of {task.task_id} does not exist: choose 0 to {count - 1}")


def bddl_path(task: BaseTask) -> str:
    """Absolute path of the task's BDDL file in the installed package."""
    path: str = _suite(task.suite).get_task_bddl_file_path(task.index)
    return os.path.realpath(path)


@functools.cache
def task_constraints(task: BaseTask) -> Constraints:
    """The costs and moving objects of the task's file; LIBERO's own files have none.

    Raises:
        InvalidInputError: A block is wrong; the message names the line.
    """
    return read_constraints(Path(bddl_path(task)).read_text(encoding="utf-8"), task.bddl_file)


@functools.cache
def _suite(name: str) -> Any:
    """A suite of LIBERO's registry, of an installed package, or in a folder, in this order."""
    registry = load_libero().benchmark.get_benchmark_dict()
    offered = {entry.name: entry for entry in importlib.metadata.entry_points(group=SUITE_ENTRY_POINTS)}
    folders = suite_folders()
    if name in registry or name in offered:
        with quiet():
            return (registry[name] if name in registry else offered[name].load())()
    if name in folders:
        return read_suite(folders[name])
    known = sorted({*registry, *offered, *folders})
    raise NotFoundError(
        f"neither LIBERO, an installed package nor a folder has a suite '{name}': {choices(name, known)}"
    )


@functools.cache
def _suite_tasks(name: str) -> tuple[BaseTask, ...]:
    suite = _suite(name)
    from libero.libero.envs.bddl_utils import robosuite_parse_problem  # only now: its own import asks and needs GL

    tasks = []
    for index in range(suite.n_tasks):
        entry = suite.get_task(index)
        with quiet():
            problem = robosuite_parse_problem(suite.get_task_bddl_file_path(index))
        tasks.append(
            BaseTask(
                suite=name,
                index=index,
                name=entry.name,
                instruction=entry.language,
                goal=tuple(tuple(predicate) for predicate in problem["goal_state"]),
                bddl_file=entry.bddl_file,
                horizon=HORIZONS.get(name, getattr(suite, "horizon", LONG_HORIZON)),
            )
        )
    return tuple(tasks)
