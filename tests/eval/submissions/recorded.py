"""Real rollouts of a scripted agent, in memory, so that tests can forge copies of them."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from conflictvla.builders.rollouts.schema import Rollout
from conflictvla.builders.rollouts.sim_states import SimStateWriter
from conflictvla.builders.tasks_dataset.reading import load_instances
from conflictvla.eval.policies.interface import Episode
from conflictvla.eval.policies.scripted.agents import Persist, _hold_still
from conflictvla.eval.policies.scripted.motion import Motion
from conflictvla.eval.rollouts.jobs import Job
from conflictvla.eval.rollouts.rollout import run_rollout
from conflictvla.eval.rollouts.versions import installed_versions
from conflictvla.toolkit.prompts import prompt_sha256
from conflictvla.toolkit.records import Arm, Instance, Prompt
from conflictvla.toolkit.simulation.scene_pool import ScenePool

from ..synthetic_rollouts import write_dataset

SUITE, TASK = "libero_goal", "turn_on_the_stove"
INIT_STATES = (0, 1)

SCENES = ScenePool(capacity=4)


class HalfRefusing(Persist):
    """Carries on, but for one case in one initial state, where it holds still."""

    name = "half_refusing"

    def _respond(self, episode: Episode) -> Motion:
        if episode.instance.instance_id == release()[2].instance_id and episode.init_state == 1:
            return _hold_still()
        return super()._respond(episode)


@functools.cache
def release() -> tuple[Instance, ...]:
    """A task release of one base task: its reference and two cases, under P0."""
    mine = [i for i in load_instances() if (i.suite, i.base_task, i.prompt) == (SUITE, TASK, Prompt.P0)]
    reference = next(i for i in mine if i.arm is Arm.REFERENCE)
    first = next(i for i in mine if i.arm is Arm.CONFLICT)
    return reference, first, next(i for i in mine if i.arm is Arm.CONFLICT and i.family is not first.family)


def lite() -> frozenset[str]:
    """A lite selection of that release: its first case."""
    return frozenset({str(release()[1].case_id)})


@functools.cache
def honest() -> tuple[Rollout, ...]:
    """A complete evaluation on that release: reference, first and second case in each initial state."""
    scene, policy = SCENES.scene(SUITE, TASK), HalfRefusing()
    return tuple(
        run_rollout(scene, policy, Job(instance=instance, init_state=state, seed=0), versions=installed_versions())
        for state in INIT_STATES
        for instance in release()
    )


def with_episode(rollout: Rollout, **changes: Any) -> Rollout:
    return replace(rollout, episode=replace(rollout.episode, **changes))


def under_prompt(rollout: Rollout, name: str, text: str) -> Rollout:
    """A P0 rollout as if the policy had received this text, under a prompt condition of this name."""
    ids = ("instance_id", "pair_id", "rollout_id")
    renamed = {key: getattr(rollout.episode, key).replace("/P0", f"/{name}") for key in ids}
    return with_episode(
        rollout, prompt=name, prompt_text=text, prompt_sha256=prompt_sha256(text), prompt_version="1.0", **renamed
    )


def write(folder: Path, rollouts: Sequence[Rollout], *, states: bool = True) -> Path:
    """A dataset of rollouts, with the simulator's states."""
    write_dataset(folder, rollouts)
    if states:
        writer = SimStateWriter(folder)
        for rollout in rollouts:
            writer.add(rollout.sim_states)
        writer.close()
    return folder
