"""Recorded actions, executed again, give what was recorded; anything else is reported."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from conflictvla.builders.tasks_dataset.reading import load_instances
from conflictvla.eval.rollouts.executors.in_process import InProcess
from conflictvla.eval.rollouts.replay import draw_sample, replay_rollouts
from conflictvla.eval.rollouts.run import run_policy, with_references
from conflictvla.toolkit.errors import DatasetError, InvalidInputError
from conflictvla.toolkit.records import Arm
from conflictvla.toolkit.simulation.scene_pool import ScenePool

Tamper = Callable[[str, str, Callable[[pa.ChunkedArray], pa.Array]], Path]


@pytest.fixture(scope="module")
def scenes() -> ScenePool:
    return ScenePool(capacity=4)


@pytest.fixture(scope="module")
def recorded(scenes: ScenePool, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A reference that succeeds and a conflict in which the agent holds still."""
    instances = load_instances()
    conflict = next(i for i in instances if i.arm is Arm.CONFLICT and i.base_task == "turn_on_the_stove")
    chosen = with_references([conflict], instances)
    run = run_policy("refuse", chosen, tmp_path_factory.mktemp("out"), init_states=[1], executor=InProcess(scenes))
    assert run.dataset is not None
    return run.dataset


@pytest.fixture
def tampered(recorded: Path, tmp_path: Path) -> Tamper:
    """A function that changes a column of the recorded dataset's episodes or frames, in a copy."""

    def tamper(part: str, column: str, change: Callable[[pa.ChunkedArray], pa.Array]) -> Path:
        copy = tmp_path / "copy"
        shutil.copytree(recorded, copy)
        (file,) = (copy / part).rglob("*.parquet")
        table = pq.read_table(file)
        index = table.column_names.index(column)
        pq.write_table(table.set_column(index, table.schema.field(column), change(table[column])), file)
        return copy

    return tamper


def test_an_honest_recording_replays_to_the_last_bit(recorded: Path, scenes: ScenePool) -> None:
    checks = replay_rollouts(recorded, scenes=scenes)
    assert [check.difference for check in checks] == [None, None]
    assert [check.largest for check in checks] == [0.0, 0.0]


def test_a_changed_action_is_noticed_where_it_first_shows(tampered: Tamper, scenes: ScenePool) -> None:
    def push(actions: pa.ChunkedArray) -> pa.Array:
        values = np.array(actions.combine_chunks().flatten()).reshape(-1, 7)
        values[10, 0] = 1.0
        return pa.FixedSizeListArray.from_arrays(pa.array(values.ravel(), pa.float32()), 7)

    checks = replay_rollouts(tampered("data", "action", push), scenes=scenes)
    assert checks[0].difference is not None
    assert "at step 11 is off by" in checks[0].difference
    assert checks[1].difference is None


def test_a_small_enough_difference_is_within_the_tolerance(tampered: Tamper, scenes: ScenePool) -> None:
    def nudge(positions: pa.ChunkedArray) -> pa.Array:
        values = np.array(positions.combine_chunks().flatten()).reshape(-1, 3)
        values[5, 1] += 0.001
        return pa.FixedSizeListArray.from_arrays(pa.array(values.ravel(), pa.float32()), 3)

    folder = tampered("data", "observation.eef_pos_m", nudge)
    (strict, _) = replay_rollouts(folder, scenes=scenes)
    assert strict.difference == "observation.eef_pos_m at step 5 is off by 0.001"
    (loose, _) = replay_rollouts(folder, scenes=scenes, tolerance=0.01)
    assert loose.difference is None
    assert loose.largest == pytest.approx(0.001, rel=1e-3)


def test_another_scene_is_not_replayed(tampered: Tamper, scenes: ScenePool) -> None:
    folder = tampered("meta/episodes", "scene_sha256", lambda column: pa.array(["f" * 64] * len(column)))
    for check in replay_rollouts(folder, scenes=scenes):
        assert check.difference is not None
        assert "ffffffffffff as recorded" in check.difference


def test_a_goal_claimed_but_not_reached_is_noticed(tampered: Tamper, scenes: ScenePool) -> None:
    folder = tampered("meta/episodes", "success", lambda column: pa.array([True] * len(column)))
    table = pq.read_table(next((folder / "meta/episodes").rglob("*.parquet")))
    steps = table["length"].to_pylist()
    for column, values in (("success_step", pa.array(steps, pa.int32())), ("end", pa.array(["success"] * 2))):
        table = table.set_column(table.column_names.index(column), column, values)
    pq.write_table(table, next((folder / "meta/episodes").rglob("*.parquet")))
    (honest, forged) = replay_rollouts(folder, scenes=scenes)
    assert honest.difference is None
    assert forged.difference == "success is recorded as True, but the goal is not reached after 300 actions"


def test_a_sample_is_drawn_by_its_seed(recorded: Path, scenes: ScenePool) -> None:
    draws = [draw_sample(2, 1, seed) for seed in range(6)]
    assert draws == [draw_sample(2, 1, seed) for seed in range(6)]
    assert [0] in draws
    assert [1] in draws
    assert draw_sample(2, 5, 0) == [0, 1]
    seed = draws.index([0])
    (check,) = replay_rollouts(recorded, sample=1, seed=seed, scenes=scenes)
    assert "/reference/" in check.rollout_id


def test_wrong_use_is_named(recorded: Path, tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match="at least 1"):
        replay_rollouts(recorded, sample=0)
    with pytest.raises(DatasetError):
        replay_rollouts(tmp_path / "nowhere")
