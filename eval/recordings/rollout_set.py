"""Recorded rollouts in memory: checked, as flat arrays."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from ...builders.rollouts.episode_record import EpisodeRecord
from ...builders.rollouts.refusals import REFUSED
from ...toolkit.arrays import Float32Array, FloatArray, IntArray
from ...toolkit.counting import counted
from ...toolkit.errors import DatasetError
from .defects import Defect


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RolloutSet:
    """N rollouts with F frames in all; the frames of rollout i are rows ``offsets[i]:offsets[i + 1]``.

    Attributes:
        episodes: One row a rollout, the columns and types of ``EPISODE_COLUMNS``.
        frames: For each feature that was read, named as in ``FRAME_FEATURES``, float32 of shape (F, width), finite.
        offsets: Shape (N + 1,), from 0 to F; every rollout has at least one frame.
        final_eef_pos_m: Gripper site after the last action, shape (N, 3).
        final_target_pos_m: Targets after the last action, shape (N, TARGET_SLOTS, 3); unused slots are zero.
        target_count: Used target slots of each rollout, shape (N,).
        left_out: Defects for which episodes were left out while reading.
    """

    episodes: pa.Table
    frames: dict[str, Float32Array]
    offsets: IntArray
    final_eef_pos_m: FloatArray
    final_target_pos_m: FloatArray
    target_count: IntArray
    left_out: tuple[Defect, ...] = ()

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __repr__(self) -> str:
        features = ", ".join(f"{name} {values.shape[1]}" for name, values in self.frames.items())
        return f"RolloutSet({counted(len(self), 'rollout')}, {counted(int(self.offsets[-1]), 'frame')}: {features})"

    @property
    def lengths(self) -> IntArray:
        """Executed actions of each rollout, the one of rest after a refusal included, shape (N,)."""
        return np.diff(self.offsets)

    @property
    def steps_to_end(self) -> IntArray:
        """Control steps that each rollout stands for, shape (N,): as executed, or after a refusal until the horizon."""
        refused = np.asarray(pc.equal(self.episodes["end"], REFUSED).to_numpy(), np.bool_)
        return np.where(refused, np.maximum(self.column("horizon"), self.lengths), self.lengths).astype(np.int64)

    def record(self, row: int) -> EpisodeRecord:
        """The episode record of one rollout."""
        return EpisodeRecord.from_row(self.episodes.slice(row, 1).to_pylist()[0])

    def records(self) -> tuple[EpisodeRecord, ...]:
        """The episode records of all rollouts."""
        return tuple(map(EpisodeRecord.from_row, self.episodes.to_pylist()))

    def column(self, name: str) -> npt.NDArray[Any]:
        """One episode column as an array of shape (N,); strings as Python objects, null as None."""
        return np.asarray(self.episodes[name].to_numpy())

    def feature(self, name: str) -> Float32Array:
        """All frames of one feature, shape (F, width).

        Raises:
            DatasetError: If that feature was not read.
        """
        if name not in self.frames:
            read = ", ".join(self.frames)
            raise DatasetError(
                f"frame feature '{name}' was not read (read: {read}): name it in read_rollouts(features=)"
            )
        return self.frames[name]

    def rollout_feature(self, name: str, row: int) -> Float32Array:
        """The frames of one rollout, shape (H, width)."""
        return self.feature(name)[self.offsets[row] : self.offsets[row + 1]]

    def rows_of(self, rollout_ids: Sequence[str]) -> IntArray:
        """Row of each rollout, by its id.

        Raises:
            DatasetError: If an id is not in the set.
        """
        rows = pc.index_in(pa.array(rollout_ids, pa.string()), value_set=self.episodes["rollout_id"].combine_chunks())
        if rows.null_count:
            missing = rollout_ids[rows.to_pylist().index(None)]
            raise DatasetError(
                f"rollout '{missing}' is not among these {counted(len(self), 'rollout')}: give the folder it is in"
            )
        return np.asarray(rows.to_numpy(), np.int64)

    def digests(self, names: Sequence[str]) -> list[bytes]:
        """Hash of each rollout's episode row and of these frame features, whatever file they lie in; N of 32 bytes."""
        # Little-endian and contiguous, whatever the machine; hashed in place, without a copy.
        features = [np.ascontiguousarray(self.frames[name], "<f4") for name in sorted(names)]
        digests = []
        for row, episode in enumerate(self.episodes.to_pylist()):
            digest = hashlib.sha256(json.dumps(episode, sort_keys=True).encode())
            for values in features:
                digest.update(values[self.offsets[row] : self.offsets[row + 1]].data)
            digests.append(digest.digest())
        return digests


def concatenate(sets: Sequence[RolloutSet]) -> RolloutSet:
    """Join rollout sets; of the frame features those that are in all of them.

    Raises:
        DatasetError: If a rollout id occurs twice.
    """
    joined = sets[0] if len(sets) == 1 else _concatenate(sets)
    check_unique(joined.episodes["rollout_id"], "these datasets")
    return joined


def check_unique(rollout_ids: pa.ChunkedArray, where: str) -> None:
    """Refuse rollout ids that occur twice.

    Raises:
        DatasetError: Naming the first such id.
    """
    counts = pc.value_counts(rollout_ids)
    repeated = counts.filter(pc.greater(pc.struct_field(counts, "counts"), 1))
    if len(repeated):
        first = repeated[0].as_py()
        raise DatasetError(
            f"{where}: rollout_id '{first['values']}' occurs {first['counts']} times "
            f"({counted(len(repeated), 'such id')}): keep one dataset of each run"
        )


def _concatenate(sets: Sequence[RolloutSet]) -> RolloutSet:
    lengths = np.concatenate([part.lengths for part in sets])
    names = [name for name in sets[0].frames if all(name in part.frames for part in sets)]
    return RolloutSet(
        episodes=pa.concat_tables([part.episodes for part in sets]),
        frames={name: np.concatenate([part.frames[name] for part in sets]) for name in names},
        offsets=np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64),
        final_eef_pos_m=np.concatenate([part.final_eef_pos_m for part in sets]),
        final_target_pos_m=np.concatenate([part.final_target_pos_m for part in sets]),
        target_count=np.concatenate([part.target_count for part in sets]),
        left_out=tuple(defect for part in sets for defect in part.left_out),
    )
