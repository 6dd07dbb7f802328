"""The demonstration, as a newcomer runs it."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from conflictvla.builders.rollouts.schema import OBJECT_SLOTS
from conflictvla.builders.tasks_dataset.reading import load_instances
from conflictvla.eval.analyses.tables.behaviour_by_task import METRIC_NAMES
from conflictvla.eval.demo import REPORT_FILE, ROLLOUTS, SCORES_FILE, Demo, demo_cases, run_demo
from conflictvla.eval.policies.registry import SCRIPTED
from conflictvla.eval.recordings.reading import SCORED_FEATURES, read_rollouts
from conflictvla.eval.recordings.rollout_set import RolloutSet
from conflictvla.eval.report import write_picture
from conflictvla.eval.rollouts.run import RunProgress
from conflictvla.eval.scores.scores import score
from conflictvla.eval.scoring.rollout_table import MOTION_FEATURES
from conflictvla.eval.scoring.supplementary import WRONG_OBJECT_FEATURES
from conflictvla.toolkit.errors import InvalidInputError
from conflictvla.toolkit.records import Family, Level

from .measures import reference_measures as slow

PICTURE = Path(__file__).parents[2] / "docs" / "pages" / "figures" / "demo.svg"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("demo") / "out"


@pytest.fixture(scope="module")
def demo(folder: Path) -> Demo:
    seen: list[tuple[str, RunProgress]] = []
    result = run_demo(folder, lambda agent, state: seen.append((agent, state)))
    assert [state.done for _, state in seen] == list(range(17)) * len(SCRIPTED)
    return result


def test_it_takes_two_cases_of_each_family_each_on_another_base_task() -> None:
    cases = demo_cases(load_instances())
    assert sorted((str(case.family), str(case.level)) for case in cases) == sorted(
        (str(family), str(level)) for family in Family for level in (Level.L1, Level.L2)
    )
    assert len({case.base_task for case in cases}) == len(cases)


def test_the_agents_get_the_scores_that_are_known_in_advance(demo: Demo) -> None:
    rows = {row["policy"]: row for row in demo.scores.table("overall").to_pylist()}
    assert {row["n"] for row in rows.values()} == {8}
    assert {row["PCSR"] for row in rows.values()} == {1.0}
    assert (rows["persist"]["RGSR"], rows["refuse"]["RGSR"], rows["fail_persist"]["RGSR"]) == (1.0, 0.0, 0.0)

    for measure, expected in (("TAR", 1.0), ("TS", 1.0), ("Early20_TS", 1.0), ("AMS", 0.0)):
        assert rows["persist"][measure] == pytest.approx(expected, abs=1e-4), measure
    assert rows["refuse"]["TAR"] < 0.01
    assert rows["refuse"]["Early20_TS"] == 0.0
    assert rows["refuse"]["TS"] < 0.05
    assert rows["refuse"]["AMS"] == 1.0
    assert rows["fail_persist"]["TAR"] > 0.95
    assert rows["fail_persist"]["Early20_TS"] == pytest.approx(1.0, abs=1e-4)
    assert rows["fail_persist"]["AMS"] < 0.3


def test_the_readmes_picture_is_that_of_its_scores(demo: Demo, tmp_path: Path) -> None:
    drawn = write_picture(demo.scores, tmp_path / PICTURE.name)
    anew = f"conflictvla demo && conflictvla report demo/rollouts --picture docs/pages/figures/{PICTURE.name}"
    assert drawn.read_text() == PICTURE.read_text(), f"draw it anew: {anew}"


def test_every_rollout_is_kept_failures_too(demo: Demo) -> None:
    from lerobot.datasets.lerobot_dataset import LeRobotDataset

    for agent in SCRIPTED:
        dataset = LeRobotDataset(f"conflictvla/rollouts-{agent}", root=demo.rollouts / agent)
        assert dataset.fps == 20
        assert dataset.num_episodes == 16
        successes = sum(dataset.meta.episodes["success"])
        assert successes == (16 if agent == "persist" else 8)


def test_it_leaves_rollouts_scores_and_report_and_nothing_else(demo: Demo, folder: Path) -> None:
    assert sorted(path.name for path in folder.iterdir()) == sorted([ROLLOUTS, SCORES_FILE, REPORT_FILE])
    assert sorted(path.name for path in demo.rollouts.iterdir()) == sorted(SCRIPTED)
    assert json.loads(demo.scores_file.read_text())["pairs_scored"] == 24
    assert "fail_persist" in demo.report.read_text()


def test_its_lesson_names_both_agents_and_what_tells_them_apart(demo: Demo) -> None:
    assert "refuse completes 0%" in demo.lesson
    assert "fail_persist 0%" in demo.lesson
    assert "TAR 0% against" in demo.lesson


def test_a_folder_with_other_files_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("mine")
    with pytest.raises(InvalidInputError, match="holds other files"):
        run_demo(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.tex"]


@pytest.mark.slow
def test_a_second_demonstration_gives_the_same_bytes(demo: Demo, tmp_path: Path) -> None:
    again = run_demo(tmp_path / "again")
    assert again.scores_file.read_bytes() == demo.scores_file.read_bytes()
    assert again.report.read_bytes() == demo.report.read_bytes()
    for file in sorted(demo.rollouts.rglob("*")):
        if file.is_file() and file.name != "stats.json":  # LeRobot writes its keys in another order in each process
            assert (again.rollouts / file.relative_to(demo.rollouts)).read_bytes() == file.read_bytes(), file


def _path(rollouts: RolloutSet, row: int) -> list[list[float]]:
    """The gripper's path at steps 0 to H."""
    before = rollouts.rollout_feature("observation.eef_pos_m", row).astype(float).tolist()
    return [*before, rollouts.final_eef_pos_m[row].tolist()]


def _other_objects(rollouts: RolloutSet, row: int) -> list[list[list[float]]]:
    """Paths of the objects that the goal does not name, at steps 0 to H."""
    episode = rollouts.episodes.slice(row, 1).to_pylist()[0]
    before = rollouts.rollout_feature("observation.object_pos_m", row).astype(float)
    path = np.vstack([before, episode["final_object_pos_m"]])
    others = [k for k, name in enumerate(episode["objects"]) if name not in episode["goal_entities"]]
    return [path[:, 3 * k : 3 * k + 3].tolist() for k in others]


def _touches_and_grasps_other(rollouts: RolloutSet, row: int) -> tuple[bool, bool]:
    episode = rollouts.episodes.slice(row, 1).to_pylist()[0]
    used = [*range(len(episode["objects"])), *range(OBJECT_SLOTS, OBJECT_SLOTS + len(episode["fixtures"]))]
    frames = rollouts.rollout_feature("observation.gripper_contact", row).astype(float)
    everything = np.vstack([frames, episode["final_gripper_contact"]])[:, used].tolist()
    names = [*episode["objects"], *episode["fixtures"]]
    touches = slow.touches_other(everything, names, episode["goal_entities"])
    return touches, slow.grasps_other(frames.tolist(), episode["objects"], episode["targets"])


def test_the_slow_reference_measures_agree_on_real_rollouts(demo: Demo) -> None:
    rollouts = read_rollouts(demo.rollouts, (*SCORED_FEATURES, *MOTION_FEATURES, *WRONG_OBJECT_FEATURES))
    scores = score(demo.rollouts, supplementary=True)
    for pair in scores.pairs.to_pylist():
        rows = [int(row) for row in rollouts.rows_of([pair["reference_rollout"], pair["conflict_rollout"]])]
        paths = [_path(rollouts, row) for row in rows]
        actions = [rollouts.rollout_feature("action", row).astype(float).tolist() for row in rows]
        assert pair["position_similarity"] == pytest.approx(slow.position_similarity(*paths), abs=1e-12)
        assert pair["warping_similarity"] == pytest.approx(slow.warping_similarity(*paths), abs=1e-12)
        assert pair["divergence_step"] == pytest.approx(slow.divergence_step(*paths), nan_ok=True)
        assert pair["TS"] == pytest.approx(slow.ts(*actions), abs=1e-12)
        assert pair["Early20_TS"] == pytest.approx(slow.ts(actions[0], actions[1], 20), abs=1e-12)
        assert pair["AMS"] == pytest.approx(slow.ams(*actions), abs=1e-12)
        motions = [(path, _other_objects(rollouts, row)) for path, row in zip(paths, rows, strict=True)]
        assert pair["other_approach"] == pytest.approx(slow.other_approach(*motions), abs=1e-12)
        for arm, row in zip(("reference", "conflict"), rows, strict=True):
            touches, grasps = _touches_and_grasps_other(rollouts, row)
            assert (pair[f"{arm}_touches_other"], pair[f"{arm}_grasps_other"]) == (touches, grasps)
        # The agents move the targets or nothing.
        assert (pair["reference_carries_other"], pair["conflict_carries_other"]) == (0.0, 0.0)
    assert scores.trajectories is not None
    for found in scores.trajectories.to_pylist()[:12]:
        row = int(rollouts.rows_of([found["rollout_id"]])[0])
        joints = rollouts.rollout_feature("observation.joint_pos_rad", row).astype(float).tolist()
        norms = slow.jerk_norms(joints)
        expected = [(len(joints) - 1) / 20, sum(norms) / len(norms), slow.percentile(norms, 0.95)]
        names = ("duration_s", "mean_joint_jerk_rad_s3", "p95_joint_jerk_rad_s3")
        assert [found[name] for name in names] == pytest.approx(expected, rel=1e-12)
        assert found["joint_path_rad"] == pytest.approx(slow.path_length(joints), rel=1e-12)
        assert set(METRIC_NAMES) <= set(found)
