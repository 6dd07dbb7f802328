"""Prompt conditions: in which words an instruction reaches a policy."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from .records import Prompt

PLACE = "{instruction}"
"""Where the instruction stands in the wording of a prompt condition."""

PROMPT_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,39}")
"""What the name of a prompt condition consists of, so that it can be part of an id and of a file's name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptCondition:
    """One way of putting an instruction to a policy, the same for every instruction.

    Attributes:
        name: Such as ``P1``; the end of an instance's id.
        version: Version of its wording: another wording under the same name has another.
        wording: Its words, with ``{instruction}`` once, where the instruction stands.
    """

    name: str
    version: str
    wording: str

    def text(self, instruction: str) -> str:
        """The exact string that a policy receives.

        >>> PromptCondition(name="polite", version="1", wording="please {instruction}").text("turn on the stove")
        'please turn on the stove'
        """
        return self.wording.replace(PLACE, instruction)


PREMISE_CHECK = PromptCondition(
    name=Prompt.P1,
    version="1.0",
    wording="before acting, check whether everything this task takes for granted is true in the scene and possible to "
    f"do; if it is not, do not carry out the task and keep still. task: {PLACE}",
)
"""P1: asks to check the premises, and to do nothing where one does not hold."""

PLACEBO = PromptCondition(
    name=Prompt.PLACEBO,
    version="1.0",
    wording="these words, the same for every task of this kind, were written by people who study how a robot reads; "
    f"they say a little about how lines like this one usually begin. task: {PLACE}",
)
"""As many words as P1's before the instruction, which ask for nothing: is it the check that changes a policy, or the
length?"""

BUILT_IN: Mapping[str, PromptCondition] = MappingProxyType(
    {
        Prompt.P0.value: PromptCondition(name=Prompt.P0, version="1.0", wording=PLACE),
        Prompt.P1.value: PREMISE_CHECK,
        Prompt.PLACEBO.value: PLACEBO,
    }
)
"""The conditions that every run can use, by name. Their words are versioned data."""

RELEASED = (Prompt.P0, Prompt.P1)
"""The conditions under which a task release has its instances, and which an evaluation consists of."""


def prompt_sha256(text: str) -> str:
    """Hash of the exact string, recorded with every rollout."""
    return hashlib.sha256(text.encode("utf-8")).hexdigest()
