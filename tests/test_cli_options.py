"""What an option takes is looked at before anything is done: numbers, and places to write to."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import get_args, get_type_hints

import pytest
import typer

from conflictvla.cli.app import app

from .eval.in_process import conflictvla

CASE = "libero_goal/put_the_bowl_on_the_plate/grounding/L1/*"


def error_of(*arguments: str) -> str:
    """The one line that a wrong use is answered with."""
    done = conflictvla(*arguments)
    assert (done.returncode, done.stdout) == (2, "")
    (line,) = done.stderr.strip().splitlines()
    assert line.startswith("error: ")
    return line


def commands(group: typer.Typer, before: str = "") -> Iterator[tuple[str, Callable[..., None]]]:
    """Every command as it is typed, and its function."""
    for command in group.registered_commands:
        assert command.callback is not None
        yield before + (command.name or command.callback.__name__.replace("_", "-")), command.callback
    for inner in group.registered_groups:
        assert inner.typer_instance is not None
        yield from commands(inner.typer_instance, f"{inner.name} ")


def options_of(*kinds: type) -> set[tuple[str, str]]:
    """Every option, after its command, that takes a value of one of these kinds."""
    return {
        (command, f"--{name.replace('_', '-')}")
        for command, function in commands(app)
        for name, kind in get_type_hints(function).items()
        if set(kinds) & {kind, *get_args(kind)}
    }


def tried(lines: Iterable[tuple[str, ...]]) -> set[tuple[str, str]]:
    """The last option of each line, after its command."""
    known = {command for command, _ in commands(app)}
    return {(next(c for c in known if " ".join(line).startswith(f"{c} ")), line[-1]) for line in lines}


NO_SEED = ("-1", "4294967296", "1" + "0" * 30)
NO_COUNT = ("-1", "0")
NO_LENGTH = ("-1", "nan", "inf", "-inf")
NO_PORT = ("-1", "99999")
RUN = ("run", "--policy", "persist", "--cases", CASE, "--out", "o")
NUMBERS = {
    ("verify", "x", "--seed"): NO_SEED,
    ("verify", "x", "--sample"): NO_COUNT,
    ("verify", "x", "--tolerance"): NO_LENGTH,
    ("replay", "x", "--seed"): NO_SEED,
    ("replay", "x", "--sample"): NO_COUNT,
    ("replay", "x", "--tolerance"): NO_LENGTH,
    ("render", "x", "--out", "o", "--size"): (*NO_COUNT, "481"),
    ("cost", "x", "--force-limit"): NO_LENGTH,
    ("probe", "--policy", "persist", "--seed"): NO_SEED,
    ("probe", "--policy", "persist", "--steps"): (*NO_COUNT, "1" + "0" * 30),
    ("probe", "--policy", "persist", "--init-state"): ("-1", "50"),
    ("tasks", "pictures", "--out", "p.png", "--seed"): NO_SEED,
    ("tasks", "pictures", "--out", "p.png", "--init-state"): ("-1", "50"),
    ("tasks", "pictures", "--out", "p.png", "--size"): (*NO_COUNT, "481"),
    ("tasks", "build", "--out", "o", "--total"): NO_COUNT,
    ("tasks", "build", "--out", "o", "--per-cell"): NO_COUNT,
    ("tasks", "build", "--out", "o", "--init-states"): NO_COUNT,
    ("tasks", "build", "--out", "o", "--workers"): (*NO_COUNT, "1" + "0" * 30),
    ("tasks", "check", "--init-states"): NO_COUNT,
    ("suites", "states", "x", "--count"): (*NO_COUNT, "1" + "0" * 30),
    ("suites", "states", "x", "--seed"): NO_SEED,
    ("rollouts", "build", "--out", "o", "--per-cell"): NO_COUNT,
    ("rollouts", "build", "--out", "o", "--videos"): ("-1",),
    ("rollouts", "build", "--out", "o", "--verify"): ("-1",),
    ("rollouts", "build", "--out", "o", "--workers"): NO_COUNT,
    ("train-example", "--out", "o", "--steps"): NO_COUNT,
    ("leaderboard", "--port"): NO_PORT,
    ("serve-policy", "--policy", "persist", "--port"): NO_PORT,
    (*RUN, "--workers"): NO_COUNT,
    (*RUN, "--answer-limit"): ("0", *NO_LENGTH),
    (*RUN, "--dry-run", "--answer-limit"): ("0", *NO_LENGTH),
}
"""Every option that takes one number, and numbers that it cannot take."""


@pytest.mark.parametrize(
    ("arguments", "number"),
    [(arguments, number) for arguments, numbers in NUMBERS.items() for number in numbers],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else value,
)
def test_a_number_that_an_option_cannot_take_is_refused_at_once(
    arguments: tuple[str, ...], number: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert re.search("choose|is needed", error_of(*arguments, number))
    assert list(tmp_path.iterdir()) == []


def test_every_option_that_takes_a_number_is_tried() -> None:
    assert tried(NUMBERS) == options_of(int, float)


FILES = (
    ("score", "x", "--out"),
    ("report", "x", "--out"),
    ("report", "x", "--picture"),
    ("cost", "x", "--out"),
    ("verify", "x", "--out"),
    ("submit", "x", "--out"),
    ("tasks", "show", "x", "--picture"),
    ("tasks", "review", "--out"),
    ("tasks", "pictures", "--out"),
)
FOLDERS = (
    ("report", "x", "--tables"),
    ("report", "x", "--figures"),
    ("leaderboard", "--space"),
    ("demo", "--out"),
    ("run", "--policy", "persist", "--out"),
    ("run", "--policy", "persist", "--dry-run", "--out"),
    ("merge", "x", "--out"),
    ("render", "x", "--out"),
    ("rollouts", "build", "--out"),
    ("train-example", "--out"),
    ("tasks", "build", "--out"),
)
READ = (
    ("run", "--policy", "persist", "--out", "o", "--prompts-file"),
    ("run", "--policy", "persist", "--out", "o", "--tasks"),
    ("report", "x", "--videos"),
    ("score", "x", "--costs"),
    ("cost", "x", "--spec"),
    ("verify", "x", "--result"),
    ("verify", "x", "--tasks"),
    ("submit", "x", "--tasks"),
    ("tasks", "list", "--tasks"),
    ("tasks", "show", "x", "--tasks"),
    ("tasks", "build", "--out", "o", "--tasks"),
    ("tasks", "review", "--read"),
    ("tasks", "review", "--out", "o", "--tasks"),
    ("tasks", "check", "--tasks"),
)
"""Options that name what is there."""


@pytest.mark.parametrize("place", ["file/below", "there", "/proc/none", "a" * 300])
@pytest.mark.parametrize("arguments", [*FILES, *FOLDERS], ids=" ".join)
def test_a_place_that_cannot_be_written_is_refused_at_once(
    arguments: tuple[str, ...], place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("file").write_text("as it was")
    if place == "there":
        Path("there").mkdir() if arguments in FILES else Path("there").touch()
    before = {file.name for file in tmp_path.iterdir()}
    wrong = re.escape(f"error: {place}: ") + r"(cannot be written \(|is not a (file|folder); choose another place)"
    assert re.match(wrong, error_of(*arguments, place))
    assert {file.name for file in tmp_path.iterdir()} == before
    assert Path("file").read_text() == "as it was"


def test_every_option_that_names_a_place_is_tried() -> None:
    arguments = {("merge", "--runs"), ("publish", "--dataset")}
    assert tried([*FILES, *FOLDERS, *READ]) == options_of(Path, list[Path]) - arguments


@pytest.mark.parametrize(
    "arguments",
    [
        *(FILES + FOLDERS + READ),
        ("merge",),
        ("merge", "x"),
        ("publish", "--repo-id", "a/b", "--version", "1.0.0"),
    ],
    ids=" ".join,
)
def test_an_address_on_the_hub_is_refused_as_it_was_written_where_a_path_is_needed(
    arguments: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert error_of(*arguments, "hf://a/b@v1").startswith("error: hf://a/b@v1: name a file or folder of this machine;")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "options",
    [
        ("--picture", "r.html"),
        ("--out", "a", "--picture", "./a"),
        ("--tables", "r.html"),
        ("--picture", "p", "--figures", "p"),
    ],
    ids=" ".join,
)
def test_two_things_of_a_report_do_not_go_to_one_place(
    options: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert "need names of their own" in error_of("report", "x", "--out", "r.html", *options)
    assert list(tmp_path.iterdir()) == []
