"""Policies that refuse or ask instead of acting: recorded, read, replayed, verified, rendered and scored, for real."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from conflictvla.builders.tasks_dataset.reading import load_instances
from conflictvla.eval.policies.interface import Episode, Observation, Policy, PolicyInfo, Refusal
from conflictvla.eval.policies.scripted.agents import Persist, asks_needlessly
from conflictvla.eval.recordings.reading import read_rollouts
from conflictvla.eval.rollouts.executors.in_process import InProcess
from conflictvla.eval.rollouts.replay import replay_rollouts
from conflictvla.eval.rollouts.run import run_policy, with_references
from conflictvla.eval.scores.scores import Scores, score
from conflictvla.eval.submissions.verify import verify_submission
from conflictvla.toolkit.arrays import FloatArray
from conflictvla.toolkit.records import Arm, Instance, Prompt
from conflictvla.toolkit.simulation.scene_pool import ScenePool

from ..in_process import conflictvla

TASKS = ("turn_on_the_stove", "put_the_wine_bottle_on_the_rack")
INIT_STATES = (1, 2)
LATE = 30
LAST_WORDS = "I do not see it; which one do you mean?"


class AsksLate:
    """Goes for the goal, and asks after a second and a half, whatever the instruction."""

    def __init__(self) -> None:
        self.info = PolicyInfo(name="asks_late", revision="1")
        self._persist = Persist()

    def reset(self, episode: Episode) -> None:
        self._persist.reset(episode)

    def act(self, observation: Observation) -> FloatArray | Refusal:
        if observation.step < LATE:
            return self._persist.act(observation)
        return Refusal(f" {LAST_WORDS}\n", "question")


@dataclass(frozen=True)
class Recorded:
    """A folder of runs, and the cases that were run."""

    folder: Path
    release: tuple[Instance, ...]

    def dataset(self, policy: str) -> Path:
        return self.folder / policy


@pytest.fixture(scope="module")
def scenes() -> ScenePool:
    return ScenePool(capacity=4)


@pytest.fixture(scope="module")
def recorded(scenes: ScenePool, tmp_path_factory: pytest.TempPathFactory) -> Recorded:
    """Two cases of each of two tasks from two initial states, under P0."""
    known = [i for i in load_instances() if i.prompt == Prompt.P0]
    cases = [[i for i in known if i.arm is Arm.CONFLICT and i.base_task == task][:2] for task in TASKS]
    release = with_references([case for of_task in cases for case in of_task], known)
    out = tmp_path_factory.mktemp("runs")
    policies: tuple[Policy | str, ...] = ("refuse_aloud", "ask_first", "refuse", AsksLate())
    for policy in policies:
        run_policy(policy, release, out, init_states=INIT_STATES, executor=InProcess(scenes))
    return Recorded(folder=out, release=tuple(release))


@pytest.fixture(scope="module")
def scores(recorded: Recorded) -> Scores:
    return score(recorded.folder, supplementary=True)


def test_a_refusal_before_the_first_action_has_two_frames_in_which_the_arm_rests(recorded: Recorded) -> None:
    rollouts = read_rollouts(recorded.dataset("refuse_aloud"))
    conflicts = [(row, episode) for row, episode in enumerate(rollouts.records()) if episode.arm is Arm.CONFLICT]
    assert len(conflicts) == 8
    for row, episode in conflicts:
        assert (episode.end, episode.success, episode.success_step) == ("refused", False, None)
        assert (episode.refusal_kind, episode.refusal_step) == ("refusal", 0)
        assert episode.refusal_text == f"I cannot do that here: {episode.instruction}"
        np.testing.assert_array_equal(rollouts.rollout_feature("action", row), np.zeros((2, 7)))
    others = [episode for episode in rollouts.records() if episode.arm is Arm.REFERENCE]
    assert {(e.end, e.refusal_kind, e.refusal_text, e.refusal_step) for e in others} == {("success", None, None, None)}


def test_a_question_on_the_way_is_recorded_with_its_step(recorded: Recorded) -> None:
    rollouts = read_rollouts(recorded.dataset("asks_late"))
    for row, episode in enumerate(rollouts.records()):
        assert (episode.end, episode.refusal_kind, episode.refusal_step) == ("refused", "question", LATE)
        assert episode.refusal_text == LAST_WORDS
        actions = rollouts.rollout_feature("action", row)
        assert len(actions) == LATE + 2
        assert (np.abs(actions[:LATE]).max(axis=1) > 0).all()
        assert not actions[LATE:].any()


def test_lerobots_own_reader_reads_refused_rollouts(recorded: Recorded) -> None:
    from lerobot.datasets.lerobot_dataset import LeRobotDataset

    dataset = LeRobotDataset("conflictvla/refuse_aloud", root=recorded.dataset("refuse_aloud"))
    ends = dataset.meta.episodes["end"]
    refused = ends.index("refused")
    first = dataset.meta.episodes["dataset_from_index"][refused]
    assert dataset.meta.episodes["length"][refused] == 2
    assert dataset[first]["action"].tolist() == [0.0] * 7
    assert dataset[first]["task"] == dataset.meta.episodes["prompt_text"][refused]
    assert dataset.meta.episodes["refusal_kind"][refused] == "refusal"


@pytest.mark.parametrize("policy", ["refuse_aloud", "ask_first", "asks_late"])
def test_refused_rollouts_replay_to_the_last_bit_and_pass_verification(
    recorded: Recorded, scenes: ScenePool, policy: str
) -> None:
    checks = replay_rollouts(recorded.dataset(policy), sample=4, scenes=scenes)
    assert [(check.difference, check.largest) for check in checks] == [(None, 0.0)] * 4
    report = verify_submission(recorded.dataset(policy), recorded.release, sample=2, seed=0, scenes=scenes)
    assert report.findings == ()


def test_refusing_aloud_measures_what_holding_still_to_the_horizon_does(scores: Scores) -> None:
    def of(policy: str, *columns: str) -> list[list[object]]:
        rows = [row for row in scores.pairs.to_pylist() if row["policy"] == policy]
        return [[row["instance_id"], row["init_state"], *(row[name] for name in columns)] for row in rows]

    exact = ("TS", "Early20_TS", "AMS", "reference_success", "conflict_success", "conflict_stops")
    assert of("refuse_aloud", *exact) == of("refuse", *exact)
    for name in ("TAR", "position_similarity", "warping_similarity", "divergence_step"):
        aloud, still = ([row[2] for row in of(policy, name)] for policy in ("refuse_aloud", "refuse"))
        np.testing.assert_allclose(np.array(aloud, float), np.array(still, float), atol=0.02)
    assert {row[2] for row in of("refuse_aloud", "conflict_stops")} == {True}


def test_refusals_are_scored_as_detection_with_known_results(scores: Scores) -> None:
    rows = {(row["policy"], row["kind"]): row for row in scores.table("detection").to_pylist()}
    assert sorted(rows) == sorted(
        (policy, kind)
        for policy, own in (("refuse_aloud", "refusal"), ("ask_first", "question"), ("asks_late", "question"))
        for kind in ("either", own)
    )
    needless = [asks_needlessly(f"libero_goal/{task}", state) for task in TASKS for state in INIT_STATES]
    assert needless == [True, False, False, False]
    expected = {
        "refuse_aloud": (1.0, 0.0, 1.0, 0.0),
        "ask_first": (1.0, 0.25, 0.875, 0.0),
        "asks_late": (1.0, 1.0, 0.5, float(LATE)),
    }
    for (policy, _), row in rows.items():
        found = tuple(row[name] for name in ("conflict", "reference", "balanced_accuracy", "mean_step"))
        assert found == expected[policy], policy
        assert row["median_step"] == row["mean_step"]
        assert (row["refused"], row["n"], row["references"]) == (8, 8, 4)
    clustered = rows["ask_first", "either"]
    assert clustered["reference_lo"] < 0.25 < clustered["reference_hi"]
    assert clustered["balanced_accuracy_lo"] < 0.875 < clustered["balanced_accuracy_hi"]


def test_a_refused_reference_is_no_success_and_counts_as_at_rest(scores: Scores) -> None:
    asked = [row for row in scores.pairs.to_pylist() if row["policy"] == "ask_first" and row["reference_refusal"]]
    assert {(row["base_task"], row["init_state"]) for row in asked} == {("turn_on_the_stove", 1)}
    for row in asked:
        assert (row["reference_success"], row["reference_stops"], row["reference_refusal_step"]) == (False, True, 0)
        assert math.isnan(row["TAR"])  # it approached nothing
        assert (row["TS"], row["Early20_TS"], row["AMS"]) == (1.0, 1.0, 1.0)  # two arms at rest


def test_report_exports_and_score_show_detection(recorded: Recorded, tmp_path: Path) -> None:
    shown = conflictvla("score", recorded.folder, "--by", "detection", "--out", tmp_path / "scores.json")
    assert shown.returncode == 0, shown.stderr
    assert "Refusals and questions as detection" in shown.stdout
    content = json.loads((tmp_path / "scores.json").read_text())
    assert {row["policy"] for row in content["detection"]} == {"ask_first", "asks_late", "refuse_aloud"}
    page = tmp_path / "report.html"
    done = conflictvla("report", recorded.folder, "--out", page, "--tables", tmp_path / "files")
    assert done.returncode == 0, done.stderr
    assert "Refusals and questions as detection" in page.read_text()
    assert "87.5" in page.read_text()
    assert any(file.stem == "detection" for file in (tmp_path / "files").rglob("*"))


def test_policies_that_never_refuse_have_no_row(recorded: Recorded) -> None:
    shown = conflictvla("score", recorded.dataset("refuse"), "--by", "detection")
    assert shown.returncode == 0, shown.stderr
    assert "no rows" in shown.stdout
    assert score(recorded.dataset("refuse")).table("detection").num_rows == 0


def test_a_refused_rollout_is_rendered(recorded: Recorded, tmp_path: Path) -> None:
    rollouts = read_rollouts(recorded.dataset("refuse_aloud"))
    (refused, *_) = [episode.rollout_id for episode in rollouts.records() if episode.end == "refused"]
    arguments = ("--rollout", refused, "--size", "64", "--out", tmp_path)
    done = conflictvla("render", recorded.dataset("refuse_aloud"), *arguments)
    if "GL" in done.stderr and done.returncode == 2:
        pytest.skip(done.stderr)
    assert done.returncode == 0, done.stderr
    assert [file.suffix for file in tmp_path.rglob("*.mp4")] == [".mp4"]
