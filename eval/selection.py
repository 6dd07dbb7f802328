"""Choosing what to run: case filters, prompt conditions and initial states as users write them."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import replace
from enum import StrEnum
from fnmatch import fnmatchcase

from ..toolkit.errors import InvalidInputError, NotFoundError, choices
from ..toolkit.prompts import BUILT_IN, PromptCondition
from ..toolkit.records import Arm, Instance, LanguageProbe, Prompt, VisualProbe

DEFAULT_PROMPTS = (Prompt.P0, Prompt.P1)
"""Prompt conditions of a run that names none, those of a full evaluation."""

MOST_NUMBERS = 10_000
"""How many numbers a list such as ``0-4`` may stand for: a mistyped end must not fill the memory."""

LARGEST_NUMBER = 2**32 - 1
"""The largest seed that NumPy and the common policies take."""


class HorizonKind(StrEnum):
    """Which horizon rollouts have: the release's, which grows with an instruction's plan, or the base task's own."""

    PLAN = "plan"
    BASE = "base"


def with_horizons(instances: Sequence[Instance], kind: HorizonKind) -> tuple[Instance, ...]:
    """The instances with the horizons asked for.

    Args:
        instances: Instances with their references.
        kind: ``PLAN`` leaves the release's; ``BASE`` gives each instance the horizon of its reference.
    """
    if kind is HorizonKind.PLAN:
        return tuple(instances)
    base = {instance.instance_id: instance.horizon for instance in instances if instance.arm is Arm.REFERENCE}
    return tuple(replace(instance, horizon=base[instance.pair_id]) for instance in instances)


def select_conflicts(
    instances: Sequence[Instance], patterns: str | None, prompts: Sequence[str] | None
) -> tuple[Instance, ...]:
    """Conflict instances whose case ids fit any of the comma-separated patterns.

    Args:
        instances: All instances.
        patterns: Case ids with ``*`` and ``?`` as wildcards; None for all.
        prompts: Names of prompt conditions; None for all.

    Raises:
        InvalidInputError: There is no pattern.
        NotFoundError: A pattern fits no case.
    """
    conflicts = [i for i in instances if i.arm is Arm.CONFLICT and (prompts is None or i.prompt in prompts)]
    if patterns is None:
        return tuple(conflicts)
    wanted = [pattern.strip() for pattern in patterns.split(",") if pattern.strip()]
    if not wanted:
        raise InvalidInputError("--cases is empty: write case ids with * as wildcard, or leave it out for all cases")
    for pattern in wanted:
        if not any(fnmatchcase(str(instance.case_id), pattern) for instance in conflicts):
            known = [*dict.fromkeys(str(instance.case_id) for instance in conflicts)]
            raise NotFoundError(f"no case '{pattern}': {_closest(pattern, known)}; conflictvla tasks list  shows all")
    return tuple(i for i in conflicts if any(fnmatchcase(str(i.case_id), pattern) for pattern in wanted))


def find_case(instances: Sequence[Instance], case_id: str) -> Instance:
    """The one case (as its P0 and W0 instance) whose id is, or begins with, what was given.

    Raises:
        NotFoundError: There is none.
        InvalidInputError: There are several.
    """
    conflicts = [
        i for i in instances if (i.arm, i.prompt, i.language_probe) == (Arm.CONFLICT, Prompt.P0, LanguageProbe.W0)
    ]
    found = [i for i in conflicts if i.case_id == case_id]
    found = found or [i for i in conflicts if str(i.case_id).startswith(case_id)]
    if not found:
        raise NotFoundError(f"no case '{case_id}': {_closest(case_id, [str(i.case_id) for i in conflicts])}")
    if len(found) > 1:
        raise InvalidInputError(
            f"{len(found):,} cases begin with '{case_id}', such as {found[0].case_id}: write more of it"
        )
    return found[0]


def choose_prompts(
    names: str | Sequence[str] | None, own: Sequence[PromptCondition] = ()
) -> tuple[PromptCondition, ...]:
    """Prompt conditions by name; by default ``DEFAULT_PROMPTS`` and all of the user's own.

    Args:
        names: Such as ``P0,placebo``, or a sequence of names; None for the default.
        own: The user's own conditions.

    Raises:
        NotFoundError: There is no such condition.
        InvalidInputError: There is no name, or none of the user's own.
    """
    known = {**BUILT_IN, **{condition.name: condition for condition in own}}
    if names is None:
        return (*(BUILT_IN[name] for name in DEFAULT_PROMPTS), *own)
    chosen = _parse_names(names if isinstance(names, str) else ",".join(names), known, "prompt condition", "--prompts")
    if own and not any(condition.name in chosen for condition in own):
        theirs = ", ".join(condition.name for condition in own)
        raise InvalidInputError(f"--prompts names none of the prompts file's conditions: add some of {theirs}")
    return tuple(known[name] for name in chosen)


def parse_language_probes(text: str, option: str = "--language") -> tuple[LanguageProbe, ...]:
    """Language probes from text such as ``W0,W2``, in the order of their levels.

    Raises:
        NotFoundError: There is no such probe.
        InvalidInputError: The text names none.
    """
    return tuple(sorted(_parse_members(text, LanguageProbe, "language probe", option)))


def parse_visual_probes(text: str) -> tuple[VisualProbe, ...]:
    """Visual probes from text such as ``V0,V2``, in the order of their levels.

    Raises:
        NotFoundError: There is no such probe.
        InvalidInputError: The text names none.
    """
    return tuple(sorted(_parse_members(text, VisualProbe, "visual probe", "--visual")))


def parse_numbers(text: str, option: str) -> tuple[int, ...]:
    """Numbers from text such as ``0-4`` or ``0,7``, sorted, each once.

    Raises:
        InvalidInputError: The text is something else, stands for more than ``MOST_NUMBERS``, or has one above
            ``LARGEST_NUMBER``.
    """
    numbers: set[int] = set()
    for part in text.split(","):
        match = re.fullmatch(r"\s*(\d+)(?:\s*-\s*(\d+))?\s*", part)
        if match is None:
            raise _no_numbers(text, option)
        ends = [digits.lstrip("0") or "0" for digits in (match[1], match[2] or match[1])]
        for digits in ends:
            # Python reads no number of very many digits, so their count is looked at first.
            if len(digits) > len(str(LARGEST_NUMBER)) or int(digits) > LARGEST_NUMBER:
                raise InvalidInputError(f"{option}: {_shortened(digits)} is too large: at most {LARGEST_NUMBER}")
        first, last = map(int, ends)
        if last < first:
            raise _no_numbers(text, option)
        numbers.update(range(first, min(last, first + MOST_NUMBERS) + 1))
        if len(numbers) > MOST_NUMBERS:
            raise InvalidInputError(
                f"{option} '{_shortened(text)}' is more than {MOST_NUMBERS:,} numbers: give fewer at once"
            )
    return tuple(sorted(numbers))


def _no_numbers(text: str, option: str) -> InvalidInputError:
    return InvalidInputError(f"{option} '{_shortened(text)}' is not a list of numbers: write it like 0-4 or 0,7")


def _shortened(text: str) -> str:
    return text if len(text) <= 60 else f"{text[:57]}..."


def _parse_members[T: StrEnum](text: str, kind: type[T], what: str, option: str) -> tuple[T, ...]:
    return tuple(kind(name) for name in _parse_names(text, list(kind), what, option))


def _parse_names(text: str, known: Collection[str], what: str, option: str) -> tuple[str, ...]:
    """The names that a text lists, each once; all of them must be known."""
    names = [name.strip() for name in text.split(",") if name.strip()]
    for name in names:
        if name not in known:
            raise NotFoundError(f"no {what} '{name}' in {option}: {choices(name, list(known))}")
    if not names:
        raise InvalidInputError(f"{option} is empty: write some of {', '.join(known)}")
    return tuple(dict.fromkeys(names))


def _closest(given: str, known: Sequence[str]) -> str:
    if not known:
        return "there are none at all"
    hint = choices(given, list(known)).split(" (known:")[0]
    return hint if hint.startswith("did you mean") else f"the first of {len(known):,} is '{known[0]}'"
