"""A dry run counts the rollouts, measures the policy's rate on this machine, and leaves nothing."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from conflictvla.eval.dry_run import dry_run
from conflictvla.eval.policies.interface import Episode, Observation, PolicyInfo
from conflictvla.eval.rollouts.jobs import parse_shard
from conflictvla.eval.run_selection import RunSelection
from conflictvla.toolkit.arrays import FloatArray
from conflictvla.toolkit.records import Prompt
from conflictvla.toolkit.simulation.scene_pool import ScenePool

from .in_process import conflictvla
from .rollouts.run_folder.short_runs import BASE_TASKS, POLICIES, content, instances_of
from .rollouts.run_folder.short_runs import run as short_run

SUITE = "libero_goal/*"
ACTION_S = 0.02
DRIFT = "misbehaving:Drift"


@pytest.fixture(scope="module", autouse=True)
def importable_policies() -> None:
    sys.path.insert(0, str(POLICIES))


class SlowPolicy:
    """Stands still, and takes its time for each action."""

    info = PolicyInfo(name="slow", revision="1")

    def reset(self, episode: Episode) -> None:
        pass

    def act(self, observation: Observation) -> FloatArray:
        time.sleep(ACTION_S)
        return np.zeros((1, 7))


def test_the_hours_are_those_of_the_policy_that_is_measured(tmp_path: Path) -> None:
    instances = RunSelection(cases=SUITE, prompts=(Prompt.P0,)).instances()
    found = dry_run(SlowPolicy(), instances, tmp_path, init_states=range(5), seeds=range(2))
    assert found.rollouts == 10 * len(instances) == sum(count.rollouts for count in found.counts)
    assert found.hours is not None
    least = 10 * sum(instance.horizon for instance in instances) * ACTION_S / 3600
    assert least < found.hours < 3 * least
    assert (found.policy, found.measured_on, found.not_measured) == ("slow", ("libero_goal",), None)
    assert 0.1 < found.gigabytes < 10


@pytest.mark.parametrize("shard", [None, "1/2", "2/2"])
@pytest.mark.parametrize("finished", [True, False])
def test_what_is_recorded_already_is_counted_and_takes_no_time(
    shard: str | None, *, finished: bool, tmp_path: Path
) -> None:
    """Of four rollouts the two of one base task are recorded, in a finished run or in an unfinished one of both."""
    part, scenes = None if shard is None else parse_shard(shard), ScenePool()
    tasks = BASE_TASKS[:1] if finished else BASE_TASKS
    short_run(scenes, tmp_path, tasks=tasks, states=[0], shard=None if finished else "2/2", policy=DRIFT)
    assert (tmp_path / "drift").exists() is finished
    before = content(tmp_path)
    found = dry_run(DRIFT, instances_of(), tmp_path, init_states=[0], shard=part)
    counted = {None: (4, 2), "1/2": (2, 0), "2/2": (2, 2)}
    assert (found.rollouts, found.recorded) == counted[shard]
    assert sum(count.rollouts for count in found.counts) == found.rollouts
    assert found.hours is not None
    assert (found.hours > 0) == (found.rollouts > counted[shard][1])
    assert content(tmp_path) == before


def test_a_part_without_rollouts_takes_nothing(tmp_path: Path) -> None:
    found = dry_run("persist", instances_of(BASE_TASKS[1:]), tmp_path, init_states=[0], shard=parse_shard("1/9"))
    assert (found.rollouts, found.recorded, found.counts, found.hours, found.gigabytes) == (0, 0, (), 0.0, 0.0)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--shard", "3/2"), "--shard '3/2': write it like 1/8"),
        (("--init-states", "50"), "initial state 50 of libero_goal/"),
        (("--family", ""), "--family '': give one line"),
        (("--answer-limit", "-1"), "an answer limit of -1 s"),
        (("--workers", "0"), "0 workers: at least 1 is needed"),
        (("--out", "file"), "file: is not a folder"),
        (("--seeds", "x"), "--seeds 'x' is not a list of numbers"),
        (("--visual", "V9"), "no visual probe 'V9'"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_a_dry_run_refuses_at_once_what_the_run_would_refuse(
    options: tuple[str, ...], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").touch()
    given = ("run", "--policy", "persist", "--cases", SUITE, "--out", "out", *options)
    run, dry = conflictvla(*given), conflictvla(*given, "--dry-run")
    assert message in run.stderr
    assert dry == run
    assert (run.returncode, run.stdout) == (2, "")
    assert [*tmp_path.iterdir()] == [tmp_path / "file"]


def test_a_dry_run_runs_nothing_that_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    done = conflictvla("run", "--policy", "refuse", "--cases", SUITE, "--dry-run", "--json", "--out", "out")
    assert done.returncode == 0, done.stderr
    (found,) = map(json.loads, done.stdout.splitlines())
    assert [(count["arm"], count["prompt"]) for count in found["counts"]] == [
        ("reference", "P0"),
        ("conflict", "P0"),
        ("reference", "P1"),
        ("conflict", "P1"),
    ]
    assert found["rollouts"] == sum(count["rollouts"] for count in found["counts"])
    assert found["hours"] > 0
    assert list(tmp_path.iterdir()) == []


def test_where_the_policy_cannot_be_measured_the_reason_is_given_and_the_rest_is_known(tmp_path: Path) -> None:
    spec = "openpi://localhost:1?wait_s=1"
    done = conflictvla("run", "--policy", spec, "--cases", SUITE, "--dry-run", "--out", tmp_path / "out")
    assert done.returncode == 0, done.stderr
    assert "hours unknown, since the policy could not be measured here: ws://localhost:1" in done.stdout
    assert "GB on disk" in done.stdout


def test_a_policy_that_does_not_exist_is_wrong_usage_all_the_same(tmp_path: Path) -> None:
    done = conflictvla("run", "--policy", "persit", "--dry-run", "--out", tmp_path / "out")
    assert (done.returncode, "did you mean 'persist'?" in done.stderr) == (2, True)
