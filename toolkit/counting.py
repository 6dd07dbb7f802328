"""Counts in messages."""

from __future__ import annotations


def counted(count: int, noun: str, plural: str | None = None) -> str:
    """A count with its noun, such as ``1 rollout`` or ``14,530 rollouts``.

    Args:
        count: How many.
        noun: Of what, in the singular.
        plural: The plural; by default the singular with an s.
    """
    return f"{count:,} {noun if count == 1 else plural or f'{noun}s'}"
