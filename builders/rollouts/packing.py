"""Rollout datasets made small, for those that are shipped: without the simulator's states, and packed tightly."""

from __future__ import annotations

import shutil
from pathlib import Path

import pyarrow.parquet as pq

from ...toolkit.atomic_files import atomic_file
from .schema import SIM_STATES


def pack_dataset(dataset: Path) -> None:
    """Make a rollout dataset small: without the simulator's states, its frames split by byte and compressed."""
    shutil.rmtree(dataset / SIM_STATES, ignore_errors=True)
    for file in sorted((dataset / "data").rglob("*.parquet")):
        table = pq.read_table(file)
        floats = [
            name if field.type == "float" else f"{name}.list.element"
            for name, field in zip(table.column_names, table.schema, strict=True)
            if "float" in str(field.type)
        ]
        with atomic_file(file) as aside:
            pq.write_table(
                table,
                aside,
                compression="zstd",
                compression_level=19,
                use_dictionary=False,
                use_byte_stream_split=floats,
            )
