"""Scoring opens every file of rollouts once, and finds the same damage first as if it read all episodes anew."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from conflictvla.eval.recordings.sources import packaged_rollouts
from conflictvla.eval.scores.scores import score
from conflictvla.toolkit.errors import DatasetError
from conflictvla.toolkit.records import Prompt

from ..synthetic_rollouts import small_evaluation, write_dataset
from .opened_files import counted_openings, needs_inotify
from .test_sources import damage, plain_npz


def files_of(folder: Path) -> list[Path]:
    return [file for file in sorted(folder.rglob("*")) if file.is_file()]


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """Two policies' datasets, and a third with the second half of the first policy's."""
    first = small_evaluation("persist", prompts=[Prompt.P0])
    write_dataset(tmp_path / "run/a", first[:15])
    write_dataset(tmp_path / "run/b", small_evaluation("stop", prompts=[Prompt.P0]))
    write_dataset(tmp_path / "run/c", first[15:])
    return tmp_path / "run"


@needs_inotify
@pytest.mark.parametrize("partial", [False, True])
def test_scoring_opens_each_file_once(run: Path, *, partial: bool) -> None:
    files = files_of(run)
    with counted_openings(files) as openings:
        assert len(score(run, partial=partial).policies) == 2
    assert openings == dict.fromkeys(files, 1)


@needs_inotify
def test_scoring_opens_defective_and_plain_files_once(tmp_path: Path) -> None:
    lerobot = write_dataset(tmp_path / "lerobot", small_evaluation(prompts=[Prompt.P0]), episodes_a_file=10)
    plain = plain_npz(lerobot, tmp_path / "plain")
    damage(lerobot)
    for folder in (lerobot, plain):
        files = files_of(folder)
        with counted_openings(files) as openings:
            score(folder, partial=True)
        assert openings == dict.fromkeys(files, 1)


@needs_inotify
def test_the_packaged_rollouts_are_opened_once(tmp_path: Path) -> None:
    copy = Path(shutil.copytree(packaged_rollouts(), tmp_path / "packaged"))
    files = [file for file in files_of(copy) if {"data", "episodes"} & set(file.parts) or file.name == "info.json"]
    with counted_openings(files) as openings:
        score(copy)
    assert openings == dict.fromkeys(files, 1)


def test_damaged_episodes_of_any_policy_are_found_before_damaged_frames(run: Path) -> None:
    (data,) = (run / "a/data").rglob("*.parquet")
    data.write_bytes(data.read_bytes()[:1000])
    with pytest.raises(DatasetError, match=r"a/data/.*: not a complete parquet file"):
        score(run)
    (episodes,) = (run / "b/meta/episodes").rglob("*.parquet")
    episodes.write_bytes(episodes.read_bytes()[:1000])
    with pytest.raises(DatasetError, match=r"b/meta/episodes/.*: not a complete parquet file"):
        score(run)
