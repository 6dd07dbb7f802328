"""Language probes of a task release: every instruction in other words, at levels W1 to W4, as one more config.

A release's own files are taken over byte by byte; its cases, ids and versions stay what they are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from ...toolkit.errors import InvalidInputError
from ...toolkit.facts import SceneFacts
from ...toolkit.language.plan_json import plan_from_json
from ...toolkit.language.render import render
from ...toolkit.language.wording import wording_of
from ...toolkit.probes.substitution import Substitution, substitutions
from ...toolkit.prompts import BUILT_IN
from ...toolkit.records import Arm, Instance, LanguageProbe, Prompt
from ..cases.instances import instances_by_task

PROBES_VERSION = "1.1.0"
"""The task release that the packaged probes came with: their ``tasks_version``."""

LEVELS = tuple(LanguageProbe)[1:]
"""W1 to W4."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbeInstance:
    """An instance under a language probe.

    Attributes:
        instance: What a policy is given, in other words.
        substitutions: As many as its level replaces, those of the level below first.
    """

    instance: Instance
    substitutions: tuple[Substitution, ...]


def probe_instances(
    instances: Sequence[Instance],
    facts_of: Callable[[str, str], SceneFacts],
    levels: Iterable[LanguageProbe] = LEVELS,
    progress: Callable[[str], None] | None = None,
) -> tuple[ProbeInstance, ...]:
    """Every instance at every level that it has, references first.

    A conflict has the levels that its reference has too, so that each can be paired, and begins with the reference's
    substitutions. The prompt condition changes none of them.

    Args:
        instances: References and conflict instances in their own words; controls among them are passed by.
        facts_of: Facts of a base task's scene, by suite and name.
        levels: Levels that are wanted.
        progress: Called with each base task's id when it is done.

    Raises:
        InvalidInputError: An instruction is not what its plan gives, so that nobody knows where its words stand.
    """
    wanted = sorted(set(levels) - {LanguageProbe.W0})
    found: list[ProbeInstance] = []
    for (suite, name), group in instances_by_task(i for i in instances if i.arm is not Arm.CONTROL).items():
        chosen = _substitutions_of(group, facts_of(suite, name))
        for instance in group:
            substituted = chosen[_instruction_key(instance)]
            reached = [level for level in wanted if _substitution_count(level) <= len(substituted)]
            found.extend(_probe_instance(level, instance, substituted) for level in reached)
        if progress:
            progress(f"{suite}/{name}")
    return tuple(sorted(found, key=lambda probe: probe.instance.arm is Arm.CONFLICT))


def _instruction_key(instance: Instance) -> str:
    """What both prompt conditions of one instruction share."""
    return instance.case_id or f"{instance.suite}/{instance.base_task}"


def _substitution_count(level: LanguageProbe) -> int:
    return list(LanguageProbe).index(level)


def _substitutions_of(group: Sequence[Instance], facts: SceneFacts) -> Mapping[str, tuple[Substitution, ...]]:
    """What is substituted in each instruction of one base task."""
    alone = [instance for instance in group if instance.prompt == Prompt.P0]
    reference = next((i for i in alone if i.arm is Arm.REFERENCE), None)
    if reference is None:
        raise InvalidInputError(f"{group[0].suite}/{group[0].base_task}: has no reference under {Prompt.P0}")
    of_reference = _substitutions_in(reference, facts)
    found = {_instruction_key(reference): of_reference}
    for instance in alone:
        if instance.arm is Arm.CONFLICT:
            found[_instruction_key(instance)] = _substitutions_in(instance, facts, of_reference)[: len(of_reference)]
    return found


def _substitutions_in(
    instance: Instance, facts: SceneFacts, like: Sequence[Substitution] = ()
) -> tuple[Substitution, ...]:
    plan, wording = plan_from_json(instance.plan), wording_of(instance)
    if render(plan, wording) != instance.instruction:
        raise InvalidInputError(
            f"{instance.instance_id}: the plan does not give the instruction '{instance.instruction}' in this version"
        )
    return substitutions(plan, facts, wording=wording, seed=_instruction_key(instance), like=like)


def _probe_instance(level: LanguageProbe, instance: Instance, chosen: Sequence[Substitution]) -> ProbeInstance:
    used = tuple(chosen[: _substitution_count(level)])
    instruction = render(
        plan_from_json(instance.plan),
        wording_of(instance),
        substitutes=[substitution.substitute for substitution in used],
    )
    probed = replace(
        instance,
        instance_id=f"{instance.instance_id}/{level}",
        pair_id=f"{instance.pair_id}/{level}",
        instruction=instruction,
        prompt_text=BUILT_IN[instance.prompt].text(instruction),
        language_probe=level,
        tasks_version=PROBES_VERSION,
    )
    return ProbeInstance(instance=probed, substitutions=used)


def measured_facts(suite: str, name: str) -> SceneFacts:
    """Facts of a base task's scene over all initial states, from the cache where it has them."""
    from ...toolkit.libero.base_tasks import base_task
    from ...toolkit.simulation.observing.facts_cache import cached_facts
    from ...toolkit.simulation.scene import Scene

    scene = Scene(base_task(suite, name))
    return cached_facts(scene, range(scene.initial_state_count))
