"""What all rollouts of a run have in common, since rollouts that differ in it must not be mixed."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

from ....builders.rollouts.episode_record import EpisodeRecord
from ....builders.rollouts.schema import ROLLOUT_SCHEMA_VERSION
from ....toolkit.errors import DatasetError
from ....toolkit.records import PROTOCOL_VERSION, LanguageProbe, VisualProbe
from ...policies.interface import PolicyInfo
from ..jobs import Job
from ..versions import Versions
from .horizons import GivenHorizon, horizon_kinds

OF_SOME = ("tasks_version", "probes_version", "visual_noise", "horizon_kind")
"""Settings that some rollouts do not depend on; those have None, which differs from no value."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSettings:
    """Settings of a run, as text. Those of ``OF_SOME`` are None where none of its rollouts depends on them.

    Attributes:
        policy_revision: The policy's revision.
        policy_settings: Its settings, as JSON.
        policy_family: Its architecture family; None where it has none, which is a setting like any other.
        protocol_version: Version of the protocol.
        schema_version: Version of the recording.
        tasks_version: Version of the tasks.
        probes_version: Version of the language probes, which may be released later than the tasks.
        visual_noise: Kind of the noise of V4.
        horizon_kind: Kind of the horizons, see ``horizon_kinds``.
        prompt_versions: Each prompt condition with the version of its words, in the order of their names.
        conflictvla_version: Version of the software, as the further ones.
        libero_distribution: Which LIBERO.
        mujoco_version: Version of MuJoCo.
        robosuite_version: Version of robosuite.
        numpy_version: Version of NumPy.
        rounding_kernel: By which kernel processes round; None where it is unknown.
    """

    policy_revision: str
    policy_settings: str
    policy_family: str | None
    protocol_version: str
    schema_version: str
    tasks_version: str | None
    probes_version: str | None
    visual_noise: str | None
    horizon_kind: str | None
    prompt_versions: tuple[tuple[str, str | None], ...]
    conflictvla_version: str
    libero_distribution: str
    mujoco_version: str
    robosuite_version: str
    numpy_version: str
    rounding_kernel: str | None


def settings_of_jobs(policy: PolicyInfo, jobs: Sequence[Job], versions: Versions) -> Sequence[RunSettings]:
    """The settings of all rollouts of a call, each once."""
    kinds = horizon_kinds(GivenHorizon.of_instance(job.instance) for job in jobs)
    policy_settings = json.dumps(policy.settings, sort_keys=True)
    found = dict.fromkeys(
        RunSettings(
            policy_revision=policy.revision,
            policy_settings=policy_settings,
            policy_family=job.policy_family or policy.family,
            protocol_version=PROTOCOL_VERSION,
            schema_version=ROLLOUT_SCHEMA_VERSION,
            **_tasks_versions(job.instance.language_probe, job.instance.tasks_version),
            visual_noise=str(job.visual_noise) if job.visual_probe is VisualProbe.V4 else None,
            horizon_kind=kind,
            prompt_versions=((str(job.instance.prompt), job.instance.prompt_version),),
            conflictvla_version=versions.conflictvla,
            libero_distribution=versions.libero_distribution,
            mujoco_version=versions.mujoco,
            robosuite_version=versions.robosuite,
            numpy_version=versions.numpy,
            rounding_kernel=versions.rounding_kernel,
        )
        for job, kind in zip(jobs, kinds, strict=True)
    )
    return tuple(found)


def settings_of_records(records: Sequence[EpisodeRecord]) -> Sequence[RunSettings]:
    """The settings of each of the recorded rollouts; ``horizon_kind`` shows where their references are among them.

    Raises:
        DatasetError: A column that holds JSON holds something else.
    """
    kinds = horizon_kinds(map(GivenHorizon.of_record, records))
    return [replace(_of_record(record), horizon_kind=kind) for record, kind in zip(records, kinds, strict=True)]


def _of_record(record: EpisodeRecord) -> RunSettings:
    try:
        noise = dict(json.loads(record.visual_settings)).get("noise")
        dict(json.loads(record.policy_settings))
    except (ValueError, TypeError, RecursionError) as error:
        raise DatasetError(
            f"{record.rollout_id}: visual_settings or policy_settings is not a JSON object: record it again"
        ) from error
    return RunSettings(
        policy_revision=record.policy_revision,
        policy_settings=record.policy_settings,
        policy_family=record.policy_family,
        protocol_version=record.protocol_version,
        schema_version=record.schema_version,
        **_tasks_versions(record.language_probe, record.tasks_version),
        visual_noise=noise,
        horizon_kind=None,
        prompt_versions=((str(record.prompt), record.prompt_version),),
        conflictvla_version=record.conflictvla_version,
        libero_distribution=record.libero_distribution,
        mujoco_version=record.mujoco_version,
        robosuite_version=record.robosuite_version,
        numpy_version=record.numpy_version,
        rounding_kernel=record.rounding_kernel,
    )


def read_settings(text: str) -> RunSettings:
    """Settings of their JSON.

    Raises:
        ValueError: It is damaged, or of another version of the software, as ``TypeError`` and ``RecursionError``.
    """
    values = dict(json.loads(text))
    values["prompt_versions"] = tuple((name, version) for name, version in values.get("prompt_versions", ()))
    settings = RunSettings(**values)
    texts = [value for name, value in values.items() if name != "prompt_versions"]
    if not all(isinstance(value, str | None) for value in itertools.chain(texts, *settings.prompt_versions)):
        raise ValueError("a setting is no text")
    dict(json.loads(settings.policy_settings))
    return settings


def who_wrote(text: str, here: str) -> str:
    """What settings are that cannot be read, and who can go on with their run.

    Args:
        text: The settings as JSON.
        here: This version of the software.
    """
    try:
        values = json.loads(text)
    except (ValueError, RecursionError):
        return "damaged: restore it from a copy"
    there = values.get("conflictvla_version") if isinstance(values, dict) else None
    if not isinstance(there, str) or there == here:
        return "written by another version of conflictvla: go on with that"
    return f"written by conflictvla {there}, and this is {here}: go on with that"


def joined(first: RunSettings, second: RunSettings) -> RunSettings:
    """The settings of two sets of rollouts that do not differ."""
    known = {name: getattr(first, name) for name in OF_SOME if getattr(second, name) is None}
    prompts = {**dict(first.prompt_versions), **dict(second.prompt_versions)}
    return replace(second, **known, prompt_versions=tuple(sorted(prompts.items())))


def differences(there: RunSettings, here: RunSettings) -> Sequence[str]:
    """The settings in which two sets of rollouts differ, with the values of both."""
    found: list[str] = []
    for field in fields(RunSettings):
        before, now = getattr(there, field.name), getattr(here, field.name)
        if before == now or (field.name in OF_SOME and None in (before, now)):
            continue
        if field.name == "policy_settings":
            found.extend(_policy_differences(json.loads(before), json.loads(now)))
        elif field.name == "prompt_versions":
            found.extend(_prompt_differences(dict(before), dict(now)))
        else:
            found.append(_difference(field.name, before, now))
    return found


def what_to_give(there: RunSettings, here: RunSettings) -> str:
    """What somebody is to give who would go on with a run whose settings differ."""
    family = there.policy_family
    if family == here.policy_family:
        return "give the same"
    if family is None:
        return "give the same, so neither --family nor a --preset that has one"
    return f"give the same, so --family '{family}'"


def _difference(name: str, before: str | None, now: str | None) -> str:
    return f"{name} ({'none' if before is None else before} there, {'none' if now is None else now} here)"


def _prompt_differences(before: dict[str, str | None], now: dict[str, str | None]) -> Iterator[str]:
    for name in sorted(before.keys() & now.keys()):
        if before[name] != now[name]:
            yield _difference(f"words of the prompt {name}", before[name], now[name])


def _policy_differences(before: dict[str, Any], now: dict[str, Any]) -> Iterator[str]:
    for name in sorted(before.keys() | now.keys()):
        if before.get(name) != now.get(name):
            yield f"policy_settings.{name} ({before.get(name)} there, {now.get(name)} here)"


def _tasks_versions(probe: LanguageProbe, version: str) -> dict[str, str | None]:
    of_tasks = probe is LanguageProbe.W0
    return {"tasks_version": version if of_tasks else None, "probes_version": None if of_tasks else version}
