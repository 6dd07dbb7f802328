"""Counts in messages."""

from __future__ import annotations


def counted(count: int, noun: str, plural: str | None = None) -> str:
    """A count with its noun, such as ``1 rollout`` or ``14,530 rollouts``.

    Args:
        count: How many.
        noun: Of what, in the singular.
        plural: The plural; by default the singular with an s.
    """
    return f"{count:,} {noun_for(count, noun, plural)}"


def noun_for(count: int, noun: str, plural: str | None = None) -> str:
    """The noun of so many things, such as ``seed`` or ``seeds``; its arguments are those of ``counted``."""
    return noun if count == 1 else plural or f"{noun}s"
