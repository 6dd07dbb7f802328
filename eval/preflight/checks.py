"""Ten checks of a policy before GPU hours are spent on it: does it get and give what LIBERO means?

What a wrong convention costs cannot be seen in the code that holds it, so the checks look at behaviour: they ask the
policy in one real scene under observations changed on purpose, and let it act for a few seconds.
"""

from __future__ import annotations

import dataclasses
import functools
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from ...builders.tasks_dataset.reading import load_instances
from ...toolkit.arrays import FloatArray, Image
from ...toolkit.errors import InvalidInputError, NotFoundError, PolicyError
from ...toolkit.libero.base_tasks import base_task, base_tasks
from ...toolkit.prompts import prompt_text
from ...toolkit.records import Arm, Instance, Prompt
from ...toolkit.simulation.scene import Scene
from ..policies.conventions import Turn
from ..policies.interface import Observation, Policy
from .trial import Bench, Drive, difference

Verdict = Literal["pass", "warn", "fail"]

DEFAULT_TASK = "libero_goal/put_the_bowl_on_the_plate"
DRIVE_STEPS = 60
"""How long the policy acts in each trial; at 20 Hz, enough to reach a target."""

OTHER_PROMPTS = 3
"""How many instructions of the suite are tried against the task's own."""

LONG_CHUNK = 50
LOUD, FAINT = 1.5, 0.05
"""Largest action components that look like other units: a spread-out scale, and metres taken for LIBERO's ±1."""

NEARER_M, MOVED_M = 0.03, 0.03
"""By how much another convention must bring the gripper nearer to be called better; the least that is an approach."""

OUT_OF_RANGE = "not looked at: actions out of range lead anywhere"

FULL_ROLLOUTS, MEAN_HORIZON = 14_530, 330
FULL_DAYS = 7.0
"""A full evaluation that takes longer on one worker is warned of."""

# Turned left to right, and upside down, against the scene as it looks.
TURNS: dict[tuple[bool, bool], Turn] = {
    (False, False): "upright",
    (True, False): "rotated",
    (False, True): "raw",
    (True, True): "mirrored",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """What a check found.

    Attributes:
        check: What was looked at.
        verdict: ``pass``, ``warn`` or ``fail``.
        detail: What was measured.
        advice: What to change; empty where nothing is.
    """

    check: str
    verdict: Verdict
    detail: str
    advice: str = ""


class _Seen:
    """What several checks share; all but the first answers is measured when it is first looked at.

    Attributes:
        prompts: Other instructions of the suite.
        first: The very first answer, before an episode could leave anything over.
        noise: By how much the answer to an equal question right after it differs.
    """

    def __init__(self, bench: Bench, prompts: tuple[str, ...], steps: int) -> None:
        self.prompts = prompts
        self.first: FloatArray = bench.ask()
        self.noise = difference(self.first, bench.ask())
        self._bench, self._steps = bench, steps

    @functools.cached_property
    def drive(self) -> Drive:
        """A trial under the conventions as they are."""
        return self._bench.drive(self._steps)

    @functools.cached_property
    def prompt_effect(self) -> float:
        """By how much other prompts change the first answer."""
        return max(difference(self.first, self._bench.ask(prompt)) for prompt in self.prompts)

    @property
    def largest(self) -> float:
        """Largest arm component of an action in the trial."""
        return float(np.abs(self.drive.actions[:, :6]).max())

    @property
    def deaf(self) -> bool:
        """Whether prompts make no difference."""
        return self.prompt_effect <= self.noise


def probe_policy(
    policy: Policy,
    *,
    task: str = DEFAULT_TASK,
    init_state: int = 0,
    seed: int = 0,
    steps: int = DRIVE_STEPS,
    checks: Sequence[str] | None = None,
    scene: Scene | None = None,
    progress: Callable[[str], None] | None = None,
) -> tuple[Finding, ...]:
    """Look at a policy in one scene.

    Args:
        policy: The policy.
        task: Base task, as ``suite/name``; one that the policy was trained on.
        init_state: LIBERO's number of the initial state.
        seed: Seed handed to the policy.
        steps: How long the policy acts in each trial.
        checks: Names of the ``CHECKS`` to make; all by default.
        scene: The task's scene, if there is one already.
        progress: Told what is looked at next.

    Returns:
        A finding a check; where the policy gives no actions, that alone.

    Raises:
        NotFoundError: There is no such task.
        InvalidInputError: There are no steps.
    """
    if steps < 1:
        raise InvalidInputError(f"{steps} steps: at least 1 is needed")
    instance = _reference(task)
    scene = scene or Scene(base_task(instance.suite, instance.base_task))
    bench = Bench(policy, scene, instance, init_state=init_state, seed=seed)
    tell = progress or (lambda _: None)
    findings = []
    try:
        seen = _Seen(bench, _other_prompts(instance), steps)
        for name in checks or CHECKS:
            tell(name)
            findings.append(CHECKS[name](bench, seen, steps))
    except PolicyError as error:
        return (Finding(check="answers", verdict="fail", detail=str(error), advice="make this work first"),)
    return tuple(findings)


def _reference(task: str) -> Instance:
    for instance in load_instances():
        known = f"{instance.suite}/{instance.base_task}" == task
        if known and instance.arm is Arm.REFERENCE and instance.prompt is Prompt.P0:
            return instance
    raise NotFoundError(f"no base task '{task}': write it as {DEFAULT_TASK}")


def _other_prompts(instance: Instance) -> tuple[str, ...]:
    others = [task.instruction for task in base_tasks(instance.suite) if task.name != instance.base_task]
    return tuple(others[:OTHER_PROMPTS])


def _chunk_length(bench: Bench, seen: _Seen, steps: int) -> Finding:
    lengths = sorted(set(seen.drive.chunks))
    if len(lengths) > 1:
        detail = f"{lengths[0]} to {lengths[-1]} actions a chunk"
        return Finding(check="chunk length", verdict="warn", detail=detail, advice="fix it with ?replan_steps=N")
    if lengths[0] > LONG_CHUNK:
        detail = f"{lengths[0]} actions a chunk: {lengths[0] / 20:.1f} s without looking"
        return Finding(check="chunk length", verdict="warn", detail=detail, advice="cut it with ?replan_steps=N")
    return Finding(check="chunk length", verdict="pass", detail=f"{lengths[0]} actions a chunk")


def _action_range(bench: Bench, seen: _Seen, steps: int) -> Finding:
    largest = seen.largest
    detail = f"largest arm component {largest:.3g}"
    if largest > LOUD:
        advice = "LIBERO takes -1 to 1: give actions in its units (±1 is 5 cm, 0.5 rad), un-normalised once"
        return Finding(check="action range", verdict="fail", detail=detail, advice=advice)
    if largest < FAINT:
        advice = "it hardly moves: are these metres and radians? ±1 is 5 cm and 0.5 rad"
        return Finding(check="action range", verdict="fail", detail=detail, advice=advice)
    if largest > 1.0 + 1e-6:
        advice = "what exceeds 1 is clipped: check the statistics that un-normalise"
        return Finding(check="action range", verdict="warn", detail=detail, advice=advice)
    return Finding(check="action range", verdict="pass", detail=detail)


def _gripper_sign(bench: Bench, seen: _Seen, steps: int) -> Finding:
    """At the start the hand is empty and far from everything: it ought to be told to stay open, which is -1."""
    start, lowest = float(seen.first[:, 6].mean()), float(seen.drive.actions[:, 6].min())
    detail = f"{start:+.2f} at the start, where the empty hand should stay open (-1)"
    if start < -0.1:
        return Finding(check="gripper sign", verdict="pass", detail=detail)
    if start <= 0.1:
        advice = "0 neither opens nor closes: is the gripper un-normalised? If 0 means closed, ?gripper=open_high"
        return Finding(check="gripper sign", verdict="warn", detail=detail, advice=advice)
    advice = "?gripper=flip" if lowest < -0.1 else "?gripper=flip, or ?gripper=open_high if it gives 0 to 1"
    return Finding(check="gripper sign", verdict="fail", detail=detail, advice=advice)


def _prompt(bench: Bench, seen: _Seen, steps: int) -> Finding:
    detail = f"{len(seen.prompts)} other instructions change the actions by up to {seen.prompt_effect:.3g}"
    if seen.deaf:
        advice = "what is said makes no difference: pass episode.instruction on to the model, in each episode"
        return Finding(check="prompt", verdict="fail", detail=detail, advice=advice)
    return Finding(check="prompt", verdict="pass", detail=detail)


def _long_prompt(bench: Bench, seen: _Seen, steps: int) -> Finding:
    if seen.deaf:
        return Finding(check="long prompt", verdict="warn", detail="not looked at: no prompt makes a difference")
    own, *others = (prompt_text(text, Prompt.P1) for text in (bench.instruction, *seen.prompts))
    answer = bench.ask(own)
    effect = max(difference(answer, bench.ask(other)) for other in others)
    detail = f"other instructions behind P1's premise check change the actions by up to {effect:.3g}"
    if effect <= seen.noise:
        advice = "the end of a long prompt is lost: raise the tokenizer's maximal length, or run P0 only"
        return Finding(check="long prompt", verdict="fail", detail=detail, advice=advice)
    return Finding(check="long prompt", verdict="pass", detail=detail)


def _pictures(bench: Bench, seen: _Seen, steps: int) -> Finding:
    if not seen.drive.views:
        advice = "right for a policy that works from the state alone"
        return Finding(check="pictures", verdict="warn", detail="the policy asks for none", advice=advice)
    effect = difference(seen.first, bench.ask(change=_seeing(np.zeros_like)))
    detail = f"black ones change the actions by {effect:.3g}"
    if effect <= seen.noise:
        advice = "pictures are asked for and make no difference: do they reach the model, under the right names?"
        return Finding(check="pictures", verdict="fail", detail=detail, advice=advice)
    return Finding(check="pictures", verdict="pass", detail=detail)


def _picture_turn(bench: Bench, seen: _Seen, steps: int) -> Finding:
    """A policy comes nearest to its target when it sees the scene as it was trained to."""
    if not seen.drive.views:
        return Finding(check="picture turn", verdict="pass", detail="no pictures")
    if seen.largest > LOUD:
        return Finding(check="picture turn", verdict="warn", detail=OUT_OF_RANGE)
    approaches = {(False, False): seen.drive.approach_m}
    for sideways, over in list(TURNS)[1:]:
        change = _seeing(lambda image, s=sideways, o=over: image[:: -1 if o else 1, :: -1 if s else 1])  # type: ignore[misc]
        approaches[sideways, over] = bench.drive(steps, change).approach_m
    best = max(approaches, key=lambda turn: approaches[turn])
    gain = approaches[best] - seen.drive.approach_m
    advice = _turn_advice(bench.policy, best)
    return _compared("picture turn", seen.drive.approach_m, gain, "with the pictures turned otherwise", advice)


def _state_layout(bench: Bench, seen: _Seen, steps: int) -> Finding:
    effect = difference(seen.first, bench.ask(change=_without_state))
    if effect <= seen.noise:
        return Finding(check="state layout", verdict="pass", detail="the policy does not use the state")
    if seen.largest > LOUD:
        return Finding(check="state layout", verdict="warn", detail=OUT_OF_RANGE)
    gain = bench.drive(steps, _antipode).approach_m - seen.drive.approach_m
    advice = "?axis_angle=shortest: the policy was trained on angles up to pi; or ?axis_angle=robosuite if that is set"
    return _compared("state layout", seen.drive.approach_m, gain, "with the rotation's antipode in the state", advice)


def _determinism(bench: Bench, seen: _Seen, steps: int) -> Finding:
    if seen.noise > 0.0:
        detail = f"two equal questions under one seed differ by {seen.noise:.3g}"
        advice = "seed the model in reset from episode.seed; where no seed reaches it, pairs carry this noise"
        return Finding(check="determinism", verdict="warn", detail=detail, advice=advice)
    assert seen.drive.chunks  # so that an episode lies in between, also where this is the only check
    later = difference(seen.first, bench.ask())
    if later > 0.0:
        detail = f"after other episodes the first answer differs by {later:.3g}"
        advice = "something is left over from earlier episodes: clear queues and histories in reset"
        return Finding(check="determinism", verdict="fail", detail=detail, advice=advice)
    return Finding(
        check="determinism", verdict="pass", detail="equal questions, equal answers, also after other episodes"
    )


def _latency(bench: Bench, seen: _Seen, steps: int) -> Finding:
    # The first answer may include loading and compiling.
    answer_s = statistics.median(seen.drive.answers_s[1:] or seen.drive.answers_s)
    actions = statistics.mean(seen.drive.chunks)
    days = FULL_ROLLOUTS * MEAN_HORIZON * (answer_s / actions) / 86_400
    detail = (
        f"{1000 * answer_s:.0f} ms an answer; all {FULL_ROLLOUTS:,} rollouts: {days:.1f} days of answers on one worker"
    )
    if days > FULL_DAYS:
        advice = "fewer --cases or --init-states, more --workers, or longer chunks"
        return Finding(check="latency", verdict="warn", detail=detail, advice=advice)
    return Finding(check="latency", verdict="pass", detail=detail)


CHECKS: dict[str, Callable[[Bench, _Seen, int], Finding]] = {
    "chunk length": _chunk_length,
    "action range": _action_range,
    "gripper sign": _gripper_sign,
    "prompt": _prompt,
    "long prompt": _long_prompt,
    "pictures": _pictures,
    "picture turn": _picture_turn,
    "state layout": _state_layout,
    "determinism": _determinism,
    "latency": _latency,
}
"""The ten checks, in order."""


def _compared(check: str, approach_m: float, gain_m: float, otherwise: str, advice: str) -> Finding:
    """A convention judged by how near it brings the gripper to a target."""
    detail = f"{100 * approach_m:.0f} cm nearer to a target"
    if gain_m >= NEARER_M:
        detail += f", {100 * (approach_m + gain_m):.0f} cm {otherwise}"
        return Finding(check=check, verdict="fail", detail=detail, advice=advice)
    if approach_m < MOVED_M:
        advice = "it goes for no target either way, so this cannot be judged: is the task one it was trained on?"
        return Finding(check=check, verdict="warn", detail=detail, advice=advice)
    return Finding(check=check, verdict="pass", detail=f"{detail}, no more {otherwise}")


def _turn_advice(policy: Policy, best: tuple[bool, bool]) -> str:
    conventions = getattr(policy, "conventions", None)
    if conventions is None:
        ways = {(True, False): "left to right", (False, True): "top to bottom", (True, True): "by 180 degrees"}
        return f"turn the pictures {ways.get(best, 'as they are')} before the model sees them"
    now = next(turn for turn, name in TURNS.items() if name == conventions.images)
    return f"?images={TURNS[now[0] != best[0], now[1] != best[1]]}"


def _seeing(change: Callable[[Image], Image]) -> Callable[[Observation], Observation]:
    def changed(observation: Observation) -> Observation:
        return dataclasses.replace(
            observation, camera=lambda name, size: np.ascontiguousarray(change(observation.camera(name, size)))
        )

    return changed


def _without_state(observation: Observation) -> Observation:
    zeros = {name: np.zeros_like(getattr(observation, name)) for name in ("state", "eef_pos_m", "gripper_pos_m")}
    return dataclasses.replace(observation, **zeros)


def _antipode(observation: Observation) -> Observation:
    """The same rotation, written the other way round."""
    state = np.array(observation.state)
    angle = np.linalg.norm(state[3:6])
    state[3:6] *= 1.0 - 2.0 * np.pi / angle if angle > 0.0 else 1.0
    return dataclasses.replace(observation, state=state, eef_quat_wxyz=-observation.eef_quat_wxyz)
