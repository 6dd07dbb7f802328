"""One closed-loop rollout: reset, ask the policy, execute, record."""

from __future__ import annotations

import json

import numpy as np

from ...builders.rollouts.episode_record import EpisodeRecord
from ...builders.rollouts.schema import ROLLOUT_SCHEMA_VERSION, Rollout, rollout_name
from ...toolkit.probes.visual_settings import VisualSettings, visual_settings_json
from ...toolkit.prompts import prompt_sha256, prompt_text
from ...toolkit.records import PROTOCOL_VERSION
from ...toolkit.safety.blocks import print_cost
from ...toolkit.simulation.pictures.appearance import scene_settings
from ...toolkit.simulation.scene import Scene
from ..policies.asking import ask, begin_episode
from ..policies.interface import Episode, Policy, PolicyInfo
from ..policies.observing import observe
from .costs import CostMeter, cost_spec
from .jobs import Job
from .recorder import Recorder
from .versions import Versions


def rollout_id(policy: PolicyInfo, job: Job) -> str:
    """Unique name of a rollout: policy, instance, initial state, seed and visual probe."""
    return rollout_name(policy.name, job.instance.instance_id, job.init_state, job.seed, job.visual_probe)


def run_rollout(scene: Scene, policy: Policy, job: Job, *, versions: Versions) -> Rollout:
    """Execute one rollout to success or horizon.

    Args:
        scene: The scene of the instance's base task; it is reset here.
        policy: The policy.
        job: What it is told, from which initial state, with which seed and under which visual probe.
        versions: Installed software.

    Raises:
        PolicyError: The policy raised, or its actions cannot be executed; its own ``PolicyError`` passes unchanged.
    """
    instance = job.instance
    scene.reset(job.init_state)
    settled = scene.state().sha256()
    text = prompt_text(instance.instruction, instance.prompt)
    episode = Episode(instruction=text, init_state=job.init_state, seed=job.seed, instance=instance, scene=scene)
    where = rollout_id(policy.info, job)
    visual = scene_settings(scene, job.visual_probe, init_state=job.init_state, seed=job.seed, noise=job.visual_noise)
    recorder = Recorder(scene, instance.targets)
    meter = CostMeter(scene, cost_spec(scene, instance.arm))
    begin_episode(policy, episode, where=where)
    success_step, clipped = _execute(scene, policy, instance.horizon, recorder, where, visual)
    recording, things = recorder.finish(), recorder.things
    cost = meter.finish(recorder, recording)
    final = {name: tuple(values.tolist()) for name, values in recording.final.items()}
    return Rollout(
        episode=EpisodeRecord(
            rollout_id=where,
            arm=instance.arm,
            instance_id=instance.instance_id,
            case_id=instance.case_id,
            pair_id=instance.pair_id,
            suite=instance.suite,
            base_task=instance.base_task,
            base_task_index=instance.base_task_index,
            family=instance.family,
            level=instance.level,
            prompt=instance.prompt,
            instruction=instance.instruction,
            prompt_text=text,
            prompt_sha256=prompt_sha256(text),
            language_probe=instance.language_probe,
            visual_probe=job.visual_probe,
            visual_settings=visual_settings_json(visual),
            init_state=job.init_state,
            seed=job.seed,
            horizon=instance.horizon,
            success=success_step is not None,
            success_step=success_step,
            end="horizon" if success_step is None else "success",
            targets=instance.targets,
            final_eef_pos_m=final["observation.eef_pos_m"],
            final_target_pos_m=final["observation.target_pos_m"],
            objects=things.objects,
            fixtures=things.fixtures,
            goal_entities=things.goal,
            final_object_pos_m=final["observation.object_pos_m"],
            final_object_quat_wxyz=final["observation.object_quat_wxyz"],
            final_gripper_contact=final["observation.gripper_contact"],
            clipped_actions=clipped,
            cost=cost.result.total,
            cost_amounts=cost.result.amounts,
            cost_spec=print_cost(cost.spec),
            policy_name=policy.info.name,
            policy_revision=policy.info.revision,
            policy_settings=json.dumps(policy.info.settings, sort_keys=True),
            scene_sha256=scene.scene_sha256,
            settled_state_sha256=settled,
            protocol_version=PROTOCOL_VERSION,
            tasks_version=instance.tasks_version,
            schema_version=ROLLOUT_SCHEMA_VERSION,
            conflictvla_version=versions.conflictvla,
            libero_distribution=versions.libero_distribution,
            mujoco_version=versions.mujoco,
            robosuite_version=versions.robosuite,
            numpy_version=versions.numpy,
            rounding_kernel=versions.rounding_kernel,
        ),
        frames=recording.frames,
        sim_states=recording.sim_states,
    )


def _execute(
    scene: Scene, policy: Policy, horizon: int, recorder: Recorder, where: str, visual: VisualSettings | None
) -> tuple[int | None, int]:
    """Run the closed loop.

    Returns:
        After how many actions the goal was reached, or None; and how many actions had to be clipped.
    """
    done = clipped = 0
    while done < horizon:
        chunk = ask(policy, observe(scene, done, visual), where=f"{where}: step {done}")
        for action in chunk[: horizon - done]:
            # What is recorded is what is executed: rounded to float32 first.
            asked = action.astype(np.float32)
            executed = np.clip(asked, -1.0, 1.0)
            clipped += bool((executed != asked).any())
            recorder.append(executed)
            scene.step(executed)
            done += 1
            if scene.succeeded():
                return done, clipped
    return None, clipped
