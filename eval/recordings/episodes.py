"""Episode rows of a dataset, with every field checked against the rollout schema."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from ...builders.rollouts.episode_record import ADDED_COLUMNS, EPISODE_COLUMNS
from ...builders.rollouts.schema import ENTITY_SLOTS, FIXTURE_SLOTS, OBJECT_SLOTS, ROLLOUT_SCHEMA_VERSION, TARGET_SLOTS
from ...toolkit.arrays import BoolArray, FloatArray, IntArray
from ...toolkit.errors import DatasetError
from ...toolkit.records import Arm, Family, LanguageProbe, Level, Prompt, VisualProbe
from .defects import Defect, Inspection
from .frame_files import open_parquet, read_columns
from .layout import RECORD_AGAIN, Layout

FRAME_KEYS = {"episode_index": pa.int64(), "length": pa.int64()}
"""Episode columns that tie an episode to its frames."""

CONFLICT_ONLY = ("case_id", "family", "level")
"""Columns that are null for references and set for conflicts."""

ALLOWED: dict[str, tuple[str, ...]] = {
    "arm": tuple(Arm),
    "prompt": tuple(Prompt),
    "family": tuple(Family),
    "level": tuple(Level),
    "language_probe": tuple(LanguageProbe),
    "visual_probe": tuple(VisualProbe),
    "end": ("success", "horizon", "policy_error"),
}
"""Columns with a closed set of values. Suites are open: a user's own tasks may be rolled out too."""


COST_ROUNDING = 1e-6
"""By how much a cost may differ from the sum of its amounts, which depends on their order."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class EpisodeTable:
    """The episode rows of one dataset, N of them, in the order of its files.

    Attributes:
        table: The columns of ``EPISODE_COLUMNS``, cast to their types.
        episode_index: Number of each episode within the dataset, shape (N,), unique.
        length: Frames that each episode claims to have, shape (N,).
        final_eef_pos_m: Gripper site after the last action, shape (N, 3).
        final_target_pos_m: Targets after the last action, shape (N, 3 * TARGET_SLOTS), unused slots zero.
        target_count: Used target slots, shape (N,).
        found: Rows that the files hold, those left out included.
        left_out: Numbers of episodes whose rows were left out.
    """

    table: pa.Table
    episode_index: IntArray
    length: IntArray
    final_eef_pos_m: FloatArray
    final_target_pos_m: FloatArray
    target_count: IntArray
    found: int
    left_out: frozenset[int]


def read_episodes(layout: Layout, inspection: Inspection) -> EpisodeTable:
    """Read and check the episode rows of one dataset.

    Raises:
        DatasetError: If a file is truncated, a column missing or of the wrong type, or a row contradicts itself; with
            a partial inspection only where nothing is left.
    """
    check = _Check(where=layout.episodes_where, inspection=inspection)
    read = []
    for file in layout.episode_files():
        try:
            read.append(_read_file(file, layout))
        except DatasetError as error:
            inspection.found(Defect(file=str(file), episode="", field="", message=str(error)), error)
    table = pa.concat_tables(read).combine_chunks() if read else None
    if table is None or not table.num_rows:
        raise DatasetError(f"{check.where}: holds no episode: record again")
    everything = table["episode_index"]
    table = _check_prompts(check, _check_outcome(check, _check_rows(check, table)))
    table = _check_cost(check, _check_things(check, _check_final(check, table)))
    if inspection.partial:
        repeated = pa.chunked_array([_repeated(table["rollout_id"].to_numpy().astype(str))])
        table = check.refuse(table, repeated, "rollout_id", "occurs twice", "keep one dataset of each run")
    if not table.num_rows:
        raise DatasetError(f"{check.where}: no episode is without defect, the first: {inspection.defects[0]}")
    targets = np.asarray(pc.list_value_length(table["targets"]).to_numpy(), np.int64)
    left_out = set(everything.to_pylist()) - set(table["episode_index"].to_pylist())
    return EpisodeTable(
        table=table.select(list(EPISODE_COLUMNS)),
        episode_index=np.asarray(table["episode_index"].to_numpy(), np.int64),
        length=np.asarray(table["length"].to_numpy(), np.int64),
        final_eef_pos_m=padded(table["final_eef_pos_m"], 3),
        final_target_pos_m=padded(table["final_target_pos_m"], 3 * TARGET_SLOTS),
        target_count=targets,
        found=len(everything),
        left_out=frozenset(number for number in left_out if number is not None),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Check:
    """Takes bad rows out of a table of episodes, or raises for the first."""

    where: Path
    inspection: Inspection

    def refuse(
        self, table: pa.Table, bad: pa.ChunkedArray, field: str, rule: str, todo: str = RECORD_AGAIN
    ) -> pa.Table:
        """The table without the rows where ``bad`` is true; null counts as bad."""
        bad = pc.fill_null(bad, fill_value=True)
        if not pc.any(bad).as_py():
            return table
        for row in table.filter(bad).select(["episode_index", "rollout_id", field]).to_pylist():
            value = str(row[field])
            shown = value if len(value) <= 60 else value[:57] + "..."
            episode = f"{row['episode_index']} ({row['rollout_id']})"
            message = f"{self.where}: episode {episode}, field '{field}': {shown!r} {rule}: {todo}"
            self.inspection.found(Defect(file=str(self.where), episode=episode, field=field, message=message))
        return table.filter(pc.invert(bad)).combine_chunks()


def _read_file(file: Path, layout: Layout) -> pa.Table:
    wanted = {**FRAME_KEYS, **EPISODE_COLUMNS}
    lines = _read_lines(file) if file.suffix == ".jsonl" else []
    parquet = None if file.suffix == ".jsonl" else open_parquet(file)
    present = _names_in(lines) if parquet is None else set(parquet.schema_arrow.names)
    absent = [name for name in ADDED_COLUMNS if layout.columns.get(name, name) not in present]
    recorded = [name for name in wanted if name not in layout.constants and name not in absent]
    theirs = [layout.columns.get(name, name) for name in recorded]
    table = _parse_lines(file, lines, theirs) if parquet is None else read_columns(file, parquet, theirs)
    try:
        table.validate(full=True)  # Arrow reads strings that are not UTF-8 as they are
    except pa.ArrowInvalid as error:
        raise DatasetError(f"{file}: damaged ({error}): copy it again or record again") from error
    table = table.rename_columns(recorded)
    columns = []
    for name, kind in wanted.items():
        try:
            if name in layout.constants:
                columns.append(pa.array([layout.constants[name]] * table.num_rows, kind))
            elif name in absent:
                columns.append(pa.array([ADDED_COLUMNS[name]] * table.num_rows, kind))
            else:
                columns.append(table[name].cast(kind))
        except (pa.ArrowException, TypeError) as error:
            found = repr(layout.constants[name]) if name in layout.constants else table[name].type
            raise DatasetError(f"{file}: column '{name}' is {found}, not {kind}: record again") from error
    return pa.table(columns, schema=pa.schema(list(wanted.items())))


def _read_lines(file: Path) -> list[str]:
    try:
        return file.read_text(encoding="utf-8").splitlines()
    except (OSError, ValueError) as error:
        raise _not_json_lines(file, error) from error


def _names_in(lines: list[str]) -> set[str]:
    """Fields of the first line; a line that lacks one of them is found when the lines are parsed."""
    try:
        return set(json.loads(lines[0]))
    except (LookupError, ValueError, TypeError, RecursionError):
        return set()  # parsing the lines tells what is wrong with them


def _parse_lines(file: Path, lines: list[str], names: list[str]) -> pa.Table:
    rows: list[dict[str, Any]] = []
    try:
        for number, line in enumerate(lines, 1):
            row = json.loads(line)
            for name in names:
                if name not in row:
                    raise DatasetError(f"{file}: line {number}: field '{name}' is missing: write this episode again")
            rows.append({name: row[name] for name in names})
        return pa.table({name: [row[name] for row in rows] for name in names})
    except (ValueError, TypeError, RecursionError, pa.ArrowException) as error:
        if isinstance(error, DatasetError):
            raise
        raise _not_json_lines(file, error) from error


def _not_json_lines(file: Path, error: Exception) -> DatasetError:
    return DatasetError(f"{file}: not one JSON object a line ({error}): write it again")


def _check_rows(check: _Check, table: pa.Table) -> pa.Table:
    may_lack = (name for name, read_as in ADDED_COLUMNS.items() if read_as is None)
    nullable = {*CONFLICT_ONLY, *may_lack, "success_step"}
    for name in table.column_names:
        if name not in nullable:
            table = check.refuse(table, pc.is_null(table[name]), name, "is empty")
    repeated = pa.chunked_array([_repeated(table["episode_index"].to_numpy())])
    table = check.refuse(table, repeated, "episode_index", "occurs twice")
    for name, allowed in ALLOWED.items():
        unknown = pc.invert(pc.is_in(table[name], value_set=pa.array([*allowed, None], pa.string())))
        table = check.refuse(table, unknown, name, f"is none of {', '.join(allowed)}")
    for name in CONFLICT_ONLY:
        conflict = pc.equal(table["arm"], Arm.CONFLICT.value)
        wrong = pc.equal(pc.is_null(table[name]), conflict)
        table = check.refuse(table, wrong, name, "contradicts the field 'arm'")
    major = ROLLOUT_SCHEMA_VERSION.partition(".")[0] + "."
    other = pc.invert(pc.starts_with(table["schema_version"], major))
    return check.refuse(table, other, "schema_version", f"is not {major}x", "read it with the version that recorded it")


def _check_outcome(check: _Check, table: pa.Table) -> pa.Table:
    wrong = pc.xor(table["success"], pc.equal(table["end"], "success"))
    table = check.refuse(table, wrong, "end", "contradicts the field 'success'")
    wrong = pc.xor(table["success"], pc.is_valid(table["success_step"]))
    table = check.refuse(table, wrong, "success_step", "contradicts the field 'success'")
    too_long = pc.greater(table["length"], table["horizon"])
    table = check.refuse(table, too_long, "length", "is more than the horizon")
    late = pc.greater(pc.coalesce(table["success_step"], 0), table["length"])
    table = check.refuse(table, late, "success_step", "is more than the episode's length")
    many = pc.greater(pc.list_value_length(table["targets"]), TARGET_SLOTS)
    return check.refuse(table, many, "targets", f"names more than {TARGET_SLOTS} targets")


def _check_prompts(check: _Check, table: pa.Table) -> pa.Table:
    texts = pc.dictionary_encode(table["prompt_text"]).combine_chunks()
    hashes = pa.array([hashlib.sha256(text.encode()).hexdigest() for text in texts.dictionary.to_pylist()], pa.string())
    expected = hashes.take(texts.indices)
    wrong = pc.not_equal(table["prompt_sha256"], expected)
    rule = "is not the hash of prompt_text, so what the policy read is unknown"
    return check.refuse(table, wrong, "prompt_sha256", rule)


def _check_final(check: _Check, table: pa.Table) -> pa.Table:
    for name, width in (("final_eef_pos_m", 3), ("final_target_pos_m", 3 * TARGET_SLOTS)):
        lengths = np.asarray(pc.list_value_length(table[name]).to_numpy(), np.int64)
        targets = np.asarray(pc.list_value_length(table["targets"]).to_numpy(), np.int64)
        least = np.full(len(targets), 3) if name == "final_eef_pos_m" else 3 * targets
        wrong = pa.chunked_array([(lengths < least) | (lengths > width)])
        table = check.refuse(table, wrong, name, "does not hold the positions after the last action")
        broken = ~np.isfinite(padded(table[name], width)).all(axis=1)
        table = check.refuse(table, pa.chunked_array([broken]), name, "is not finite")
    return table


def _check_things(check: _Check, table: pa.Table) -> pa.Table:
    """What stands in the scene and where it is in the end: as many as the schema has room for, or not recorded."""
    for name in ("fixtures", "goal_entities", "final_object_pos_m", "final_gripper_contact"):
        wrong = pc.xor(pc.is_null(table[name]), pc.is_null(table["objects"]))
        table = check.refuse(table, wrong, name, "contradicts the field 'objects': both are recorded, or neither")
    for name, slots in (("objects", OBJECT_SLOTS), ("fixtures", FIXTURE_SLOTS)):
        many = pc.greater(_length(table, name), slots)
        table = check.refuse(table, many, name, f"names more than {slots} {name}")
    for name, width in (
        ("final_object_pos_m", 3 * OBJECT_SLOTS),
        ("final_object_quat_wxyz", 4 * OBJECT_SLOTS),
        ("final_gripper_contact", ENTITY_SLOTS),
    ):
        other = pc.and_(pc.is_valid(table[name]), pc.not_equal(_length(table, name), width))
        table = check.refuse(table, other, name, f"does not hold {width} numbers, as the state after the last action")
        broken = ~np.isfinite(padded(table[name], width)).all(axis=1)
        table = check.refuse(table, pa.chunked_array([broken]), name, "is not finite")
    return table


def _check_cost(check: _Check, table: pa.Table) -> pa.Table:
    """What was paid, by which conditions: all of it, or not recorded."""
    for name in ("cost_amounts", "cost_spec"):
        wrong = pc.xor(pc.is_null(table[name]), pc.is_null(table["cost"]))
        table = check.refuse(table, wrong, name, "contradicts the field 'cost': both are recorded, or neither")
    known = np.asarray(pc.is_valid(table["cost"]).to_numpy(), np.bool_)
    width = int(pc.max(_length(table, "cost_amounts")).as_py() or 0)
    amounts = padded(table["cost_amounts"], width)
    cost = np.asarray(table["cost"].to_numpy(), np.float64)
    off = known & ~((amounts >= 0).all(axis=1) & (np.abs(amounts.sum(axis=1) - cost) <= COST_ROUNDING))
    return check.refuse(table, pa.chunked_array([off]), "cost", "is not the sum of its amounts, none below 0")


def _length(table: pa.Table, name: str) -> pa.ChunkedArray:
    """Length of each list, 0 for null."""
    return pc.fill_null(pc.list_value_length(table[name]), 0)


def _repeated(values: npt.NDArray[Any]) -> BoolArray:
    """Whether each value occurs more than once, shape (N,)."""
    _, number, count = np.unique(values, return_inverse=True, return_counts=True)
    return np.asarray(count[number] > 1, np.bool_)


def padded(column: pa.ChunkedArray, width: int) -> FloatArray:
    """A list column as (N, width), zero behind each list's end and for null; no list is longer."""
    lists = column.combine_chunks()
    lengths = np.asarray(pc.fill_null(pc.list_value_length(lists), 0).to_numpy(zero_copy_only=False), np.int64)
    flat = np.asarray(lists.flatten().to_numpy(zero_copy_only=False), np.float64)
    row = np.repeat(np.arange(len(lists)), lengths)
    starts = np.cumsum(lengths) - lengths
    values = np.zeros((len(lists), width))
    values[row, np.arange(len(flat)) - starts[row]] = flat
    return values
