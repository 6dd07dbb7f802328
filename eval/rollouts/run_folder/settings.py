"""What all rollouts of a run have in common, since rollouts that differ in it must not be mixed."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, fields
from typing import Any

from ....builders.rollouts.episode_record import EpisodeRecord
from ....builders.rollouts.schema import ROLLOUT_SCHEMA_VERSION
from ....toolkit.errors import DatasetError
from ....toolkit.records import PROTOCOL_VERSION, LanguageProbe, VisualProbe
from ...policies.interface import PolicyInfo
from ..jobs import Job
from ..versions import Versions


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSettings:
    """Settings of a run, as text; None for what none of its rollouts depends on.

    Attributes:
        policy_revision: The policy's revision.
        policy_settings: Its settings, as JSON.
        policy_family: Its architecture family.
        protocol_version: Version of the protocol.
        schema_version: Version of the recording.
        tasks_version: Version of the tasks.
        probes_version: Version of the language probes, which may be released later than the tasks.
        visual_noise: Kind of the noise of V4.
        conflictvla_version: Version of the software, as the further ones.
        libero_distribution: Which LIBERO.
        mujoco_version: Version of MuJoCo.
        robosuite_version: Version of robosuite.
        numpy_version: Version of NumPy.
        rounding_kernel: By which kernel processes round.
    """

    policy_revision: str | None
    policy_settings: str | None
    policy_family: str | None
    protocol_version: str | None
    schema_version: str | None
    tasks_version: str | None
    probes_version: str | None
    visual_noise: str | None
    conflictvla_version: str | None
    libero_distribution: str | None
    mujoco_version: str | None
    robosuite_version: str | None
    numpy_version: str | None
    rounding_kernel: str | None


def settings_of_jobs(policy: PolicyInfo, jobs: Iterable[Job], versions: Versions) -> Iterator[RunSettings]:
    """The settings of rollouts to be run, each once."""
    yield from dict.fromkeys(
        RunSettings(
            policy_revision=policy.revision,
            policy_settings=json.dumps(policy.settings, sort_keys=True),
            policy_family=job.policy_family or policy.family,
            protocol_version=PROTOCOL_VERSION,
            schema_version=ROLLOUT_SCHEMA_VERSION,
            **_tasks_versions(job.instance.language_probe, job.instance.tasks_version),
            visual_noise=str(job.visual_noise) if job.visual_probe is VisualProbe.V4 else None,
            conflictvla_version=versions.conflictvla,
            libero_distribution=versions.libero_distribution,
            mujoco_version=versions.mujoco,
            robosuite_version=versions.robosuite,
            numpy_version=versions.numpy,
            rounding_kernel=versions.rounding_kernel,
        )
        for job in jobs
    )


def settings_of_record(record: EpisodeRecord) -> RunSettings:
    """The settings of a recorded rollout.

    Raises:
        DatasetError: A column that holds JSON holds something else.
    """
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
        ValueError: It is not theirs, as ``TypeError``.
    """
    return RunSettings(**json.loads(text))


def joined(first: RunSettings, second: RunSettings) -> RunSettings:
    """The settings of two sets of rollouts that do not differ."""
    values = {
        field.name: getattr(first, field.name) if getattr(second, field.name) is None else getattr(second, field.name)
        for field in fields(RunSettings)
    }
    return RunSettings(**values)


def differences(there: RunSettings, here: RunSettings) -> Sequence[str]:
    """The settings in which two sets of rollouts differ, with the values of both."""
    found: list[str] = []
    for field in fields(RunSettings):
        before, now = getattr(there, field.name), getattr(here, field.name)
        if before is None or now is None or before == now:
            continue
        if field.name == "policy_settings":
            found.extend(_policy_differences(json.loads(before), json.loads(now)))
        else:
            found.append(f"{field.name} ({before} there, {now} here)")
    return found


def _policy_differences(before: dict[str, Any], now: dict[str, Any]) -> Iterator[str]:
    for name in sorted(before.keys() | now.keys()):
        if before.get(name) != now.get(name):
            yield f"policy_settings.{name} ({before.get(name)} there, {now.get(name)} here)"


def _tasks_versions(probe: LanguageProbe, version: str) -> dict[str, str | None]:
    of_tasks = probe is LanguageProbe.W0
    return {"tasks_version": version if of_tasks else None, "probes_version": None if of_tasks else version}
