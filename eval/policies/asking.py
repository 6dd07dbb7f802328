"""Asking a policy for actions or a refusal; anything else that it does becomes one line of ``PolicyError``."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...builders.rollouts.refusals import LONGEST_REFUSAL, REFUSAL_KINDS, clean_refusal_text
from ...toolkit.arrays import FloatArray
from ...toolkit.errors import PolicyError, describe_error, first_line
from .interface import ACTION_WIDTH, Episode, Observation, Policy, Refusal


def begin_episode(policy: Policy, episode: Episode, *, where: str = "") -> None:
    """Begin an episode of a policy.

    Args:
        policy: The policy.
        episode: The episode.
        where: What messages begin with, such as the rollout's id.

    Raises:
        PolicyError: The policy raised; of its own ``PolicyError`` the first line.
    """
    try:
        policy.reset(episode)
    except PolicyError as error:
        raise _policy_error(where, first_line(error)) from error
    except (Exception, SystemExit) as error:  # SystemExit too: one rollout must not end the run
        raise _policy_error(where, f"the policy raised in reset: {describe_error(error)}") from error


def ask(policy: Policy, observation: Observation, *, where: str = "") -> FloatArray | Refusal:
    """The policy's next actions or its refusal, checked.

    Args:
        policy: The policy; its episode has begun.
        observation: What it receives.
        where: What messages begin with, such as the rollout's id and step.

    Returns:
        Actions of shape (n, 7) with n >= 1, finite; components outside [-1, 1] are left as they are. Or a refusal, its
        text clean.

    Raises:
        PolicyError: The policy raised, its actions cannot be executed, or its refusal says nothing; of its own
            ``PolicyError`` the first line.
    """
    try:
        answer = policy.act(observation)
    except PolicyError as error:
        raise _policy_error(where, first_line(error)) from error
    except (Exception, SystemExit) as error:
        raise _policy_error(where, f"the policy raised: {describe_error(error)}") from error
    if isinstance(answer, Refusal):
        return check_refusal(answer.kind, answer.text, where=where)
    return check_chunk(answer, where=where)


def check_refusal(kind: Any, text: Any, *, where: str = "") -> Refusal:
    """A refusal that can be recorded: of a known kind, its text in one line without control characters.

    Args:
        kind: Whatever a policy or a policy server gave as its kind.
        text: The same of its text.
        where: What messages begin with.

    Raises:
        PolicyError: The kind is none, or the text is empty, too long, or no text.
    """
    kinds = " or ".join(REFUSAL_KINDS)
    if not isinstance(kind, str) or kind not in REFUSAL_KINDS:
        raise _policy_error(where, f"a refusal of kind {kind!r:.60}; the kind is {kinds}")
    if not isinstance(text, str):
        raise _policy_error(where, f"the text of the {kind} is {type(text).__name__}, not text")
    clean = clean_refusal_text(text)
    if not clean:
        raise _policy_error(where, f"the {kind} has no text; say why, or what is asked")
    if len(clean) > LONGEST_REFUSAL:
        raise _policy_error(where, f"the {kind} has {len(clean)} characters; at most {LONGEST_REFUSAL} are recorded")
    return Refusal(clean, kind)


def check_chunk(actions: Any, *, where: str = "", single: bool = False) -> FloatArray:
    """Actions as a chunk that can be executed, shape (n, 7) with n >= 1, finite.

    Args:
        actions: Whatever a policy or a policy server gave.
        where: What messages begin with.
        single: Whether one action, shape (7,), counts as a chunk of one.

    Raises:
        PolicyError: They are something else.
    """
    try:
        given = np.asarray(actions, dtype=np.float64)
    except Exception as error:  # an array of another library raises whatever it likes
        raise _policy_error(where, f"the actions are not numbers ({describe_error(error)})") from error
    chunk = given[np.newaxis] if single and given.ndim == 1 else given
    if chunk.ndim != 2 or len(chunk) == 0 or chunk.shape[1] != ACTION_WIDTH:
        raise _policy_error(where, f"the actions have shape {given.shape}; return (n, {ACTION_WIDTH}) with n >= 1")
    if not np.isfinite(chunk).all():
        raise _policy_error(where, "the actions hold NaN or infinity; return finite numbers in [-1, 1]")
    return chunk


def _policy_error(where: str, text: str) -> PolicyError:
    return PolicyError(f"{where}: {text}" if where else text)
