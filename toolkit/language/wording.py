"""Wordings: ``render`` has several ways to put a plan into English, and a number picks one.

A plan has the number that its content gives, so that the same plan always reads the same.
"""

from __future__ import annotations

import hashlib

from ..records import Arm, Instance

LIBERO_WORDING = 0
"""LIBERO's own style, that of every base instruction."""

WORDINGS = range(1, 61)
"""Every other way that ``render`` words a plan: the counts of its alternatives divide 60."""


def plan_wording(plan: str) -> int:
    """The wording number of a plan (as JSON), never LIBERO's own."""
    return WORDINGS[int.from_bytes(hashlib.sha256(plan.encode()).digest()[:4], "big") % len(WORDINGS)]


def wording_of(instance: Instance) -> int:
    """The wording number of an instance's instruction: LIBERO's own for a reference."""
    return LIBERO_WORDING if instance.arm is Arm.REFERENCE else plan_wording(instance.plan)
