"""The recorded rollouts: what they are spread over, that they build, and that the packaged part can be analysed."""

from __future__ import annotations

import shutil
from collections import Counter
from pathlib import Path

import pyarrow.parquet as pq
import pytest

import conflictvla
from conflictvla.builders.rollouts.packing import pack_dataset
from conflictvla.builders.rollouts.schema import FRAME_FEATURES, SIM_STATES
from conflictvla.builders.tasks_dataset.reading import load_instances
from conflictvla.eval.policies.registry import SCRIPTED
from conflictvla.eval.recordings.reading import read_rollouts
from conflictvla.eval.release import ReleasePlan, build_rollouts, plan_rollouts, render_pairs, verify_rollouts
from conflictvla.eval.rollouts.executors.in_process import InProcess
from conflictvla.eval.rollouts.replay import OTHER_PROCESSORS_TOLERANCE, replay_rows
from conflictvla.eval.scores.scores import score
from conflictvla.eval.submissions.results_file import read_results
from conflictvla.toolkit.records import Arm, Family, Level, Prompt

from .in_process import conflictvla as command
from .submissions.recorded import honest, lite, release, write

LARGEST_PACKAGED = 3 << 20

TINY = ReleasePlan(instances=release()[:2], left_out=())


def test_a_sample_has_each_family_and_level_from_other_places() -> None:
    chosen = [i for i in plan_rollouts(load_instances(), 1).instances if i.arm is Arm.CONFLICT]
    cells = Counter((i.family, i.level) for i in chosen)
    assert cells == {(family, level): 1 for family in Family for level in Level}
    assert len({(i.suite, i.base_task) for i in chosen}) == len(chosen)
    for part in ({(i.suite, i.family) for i in chosen}, {(i.suite, i.level) for i in chosen}):
        assert len(part) == len(chosen)


def test_the_full_release_has_every_case_that_the_agents_can_be_asked_once() -> None:
    instances = load_instances()
    plan = plan_rollouts(instances)
    chosen = [i for i in plan.instances if i.arm is Arm.CONFLICT]
    tasks = {(i.suite, i.base_task) for i in chosen}
    every = [i for i in instances if i.arm is Arm.CONFLICT and i.prompt == Prompt.P0]
    assert len(chosen) == sum((i.suite, i.base_task) in tasks for i in every)
    assert len(plan.left_out) == len({(i.suite, i.base_task) for i in every} - tasks)


def test_a_release_is_of_the_lite_selection_where_the_tasks_mark_one_and_of_every_case_where_asked() -> None:
    reference, first, _ = release()
    assert plan_rollouts(release(), lite=lite()).instances == (reference, first)
    assert set(plan_rollouts(release()).instances) == set(release())
    assert plan_rollouts(release(), init_states=range(5), lite=lite()).rollouts == 5 * 2 * len(SCRIPTED)
    done = command("rollouts", "build", "--out", "nowhere", "--per-cell", "1", "--all-cases")
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert not Path("nowhere").exists()


def test_a_release_may_be_of_any_scripted_agents_and_only_of_those() -> None:
    plan = plan_rollouts(load_instances(), 1, ["noisy", "redirect", "noisy"])
    assert plan.agents == ("noisy", "redirect")
    assert plan.rollouts == 2 * len(plan.instances)
    done = command("rollouts", "build", "--out", "nowhere", "--agents", "persist,noisi")
    assert (done.returncode, done.stdout) == (2, "")
    assert "no scripted agent 'noisi': did you mean 'noisy'" in done.stderr
    assert not Path("nowhere").exists()


def test_packing_changes_no_number_and_needs_fewer_bytes(tmp_path: Path) -> None:
    before = write(tmp_path / "before", honest()[:3])
    after = Path(shutil.copytree(before, tmp_path / "after"))
    pack_dataset(after)
    assert not (after / SIM_STATES).exists()
    for file in sorted((before / "data").rglob("*.parquet")):
        assert pq.read_table(file).equals(pq.read_table(after / file.relative_to(before)))
        assert (after / file.relative_to(before)).stat().st_size < file.stat().st_size
    assert score(after).to_json() == score(before).to_json()
    rollouts = read_rollouts(after, tuple(FRAME_FEATURES))
    assert replay_rows(after, rollouts, [0])[0].difference is None


def test_the_packaged_rollouts_are_small_and_scored_as_their_results_say() -> None:
    folder = conflictvla.packaged_rollouts()
    assert sum(file.stat().st_size for file in folder.rglob("*") if file.is_file()) < LARGEST_PACKAGED
    scores = conflictvla.score("packaged")
    assert scores.policies == tuple(sorted(SCRIPTED))
    assert (scores.refusals, scores.pairs.num_rows) == ((), 16 * len(SCRIPTED))
    rows = {row["policy"]: row for row in scores.table("overall").to_pylist()}
    results = {entry.result.policy_name: entry.result for entry in read_results(folder)}
    for policy, row in rows.items():
        claimed = results[policy].row("P0")
        assert claimed is not None
        assert claimed.measures["TAR"].value == pytest.approx(row["TAR"], abs=1e-6)
        assert results[policy].kind == "scripted agent"
    assert rows["refuse"]["RGSR"] == rows["fail_persist"]["RGSR"] == 0.0
    assert rows["refuse"]["TAR"] < 0.1 < 0.8 < rows["fail_persist"]["TAR"]


def test_the_packaged_rollouts_are_of_the_packaged_tasks() -> None:
    known = {i.instance_id: i for i in load_instances()}
    for name in SCRIPTED:
        for episode in read_rollouts(conflictvla.packaged_rollouts() / name).records():
            instance = known[episode.instance_id]
            assert (episode.instruction, episode.tasks_version) == (instance.instruction, instance.tasks_version)


def test_a_command_scores_the_packaged_rollouts() -> None:
    done = command("score", "packaged", "--by", "family")
    assert (done.returncode, done.stderr) == (0, "")
    for family in Family:
        assert family in done.stdout


@pytest.mark.slow
def test_a_packaged_rollout_replays_to_the_last_bit_or_on_another_kind_of_processor_closely() -> None:
    folder = conflictvla.packaged_rollouts() / "persist"
    rollouts = read_rollouts(folder, tuple(FRAME_FEATURES))
    shortest = int(rollouts.lengths.argmin())
    check = replay_rows(folder, rollouts, [shortest])[shortest]
    if check.difference is not None and check.difference.startswith("settled_state_sha256"):
        check = replay_rows(folder, rollouts, [shortest], tolerance=OTHER_PROCESSORS_TOLERANCE)[shortest]
    assert check.difference is None


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A release of one pair an agent."""
    out = tmp_path_factory.mktemp("release")
    build_rollouts(out, TINY, InProcess())
    return out


def test_a_release_is_marked_as_verified_where_its_rollouts_happen_again(built: Path, tmp_path: Path) -> None:
    assert verify_rollouts(built, TINY, 1) == ()
    assert all(entry.verification and entry.verification.replayed == 1 for entry in read_results(built))

    other = Path(shutil.copytree(built, tmp_path / "release"))
    shutil.rmtree(other / "persist")
    shutil.copytree(other / "refuse", other / "persist")
    wrong = verify_rollouts(other, TINY, 1)
    assert wrong
    assert all(finding.startswith("persist: ") for finding in wrong)
    assert [e.result.policy_name for e in read_results(other) if e.verification is None] == ["persist"]


@pytest.mark.slow
def test_some_rollouts_of_a_release_are_rendered_and_those_that_are_there_are_not(built: Path) -> None:
    import av

    rendered: list[str] = []
    files = render_pairs(built, TINY, 1, rendered.append)
    assert [file.parent for file in files[::2]] == [built / agent / "rendered" for agent in SCRIPTED]
    pairs = [rollout_id.split("/")[3] for rollout_id in rendered]
    assert pairs == ["grounding", "reference"] * len(SCRIPTED)
    rollouts = read_rollouts(built / SCRIPTED[0])
    with av.open(str(files[0])) as video:
        frames = [frame.to_ndarray(format="rgb24") for frame in video.decode(video=0)]
    assert len(frames) == rollouts.lengths[rollouts.rows_of(rendered[:1])[0]] + 1
    assert frames[0].shape == (256, 256, 3)
    assert frames[0].std() > 20
    written = [file.stat().st_mtime_ns for file in files]
    assert render_pairs(built, TINY, 1) == files
    assert [file.stat().st_mtime_ns for file in files] == written
