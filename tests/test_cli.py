"""The commands as a user types them."""

from __future__ import annotations

import io
import json
import math
import re
import shutil
import socket
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
from rich.console import Console

from conflictvla.cli import console
from conflictvla.cli.app import main
from conflictvla.eval.policies.presets import PRESETS
from conflictvla.toolkit.errors import DatasetError

CASE = "libero_goal/put_the_bowl_on_the_plate/grounding/L1/*"


@dataclass(frozen=True)
class Answer:
    returncode: int
    stdout: str
    stderr: str


Command = Callable[..., Answer]


@pytest.fixture
def conflictvla(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Command:
    """A function that runs a command line in this process; starting one anew would cost seconds each."""

    def run(*arguments: str) -> Answer:
        monkeypatch.setattr(sys, "argv", ["conflictvla", *arguments])
        capsys.readouterr()
        with pytest.raises(SystemExit) as ended:
            main()
        printed = capsys.readouterr()
        return Answer(returncode=int(ended.value.code or 0), stdout=printed.out, stderr=printed.err)

    return run


def error_of(answer: Answer) -> str:
    """The one line that a wrong use is answered with."""
    assert answer.returncode == 2, answer.stdout + answer.stderr
    assert answer.stdout == ""
    (line,) = answer.stderr.strip().splitlines()
    assert line.startswith("error: ")
    return line


@pytest.fixture(scope="module")
def run_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Rollouts of a scripted agent on two cases and their reference."""
    out = tmp_path_factory.mktemp("run") / "out"
    arguments = [
        "run",
        "--policy",
        "persist",
        "--cases",
        CASE,
        "--prompts",
        "P0",
        "--init-states",
        "0",
        "--out",
        str(out),
    ]
    command = [sys.executable, "-m", "conflictvla.cli", *arguments]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    assert "3 rollouts" in result.stdout
    return out


def test_a_run_can_be_scored_and_reported(conflictvla: Command, run_folder: Path, tmp_path: Path) -> None:
    scored = conflictvla("score", str(run_folder), "--out", str(tmp_path / "scores.json"), "--json")
    assert scored.returncode == 0, scored.stderr
    (row,) = json.loads(scored.stdout)
    assert (row["policy"], row["n"], row["PCSR"], row["RGSR"]) == ("persist", 2, 1.0, 1.0)
    assert (row["TAR"], row["Early20_TS"]) == pytest.approx((1.0, 1.0), abs=1e-6)
    assert row["AMS"] == pytest.approx(0.0, abs=1e-6)
    assert row["RGSR_lo"] is None  # one base task is one cluster: unknown, not certain
    assert json.loads((tmp_path / "scores.json").read_text())
    reported = conflictvla("report", str(run_folder), "--out", str(tmp_path / "new" / "report.html"))
    assert reported.returncode == 0, reported.stderr
    assert (tmp_path / "new" / "report.html").read_text().startswith("<!doctype html>")


def test_a_finished_run_is_not_run_again(conflictvla: Command, run_folder: Path) -> None:
    before = {file: file.read_bytes() for file in run_folder.rglob("*") if file.is_file()}
    arguments = ["run", "--policy", "persist", "--cases", CASE, "--prompts", "P0", "--init-states", "0"]
    result = conflictvla(*arguments, "--out", str(run_folder), "--json")
    assert result.returncode == 0, result.stderr
    assert [json.loads(line)["done"] for line in result.stdout.splitlines()] == [3]
    assert {file: file.read_bytes() for file in run_folder.rglob("*") if file.is_file()} == before


def test_shards_fill_one_folder_which_score_takes_when_all_is_there(conflictvla: Command, tmp_path: Path) -> None:
    """Of the one base task each shard has a stretch; what is there already is not part of the second's progress."""
    out = tmp_path / "out"
    cases = ["--cases", CASE, "--prompts", "P0", "--init-states", "0"]
    arguments = ["run", "--policy", "refuse", *cases, "--out", str(out), "--shard"]
    first = conflictvla(*arguments, "1/2")
    assert first.returncode == 0, first.stderr
    assert f"{out / 'rollouts' / 'refuse'}  unfinished: " in first.stdout
    unfinished = error_of(conflictvla("score", str(tmp_path)))
    assert "refuse: unfinished, " in unfinished
    assert "give the command again that runs it" in unfinished
    assert "of 3 rollouts" in error_of(conflictvla("merge", str(out)))
    second = conflictvla(*arguments, "2/2", "--json")
    assert second.returncode == 0, second.stderr
    events = [json.loads(line) for line in second.stdout.splitlines()]
    assert [event["done"] for event in events] == list(range(events[-1]["total"] + 1))
    assert conflictvla("score", str(tmp_path)).returncode == 0
    assert "nothing to finish" in error_of(conflictvla("merge", str(out)))


@pytest.mark.parametrize("width", [40, 80, 200])
def test_tables_of_commands_are_whole_however_narrow_the_terminal(width: int) -> None:
    table, out = console.plain_table("check", "what to change"), io.StringIO()
    table.add_row("x" * 150, "y" * 70)
    Console(file=out, width=width).print(table)
    text = out.getvalue()
    assert (text.count("x"), text.count("y"), "…" in text) == (150, 70, False)


def test_presets_are_listed_whole(conflictvla: Command) -> None:
    listed = conflictvla("presets").stdout
    assert "…" not in listed
    assert all(preset.name in listed for preset in PRESETS)


def test_what_is_left_of_a_run_and_who_runs_it_is_shown(
    conflictvla: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run that failed at the first of two conflict rollouts, then a part of it, then all of it but these two."""
    monkeypatch.syspath_prepend(str(Path(__file__).parent / "eval/rollouts"))
    out = tmp_path / "out"
    dataset, failures = out / "rollouts" / "drift", out / "rollouts" / "drift.failures.jsonl"
    command = ["run", "--policy", "misbehaving:Sulks", "--cases", CASE, "--prompts", "P0", "--out", str(out)]
    assert "I would rather not" in error_of(conflictvla(*command, "--init-states", "0"))
    smaller = conflictvla(*command, "--init-states", "0", "--references-only")
    assert (smaller.returncode, smaller.stdout.splitlines()) == (
        0,
        [
            f"{dataset}  unfinished: 1 of 3 rollouts",
            "2 rollouts left that this command does not ask for: give the command again that does; "
            f"to take what is there: conflictvla merge {out} --out FOLDER",
        ],
    )
    ended = conflictvla(*command, "--init-states", "0", "--keep-going")
    assert ended.returncode == 1
    first, second = ended.stderr.splitlines()[-2:]
    assert first.startswith("2 rollouts failed; the first: ")
    assert second == f"{failures} lists all that failed; the same command runs them again"
    other = conflictvla(*command, "--init-states", "1", "--references-only")
    assert other.stderr.splitlines()[-1].endswith("runs them again, but for 2 that other commands have asked for")
    warning = f"warning: {failures}: 2 rollouts failed, so missing here: give the run's command again"
    for scored in (out, dataset):
        assert warning in conflictvla("score", str(scored)).stderr.splitlines()
    shutil.rmtree(dataset)
    assert error_of(conflictvla("score", str(out))) == (
        f"error: {out}: no finished rollout; {failures}: 2 rollouts failed, so missing here: give the run's "
        "command again"
    )


def test_runs_are_merged_and_published_from_deep_down(conflictvla: Command, run_folder: Path, tmp_path: Path) -> None:
    merged = conflictvla("merge", str(run_folder), str(run_folder), "--out", str(tmp_path / "deep" / "out"))
    assert merged.returncode == 0, merged.stderr
    dataset = tmp_path / "deep" / "out" / "rollouts" / "persist"
    assert merged.stdout == f"{dataset}  3 rollouts, 3 of them there more than once, each time the same\n"
    planned = conflictvla("publish", str(tmp_path), "--repo-id", "me/x", "--version", "1.0.0", "--dry-run", "--json")
    assert planned.returncode == 0, planned.stderr
    assert "meta/info.json" in {file["path"] for file in json.loads(planned.stdout)["files"]}
    assert "give --out" in error_of(conflictvla("merge", str(run_folder), str(run_folder)))


def test_a_damaged_dataset_is_named(conflictvla: Command, run_folder: Path, tmp_path: Path) -> None:
    shutil.copytree(run_folder, tmp_path / "damaged")
    file = next((tmp_path / "damaged").rglob("data/**/*.parquet"))
    file.write_bytes(file.read_bytes()[:-8])
    message = error_of(conflictvla("score", str(tmp_path / "damaged"), "--out", str(tmp_path / "scores.json")))
    assert file.name in message
    assert not (tmp_path / "scores.json").exists()


def test_a_mixed_up_pair_is_refused_by_its_field(conflictvla: Command, run_folder: Path, tmp_path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    shutil.copytree(run_folder, tmp_path / "mixed")
    file = next((tmp_path / "mixed").rglob("meta/episodes/**/*.parquet"))
    table = pq.read_table(file)
    hashes = ["0" * 64 if i == 1 else value for i, value in enumerate(table["scene_sha256"].to_pylist())]
    index = table.column_names.index("scene_sha256")
    pq.write_table(table.set_column(index, "scene_sha256", pa.array(hashes)), file)
    result = conflictvla("score", str(tmp_path / "mixed"))
    assert result.returncode == 1
    assert "refused 1 conflict rollout: scene_sha256" in result.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("run", "--policy", "persist", "--cases", "libero_goal/nope", "--out", "o"), "no case 'libero_goal/nope'"),
        (("run", "--policy", "persit", "--out", "o"), "did you mean 'persist'?"),
        (("run", "--policy", ":A", "--out", "o"), "write your own class as module:Class"),
        (("probe", "--policy", "json:dumps"), "dumps is called without arguments"),
        (("run", "--policy", "persist", "--prompts", "P2", "--out", "o"), "no prompt condition 'P2'"),
        (("run", "--policy", "persist", "--prompts-file", "nowhere", "--out", "o"), "nowhere: cannot be read"),
        (("run", "--policy", "persist", "--init-states", "4-0", "--out", "o"), "--init-states '4-0'"),
        (("run", "--policy", "persist", "--init-states", "0-60", "--cases", CASE, "--out", "o"), "choose 0 to 49"),
        (("run", "--policy", "persist", "--init-states", "0-99999999", "--out", "o"), "more than 10,000 numbers"),
        (("run", "--policy", "persist", "--seeds", "0-99999999", "--out", "o"), "more than 10,000 numbers"),
        (("run", "--policy", "persist", "--seeds", "0-999", "--out", "o"), "14,530,000 rollouts: one call"),
        (("run", "--policy", "persist", "--seeds", "0-999", "--dry-run", "--out", "o"), "14,530,000 rollouts"),
        (("run", "--policy", "persist", "--workers", "99999999", "--out", "o"), "at most 1024 run on one machine"),
        (("rollouts", "build", "--init-states", "0-99999999", "--out", "o"), "more than 10,000 numbers"),
        (("run", "--policy", "persist", "--out", "/proc/out"), "/proc/out"),
        (("verify", "nowhere", "--out", "v.json"), "give it with --result"),
        (("score", "nowhere"), "no such folder"),
        (("score", "."), "LeRobot"),
        (("report", "nowhere"), "no such folder"),
        (("tasks", "show", "libero_goal/nope"), "no case 'libero_goal/nope'"),
        (("tasks", "show", "libero_goal"), "cases begin with 'libero_goal'"),
        (("tasks", "list", "--task", "nope"), "no case fits these filters"),
        (("tasks", "list", "--tasks", "nowhere"), "nowhere: not a task release"),
        (("tasks", "build", "--suite", "libero_gaol", "--out", "o"), "did you mean 'libero_goal'?"),
        (("tasks", "build", "--out", "/proc/out"), "/proc/out: cannot be written"),
        (("demo", "--out", "/proc/out"), "/proc/out"),
        (("rollouts", "build", "--out", "o", "--compact", "--videos", "1"), "--videos needs the simulator's states"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_wrong_use_is_answered_in_one_line_and_leaves_nothing(
    conflictvla: Command, arguments: tuple[str, ...], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert message in error_of(conflictvla(*arguments))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("command", [("leaderboard",), ("serve-policy", "--policy", "persist")])
def test_a_server_that_cannot_listen_shows_no_address(conflictvla: Command, command: tuple[str, ...]) -> None:
    assert "cannot listen at nohost.invalid:" in error_of(conflictvla(*command, "--host", "nohost.invalid"))
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        assert f"cannot listen at 127.0.0.1:{port}" in error_of(conflictvla(*command, "--port", port))


def test_debug_lets_the_traceback_through(conflictvla: Command) -> None:
    with pytest.raises(DatasetError):
        conflictvla("score", "nowhere", "--debug")


def test_cases_can_be_listed_and_shown(conflictvla: Command) -> None:
    listed = conflictvla("tasks", "list", "--family", "physical", "--level", "L1", "--json")
    cases = json.loads(listed.stdout)
    assert len(cases) >= 10
    shown = conflictvla("tasks", "show", cases[0]["case_id"])
    assert shown.returncode == 0
    assert cases[0]["instruction"] in shown.stdout
    assert "observed" in shown.stdout


def test_the_lite_selection_can_be_listed(conflictvla: Command) -> None:
    listed = conflictvla("tasks", "list", "--lite", "--json")
    assert len(json.loads(listed.stdout)) == 160
    some = conflictvla("tasks", "list", "--lite", "--family", "physical", "--level", "L1", "--json")
    assert len(json.loads(some.stdout)) == 10


def test_the_doctor_finds_this_installation_well(conflictvla: Command) -> None:
    result = conflictvla("doctor", "--json")
    assert result.returncode == 0, result.stdout
    findings = {finding["check"]: finding["state"] for finding in json.loads(result.stdout)}
    assert findings["scene"] == "ok"
    assert set(findings.values()) == {"ok"}


@pytest.mark.parametrize("command", [(), ("tasks",), ("run",), ("score",), ("demo",), ("tasks", "build")])
def test_every_command_explains_itself(conflictvla: Command, command: tuple[str, ...]) -> None:
    result = conflictvla(*command, "--help")
    assert result.returncode == 0
    assert "Usage" in result.stdout


def test_a_log_shows_how_far_a_long_command_is(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with console.progress_bar("rollouts", 300) as advance:
        advance("quickly done")
        assert capsys.readouterr().err == ""

    monkeypatch.setattr(console, "LOG_EVERY_S", 0.0)
    with console.progress_bar("rollouts", 300) as advance:
        advance("continuing", 100)
        advance("close the [drawer]")
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 2
    line = r"rollouts 101/300, \S+ a minute, \d+ min left: close the \[drawer\]"
    assert re.fullmatch(line, lines[1])


def test_json_holds_null_for_what_is_no_number(capsys: pytest.CaptureFixture[str]) -> None:
    console.print_json([{"largest": math.inf, "difference": math.nan, "steps": 3}])
    assert json.loads(capsys.readouterr().out) == [{"largest": None, "difference": None, "steps": 3}]
