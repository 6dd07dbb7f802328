"""Recorded rollouts that are read together must have each prompt condition in one and the same wording."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pyarrow as pa

from ....toolkit.errors import DatasetError


def check_wordings(datasets: Iterable[tuple[Path, pa.Table]]) -> None:
    """Make sure that no table counts two wordings as one prompt condition.

    Args:
        datasets: Folder and episodes of each, with ``prompt`` and ``prompt_version``; null, where recordings of other
            software do not have the version, is passed by.

    Raises:
        DatasetError: A prompt condition has words of two versions; the line names both and where they are.
    """
    known: dict[str, tuple[str, Path]] = {}
    for folder, episodes in datasets:
        distinct = episodes.select(["prompt", "prompt_version"]).group_by(["prompt", "prompt_version"]).aggregate([])
        for row in sorted(distinct.drop_null().to_pylist(), key=lambda row: (row["prompt"], row["prompt_version"])):
            name, version = row["prompt"], row["prompt_version"]
            before, where = known.setdefault(name, (version, folder))
            if before != version:
                raise DatasetError(
                    f"{folder}: the words of the prompt {name} are of version {version}, those in "
                    f"{'it too' if where == folder else where} of version {before}: two wordings are two prompt "
                    "conditions; score them apart, or record one under another name"
                )
