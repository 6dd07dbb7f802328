"""Releases reach a Hub over a real socket, and the field's own clients load them from there."""

from __future__ import annotations

import json
import math
import shutil
import subprocess
from dataclasses import asdict, replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from datasets import load_dataset
from huggingface_hub import HfApi, hf_hub_download, snapshot_download, try_to_load_from_cache

from conflictvla.builders.probes.instances import PROBES_VERSION
from conflictvla.builders.tasks_dataset.reading import packaged_tasks
from conflictvla.eval.leaderboard.app import Board
from conflictvla.eval.recordings.reading import read_rollouts
from conflictvla.eval.recordings.sources import packaged_rollouts
from conflictvla.eval.recordings.video_files import RENDERED
from conflictvla.eval.scores.scores import score
from conflictvla.eval.statistics.intervals import Interval
from conflictvla.eval.submissions.publish import plan_publication
from conflictvla.eval.submissions.results_file import read_result, read_results, result_json
from conflictvla.toolkit.errors import InvalidInputError
from conflictvla.toolkit.prompts import prompt_sha256
from conflictvla.toolkit.records import Arm

from ...hub.hub_server import Hub
from ..in_process import Done, conflictvla
from ..leaderboard.made_up_results import write_board
from ..synthetic_rollouts import small_evaluation, with_controls, write_dataset

UNDEFINED = Interval(value=math.nan, low=math.nan, high=math.nan)
VERSION = PROBES_VERSION


@pytest.fixture(autouse=True)
def ann(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_TOKEN", "hf_ann")


@pytest.fixture
def tasks(tmp_path: Path) -> Path:
    return Path(shutil.copytree(packaged_tasks(), tmp_path / "tasks"))


@pytest.fixture(scope="module")
def rollouts() -> Path:
    return packaged_rollouts() / "persist"


PAIR = "libero_goal/put_the_bowl_on_the_plate/reference/P0"
"""The reference of the first rollouts of ``small_evaluation``."""


def card_of(folder: Path) -> str:
    """The card with which a folder would be published."""
    files = plan_publication(folder, repo_id="ann/x", version="1.0.0").files
    content = next(file.content for file in files if file.path == "README.md")
    assert isinstance(content, bytes)
    return content.decode()


def publish(folder: Path, repo_id: str, *options: str, version: str = VERSION) -> Done:
    return conflictvla("publish", folder, "--repo-id", repo_id, "--version", version, *options)


def test_published_tasks_load_at_their_version(hub: Hub, tasks: Path) -> None:
    done = publish(tasks, "ann/tasks")
    assert (done.returncode, done.stderr) == (0, "")
    for config, rows in (("instances", 2826), ("cases", 1413), ("references", 80), ("probes", 10008)):
        loaded = load_dataset("ann/tasks", config, revision=VERSION, split="test")
        assert loaded.num_rows == rows
        assert loaded.data.table.equals(pq.read_table(tasks / config / "test.parquet"))
    assert hub.unknown == []


def test_the_card_says_licence_version_and_how_to_cite(hub: Hub, tasks: Path) -> None:
    publish(tasks, "ann/carded")
    card = Path(hf_hub_download("ann/carded", "README.md", repo_type="dataset", revision=VERSION)).read_text()
    assert card.startswith("---\nlicense: apache-2.0\n")
    assert f"Version {VERSION} of `ann/carded`" in card
    assert "@misc{conflictvla," in card


def test_the_checksums_fit_what_is_downloaded(hub: Hub, tasks: Path) -> None:
    publish(tasks, "ann/summed")
    copy = snapshot_download("ann/summed", repo_type="dataset", revision=VERSION)
    checked = subprocess.run(["sha256sum", "-c", "SHA256SUMS"], cwd=copy, capture_output=True, text=True, check=False)
    assert (checked.returncode, checked.stdout.count(": OK")) == (0, 5)


def test_published_rollouts_load_with_lerobot_and_score_alike(hub: Hub, rollouts: Path) -> None:
    assert publish(rollouts, "ann/rollouts", version="1.0.0").returncode == 0
    assert hub.store.repos["dataset", "ann/rollouts"].tags.keys() == {"1.0.0", "v3.0"}
    from lerobot.datasets.lerobot_dataset import LeRobotDataset

    loaded = LeRobotDataset("ann/rollouts")
    here = read_rollouts(rollouts)
    assert (loaded.num_episodes, loaded.num_frames) == (len(here), here.offsets[-1])
    assert loaded[5]["action"].tolist() == here.rollout_feature("action", 0)[5].tolist()
    assert loaded.meta.episodes["instruction"] == here.episodes["instruction"].to_pylist()
    assert score("hf://ann/rollouts@1.0.0").to_json() == score(rollouts).to_json()
    assert load_dataset("ann/rollouts", split="train", revision="1.0.0").num_rows == loaded.num_frames


def test_videos_travel_with_rollouts_and_whoever_scores_them_does_without(
    hub: Hub, rollouts: Path, tmp_path: Path
) -> None:
    with_videos = Path(shutil.copytree(rollouts, tmp_path / "rollouts"))
    (with_videos / RENDERED).mkdir()
    for name in ("reference", "conflict"):
        (with_videos / RENDERED / f"{name}.agentview.mp4").write_bytes(name.encode() * 1000)
    assert publish(with_videos, "ann/seen", version="1.0.0").returncode == 0
    card = Path(hf_hub_download("ann/seen", "README.md", repo_type="dataset", revision="1.0.0")).read_text()
    assert "`rendered` holds videos of 2 of them" in card
    assert score("hf://ann/seen@1.0.0").to_json() == score(rollouts).to_json()
    assert load_dataset("ann/seen", split="train", revision="1.0.0").num_rows > 0
    video = f"{RENDERED}/reference.agentview.mp4"
    assert try_to_load_from_cache("ann/seen", video, repo_type="dataset") is None
    assert hf_hub_download("ann/seen", video, repo_type="dataset")
    assert isinstance(try_to_load_from_cache("ann/seen", video, repo_type="dataset"), str)


def test_a_dry_run_lists_what_would_go_and_sends_nothing(hub: Hub, tasks: Path) -> None:
    done = publish(tasks, "ann/dry", "--dry-run")
    assert done.returncode == 0
    for file in ("README.md", "SHA256SUMS", "instances/test.parquet"):
        assert f"{file}\n" in done.stdout
    assert done.stdout.endswith("nothing was sent\n")
    listed = json.loads(publish(tasks, "ann/dry", "--dry-run", "--json").stdout)
    assert [file["path"] for file in listed["files"]] == sorted(file["path"] for file in listed["files"])
    assert ("dataset", "ann/dry") not in hub.store.repos


def test_a_released_version_is_never_overwritten(hub: Hub, rollouts: Path, tmp_path: Path) -> None:
    publish(rollouts, "ann/fixed", version="1.0.0")
    commit = hub.store.repos["dataset", "ann/fixed"].tags["1.0.0"]
    again = publish(rollouts, "ann/fixed", version="1.0.0")
    assert (again.returncode, commit[:12] in again.stdout) == (0, True)
    changed = Path(shutil.copytree(rollouts, tmp_path / "changed"))
    (changed / "notes.txt").write_text("more")
    refused = publish(changed, "ann/fixed", version="1.0.0")
    assert refused.returncode == 2
    assert "version 1.0.0 is released already and is never overwritten" in refused.stderr
    assert hub.store.repos["dataset", "ann/fixed"].tags["1.0.0"] == commit


def test_a_release_that_was_stopped_before_its_tags_is_finished(hub: Hub, rollouts: Path) -> None:
    publish(rollouts, "ann/untagged", version="1.0.0")
    repo = hub.store.repos["dataset", "ann/untagged"]
    tags = dict(repo.tags)
    repo.tags.clear()
    assert publish(rollouts, "ann/untagged", version="1.0.0").returncode == 0
    assert repo.tags == tags


def test_a_new_version_replaces_the_files_and_takes_lerobots_tag(hub: Hub, rollouts: Path, tmp_path: Path) -> None:
    first = Path(shutil.copytree(rollouts, tmp_path / "first"))
    (first / "notes.txt").write_text("only in the first")
    publish(first, "ann/moving", version="1.0.0")
    publish(rollouts, "ann/moving", version="1.1.0")
    repo = hub.store.repos["dataset", "ann/moving"]
    assert repo.tags["v3.0"] == repo.tags["1.1.0"] != repo.tags["1.0.0"]
    assert "notes.txt" in repo.find("1.0.0").files
    assert "notes.txt" not in repo.find("1.1.0").files


def test_an_interrupted_upload_leaves_no_version_and_goes_on_where_it_stopped(hub: Hub, tasks: Path) -> None:
    for config in ("instances", "cases", "references"):
        table = pq.read_table(tasks / config / "test.parquet")
        pq.write_table(table, tasks / config / "test.parquet", compression="gzip")  # contents the Hub has not seen
    hub.uploads.clear()
    hub.refuse_uploads_after = 1
    try:
        broken = publish(tasks, "ann/large")
    finally:
        hub.refuse_uploads_after = None
    assert broken.returncode == 2
    assert "Error while uploading" in broken.stderr
    assert "give the command again" in broken.stderr
    repo = hub.store.repos["dataset", "ann/large"]
    assert (repo.tags, set(repo.find("main").files)) == ({}, {".gitattributes"})
    assert publish(tasks, "ann/large").returncode == 0
    assert len(hub.uploads) == len(set(hub.uploads)) == 3


def test_who_may_not_write_gets_one_line_and_no_token_is_shown(
    hub: Hub, tasks: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    publish(tasks, "ann/mine")
    (tasks / "notes.txt").write_text("not the owner's")
    monkeypatch.setenv("HF_TOKEN", "hf_bob-secret")
    for repo_id in ("ann/mine", "ann/new"):
        refused = publish(tasks, repo_id)
        assert refused.returncode == 2
        assert "secret" not in refused.stdout + refused.stderr
    assert "the Hub refuses (403): log in with  hf auth login" in publish(tasks, "ann/new").stderr
    monkeypatch.delenv("HF_TOKEN")
    assert "log in with  hf auth login" in publish(tasks, "ann/new").stderr


def test_a_private_dataset_is_hidden_from_others(hub: Hub, tasks: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    publish(tasks, "ann/hidden", "--private")
    assert HfApi().dataset_info("ann/hidden").private
    monkeypatch.setenv("HF_TOKEN", "hf_bob")
    assert not HfApi().repo_exists("ann/hidden", repo_type="dataset")


@pytest.mark.parametrize(
    ("version", "repo_id", "message"),
    [
        ("9.9.9", "ann/x", "not --version 9.9.9"),
        ("one", "ann/x", "are tasks"),
        (VERSION, "tasks", "write it like OWNER/NAME"),
        (VERSION, "../x/y", "write it like OWNER/NAME"),
    ],
)
def test_wrong_use_is_one_line(tasks: Path, version: str, repo_id: str, message: str) -> None:
    done = publish(tasks, repo_id, version=version)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert message in done.stderr


def test_links_damage_and_other_folders_are_not_published(tasks: Path, tmp_path: Path) -> None:
    (tasks / "link").symlink_to(tasks / "README.md")
    assert "is a link" in publish(tasks, "ann/x").stderr
    (tasks / "link").unlink()
    (tasks / "README.md").write_text("no header")
    assert "names no licence" in publish(tasks, "ann/x").stderr
    (tasks / "cases/test.parquet").write_bytes(b"PAR1")
    assert publish(tasks, "ann/x").returncode == 2
    assert "neither a task release" in publish(tmp_path, "ann/x").stderr


def test_rollouts_whose_two_prompts_are_one_string_are_not_published(rollouts: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(rollouts, tmp_path / "same")
    (file,) = (folder / "meta/episodes").rglob("*.parquet")
    table = pq.read_table(file)
    rows = table.select(["arm", "pair_id", "prompt_text", "rollout_id"]).to_pylist()
    conflict = next(number for number, row in enumerate(rows) if row["arm"] == "conflict")
    reference = next(r for r in rows if (r["arm"], r["pair_id"]) == ("reference", rows[conflict]["pair_id"]))
    for name, value in (
        ("prompt_text", reference["prompt_text"]), ("prompt_sha256", prompt_sha256(reference["prompt_text"])),
    ):  # fmt: skip
        values = [value if number == conflict else old for number, old in enumerate(table[name].to_pylist())]
        table = table.set_column(table.column_names.index(name), name, pa.array(values))
    pq.write_table(table, file)
    done = publish(folder, "ann/same")
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert f"1 rollout with the same prompt as the reference rollout, the first {rows[conflict]['rollout_id']}" in (
        done.stderr
    )


@pytest.mark.parametrize("arm", [Arm.CONFLICT, Arm.CONTROL])
def test_no_arm_is_published_in_the_prompt_of_its_reference(tmp_path: Path, arm: Arm) -> None:
    made = with_controls(small_evaluation(prompts=["P0"]))
    assert "24 on cases with their conflict repaired" in card_of(write_dataset(tmp_path / "honest", made))
    text = made[0].episode.prompt_text
    number = next(n for n, one in enumerate(made) if (one.episode.arm, one.episode.pair_id) == (arm, PAIR))
    episode = replace(made[number].episode, prompt_text=text, prompt_sha256=prompt_sha256(text))
    made[number] = replace(made[number], episode=episode)
    with pytest.raises(InvalidInputError, match="1 rollout with the same prompt as the reference rollout") as it:
        card_of(write_dataset(tmp_path / "same", made))
    assert episode.rollout_id in str(it.value)


def test_references_alone_and_the_placebo_can_be_published(tmp_path: Path) -> None:
    made = small_evaluation(prompts=["P0", "placebo"])
    card = card_of(write_dataset(tmp_path / "both", made))
    assert "| `P0` | `1.0` |" in card
    assert "| `placebo` | `1.0` |" in card
    references = [one for one in made if one.episode.arm is Arm.REFERENCE]
    assert "0 on conflict cases, 12 on the base tasks' own" in card_of(write_dataset(tmp_path / "one", references))


def test_published_results_load_whatever_is_undefined_and_are_shown(hub: Hub, tmp_path: Path) -> None:
    board = write_board(tmp_path / "board", ["a", "b"], verified=["b"])
    (first, _) = sorted((board / "results").glob("*.json"))
    never = read_result(first)
    effect = Interval(value=0.2, low=-0.1, high=0.5)
    rows = tuple(
        replace(r, measures={**r.measures, "FR": UNDEFINED}, premise_effect=effect, controls=r.n, effect_tasks=1)
        for r in never.rows
        if r.prompt == "P0"
    )
    first.write_text(result_json(replace(never, rows=rows)))
    assert publish(board, "ann/results", version="1.0.0").returncode == 0
    loaded = load_dataset("ann/results", split="train", revision="1.0.0")
    assert [row["policy_name"] for row in loaded] == ["a", "b"]
    assert loaded[0]["rows"][0]["measures"]["FR"] == {"value": None, "low": None, "high": None}
    assert loaded[0]["rows"][0]["premise_effect"] == asdict(effect)
    assert loaded[0]["coverage"] == {"kind": "complete", "rollouts": 14_530, "of": 14_530}
    row = read_results(board)[1].result.rows[0]
    assert loaded[1]["rows"][0]["measures"]["FR"] == asdict(row.measures["FR"])
    shown = Board("hf://ann/results").entries()
    assert [entry.verification is not None for entry in shown] == [False, True]


def test_the_leaderboard_looks_results_up_again_after_a_while(hub: Hub, tmp_path: Path) -> None:
    first = write_board(tmp_path / "first", ["a"])
    publish(first, "ann/growing", version="1.0.0")
    now = [0.0]
    board = Board("hf://ann/growing", clock=lambda: now[0])
    assert len(board.entries()) == 1
    publish(write_board(tmp_path / "second", ["a", "b"]), "ann/growing", version="1.1.0")
    assert len(board.entries()) == 1
    now[0] = 601.0
    assert len(board.entries()) == 2
