"""Any source: plain files with a manifest, other LeRobot sets, the Hub; and what becomes of defective episodes."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from conflictvla.builders.rollouts.schema import FRAME_FEATURES
from conflictvla.eval.recordings.reading import read_rollouts
from conflictvla.eval.recordings.sources import local_folder
from conflictvla.eval.scores.scores import score
from conflictvla.toolkit.errors import DatasetError, InvalidInputError
from conflictvla.toolkit.records import Prompt

from ..synthetic_rollouts import small_evaluation, write_dataset, write_parquet

EPISODES = "meta/episodes/chunk-000/file-000.parquet"
DATA = "data/chunk-000/file-000.parquet"
MANIFEST = {"manifest_version": "1.0", "control_hz": 20}


@pytest.fixture
def lerobot(tmp_path: Path) -> Path:
    return write_dataset(tmp_path / "lerobot", small_evaluation(prompts=[Prompt.P0]), episodes_a_file=10)


def write_manifest(folder: Path, **fields: Any) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "manifest.json").write_text(json.dumps({**MANIFEST, **fields}))
    return folder


def frames_of(lerobot: Path) -> pa.Table:
    return pa.concat_tables([pq.read_table(file) for file in sorted((lerobot / "data").glob("**/*.parquet"))])


def plain_parquet(lerobot: Path, folder: Path) -> Path:
    """Renamed columns, one column as a constant, and columns that nobody asked for."""
    frames, episodes = frames_of(lerobot), pq.read_table(lerobot / EPISODES)
    names = [{"action": "actions", "observation.eef_pos_m": "tcp"}.get(n, n) for n in frames.column_names]
    write_parquet(folder / "steps/a.parquet", frames.rename_columns(names).slice(0, 400))
    write_parquet(folder / "steps/b.parquet", frames.rename_columns(names).slice(400))
    write_parquet(folder / "episodes.parquet", episodes.drop_columns(["policy_name"]))
    return write_manifest(
        folder,
        episodes="episodes.parquet",
        frames="steps/*.parquet",
        columns={"action": "actions", "observation.eef_pos_m": "tcp"},
        constants={"policy_name": "persist"},
    )


def plain_npz(lerobot: Path, folder: Path) -> Path:
    frames, episodes = frames_of(lerobot), pq.read_table(lerobot / EPISODES)
    folder.mkdir()
    arrays = {name: np.stack(frames[name].to_numpy()) for name in FRAME_FEATURES}
    for part, rows in (("a", slice(0, 400)), ("b", slice(400, None))):
        numbers = {name: frames[name].to_numpy()[rows] for name in ("episode_index", "frame_index")}
        cut: dict[str, Any] = {**numbers, **{name: array[rows] for name, array in arrays.items()}}
        np.savez(folder / f"{part}.npz", **cut)
    lines = [json.dumps(row) for row in episodes.to_pylist()]
    (folder / "episodes.jsonl").write_text("\n".join(lines) + "\n")
    return write_manifest(folder, episodes=["episodes.jsonl"], frames=["a.npz", "b.npz"])


@pytest.mark.parametrize("write", [plain_parquet, plain_npz])
def test_plain_files_give_the_same_scores(lerobot: Path, tmp_path: Path, write: Any) -> None:
    folder = write(lerobot, tmp_path / "plain")
    assert score(folder, supplementary=True).to_json() == score(lerobot, supplementary=True).to_json()


def test_a_lerobot_set_with_other_names_is_scored_with_a_manifest_beside_it(lerobot: Path) -> None:
    expected = score(lerobot).to_json()
    for file in (lerobot / "data").glob("**/*.parquet"):
        table = pq.read_table(file)
        write_parquet(file, table.rename_columns([n.replace("eef_pos_m", "ee") for n in table.column_names]))
    with pytest.raises(DatasetError, match=r"column 'observation\.eef_pos_m' is missing"):
        score(lerobot)
    places = {"episodes": "meta/episodes/**/*.parquet", "frames": "data/**/*.parquet"}
    write_manifest(lerobot, **places, columns={"observation.eef_pos_m": "observation.ee"})
    assert score(lerobot).to_json() == expected


def test_features_that_no_measure_needs_may_be_missing(lerobot: Path) -> None:
    expected = score(lerobot).to_json()
    for file in (lerobot / "data").glob("**/*.parquet"):
        table = pq.read_table(file)
        write_parquet(file, table.drop_columns(["observation.state", "observation.joint_pos_rad"]))
    assert score(lerobot).to_json() == expected
    change = score(lerobot, supplementary=True).trajectories
    assert change is not None
    assert np.isnan(change["joint_path_rad"].to_numpy()).all()
    assert np.isfinite(change["cartesian_path_m"].to_numpy()).all()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"frames": None}, "field 'frames' is None, not a path"),
        ({"frames": "../elsewhere/*.npz"}, "paths stay within the dataset's folder"),
        ({"episodes": "/etc/passwd"}, "paths stay within the dataset's folder"),
        ({"episodes": "nothing.parquet"}, "nothing.parquet: holds no file"),
        ({"control_hz": 10}, "control_hz is 10, but the protocol's control rate is 20"),
        ({"manifest_version": "2"}, "manifest_version is '2', this version reads '1.0'"),
        ({"columns": {"acton": "a"}}, "'columns' has 'acton', which is no column of ours"),
        ({"colums": {}}, "field 'colums' is not known"),
        ({"constants": {"seed": "x"}}, "column 'seed' is 'x', not int64"),
        ({"frames": "episodes.jsonl"}, "frames are read from .parquet and .npz files"),
    ],
)
def test_a_manifest_that_cannot_be_used(lerobot: Path, tmp_path: Path, change: dict[str, Any], message: str) -> None:
    folder = plain_npz(lerobot, tmp_path / "plain")
    file = folder / "manifest.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), **change}))
    with pytest.raises(DatasetError) as caught:
        score(folder)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_manifest_without_a_field(tmp_path: Path) -> None:
    with pytest.raises(DatasetError, match=r"manifest\.json: field 'episodes' is missing"):
        score(write_manifest(tmp_path, frames="a.npz"))


def test_pickled_objects_are_not_loaded(lerobot: Path, tmp_path: Path) -> None:
    folder = plain_npz(lerobot, tmp_path / "plain")
    with np.load(folder / "a.npz") as archive:
        arrays = dict(archive)
    arrays["action"] = np.array([object()] * len(arrays["action"]))
    np.savez(folder / "a.npz", **arrays)
    with pytest.raises(DatasetError, match=r"a\.npz: array 'action' is unreadable .*allow_pickle"):
        score(folder)


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("action", np.zeros((3, 7)), "array 'action' is float64 of shape"),
        ("frame_index", np.zeros(400), "array 'frame_index' is float64"),
    ],
)
def test_npz_arrays_of_another_shape_or_kind(
    lerobot: Path, tmp_path: Path, name: str, value: np.ndarray[Any, Any], message: str
) -> None:
    folder = plain_npz(lerobot, tmp_path / "plain")
    with np.load(folder / "a.npz") as archive:
        arrays = dict(archive)
    np.savez(folder / "a.npz", **{**arrays, name: value})
    with pytest.raises(DatasetError, match=message):
        score(folder)


def damage(lerobot: Path) -> None:
    """Five episodes with a defect each: two of their rows, two of their frames, one without frames in order."""
    episodes = pq.read_table(lerobot / EPISODES).to_pylist()
    schema = pq.read_schema(lerobot / EPISODES)
    episodes[1]["prompt_sha256"] = "00"
    episodes[2]["arm"] = "base"
    episodes[3]["length"] += 1
    write_parquet(lerobot / EPISODES, pa.Table.from_pylist(episodes, schema=schema))
    frames = pq.read_table(lerobot / DATA)
    rows = frames.to_pylist()
    at = {number: next(k for k, row in enumerate(rows) if row["episode_index"] == number) for number in (4, 6)}
    rows[at[4] + 3]["action"] = [1.5, float("nan"), *[0.0] * 5]
    rows[at[6] + 2]["frame_index"] = 7
    write_parquet(lerobot / DATA, pa.Table.from_pylist(rows, schema=frames.schema))


def test_partial_leaves_defective_episodes_out_and_says_why(lerobot: Path) -> None:
    damage(lerobot)
    with pytest.raises(DatasetError):
        score(lerobot)
    found = score(lerobot, partial=True)
    assert found.left_out_by_field() == {"action": 1, "arm": 1, "frame_index": 1, "length": 1, "prompt_sha256": 1}
    assert {defect.episode.split()[0] for defect in found.left_out} == {"1", "2", "3", "4", "6"}
    for defect in found.left_out:
        assert defect.file.startswith(str(lerobot))
        assert defect.field in defect.message
        assert f"episode {defect.episode.split()[0]}" in defect.message
    assert found.provenance.rollouts == 30 - 5
    assert json.loads(found.to_json())["left_out_by_field"] == found.left_out_by_field()


def test_what_is_left_is_scored_as_if_the_rest_had_never_been_there(lerobot: Path, tmp_path: Path) -> None:
    rollouts = small_evaluation(prompts=[Prompt.P0])
    kept = [rollout for number, rollout in enumerate(rollouts) if number not in (1, 2, 3, 4, 6)]
    expected = score(write_dataset(tmp_path / "kept", kept))
    damage(lerobot)
    found = score(lerobot, partial=True)
    assert found.pairs.equals(expected.pairs)
    assert found.provenance == expected.provenance


def test_an_unreadable_file_costs_its_episodes_and_no_others(lerobot: Path) -> None:
    file = lerobot / "data/chunk-000/file-001.parquet"
    file.write_bytes(file.read_bytes()[:1000])
    found = score(lerobot, partial=True)
    fields = found.left_out_by_field()
    # The file itself, ten episodes without frames, and the total that no longer fits.
    assert fields == {"episode_index": 10, "file": 1, "total_frames": 1}
    assert found.provenance.rollouts == 20


def test_frames_torn_apart_cost_their_episode(lerobot: Path) -> None:
    table = pq.read_table(lerobot / DATA)
    order = [*range(40, 60), *range(40), *range(60, table.num_rows)]
    write_parquet(lerobot / DATA, table.take(order))
    found = read_rollouts(lerobot, partial=True)
    assert [defect.field for defect in found.left_out] == ["episode_index"]
    assert len(found) == 29


def test_a_dataset_with_nothing_but_defects_is_refused(lerobot: Path) -> None:
    table = pq.read_table(lerobot / EPISODES)
    index = table.column_names.index("arm")
    write_parquet(lerobot / EPISODES, table.set_column(index, "arm", pa.array(["base"] * table.num_rows)))
    with pytest.raises(DatasetError, match=r"no episode is without defect, the first: .* 'base' is none of"):
        score(lerobot, partial=True)


def test_a_hub_address_that_is_none() -> None:
    with pytest.raises(InvalidInputError, match="is no address on the Hub: write it like hf://OWNER/NAME@REVISION"):
        local_folder("hf://nobody")


def offline(code: str, cache: Path) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "HF_HUB_OFFLINE": "1", "HF_HUB_CACHE": str(cache)}
    return subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False)


def test_a_dataset_in_the_hubs_cache_is_scored_offline_at_its_revision(lerobot: Path, tmp_path: Path) -> None:
    cache, commit = tmp_path / "cache", "0123456789abcdef0123456789abcdef01234567"
    folder = cache / "datasets--someone--rollouts"
    shutil.copytree(lerobot, folder / "snapshots" / commit)
    (folder / "refs").mkdir()
    (folder / "refs/main").write_text(commit)
    addresses = ["hf://someone/rollouts", f"hf://datasets/someone/rollouts@{commit}", "hf://someone/rollouts@main"]
    done = offline(f"import conflictvla; print([conflictvla.score(a).pairs.num_rows for a in {addresses}])", cache)
    assert done.stdout.strip() == "[24, 24, 24]", done.stderr


def test_offline_without_a_copy_is_one_clear_line(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "conflictvla.cli", "score", "hf://someone/rollouts@v1"]
    environment = {**os.environ, "HF_HUB_OFFLINE": "1", "HF_HUB_CACHE": str(tmp_path)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr.strip() == (
        "error: hf://someone/rollouts@v1: the Hub cannot be reached and this revision is not in its cache here: "
        "go online once, or give the folder of a copy"
    )
