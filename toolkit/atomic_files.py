"""Atomic files, which are complete or absent: written beside their place, then renamed."""

from __future__ import annotations

import contextlib
import os
import tempfile
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


def check_file_place(path: Path) -> None:
    """Make sure, before long work, that a file can be written at a place; nothing is left there.

    Raises:
        InvalidInputError: It cannot be written.
    """
    _check_place(path, path.parent, is_folder=False)


def check_folder_place(path: Path) -> None:
    """Make sure, before long work, that files can be written into a folder, which need not exist; nothing is left.

    Raises:
        InvalidInputError: They cannot be written.
    """
    _check_place(path, path, is_folder=True)


def _check_place(path: Path, folder: Path, *, is_folder: bool) -> None:
    try:
        if path.exists() and not (path.is_dir() if is_folder else path.is_file()):
            raise InvalidInputError(f"{path}: is not a {'folder' if is_folder else 'file'}; choose another place")
        there = next(each for each in (folder.absolute(), *folder.absolute().parents) if each.exists())
        tempfile.TemporaryDirectory(prefix=".conflictvla-", dir=there).cleanup()
    except OSError as error:
        raise InvalidInputError(f"{path}: cannot be written ({error.strerror}); choose another place") from error
