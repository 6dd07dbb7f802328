"""Worker processes end with the process that started them, however it ends."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from conflictvla.toolkit.processes import worker_processes

PARENT = (
    "import os, pathlib, sys, time; from conflictvla.toolkit.processes import worker_processes\n"
    "if __name__ == '__main__':\n"
    "    pool = worker_processes(2)\n"
    "    found = {pool.submit(time.sleep, 0.5) and pool.submit(os.getpid).result() for _ in range(4)}\n"
    "    pathlib.Path(sys.argv[1]).write_text(' '.join(map(str, found)))\n"
    "    time.sleep(600)\n"
)


def is_running(process: int) -> bool:
    try:
        state = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="looks at Linux's list of processes")
@pytest.mark.parametrize("end", [signal.SIGKILL, signal.SIGTERM])
def test_workers_end_when_their_parent_is_killed(end: signal.Signals, tmp_path: Path) -> None:
    reported = tmp_path / "workers"
    parent = subprocess.Popen([sys.executable, "-c", PARENT, str(reported)])
    while not reported.exists() or not reported.read_text():
        assert parent.poll() is None
        time.sleep(0.05)
    workers = [int(word) for word in reported.read_text().split()]
    assert workers
    assert all(map(is_running, workers))
    parent.send_signal(end)
    parent.wait()
    deadline = time.monotonic() + 60
    while any(map(is_running, workers)) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not any(map(is_running, workers))


def test_workers_work() -> None:
    with worker_processes(1) as pool:
        assert pool.submit(os.getpid).result() != os.getpid()
        assert pool.submit(pow, 2, 10).result() == 1024
