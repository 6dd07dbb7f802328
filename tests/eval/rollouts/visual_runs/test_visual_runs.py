"""Runs under visual probes: only policies that look are touched, pairs see alike, and pictures can be made again."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from conflictvla.builders.rollouts.schema import FRAME_FEATURES
from conflictvla.builders.rollouts.sim_states import read_sim_states
from conflictvla.builders.tasks_dataset.reading import load_instances
from conflictvla.eval.recordings.reading import read_rollouts
from conflictvla.eval.recordings.rollout_set import RolloutSet
from conflictvla.eval.rollouts.executors.in_process import InProcess
from conflictvla.eval.rollouts.executors.processes import Processes
from conflictvla.eval.rollouts.replay import replay_rollouts
from conflictvla.eval.rollouts.run import Run, RunProgress, run_policy, with_references
from conflictvla.eval.scores.scores import score_rollouts
from conflictvla.toolkit.errors import InvalidInputError
from conflictvla.toolkit.libero.base_tasks import base_task
from conflictvla.toolkit.records import Arm, Instance, Prompt, VisualNoise, VisualProbe
from conflictvla.toolkit.simulation.pictures.rendering import camera_of
from conflictvla.toolkit.simulation.scene import Scene
from conflictvla.toolkit.simulation.scene_pool import ScenePool

from ...rendered_frames import render_frames
from .colour_follower import CAMERAS, CHUNK, SIZE, ColourFollower

HERE = Path(__file__).parent
TASK = "turn_on_the_stove"
HORIZON = 2 * CHUNK
ARMS = (Arm.REFERENCE, Arm.CONFLICT)
PROBES = (VisualProbe.V0, VisualProbe.V1, VisualProbe.V4)


@pytest.fixture(scope="module")
def pool() -> ScenePool:
    return ScenePool(capacity=4)


@pytest.fixture(scope="module")
def chosen() -> tuple[Instance, ...]:
    """A case and its reference, cut to a few steps."""
    instances = load_instances()
    case = next(i for i in instances if i.base_task == TASK and i.arm is Arm.CONFLICT and i.prompt == Prompt.P0)
    return tuple(dataclasses.replace(i, horizon=HORIZON) for i in with_references([case], instances))


def run(
    policy: Any,
    chosen: Sequence[Instance],
    out: Path,
    executor: Any,
    probes: Sequence[VisualProbe] = PROBES,
    **how: Any,
) -> Run:
    return run_policy(policy, chosen, out, init_states=[0], visual_probes=probes, executor=executor, **how)


def episodes_of(rollouts: RolloutSet) -> dict[tuple[str, str], tuple[int, dict[str, Any]]]:
    """Row and episode of each rollout, by arm and visual probe."""
    return {(e["arm"], e["visual_probe"]): (row, e) for row, e in enumerate(rollouts.episodes.to_pylist())}


@pytest.fixture(scope="module")
def seeing(
    pool: ScenePool, chosen: tuple[Instance, ...], tmp_path_factory: pytest.TempPathFactory
) -> tuple[Path, ColourFollower]:
    try:
        camera_of(pool.scene("libero_goal", TASK), SIZE)
    except InvalidInputError as error:
        pytest.skip(str(error))
    policy = ColourFollower()
    finished = run(policy, chosen, tmp_path_factory.mktemp("seeing"), InProcess(pool))
    assert finished.dataset is not None
    return finished.dataset, policy


def test_a_policy_that_looks_acts_differently_under_every_probe(seeing: tuple[Path, ColourFollower]) -> None:
    rollouts = read_rollouts(seeing[0], tuple(FRAME_FEATURES))
    at = episodes_of(rollouts)
    actions = [rollouts.rollout_feature("action", at["reference", probe][0]) for probe in PROBES]
    for one, other in ((0, 1), (1, 2), (0, 2)):
        assert np.abs(actions[one] - actions[other]).max() > 0.05


def test_a_state_based_agent_is_flat_over_all_levels(
    pool: ScenePool, chosen: tuple[Instance, ...], tmp_path: Path
) -> None:
    dataset = run("persist", chosen, tmp_path, InProcess(pool), tuple(VisualProbe)).dataset
    assert dataset is not None
    rollouts = read_rollouts(dataset, tuple(FRAME_FEATURES))
    at = episodes_of(rollouts)
    assert len(at) == 2 * len(VisualProbe)
    for arm in ARMS:
        rows = [at[arm, probe][0] for probe in VisualProbe]
        states = read_sim_states(dataset, rows)
        for row in rows[1:]:
            np.testing.assert_array_equal(states[row], states[rows[0]])
            for name in FRAME_FEATURES:
                first = rollouts.rollout_feature(name, rows[0])
                np.testing.assert_array_equal(rollouts.rollout_feature(name, row), first)


def test_a_reference_and_its_conflict_see_the_same_perturbation(seeing: tuple[Path, ColourFollower]) -> None:
    dataset, policy = seeing
    at = episodes_of(read_rollouts(dataset, ("action",)))
    for probe in PROBES:
        assert at["reference", probe][1]["visual_settings"] == at["conflict", probe][1]["visual_settings"]
    assert at["reference", "V0"][1]["visual_settings"] == "{}"
    assert at["reference", "V4"][1]["rollout_id"].endswith("/init0/seed0/V4")
    first, second = ((views for (who, step), views in policy.seen.items() if step == 0 and arm in who) for arm in ARMS)
    for reference, conflict in zip(first, second, strict=True):
        for camera in CAMERAS:
            np.testing.assert_array_equal(reference[camera], conflict[camera])


def test_what_a_policy_saw_is_rendered_again_to_the_last_pixel(seeing: tuple[Path, ColourFollower]) -> None:
    dataset, policy = seeing
    rollout_id = episodes_of(read_rollouts(dataset, ("action",)))["conflict", "V4"][1]["rollout_id"]
    steps = [0, CHUNK]
    name = f"{2 * len(PROBES)} conflict/0"  # the last of the jobs
    for camera in CAMERAS:
        again = render_frames(dataset, rollout_id, camera=camera, size=SIZE, steps=steps)
        np.testing.assert_array_equal(again, np.stack([policy.seen[name, step][camera] for step in steps]))


def test_rollouts_under_probes_replay_exactly_and_pair_with_their_own_kind(
    seeing: tuple[Path, ColourFollower], pool: ScenePool
) -> None:
    dataset, _ = seeing
    assert [check.difference for check in replay_rollouts(dataset, scenes=pool)] == [None] * 6
    scores = score_rollouts([read_rollouts(dataset)])
    assert (scores.pairs.num_rows, scores.probed.num_rows, len(scores.refusals)) == (1, 2, 0)
    assert scores.probed["visual_probe"].to_pylist() == ["V1", "V4"]


def test_an_interrupted_run_goes_on_under_its_probes_and_no_other_noise(
    pool: ScenePool, chosen: tuple[Instance, ...], tmp_path: Path
) -> None:
    done: list[VisualProbe] = []
    again: list[int] = []

    def stop(state: RunProgress) -> None:
        if state.job is not None:
            done.append(state.job.visual_probe)
        if len(done) == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run("persist", chosen, tmp_path, InProcess(pool), progress=stop)
    assert done == [*PROBES]
    with pytest.raises(InvalidInputError, match=r"was run with other visual_noise \(gaussian there"):
        run("persist", chosen, tmp_path, InProcess(pool), visual_noise=VisualNoise.SALT_PEPPER)
    finished = run("persist", chosen, tmp_path, InProcess(pool), progress=lambda state: again.append(state.done))
    assert finished.rollouts == 2 * len(PROBES)
    assert again == [3, 4, 5, 6]


def test_another_process_receives_the_probes(chosen: tuple[Instance, ...], pool: ScenePool, tmp_path: Path) -> None:
    found = []
    for executor in (InProcess(pool), Processes(1)):
        dataset = run("refuse", chosen[:1], tmp_path / type(executor).__name__, executor).dataset
        assert dataset is not None
        found.append(read_rollouts(dataset, ("action",)).episodes.to_pylist())
    assert found[0] == found[1]
    assert [episode["visual_probe"] for episode in found[0]] == [*PROBES]


def test_another_process_sees_the_same(
    seeing: tuple[Path, ColourFollower], chosen: tuple[Instance, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(HERE))
    monkeypatch.setenv("PYTHONPATH", str(HERE))
    dataset = run("colour_follower:ColourFollower", chosen, tmp_path, Processes(1)).dataset
    assert dataset is not None
    here, there = (next((folder / "data").rglob("*.parquet")).read_bytes() for folder in (seeing[0], dataset))
    assert here == there


def test_salt_and_pepper_is_recorded(pool: ScenePool, chosen: tuple[Instance, ...], tmp_path: Path) -> None:
    noise = VisualNoise.SALT_PEPPER
    finished = run("refuse", chosen[:1], tmp_path, InProcess(pool), (VisualProbe.V4,), visual_noise=noise)
    assert finished.dataset is not None
    (episode,) = read_rollouts(finished.dataset, ("action",)).episodes.to_pylist()
    assert json.loads(episode["visual_settings"])["noise"] == "salt_pepper"


def test_a_scene_and_its_hash_are_the_same_under_every_probe(pool: ScenePool) -> None:
    assert pool.scene("libero_goal", TASK).scene_sha256 == Scene(base_task("libero_goal", TASK)).scene_sha256
