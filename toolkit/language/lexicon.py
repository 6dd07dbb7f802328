"""The lexicon: words that may stand for the words of an instruction, at distance 1 in WordNet.

``lexicon.json`` is made of ``choices.json`` and WordNet's files (``make lexicon``, see CONTRIBUTING.md). What a
substitute can mean in a scene stands beside it, in the terms of ``vocabulary.json``, so that the premise checker can
judge an instruction in its new words.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from importlib import resources
from typing import Any

from .vocabulary import AbsentWord, Vocabulary, Word, load_vocabulary

LEXICON_VERSION = "1.0"
"""Version of what is substituted by what: other substitutes, or another order of them, are another version."""


class WordRelation(StrEnum):
    """How a substitute is related to the word it stands for: in its synset, directly above it, or directly below it."""

    SYNONYM = "synonym"
    HYPERNYM = "hypernym"
    HYPONYM = "hyponym"


class Part(StrEnum):
    """What a word is in an instruction."""

    VERB = "verb"
    NOUN = "noun"
    RELATION = "relation"
    ORDINAL = "ordinal"
    COLOUR = "colour"


@dataclass(frozen=True, slots=True, kw_only=True)
class Substitute:
    """A word that may stand for another.

    Attributes:
        part: What both are in an instruction.
        word: The word that it stands for.
        say: The substitute itself.
        relation: How its synset is related to the word's.
        sense: Id of the word's synset in WordNet 3.0, such as ``02880940-n``.
        synset: Id of the substitute's synset; the same for a synonym.
        names: LIBERO categories that a person might call so; None for all that bear the word itself.
    """

    part: Part
    word: str
    say: str
    relation: WordRelation
    sense: str
    synset: str
    names: frozenset[str] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Lexicon:
    """All substitutes, by part and word, in a fixed order."""

    substitutes: Mapping[tuple[Part, str], tuple[Substitute, ...]]

    def of(self, part: Part, word: str) -> tuple[Substitute, ...]:
        """What may stand for the word; empty where nothing may."""
        return self.substitutes.get((part, word), ())

    def words_for(self, part: Part) -> dict[str, str]:
        """What each substitute stands for."""
        return {s.say: word for (of, word), offered in self.substitutes.items() if of is part for s in offered}


@functools.cache
def load_lexicon() -> Lexicon:
    """Read the packaged lexicon."""
    text = resources.files(__package__).joinpath("lexicon.json").read_text(encoding="utf-8")
    data: dict[str, Any] = json.loads(text)
    return Lexicon(
        substitutes={
            (Part(entry["part"]), word): tuple(
                _substitute(Part(entry["part"]), word, offer) for offer in entry["substitutes"]
            )
            for word, entry in data["words"].items()
        }
    )


def _substitute(part: Part, word: str, offer: dict[str, Any]) -> Substitute:
    return Substitute(
        part=part,
        word=word,
        say=offer["say"],
        relation=WordRelation(offer["relation"]),
        sense=offer["sense"],
        synset=offer["synset"],
        names=frozenset(offer["names"]) if "names" in offer else None,
    )


@functools.cache
def widened_vocabulary() -> Vocabulary:
    """The packaged vocabulary with every substitute as a further name of whatever a person might call so."""
    words, lexicon = load_vocabulary(), load_lexicon()
    nouns = [s for (part, _), offered in lexicon.substitutes.items() if part is Part.NOUN for s in offered]
    absent = {s.say: _widen_absent_word(s, words) for s in nouns if s.word in words.absent}
    ordinals = {s.say: ordinal for word, ordinal in words.ordinals.items() for s in lexicon.of(Part.ORDINAL, word)}
    colours = tuple(s.say for colour in words.colours for s in lexicon.of(Part.COLOUR, colour))
    return replace(
        words,
        present={category: _widen_word(word, nouns) for category, word in words.present.items()},
        absent=words.absent | absent,
        ordinals=words.ordinals | ordinals,
        colours=words.colours + colours,
    )


def _widen_word(word: Word, nouns: list[Substitute]) -> Word:
    new = {s.say for s in nouns if (word.category in s.names if s.names is not None else s.word in word.names)}
    return replace(word, also=word.also | new)


def _widen_absent_word(substitute: Substitute, words: Vocabulary) -> AbsentWord:
    """Absent under the new word means absent under the old one too, and under all of its other names."""
    old = words.absent[substitute.word]
    return AbsentWord(noun=substitute.say, also=old.names, role=old.role)
