"""A run: one policy over many instances, recorded shard by shard, finished as one LeRobot data set.

What a run consists of is fixed before it starts and kept beside its shards. Called again with the same settings it
continues where it stopped; with others it refuses, since rollouts under different settings must not be mixed.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..builders.lerobot_dataset import check_lerobot, write_lerobot_dataset
from ..builders.rollout_shards import shard_path, write_shard
from ..toolkit.base_tasks import base_task, check_init_states
from ..toolkit.errors import InvalidInputError
from ..toolkit.records import Arm, Instance
from ..toolkit.simulation.scene_pool import ScenePool
from .policies.policy import Policy
from .provenance import Versions, installed_versions
from .rollout import rollout_id, run_rollout

SHARDS = "shards"
SETTINGS_FILE = "run.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """One rollout to be done."""

    instance: Instance
    init_state: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RunProgress:
    """State of a run after a rollout, or after skipping one done before.

    Attributes:
        done: Rollouts that are finished.
        total: Rollouts of the whole run.
        job: The rollout just finished.
        success: Whether it reached the reference goal; None where it was finished by an earlier call.
    """

    done: int
    total: int
    job: Job
    success: bool | None


def with_references(conflicts: Sequence[Instance], everything: Sequence[Instance]) -> tuple[Instance, ...]:
    """The conflict instances, each base task's after the references they are paired with.

    Args:
        conflicts: Conflict instances to run.
        everything: Where the references are found.

    Raises:
        InvalidInputError: A reference is missing.
    """
    references = {instance.instance_id: instance for instance in everything if instance.arm is Arm.REFERENCE}
    ordered: list[Instance] = []
    for pair_id in dict.fromkeys(conflict.pair_id for conflict in conflicts):
        if pair_id not in references:
            raise InvalidInputError(f"no reference instance '{pair_id}' among the tasks")
        ordered.append(references[pair_id])
        ordered.extend(conflict for conflict in conflicts if conflict.pair_id == pair_id)
    return tuple(ordered)


def run_policy(
    policy: Policy,
    instances: Sequence[Instance],
    out: Path,
    *,
    init_states: Sequence[int],
    seed: int = 0,
    scenes: ScenePool | None = None,
    progress: Callable[[RunProgress], None] | None = None,
) -> Path:
    """Run a policy and leave ``out/<policy name>``, a LeRobot v3.0 data set of its rollouts.

    Args:
        policy: The policy.
        instances: References and conflict instances.
        out: Folder for the data set; shards are kept in ``out/.<policy name>`` until it is finished.
        init_states: LIBERO's numbers of the initial states, each run once.
        seed: Seed handed to the policy.
        scenes: Warm scenes to use; a pool of its own by default.
        progress: Told after each rollout.

    Returns:
        The data set's folder.

    Raises:
        InvalidInputError: The folder holds a run with other settings, or cannot be written.
        PolicyError: The policy failed; what was finished is kept and the run can be continued.
    """
    check_lerobot()
    for suite, name in {(instance.suite, instance.base_task) for instance in instances}:
        check_init_states(base_task(suite, name), init_states)
    jobs = _jobs(instances, init_states)
    versions = installed_versions()
    work, finished = out / f".{policy.info.name}", out / policy.info.name
    settings = _settings(policy, jobs, seed, versions)
    if finished.exists():
        raise InvalidInputError(f"{finished}: exists already; choose another --out or remove it")
    _claim(work, settings)
    paths = _roll_out(policy, jobs, work / SHARDS, seed, versions, scenes or ScenePool(), progress)
    write_lerobot_dataset(paths, finished, repo_id=f"conflictvla/rollouts-{policy.info.name.replace('_', '-')}")
    shutil.rmtree(work)
    return finished


def _jobs(instances: Sequence[Instance], init_states: Sequence[int]) -> list[Job]:
    """Jobs grouped by base task, so that each scene is built once."""
    by_task = sorted(instances, key=lambda instance: (instance.suite, instance.base_task_index))
    return [Job(instance=instance, init_state=state) for instance in by_task for state in init_states]


def _roll_out(
    policy: Policy,
    jobs: Sequence[Job],
    shards: Path,
    seed: int,
    versions: Versions,
    scenes: ScenePool,
    progress: Callable[[RunProgress], None] | None,
) -> list[Path]:
    paths = []
    for number, job in enumerate(jobs, start=1):
        path = shard_path(shards, rollout_id(policy, job.instance, job.init_state, seed))
        success: bool | None = None
        if not path.exists():
            scene = scenes.scene(job.instance.suite, job.instance.base_task)
            rollout = run_rollout(scene, policy, job.instance, init_state=job.init_state, seed=seed, versions=versions)
            write_shard(rollout, shards)
            success = rollout.episode.success
        paths.append(path)
        if progress:
            progress(RunProgress(done=number, total=len(jobs), job=job, success=success))
    return paths


def _settings(policy: Policy, jobs: Sequence[Job], seed: int, versions: Versions) -> dict[str, Any]:
    return {
        "policy": {"name": policy.info.name, "revision": policy.info.revision, "settings": policy.info.settings},
        "rollouts": [f"{job.instance.instance_id}/init{job.init_state}" for job in jobs],
        "tasks_versions": sorted({job.instance.tasks_version for job in jobs}),
        "seed": seed,
        "versions": {name: getattr(versions, name) for name in versions.__slots__},
    }


def _claim(work: Path, settings: dict[str, Any]) -> None:
    """Begin a run in a folder, or recognise it as the same run begun before."""
    file = work / SETTINGS_FILE
    text = json.dumps(settings, indent=1, sort_keys=True)
    try:
        if file.exists():
            before = json.loads(file.read_text(encoding="utf-8"))
            differing = sorted(key for key in settings if before.get(key) != json.loads(text)[key])
            if differing:
                raise InvalidInputError(
                    f"{work}: holds an unfinished run with other {', '.join(differing)}; "
                    "continue it with the same settings, or remove the folder"
                )
            return
        (work / SHARDS).mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    except OSError as error:
        raise InvalidInputError(f"{work.parent}: cannot be written ({error.strerror})") from error
