"""Hash of source files: what a cache stores is valid only for the code that computed it."""

from __future__ import annotations

import hashlib
from pathlib import Path


def sources_sha256(root: Path, *names: str) -> str:
    """Hash of Python files by their names and content; the same wherever ``root`` lies.

    Args:
        root: The folder that the names are relative to.
        names: Files, and folders of which every Python file counts, those in folders within them too.

    Raises:
        FileNotFoundError: A name is of no file or folder.
    """
    digest = hashlib.sha256()
    paths = [root / name for name in names]
    files = {file for path in paths for file in (path.rglob("*.py") if path.is_dir() else [path])}
    for file in sorted(files, key=lambda file: file.relative_to(root).as_posix()):
        digest.update(f"{file.relative_to(root).as_posix()}\n".encode())
        digest.update(hashlib.sha256(file.read_bytes()).digest())
    return digest.hexdigest()
