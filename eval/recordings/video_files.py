"""Where a rollout's video lies; apart from rendering, so that finding one needs no simulator."""

from __future__ import annotations

from pathlib import Path

from ...builders.rollouts.schema import file_stem

RENDERED = "rendered"
"""Folder in a dataset with videos of some of its rollouts; LeRobot's own ``videos`` holds features of all frames."""


def video_path(folder: Path, rollout_id: str, camera: str) -> Path:
    """File of a rollout's video; the id's slashes become part of the file name."""
    return folder / f"{file_stem(rollout_id)}.{camera}.mp4"
