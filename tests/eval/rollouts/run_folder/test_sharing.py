"""Several real processes in one folder: they share the work, and whichever is killed, nothing is lost or torn."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from conflictvla.builders.rollouts.recorded import RecordedDataset
from conflictvla.eval.rollouts.run_folder.claims import Claims
from conflictvla.eval.rollouts.run_folder.locks import Heartbeat, Watch, Worker, create_alone, locked, read_worker
from conflictvla.toolkit.errors import InvalidInputError
from conflictvla.toolkit.simulation.scene_pool import ScenePool

from .short_runs import ALL, POLICIES, content, run, start


@pytest.fixture(scope="module")
def one_go(tmp_path_factory: pytest.TempPathFactory) -> dict[str, object]:
    sys.path.insert(0, str(POLICIES))
    out = tmp_path_factory.mktemp("one_go")
    run(ScenePool(), out)
    return _recorded(out)


def _recorded(out: Path) -> dict[str, object]:
    """All that was recorded, and what else lies there; LeRobot's statistics are rounded otherwise elsewhere."""
    files = {name: found for name, found in content(out).items() if not name.startswith("drift/meta/")}
    return {**files, "records": RecordedDataset(out / "drift").records}


def _reports(process: subprocess.Popen[str]) -> list[dict[str, object]]:
    out, _ = process.communicate(timeout=300)
    return [json.loads(line) for line in out.splitlines()]


def _wait_for_shards(out: Path, count: int, *processes: subprocess.Popen[str]) -> None:
    while len(list((out / ".drift" / "shards").glob("*.parquet"))) < count:
        assert any(process.poll() is None for process in processes)
        time.sleep(0.02)


def test_the_same_command_twice_shares_the_work(one_go: dict[str, object], tmp_path: Path) -> None:
    reports = [_reports(process) for process in [start(tmp_path), start(tmp_path)]]
    assert [each[-1]["dataset"] for each in reports] == [str(tmp_path / "drift")] * 2
    assert sum(bool(report.get("ran")) for each in reports for report in each) == ALL
    for each in reports:
        done = [report["done"] for report in each if "done" in report and not report["waiting"]]
        assert done == sorted(done)  # type: ignore[type-var]
        assert done[-1] == ALL
    assert _recorded(tmp_path) == one_go


def test_what_a_killed_process_has_claimed_is_run_by_another(one_go: dict[str, object], tmp_path: Path) -> None:
    first, second = start(tmp_path), start(tmp_path)
    _wait_for_shards(tmp_path, 2, first, second)
    first.send_signal(signal.SIGKILL)
    first.wait()
    assert second.wait(timeout=300) == 0
    assert _recorded(tmp_path) == one_go


def test_shards_at_once_with_one_killed_and_given_again(one_go: dict[str, object], tmp_path: Path) -> None:
    one, two, three = (start(tmp_path, shard=f"{number}/3") for number in (1, 2, 3))
    _wait_for_shards(tmp_path, 1, one, two, three)
    two.send_signal(signal.SIGKILL)
    two.wait()
    unfinished = [_reports(process)[-1]["unfinished"] for process in (one, three)]
    assert all("give the command again" in str(line) for line in unfinished)
    assert not (tmp_path / "drift").exists()
    assert _reports(start(tmp_path, shard="2/3"))[-1]["dataset"] == str(tmp_path / "drift")
    assert _recorded(tmp_path) == one_go


def test_processes_killed_at_any_moment_leave_no_torn_dataset(one_go: dict[str, object], tmp_path: Path) -> None:
    """Two at a time, each killed a little later than the last, also while the dataset is written."""
    hidden = tmp_path / ".drift"
    for kill_at in ("claims", "shards", "next"):
        pair = [start(tmp_path, policy="misbehaving:Drift") for _ in range(2)]
        seen = {"claims": "claims/*", "shards": "shards/*.parquet", "next": ".next-*/next/meta/info.json"}[kill_at]
        while any(process.poll() is None for process in pair) and not list(hidden.glob(seen)):
            time.sleep(0.005)
        for process in pair:
            process.send_signal(signal.SIGKILL)
            process.wait()
        assert not (tmp_path / "drift").exists() or (tmp_path / "drift/meta/info.json").is_file()
    assert _reports(start(tmp_path, policy="misbehaving:Drift"))[-1]["dataset"] == str(tmp_path / "drift")
    assert _recorded(tmp_path) == one_go


def test_a_lock_is_held_by_one_process_alone_and_taken_over_from_a_dead_one(tmp_path: Path) -> None:
    """Twelve processes add one to a number, reading and writing it; some die while they hold the lock."""
    script = (
        "import os, sys, time; from pathlib import Path;"
        "from conflictvla.eval.rollouts.run_folder import locks; locks.POLL_S = 0.01; locks.BREAK_S = 0.2\n"
        "file, number = Path(sys.argv[1]) / 'lock', Path(sys.argv[1]) / 'number'\n"
        "with locks.Heartbeat() as beat, locks.locked(file, locks.Worker(), beat, lambda _: None) as lock:\n"
        "    count = int(number.read_text()); time.sleep(0.05); lock.check(); number.write_text(str(count + 1))\n"
        "    if sys.argv[2] == 'dies': os.kill(os.getpid(), 9)"
    )
    (tmp_path / "number").write_text("0")
    ways = ["dies", "lives", "lives"] * 4
    processes = [subprocess.Popen([sys.executable, "-c", script, str(tmp_path), way]) for way in ways]
    codes = [process.wait(timeout=300) for process in processes]
    assert codes == [-signal.SIGKILL if way == "dies" else 0 for way in ways]
    assert (tmp_path / "number").read_text() == str(len(ways))
    assert not list(tmp_path.glob("*.break"))


def test_a_process_elsewhere_is_dead_when_it_gives_no_sign_of_life_for_long(tmp_path: Path) -> None:
    far = Worker(host="elsewhere", pid=os.getpid(), machine="another machine")
    file = tmp_path / "lock"
    create_alone(file, far.text())
    watch = Watch(expiry_s=0.2)
    for _ in range(4):
        assert not watch.is_abandoned(file)
        time.sleep(0.1)
        os.utime(file)  # its heartbeat; the time itself may be any machine's
    assert not watch.is_abandoned(file)
    time.sleep(0.3)
    assert watch.is_abandoned(file)


def test_a_waiting_process_says_for_whom_once(tmp_path: Path) -> None:
    other, lines = Worker(), list[str]()
    file = tmp_path / ".drift.lock"
    create_alone(file, other.text())

    def wait(line: str) -> None:
        lines.append(line)
        file.unlink()

    with Heartbeat() as heartbeat, locked(file, Worker(), heartbeat, wait) as lock:
        lock.check()
        file.write_text(other.text())  # as if this process had stood still for long
        with pytest.raises(InvalidInputError, match="another process has gone on"):
            lock.check()
    assert read_worker(file) == other
    assert lines == [
        f"waiting for process {os.getpid()} on {socket.gethostname()}, which has {file} and reads or writes the dataset"
    ]


def test_a_claim_is_one_processs_until_it_ends(tmp_path: Path) -> None:
    one, two = (Claims(tmp_path, Worker()) for _ in range(2))
    with Heartbeat() as heartbeat:
        with one.held(heartbeat):
            assert one.take("a")
            assert one.take("b")
            with two.held(heartbeat):
                assert not two.take("a")
                one.release("a")
                assert two.take("a")
                assert set(two.living()) == {"a", "b"}
        with two.held(heartbeat):
            assert set(two.living()) == {"a"}  # its own, of the same process
            assert two.take("b")
