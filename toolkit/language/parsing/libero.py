"""Parsing of LIBERO's own instructions into plans. ``render.render`` is the way back."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

from ...errors import InvalidInputError
from ..lexicon import Lexicon, Part, load_lexicon
from ..plan import Claim, Plan, Reference, Relation, Step, Verb
from ..vocabulary import Vocabulary, load_vocabulary

LIBERO_RELATIONS = {
    "on top of": Relation.ON,
    "on": Relation.ON,
    "inside": Relation.IN,
    "in front of": Relation.IN_FRONT_OF,
    "in": Relation.IN,
    "into": Relation.IN,
    "under": Relation.UNDER,
    "next to": Relation.NEXT_TO,
    "to the front of": Relation.IN_FRONT_OF,
    "to the left of": Relation.LEFT_OF,
    "to the right of": Relation.RIGHT_OF,
    "behind": Relation.BEHIND,
}
"""What LIBERO's instructions call each relation."""

NO_LEXICON = Lexicon(substitutes={})


@dataclass(frozen=True, slots=True)
class _Grammar:
    """What a clause looks like, and what its words stand for."""

    words: Vocabulary
    nouns: dict[str, str]
    ordinals: dict[str, str]
    verbs: dict[str, str]
    places: dict[str, Relation]
    joint: re.Pattern[str]
    step: re.Pattern[str]
    claim: re.Pattern[str]


def _grammar(words: Vocabulary, lexicon: Lexicon) -> _Grammar:
    """The grammar of LIBERO's instructions, with the lexicon's substitutes wherever their words may stand."""
    # "on the top side of" before "on", which it begins with
    places = {f"on the {top.say} of": Relation.ON for top in lexicon.of(Part.RELATION, "top")} | LIBERO_RELATIONS
    where = "|".join(places)
    forms = {verb: _forms_of(verb, lexicon) for verb in ("pick up", "place", *Verb)}
    move = "|".join(forms["put"] + forms["push"])
    state = "|".join(form for verb in (Verb.OPEN, Verb.CLOSE, Verb.TURN_ON, Verb.TURN_OFF) for form in forms[verb])
    picked, placed = "|".join(forms["pick up"]), "|".join(dict.fromkeys(forms["place"] + forms["put"]))
    centers = "|".join(center.say for center in lexicon.of(Part.RELATION, "center")) or "(?!)"
    return _Grammar(
        words=words,
        nouns=lexicon.words_for(Part.NOUN),
        ordinals=lexicon.words_for(Part.ORDINAL),
        verbs={form: verb for verb in Verb for form in forms[verb]},
        places=places,
        joint=re.compile(rf" and (?=(?:(?:{move})(?! it)|{state}|{picked}) )"),
        step=re.compile(
            rf"^(?:(?P<move>{move}) (?P<what>.+?) (?P<where>{where})(?: (?P<place>(?:the .+|it)))?"
            rf"|(?:{picked}) (?P<picked>.+) and (?:{placed}) it (?P<there>{where}) (?P<goal>the .+)"
            rf"|(?P<verb>{state}) (?P<object>the .+|it))$"
        ),
        claim=re.compile(
            rf"^(?P<head>the .+?) (?:between (?P<first>the .+) and (?P<second>the .+)"
            rf"|from (?P<center>\w+) center|from the (?:{centers}) of the (?P<middle>\w+)"
            rf"|(?P<where>{where}) (?P<mark>the .+))$"
        ),
    )


def _forms_of(verb: str, lexicon: Lexicon) -> list[str]:
    """A verb and its substitutes, longer ones first: "lift up" begins with "lift"."""
    forms = [verb, *(substitute.say for substitute in lexicon.of(Part.VERB, verb))]
    return sorted(forms, key=len, reverse=True)


@functools.cache
def _packaged_grammar() -> _Grammar:
    return _grammar(load_vocabulary(), NO_LEXICON)


@functools.cache
def _probed_grammar() -> _Grammar:
    return _grammar(load_vocabulary(), load_lexicon())


def parse_base_instruction(instruction: str, vocabulary: Vocabulary | None = None, *, probed: bool = False) -> Plan:
    """Read one of LIBERO's own instructions into a plan.

    Args:
        instruction: The instruction.
        vocabulary: Names of everything in the scenes; the packaged one by default.
        probed: Whether it may be in the words of a language probe: the packaged lexicon's substitutes.

    Raises:
        InvalidInputError: The grammar or the vocabulary does not cover the instruction yet.
    """
    if vocabulary is None:
        grammar = _probed_grammar() if probed else _packaged_grammar()
    else:
        grammar = _grammar(vocabulary, load_lexicon() if probed else NO_LEXICON)
    steps: list[Step] = []
    for clause in grammar.joint.split(instruction):
        match = grammar.step.match(clause)
        if match is None:
            raise InvalidInputError(f"cannot read the instruction '{instruction}': no rule for '{clause}'")
        steps.extend(_steps(match, steps, grammar))
    return Plan(steps=tuple(steps))


def _steps(match: re.Match[str], before: list[Step], grammar: _Grammar) -> Iterator[Step]:
    if match["verb"]:
        obj = _destination_before(before) if match["object"] == "it" else _noun_phrase(match["object"], grammar)
        yield Step(verb=Verb(grammar.verbs[match["verb"]]), object=obj)
        return
    if match["picked"]:
        relation, goal = grammar.places[match["there"]], _noun_phrase(match["goal"], grammar)
        picked = _noun_phrase_with_claim(match["picked"], grammar)
        yield Step(verb=Verb.PLACE, object=picked, relation=relation, destination=goal)
        return
    if match["place"] in (None, "it"):
        if not before:
            raise InvalidInputError(f"cannot read the instruction: no rule for '{match[0]}'")
        destination = before[-1].object
    else:
        destination = _noun_phrase(match["place"], grammar)
    verb, relation = Verb(grammar.verbs[match["move"]]), grammar.places[match["where"]]
    for what in _objects(match["what"], grammar):
        yield Step(verb=verb, object=what, relation=relation, destination=destination)


def _destination_before(before: list[Step]) -> Reference:
    if not before or before[-1].destination is None:
        raise InvalidInputError("cannot read the instruction: no rule for an 'it' that nothing was named for")
    return before[-1].destination


def _objects(text: str, grammar: _Grammar) -> Iterator[Reference]:
    """One noun phrase, or the two of "both the soup and the sauce", or the two of "both moka pots"."""
    if not text.startswith("both "):
        yield _noun_phrase(text, grammar)
        return
    rest = text.removeprefix("both ")
    if rest.startswith("the "):
        for part in rest.split(" and "):
            yield _noun_phrase(part, grammar)
    else:
        yield replace(_noun_phrase(f"the {rest.removesuffix('s')}", grammar), count=2)


def _noun_phrase_with_claim(text: str, grammar: _Grammar) -> Reference:
    try:
        return _noun_phrase(text, grammar)
    except InvalidInputError:
        match = grammar.claim.match(text)
        if match is None:
            raise
    if match["first"]:
        marks = (_noun_phrase(match["first"], grammar), _noun_phrase(match["second"], grammar))
        claim = Claim(relation=Relation.BETWEEN, landmarks=marks)
    elif match["where"] is None:
        landmark = _noun_phrase(f"the {match['center'] or match['middle']}", grammar)
        claim = Claim(relation=Relation.AT_CENTER, landmarks=(landmark,))
    else:
        claim = Claim(relation=grammar.places[match["where"]], landmarks=(_noun_phrase(match["mark"], grammar),))
    return replace(_noun_phrase(match["head"], grammar), claims=(claim,))


def _noun_phrase(text: str, grammar: _Grammar) -> Reference:
    if not text.startswith("the "):
        raise InvalidInputError(f"no rule for the noun phrase '{text}'")
    words = grammar.words
    head, _, whole = text.removeprefix("the ").partition(" of the ")
    known = {name for word in words.present.values() for name in word.names} | set(grammar.nouns)
    adjectives = {a for word in words.present.values() for a in word.adjectives} | set(words.colours)
    reference = Reference(noun=head)
    first, _, rest = head.partition(" ")
    if rest and first in {*words.ordinals, *words.sides, *grammar.ordinals} and head not in known:
        reference, head = Reference(noun=rest, ordinal=grammar.ordinals.get(first, first)), rest
    for adjective in sorted(adjectives, key=len, reverse=True):
        if reference.noun.startswith(f"{adjective} ") and reference.noun not in known:
            reference = replace(reference, adjective=adjective, noun=reference.noun.removeprefix(f"{adjective} "))
    if reference.noun not in known:
        raise InvalidInputError(f"toolkit/language/vocabulary.json has no noun '{reference.noun}': add it")
    reference = replace(reference, noun=grammar.nouns.get(reference.noun, reference.noun))
    return replace(reference, of=_noun_phrase(f"the {whole}", grammar)) if whole else reference
