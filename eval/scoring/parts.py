"""What is left of a part of the rollouts once it is measured: small enough to keep, and to send between machines."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa

from ...toolkit.records import Arm
from ..recordings.defects import Defect
from ..recordings.deviations import Deviation, find_deviations
from ..recordings.reading import SCORED_FEATURES, OpenedDataset, open_dataset, read_frames_of
from ..recordings.rollout_set import RolloutSet
from .pair_table import no_pairs, score_pairs
from .pairs import Pairing, RefusedPair, pair_rollouts, rows_of_arm
from .provenance import RECORDED_FIELDS
from .repeats import pair_repeats
from .rollout_table import MOTION_FEATURES, reference_table, trajectory_table
from .supplementary import WRONG_OBJECT_FEATURES, with_supplementary


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PartScores:
    """The measures of some policies' rollouts.

    Attributes:
        pairs: One row a pair, with ``PAIR_COLUMNS`` and, where asked for, ``SUPPLEMENTARY_COLUMNS``.
        controls: One row a pair of a control rollout, with ``PAIR_COLUMNS``.
        repeats: One row a pair of repeated reference rollouts, with the same columns.
        references: One row a reference rollout, with ``REFERENCE_COLUMNS``.
        trajectories: One row a rollout, with ``TRAJECTORY_COLUMNS``; None where not asked for.
        refusals: Conflict rollouts that could not be scored.
        refused_controls: Control rollouts that could not be scored.
        left_out: Defects for which episodes were left out.
        deviations: Rollouts whose prompt or horizon is not the installed task release's, or cannot be compared.
        unused_references: Reference rollouts in no pair.
        digests: One of each rollout, over the features that every scoring reads.
        episodes: ``rollout_id``, ``arm``, ``scene_sha256`` and ``RECORDED_FIELDS`` of each rollout.
    """

    pairs: pa.Table
    controls: pa.Table
    repeats: pa.Table
    references: pa.Table
    trajectories: pa.Table | None
    refusals: tuple[RefusedPair, ...]
    refused_controls: tuple[RefusedPair, ...]
    left_out: tuple[Defect, ...]
    deviations: tuple[Deviation, ...]
    unused_references: int
    digests: tuple[bytes, ...]
    episodes: pa.Table


def score_folders(folders: Sequence[Path], *, supplementary: bool, partial: bool) -> PartScores:
    """Open the datasets in these folders, read them and measure their pairs; see ``score_datasets``.

    Args:
        folders: Those of one group of ``open_by_policy``.
        supplementary: Whether to take the supplementary and behaviour metrics too.
        partial: Whether to leave defective episodes out instead of raising.

    Raises:
        DatasetError: As for ``read_rollouts``.
    """
    datasets = (open_dataset(folder, partial=partial) for folder in folders)
    return score_datasets(datasets, supplementary=supplementary)


def score_datasets(datasets: Iterable[OpenedDataset], *, supplementary: bool) -> PartScores:
    """Read the frames of opened datasets and measure their pairs.

    Args:
        datasets: One group of ``open_by_policy``.
        supplementary: Whether to take the supplementary and behaviour metrics too.

    Raises:
        DatasetError: As for ``read_rollouts``.
    """
    optional = (*MOTION_FEATURES, *WRONG_OBJECT_FEATURES) if supplementary else ()
    rollouts = read_frames_of(datasets, SCORED_FEATURES, optional=optional)
    return score_part(rollouts, supplementary=supplementary)


def score_part(rollouts: RolloutSet, *, supplementary: bool) -> PartScores:
    """Measure the pairs of rollouts in memory; see ``score_folders``."""
    pairing, repeated = pair_rollouts(rollouts), pair_repeats(rollouts)
    pairs, repeats = score_pairs(rollouts, pairing), score_pairs(rollouts, repeated)
    if supplementary:
        pairs = with_supplementary(pairs, rollouts, pairing)
        repeats = with_supplementary(repeats, rollouts, repeated)
    controls = _pair_controls(rollouts)
    return PartScores(
        pairs=pairs,
        controls=no_pairs() if controls is None else score_pairs(rollouts, controls),
        repeats=repeats,
        references=reference_table(rollouts),
        trajectories=trajectory_table(rollouts) if supplementary else None,
        refusals=pairing.refusals,
        refused_controls=() if controls is None else controls.refusals,
        left_out=rollouts.left_out,
        deviations=find_deviations(rollouts.episodes),
        unused_references=_unused_references(pairing, controls),
        digests=tuple(rollouts.digests(SCORED_FEATURES)),
        episodes=rollouts.episodes.select(["rollout_id", "arm", "scene_sha256", *RECORDED_FIELDS]),
    )


def _pair_controls(rollouts: RolloutSet) -> Pairing | None:
    """The control rollouts with their references; None without any, so that nothing is measured for them."""
    if not len(rows_of_arm(rollouts.episodes, Arm.CONTROL)):
        return None
    return pair_rollouts(rollouts, Arm.CONTROL)


def _unused_references(pairing: Pairing, controls: Pairing | None) -> int:
    """Reference rollouts in no pair of either arm."""
    if controls is None:
        return pairing.unused_references
    return pairing.unused_references - len(np.setdiff1d(controls.reference, pairing.reference))
