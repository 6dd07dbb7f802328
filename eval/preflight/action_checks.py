"""Checks of what a policy gives: how many actions, in which units, how repeatably and how fast."""

from __future__ import annotations

import statistics

from ...toolkit.counting import counted
from .measurements import Judgement, Measurements

LONG_CHUNK = 50
LOUD, FAINT = 1.5, 0.05
"""Largest action components that look like other units: a spread-out scale, and metres taken for LIBERO's ±1."""

FULL_ROLLOUTS, MEAN_HORIZON = 14_530, 330
FULL_DAYS = 7.0
"""A full evaluation that takes longer on one worker is warned of."""


def check_chunk_length(measured: Measurements) -> Judgement:
    """Whether all chunks have one length, and the policy looks often enough."""
    lengths = sorted(set(measured.drive.chunks))
    if len(lengths) > 1:
        detail = f"{lengths[0]} to {lengths[-1]} actions a chunk"
        return Judgement(verdict="warn", detail=detail, advice="fix it with ?replan_steps=N")
    if lengths[0] > LONG_CHUNK:
        detail = f"{lengths[0]} actions a chunk: {lengths[0] / 20:.1f} s without looking"
        return Judgement(verdict="warn", detail=detail, advice="cut it with ?replan_steps=N")
    return Judgement(verdict="pass", detail=f"{counted(lengths[0], 'action')} a chunk")


def check_action_range(measured: Measurements) -> Judgement:
    """Whether actions are in LIBERO's units."""
    largest = measured.largest
    detail = f"largest arm component {largest:.3g}"
    if largest > LOUD:
        advice = "LIBERO takes -1 to 1: give actions in its units (±1 is 5 cm, 0.5 rad), un-normalised once"
        return Judgement(verdict="fail", detail=detail, advice=advice)
    if largest < FAINT:
        advice = "it hardly moves: are these metres and radians? ±1 is 5 cm and 0.5 rad"
        return Judgement(verdict="fail", detail=detail, advice=advice)
    if largest > 1.0 + 1e-6:
        advice = "what exceeds 1 is clipped: check the statistics that un-normalise"
        return Judgement(verdict="warn", detail=detail, advice=advice)
    return Judgement(verdict="pass", detail=detail)


def check_gripper_sign(measured: Measurements) -> Judgement:
    """Whether -1 opens: at the start the hand is empty and far from everything, so it should stay open."""
    start, lowest = float(measured.first[:, 6].mean()), float(measured.drive.actions[:, 6].min())
    detail = f"{start:+.2f} at the start, where the empty hand should stay open (-1)"
    if start < -0.1:
        return Judgement(verdict="pass", detail=detail)
    if start <= 0.1:
        advice = "0 neither opens nor closes: is the gripper un-normalised? If 0 means closed, ?gripper=open_high"
        return Judgement(verdict="warn", detail=detail, advice=advice)
    advice = "?gripper=flip" if lowest < -0.1 else "?gripper=flip, or ?gripper=open_high if it gives 0 to 1"
    return Judgement(verdict="fail", detail=detail, advice=advice)


def check_determinism(measured: Measurements) -> Judgement:
    """Whether equal questions get equal answers, also after other episodes."""
    if measured.noise > 0.0:
        detail = f"two equal questions under one seed differ by {measured.noise:.3g}"
        advice = "seed the model in reset from episode.seed; where no seed reaches it, pairs carry this noise"
        return Judgement(verdict="warn", detail=detail, advice=advice)
    assert measured.drive.chunks  # so that an episode lies in between, also where this is the only check
    later = measured.difference_now()
    if later > 0.0:
        detail = f"after other episodes the first answer differs by {later:.3g}"
        advice = "something is left over from earlier episodes: clear queues and histories in reset"
        return Judgement(verdict="fail", detail=detail, advice=advice)
    return Judgement(verdict="pass", detail="equal questions, equal answers, also after other episodes")


def check_latency(measured: Measurements) -> Judgement:
    """Whether a full evaluation takes days or weeks."""
    # The first answer may include loading and compiling.
    answer_s = statistics.median(measured.drive.answers_s[1:] or measured.drive.answers_s)
    actions = statistics.mean(measured.drive.chunks)
    days = FULL_ROLLOUTS * MEAN_HORIZON * (answer_s / actions) / 86_400
    detail = (
        f"{1000 * answer_s:.0f} ms an answer; all {FULL_ROLLOUTS:,} rollouts: {days:.1f} days of answers on one worker"
    )
    if days > FULL_DAYS:
        advice = "fewer --cases or --init-states, more --workers, or longer chunks"
        return Judgement(verdict="warn", detail=detail, advice=advice)
    return Judgement(verdict="pass", detail=detail)
