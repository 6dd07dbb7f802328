"""What mkdocs does before it builds the site."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any


def on_startup(**_: Any) -> None:
    """Give mkdocstrings the package under its own name: a clone's folder may have any, and links are not followed.

    Before any plugin looks for the folder: one that is not there yet is never looked at again.
    """
    root = Path(__file__).resolve().parents[1]
    package = root / "build" / "docs" / "conflictvla"
    shutil.rmtree(package, ignore_errors=True)
    package.mkdir(parents=True)
    for part in root.iterdir():
        if part.suffix == ".py":
            shutil.copy(part, package)
        elif (part / "__init__.py").is_file():
            shutil.copytree(part, package / part.name, ignore=shutil.ignore_patterns("__pycache__", "*.parquet"))
