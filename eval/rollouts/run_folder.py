"""The folder of an unfinished run: its settings, and a shard of each finished rollout."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ...builders.rollouts.schema import ROLLOUT_SCHEMA_VERSION, Rollout
from ...builders.rollouts.shards import shard_path, write_shard
from ...toolkit.atomic_files import write_atomic
from ...toolkit.errors import InvalidInputError
from ...toolkit.records import VisualProbe
from ..policies.interface import PolicyInfo
from .jobs import Job
from .rollout import rollout_id
from .versions import Versions

SHARDS = "shards"
SETTINGS_FILE = "run.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFolder:
    """Where a policy's run stores what is finished, until all of it is.

    Attributes:
        path: The folder.
        policy: The policy that is run.
    """

    path: Path
    policy: PolicyInfo

    def claim(self, jobs: Sequence[Job], seeds: Sequence[int], versions: Versions) -> None:
        """Begin a run in the folder, or recognise it as the same run begun before.

        Args:
            jobs: All rollouts of the run.
            seeds: Seeds handed to the policy.
            versions: Installed software.

        Raises:
            InvalidInputError: The folder holds a run with other settings, or cannot be written.
        """
        file = self.path / SETTINGS_FILE
        text = json.dumps(_run_settings(self.policy, jobs, seeds, versions), indent=1, sort_keys=True)
        try:
            if file.exists():
                differing = [*_differences(json.loads(file.read_text(encoding="utf-8")), json.loads(text))]
                if differing:
                    raise InvalidInputError(
                        f"{self.path}: holds an unfinished run with other {', '.join(differing)}; "
                        "continue it with the same settings, or remove the folder"
                    )
                return
            (self.path / SHARDS).mkdir(parents=True, exist_ok=True)
            write_atomic(file, text)
        except OSError as error:
            raise InvalidInputError(f"{self.path.parent}: cannot be written ({error.strerror})") from error

    def store(self, rollout: Rollout) -> None:
        """Write a finished rollout; afterwards an interruption cannot lose it."""
        write_shard(rollout, self.path / SHARDS)

    def shard(self, job: Job) -> Path:
        """File of a rollout; it exists once the rollout is finished."""
        return shard_path(self.path / SHARDS, rollout_id(self.policy, job))

    def remove(self) -> None:
        """Remove the folder with all that it holds."""
        shutil.rmtree(self.path)


def _run_settings(policy: PolicyInfo, jobs: Sequence[Job], seeds: Sequence[int], versions: Versions) -> dict[str, Any]:
    """What a run consists of, as JSON."""
    return {
        "policy": {"name": policy.name, "revision": policy.revision, "settings": policy.settings},
        "rollouts": [_job_key(job) for job in jobs],
        "visual_noise": next((job.visual_noise for job in jobs if job.visual_probe is VisualProbe.V4), None),
        "tasks_versions": sorted({job.instance.tasks_version for job in jobs}),
        "seeds": list(seeds),
        "schema_version": ROLLOUT_SCHEMA_VERSION,
        "versions": {name: getattr(versions, name) for name in versions.__slots__},
    }


def _job_key(job: Job) -> str:
    """A rollout within a run, by which an earlier call is recognised."""
    name = f"{job.instance.instance_id}/init{job.init_state}"
    return name if job.visual_probe is VisualProbe.V0 else f"{name}/{job.visual_probe}"


def _differences(before: Any, now: Any, name: str = "") -> Iterator[str]:
    """The settings in which two runs differ, with their values where these are short."""
    if isinstance(before, dict) and isinstance(now, dict):
        for key in sorted(before.keys() | now.keys()):
            yield from _differences(before.get(key), now.get(key), f"{name}.{key}" if name else key)
    elif before != now:
        yield name if isinstance(before, list) else f"{name} ({before} there, {now} here)"
