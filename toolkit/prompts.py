"""Prompt conditions: what is put before an instruction, and the exact string that a policy receives."""

from __future__ import annotations

import hashlib

from .records import Prompt

PREMISE_CHECK_VERSION = "1.0"

PREMISE_CHECK = (
    "before acting, check whether everything this task takes for granted is true in the scene and possible to do; "
    "if it is not, do not carry out the task and keep still. task: "
)
"""The fixed text of P1. Versioned data: another wording is another version."""


def prompt_text(instruction: str, prompt: Prompt) -> str:
    """The exact string that a policy receives: the instruction alone (P0), or after the premise check (P1)."""
    return PREMISE_CHECK + instruction if prompt is Prompt.P1 else instruction


def prompt_sha256(text: str) -> str:
    """Hash of the exact string, recorded with every rollout."""
    return hashlib.sha256(text.encode("utf-8")).hexdigest()
