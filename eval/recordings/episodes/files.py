"""Files of episodes: parquet, or JSON with an object a line, as one table with the columns of the schema."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa

from ....builders.rollouts.episode_record import EPISODE_COLUMNS, OPTIONAL_COLUMNS
from ....toolkit.errors import DatasetError, first_line
from ..frames.files import open_parquet, read_columns
from ..layout import Layout

FRAME_KEYS = {"episode_index": pa.int64(), "length": pa.int64()}
"""Episode columns that tie an episode to its frames."""

COLUMNS = {**FRAME_KEYS, **EPISODE_COLUMNS}
"""Columns of a table of episodes, with their types."""


def read_episode_file(file: Path, layout: Layout) -> pa.Table:
    """Read one file of episodes.

    Args:
        file: Ending in ``.parquet`` or ``.jsonl``.
        layout: Their names for our columns, and which columns are constant.

    Returns:
        A table with ``COLUMNS``; those of ``OPTIONAL_COLUMNS`` that the file lacks are filled in.

    Raises:
        DatasetError: The file is damaged, or a column is missing or of another type.
    """
    lines = _read_lines(file) if file.suffix == ".jsonl" else []
    parquet = None if file.suffix == ".jsonl" else open_parquet(file)
    present = _names_in(lines) if parquet is None else set(parquet.schema_arrow.names)
    absent = [name for name in OPTIONAL_COLUMNS if layout.columns.get(name, name) not in present]
    recorded = [name for name in COLUMNS if name not in layout.constants and name not in absent]
    theirs = [layout.columns.get(name, name) for name in recorded]
    table = _parse_lines(file, lines, theirs) if parquet is None else read_columns(file, parquet, theirs)
    try:
        table.validate(full=True)  # Arrow reads strings that are not UTF-8 as they are
    except pa.ArrowInvalid as error:
        raise DatasetError(f"{file}: damaged ({first_line(error)}): copy it again or record again") from error
    return _cast(file, table.rename_columns(recorded), layout.constants)


def _cast(file: Path, table: pa.Table, constants: Mapping[str, Any]) -> pa.Table:
    """The table with all ``COLUMNS``, of their types: recorded, constant or as ``OPTIONAL_COLUMNS`` has them."""
    columns = []
    for name, kind in COLUMNS.items():
        try:
            if name in constants:
                columns.append(pa.array([constants[name]] * table.num_rows, kind))
            elif name in table.column_names:
                columns.append(table[name].cast(kind))
            else:
                columns.append(pa.array([OPTIONAL_COLUMNS[name]] * table.num_rows, kind))
        except (pa.ArrowException, TypeError) as error:
            found = repr(constants[name]) if name in constants else table[name].type
            raise DatasetError(f"{file}: column '{name}' is {found}, not {kind}: record again") from error
    return pa.table(columns, schema=pa.schema(list(COLUMNS.items())))


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
    return DatasetError(f"{file}: not one JSON object a line ({first_line(error)}): write it again")
