"""Every command and every snippet in the README runs, in order, and shows what it is said to show."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[1]
README = REPOSITORY / "README.md"
FENCE = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
COMMANDS = {"conflictvla": [sys.executable, "-m", "conflictvla.cli"]}


@dataclass(frozen=True)
class Snippet:
    language: str
    text: str


def snippets() -> list[Snippet]:
    return [Snippet(*found.groups()) for found in FENCE.finditer(README.read_text(encoding="utf-8"))]


def _run(command: list[str], folder: Path) -> str:
    environment = {**os.environ, "PYTHONPATH": str(folder), "COLUMNS": "200", "NO_COLOR": "1"}
    result = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert result.returncode == 0, f"{command}\n{result.stdout}{result.stderr}"
    return result.stdout


def _run_console(text: str, folder: Path) -> None:
    for block in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]:
        line, _, expected = block.partition("\n")
        program, *arguments = shlex.split(line)
        printed = _run([*COMMANDS[program], *arguments], folder)
        if expected.strip():
            assert printed.split() == expected.split(), f"{line} prints\n{printed}"


def test_the_readme_runs_from_top_to_bottom(tmp_path: Path) -> None:
    for snippet in snippets():
        if snippet.language == "console":
            _run_console(snippet.text, tmp_path)
        elif snippet.language == "python" and "class Wave" in snippet.text:
            (tmp_path / "wave.py").write_text(snippet.text, encoding="utf-8")
        elif snippet.language == "python":
            _run([sys.executable, "-c", snippet.text], tmp_path)
        else:
            assert snippet.language == "bash", snippet


@pytest.mark.parametrize("line", [line for s in snippets() if s.language == "bash" for line in s.text.splitlines()])
def test_every_make_target_and_extra_in_the_readme_exists(line: str) -> None:
    command = line.split("#")[0].split()
    if command[0] == "make":
        subprocess.run(["make", "--dry-run", *command[1:]], cwd=REPOSITORY, check=True, capture_output=True)
        return
    assert command[:2] == ["pip", "install"], line
    named = re.search(r"\[(.*)\]", line)
    extras = named[1].split(",") if named else []
    pyproject = (REPOSITORY / "pyproject.toml").read_text(encoding="utf-8")
    for extra in extras:
        assert re.search(rf"^{extra} = \[", pyproject, re.MULTILINE), extra


def test_every_picture_and_file_that_the_readme_names_exists() -> None:
    text = README.read_text(encoding="utf-8")
    names = re.findall(r"!\[[^]]*\]\(([^)]+)\)", text) + re.findall(r"`([A-Z]+\.(?:md|cff))`", text)
    assert names
    for name in names:
        assert (REPOSITORY / name).is_file(), name
