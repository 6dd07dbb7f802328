"""Short runs for the tests of run folders, in this process or as a program: two base tasks, a case of each, 8 steps."""

from __future__ import annotations

import dataclasses
import functools
import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from conflictvla.builders.tasks_dataset.reading import load_instances
from conflictvla.eval.rollouts.executors.choose import choose_executor
from conflictvla.eval.rollouts.executors.in_process import InProcess
from conflictvla.eval.rollouts.jobs import parse_shard
from conflictvla.eval.rollouts.run import Run, RunProgress, run_policy, with_references
from conflictvla.toolkit.records import Arm, Instance, Prompt
from conflictvla.toolkit.simulation.scene_pool import ScenePool

POLICIES = Path(__file__).parents[1]
BASE_TASKS = ("put_the_bowl_on_the_plate", "turn_on_the_stove")
HORIZON = 8
ALL = 8
"""Rollouts of both base tasks from two initial states."""


@functools.cache
def instances_of(tasks: Sequence[str] = BASE_TASKS) -> tuple[Instance, ...]:
    """The first case of each base task, and the references."""
    everything = load_instances()
    conflicts = [
        next(i for i in everything if (i.arm, i.prompt, i.base_task) == (Arm.CONFLICT, Prompt.P0, task))
        for task in tasks
    ]
    return tuple(dataclasses.replace(i, horizon=HORIZON) for i in with_references(conflicts, everything))


class Seen:
    """What a run has reported."""

    def __init__(self) -> None:
        self.states: list[RunProgress] = []

    def __call__(self, state: RunProgress) -> None:
        self.states.append(state)

    @property
    def ran(self) -> int:
        """How many rollouts were run."""
        return sum(state.job is not None for state in self.states)

    @property
    def steps(self) -> list[tuple[int, int]]:
        """How many were done, of how many."""
        return [(state.done, state.total) for state in self.states]


def run(
    scenes: ScenePool,
    out: Path,
    *,
    policy: str = "misbehaving:Drift",
    tasks: Sequence[str] = BASE_TASKS,
    states: Sequence[int] = (0, 1),
    shard: str | None = None,
    keep_going: bool = False,
    seen: Seen | None = None,
) -> Run:
    """A run in this process."""
    return run_policy(
        policy,
        instances_of(tuple(tasks)),
        out,
        init_states=states,
        executor=InProcess(scenes),
        shard=None if shard is None else parse_shard(shard),
        keep_going=keep_going,
        progress=seen,
    )


def content(folder: Path) -> dict[str, bytes]:
    """Every file in a folder, hidden ones too."""
    return {str(file.relative_to(folder)): file.read_bytes() for file in sorted(folder.rglob("*")) if file.is_file()}


def start(out: Path, *, policy: str = "misbehaving:Slow", shard: str = "1/1") -> subprocess.Popen[str]:
    """A run in a process of its own; it prints a line for each report."""
    command = [sys.executable, str(Path(__file__)), str(out), policy, shard]
    environment = {**os.environ, "PYTHONPATH": str(POLICIES)}
    return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)


def _print(state: RunProgress) -> None:
    sys.stdout.write(json.dumps({"ran": state.job is not None, "done": state.done, "waiting": state.waiting}) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    finished = run_policy(
        sys.argv[2],
        instances_of(),
        Path(sys.argv[1]),
        init_states=[0, 1],
        executor=choose_executor(1, None),
        shard=parse_shard(sys.argv[3]),
        progress=_print,
    )
    sys.stdout.write(json.dumps({"dataset": str(finished.dataset), "unfinished": str(finished.unfinished)}) + "\n")
