"""Reading untrusted parquet files in a process of their own first, since a damaged file may end the process.

Arrow promises nothing for damaged files, and one may be made to end the process (11,000 damaged copies, read one row
group after the other and in one thread, have ended none). What a child process has read to the end, this one reads as
well. What the child refuses in Python is left to the readers, whose messages tell what is wrong with it. A file that
ends only some of the processes that read it is not caught.
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
"""How long all files may take; those of a complete evaluation take well under a minute."""

MOST_MEMORY_BYTES = 32 << 30
"""Address space of the process that reads them, where the system can limit it."""


def try_reading(files: Sequence[Path]) -> None:
    """Read all parquet files, row group by row group, in another process.

    Raises:
        DatasetError: That process ended, took too long or needed too much memory; the message names the file.
    """
    if not files:
        return
    # -P: the working directory may be the untrusted folder; its modules must not come before the library's.
    command = [sys.executable, "-P", "-m", __name__]
    try:
        child = subprocess.run(
            command, input="\n".join(map(str, files)), capture_output=True, text=True, timeout=LONGEST_S, check=False
        )
    except subprocess.TimeoutExpired as error:
        printed = error.stdout.decode() if isinstance(error.stdout, bytes) else error.stdout or ""
        raise DatasetError(f"{_last_line(printed)}: reading it takes over {LONGEST_S} s: it is not accepted") from error
    if child.returncode < 0:
        name = signal.Signals(-child.returncode).name
        raise DatasetError(
            f"{_last_line(child.stdout)}: ends the process that reads it ({name}): copy it again or record again"
        )
    if child.returncode > 0:
        reason = _last_line(child.stderr, "no reason given")
        raise DatasetError(f"{_last_line(child.stdout)}: cannot be read ({reason}): copy or record it again")


def _last_line(printed: str, otherwise: str = "parquet") -> str:
    """The last line that the child printed: of its output, the file that it was reading."""
    return (printed.strip().splitlines() or [otherwise])[-1]


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
