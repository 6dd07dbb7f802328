"""Counts in messages: one is one."""

from __future__ import annotations

import re
from pathlib import Path

from conflictvla.toolkit.counting import counted


def test_only_one_is_in_the_singular() -> None:
    assert [counted(n, "rollout") for n in (0, 1, 2, 14530)] == [
        "0 rollouts",
        "1 rollout",
        "2 rollouts",
        "14,530 rollouts",
    ]
    assert [counted(n, "try", "tries") for n in (1, 2)] == ["1 try", "2 tries"]


ROOT = Path(__file__).parents[2]
SOURCES = [file for floor in ("toolkit", "builders", "eval", "cli") for file in (ROOT / floor).rglob("*.[pj][y2]")]
NOUNS = "rollouts|pairs|cases|files|videos|datasets|defects|scenes|instances|agents|results|failures|actions"
ALWAYS_SEVERAL = {
    "holds {len(folders)} datasets",
    "{instances * repeats:,} rollouts",
    "{len(found):,} cases begin",
    "{len(files)} files, at most",
    "{count:,} files, at most",
    "{len(files)} results, at most",
    "to {lengths[-1]} actions a chunk",
    "{lengths[0]} actions a chunk: ",
    "{rows} instances",
    "{FULL_ROLLOUTS:,} rollouts",
    "{Prompt.P0} instances",
    "{', '.join(ENDINGS)} files",
    "{count} of {len(cases)} cases",
    "{reached} of rollouts",
    "{provenance.controls:,} on cases",
}
"""Counts that cannot be one where they are shown, and what only looks like a count."""


def test_no_message_has_a_count_of_one_in_the_plural() -> None:
    found = []
    for file in SOURCES:
        text = file.read_text(encoding="utf-8")
        for known in ALWAYS_SEVERAL:
            text = text.replace(known, "")
        found += [(file.name, line) for line in re.findall(rf"\}}(?: [a-z]+)? (?:{NOUNS})\b.*", text)]
    assert found == []
