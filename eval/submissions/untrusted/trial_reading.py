"""Reading a stranger's parquet files in a process of their own first, since a damaged file may end the process.

Arrow refuses damage rather than die of it, one row group after the other and in one thread (11,000 damaged copies have
ended no process), but promises nothing, and a file may be made to. What a child process has read to the end, this one
reads as well; what it refuses in Python is left to the readers, who say what is wrong with it. A file that ends only
some of the processes that read it is not caught.
"""

from __future__ import annotations

import contextlib
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from ....toolkit.errors import DatasetError

LONGEST_S = 600
"""How long all files may take; those of a whole evaluation take well under a minute."""

MOST_MEMORY_BYTES = 32 << 30
"""Address space of the process that reads them, where the system can limit it."""


def try_reading(files: Sequence[Path]) -> None:
    """Read all parquet files, row group by row group, in another process.

    Raises:
        DatasetError: It died, took too long or needed too much memory; the message names the file.
    """
    if not files:
        return
    # -P: a module of the working directory's, which may be the stranger's folder, must not come before the library's.
    command = [sys.executable, "-P", "-m", __name__]
    try:
        child = subprocess.run(
            command, input="\n".join(map(str, files)), capture_output=True, text=True, timeout=LONGEST_S, check=False
        )
    except subprocess.TimeoutExpired as error:
        said = error.stdout.decode() if isinstance(error.stdout, bytes) else error.stdout or ""
        raise DatasetError(f"{_last(said)}: reading it takes over {LONGEST_S} s: it is not accepted") from error
    if child.returncode < 0:
        name = signal.Signals(-child.returncode).name
        raise DatasetError(
            f"{_last(child.stdout)}: ends the process that reads it ({name}): copy it again or record again"
        )
    if child.returncode > 0:
        said = (child.stderr.strip().splitlines() or ["no reason given"])[-1]
        raise DatasetError(f"{_last(child.stdout)}: cannot be read ({said}): copy or record it again")


def _last(names: str) -> str:
    """The file that was being read: each is named before it is opened."""
    return (names.strip().splitlines() or ["parquet"])[-1]


def _read_all(files: Sequence[str]) -> None:
    with contextlib.suppress(ImportError):
        import resource

        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        resource.setrlimit(resource.RLIMIT_AS, (MOST_MEMORY_BYTES, MOST_MEMORY_BYTES))
    for file in files:
        sys.stdout.write(f"{file}\n")
        sys.stdout.flush()
        try:
            parquet = pq.ParquetFile(file, page_checksum_verification=True)
            for group in range(parquet.metadata.num_row_groups):
                parquet.read_row_group(group, use_threads=False).validate(full=True)
        except (OSError, ValueError, TypeError, LookupError, pa.ArrowException) as error:
            if isinstance(error, MemoryError):
                raise


if __name__ == "__main__":
    _read_all(sys.stdin.read().splitlines())
