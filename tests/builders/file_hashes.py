"""What is in a folder, to tell whether anything in it has changed."""

from __future__ import annotations

import hashlib
from pathlib import Path


def file_hashes(folder: Path) -> dict[str, str]:
    """SHA-256 of each file, by path within the folder."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}
