"""What a user writes to name a policy that is plugged in: ``openpi://host:8000?replan_steps=5``."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import parse_qsl, urlsplit

from ...toolkit.errors import InvalidInputError, NotFoundError, choices

PORT = 8000
"""Port of policy servers where none is given, openpi's and vla-eval's own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicySpec:
    """A policy's name on the command line, taken apart.

    Attributes:
        text: As written.
        scheme: What stands before the colon, such as ``openpi``.
        target: What is named: ``host:port``, a path or a Hub id.
        settings: What stands after the question mark, by name.
    """

    text: str
    scheme: str
    target: str
    settings: dict[str, str]


def read_spec(text: str) -> PolicySpec:
    """Take a policy's name apart.

    Raises:
        InvalidInputError: A setting is not written as ``name=value``, or is given twice.
    """
    before, _, query = text.partition("?")
    scheme, _, target = before.partition(":")
    try:
        pairs = parse_qsl(query, strict_parsing=True, keep_blank_values=True) if query else []
    except ValueError as error:
        raise InvalidInputError(f"policy '{text}': write settings as ?name=value&name=value") from error
    settings = dict(pairs)
    if len(settings) < len(pairs):
        raise InvalidInputError(f"policy '{text}': a setting is given twice")
    return PolicySpec(text=text, scheme=scheme, target=target.removeprefix("//"), settings=settings)


def with_setting(text: str, name: str, value: str) -> str:
    """A policy's name with one more setting."""
    return f"{text}{'&' if '?' in text else '?'}{name}={value}"


def check_settings(spec: PolicySpec, known: Sequence[str]) -> None:
    """Refuse settings that do not exist, and a name that no folder or dataset could have.

    Raises:
        NotFoundError: There is no such setting.
        InvalidInputError: The name cannot be used.
    """
    if "name" in spec.settings and safe_name(spec.settings["name"]) != spec.settings["name"]:
        raise InvalidInputError(
            f"policy '{spec.text}': name={spec.settings['name']}: use letters, digits, '-', '_', '.'"
        )
    for name in spec.settings:
        if name not in known:
            raise NotFoundError(f"policy '{spec.text}': no setting '{name}': {choices(name, sorted(known))}")


def safe_name(text: str) -> str:
    """A text as a name that a folder and a Hub dataset can have."""
    return re.sub(r"[^A-Za-z0-9._-]+|-{2,}|\.{2,}", "-", text).strip("-._") or "policy"


def address(spec: PolicySpec) -> tuple[str, int]:
    """Host and port of a policy server.

    Raises:
        InvalidInputError: It is not written as ``host:port``.
    """
    try:
        parts = urlsplit(f"//{spec.target}")
        host, port = parts.hostname, parts.port
    except ValueError:
        host = port = None
    if not host or parts.path or parts.username:
        raise InvalidInputError(f"policy '{spec.text}': write {spec.scheme}://HOST:PORT")
    return host, port or PORT
