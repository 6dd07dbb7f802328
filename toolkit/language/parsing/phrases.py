"""Noun phrases of a rendered instruction, in the plan's words or in substitutes, into references.

Functions that return iterators yield every way to read a text, each with the substitutes that it then holds.
"""

from __future__ import annotations

import functools
import itertools
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from ..lexicon import Lexicon, Part, Substitute, load_lexicon
from ..plan import Claim, Reference, Relation, Verb
from ..sentence_forms import NUMBERS
from ..vocabulary import Vocabulary, load_vocabulary
from ..word_forms import plural

RENDERED_RELATIONS: dict[str, Relation] = {
    **{str(relation): relation for relation in Relation if relation is not Relation.BETWEEN},
    "on top of": Relation.ON,
    "inside": Relation.IN,
    "to the front of": Relation.IN_FRONT_OF,
}

Used = frozenset[Substitute]
"""Substitutes that a reading takes a text to hold."""


@dataclass(frozen=True, slots=True)
class Meanings:
    """What each phrase of a sentence may stand for, with the substitute that it then is.

    Attributes:
        nouns: The noun, and whether it stands in the singular.
        verbs: Verbs, since a substitute may stand for several.
        ordinals: The ordinal.
        adjectives: The adjective.
        relations: The relation.
    """

    nouns: dict[str, tuple[str, bool, Used]]
    verbs: dict[str, tuple[tuple[str, Used], ...]]
    ordinals: dict[str, tuple[str, Used]]
    adjectives: dict[str, tuple[str, Used]]
    relations: dict[str, tuple[Relation, Used]]


@functools.cache
def packaged_meanings() -> Meanings:
    """The meanings by the packaged vocabulary and lexicon."""
    return phrase_meanings(load_vocabulary(), load_lexicon())


def phrase_meanings(vocabulary: Vocabulary, lexicon: Lexicon) -> Meanings:
    """The meanings by a vocabulary, whose words a lexicon's substitutes may stand for."""
    named = {name for word in vocabulary.present.values() for name in (word.noun, word.count_noun) if name}
    nouns = dict(_with_substitutes(named | set(vocabulary.absent), Part.NOUN, lexicon))
    singular = {form: (word, True, used) for form, (word, used) in nouns.items()}
    adjectives = {a for word in vocabulary.present.values() for a in word.adjectives} | set(vocabulary.colours)
    verbs: dict[str, tuple[tuple[str, Used], ...]] = {}
    for form, verb in _with_substitutes({*Verb, "pick up", "place"} - {Verb.PLACE}, Part.VERB, lexicon):
        verbs[form] = (*verbs.get(form, ()), verb)
    relations = {form: (relation, Used()) for form, relation in RENDERED_RELATIONS.items()}
    for top in lexicon.of(Part.RELATION, "top"):
        relations[f"on the {top.say} of"] = (Relation.ON, Used({top}))
    for center in lexicon.of(Part.RELATION, "center"):
        relations[f"in the {center.say} of"] = (Relation.AT_CENTER, Used({center}))
    return Meanings(
        nouns=singular | {plural(form): (word, False, used) for form, (word, used) in nouns.items()},
        verbs=verbs,
        ordinals=dict(_with_substitutes({*vocabulary.ordinals, *vocabulary.sides}, Part.ORDINAL, lexicon)),
        adjectives=dict(_with_substitutes(adjectives, Part.COLOUR, lexicon)),
        relations=relations,
    )


def _with_substitutes(words: Iterable[str], part: Part, lexicon: Lexicon) -> Iterator[tuple[str, tuple[str, Used]]]:
    """Each form of each word: itself or a substitute, with the word and the substitute that it is."""
    for word in words:
        yield str(word), (str(word), Used())
        for substitute in lexicon.of(part, word):
            yield substitute.say, (str(word), Used({substitute}))


def references(text: str, words: Meanings) -> Iterator[tuple[Reference, Used]]:
    """Noun phrases that make up the whole text."""
    yield from _bare_references(text, words)
    for head, tail in cuts(text):
        claims = re.sub("^that (is|are) ", "", tail)
        for reference, used in _bare_references(head, words):
            for made, others in _claims(claims, words):
                yield _with_claims(reference, made), used | others


def _with_claims(reference: Reference, claims: tuple[Claim, ...]) -> Reference:
    """A claim is about what stands right before it: about the cabinet in "the drawer of the cabinet that is ..."."""
    if reference.of is not None:
        return replace(reference, of=_with_claims(reference.of, claims))
    return replace(reference, claims=claims)


def _claims(text: str, words: Meanings) -> Iterator[tuple[tuple[Claim, ...], Used]]:
    """Claims joined by "and" that make up the whole text."""
    for claim, used in _single_claims(text, words):
        yield (claim,), used
    for match in re.finditer(" and ", text):
        for claim, used in _single_claims(text[: match.start()], words):
            for claims, others in _claims(text[match.end() :], words):
                yield (claim, *claims), used | others


def _single_claims(text: str, words: Meanings) -> Iterator[tuple[Claim, Used]]:
    for relation, rest, used in relations_at(text, words):
        for landmark, others in _bare_references(rest, words):
            yield Claim(relation=relation, landmarks=(landmark,)), used | others
    if text.startswith("between "):
        first, _, second = text.removeprefix("between ").partition(" and the ")
        for (a, used), (b, others) in itertools.product(
            _bare_references(first, words), _bare_references(f"the {second}", words)
        ):
            yield Claim(relation=Relation.BETWEEN, landmarks=(a, b)), used | others


def _bare_references(text: str, words: Meanings) -> Iterator[tuple[Reference, Used]]:
    """Noun phrases without claims that make up the whole text."""
    head, _, whole = text.partition(" of the ")
    number = re.match(r"(the|both|all (\w+)) ", head)
    if number is None:
        return
    count = 2 if number[1] == "both" else _parse_number(number[2])
    for reference, used in _described_references(head[number.end() :], count, words):
        if not whole:
            yield reference, used
            continue
        for of, others in _bare_references(f"the {whole}", words):
            yield replace(reference, of=of), used | others


def _parse_number(word: str | None) -> int | None:
    if word is None or word.isdigit():
        return None if word is None else int(word)
    return next((count for count, name in NUMBERS.items() if name == word), None)


def _described_references(text: str, count: int | None, words: Meanings) -> Iterator[tuple[Reference, Used]]:
    """Nouns after ordinals and adjectives."""
    if text in words.nouns:
        noun, singular, used = words.nouns[text]
        # "The moka pots" is about what was counted before, and is then resolved to it.
        if count is None or not singular:
            yield Reference(noun=noun, count=count), used
    for name, options in (("ordinal", words.ordinals), ("adjective", words.adjectives)):
        for form, (word, used) in options.items():
            if text.startswith(f"{form} "):
                for bare, others in _described_references(text.removeprefix(f"{form} "), count, words):
                    changed = replace(bare, ordinal=word) if name == "ordinal" else replace(bare, adjective=word)
                    yield changed, used | others


def relations_at(text: str, words: Meanings) -> Iterator[tuple[Relation, str, Used]]:
    """Relations that the text begins with, and what follows."""
    for form, (relation, used) in words.relations.items():
        if text.startswith(f"{form} "):
            yield relation, text.removeprefix(f"{form} "), used


def cuts(text: str) -> Iterator[tuple[str, str]]:
    """Every way to cut the text in two between words."""
    for match in re.finditer(" ", text):
        yield text[: match.start()], text[match.end() :]
