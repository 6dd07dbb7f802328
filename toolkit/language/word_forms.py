"""Forms of English words: plurals and articles."""

from __future__ import annotations

import re


def with_article(words: str) -> str:
    """The words after "a" or "an"."""
    return f"{'an' if words[0] in 'aeiou' else 'a'} {words}"


def plural(noun: str) -> str:
    """The plural of a noun, such as ``cookie boxes`` or ``pairs of scissors``."""
    head, of, rest = noun.partition(" of ")
    if of:
        return f"{plural(head)} of {rest}"
    if re.search(r"(s|x|ch|sh)$", noun):
        return noun + "es"
    if re.search(r"[^aeiou]y$", noun):
        return noun[:-1] + "ies"
    if noun.endswith("knife"):
        return noun[:-2] + "ves"
    return noun + "s"
