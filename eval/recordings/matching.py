"""Which frames belong to which episode row, and whether there are as many as the metadata promises."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from ...toolkit.arrays import IntArray
from .defects import Defect, Inspection
from .episodes.table import EpisodeTable
from .frames.table import FrameTable
from .layout import Layout


def check_total(layout: Layout, name: str, promised: int | None, found: int, inspection: Inspection) -> None:
    """Report a dataset that holds more or fewer episodes or frames than its metadata promises.

    Args:
        layout: The dataset.
        name: ``total_episodes`` or ``total_frames``.
        promised: The metadata's number; None where it has none.
        found: The number in the files.
        inspection: What to do with defects.

    Raises:
        DatasetError: They differ, unless the inspection is partial.
    """
    if promised is None or promised == found:
        return
    part = "meta/episodes" if name == "total_episodes" else "data"
    file = str(layout.metadata)
    message = (
        f"{file}: {name} is {promised}, but {part} holds {found}: a file is missing or "
        "was written later, copy the dataset again or record again"
    )
    inspection.report(Defect(file=file, episode="", field=name, message=message))


def match_frames(
    layout: Layout, episodes: EpisodeTable, frames: FrameTable, inspection: Inspection
) -> tuple[FrameTable, IntArray]:
    """The runs of frames that have an episode row of the same length, and each one's row in the table of episodes.

    Args:
        layout: The dataset.
        episodes: Its episode rows.
        frames: Its frames.
        inspection: What to do with defects.

    Raises:
        DatasetError: An episode has no frames, frames have no episode, or their number is not the episode's length;
            not if the inspection is partial.
    """
    where = layout.frames_where
    by_index = np.argsort(episodes.episode_index)
    position = np.minimum(np.searchsorted(episodes.episode_index[by_index], frames.episode_index), len(by_index) - 1)
    order = by_index[position]
    matched = episodes.episode_index[order] == frames.episode_index
    for number in frames.episode_index[~matched]:
        if int(number) not in episodes.left_out:
            text = f"episode {number} has frames but no row in meta/episodes: record it again"
            _report_episode(where, int(number), "episode_index", text, inspection)
    for number in np.setdiff1d(episodes.episode_index, frames.episode_index):
        if int(number) not in frames.left_out:
            text = (
                f"episode {number} has a row in meta/episodes but no frames: "
                "a data file is missing, copy it again or record the episode again"
            )
            _report_episode(where, int(number), "episode_index", text, inspection)
    counted = np.diff(frames.offsets)
    ragged = matched & (counted != episodes.length[order])
    for run in np.flatnonzero(ragged):
        number = int(frames.episode_index[run])
        text = (
            f"episode {number} has {int(counted[run])} frames, but its "
            f"length in meta/episodes is {int(episodes.length[order][run])}: record it again"
        )
        _report_episode(where, number, "length", text, inspection)
    matched &= ~ragged
    if matched.all():
        return frames, np.asarray(order, np.int64)
    return frames.select(matched), np.asarray(order[matched], np.int64)


def _report_episode(where: Path, episode: int, field: str, text: str, inspection: Inspection) -> None:
    inspection.report(Defect(file=str(where), episode=str(episode), field=field, message=f"{where}: {text}"))
