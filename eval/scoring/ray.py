"""Scoring on a Ray cluster: each group of policies is read and measured on whichever machine is free."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from ...toolkit.errors import DatasetError
from ...toolkit.ray_cluster import ray_cluster, require_ray
from .parts import PartScores, score_folders


def score_on_ray(
    groups: Sequence[Sequence[Path]], address: str, *, supplementary: bool, partial: bool
) -> Iterator[PartScores]:
    """Measure groups of datasets on a cluster; see ``score_folders``.

    Args:
        groups: The folders of each group of ``open_by_policy``; every machine of the cluster must see these folders.
        address: See ``ray_cluster``.
        supplementary: As for ``score_folders``.
        partial: As for ``score_folders``.

    Yields:
        One a group, as they finish; only what is left after measuring travels.

    Raises:
        MissingExtraError: Ray is not installed.
        InvalidInputError: There is no cluster at that address.
        DatasetError: As for ``score_folders``.
    """
    require_ray("scoring on a cluster")
    with ray_cluster(address) as ray:
        remote = ray.remote(num_cpus=1)(score_folders)
        absolute = [tuple(folder.resolve() for folder in folders) for folders in groups]
        waiting = [remote.remote(folders, supplementary=supplementary, partial=partial) for folders in absolute]
        while waiting:
            done, waiting = ray.wait(waiting)
            yield _result(ray, done[0])


def _result(ray: Any, reference: Any) -> PartScores:
    try:
        part: PartScores = ray.get(reference)
    except ray.exceptions.RayTaskError as error:
        # What a task raises arrives wrapped; a defect of the dataset is to read the same as without a cluster.
        if isinstance(error.cause, DatasetError):
            raise error.cause from None
        raise
    return part
