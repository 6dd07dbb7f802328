"""Frames of a dataset: files into flat float32 arrays, with every value checked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from ....builders.rollouts.schema import FRAME_FEATURES
from ....toolkit.arrays import BoolArray, Float32Array, IntArray
from ....toolkit.errors import DatasetError
from ..defects import Defect, Inspection
from ..layout import RECORD_AGAIN, Layout
from .files import FrameFile, open_frames


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FrameTable:
    """All frames of one dataset, in the order of its files.

    Attributes:
        values: For each feature read, float32 of shape (F, width), finite.
        offsets: Where each episode's frames begin, and F at the end, shape (N + 1,).
        episode_index: Number of each run of frames within the dataset, shape (N,), unique.
        total: Frames that the files hold, those left out included.
        left_out: Numbers of episodes whose frames were left out.
    """

    values: dict[str, Float32Array]
    offsets: IntArray
    episode_index: IntArray
    total: int
    left_out: frozenset[int]

    def select(self, chosen: BoolArray) -> FrameTable:
        """The runs of frames where a mask of shape (N,) is true."""
        lengths = np.diff(self.offsets)
        frames = np.repeat(chosen, lengths)
        return FrameTable(
            values={name: values[frames] for name, values in self.values.items()},
            offsets=np.concatenate([[0], np.cumsum(lengths[chosen])]).astype(np.int64),
            episode_index=self.episode_index[chosen],
            total=self.total,
            left_out=self.left_out | {int(number) for number in self.episode_index[~chosen]},
        )


def read_frames(
    layout: Layout, features: Sequence[str], inspection: Inspection, *, optional: Sequence[str] = ()
) -> FrameTable:
    """Read the frames of one dataset.

    Args:
        layout: Where its files are.
        features: Names from ``FRAME_FEATURES`` that must be there.
        inspection: What to do with defects.
        optional: Further names, read where every file has them.

    Raises:
        DatasetError: If a file is truncated, a column missing or of the wrong width, a value NaN, infinite or (for
            actions) outside [-1, 1], or an episode's frames are not contiguous and numbered from 0; with a partial
            inspection only where nothing is left.
    """
    opened = _open(layout, inspection)
    names = [*features, *(name for name in optional if all(name in source.names for source in opened))]
    total = sum(source.rows for source in opened)
    values: dict[str, Float32Array] = {name: np.empty((total, FRAME_FEATURES[name][0]), np.float32) for name in names}
    episodes, steps = np.empty(total, np.int64), np.empty(total, np.int64)
    bad: set[int] = set()
    start = 0
    for source in opened:
        stop = start + source.rows
        part = _FramesOfFile(source=source, episodes=episodes[start:stop], steps=steps[start:stop], bad=bad)
        try:
            source.load(["episode_index", "frame_index", *names])
            part.read({name: values[name][start:stop] for name in names}, inspection)
        except DatasetError as error:
            inspection.report(Defect(file=str(source.file), episode="", field="", message=str(error)), error)
            continue
        start = stop
    values = {name: array[:start] for name, array in values.items()}
    return _table(layout, values, episodes[:start], steps[:start], bad, inspection)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _FramesOfFile:
    """The frames of one file, the episode and step of each, and the episodes with a defect so far."""

    source: FrameFile
    episodes: IntArray
    steps: IntArray
    bad: set[int]

    def read(self, blocks: dict[str, Float32Array], inspection: Inspection) -> None:
        self.episodes[:] = self.source.integers("episode_index")
        self.steps[:] = self.source.integers("frame_index")
        for name, block in blocks.items():
            self.source.fill(name, block, partial(self._wrong_width, inspection, name))
            self._check_values(name, block, inspection)

    def _wrong_width(self, inspection: Inspection, name: str, row: int, what: str) -> None:
        episode = int(self.episodes[row])
        self._refuse(inspection, row, name, f"episode {episode}, field '{name}': {what}: {RECORD_AGAIN}")

    def _check_values(self, name: str, block: Float32Array, inspection: Inspection) -> None:
        finite = np.isfinite(block)
        if not finite.all():
            self._refuse_all(inspection, name, ~finite, block, "is not a finite number")
        if name == "action" and block.size and (block.max() > 1 or block.min() < -1):
            rule = "is outside [-1, 1], but actions are recorded as executed, after clipping"
            self._refuse_all(inspection, name, np.abs(block) > 1, block, rule)

    def _refuse_all(self, inspection: Inspection, name: str, wrong: BoolArray, block: Float32Array, rule: str) -> None:
        """Name the first wrong value of each episode."""
        rows = np.flatnonzero(wrong.any(axis=1))
        for row in rows[np.unique(self.episodes[rows], return_index=True)[1]]:
            component = int(wrong[row].argmax())
            self._refuse(
                inspection,
                int(row),
                name,
                f"episode {int(self.episodes[row])}, frame {int(self.steps[row])}, field '{name}', component "
                f"{FRAME_FEATURES[name][1][component]}: {block[row, component]} {rule}: {RECORD_AGAIN}",
            )

    def _refuse(self, inspection: Inspection, row: int, name: str, text: str) -> None:
        episode = int(self.episodes[row])
        if episode in self.bad:
            return
        file = str(self.source.file)
        inspection.report(Defect(file=file, episode=str(episode), field=name, message=f"{file}: {text}"))
        self.bad.add(episode)


def _open(layout: Layout, inspection: Inspection) -> list[FrameFile]:
    opened = []
    for file in layout.frame_files():
        try:
            opened.append(open_frames(file, layout.columns))
        except DatasetError as error:
            inspection.report(Defect(file=str(file), episode="", field="", message=str(error)), error)
    return opened


def _table(
    layout: Layout,
    values: dict[str, Float32Array],
    episodes: IntArray,
    steps: IntArray,
    bad: set[int],
    inspection: Inspection,
) -> FrameTable:
    """Runs of frames, with the episodes left out that are torn apart or have steps missing."""
    where = str(layout.frames_where)
    if not len(episodes):
        raise DatasetError(f"{where}: holds no frames: record again")
    starts = np.concatenate([[0], np.flatnonzero(np.diff(episodes)) + 1]).astype(np.int64)
    numbers = episodes[starts]
    for number in _repeated_numbers(numbers):
        text = f"the frames of episode {number} are not contiguous: the data files were mixed up or written twice"
        message = f"{where}: {text}, record again"
        inspection.report(Defect(file=where, episode=str(number), field="episode_index", message=message))
        bad.add(number)
    offsets = np.append(starts, len(episodes))
    expected = np.arange(len(episodes)) - np.repeat(starts, np.diff(offsets))
    wrong = np.flatnonzero(steps != expected)
    for at in wrong[np.unique(episodes[wrong], return_index=True)[1]]:
        if int(episodes[at]) not in bad:
            text = f"episode {int(episodes[at])}, field 'frame_index': {int(steps[at])} where {int(expected[at])}"
            message = f"{where}: {text} should follow, so frames are missing or out of order: {RECORD_AGAIN}"
            inspection.report(Defect(file=where, episode=str(episodes[at]), field="frame_index", message=message))
            bad.add(int(episodes[at]))
    table = FrameTable(values=values, offsets=offsets, episode_index=numbers, total=len(episodes), left_out=frozenset())
    return table.select(~np.isin(numbers, [*bad])) if bad else table


def _repeated_numbers(numbers: IntArray) -> list[int]:
    found, counts = np.unique(numbers, return_counts=True)
    return [int(number) for number in found[counts > 1]]
