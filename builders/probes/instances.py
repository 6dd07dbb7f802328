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
from ...toolkit.records import Arm, Instance, LanguageProbe, Prompt

PROBES_VERSION = "1.1.0"
"""The task release that the packaged probes came with: their ``tasks_version``."""

LEVELS = tuple(LanguageProbe)[1:]
"""W1 to W4."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbeInstance:
    """An instance under a language probe.

    Attributes:
        instance: What a policy is given, in other words.
        substitutions: As many as its level says, those of the level below first.
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
        instances: References and conflict instances as they are said without a probe.
        facts_of: Facts of a base task's scene, by suite and name.
        levels: Levels that are wanted.
        progress: Told each base task's id when it is done.

    Raises:
        InvalidInputError: An instruction is not what its plan gives, so that nobody knows where its words stand.
    """
    wanted = sorted(set(levels) - {LanguageProbe.W0})
    of_task: dict[tuple[str, str], list[Instance]] = {}
    for instance in instances:
        of_task.setdefault((instance.suite, instance.base_task), []).append(instance)
    found: list[ProbeInstance] = []
    for (suite, name), group in of_task.items():
        chosen = _substitutions_of(group, facts_of(suite, name))
        found.extend(_at(level, instance, chosen[_words_of(instance)]) for instance in group for level in wanted
                     if _count(level) <= len(chosen[_words_of(instance)]))  # fmt: skip
        if progress:
            progress(f"{suite}/{name}")
    return tuple(sorted(found, key=lambda probe: probe.instance.arm is Arm.CONFLICT))


def _words_of(instance: Instance) -> str:
    """What both prompt conditions of one instruction share."""
    return instance.case_id or f"{instance.suite}/{instance.base_task}"


def _count(level: LanguageProbe) -> int:
    return list(LanguageProbe).index(level)


def _substitutions_of(group: Sequence[Instance], facts: SceneFacts) -> Mapping[str, tuple[Substitution, ...]]:
    """What is substituted in each instruction of one base task."""
    alone = [instance for instance in group if instance.prompt is Prompt.P0]
    reference = next((i for i in alone if i.arm is Arm.REFERENCE), None)
    if reference is None:
        raise InvalidInputError(f"{group[0].suite}/{group[0].base_task}: has no reference under {Prompt.P0}")
    of_reference = _substituted(reference, facts)
    found = {_words_of(reference): of_reference}
    for instance in alone:
        if instance.arm is Arm.CONFLICT:
            found[_words_of(instance)] = _substituted(instance, facts, of_reference)[: len(of_reference)]
    return found


def _substituted(instance: Instance, facts: SceneFacts, like: Sequence[Substitution] = ()) -> tuple[Substitution, ...]:
    plan, wording = plan_from_json(instance.plan), wording_of(instance)
    if render(plan, wording) != instance.instruction:
        raise InvalidInputError(
            f"{instance.instance_id}: the plan does not give the instruction '{instance.instruction}' in this version"
        )
    return substitutions(plan, facts, wording=wording, seed=_words_of(instance), like=like)


def _at(level: LanguageProbe, instance: Instance, chosen: Sequence[Substitution]) -> ProbeInstance:
    used = tuple(chosen[: _count(level)])
    said = render(
        plan_from_json(instance.plan),
        wording_of(instance),
        substitutes=[substitution.substitute for substitution in used],
    )
    probed = replace(
        instance,
        instance_id=f"{instance.instance_id}/{level}",
        pair_id=f"{instance.pair_id}/{level}",
        instruction=said,
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
