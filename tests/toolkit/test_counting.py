"""Counts in messages: one is one."""

from __future__ import annotations

from conflictvla.toolkit.counting import counted


def test_only_one_is_in_the_singular() -> None:
    assert [counted(n, "rollout") for n in (0, 1, 2, 14530)] == [
        "0 rollouts",
        "1 rollout",
        "2 rollouts",
        "14,530 rollouts",
    ]
    assert [counted(n, "try", "tries") for n in (1, 2)] == ["1 try", "2 tries"]
