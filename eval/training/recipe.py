"""The learned example from nothing: record demonstrations of libero_goal, train on them, leave a checkpoint."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path

from ...toolkit.errors import InvalidInputError, MissingExtraError
from ...toolkit.libero.base_tasks import base_tasks
from .demonstrations import (
    Demonstrations,
    agreeing_demonstrations,
    demonstrate,
    read_demonstrations,
    write_demonstrations,
)

SUITE = "libero_goal"
"""Its ten tasks share one scene, down to where objects stand: only the instruction shows which one is meant."""

INIT_STATES = range(10, 30)
"""Initial states that demonstrations start from; evaluations start from 0 to 4."""

SEED = 0
"""Seed of the demonstrations' disturbance and of the training."""

STEPS = 5_000
"""Gradient steps that the checkpoint which ships with the package took."""


def demonstration_count() -> int:
    """How many demonstrations are recorded."""
    return len(base_tasks(SUITE)) * len(INIT_STATES)


def record_example(folder: Path, progress: Callable[[str], None] = lambda _: None) -> tuple[Demonstrations, ...]:
    """Record the demonstrations that a folder does not hold yet, a file for each base task, and read all.

    Args:
        folder: Where the files go.
        progress: Called with the instruction after each demonstration, recorded or read.

    Raises:
        InvalidInputError: The folder cannot be written, or holds demonstrations recorded otherwise.
        DatasetError: A file is damaged.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InvalidInputError(f"{folder}: cannot be written ({error.strerror}); choose another --out") from error
    found = []
    for task in sorted(base_tasks(SUITE), key=lambda task: task.name):
        file = folder / f"{task.name}.safetensors"
        if not file.exists():
            write_demonstrations(demonstrate(task, INIT_STATES, seed=SEED, progress=progress), file)
        else:
            for _ in INIT_STATES:
                progress(task.instruction)
        found.append(read_demonstrations(file))
        if found[-1].seed != SEED or found[-1].init_states != tuple(INIT_STATES):
            raise InvalidInputError(f"{file}: recorded with another seed or from other initial states; remove it")
    return tuple(found)


def train_example(
    demonstrations: tuple[Demonstrations, ...],
    folder: Path,
    *,
    language: bool = True,
    steps: int = STEPS,
    progress: Callable[[str], None] = lambda _: None,
) -> int:
    """Train on demonstrations and leave ``config.json`` and ``model.safetensors``.

    Args:
        demonstrations: Of each base task.
        folder: Where the two files go.
        language: Whether the prompts are shown, or all masked.
        steps: Gradient steps.
        progress: Called with the loss after every hundred steps.

    Returns:
        How many demonstrations were learned from: those that agree with most of their task's.

    Raises:
        MissingExtraError: PyTorch is not installed.
    """
    try:
        from ..policies.learned.network import save_network
        from .training import TrainingConfig, train
    except ImportError as error:
        raise MissingExtraError("training", "lerobot", error.name or "torch") from error
    config = TrainingConfig(seed=SEED, steps=steps)
    agreeing = [agreeing_demonstrations(each) for each in demonstrations]
    network = train(agreeing, SUITE, config, language=language, progress=lambda loss: progress(f"loss {loss:.3f}"))
    count = sum(len(each.lengths) for each in agreeing)
    about = {"demonstrations": count, "frames": sum(len(each.vectors) for each in agreeing)}
    save_network(network, folder, about | dataclasses.asdict(config))
    return count
