"""Reading recorded rollouts with Arrow alone: LeRobot v3 datasets, or plain files with a manifest."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pyarrow as pa

from ...builders.rollouts.schema import FRAME_FEATURES, TARGET_SLOTS
from ...toolkit.errors import DatasetError
from .defects import Inspection
from .episodes.table import EpisodeTable, read_episodes
from .episodes.wordings import check_wordings
from .finding import find_dataset, find_datasets
from .frames.table import read_frames
from .layout import Layout, layout_of
from .matching import check_total, match_frames
from .rollout_set import RolloutSet, check_unique, concatenate

__all__ = [
    "SCORED_FEATURES",
    "OpenedDataset",
    "find_dataset",
    "find_datasets",
    "open_by_policy",
    "open_dataset",
    "read_frames_of",
    "read_rollouts",
    "read_rollouts_by_policy",
]

SCORED_FEATURES = ("action", "observation.eef_pos_m", "observation.target_pos_m")
"""Frame features that the measures need; the others stay on disk unless asked for."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class OpenedDataset:
    """A dataset on disk whose episodes have been read and checked; its frames have not.

    Attributes:
        layout: Where its files are.
        episodes: Its episode rows.
        inspection: The defects of its episodes, and what to do with further ones.
    """

    layout: Layout
    episodes: EpisodeTable
    inspection: Inspection


def read_rollouts(
    path: Path | str,
    features: Sequence[str] = SCORED_FEATURES,
    *,
    optional: Sequence[str] = (),
    partial: bool = False,
) -> RolloutSet:
    """Read and check every rollout under a path.

    Args:
        path: As for ``find_datasets``; several datasets become one set.
        features: Frame features to read, from ``FRAME_FEATURES``.
        optional: Further ones, read where every file has them.
        partial: Leave defective episodes out, with the reasons in the set's ``left_out``, instead of raising.

    Raises:
        DatasetError: One line that names file, episode and field, for any damage: missing, truncated or ragged data,
            NaN or infinity, actions outside [-1, 1], a prompt that its hash does not fit, repeated rollout ids.
    """
    datasets = (open_dataset(folder, partial=partial) for folder in find_datasets(path))
    return read_frames_of(datasets, features, optional=optional)


def open_dataset(folder: Path, *, partial: bool = False) -> OpenedDataset:
    """Read and check the episodes of one dataset, so that its frames can be read with them.

    Args:
        folder: Its folder.
        partial: As for ``read_rollouts``.

    Raises:
        DatasetError: As for ``read_rollouts``, for damage of the metadata and the episodes.
    """
    layout, inspection = layout_of(folder), Inspection(partial=partial)
    return OpenedDataset(layout=layout, episodes=read_episodes(layout, inspection), inspection=inspection)


def open_by_policy(path: Path | str, *, partial: bool = False) -> Iterator[tuple[OpenedDataset, ...]]:
    """Open the datasets at a path, in groups such that no policy is in two.

    A pair never spans two policies, so each group can be read and scored alone, and the frames of many policies never
    lie in memory together. Datasets that share a policy name are one group.

    Yields:
        The groups, once the episodes of all datasets have been read.

    Raises:
        DatasetError: As for ``open_dataset``; or a prompt condition has words of two versions among all of them.
    """
    groups: list[tuple[set[str], list[OpenedDataset]]] = []
    for folder in find_datasets(path):
        datasets = [open_dataset(folder, partial=partial)]
        policies = set(datasets[0].episodes.table["policy_name"].to_pylist())
        for group in [group for group in groups if group[0] & policies]:
            policies |= group[0]
            datasets = group[1] + datasets
            groups.remove(group)
        groups.append((policies, datasets))
    check_wordings((each.layout.folder, each.episodes.table) for _, datasets in groups for each in datasets)
    while groups:  # the episodes of a group are released after it
        yield tuple(groups.pop(0)[1])


def read_frames_of(
    datasets: Iterable[OpenedDataset], features: Sequence[str], *, optional: Sequence[str] = ()
) -> RolloutSet:
    """Read the frames of opened datasets, as one set of rollouts; see ``read_rollouts``."""
    unknown = [name for name in (*features, *optional) if name not in FRAME_FEATURES]
    if unknown:
        raise DatasetError(f"no frame feature '{unknown[0]}' (known: {', '.join(FRAME_FEATURES)})")
    return concatenate([_read_dataset(dataset, features, optional) for dataset in datasets])


def read_rollouts_by_policy(
    path: Path | str, features: Sequence[str] = SCORED_FEATURES, *, partial: bool = False
) -> Iterator[RolloutSet]:
    """Read rollouts in parts, each with all rollouts of its policies; see ``open_by_policy``."""
    for datasets in open_by_policy(path, partial=partial):
        yield read_frames_of(datasets, features)


def _read_dataset(dataset: OpenedDataset, features: Sequence[str], optional: Sequence[str]) -> RolloutSet:
    layout, episodes = dataset.layout, dataset.episodes
    inspection = replace(dataset.inspection, defects=[*dataset.inspection.defects])
    check_total(layout, "total_episodes", layout.total_episodes, episodes.total, inspection)
    frames = read_frames(layout, features, inspection, optional=optional)
    frames, order = match_frames(layout, episodes, frames, inspection)
    check_total(layout, "total_frames", layout.total_frames, frames.total, inspection)
    check_unique(episodes.table["rollout_id"], str(layout.episodes_where))
    if not len(order):
        raise DatasetError(f"{layout.folder}: no episode is without defect, the first: {inspection.defects[0]}")
    return RolloutSet(
        episodes=episodes.table.take(pa.array(order)),
        frames=frames.values,
        offsets=frames.offsets,
        final_eef_pos_m=episodes.final_eef_pos_m[order],
        final_target_pos_m=episodes.final_target_pos_m[order].reshape(-1, TARGET_SLOTS, 3),
        target_count=episodes.target_count[order],
        left_out=tuple(inspection.defects),
    )
