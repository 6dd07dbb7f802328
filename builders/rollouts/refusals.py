"""Refusals and questions of policies as a recording holds them: of which kind, in which words, and the frame of each.

A rollout that a policy refuses to go on with ends two control steps later, in which the arm rests: so every rollout has
frames, from that of the observation that was refused on, and all actions in it were really executed.
"""

from __future__ import annotations

import numpy as np

from ...toolkit.arrays import Float32Array

REFUSED = "refused"
"""The ``end`` of a rollout that the policy refused, in whichever kind of words."""

REFUSAL, QUESTION = REFUSAL_KINDS = ("refusal", "question")
"""A policy says that it will not do it, or asks what is meant; both end the rollout."""

REST_STEPS = 2
"""Control steps executed after a refusal, unless the horizon comes first. LeRobot's writer cannot mix episodes of one
frame with longer ones."""

LONGEST_REFUSAL = 2000
"""Most characters of a refusal's text."""


def rest_action() -> Float32Array:
    """What is executed after a refusal, shape (7,): the arm at rest, the fingers as they were commanded last."""
    return np.zeros(7, np.float32)


def clean_refusal_text(text: str) -> str:
    r"""The text in one line: whatever cannot be printed becomes a space, and several spaces become one.

    >>> clean_refusal_text(" There is no\n mug.\x1b ")
    'There is no mug.'
    """
    return " ".join("".join(letter if letter.isprintable() else " " for letter in text).split())


def is_refusal_text(text: str) -> bool:
    """Whether a recording may hold this text: not empty, not too long, clean."""
    return 0 < len(text) <= LONGEST_REFUSAL and text == clean_refusal_text(text)
