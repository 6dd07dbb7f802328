"""A policy server that dies in mid-rollout and comes back costs nothing; one that stays away costs its rollouts."""

from __future__ import annotations

import dataclasses
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from conflictvla.builders.tasks_dataset.reading import load_instances
from conflictvla.eval.recordings.reading import SCORED_FEATURES, read_rollouts
from conflictvla.eval.rollouts.executors.choose import choose_executor
from conflictvla.eval.rollouts.run import run_policy
from conflictvla.toolkit.errors import PolicyError
from conflictvla.toolkit.records import Arm, Instance

HERE = Path(__file__).parent


@contextmanager
def _server(protocol: str, flag: Path, *, lives: int) -> Iterator[int]:
    """A server on a port; whenever it has died it is started again, a second later, until its lives are used up."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = int(free.getsockname()[1])
    command = [sys.executable, str(HERE / "mortal_server.py"), protocol, str(port), str(flag)]
    running = [subprocess.Popen(command)]
    over = threading.Event()

    def watch() -> None:
        while not over.wait(0.1):
            if running[-1].poll() is not None and len(running) < lives:
                time.sleep(1.0)
                running.append(subprocess.Popen(command))

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        yield port
    finally:
        over.set()
        watcher.join()
        for process in running:
            process.kill()
            process.wait()


def _chosen() -> tuple[Instance, ...]:
    found = next(i for i in load_instances() if i.base_task == "turn_on_the_stove" and i.arm is Arm.REFERENCE)
    return (dataclasses.replace(found, horizon=4),)


@pytest.mark.parametrize(("protocol", "workers"), [("vla-eval", 1), ("vla-eval", 2), ("openpi", 1)])
def test_a_server_that_dies_in_mid_rollout_and_comes_back_costs_nothing(
    tmp_path: Path, protocol: str, workers: int
) -> None:
    flag = tmp_path / "died"
    digests = []
    with _server(protocol, flag, lives=2) as port:
        spec = f"{protocol}://127.0.0.1:{port}?wait_s=120&name=mortal" + ("&replan_steps=1" * (protocol == "openpi"))
        for name in ("disturbed", "undisturbed"):
            run = run_policy(
                spec,
                _chosen(),
                tmp_path / name,
                init_states=[0, 1, 2],
                executor=choose_executor(workers, None, pause_s=0.1),
            )
            assert (run.rollouts, run.failures) == (3, ())
            assert flag.exists()
            digests.append(read_rollouts(tmp_path / name).digests(SCORED_FEATURES))
    assert digests[0] == digests[1]


def test_a_server_that_stays_away_fails_the_rollout_after_three_tries(tmp_path: Path) -> None:
    with _server("vla-eval", tmp_path / "died", lives=1) as port:
        spec = f"vla-eval://127.0.0.1:{port}?wait_s=20&name=mortal"
        with pytest.raises(PolicyError) as caught:
            run_policy(
                spec,
                _chosen(),
                tmp_path / "out",
                init_states=[0, 1, 2],
                executor=choose_executor(1, None, pause_s=0.1),
            )
    message = str(caught.value)
    assert "init1" in message
    assert "no policy server answers" in message
    assert message.endswith("(3 tries)")
    assert len(list((tmp_path / "out" / ".mortal" / "shards").glob("*.parquet"))) == 1  # what was finished stays
