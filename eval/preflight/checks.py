"""Eleven checks of a policy before GPU hours are spent on it: are its inputs and actions in LIBERO's conventions?

What a wrong convention costs cannot be seen in the code that holds it, so the checks look at behaviour: they ask the
policy in one real scene under observations changed on purpose, and let it act for a few seconds.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ...builders.tasks_dataset.reading import load_instances
from ...toolkit.errors import InvalidInputError, NotFoundError, PolicyError
from ...toolkit.libero.base_tasks import base_task, base_tasks
from ...toolkit.records import Arm, Instance, Prompt
from ...toolkit.simulation.scene import Scene
from ..policies.interface import Policy
from .action_checks import (
    check_action_range,
    check_chunk_length,
    check_determinism,
    check_gripper_sign,
    check_latency,
)
from .input_checks import (
    check_long_prompt,
    check_picture_turn,
    check_pictures,
    check_prompt,
    check_refusal,
    check_state_layout,
)
from .measurements import Judgement, Measurements, Verdict
from .policy_trial import PolicyTrial

DEFAULT_TASK = "libero_goal/put_the_bowl_on_the_plate"
DRIVE_STEPS = 60
"""How long the policy acts in each trial; at 20 Hz, enough to reach a target."""

OTHER_PROMPTS = 3
"""How many instructions of the suite are tried against the task's own."""

CHECKS: dict[str, Callable[[Measurements], Judgement]] = {
    "chunk length": check_chunk_length,
    "action range": check_action_range,
    "gripper sign": check_gripper_sign,
    "prompt": check_prompt,
    "long prompt": check_long_prompt,
    "pictures": check_pictures,
    "picture turn": check_picture_turn,
    "state layout": check_state_layout,
    "refusal": check_refusal,
    "determinism": check_determinism,
    "latency": check_latency,
}
"""The eleven checks, in order."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckResult:
    """What a check found; see ``Judgement``.

    Attributes:
        check: Which of the ``CHECKS``; ``answers`` where the policy gives no actions.
    """

    check: str
    verdict: Verdict
    detail: str
    advice: str


def check_policy(
    policy: Policy,
    *,
    task: str = DEFAULT_TASK,
    init_state: int = 0,
    seed: int = 0,
    steps: int = DRIVE_STEPS,
    checks: Sequence[str] | None = None,
    scene: Scene | None = None,
    progress: Callable[[str], None] | None = None,
) -> tuple[CheckResult, ...]:
    """Check a policy in one scene.

    Args:
        policy: The policy.
        task: Base task, as ``suite/name``; one that the policy was trained on.
        init_state: LIBERO's number of the initial state.
        seed: Seed handed to the policy.
        steps: How long the policy acts in each trial.
        checks: Names of the ``CHECKS`` to make; all by default.
        scene: The task's scene, if there is one already.
        progress: Called with the name of each check before it is made.

    Returns:
        A result for each check; where the policy gives no actions, that alone.

    Raises:
        NotFoundError: There is no such task.
        InvalidInputError: There are no steps.
    """
    if steps < 1:
        raise InvalidInputError(f"{steps} steps: at least 1 is needed")
    instance = _reference(task)
    scene = scene or Scene(base_task(instance.suite, instance.base_task))
    bench = PolicyTrial(policy, scene, instance, init_state=init_state, seed=seed)
    results = []
    try:
        measured = Measurements(bench, _other_prompts(instance), _conflicts(instance), steps)
        for name in checks or CHECKS:
            if progress:
                progress(name)
            found = CHECKS[name](measured)
            results.append(CheckResult(check=name, verdict=found.verdict, detail=found.detail, advice=found.advice))
    except PolicyError as error:
        return (CheckResult(check="answers", verdict="fail", detail=str(error), advice="make this work first"),)
    return tuple(results)


def _reference(task: str) -> Instance:
    for instance in load_instances():
        known = f"{instance.suite}/{instance.base_task}" == task
        if known and instance.arm is Arm.REFERENCE and instance.prompt == Prompt.P0:
            return instance
    raise NotFoundError(f"no base task '{task}': write it as {DEFAULT_TASK}")


def _conflicts(reference: Instance) -> tuple[Instance, ...]:
    """A conflict of each family in the reference's scene, under both prompt conditions."""
    first: dict[tuple[str, str], Instance] = {}
    for instance in load_instances():
        same_task = (instance.suite, instance.base_task) == (reference.suite, reference.base_task)
        if same_task and instance.family is not None:
            first.setdefault((instance.family, instance.prompt), instance)
    return tuple(first.values())


def _other_prompts(instance: Instance) -> tuple[str, ...]:
    others = [task.instruction for task in base_tasks(instance.suite) if task.name != instance.base_task]
    return tuple(others[:OTHER_PROMPTS])
