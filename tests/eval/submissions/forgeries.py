"""Forged submissions: honest rollouts changed, each under the check that has to catch it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from conflictvla.builders.rollouts.schema import Rollout
from conflictvla.eval.rollouts.recorder import Recorder
from conflictvla.toolkit.arrays import Float32Array
from conflictvla.toolkit.probes.visual_settings import VisualSettings, draw_visual_settings, visual_settings_json
from conflictvla.toolkit.prompts import PLACEBO, prompt_sha256
from conflictvla.toolkit.records import VisualProbe

from .recorded import SCENES, under_prompt, with_episode

REFERENCE, FIRST, SECOND = 0, 1, 2
HELD_STILL = 5

Forge = Callable[[list[Rollout]], list[Rollout]]
FORGERIES: dict[str, tuple[str, Forge]] = {}


def forgery(check: str) -> Callable[[Forge], Forge]:
    """Enter a forgery under the check that has to catch it."""

    def enter(forge: Forge) -> Forge:
        FORGERIES[forge.__name__] = check, forge
        return forge

    return enter


def changed(rollouts: list[Rollout], row: int, **changes: object) -> list[Rollout]:
    return [*rollouts[:row], with_episode(rollouts[row], **changes), *rollouts[row + 1 :]]


def with_frames(rollout: Rollout, **frames: Float32Array) -> Rollout:
    return replace(rollout, frames=rollout.frames | {name.replace("__", "."): v for name, v in frames.items()})


def cut(rollout: Rollout, steps: int) -> Rollout:
    frames = {name: values[:steps] for name, values in rollout.frames.items()}
    return replace(rollout, frames=frames, sim_states=rollout.sim_states[: steps + 1])


def relabelled(rollout: Rollout, like: Rollout) -> Rollout:
    """The recording of one rollout under the name of another."""
    own = (
        "success",
        "success_step",
        "end",
        "moving_at_end",
        "final_eef_pos_m",
        "final_target_pos_m",
    )
    return with_episode(
        replace(like, frames=rollout.frames, sim_states=rollout.sim_states),
        **{name: getattr(rollout.episode, name) for name in own},
        step_goals=None,
        step_goal_met=None,
    )


@forgery("copies")
def a_failure_sold_as_a_success_of_equal_actions(r: list[Rollout]) -> list[Rollout]:
    return changed(r, FIRST, success=False, success_step=None, end="horizon")


@forgery("states")
def a_failure_turned_into_a_success(r: list[Rollout]) -> list[Rollout]:
    return changed(r, HELD_STILL, success=True, success_step=r[HELD_STILL].episode.horizon, end="success")


@forgery("ends")
def a_success_turned_into_a_failure(r: list[Rollout]) -> list[Rollout]:
    return changed(r[:3], FIRST, success=False, success_step=None, end="horizon")


@forgery("ends")
def a_failure_cut_short(r: list[Rollout]) -> list[Rollout]:
    return [*r[:HELD_STILL], cut(r[HELD_STILL], 100)]


@forgery("reading")
def a_failure_made_longer_than_the_horizon(r: list[Rollout]) -> list[Rollout]:
    held = r[HELD_STILL]
    frames = {name: np.concatenate([values, values[-5:]]) for name, values in held.frames.items()}
    return [*r[:HELD_STILL], replace(held, frames=frames)]


@forgery("ends")
def a_success_claimed_before_the_end(r: list[Rollout]) -> list[Rollout]:
    return changed(r, REFERENCE, success_step=(r[REFERENCE].episode.success_step or 0) - 5)


def as_refused(rollout: Rollout, **changes: object) -> Rollout:
    """The rollout as if the policy had refused before its last two actions."""
    refused = {
        "end": "refused",
        "refusal_kind": "refusal",
        "refusal_text": "No.",
        "success": False,
        "moving_at_end": False,
    }
    step = len(rollout.frames["action"]) - 2
    return with_episode(rollout, **{**refused, "success_step": None, "refusal_step": step, **changes})


@forgery("ends")
def a_success_called_a_refusal(r: list[Rollout]) -> list[Rollout]:
    return [r[0], as_refused(r[FIRST]), *r[2:]]


@forgery("replay")
def a_success_called_a_refusal_with_its_last_actions_at_rest(r: list[Rollout]) -> list[Rollout]:
    action = r[SECOND].frames["action"].copy()
    action[-40:] = 0.0
    return [*r[:SECOND], as_refused(with_frames(r[SECOND], action=action))]


@forgery("states")
def a_refusal_after_the_goal_was_reached(r: list[Rollout]) -> list[Rollout]:
    done = r[FIRST]
    scene = SCENES.scene(done.episode.suite, done.episode.base_task)
    scene.show(done.sim_states[-1])
    recorder = Recorder(scene, done.episode.targets)
    recorder.append(np.zeros(7, np.float32))
    reached = recorder.finish().frames
    frames = {name: np.concatenate([values, reached[name], reached[name]]) for name, values in done.frames.items()}
    states = np.concatenate([done.sim_states, done.sim_states[-1:], done.sim_states[-1:]])
    return [r[0], as_refused(replace(done, frames=frames, sim_states=states)), *r[2:]]


@forgery("reading")
def a_refusal_without_a_word(r: list[Rollout]) -> list[Rollout]:
    return changed(r, HELD_STILL, end="refused")


@forgery("reading")
def a_refusal_that_succeeds(r: list[Rollout]) -> list[Rollout]:
    return [r[0], as_refused(r[FIRST], success=True, success_step=3), *r[2:]]


@forgery("ends")
def a_failure_excused_as_an_error_of_the_policy(r: list[Rollout]) -> list[Rollout]:
    return changed(r, HELD_STILL, end="policy_error")


@forgery("replay")
def states_edited_with_their_frames(r: list[Rollout]) -> list[Rollout]:
    """The recorded approach leaves out a detour: frames and simulator states of other steps, all real."""
    rows = np.r_[0:20, 30:31, 21 : len(r[REFERENCE].frames["action"])]
    frames = {n: v if n == "action" else v[rows] for n, v in r[REFERENCE].frames.items()}
    states = r[REFERENCE].sim_states[np.r_[rows, -1]]
    same = replace(r[REFERENCE], frames=frames, sim_states=states)
    return [same, *(relabelled(same, other) for other in r[FIRST:3])]


@forgery("states")
def an_object_pushed_a_little_each_step(r: list[Rollout]) -> list[Rollout]:
    """No step is off by more than a tenth of what rounding can do, but all of them go the same way."""
    held = r[HELD_STILL]
    scene = SCENES.scene(held.episode.suite, held.episode.base_task)
    assert held.episode.objects is not None
    slot = next(k for k, name in enumerate(held.episode.objects) if name not in held.episode.targets)
    joint = scene.model.body_jntadr[scene.libero.obj_body_id[held.episode.objects[slot]]]
    pushed_m = np.minimum(np.arange(len(held.sim_states)) * 2e-4, 0.05)
    states = held.sim_states.copy()
    states[:, 1 + scene.model.jnt_qposadr[joint]] += pushed_m
    places = held.frames["observation.object_pos_m"].copy()
    places[:, 3 * slot] += pushed_m[:-1].astype(np.float32)
    final = np.array(held.episode.final_object_pos_m)
    final[3 * slot] += pushed_m[-1]
    moved = with_frames(replace(held, sim_states=states), observation__object_pos_m=places)
    return [*r[:HELD_STILL], with_episode(moved, final_object_pos_m=tuple(final.tolist()))]


@forgery("states")
def positions_edited_in_the_frames(r: list[Rollout]) -> list[Rollout]:
    eef = r[HELD_STILL].frames["observation.eef_pos_m"].copy()
    eef[1:] -= 0.05
    return [*r[:HELD_STILL], with_frames(r[HELD_STILL], observation__eef_pos_m=eef)]


@forgery("states")
def targets_moved_away_from_the_gripper(r: list[Rollout]) -> list[Rollout]:
    targets = r[HELD_STILL].frames["observation.target_pos_m"].copy()
    targets[5:, :3] += 0.2
    return [*r[:HELD_STILL], with_frames(r[HELD_STILL], observation__target_pos_m=targets)]


@forgery("states")
def final_position_edited(r: list[Rollout]) -> list[Rollout]:
    return changed(r, HELD_STILL, final_eef_pos_m=(0.0, 0.0, 1.0))


@forgery("replay")
def actions_scaled_down(r: list[Rollout]) -> list[Rollout]:
    return [with_frames(x, action=x.frames["action"] * np.float32(0.5)) for x in r[:3]]


@forgery("replay")
def actions_invented(r: list[Rollout]) -> list[Rollout]:
    rng = np.random.default_rng(0)
    noise = rng.uniform(-0.2, 0.2, r[HELD_STILL].frames["action"].shape).astype(np.float32)
    return [*r[:HELD_STILL], with_episode(with_frames(r[HELD_STILL], action=noise), moving_at_end=True)]


@forgery("ends")
def a_stop_that_nobody_made(r: list[Rollout]) -> list[Rollout]:
    return changed(r, FIRST, moving_at_end=False)


@forgery("states")
def a_step_that_was_never_done(r: list[Rollout]) -> list[Rollout]:
    return changed(r, REFERENCE, step_goal_met=(3,))


@forgery("states")
def an_easier_goal_for_a_step(r: list[Rollout]) -> list[Rollout]:
    return changed(r, REFERENCE, step_goals=("turnoff(flat_stove_1)",))


@forgery("reading")
def a_goal_met_after_the_end(r: list[Rollout]) -> list[Rollout]:
    return changed(r, REFERENCE, step_goal_met=(500,))


@forgery("reading")
def actions_beyond_what_is_executed(r: list[Rollout]) -> list[Rollout]:
    return [with_frames(r[0], action=r[0].frames["action"] * np.float32(3.0)), *r[1:]]


@forgery("copies")
def a_rollout_copied_from_another_initial_state(r: list[Rollout]) -> list[Rollout]:
    return [*r[:4], relabelled(r[FIRST], r[4]), r[HELD_STILL]]


@forgery("starts")
def a_rollout_from_another_initial_state_slightly_changed(r: list[Rollout]) -> list[Rollout]:
    copy = relabelled(r[FIRST], r[4])
    gripper = copy.frames["observation.gripper_pos_m"] + np.float32(1e-4)
    return [*r[:4], with_frames(copy, observation__gripper_pos_m=gripper), r[HELD_STILL]]


@forgery("names")
def pairs_shuffled_between_initial_states(r: list[Rollout]) -> list[Rollout]:
    return [r[0], with_episode(r[1], init_state=1), r[2], r[3], with_episode(r[4], init_state=0), r[5]]


@forgery("tasks")
def pairs_bent_to_another_reference(r: list[Rollout]) -> list[Rollout]:
    return changed(r, FIRST, pair_id="libero_goal/open_the_middle_drawer_of_the_cabinet/reference/P0")


@forgery("tasks")
def instructions_swapped_between_cases(r: list[Rollout]) -> list[Rollout]:
    texts = [
        {"instruction": x.episode.instruction, "prompt_text": x.episode.prompt_text,
         "prompt_sha256": x.episode.prompt_sha256} for x in r[:3]
    ]  # fmt: skip
    return [r[0], with_episode(r[1], **texts[2]), with_episode(r[2], **texts[1]), *r[3:]]


@forgery("tasks")
def a_hint_added_to_the_prompt(r: list[Rollout]) -> list[Rollout]:
    text = r[HELD_STILL].episode.prompt_text + " (this task cannot be done)"
    return changed(r, HELD_STILL, prompt_text=text, prompt_sha256=prompt_sha256(text))


@forgery("reading")
def a_prompt_that_its_hash_does_not_fit(r: list[Rollout]) -> list[Rollout]:
    return changed(r, HELD_STILL, prompt_text="stand still")


@forgery("tasks")
def an_easier_case_of_our_own(r: list[Rollout]) -> list[Rollout]:
    mine = f"{r[FIRST].episode.case_id}-easy/P0"
    name = f"half_refusing/{mine}/init0/seed0"
    return [*r, with_episode(r[FIRST], instance_id=mine, rollout_id=name)]


@forgery("tasks")
def a_case_counted_under_another_family(r: list[Rollout]) -> list[Rollout]:
    return changed(r, FIRST, family=r[SECOND].episode.family)


@forgery("tasks")
def targets_left_out(r: list[Rollout]) -> list[Rollout]:
    return [with_episode(x, targets=()) for x in r]


@forgery("complete")
def failures_left_out(r: list[Rollout]) -> list[Rollout]:
    return r[:HELD_STILL]


@forgery("complete")
def a_seed_picked_for_one_rollout(r: list[Rollout]) -> list[Rollout]:
    name = r[HELD_STILL].episode.rollout_id.replace("seed0", "seed7")
    return changed(r, HELD_STILL, seed=7, rollout_id=name)


@forgery("complete")
def the_better_of_two_initial_states(r: list[Rollout]) -> list[Rollout]:
    return [r[0], r[1], r[3], r[HELD_STILL]]


@forgery("reading")
def an_episode_given_twice(r: list[Rollout]) -> list[Rollout]:
    return [*r, r[HELD_STILL]]


@forgery("complete")
def an_episode_given_twice_under_two_names(r: list[Rollout]) -> list[Rollout]:
    return [*r, with_episode(r[HELD_STILL], rollout_id="another")]


def prompted(rollout: Rollout, text: str) -> Rollout:
    return with_episode(rollout, prompt_text=text, prompt_sha256=prompt_sha256(text))


@forgery("tasks")
def another_prompt_than_the_releases(r: list[Rollout]) -> list[Rollout]:
    return [prompted(x, f"please {x.episode.prompt_text}") for x in r]


@forgery("tasks")
def another_version_of_the_prompt(r: list[Rollout]) -> list[Rollout]:
    return [with_episode(x, prompt_version="0.9") for x in r]


@forgery("tasks")
def another_horizon_than_the_releases(r: list[Rollout]) -> list[Rollout]:
    return [with_episode(x, horizon=x.episode.horizon + 1) for x in r]


@forgery("pairs")
def a_conflict_rollout_given_the_references_prompt(r: list[Rollout]) -> list[Rollout]:
    return [r[0], prompted(r[FIRST], r[REFERENCE].episode.prompt_text), *r[2:]]


@forgery("prompts")
def wordings_of_ones_own(r: list[Rollout]) -> list[Rollout]:
    return [under_prompt(x, "polite", f"please {x.episode.prompt_text}") for x in r]


def placebo(r: Sequence[Rollout]) -> list[Rollout]:
    """The rollouts as if run under the placebo, which no task release holds."""
    return [under_prompt(x, "placebo", PLACEBO.text(x.episode.instruction)) for x in r]


@forgery("tasks")
def a_placebo_in_other_words(r: list[Rollout]) -> list[Rollout]:
    return [*r, *(prompted(x, f"{x.episode.prompt_text}!") for x in placebo(r))]


@forgery("tasks")
def a_placebo_under_another_version(r: list[Rollout]) -> list[Rollout]:
    return [*r, *(with_episode(x, prompt_version="2.0") for x in placebo(r))]


@forgery("tasks")
def a_longer_horizon_under_the_placebo(r: list[Rollout]) -> list[Rollout]:
    return [*r, *(with_episode(x, horizon=x.episode.horizon + 1) for x in placebo(r))]


@forgery("complete")
def a_placebo_rollout_left_out(r: list[Rollout]) -> list[Rollout]:
    return [*r, *placebo(r)[:HELD_STILL]]


@forgery("complete")
def a_reference_of_a_further_seed_of_the_conflicts_left_out(r: list[Rollout]) -> list[Rollout]:
    return [*r, *(at_seed(x, 1) for x in r[1:])]


@forgery("starts")
def a_settled_state_that_fits_no_other(r: list[Rollout]) -> list[Rollout]:
    return changed(r, FIRST, settled_state_sha256="0" * 64)


@forgery("states")
def settled_states_that_fit_each_other_but_not_the_scene(r: list[Rollout]) -> list[Rollout]:
    return [with_episode(x, settled_state_sha256="0" * 64) for x in r[:3]]


@forgery("states")
def another_scene_throughout(r: list[Rollout]) -> list[Rollout]:
    return [with_episode(x, scene_sha256="0" * 64) for x in r[:3]]


@forgery("versions")
def another_simulator(r: list[Rollout]) -> list[Rollout]:
    return [with_episode(x, mujoco_version="3.3.0") for x in r]


@forgery("provenance")
def rollouts_of_two_revisions(r: list[Rollout]) -> list[Rollout]:
    return [with_episode(x, policy_revision="better") if x.episode.init_state else x for x in r]


@forgery("names")
def a_revision_that_hides_what_follows(r: list[Rollout]) -> list[Rollout]:
    return [with_episode(x, policy_revision="v1\u202e\x00") for x in r]


@forgery("names")
def settings_that_flood_the_page(r: list[Rollout]) -> list[Rollout]:
    return [with_episode(x, policy_settings="x" * 10_000) for x in r]


@forgery("states")
def no_states_of_some_steps(r: list[Rollout]) -> list[Rollout]:
    return [*r[:HELD_STILL], replace(r[HELD_STILL], sim_states=r[HELD_STILL].sim_states[::2])]


def seen_under(r: list[Rollout], probe: VisualProbe, materials: Sequence[str] = ()) -> list[Rollout]:
    """The rollouts as if run under a visual probe, in a scene with these materials."""
    made = []
    for rollout in r:
        e = rollout.episode
        visual = draw_visual_settings(
            probe, materials, task_id=f"{e.suite}/{e.base_task}", init_state=e.init_state, seed=e.seed
        )
        name = f"{e.rollout_id}/{probe}"
        settings = visual_settings_json(visual)
        made.append(with_episode(rollout, rollout_id=name, visual_probe=probe, visual_settings=settings))
    return made


@forgery("pictures")
def a_milder_light_than_was_drawn(r: list[Rollout]) -> list[Rollout]:
    mild = visual_settings_json(VisualSettings(brightness=1.01))
    return [with_episode(x, visual_settings=mild) for x in seen_under(r, VisualProbe.V1)]


@forgery("pictures")
def settings_that_are_no_settings(r: list[Rollout]) -> list[Rollout]:
    return [with_episode(x, visual_settings="[]") for x in r]


@forgery("states")
def colours_of_nothing_that_is_there(r: list[Rollout]) -> list[Rollout]:
    return seen_under(r, VisualProbe.V2, ["somewhere_else"])


@forgery("complete")
def one_rollout_under_a_probe_left_out(r: list[Rollout]) -> list[Rollout]:
    return [*r, *seen_under(r, VisualProbe.V1)[:-1]]


def at_seed(rollout: Rollout, seed: int) -> Rollout:
    name = rollout.episode.rollout_id.replace("seed0", f"seed{seed}")
    return with_episode(rollout, seed=seed, rollout_id=name)
