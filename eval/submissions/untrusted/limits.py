"""How much an untrusted dataset may hold: files, bytes, paths, rows and text, checked before anything is read.

A submission is data: parquet, JSON and text. Nothing in it is executed, unpickled or rendered as it is.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from ....toolkit.errors import DatasetError

MOST_FILES = 2_000
MOST_BYTES = 64 << 30
MOST_UNPACKED_BYTES = 16 << 30
"""Of one parquet file, by its own footer; rollouts of a complete evaluation unpack to some 2 GB."""
MOST_ROWS = 20_000_000
LONGEST_PATH = 200
LONGEST_TEXT = 300
"""Characters of a text that is shown."""

LONGEST_SETTINGS = 4_000
"""Characters of a policy's settings."""

ENDINGS = (".parquet", ".json", ".jsonl", ".md", ".txt", ".mp4")
WITHOUT_ENDING = ("SHA256SUMS", ".gitattributes", "LICENSE")
PATH = re.compile(r"[\w.+=-]+(?:/[\w.+=-]+)*", re.ASCII)


def is_plain_text(text: str, most: int) -> bool:
    """Whether a text is printable and has at most so many characters."""
    return len(text) <= most and text.isprintable()


def check_listing(where: str, files: Iterable[tuple[str, int]]) -> None:
    """Refuse a dataset by the paths and sizes of its files.

    Args:
        where: What messages call the dataset.
        files: Paths with forward slashes, relative to the dataset, and sizes in bytes.

    Raises:
        DatasetError: A path leaves the dataset or has characters that are not accepted, a file is of a kind that no
            rollouts need, or there are too many files or bytes.
    """
    count = total = 0
    for path, size in files:
        count, total = count + 1, total + size
        if not PATH.fullmatch(path) or ".." in path.split("/") or len(path) > LONGEST_PATH:
            raise DatasetError(f"{where}: the path {path[:LONGEST_PATH]!r} is not accepted: rename the file")
        name = path.rsplit("/", 1)[-1]
        if name not in WITHOUT_ENDING and not name.endswith(ENDINGS):
            raise DatasetError(f"{where}: {path}: only {', '.join(ENDINGS)} files are accepted: remove it")
    if count > MOST_FILES:
        raise DatasetError(f"{where}: {count:,} files, at most {MOST_FILES:,} are accepted")
    if total > MOST_BYTES:
        raise DatasetError(f"{where}: {total:,} bytes, at most {MOST_BYTES:,} are accepted")


def check_folder(folder: Path) -> None:
    """Refuse a folder by its paths and sizes, and by the sizes to which its parquet files unpack.

    Raises:
        DatasetError: As for ``check_listing``, or a file has more rows or unpacks to more than is accepted.
    """
    files = [path for path in sorted(folder.rglob("*")) if path.is_file() and not _hidden(path.relative_to(folder))]
    check_listing(str(folder), ((path.relative_to(folder).as_posix(), path.stat().st_size) for path in files))
    for path in files:
        if path.suffix == ".parquet":
            _check_parquet(path)


def _hidden(path: Path) -> bool:
    return any(part.startswith(".") for part in path.parts)


def _check_parquet(file: Path) -> None:
    try:
        metadata = pq.read_metadata(file)
        unpacked = sum(metadata.row_group(group).total_byte_size for group in range(metadata.num_row_groups))
    except (OSError, ValueError, pa.ArrowException) as error:
        raise DatasetError(f"{file}: not a complete parquet file: copy it again or record again") from error
    if metadata.num_rows > MOST_ROWS:
        raise DatasetError(f"{file}: {metadata.num_rows:,} rows, at most {MOST_ROWS:,} are accepted")
    if unpacked > MOST_UNPACKED_BYTES:
        raise DatasetError(f"{file}: unpacks to {unpacked:,} bytes, at most {MOST_UNPACKED_BYTES:,} are accepted")
