"""Rollouts of real policies in a real scene: what is recorded, and what becomes of a policy that misbehaves."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from conflictvla.builders.rollouts.run_layout import SHARDS
from conflictvla.builders.rollouts.shards import shard_path
from conflictvla.builders.tasks_dataset.reading import load_instances
from conflictvla.eval.policies.interface import Episode, Observation, PolicyInfo
from conflictvla.eval.policies.observing import axis_angle
from conflictvla.eval.policies.registry import load_policy
from conflictvla.eval.policies.scripted.agents import premises_hold
from conflictvla.eval.recordings.reading import read_rollouts
from conflictvla.eval.rollouts.executors.in_process import InProcess
from conflictvla.eval.rollouts.jobs import Job
from conflictvla.eval.rollouts.rollout import rollout_id, run_rollout
from conflictvla.eval.rollouts.run import RunProgress, run_policy, with_references
from conflictvla.eval.rollouts.versions import installed_versions
from conflictvla.toolkit.arrays import FloatArray
from conflictvla.toolkit.errors import InvalidInputError, NotFoundError, PolicyError
from conflictvla.toolkit.prompts import PREMISE_CHECK, prompt_sha256
from conflictvla.toolkit.records import Arm, Instance, Prompt
from conflictvla.toolkit.simulation.scene_pool import ScenePool

HORIZON = 6


class Wave:
    """Moves in chunks of four, differently from one step to the next."""

    def __init__(self, answer: Callable[[Observation], object] | None = None, name: str = "wave") -> None:
        self.info = PolicyInfo(name=name, revision="1", settings={"chunk": 4})
        self.asked: list[int] = []
        self.episodes: list[Episode] = []
        self._answer = answer

    def reset(self, episode: Episode) -> None:
        self.episodes.append(episode)

    def act(self, observation: Observation) -> FloatArray:
        self.asked.append(observation.step)
        if self._answer is not None:
            return self._answer(observation)  # type: ignore[return-value]  # wrong on purpose
        steps = observation.step + np.arange(4.0)
        return np.stack([3.0 * np.sin(steps + k) for k in range(7)], axis=1)


@pytest.fixture(scope="module")
def scenes() -> ScenePool:
    return ScenePool(capacity=4)


@pytest.fixture(scope="module")
def instances() -> tuple[Instance, ...]:
    return load_instances()


@pytest.fixture(scope="module")
def short(instances: tuple[Instance, ...]) -> tuple[Instance, ...]:
    """A reference and two conflicts of one base task under both prompts, with a horizon of a few steps."""
    of_task = [i for i in instances if i.base_task == "put_the_bowl_on_the_plate"]
    cases = {i.case_id: None for i in of_task if i.arm is Arm.CONFLICT}
    selected = [i for i in of_task if i.arm is Arm.REFERENCE or i.case_id in list(cases)[:2]]
    return tuple(dataclasses.replace(i, horizon=HORIZON) for i in selected)


def _p0(short: tuple[Instance, ...]) -> tuple[Instance, ...]:
    return tuple(instance for instance in short if instance.prompt == Prompt.P0)


def test_a_frame_holds_the_state_before_its_action_and_the_action_as_executed(
    scenes: ScenePool, short: tuple[Instance, ...]
) -> None:
    scene = scenes.scene("libero_goal", "put_the_bowl_on_the_plate")
    rollout = run_rollout(scene, Wave(), Job(instance=short[0], init_state=2, seed=5), versions=installed_versions())
    action = rollout.frames["action"]
    assert action.shape == (HORIZON, 7)
    assert np.abs(action).max() == 1.0  # clipped, though the policy gave up to 3
    assert rollout.episode.clipped_actions == (np.abs(action) == 1.0).any(axis=1).sum() > 0
    scene.reset(2)
    assert scene.state().sha256() == rollout.episode.settled_state_sha256
    for t in range(HORIZON):
        np.testing.assert_array_equal(rollout.frames["observation.eef_pos_m"][t], scene.grip_pos().astype(np.float32))
        scene.step(action[t])
    np.testing.assert_array_equal(rollout.episode.final_eef_pos_m, scene.grip_pos().astype(np.float32))


def test_chunks_are_executed_whole_and_cut_at_the_horizon(scenes: ScenePool, short: tuple[Instance, ...]) -> None:
    policy = Wave()
    scene = scenes.scene("libero_goal", "put_the_bowl_on_the_plate")
    run_rollout(scene, policy, Job(instance=short[0], init_state=0, seed=0), versions=installed_versions())
    assert policy.asked == [0, 4]


def test_the_policy_is_handed_the_exact_prompt_that_is_recorded(scenes: ScenePool, short: tuple[Instance, ...]) -> None:
    scene = scenes.scene("libero_goal", "put_the_bowl_on_the_plate")
    for instance in short:
        policy = Wave()
        rollout = run_rollout(
            scene, policy, Job(instance=instance, init_state=0, seed=9), versions=installed_versions()
        )
        (episode,) = policy.episodes
        assert episode.instruction == rollout.episode.prompt_text
        assert episode.seed == rollout.episode.seed == 9
        assert prompt_sha256(episode.instruction) == rollout.episode.prompt_sha256
        assert episode.instruction.startswith(PREMISE_CHECK.text("")) == (instance.prompt == Prompt.P1)
        assert episode.instruction.endswith(instance.instruction)


def _refuse_in_two_lines(seen: Observation) -> object:
    raise PolicyError("no model is loaded\nload one first")


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (lambda seen: np.zeros(7), r"step 0: the actions have shape \(7,\)"),
        (lambda seen: np.zeros((0, 7)), r"step 0: the actions have shape \(0, 7\)"),
        (lambda seen: np.zeros((1, 6)), r"step 0: the actions have shape \(1, 6\)"),
        (lambda seen: np.full((1, 7), np.nan), r"step 0: the actions hold NaN or infinity"),
        (lambda seen: np.full((1, 7), np.inf), r"step 0: the actions hold NaN or infinity"),
        (lambda seen: "up", r"step 0: the actions are not numbers \(ValueError: could not convert"),
        (lambda seen: 1 / 0, r"step 0: the policy raised: ZeroDivisionError"),
        (_refuse_in_two_lines, r"step 0: no model is loaded$"),
    ],
    ids=["flat", "empty", "narrow", "nan", "inf", "text", "raises", "policy-error"],
)
def test_a_policy_that_misbehaves_is_named_with_rollout_and_step(
    scenes: ScenePool, short: tuple[Instance, ...], answer: Callable[[Observation], object], message: str
) -> None:
    scene = scenes.scene("libero_goal", "put_the_bowl_on_the_plate")
    with pytest.raises(PolicyError, match=message) as caught:
        run_rollout(scene, Wave(answer), Job(instance=short[0], init_state=0, seed=0), versions=installed_versions())
    assert str(caught.value).startswith(f"wave/{short[0].instance_id}/init0/seed0: ")
    assert "\n" not in str(caught.value)


def test_a_run_that_breaks_off_keeps_what_was_finished_and_goes_on_from_there(
    scenes: ScenePool, short: tuple[Instance, ...], tmp_path: Path
) -> None:
    chosen = _p0(short)
    calls = 0

    def breaks_in_the_second_rollout(seen: Observation) -> object:
        nonlocal calls
        calls += seen.step == 0
        if calls == 2:
            raise RuntimeError("lost the connection")
        return np.full((1, 7), 0.1)

    with pytest.raises(PolicyError, match="lost the connection"):
        run_policy(Wave(breaks_in_the_second_rollout), chosen, tmp_path, init_states=[0], executor=InProcess(scenes))
    shards = tmp_path / ".wave" / SHARDS
    first = shard_path(shards, rollout_id(Wave().info, Job(instance=chosen[0], init_state=0, seed=0)))
    assert [path.name for path in shards.iterdir()] == [first.name]
    seen: list[RunProgress] = []
    steady = Wave(lambda seen: np.full((1, 7), 0.1))
    run = run_policy(steady, chosen, tmp_path, init_states=[0], executor=InProcess(scenes), progress=seen.append)
    assert [(state.done, state.success) for state in seen] == [(1, None), (2, False), (3, False)]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["wave"]
    assert run.dataset == tmp_path / "wave"
    assert (tmp_path / "wave" / "meta" / "info.json").is_file()


def test_clipped_actions_are_counted_and_warned_of(
    scenes: ScenePool, short: tuple[Instance, ...], tmp_path: Path
) -> None:
    def gone_wild_under_conflict(seen: Observation) -> FloatArray:
        return np.full((2, 7), 0.5 if policy.episodes[-1].instance.case_id is None else -1.5)

    policy, states = Wave(gone_wild_under_conflict), list[RunProgress]()
    chosen = _p0(short)[:2]
    run = run_policy(policy, chosen, tmp_path, init_states=[0], executor=InProcess(scenes), progress=states.append)
    conflict = rollout_id(policy.info, Job(instance=chosen[1], init_state=0, seed=0))
    assert run.clipped == {conflict: HORIZON}
    assert [state.clipped_actions for state in states] == [0, 0, HORIZON]
    assert run.clipped_warning is not None
    assert run.clipped_warning.startswith(f"{HORIZON} actions in 1 of 2 rollouts outside [-1, 1]")
    assert read_rollouts(tmp_path / "wave").column("clipped_actions").tolist() == [0, HORIZON]


def test_the_policys_architecture_family_is_recorded(
    scenes: ScenePool, short: tuple[Instance, ...], tmp_path: Path
) -> None:
    policy = Wave()
    policy.info = dataclasses.replace(policy.info, family="Continuous-Action VLAs")
    for given, recorded in ((None, "Continuous-Action VLAs"), ("Tokenized Autoregressive VLAs",) * 2):
        out = tmp_path / str(given)
        executor = InProcess(scenes)
        run_policy(policy, _p0(short)[:1], out, init_states=[0], policy_family=given, executor=executor)
        assert read_rollouts(out / "wave").column("policy_family").tolist() == [recorded]


def test_an_unfinished_run_with_other_settings_is_not_continued(
    scenes: ScenePool, short: tuple[Instance, ...], tmp_path: Path
) -> None:
    chosen = _p0(short)

    def stop_after_one(state: RunProgress) -> None:
        if state.job is not None:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_policy(Wave(), chosen, tmp_path, init_states=[0], executor=InProcess(scenes), progress=stop_after_one)
    longer = [dataclasses.replace(instance, horizon=HORIZON + 1) for instance in chosen]
    with pytest.raises(InvalidInputError, match=rf"with another horizon \({HORIZON} there, {HORIZON + 1} here\);"):
        run_policy(Wave(), longer, tmp_path, init_states=[0], executor=InProcess(scenes))
    other = Wave()
    other.info = dataclasses.replace(other.info, revision="2", settings={"chunk": 5})
    with pytest.raises(InvalidInputError) as caught:
        run_policy(other, chosen, tmp_path, init_states=[0], executor=InProcess(scenes))
    assert str(caught.value) == (
        f"{tmp_path / 'wave'}: was run with other policy_revision (1 there, 2 here), policy_settings.chunk (4 there, 5 "
        "here); give the same, or choose another --out"
    )

    settings = tmp_path / ".wave" / "run.json"
    assert '"rounding_kernel"' in settings.read_text()
    kernel = json.loads(settings.read_text())["rounding_kernel"]
    settings.write_text(settings.read_text().replace(kernel, "Sandybridge"))
    with pytest.raises(InvalidInputError, match=rf"other rounding_kernel \(Sandybridge there, {kernel} here\);"):
        run_policy(Wave(), chosen, tmp_path, init_states=[0], executor=InProcess(scenes))


def test_a_folder_that_is_no_dataset_is_not_overwritten(tmp_path: Path, short: tuple[Instance, ...]) -> None:
    (tmp_path / "wave").mkdir()
    with pytest.raises(InvalidInputError, match="exists already"):
        run_policy(Wave(), _p0(short), tmp_path, init_states=[0])
    assert [path.name for path in tmp_path.iterdir()] == ["wave"]


def test_references_come_before_the_conflicts_that_are_paired_with_them(instances: tuple[Instance, ...]) -> None:
    conflicts = [i for i in instances if i.arm is Arm.CONFLICT][::40]
    ordered = with_references(conflicts, instances)
    assert {i.instance_id for i in ordered if i.arm is Arm.CONFLICT} == {i.instance_id for i in conflicts}
    seen: set[str] = set()
    for instance in ordered:
        seen.add(instance.instance_id)
        assert instance.pair_id in seen
    assert len(seen) == len(ordered)


def test_a_conflict_without_its_reference_is_refused(instances: tuple[Instance, ...]) -> None:
    conflict = next(i for i in instances if i.arm is Arm.CONFLICT)
    with pytest.raises(InvalidInputError, match=f"no reference instance '{conflict.pair_id}'"):
        with_references([conflict], [conflict])


def test_the_checker_tells_references_from_conflicts_in_the_live_scene(
    scenes: ScenePool, instances: tuple[Instance, ...]
) -> None:
    scene = scenes.scene("libero_goal", "put_the_bowl_on_the_plate")
    scene.reset(4)
    before = scene.state().sha256()
    of_task = [i for i in instances if i.base_task == "put_the_bowl_on_the_plate" and i.prompt == Prompt.P0]
    for instance in (of_task[0], *of_task[1::6]):
        episode = Episode(instruction=instance.instruction, init_state=4, seed=0, instance=instance, scene=scene)
        assert premises_hold(episode) == (instance.arm is Arm.REFERENCE)
    assert scene.state().sha256() == before


@pytest.mark.parametrize(
    ("spec", "error", "message"),
    [
        ("persit", NotFoundError, r"no policy 'persit': did you mean 'persist'\?"),
        ("no_such_module:Policy", NotFoundError, r"no module 'no_such_module'"),
        ("conflictvla.eval.policies.interface:Nope", NotFoundError, r"has no 'Nope'"),
        ("fractions:Fraction", InvalidInputError, r"needs the attribute info and the methods reset and act"),
    ],
)
def test_a_policy_spec_that_names_none_is_refused_with_the_reason(
    spec: str, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        load_policy(spec)


def test_the_axis_angle_keeps_antipodes_apart_as_robosuite_does() -> None:
    from robosuite.utils.transform_utils import quat2axisangle

    for w, x, y, z in np.random.default_rng(0).normal(size=(50, 4)):
        quat = np.array([w, x, y, z]) / np.linalg.norm([w, x, y, z])
        for sign in (1.0, -1.0):
            theirs = quat2axisangle(np.roll(sign * quat, -1))
            np.testing.assert_allclose(axis_angle(sign * quat), theirs, atol=1e-6)
    np.testing.assert_array_equal(axis_angle(np.array([1.0, 0.0, 0.0, 0.0])), np.zeros(3))
