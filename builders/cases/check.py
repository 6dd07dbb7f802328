"""A task release judged again: references and controls valid, every case a conflict, in the simulator as it is now."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ...toolkit.errors import InvalidInputError
from ...toolkit.facts import SceneFacts
from ...toolkit.language.parsing.libero import parse_base_instruction
from ...toolkit.language.parsing.rendered import parse_rendered_instruction
from ...toolkit.language.plan import Plan
from ...toolkit.language.plan_json import plan_from_json
from ...toolkit.language.render import render
from ...toolkit.language.wording import wording_of
from ...toolkit.libero.base_tasks import base_task
from ...toolkit.premises import check, factors
from ...toolkit.probes.substitution import keeps_meaning, substitutes_used
from ...toolkit.prompts import BUILT_IN, RELEASED
from ...toolkit.records import Arm, Instance, LanguageProbe
from .candidates import conflict_level
from .case import content_hash
from .instances import instances_by_task


@dataclass(frozen=True, slots=True, kw_only=True)
class InvalidInstance:
    """An instance that does not hold what it promises."""

    instance_id: str
    reason: str


def check_release(
    instances: Sequence[Instance], init_states: int, progress: Callable[[str], None] | None = None
) -> tuple[InvalidInstance, ...]:
    """Measure each base task's scene anew and judge its instructions.

    Args:
        instances: References, conflict instances and controls.
        init_states: How many initial states to look at, from 0.
        progress: Called with each base task's id when it is done.
    """
    from ...toolkit.simulation.observing.scene_facts import measure_facts
    from ...toolkit.simulation.scene import Scene

    found: list[InvalidInstance] = []
    for (suite, name), group in instances_by_task(instances).items():
        scene = Scene(base_task(suite, name))
        facts = measure_facts(scene, range(min(init_states, scene.initial_state_count)))
        for instance in group:
            reason = judge(instance, facts) or judge_prompt(instance)
            if reason:
                found.append(InvalidInstance(instance_id=instance.instance_id, reason=reason))
        if progress:
            progress(f"{suite}/{name}")
    return tuple(found)


def judge(instance: Instance, facts: SceneFacts) -> str | None:
    """Why an instance does not hold what it promises, or None."""
    plan = plan_from_json(instance.plan)
    violations = check(plan, facts)
    own_words = instance.instruction
    if instance.language_probe is not LanguageProbe.W0:
        own_words = render(plan, wording_of(instance))
        reason = _judge_words(instance, plan, facts)
        if reason:
            return reason
    if instance.arm.premises_hold:
        if not _says_plan(own_words, plan, instance.arm):
            return "the plan is not what the instruction says"
        wrong = violations[0] if violations else None
        return f"the {instance.arm} is not valid: {wrong.premise}, {wrong.observed}" if wrong else None
    assert instance.family is not None
    if not str(instance.case_id).endswith(f"-{content_hash(instance.plan, own_words)}"):
        return "plan and instruction are not those that the case's id was made of"
    level = conflict_level(len(plan.steps), violations, instance.family)
    if level is None:
        return f"no certain conflict of the family {instance.family}" if violations else "no premise is violated"
    if level is not instance.level:
        return f"the conflict is {level}, not {instance.level}"
    recorded = {factor.premise for factor in instance.factors}
    found = {factor.premise for factor in factors(violations)}
    if recorded != found:
        return f"other premises are violated: {', '.join(sorted(recorded ^ found))}"
    return None


def _says_plan(words: str, plan: Plan, arm: Arm) -> bool:
    """Whether a valid instruction means its plan: read as LIBERO's for a reference, as our own for a control."""
    if arm is Arm.REFERENCE:
        return parse_base_instruction(words) == plan
    try:
        return parse_rendered_instruction(words) == plan
    except InvalidInputError:
        return False


def judge_prompt(instance: Instance) -> str | None:
    """Why an instance's prompt is not its instruction in the words of its prompt condition, or None."""
    condition = BUILT_IN.get(instance.prompt)
    if condition is None or instance.prompt not in RELEASED:
        return f"no release has instances under the prompt condition '{instance.prompt}'"
    if instance.prompt_version != condition.version:
        return (
            f"the words of {condition.name} are of version {instance.prompt_version}, here they are {condition.version}"
        )
    if instance.prompt_text != condition.text(instance.instruction):
        return f"the prompt is not the instruction in the words of {condition.name}"
    return None


def _judge_words(instance: Instance, plan: Plan, facts: SceneFacts) -> str | None:
    """Why the words of a language probe do not mean in the scene what the plan says, or None."""
    substitutes = substitutes_used(plan, wording_of(instance), instance.instruction)
    if substitutes is None or len(substitutes) != list(LanguageProbe).index(instance.language_probe):
        return f"the instruction is not the plan's at level {instance.language_probe}"
    try:
        reference = instance.arm is Arm.REFERENCE
        read = (
            parse_base_instruction(instance.instruction, probed=True)
            if reference
            else parse_rendered_instruction(instance.instruction)
        )
    except InvalidInputError as error:
        return str(error)
    if read != plan:
        return "the plan is not what the instruction says"
    return None if keeps_meaning(plan, facts, substitutes) else "the new words do not mean the same in the scene"
