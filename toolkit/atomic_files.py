"""Atomic files, which are complete or absent: written beside their place, then renamed."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from .errors import InvalidInputError


@contextmanager
def atomic_file(path: Path) -> Iterator[Path]:
    """A path to write to, which becomes the file when the block ends and is removed where that fails.

    Its ending is ``.part``: a reader that looks for files by their ending never meets one that a crash left behind.

    Args:
        path: Where the file belongs; folders are made as needed.

    Raises:
        InvalidInputError: It cannot be written: no permission, no space left, a folder of that name.
    """
    aside = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        yield aside
        os.replace(aside, path)
    except OSError as error:
        why = os.strerror(error.errno) if error.errno else error  # PyArrow's own message is long
        raise InvalidInputError(f"{path}: cannot be written ({why}); make room or choose another place") from error
    finally:
        with contextlib.suppress(OSError):
            aside.unlink(missing_ok=True)


def write_atomic(path: Path, content: str | bytes) -> None:
    """Write a file atomically; text as UTF-8. See ``atomic_file``."""
    with atomic_file(path) as aside:
        aside.write_bytes(content.encode() if isinstance(content, str) else content)
