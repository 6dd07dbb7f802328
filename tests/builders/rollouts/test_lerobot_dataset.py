"""Recorded rollouts become a dataset that LeRobot's own reader loads."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from conflictvla.builders.rollouts.episode_record import EPISODE_COLUMNS
from conflictvla.builders.rollouts.lerobot_dataset import write_lerobot_dataset
from conflictvla.builders.rollouts.schema import FRAME_FEATURES, Rollout
from conflictvla.builders.rollouts.shards import read_shard, shard_path, write_shard
from conflictvla.builders.rollouts.sim_states import read_sim_states
from conflictvla.eval.recordings.reading import read_rollouts
from conflictvla.toolkit.errors import DatasetError, InvalidInputError

from ...eval.synthetic_rollouts import make_record

Shards = Callable[..., list[Path]]


@pytest.fixture
def shards(tmp_path: Path) -> Shards:
    """A function that writes made-up rollouts of the given lengths as shards."""

    def write(*lengths: int) -> list[Path]:
        rollouts = [_rollout(number, length) for number, length in enumerate(lengths)]
        return [write_shard(rollout, tmp_path / "shards") for rollout in rollouts]

    return write


def _rollout(number: int, length: int) -> Rollout:
    generator = np.random.default_rng(number)
    frames = {
        name: generator.uniform(-1.0, 1.0, (length, width)).astype(np.float32)
        for name, (width, _) in FRAME_FEATURES.items()
    }
    episode = make_record(rollout_id=f"agent/case{number}/init0/seed0", final_eef_pos_m=(0.5, 0.25, 1.0))
    return Rollout(episode=episode, frames=frames, sim_states=generator.normal(size=(length + 1, 11 + number)))


def test_a_shard_gives_back_what_was_written(shards: Shards) -> None:
    (path,) = shards(5)
    rollout = read_shard(path)
    assert rollout.episode == _rollout(0, 5).episode
    for name, values in _rollout(0, 5).frames.items():
        np.testing.assert_array_equal(rollout.frames[name], values)
    np.testing.assert_array_equal(rollout.sim_states, _rollout(0, 5).sim_states)


def test_lerobots_own_reader_loads_every_frame_and_every_episode_column(shards: Shards, tmp_path: Path) -> None:
    from lerobot.datasets.lerobot_dataset import LeRobotDataset

    out = tmp_path / "rollouts"
    write_lerobot_dataset(shards(5, 3), out, repo_id="conflictvla/rollouts-agent")
    dataset = LeRobotDataset("conflictvla/rollouts-agent", root=out)
    assert (dataset.num_episodes, dataset.num_frames, dataset.fps) == (2, 8, 20)
    for name, values in _rollout(1, 3).frames.items():
        np.testing.assert_array_equal(np.stack([dataset[i][name].numpy() for i in range(5, 8)]), values)
    assert dataset[0]["task"] == _rollout(0, 5).episode.prompt_text
    assert set(EPISODE_COLUMNS) <= set(dataset.meta.episodes.column_names)
    assert dataset.meta.episodes["rollout_id"] == ["agent/case0/init0/seed0", "agent/case1/init0/seed0"]
    assert dataset.meta.episodes["success"] == [False, False]


def test_the_scorers_reader_sees_the_same_frames(shards: Shards, tmp_path: Path) -> None:
    out = tmp_path / "rollouts"
    write_lerobot_dataset(shards(5, 3), out, repo_id="conflictvla/rollouts-agent")
    rollouts = read_rollouts(out)
    assert rollouts.episodes["rollout_id"].to_pylist() == ["agent/case0/init0/seed0", "agent/case1/init0/seed0"]


def test_the_simulators_states_lie_beside_the_frames(shards: Shards, tmp_path: Path) -> None:
    out = tmp_path / "rollouts"
    write_lerobot_dataset(shards(5, 3), out, repo_id="conflictvla/rollouts-agent")
    states = read_sim_states(out, [1, 0])
    for number, length in ((0, 5), (1, 3)):
        np.testing.assert_array_equal(states[number], _rollout(number, length).sim_states)
    with pytest.raises(DatasetError, match="no states of episode 2"):
        read_sim_states(out, [2])


def test_the_same_shards_give_the_same_bytes(shards: Shards, tmp_path: Path) -> None:
    paths = shards(4, 6)
    for name in ("first", "second"):
        write_lerobot_dataset(paths, tmp_path / name / "set", repo_id="conflictvla/x")
    files = sorted(path.relative_to(tmp_path / "first") for path in (tmp_path / "first").rglob("*") if path.is_file())
    assert files
    for file in files:
        assert (tmp_path / "first" / file).read_bytes() == (tmp_path / "second" / file).read_bytes(), file


def test_a_damaged_shard_is_named_and_leaves_no_half_dataset(shards: Shards, tmp_path: Path) -> None:
    paths = shards(5, 3)
    paths[1].write_bytes(paths[1].read_bytes()[:-20])
    with pytest.raises(DatasetError, match=paths[1].name.replace("+", r"\+")):
        write_lerobot_dataset(paths, tmp_path / "out" / "set", repo_id="conflictvla/x")
    assert list((tmp_path / "out").iterdir()) == []


def test_an_existing_dataset_is_not_overwritten(shards: Shards, tmp_path: Path) -> None:
    out = tmp_path / "rollouts"
    out.mkdir()
    with pytest.raises(InvalidInputError, match="exists already"):
        write_lerobot_dataset(shards(2), out, repo_id="conflictvla/x")


def test_a_dataset_without_rollouts_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match="no rollouts"):
        write_lerobot_dataset([], tmp_path / "set", repo_id="conflictvla/x")


def test_an_unwritable_folder_is_one_clear_error(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("not a folder")
    with pytest.raises(InvalidInputError, match=r"cannot be written \(Not a directory\); make room"):
        write_shard(_rollout(0, 2), blocked / "shards")


def test_a_shard_is_a_plain_parquet_file(shards: Shards, tmp_path: Path) -> None:
    (path,) = shards(4)
    assert path == shard_path(tmp_path / "shards", "agent/case0/init0/seed0")
    assert pq.read_table(path).num_rows == 4
    assert [file.name for file in path.parent.iterdir()] == [path.name]
