"""The page on policies shows what the commands print, names every setting, and its commands run."""

from __future__ import annotations

import os
import re
import shlex
import socket
import subprocess
import sys
from pathlib import Path

import pytest

import conflictvla.eval
from conflictvla.eval.policies.conventions import CHOICES, SETTINGS
from conflictvla.eval.policies.learned.policy import LANGUAGE
from conflictvla.eval.policies.lerobot_policy import OWN_SETTINGS
from conflictvla.eval.policies.presets import PRESETS
from conflictvla.eval.policies.remote import REMOTE_SETTINGS
from conflictvla.eval.probe import CHECKS

PAGE = Path(str(conflictvla.eval.__file__)).with_name("policies.md").read_text(encoding="utf-8")
CLI = [sys.executable, "-m", "conflictvla.cli"]


def _console_lines() -> list[str]:
    return [line.removeprefix("$ ") for line in PAGE.splitlines() if line.startswith("$ ")]


def test_the_table_of_presets_is_what_the_command_prints() -> None:
    environment = {**os.environ, "COLUMNS": "160", "NO_COLOR": "1"}
    printed = subprocess.run([*CLI, "presets"], env=environment, capture_output=True, text=True, check=True).stdout
    shown = re.search(r"\$ conflictvla presets\n(.*?)```", PAGE, re.DOTALL)
    assert shown is not None
    assert shown[1].split() == printed.split()


def test_each_preset_has_its_line() -> None:
    assert [line for line in PAGE.splitlines() if "--preset" in line and line.startswith("conflictvla")] == [
        preset.command() for preset in PRESETS
    ]


def test_every_setting_and_check_is_named() -> None:
    for name in (*SETTINGS, *REMOTE_SETTINGS, *OWN_SETTINGS, *(word for words in CHOICES.values() for word in words)):
        assert re.search(rf"`{name}(=1)?`", PAGE), name
    assert all(f"language={choice}`" in PAGE for choice in LANGUAGE)
    assert re.findall(r"^\| ([a-z ]+) \| [a-z]", PAGE.split("| check |")[1], re.MULTILINE) == list(CHECKS)


@pytest.mark.slow
def test_a_scripted_agent_is_served_and_run_as_shown(tmp_path: Path) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    serve, run = (shlex.split(line) for line in _console_lines()[-2:])
    assert (serve[1], run[1]) == ("serve-policy", "run")
    server = subprocess.Popen([*CLI, *serve[1:], "--port", str(port)], stdout=subprocess.PIPE, text=True)
    try:
        assert server.stdout is not None
        assert f"persist is served at openpi://127.0.0.1:{port}" in server.stdout.readline()
        arguments = [argument.replace(":8000", f":{port}").replace("localhost", "127.0.0.1") for argument in run[1:]]
        done = subprocess.run([*CLI, *arguments], cwd=tmp_path, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
    finally:
        server.terminate()
        server.wait()
    assert (tmp_path / "wired/rollouts/openpi/meta/info.json").is_file()
