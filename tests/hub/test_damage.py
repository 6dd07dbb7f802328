"""Damaged files: each is read as what it says or refused in one line, not with a traceback.

Arrow itself does not withstand everything: of some thousand damaged files of simulator states, single ones end the
process. Releases carry checksums, which tell damage before anything is read.
"""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from conflictvla.builders.rollout_schema import FRAME_FEATURES
from conflictvla.builders.sim_states import read_sim_states
from conflictvla.builders.tasks_dataset import load_instances, packaged_tasks
from conflictvla.eval.limits import check_folder
from conflictvla.eval.results import read_result, read_verification
from conflictvla.eval.rollouts import read_rollouts
from conflictvla.eval.sources import packaged_rollouts
from conflictvla.toolkit.errors import DatasetError

from .made_up_results import write_board
from .recorded import honest, write

FEW, MANY = 25, 400
"""Damaged copies of each of the seven files below: in every run, and in the exhaustive one."""


def damaged(content: bytes, count: int, seed: int) -> Iterator[bytes]:
    """Copies with flipped bits, cut ends, holes, repeated or swapped pieces; most of them near the ends."""
    rng = random.Random(seed)
    for number in range(count):
        changed = bytearray(content)
        for _ in range(rng.choice((1, 1, 2, 8))):
            near_end = rng.random() < 0.5
            at = len(changed) - 1 - rng.randrange(min(4000, len(changed))) if near_end else rng.randrange(len(changed))
            match number % 5:
                case 0:
                    changed[at] ^= 1 << rng.randrange(8)
                case 1:
                    changed[at] = rng.choice((0, 255, 127, 128))
                case 2:
                    del changed[at : at + rng.randrange(1, 40)]
                case 3:
                    changed[at:at] = changed[max(0, at - rng.randrange(1, 40)) : at]
                case _:
                    del changed[at:]
            if not changed:
                changed = bytearray(b"\0")
        yield bytes(changed)


def survives(file: Path, read: Callable[[], object], count: int) -> int:
    """Read the file under every damage; returns how many copies were refused."""
    content, said = file.read_bytes(), []
    for copy in damaged(content, count, seed=count):
        file.write_bytes(copy)
        try:
            read()
        except DatasetError as error:
            said.append(str(error))
    file.write_bytes(content)
    assert not [message for message in said if "\n" in message]
    return len(said)


Case = tuple[Path, Callable[[], object]]


def results(folder: Path) -> Iterator[Case]:
    board = write_board(folder / "board", ["a"], verified=["a"])
    (result,), (mark,) = (board / "results").glob("*"), (board / "verified").glob("*")
    yield result, lambda: read_result(result)
    yield mark, lambda: read_verification(mark)


def read_checked(folder: Path) -> object:
    check_folder(folder)
    return read_rollouts(folder, tuple(FRAME_FEATURES))


def frames(folder: Path) -> Iterator[Case]:
    copy = Path(shutil.copytree(packaged_rollouts() / "refuse", folder / "rollouts"))
    (file,) = (copy / "data").rglob("*.parquet")
    yield file, lambda: read_checked(copy)


def episodes(folder: Path) -> Iterator[Case]:
    copy = write(folder / "rollouts", honest()[:3])
    (file,) = (copy / "meta/episodes").rglob("*.parquet")
    yield file, lambda: read_checked(copy)
    (states,) = (copy / "sim_states").rglob("*.parquet")
    yield states, lambda: read_sim_states(copy, [0, 1, 2])
    info = copy / "meta/info.json"
    yield info, lambda: read_rollouts(copy)


def tasks(folder: Path) -> Iterator[Case]:
    copy = Path(shutil.copytree(packaged_tasks(), folder / "tasks"))
    yield copy / "references/test.parquet", lambda: load_instances(copy)


@pytest.mark.parametrize("cases", [results, frames, episodes, tasks])
@pytest.mark.parametrize("count", [FEW, pytest.param(MANY, marks=pytest.mark.slow)])
def test_a_damaged_file_is_refused_or_read_and_nothing_else(
    tmp_path: Path, cases: Callable[[Path], Iterator[Case]], count: int
) -> None:
    for file, read in cases(tmp_path):
        assert survives(file, read, count) > count // 3, file
