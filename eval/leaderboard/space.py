"""The leaderboard as a Hugging Face Space: the three files that a Space consists of."""

from __future__ import annotations

import importlib.metadata
from pathlib import Path

from ...toolkit.atomic_files import write_atomic
from ...toolkit.errors import InvalidInputError
from ..recordings.sources import HUB, hub_address

CARD = """---
title: ConflictVLA leaderboard
emoji: 🤖
colorFrom: blue
colorTo: yellow
sdk: gradio
sdk_version: {gradio}
python_version: "3.12"
app_file: app.py
license: apache-2.0
---

The leaderboard of ConflictVLA. Its results come from `{data}`.
"""

APP = '''"""Shows the results of {data}."""

import os

from conflictvla.eval.leaderboard.app import serve

serve(os.environ.get("RESULTS", "{data}"), host="0.0.0.0", port=int(os.environ.get("PORT", "7860")))
'''

RELEASED_PACKAGE = "conflictvla[serve]=={version}"


def write_space(out: Path, data: str, package: str | None = None) -> None:
    """Write the files of a Space to a new folder.

    Args:
        out: The folder.
        data: Dataset with the results, as ``hf://OWNER/NAME``; the Space cannot read a folder of this machine.
        package: Requirement by which the Space installs this package, such as ``conflictvla[serve] @ git+https://...``;
            by default its version from PyPI.

    Raises:
        InvalidInputError: The folder exists, cannot be written, or the results are not on the Hub.
    """
    if not data.startswith(HUB):
        raise InvalidInputError(
            f"--data '{data}': a Space reads its results from the Hub: write it like hf://OWNER/NAME"
        )
    hub_address(data)
    released = RELEASED_PACKAGE.format(version=importlib.metadata.version("conflictvla"))
    files = {
        "README.md": CARD.format(gradio=importlib.metadata.version("gradio"), data=data),
        "app.py": APP.format(data=data),
        "requirements.txt": f"{package or released}\n",
    }
    try:
        out.mkdir(parents=True)
    except OSError as error:
        raise InvalidInputError(f"{out}: cannot be made ({error.strerror}); choose another folder") from error
    for name, text in files.items():
        write_atomic(out / name, text)
