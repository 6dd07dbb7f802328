"""The tutorial runs from top to bottom, in one session, as a reader would."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import conflictvla
import conflictvla.eval

TUTORIAL = Path(str(conflictvla.eval.__file__)).with_name("tutorial.md")
FENCE = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)

RUN_COMMANDS = """
import subprocess, sys
def run(*arguments):
    print(subprocess.run([sys.executable, "-m", "conflictvla.cli", *arguments], check=True, capture_output=True).stdout)
"""


def script() -> str:
    """All snippets in order as one program; a command becomes a call."""
    parts = [RUN_COMMANDS]
    for language, text in FENCE.findall(TUTORIAL.read_text(encoding="utf-8")):
        if language == "python":
            parts.append(text)
            continue
        assert language == "console"
        for line in text.splitlines():
            program, *arguments = shlex.split(line.removeprefix("$ "))
            assert program == "conflictvla"
            parts.append(f"run(*{arguments!r})\n")
    return "".join(parts)


def follow(folder: Path) -> str:
    environment = {**os.environ, "NO_COLOR": "1", "COLUMNS": "160"}
    done = subprocess.run(
        [sys.executable, "-c", script()], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert (folder / "demo/report.html").is_file()
    assert (folder / "demo/tables/behaviour.tex").is_file()
    assert (folder / "demo/figures/failures-tar.png").is_file()
    return done.stdout


def test_the_tutorial_runs_on_the_packaged_rollouts(tmp_path: Path) -> None:
    shutil.copytree(conflictvla.packaged_rollouts(), tmp_path / "demo/rollouts")
    printed = follow(tmp_path)
    assert re.search(r"^fail_persist: \d+ failures, TAR \d\.\d\d: keeps going$", printed, re.MULTILINE)
    assert re.search(r"^refuse: \d+ failures, TAR 0\.\d\d: holds back$", printed, re.MULTILINE)


@pytest.mark.slow
def test_the_tutorial_runs_on_the_demonstration(tmp_path: Path) -> None:
    from conflictvla.eval.demo import run_demo

    run_demo(tmp_path / "demo")
    assert "fail_persist: 8 failures" in follow(tmp_path)
