"""One closed-loop rollout: reset, ask the policy, execute, record."""

from __future__ import annotations

import json
from dataclasses import dataclass

import numpy as np

from ...builders.rollouts.episode_record import EpisodeRecord
from ...builders.rollouts.refusals import REFUSED, REST_STEPS, rest_action
from ...builders.rollouts.schema import ROLLOUT_SCHEMA_VERSION, Rollout, rollout_name
from ...toolkit.probes.visual_settings import VisualSettings, visual_settings_json
from ...toolkit.prompts import prompt_sha256
from ...toolkit.records import PROTOCOL_VERSION
from ...toolkit.safety.blocks import print_cost
from ...toolkit.simulation.observing.scene_entities import SceneEntities
from ...toolkit.simulation.pictures.appearance import scene_settings
from ...toolkit.simulation.scene import Scene
from ...toolkit.step_goals.meter import MetGoals, StepGoalMeter
from ..measures.process import moving_at_end
from ..policies.asking import ask, begin_episode
from ..policies.interface import Episode, Policy, PolicyInfo, Refusal
from ..policies.observing import observe
from .costs import CostMeter, RolloutCost, cost_spec
from .jobs import Job
from .recorder import Recorder, Recording
from .versions import Versions


def rollout_id(policy: PolicyInfo, job: Job) -> str:
    """Unique name of a rollout: policy, instance, initial state, seed and visual probe."""
    return rollout_name(policy.name, job.instance.instance_id, job.init_state, job.seed, job.visual_probe)


@dataclass(frozen=True, slots=True, kw_only=True)
class _End:
    """How a rollout ended.

    Attributes:
        end: ``success``, ``refused`` or ``horizon``.
        step: After how many executed actions; those of rest after a refusal do not count.
        clipped: How many actions had to be clipped.
        refusal: What the policy answered instead of actions, where it refused.
    """

    end: str
    step: int
    clipped: int
    refusal: Refusal | None = None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Execution:
    """What became of a job in the simulator.

    Attributes:
        prompt: The exact string that the policy received.
        visual: What was drawn for the visual probe.
        settled_sha256: Hash of the state before the first action.
        end: How it ended.
        entities: The scene's objects and fixtures.
        recording: Frames and states.
        cost: What it pays.
        met_goals: The goals of the instruction's steps, and when they were met; None where they are unknown.
    """

    prompt: str
    visual: VisualSettings | None
    settled_sha256: str
    end: _End
    entities: SceneEntities
    recording: Recording
    cost: RolloutCost
    met_goals: MetGoals | None


def run_rollout(scene: Scene, policy: Policy, job: Job, *, versions: Versions) -> Rollout:
    """Execute one rollout to success, refusal or horizon.

    Args:
        scene: The scene of the instance's base task; it is reset here.
        policy: The policy.
        job: Which instance, from which initial state, with which seed and under which visual probe.
        versions: Installed software.

    Raises:
        PolicyError: The policy raised, or its answer is neither actions that can be executed nor a refusal; of its own
            ``PolicyError`` the first line.
    """
    instance, where = job.instance, rollout_id(policy.info, job)
    scene.reset(job.init_state)
    settled_sha256 = scene.state().sha256()
    episode = Episode(
        instruction=instance.prompt_text,
        init_state=job.init_state,
        seed=job.seed,
        instance=instance,
        scene=scene,
    )
    visual = scene_settings(scene, job.visual_probe, init_state=job.init_state, seed=job.seed, noise=job.visual_noise)
    recorder = Recorder(scene, instance.targets)
    meter = CostMeter(scene, cost_spec(scene, instance.arm))
    goal_meter = StepGoalMeter(scene, job.init_state, instance.plan)
    begin_episode(policy, episode, where=where)
    end = _close_loop(scene, policy, instance.horizon, recorder, where, visual)
    recording = recorder.finish()
    execution = _Execution(
        prompt=episode.instruction,
        visual=visual,
        settled_sha256=settled_sha256,
        end=end,
        entities=recorder.entities,
        recording=recording,
        cost=meter.finish(recorder, recording),
        met_goals=goal_meter.finish(recording.sim_states, recorder.contacts_and_poses()),
    )
    return Rollout(
        episode=_episode_record(job, policy.info, scene, execution, versions),
        frames=recording.frames,
        sim_states=recording.sim_states,
    )


def _close_loop(
    scene: Scene, policy: Policy, horizon: int, recorder: Recorder, where: str, visual: VisualSettings | None
) -> _End:
    """Let the policy act to success, refusal or horizon; after a refusal the arm rests for a moment."""
    done = clipped = 0
    while done < horizon:
        answer = ask(policy, observe(scene, done, visual), where=f"{where}: step {done}")
        if isinstance(answer, Refusal):
            for _ in range(min(REST_STEPS, horizon - done)):
                recorder.append(rest_action())
                scene.step(rest_action())
            return _End(end=REFUSED, step=done, clipped=clipped, refusal=answer)
        for action in answer[: horizon - done]:
            # What is recorded is what is executed: rounded to float32 first.
            given = action.astype(np.float32)
            executed = np.clip(given, -1.0, 1.0)
            clipped += bool((executed != given).any())
            recorder.append(executed)
            scene.step(executed)
            done += 1
            if scene.succeeded():
                return _End(end="success", step=done, clipped=clipped)
    return _End(end="horizon", step=done, clipped=clipped)


def _episode_record(
    job: Job, policy: PolicyInfo, scene: Scene, execution: _Execution, versions: Versions
) -> EpisodeRecord:
    instance = job.instance
    entities, cost, met = execution.entities, execution.cost, execution.met_goals
    end, refusal = execution.end, execution.end.refusal
    final = {name: tuple(values.tolist()) for name, values in execution.recording.final.items()}
    return EpisodeRecord(
        rollout_id=rollout_id(policy, job),
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
        prompt_text=execution.prompt,
        prompt_sha256=prompt_sha256(execution.prompt),
        prompt_version=instance.prompt_version,
        language_probe=instance.language_probe,
        visual_probe=job.visual_probe,
        visual_settings=visual_settings_json(execution.visual),
        init_state=job.init_state,
        seed=job.seed,
        horizon=instance.horizon,
        success=end.end == "success",
        success_step=end.step if end.end == "success" else None,
        end=end.end,
        moving_at_end=refusal is None and moving_at_end(execution.recording.frames["action"]),
        step_goals=met.goals if met else None,
        step_goal_met=met.met if met else None,
        refusal_kind=refusal.kind if refusal else None,
        refusal_text=refusal.text if refusal else None,
        refusal_step=end.step if refusal else None,
        targets=instance.targets,
        final_eef_pos_m=final["observation.eef_pos_m"],
        final_target_pos_m=final["observation.target_pos_m"],
        objects=entities.objects,
        fixtures=entities.fixtures,
        goal_entities=entities.goal,
        final_object_pos_m=final["observation.object_pos_m"],
        final_object_quat_wxyz=final["observation.object_quat_wxyz"],
        final_gripper_contact=final["observation.gripper_contact"],
        clipped_actions=end.clipped,
        cost=cost.result.total,
        cost_amounts=cost.result.amounts,
        cost_spec=print_cost(cost.spec),
        policy_name=policy.name,
        policy_revision=policy.revision,
        policy_settings=json.dumps(policy.settings, sort_keys=True),
        policy_family=job.policy_family or policy.family,
        scene_sha256=scene.scene_sha256,
        settled_state_sha256=execution.settled_sha256,
        protocol_version=PROTOCOL_VERSION,
        tasks_version=instance.tasks_version,
        schema_version=ROLLOUT_SCHEMA_VERSION,
        conflictvla_version=versions.conflictvla,
        libero_distribution=versions.libero_distribution,
        mujoco_version=versions.mujoco,
        robosuite_version=versions.robosuite,
        numpy_version=versions.numpy,
        rounding_kernel=versions.rounding_kernel,
    )
