"""Episode rows of a LeRobot v3 data set, with every field checked against the rollout schema."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from ..builders.rollout_schema import EPISODE_COLUMNS, ROLLOUT_SCHEMA_VERSION, TARGET_SLOTS
from ..toolkit.errors import DatasetError
from ..toolkit.records import Arm, Family, Level, Prompt
from .rollout_frames import RECORD_AGAIN, open_parquet, parquet_files, read_columns

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]

LEROBOT_COLUMNS = {"episode_index": pa.int64(), "length": pa.int64()}
"""LeRobot's own episode columns that tie an episode to its frames."""

CONFLICT_ONLY = ("case_id", "family", "level")
"""Columns that are null for references and set for conflicts."""

ALLOWED: dict[str, tuple[str, ...]] = {
    "arm": tuple(Arm),
    "prompt": tuple(Prompt),
    "family": tuple(Family),
    "level": tuple(Level),
    "end": ("success", "horizon", "policy_error"),
}
"""Columns with a closed set of values. Suites are open: a user's own tasks may be rolled out too."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class EpisodeTable:
    """The episode rows of one data set, N of them, in the order of its files.

    Attributes:
        table: The columns of ``EPISODE_COLUMNS``, cast to their types.
        episode_index: LeRobot's episode number, shape (N,), unique.
        length: Frames that each episode claims to have, shape (N,).
        final_eef_pos_m: Gripper site after the last action, shape (N, 3).
        final_target_pos_m: Targets after the last action, shape (N, 3 * TARGET_SLOTS), unused slots zero.
        target_count: Used target slots, shape (N,).
    """

    table: pa.Table
    episode_index: IntArray
    length: IntArray
    final_eef_pos_m: FloatArray
    final_target_pos_m: FloatArray
    target_count: IntArray


def read_episodes(folder: Path) -> EpisodeTable:
    """Read and check the episode rows of one data set.

    Raises:
        DatasetError: If a file is truncated, a column missing or of the wrong type, or a row contradicts itself.
    """
    where = folder / "meta" / "episodes"
    table = pa.concat_tables([_read_file(file) for file in parquet_files(folder, "meta/episodes")])
    if not table.num_rows:
        raise DatasetError(f"{where}: holds no episode: record again")
    table = table.combine_chunks()
    _check_rows(where, table)
    targets = np.asarray(pc.list_value_length(table["targets"]).to_numpy(), np.int64)
    return EpisodeTable(
        table=table.select(list(EPISODE_COLUMNS)),
        episode_index=np.asarray(table["episode_index"].to_numpy(), np.int64),
        length=np.asarray(table["length"].to_numpy(), np.int64),
        final_eef_pos_m=_final(where, table, "final_eef_pos_m", np.full(len(targets), 3), 3),
        final_target_pos_m=_final(where, table, "final_target_pos_m", 3 * targets, 3 * TARGET_SLOTS),
        target_count=targets,
    )


def _read_file(file: Path) -> pa.Table:
    table = read_columns(file, open_parquet(file), [*LEROBOT_COLUMNS, *EPISODE_COLUMNS])
    columns = []
    for name, kind in {**LEROBOT_COLUMNS, **EPISODE_COLUMNS}.items():
        try:
            columns.append(table[name].cast(kind))
        except pa.ArrowException as error:
            raise DatasetError(f"{file}: column '{name}' is {table[name].type}, not {kind}: record again") from error
    return pa.table(columns, schema=pa.schema(list({**LEROBOT_COLUMNS, **EPISODE_COLUMNS}.items())))


def _refuse(
    where: Path, table: pa.Table, bad: pa.ChunkedArray, field: str, rule: str, todo: str = RECORD_AGAIN
) -> None:
    """Raise for the first row where ``bad`` is true; null counts as bad."""
    at = pc.index(pc.fill_null(bad, fill_value=True), value=True).as_py()
    if at < 0:
        return
    value = str(table[field][at].as_py())
    shown = value if len(value) <= 60 else value[:57] + "..."
    raise DatasetError(
        f"{where}: episode {table['episode_index'][at].as_py()} ({table['rollout_id'][at].as_py()}), "
        f"field '{field}': {shown!r} {rule}: {todo}"
    )


def _check_rows(where: Path, table: pa.Table) -> None:
    nullable = {*CONFLICT_ONLY, "success_step"}
    for name in table.column_names:
        if name not in nullable:
            _refuse(where, table, pc.is_null(table[name]), name, "is empty")
    _, number, count = np.unique(table["episode_index"].to_numpy(), return_inverse=True, return_counts=True)
    _refuse(where, table, pa.chunked_array([count[number] > 1]), "episode_index", "occurs twice")
    for name, allowed in ALLOWED.items():
        unknown = pc.invert(pc.is_in(table[name], value_set=pa.array([*allowed, None], pa.string())))
        _refuse(where, table, unknown, name, f"is none of {', '.join(allowed)}")
    conflict = pc.equal(table["arm"], Arm.CONFLICT.value)
    for name in CONFLICT_ONLY:
        _refuse(where, table, pc.equal(pc.is_null(table[name]), conflict), name, "contradicts the field 'arm'")
    major = ROLLOUT_SCHEMA_VERSION.partition(".")[0] + "."
    other = pc.invert(pc.starts_with(table["schema_version"], major))
    _refuse(where, table, other, "schema_version", f"is not {major}x", "read it with the version that recorded it")
    _check_outcome(where, table)
    _check_prompts(where, table)


def _check_outcome(where: Path, table: pa.Table) -> None:
    success = table["success"]
    _refuse(where, table, pc.xor(success, pc.equal(table["end"], "success")), "end", "contradicts the field 'success'")
    stepped = pc.is_valid(table["success_step"])
    _refuse(where, table, pc.xor(success, stepped), "success_step", "contradicts the field 'success'")
    too_long = pc.greater(table["length"], table["horizon"])
    _refuse(where, table, too_long, "length", "is more than the horizon")
    late = pc.greater(pc.coalesce(table["success_step"], 0), table["length"])
    _refuse(where, table, late, "success_step", "is more than the episode's length")
    many = pc.greater(pc.list_value_length(table["targets"]), TARGET_SLOTS)
    _refuse(where, table, many, "targets", f"names more than {TARGET_SLOTS} targets")


def _check_prompts(where: Path, table: pa.Table) -> None:
    texts = pc.dictionary_encode(table["prompt_text"]).combine_chunks()
    hashes = pa.array([hashlib.sha256(text.encode()).hexdigest() for text in texts.dictionary.to_pylist()])
    expected = hashes.take(texts.indices)
    wrong = pc.not_equal(table["prompt_sha256"], expected)
    _refuse(where, table, wrong, "prompt_sha256", "is not the hash of prompt_text, so what the policy read is unknown")


def _final(where: Path, table: pa.Table, name: str, least: IntArray, width: int) -> FloatArray:
    """A ``final_*`` list column as (N, width), zero-padded; each list covers at least what the episode uses."""
    column = table[name].combine_chunks()
    lengths = np.asarray(pc.list_value_length(column).to_numpy(), np.int64)
    wrong = (lengths < least) | (lengths > width)
    _refuse(where, table, pa.chunked_array([wrong]), name, "does not hold the positions after the last action")
    flat = np.asarray(column.flatten().to_numpy(zero_copy_only=False), np.float64)
    row = np.repeat(np.arange(len(column)), lengths)
    starts = np.cumsum(lengths) - lengths
    values = np.zeros((len(column), width))
    values[row, np.arange(len(flat)) - starts[row]] = flat
    broken = ~np.isfinite(values).all(axis=1)
    _refuse(where, table, pa.chunked_array([broken]), name, "is not finite")
    return values
