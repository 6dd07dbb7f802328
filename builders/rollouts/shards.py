"""Rollout shards: one finished file a rollout, written aside and renamed, so that a crash leaves only complete ones.

A shard is a parquet file: a row a frame, the episode row as JSON in the schema's metadata.
"""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from ...toolkit.atomic_files import atomic_file
from ...toolkit.errors import DatasetError, first_line
from .episode_record import EpisodeRecord
from .schema import FRAME_FEATURES, Rollout, file_stem

EPISODE_KEY = b"conflictvla.episode"
FINAL_STATE_KEY = b"conflictvla.final_sim_state"
STATE = "sim_state"


def shard_path(folder: Path, rollout_id: str) -> Path:
    """Where a rollout's shard belongs; the id's slashes become part of the file name."""
    return folder / f"{file_stem(rollout_id)}.parquet"


def write_shard(rollout: Rollout, folder: Path) -> Path:
    """Write a finished rollout; on return the file is complete.

    Raises:
        InvalidInputError: The folder cannot be written.
    """
    path = shard_path(folder, rollout.episode.rollout_id)
    columns = {
        name: pa.FixedSizeListArray.from_arrays(
            pa.array(np.ascontiguousarray(rollout.frames[name], dtype=np.float32).ravel()), width
        )
        for name, (width, _) in FRAME_FEATURES.items()
    }
    width = rollout.sim_states.shape[1]
    states = pa.array(np.ascontiguousarray(rollout.sim_states[:-1], dtype="<f8").ravel())
    columns[STATE] = pa.FixedSizeListArray.from_arrays(states, width)
    final = np.ascontiguousarray(rollout.sim_states[-1], dtype="<f8").tobytes()
    episode = json.dumps(dataclasses.asdict(rollout.episode), sort_keys=True).encode()
    table = pa.table(columns).replace_schema_metadata({EPISODE_KEY: episode, FINAL_STATE_KEY: final})
    with atomic_file(path) as aside:
        pq.write_table(table, aside)
    return path


def read_shard_record(path: Path) -> EpisodeRecord:
    """Read a shard's episode row, without its frames.

    Raises:
        DatasetError: The file is damaged or not a shard.
    """
    try:
        return EpisodeRecord.from_row(json.loads((pq.read_schema(path).metadata or {})[EPISODE_KEY]))
    except (OSError, KeyError, ValueError, pa.ArrowException) as error:
        raise _damaged(path, error) from error


def read_shard(path: Path) -> Rollout:
    """Read a shard back.

    Raises:
        DatasetError: The file is damaged or not a shard.
    """
    try:
        table = pq.read_table(path)
        metadata = table.schema.metadata or {}
        fields = json.loads(metadata[EPISODE_KEY])
        final = np.frombuffer(metadata[FINAL_STATE_KEY], dtype="<f8")
        before = table.column(STATE).combine_chunks().flatten().to_numpy().reshape(-1, len(final))
        frames = {
            name: table.column(name).combine_chunks().flatten().to_numpy().reshape(-1, width)
            for name, (width, _) in FRAME_FEATURES.items()
        }
    except (OSError, KeyError, ValueError, pa.ArrowException) as error:
        raise _damaged(path, error) from error
    return Rollout(episode=EpisodeRecord.from_row(fields), frames=frames, sim_states=np.vstack([before, final]))


def _damaged(path: Path, error: Exception) -> DatasetError:
    return DatasetError(f"{path}: not a complete rollout shard ({first_line(error)}); delete it and run again")
