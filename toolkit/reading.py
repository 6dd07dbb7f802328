"""Reading: LIBERO's own instructions into plans. ``language.render`` is the way back."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from .errors import InvalidInputError
from .plan import Claim, Plan, Reference, Relation, Step, Verb
from .vocabulary import Vocabulary, load_vocabulary

PLACES = {
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
WHERE = "|".join(PLACES)

STEP_PATTERN = re.compile(
    rf"^(?:(?P<move>put|push) (?P<what>.+?) (?P<where>{WHERE})(?: (?P<place>(?:the .+|it)))?"
    rf"|pick up (?P<picked>.+) and (?:place|put) it (?P<there>{WHERE}) (?P<goal>the .+)"
    r"|(?P<verb>open|close|turn on|turn off) (?P<thing>the .+|it))$"
)
CLAIM_PATTERN = re.compile(
    rf"^(?P<head>the .+?) (?:between (?P<first>the .+) and (?P<second>the .+)"
    rf"|from (?P<center>\w+) center|(?P<where>{WHERE}) (?P<mark>the .+))$"
)


def parse_base_instruction(instruction: str, vocabulary: Vocabulary | None = None) -> Plan:
    """Read one of LIBERO's own instructions into a plan.

    Raises:
        InvalidInputError: The grammar or the vocabulary does not cover the instruction yet.
    """
    words = vocabulary or load_vocabulary()
    steps: list[Step] = []
    for clause in re.split(r" and (?=(?:put(?! it)|push|open|close|turn|pick) )", instruction):
        match = STEP_PATTERN.match(clause)
        if match is None:
            raise InvalidInputError(f"cannot read the instruction '{instruction}': no rule for '{clause}'")
        steps.extend(_steps(match, steps, words))
    return Plan(steps=tuple(steps))


def _steps(match: re.Match[str], before: list[Step], words: Vocabulary) -> Iterator[Step]:
    if match["verb"]:
        thing = _destination_before(before) if match["thing"] == "it" else _noun_phrase(match["thing"], words)
        yield Step(verb=Verb(match["verb"]), object=thing)
        return
    if match["picked"]:
        relation, goal = PLACES[match["there"]], _noun_phrase(match["goal"], words)
        picked = _claimed_noun_phrase(match["picked"], words)
        yield Step(verb=Verb.PLACE, object=picked, relation=relation, destination=goal)
        return
    if match["place"] in (None, "it"):
        if not before:
            raise InvalidInputError(f"cannot read the instruction: no rule for '{match[0]}'")
        destination = before[-1].object
    else:
        destination = _noun_phrase(match["place"], words)
    for what in _objects(match["what"], words):
        yield Step(verb=Verb(match["move"]), object=what, relation=PLACES[match["where"]], destination=destination)


def _destination_before(before: list[Step]) -> Reference:
    if not before or before[-1].destination is None:
        raise InvalidInputError("cannot read the instruction: no rule for an 'it' that nothing was named for")
    return before[-1].destination


def _objects(text: str, words: Vocabulary) -> Iterator[Reference]:
    """One noun phrase, or the two of "both the soup and the sauce", or the two of "both moka pots"."""
    if not text.startswith("both "):
        yield _noun_phrase(text, words)
        return
    rest = text.removeprefix("both ")
    if rest.startswith("the "):
        for part in rest.split(" and "):
            yield _noun_phrase(part, words)
    else:
        yield replace(_noun_phrase(f"the {rest.removesuffix('s')}", words), count=2)


def _claimed_noun_phrase(text: str, words: Vocabulary) -> Reference:
    try:
        return _noun_phrase(text, words)
    except InvalidInputError:
        match = CLAIM_PATTERN.match(text)
        if match is None:
            raise
    if match["first"]:
        marks = (_noun_phrase(match["first"], words), _noun_phrase(match["second"], words))
        claim = Claim(relation=Relation.BETWEEN, landmarks=marks)
    elif match["center"]:
        claim = Claim(relation=Relation.AT_CENTER, landmarks=(_noun_phrase(f"the {match['center']}", words),))
    else:
        claim = Claim(relation=PLACES[match["where"]], landmarks=(_noun_phrase(match["mark"], words),))
    return replace(_noun_phrase(match["head"], words), claims=(claim,))


def _noun_phrase(text: str, words: Vocabulary) -> Reference:
    if not text.startswith("the "):
        raise InvalidInputError(f"no rule for the noun phrase '{text}'")
    head, _, whole = text.removeprefix("the ").partition(" of the ")
    known = {name for word in words.present.values() for name in word.names}
    adjectives = {a for word in words.present.values() for a in word.adjectives} | set(words.colours)
    reference = Reference(noun=head)
    first, _, rest = head.partition(" ")
    if rest and first in {*words.ordinals, *words.sides} and head not in known:
        reference, head = Reference(noun=rest, ordinal=first), rest
    for adjective in sorted(adjectives, key=len, reverse=True):
        if reference.noun.startswith(f"{adjective} ") and reference.noun not in known:
            reference = replace(reference, adjective=adjective, noun=reference.noun.removeprefix(f"{adjective} "))
    if reference.noun not in known:
        raise InvalidInputError(f"toolkit/vocabulary.json has no noun '{reference.noun}': add it")
    return replace(reference, of=_noun_phrase(f"the {whole}", words)) if whole else reference
