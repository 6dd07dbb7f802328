"""What the clients of both protocols have in common: how they are named and configured, and what an answer must be."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

import numpy as np

from ....toolkit.arrays import FloatArray
from ....toolkit.counting import counted
from ....toolkit.errors import PolicyError
from ..asking import check_chunk, check_refusal
from ..conventions import Conventions, read_count
from ..interface import PolicyInfo, Refusal
from ..spec import PolicySpec, address
from .link import ANSWER_S, WAIT_S, Link

REMOTE_SETTINGS = ("answer_s", "name", "revision", "wait_s")
"""Settings beside the conventions: time limits in s, a name for the rollouts, and what exactly the server runs, which
no protocol carries."""

REFUSAL_KEY = "refusal"
"""Key of an answer, beside its actions or in their place, by which a server refuses; plain servers do not have it."""

UNSTATED = "unstated"
"""Revision of a served policy where the user gave none."""


def open_link(spec: PolicySpec) -> Link:
    """Connect to the server that a spec names.

    Raises:
        PolicyError: No server answers.
        InvalidInputError: The address or a time limit makes no sense.
    """
    host, port = address(spec)
    where = f"policy '{spec.text}'"
    limits = {"wait_s": WAIT_S, "answer_s": ANSWER_S}
    given = {name: float(read_count(spec.settings, name, where)) for name in limits if name in spec.settings}
    link = Link(f"ws://[{host}]:{port}" if ":" in host else f"ws://{host}:{port}", **(limits | given))
    link.open()
    return link


def server_info(spec: PolicySpec, conventions: Conventions, metadata: Mapping[str, Any]) -> PolicyInfo:
    """Where a served policy comes from, by the user and the server. The address is left out, as it may change.

    Args:
        spec: What the user wrote.
        conventions: What holds.
        metadata: What the server sends about itself; recorded by its hash where it is more than a few words.
    """
    digest = hashlib.sha256(repr(metadata).encode()).hexdigest()[:16]
    words = {f"server_{name}": value for name, value in metadata.items() if isinstance(value, str | int | float | bool)}
    return PolicyInfo(
        name=spec.settings.get("name", spec.scheme),
        revision=spec.settings.get("revision", UNSTATED),
        settings={**conventions.settings(), **words, "protocol": spec.scheme, "server_sha256": digest},
    )


def action_chunk(actions: Any, url: str, conventions: Conventions) -> FloatArray:
    """The actions of an answer, shape (n, 7); a single one, shape (7,), is a chunk of one.

    Raises:
        PolicyError: They are something else, or fewer than are to be executed before the next question.
    """
    chunk = check_chunk(actions, where=url, single=True)
    if np.ndim(actions) == 2 and conventions.replan_steps and len(chunk) < conventions.replan_steps:
        raise PolicyError(
            f"{url}: {counted(len(chunk), 'action')} in a chunk, and replan_steps={conventions.replan_steps} executes "
            f"more; give ?replan_steps={len(chunk)}"
        )
    return chunk


def read_refusal(answer: Mapping[str, Any], url: str) -> Refusal | None:
    """The refusal of an answer, ``{"refusal": {"kind": ..., "text": ...}}``; None where the key is absent or null.

    Raises:
        PolicyError: There is such a key, but it holds something else.
    """
    given = answer.get(REFUSAL_KEY)
    if given is None:
        return None
    if not isinstance(given, Mapping) or not {"kind", "text"} <= given.keys():
        raise PolicyError(f'{url}: the answer\'s refusal is {given!r:.80}, not {{"kind": ..., "text": ...}}')
    return check_refusal(given["kind"], given["text"], where=url)
