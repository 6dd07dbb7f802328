"""Recorded rollouts in memory: read from LeRobot v3 data sets with Arrow alone, checked, kept as flat arrays."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from ..builders.rollout_schema import EPISODE_COLUMNS, FRAME_FEATURES, TARGET_SLOTS
from ..toolkit.errors import DatasetError
from ..toolkit.records import CONTROL_HZ
from .rollout_episodes import read_episodes
from .rollout_frames import FrameTable, read_frames

FloatArray = npt.NDArray[np.float64]
Float32Array = npt.NDArray[np.float32]
IntArray = npt.NDArray[np.int64]

SCORED_FEATURES = ("action", "observation.eef_pos_m", "observation.target_pos_m")
"""Frame features that the measures need; the others stay on disk unless asked for."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RolloutSet:
    """N rollouts with F frames in all; the frames of rollout i are rows ``offsets[i]:offsets[i + 1]``.

    Attributes:
        episodes: One row a rollout, the columns and types of ``builders.rollout_schema.EPISODE_COLUMNS``.
        frames: For each feature that was read, named as in ``FRAME_FEATURES``, float32 of shape (F, width), finite.
        offsets: Shape (N + 1,), from 0 to F; every rollout has at least one frame.
        final_eef_pos_m: Gripper site after the last action, shape (N, 3).
        final_target_pos_m: Targets after the last action, shape (N, TARGET_SLOTS, 3); unused slots are zero.
        target_count: Used target slots of each rollout, shape (N,).
    """

    episodes: pa.Table
    frames: dict[str, Float32Array]
    offsets: IntArray
    final_eef_pos_m: FloatArray
    final_target_pos_m: FloatArray
    target_count: IntArray

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __repr__(self) -> str:
        features = ", ".join(f"{name} {values.shape[1]}" for name, values in self.frames.items())
        return f"RolloutSet({len(self)} rollouts, {int(self.offsets[-1])} frames: {features})"

    @property
    def lengths(self) -> IntArray:
        """Executed actions H of each rollout, shape (N,)."""
        return np.diff(self.offsets)

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
            raise DatasetError(f"rollout '{missing}' is not among these {len(self)} rollouts: give the folder it is in")
        return np.asarray(rows.to_numpy(), np.int64)

    def digests(self) -> list[bytes]:
        """Hash of each rollout's episode row and frames, whatever file they lie in; N of 32 bytes."""
        features = [self.frames[name] for name in sorted(self.frames)]
        digests = []
        for row, episode in enumerate(self.episodes.to_pylist()):
            digest = hashlib.sha256(json.dumps(episode, sort_keys=True).encode())
            for values in features:
                digest.update(values[self.offsets[row] : self.offsets[row + 1]].astype("<f4", copy=False).tobytes())
            digests.append(digest.digest())
        return digests


def find_datasets(path: Path | str) -> tuple[Path, ...]:
    """Folders of the rollout data sets at a path, sorted by name.

    Args:
        path: One data set, a folder of data sets, or a run's output folder that holds them under ``rollouts/``.

    Raises:
        DatasetError: If there is none, or a folder among them was left half written.
    """
    path = Path(path)
    if not path.is_dir():
        state = "is a file, not a folder" if path.exists() else "no such folder"
        raise DatasetError(f"{path}: {state}: give a rollout data set, or a folder that contains some")
    if (path / "meta" / "info.json").is_file():
        return (path,)
    parent = path / "rollouts" if (path / "rollouts").is_dir() else path
    if parent == path and ((path / "data").is_dir() or (path / "meta").is_dir()):
        raise DatasetError(f"{path}: not a LeRobot data set, meta/info.json is missing: record these rollouts again")
    children = sorted(child for child in parent.iterdir() if (child / "data").is_dir() or (child / "meta").is_dir())
    if not children:
        raise DatasetError(
            f"{parent}: not a LeRobot data set (no meta/info.json), nor does it contain one: "
            "give the folder that `conflictvla run --out` wrote"
        )
    for child in children:
        if not (child / "meta" / "info.json").is_file():
            raise DatasetError(f"{child}: meta/info.json is missing, so it was left half written: record it again")
    return tuple(children)


def read_rollouts(path: Path | str, features: Sequence[str] = SCORED_FEATURES) -> RolloutSet:
    """Read and check every rollout under a path.

    Args:
        path: As for ``find_datasets``; several data sets become one set.
        features: Frame features to read, from ``FRAME_FEATURES``.

    Raises:
        DatasetError: One line that names file, episode and field, for any damage: missing, truncated or ragged data,
            NaN or infinity, actions outside [-1, 1], a prompt that its hash does not fit, repeated rollout ids.
    """
    sets = [_read_dataset(folder, features) for folder in find_datasets(path)]
    return concatenate(sets)


def read_rollouts_by_policy(path: Path | str, features: Sequence[str] = SCORED_FEATURES) -> Iterator[RolloutSet]:
    """Read rollouts in parts that hold whole policies, so that many policies never lie in memory together.

    A pair never spans two policies, so each part can be scored alone. Data sets that share a policy name are one part.

    Raises:
        DatasetError: As for ``read_rollouts``.
    """
    parts: list[tuple[set[str], list[Path]]] = []
    for folder in find_datasets(path):
        policies = set(read_episodes(folder).table["policy_name"].to_pylist())
        folders = [folder]
        for part in [part for part in parts if part[0] & policies]:
            policies |= part[0]
            folders = part[1] + folders
            parts.remove(part)
        parts.append((policies, folders))
    for _, folders in parts:
        yield concatenate([_read_dataset(folder, features) for folder in folders])


def concatenate(sets: Sequence[RolloutSet]) -> RolloutSet:
    """Join rollout sets that hold the same frame features.

    Raises:
        DatasetError: If a rollout id occurs twice.
    """
    joined = sets[0] if len(sets) == 1 else _concatenate(sets)
    check_unique(joined.episodes["rollout_id"], "these data sets")
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
            f"{where}: rollout_id '{first['values']}' occurs {first['counts']} times ({len(repeated)} such ids): "
            "keep one data set of each run"
        )


def _concatenate(sets: Sequence[RolloutSet]) -> RolloutSet:
    lengths = np.concatenate([part.lengths for part in sets])
    return RolloutSet(
        episodes=pa.concat_tables([part.episodes for part in sets]),
        frames={name: np.concatenate([part.frames[name] for part in sets]) for name in sets[0].frames},
        offsets=np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64),
        final_eef_pos_m=np.concatenate([part.final_eef_pos_m for part in sets]),
        final_target_pos_m=np.concatenate([part.final_target_pos_m for part in sets]),
        target_count=np.concatenate([part.target_count for part in sets]),
    )


def _read_dataset(folder: Path, features: Sequence[str]) -> RolloutSet:
    unknown = [name for name in features if name not in FRAME_FEATURES]
    if unknown:
        raise DatasetError(f"no frame feature '{unknown[0]}' (known: {', '.join(FRAME_FEATURES)})")
    info = _read_info(folder)
    episodes = read_episodes(folder)
    _check_total(folder, "total_episodes", info.total_episodes, len(episodes.length), "meta/episodes")
    frames = read_frames(folder, features)
    order = _frame_order(folder, episodes.episode_index, episodes.length, frames)
    _check_total(folder, "total_frames", info.total_frames, int(frames.offsets[-1]), "data")
    check_unique(episodes.table["rollout_id"], f"{folder}/meta/episodes")
    return RolloutSet(
        episodes=episodes.table.take(pa.array(order)).select(list(EPISODE_COLUMNS)),
        frames=frames.values,
        offsets=frames.offsets,
        final_eef_pos_m=episodes.final_eef_pos_m[order],
        final_target_pos_m=episodes.final_target_pos_m[order].reshape(-1, TARGET_SLOTS, 3),
        target_count=episodes.target_count[order],
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Info:
    """What ``meta/info.json`` promises."""

    total_episodes: int
    total_frames: int


def _read_info(folder: Path) -> _Info:
    file = folder / "meta" / "info.json"
    try:
        info = json.loads(file.read_text(encoding="utf-8"))
        version, fps = str(info["codebase_version"]), float(info["fps"])
        promised = _Info(total_episodes=int(info["total_episodes"]), total_frames=int(info["total_frames"]))
    except (OSError, ValueError, TypeError) as error:
        raise DatasetError(f"{file}: unreadable ({error}): copy it again or record again") from error
    except KeyError as error:
        raise DatasetError(f"{file}: {error} is missing: copy it again or record again") from error
    if not version.startswith("v3."):
        raise DatasetError(f"{file}: codebase_version is {version}, not v3.x: convert it with LeRobot's own converter")
    if fps != CONTROL_HZ:
        raise DatasetError(f"{file}: fps is {fps:g}, but the protocol's control rate is {CONTROL_HZ}: record again")
    return promised


def _check_total(folder: Path, name: str, promised: int, found: int, part: str) -> None:
    if promised != found:
        raise DatasetError(
            f"{folder / 'meta' / 'info.json'}: {name} is {promised}, but {part} holds {found}: a file is missing or "
            "was written later, copy the data set again or record again"
        )


def _frame_order(folder: Path, episode_index: IntArray, length: IntArray, frames: FrameTable) -> IntArray:
    """Row of the episode table for each run of frames, after checking that the two tell the same story."""
    by_index = np.argsort(episode_index)
    position = np.searchsorted(episode_index[by_index], frames.episode_index)
    known = position < len(by_index)
    known[known] = episode_index[by_index[position[known]]] == frames.episode_index[known]
    if not known.all():
        stray = int(frames.episode_index[~known][0])
        raise DatasetError(f"{folder}/data: episode {stray} has frames but no row in meta/episodes: record it again")
    order = by_index[position]
    absent = np.setdiff1d(episode_index, frames.episode_index)
    if len(absent):
        raise DatasetError(
            f"{folder}/data: episode {int(absent[0])} has a row in meta/episodes but no frames: "
            "a data file is missing, copy it again or record the episode again"
        )
    counted = np.diff(frames.offsets)
    ragged = np.flatnonzero(counted != length[order])
    if len(ragged):
        first = ragged[0]
        raise DatasetError(
            f"{folder}/data: episode {int(frames.episode_index[first])} has {int(counted[first])} frames, but its "
            f"length in meta/episodes is {int(length[order][first])}: record it again"
        )
    return np.asarray(order, np.int64)
