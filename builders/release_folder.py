"""A folder that is written atomically: it appears at its place when it is complete."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ..toolkit.errors import InvalidInputError


@contextmanager
def new_release(out: Path) -> Iterator[Path]:
    """A folder to write a release into, which is moved to its place when all is written, or removed.

    Raises:
        InvalidInputError: The place exists and is not empty, or cannot be written.
    """
    check_writable(out)
    aside = Path(tempfile.mkdtemp(prefix=f".{out.name}-", dir=out.parent))
    try:
        yield aside
        aside.chmod(0o755)
        if out.exists():
            out.rmdir()
        os.replace(aside, out)
    except BaseException:
        shutil.rmtree(aside, ignore_errors=True)
        raise


def check_writable(out: Path) -> None:
    """Make sure, before hours of work, that a release can be written.

    Raises:
        InvalidInputError: The folder exists and is not empty, or cannot be written.
    """
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise InvalidInputError(f"{out}: exists and is not empty; choose another folder or remove it")
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryDirectory(prefix=f".{out.name}-", dir=out.parent).cleanup()
    except OSError as error:
        raise InvalidInputError(f"{out}: cannot be written ({error.strerror}); choose another folder") from error
