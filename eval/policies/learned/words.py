"""A prompt as numbers of words, for a vocabulary that grew from the training prompts."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

PADDING, UNKNOWN, MASK = "<padding>", "<unknown>", "<mask>"
SPECIAL = (PADDING, UNKNOWN, MASK)
"""Words that no prompt holds: what fills up the shorter of two prompts, what stands for words that training never saw,
and what a masked prompt consists of."""


def split_words(prompt: str) -> list[str]:
    """A prompt's words in lower case, without punctuation."""
    return re.findall(r"[a-z0-9]+", prompt.lower())


def vocabulary_of(prompts: Iterable[str]) -> tuple[str, ...]:
    """The special words, then all words of the prompts in alphabetical order."""
    return (*SPECIAL, *sorted({word for prompt in prompts for word in split_words(prompt)}))


class Words:
    """Numbers the words of prompts.

    Args:
        vocabulary: The special words first, as ``vocabulary_of`` gives it.
    """

    def __init__(self, vocabulary: Sequence[str]) -> None:
        self._numbers = {word: number for number, word in enumerate(vocabulary)}

    def numbers(self, prompt: str) -> list[int]:
        """The prompt's words as numbers; a prompt without any is masked."""
        return [self._numbers.get(word, SPECIAL.index(UNKNOWN)) for word in split_words(prompt)] or self.masked_prompt()

    def masked_prompt(self) -> list[int]:
        """What every masked prompt looks like."""
        return [SPECIAL.index(MASK)]
