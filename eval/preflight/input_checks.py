"""Checks of what reaches a policy: all of the prompt, the pictures the right way up, the state as in training."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import numpy as np

from ...toolkit.arrays import Image
from ...toolkit.prompts import PREMISE_CHECK
from ..policies.conventions import Turn
from ..policies.interface import Observation, Policy
from .action_checks import LOUD
from .measurements import Judgement, Measurements
from .policy_trial import LONGEST_SHOWN, Change, difference

NEARER_M, MOVED_M = 0.03, 0.03
"""By how much another convention must bring the gripper nearer to be called better; the least that is an approach."""

OUT_OF_RANGE = "not looked at: actions out of range lead anywhere"

TURNS: dict[tuple[bool, bool], Turn] = {
    (False, False): "upright",
    (True, False): "rotated",
    (False, True): "raw",
    (True, True): "mirrored",
}
"""Names of the turns by whether the picture is turned left to right, and upside down, against the scene as it looks."""


def check_prompt(measured: Measurements) -> Judgement:
    """Whether the instruction reaches the policy."""
    detail = f"{len(measured.prompts)} other instructions change the actions by up to {measured.prompt_effect:.3g}"
    if measured.ignores_prompts:
        advice = "the instruction makes no difference: pass episode.instruction on to the model, in each episode"
        return Judgement(verdict="fail", detail=detail, advice=advice)
    return Judgement(verdict="pass", detail=detail)


def check_long_prompt(measured: Measurements) -> Judgement:
    """Whether the end of a long prompt reaches the policy."""
    if measured.ignores_prompts:
        return Judgement(verdict="warn", detail="not looked at: no prompt makes a difference")
    bench = measured.bench
    own, *others = (PREMISE_CHECK.text(text) for text in (bench.instruction, *measured.prompts))
    answer = bench.ask(own)
    effect = max(difference(answer, bench.ask(other)) for other in others)
    detail = f"other instructions behind P1's premise check change the actions by up to {effect:.3g}"
    if effect <= measured.noise:
        advice = "the end of a long prompt is lost: raise the tokenizer's maximal length, or run P0 only"
        return Judgement(verdict="fail", detail=detail, advice=advice)
    return Judgement(verdict="pass", detail=detail)


def check_pictures(measured: Measurements) -> Judgement:
    """Whether pictures reach the policy."""
    if not measured.drive.views:
        advice = "right for a policy that works from the state alone"
        return Judgement(verdict="warn", detail="the policy asks for none", advice=advice)
    effect = measured.difference_now(_change_pictures(np.zeros_like))
    detail = f"black ones change the actions by {effect:.3g}"
    if effect <= measured.noise:
        advice = "pictures are asked for and make no difference: do they reach the model, under the right names?"
        return Judgement(verdict="fail", detail=detail, advice=advice)
    return Judgement(verdict="pass", detail=detail)


def check_picture_turn(measured: Measurements) -> Judgement:
    """Whether pictures are turned as in training: a policy then comes nearest to its target."""
    if not measured.drive.views:
        return Judgement(verdict="pass", detail="no pictures")
    if measured.largest > LOUD:
        return Judgement(verdict="warn", detail=OUT_OF_RANGE)
    approaches_m = {(False, False): measured.drive.approach_m}
    for sideways, over in list(TURNS)[1:]:
        change = _change_pictures(lambda image, s=sideways, o=over: image[:: -1 if o else 1, :: -1 if s else 1])  # type: ignore[misc]
        approaches_m[sideways, over] = measured.bench.drive(measured.steps, change).approach_m
    best = max(approaches_m, key=lambda turn: approaches_m[turn])
    advice = _turn_advice(measured.bench.policy, best)
    return _compare(measured, approaches_m[best], "with the pictures turned otherwise", advice)


def check_state_layout(measured: Measurements) -> Judgement:
    """Whether the state's rotation is written as in training."""
    if measured.difference_now(_without_state) <= measured.noise:
        return Judgement(verdict="pass", detail="the policy does not use the state")
    if measured.largest > LOUD:
        return Judgement(verdict="warn", detail=OUT_OF_RANGE)
    approach_m = measured.bench.drive(measured.steps, _with_antipode).approach_m
    advice = "?axis_angle=shortest: the policy was trained on angles up to pi; or ?axis_angle=robosuite if that is set"
    return _compare(measured, approach_m, "with the rotation's antipode in the state", advice)


def check_refusal(measured: Measurements) -> Judgement:
    """Whether a refusal or a question arrives, where the instruction is impossible; a policy need not have one."""
    conflicts = measured.conflicts
    given = [refusal for refusal in map(measured.bench.refusal_of, conflicts) if refusal is not None]
    if not given:
        detail = f"none of {len(conflicts)} impossible instructions is refused in words: scored by its motion alone"
        return Judgement(verdict="pass", detail=detail)
    kinds = " and ".join(f"{sum(r.kind == kind for r in given)} {kind}s" for kind in sorted({r.kind for r in given}))
    said = given[0].text[:LONGEST_SHOWN]
    return Judgement(verdict="pass", detail=f"{kinds} to {len(conflicts)} impossible instructions, such as '{said}'")


def _compare(measured: Measurements, other_m: float, otherwise: str, advice: str) -> Judgement:
    """A convention judged by how near it brings the gripper to a target, another one beside it."""
    approach_m = measured.drive.approach_m
    gain_m = other_m - approach_m
    detail = f"{100 * approach_m:.0f} cm nearer to a target"
    if gain_m >= NEARER_M:
        detail += f", {100 * (approach_m + gain_m):.0f} cm {otherwise}"
        return Judgement(verdict="fail", detail=detail, advice=advice)
    if approach_m < MOVED_M:
        advice = "it goes for no target either way, so this cannot be judged: is the task one it was trained on?"
        return Judgement(verdict="warn", detail=detail, advice=advice)
    return Judgement(verdict="pass", detail=f"{detail}, no more {otherwise}")


def _turn_advice(policy: Policy, best: tuple[bool, bool]) -> str:
    conventions = getattr(policy, "conventions", None)
    if conventions is None:
        ways = {(True, False): "left to right", (False, True): "top to bottom", (True, True): "by 180 degrees"}
        return f"turn the pictures {ways.get(best, 'as they are')} before the model sees them"
    now = next(turn for turn, name in TURNS.items() if name == conventions.images)
    return f"?images={TURNS[now[0] != best[0], now[1] != best[1]]}"


def _change_pictures(change: Callable[[Image], Image]) -> Change:
    def changed(observation: Observation) -> Observation:
        return dataclasses.replace(
            observation, camera=lambda name, size: np.ascontiguousarray(change(observation.camera(name, size)))
        )

    return changed


def _without_state(observation: Observation) -> Observation:
    zeros = {name: np.zeros_like(getattr(observation, name)) for name in ("state", "eef_pos_m", "gripper_pos_m")}
    return dataclasses.replace(observation, **zeros)


def _with_antipode(observation: Observation) -> Observation:
    """The same rotation, written the other way round."""
    state = np.array(observation.state)
    angle = np.linalg.norm(state[3:6])
    state[3:6] *= 1.0 - 2.0 * np.pi / angle if angle > 0.0 else 1.0
    return dataclasses.replace(observation, state=state, eef_quat_wxyz=-observation.eef_quat_wxyz)
