"""Instances of cases and of base tasks: an instruction under one prompt condition."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from ...toolkit.errors import InvalidInputError
from ...toolkit.language.plan_json import plan_from_json
from ...toolkit.prompts import BUILT_IN, PromptCondition
from ...toolkit.records import Arm, BaseTask, Instance, LanguageProbe, Prompt
from .case import Case

TASKS_VERSION = "1.0.0"
"""Version of the task release that the package carries."""


def reference_instance(case: Case, prompt: Prompt) -> Instance:
    """The base task's own instruction under a prompt condition."""
    return base_instance(case.task, prompt, plan=case.base_plan, targets=case.targets)


def base_instance(
    task: BaseTask, prompt: Prompt, *, plan: str, targets: tuple[str, ...], tasks_version: str = TASKS_VERSION
) -> Instance:
    """A base task's own instruction under a prompt condition, also of a task that has no cases.

    Args:
        task: The base task.
        prompt: The prompt condition.
        plan: Its instruction's plan as JSON.
        targets: What the reference goal requires the robot to manipulate.
        tasks_version: The task release that it belongs to.
    """
    reference_id, condition = f"{task.task_id}/reference/{prompt}", BUILT_IN[prompt]
    return Instance(
        instance_id=reference_id,
        case_id=None,
        pair_id=reference_id,
        arm=Arm.REFERENCE,
        suite=task.suite,
        base_task=task.name,
        base_task_index=task.index,
        base_instruction=task.instruction,
        instruction=task.instruction,
        prompt=prompt,
        prompt_text=condition.text(task.instruction),
        prompt_version=condition.version,
        family=None,
        level=None,
        operator=None,
        plan=plan,
        factors=(),
        targets=targets,
        horizon=task.horizon,
        tasks_version=tasks_version,
    )


def conflict_instance(case: Case, prompt: Prompt) -> Instance:
    """A case under a prompt condition: its reference with the case's instruction, and why that is a conflict."""
    candidate = case.candidate
    return replace(
        reference_instance(case, prompt),
        instance_id=f"{case.case_id}/{prompt}",
        case_id=case.case_id,
        arm=Arm.CONFLICT,
        instruction=candidate.instruction,
        prompt_text=BUILT_IN[prompt].text(candidate.instruction),
        family=candidate.family,
        level=candidate.level,
        operator=candidate.operator,
        plan=candidate.plan,
        factors=candidate.factors,
        horizon=_horizon(case.task.horizon, candidate.plan, base_plan=case.base_plan),
    )


def _horizon(base_horizon: int, plan: str, *, base_plan: str) -> int:
    steps, base_steps = (len(plan_from_json(text).steps) for text in (plan, base_plan))
    return plan_horizon(base_horizon, steps, base_steps=base_steps)


def plan_horizon(base_horizon: int, steps: int, *, base_steps: int) -> int:
    """Most executed actions under an instruction: as many for each step of its plan as the base task has for its own.

    base_horizon * steps of the plan / steps of the base plan, rounded up, and never less than ``base_horizon``. An
    added step takes its time; under the base horizon a policy that does it first would look as if it had responded to
    the conflict.

    Args:
        base_horizon: The base task's own horizon.
        steps: Steps of the instruction's plan.
        base_steps: Steps of the plan of the base task's own instruction.
    """
    rounded_up = -(-base_horizon * steps // base_steps)
    return max(base_horizon, rounded_up)


def control_instance(conflict: Instance, reference: Instance, *, plan: str, instruction: str) -> Instance:
    """The control of a case under the same prompt condition: its instruction with the conflict repaired.

    Args:
        conflict: The case under a prompt condition.
        reference: Its base task's own instruction under the same one.
        plan: The repaired instruction's plan as JSON; a valid one.
        instruction: The plan in English.
    """
    return replace(
        conflict,
        instance_id=f"{conflict.case_id}/control/{conflict.prompt}",
        arm=Arm.CONTROL,
        instruction=instruction,
        prompt_text=BUILT_IN[conflict.prompt].text(instruction),
        plan=plan,
        factors=(),
        horizon=_horizon(reference.horizon, plan, base_plan=reference.plan),
    )


def under_prompt(instance: Instance, condition: PromptCondition) -> Instance:
    """A P0 instance under another prompt condition, paired with its reference under the same one.

    Raises:
        InvalidInputError: The instance is not under P0.
    """
    return replace(
        instance,
        instance_id=_renamed_id(instance.instance_id, instance, condition.name),
        pair_id=_renamed_id(instance.pair_id, instance, condition.name),
        prompt=condition.name,
        prompt_text=condition.text(instance.instruction),
        prompt_version=condition.version,
    )


def under_prompts(instances: Sequence[Instance], conditions: Iterable[PromptCondition]) -> tuple[Instance, ...]:
    """The instances under these prompt conditions: those that are there as they are, others made from the P0 instances.

    Args:
        instances: References, conflict instances and controls.
        conditions: Prompt conditions.

    Raises:
        InvalidInputError: There are no P0 instances to make others from.
    """
    there = {instance.prompt for instance in instances}
    alone = [instance for instance in instances if instance.prompt == Prompt.P0]
    found: list[Instance] = []
    for condition in conditions:
        if condition.name in there:
            found += [instance for instance in instances if instance.prompt == condition.name]
        else:
            if instances and not alone:
                raise InvalidInputError(
                    f"there are no {Prompt.P0} instances to put under the prompt '{condition.name}'"
                )
            found += [under_prompt(instance, condition) for instance in alone]
    return tuple(found)


def with_built_in_prompts(instances: Sequence[Instance], prompts: Iterable[str]) -> tuple[Instance, ...]:
    """The instances, and those under the built-in ones of these prompt conditions that a task release does not hold.

    Args:
        instances: A task release; what it lacks is made from its P0 instances.
        prompts: Names of prompt conditions; a user's own are passed by.
    """
    there = {instance.prompt for instance in instances}
    made = [condition for name, condition in BUILT_IN.items() if name in set(prompts) - there]
    alone = [instance for instance in instances if instance.prompt == Prompt.P0]
    return (*instances, *(under_prompt(instance, condition) for condition in made for instance in alone))


def _renamed_id(instance_id: str, instance: Instance, prompt: str) -> str:
    """An id of a P0 instance, or of its reference, with another prompt condition's name."""
    probe = "" if instance.language_probe is LanguageProbe.W0 else f"/{instance.language_probe}"
    stem = instance_id.removesuffix(f"/{Prompt.P0}{probe}")
    if stem == instance_id:
        raise InvalidInputError(f"{instance_id}: not a P0 instance, so it cannot be put under the prompt '{prompt}'")
    return f"{stem}/{prompt}{probe}"


def instances_by_task(instances: Iterable[Instance]) -> dict[tuple[str, str], list[Instance]]:
    """The instances of each base task, by suite and name, in the order in which they come."""
    found: dict[tuple[str, str], list[Instance]] = {}
    for instance in instances:
        found.setdefault((instance.suite, instance.base_task), []).append(instance)
    return found
