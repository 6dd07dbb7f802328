"""The preflight checks pass a policy that honours every convention, and name each fault of those broken on purpose."""

from __future__ import annotations

import json
import math

import pytest

from conflictvla.builders.tasks_dataset.reading import load_instances
from conflictvla.eval.policies.interface import Policy
from conflictvla.eval.policies.registry import load_policy
from conflictvla.eval.preflight import action_checks
from conflictvla.eval.preflight.checks import CHECKS, DEFAULT_TASK, check_policy
from conflictvla.eval.rollouts.executors.in_process import InProcess
from conflictvla.eval.rollouts.jobs import Job
from conflictvla.toolkit.errors import InvalidInputError, NotFoundError
from conflictvla.toolkit.libero.base_tasks import base_task
from conflictvla.toolkit.simulation.pictures.rendering import camera_of
from conflictvla.toolkit.simulation.scene import Scene

from ..in_process import conflictvla
from . import faulty_policies as policies

STEPS = 12


@pytest.fixture(scope="module")
def scene() -> Scene:
    found = Scene(base_task(*DEFAULT_TASK.split("/")))
    found.reset(0)
    try:
        camera_of(found, policies.SIZE)
    except InvalidInputError as error:
        pytest.skip(str(error))
    return found


def test_a_sound_policy_passes_every_check(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(action_checks, "FULL_DAYS", math.inf)  # pictures alone take longer where a machine is busy
    found = {result.check: result for result in check_policy(policies.Sound(), scene=scene, steps=STEPS)}
    assert list(found) == list(CHECKS)
    assert len(CHECKS) == 11
    assert {name: result.verdict for name, result in found.items()} == dict.fromkeys(CHECKS, "pass")


@pytest.mark.parametrize(
    ("policy", "found"),
    [
        ("refuse_aloud", "8 refusals to 8 impossible instructions, such as 'I cannot do that here: "),
        ("persist", "none of 8 impossible instructions is refused in words: scored by its motion alone"),
    ],
)
def test_the_refusal_check_shows_what_arrives(policy: str, found: str, scene: Scene) -> None:
    (result,) = check_policy(load_policy(policy), scene=scene, steps=STEPS, init_state=1, checks=["refusal"])
    assert (result.verdict, result.advice) == ("pass", "")
    assert result.detail.startswith(found)


def test_a_policy_that_asks_about_its_own_task_gets_that_result_alone(scene: Scene) -> None:
    (result,) = check_policy(load_policy("ask_first"), scene=scene, steps=STEPS, init_state=0)
    assert (result.check, result.verdict) == ("answers", "fail")
    assert result.detail.startswith("step 0: the policy refuses the base task's own instruction (question, 'What do")


FAULTS = [
    (policies.UnevenChunks, "chunk length", "warn", "fix it with ?replan_steps=N"),
    (policies.Unnormalised, "action range", "fail", "give actions in its units"),
    (policies.GripperFlipped, "gripper sign", "fail", "?gripper=flip"),
    (policies.Deaf, "prompt", "fail", "pass episode.instruction on"),
    (policies.ShortOfHearing, "long prompt", "fail", "raise the tokenizer's maximal length"),
    (policies.Blind, "pictures", "fail", "do they reach the model"),
    (policies.Mirrored, "picture turn", "fail", "?images=rotated"),
    (policies.ShortRotations, "state layout", "fail", "?axis_angle=shortest"),
    (policies.Unseeded, "determinism", "warn", "seed the model in reset"),
    (policies.Remembers, "determinism", "fail", "clear queues and histories in reset"),
    (policies.Slow, "latency", "warn", "or longer chunks"),
]

MORE_FAULTS = [
    (policies.EndlessChunks, "chunk length", "warn", "cut it with ?replan_steps=N"),
    (policies.Metres, "action range", "fail", "are these metres and radians?"),
    (policies.GripperOpenHigh, "gripper sign", "fail", "?gripper=open_high"),
    (policies.UpsideDown, "picture turn", "fail", "?images=rotated"),
]


def _steps(policy: type[Policy]) -> int:
    return 3 if policy is policies.Slow else STEPS


@pytest.mark.parametrize(("policy", "check", "verdict", "advice"), FAULTS)
def test_each_fault_is_named(policy: type[Policy], check: str, verdict: str, advice: str, scene: Scene) -> None:
    (result,) = check_policy(policy(), scene=scene, steps=_steps(policy), checks=[check])
    assert result.verdict == verdict, result
    assert advice in result.advice


@pytest.mark.slow
@pytest.mark.parametrize(("policy", "check", "verdict", "advice"), [*FAULTS, *MORE_FAULTS])
def test_each_fault_is_named_and_nothing_else_fails(
    policy: type[Policy], check: str, verdict: str, advice: str, scene: Scene
) -> None:
    found = {result.check: result for result in check_policy(policy(), scene=scene, steps=_steps(policy))}
    assert found[check].verdict == verdict, found[check]
    assert advice in found[check].advice
    others = {name for name, result in found.items() if result.verdict == "fail"} - {check}
    assert not others, [found[name] for name in others]


@pytest.mark.parametrize(
    ("policy", "line"),
    [
        (policies.Raises, "the policy raised: KeyError: 'observation.images.image2'"),
        (policies.NarrowActions, "the actions have shape (4, 6); return (n, 7) with n >= 1"),
    ],
)
def test_a_policy_that_gives_no_actions_gets_that_result_alone(policy: type[Policy], line: str, scene: Scene) -> None:
    (result,) = check_policy(policy(), scene=scene, steps=STEPS)
    assert (result.check, result.verdict, result.detail) == ("answers", "fail", line)


@pytest.mark.parametrize(
    ("policy", "line"),
    [
        (policies.RaisesAtLength, "the policy raised: ValueError: first line"),
        (policies.Unreachable, "ws://gpu:8000: the connection was lost"),
    ],
)
def test_an_error_reads_the_same_in_a_check_and_in_a_run(policy: type[Policy], line: str, scene: Scene) -> None:
    (result,) = check_policy(policy(), scene=scene, steps=STEPS)
    instance = next(i for i in load_instances() if f"{i.suite}/{i.base_task}" == DEFAULT_TASK)
    (outcome,) = InProcess().run(policy(), [Job(instance=instance, init_state=0, seed=0)], stop_on_failure=False)
    assert outcome.failure is not None
    assert result.detail == line
    assert outcome.failure.error.removeprefix(f"{outcome.failure.rollout_id}: ").removeprefix("step 0: ") == line


def test_a_wrong_task_or_number_of_steps_is_refused(scene: Scene) -> None:
    with pytest.raises(NotFoundError, match="no base task 'libero_goal/x'"):
        check_policy(policies.Sound(), task="libero_goal/x")
    with pytest.raises(InvalidInputError, match="0 steps"):
        check_policy(policies.Sound(), scene=scene, steps=0)


def test_the_command_reports_what_was_found_and_exits_with_1_where_something_fails() -> None:
    done = conflictvla("probe", "--policy", "persist", "--steps", "1", "--json")
    results = {result["check"]: result for result in json.loads(done.stdout)}
    assert done.returncode == 1
    assert results["prompt"]["verdict"] == "fail"  # persist pursues the goal whatever the instruction
    assert results["pictures"]["verdict"] == "warn"
    assert results["chunk length"] == {
        "check": "chunk length",
        "verdict": "pass",
        "detail": "1 action a chunk",
        "advice": "",
    }
