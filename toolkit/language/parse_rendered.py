"""Reading back: a rendered instruction, in the plan's words or in substitutes, into its plan.

The way back from ``render.render``: sentences are taken apart by what its grammar could have put together, and a
reading counts only where rendering it gives the very sentence. LIBERO's own instructions are read by ``reading``.
"""

from __future__ import annotations

import functools
import itertools
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from ..errors import InvalidInputError
from .lexicon import Lexicon, Part, Substitute, load_lexicon
from .plan import Claim, Constraint, Demand, Plan, Reference, Relation, Step, Verb
from .render import IMPERATIVES, NUMBERS, SINGLE_WORDINGS, plural, render
from .vocabulary import Vocabulary, load_vocabulary
from .wording import WORDINGS

JOINT = re.compile(r", then |, and after that | and then ")
TAIL = re.compile(r"(?=, but | without | while | before | and (?!place|put|set|position))")

PLACES: dict[str, Relation] = {
    **{str(relation): relation for relation in Relation if relation is not Relation.BETWEEN},
    "on top of": Relation.ON,
    "inside": Relation.IN,
    "to the front of": Relation.IN_FRONT_OF,
}

SUBJECT = "(?P<subject>.+?)"
WHERE = f"(?P<where>(?:{'|'.join(sorted(PLACES, key=len, reverse=True))}).*)"

Used = frozenset[Substitute]


@dataclass(frozen=True, slots=True)
class _Words:
    """What each phrase of a sentence may stand for, with the substitute that it then is."""

    nouns: dict[str, tuple[str, bool, Used]]
    verbs: dict[str, tuple[tuple[str, Used], ...]]
    ordinals: dict[str, tuple[str, Used]]
    adjectives: dict[str, tuple[str, Used]]
    places: dict[str, tuple[Relation, Used]]


def read_back(sentence: str, vocabulary: Vocabulary | None = None, lexicon: Lexicon | None = None) -> Plan:
    """The plan that the sentence was rendered from, in whatever words.

    Args:
        sentence: What ``render`` gave for any wording but LIBERO's own.
        vocabulary: What things are called; the packaged one by default.
        lexicon: What may stand for what; the packaged one by default.

    Raises:
        InvalidInputError: No plan gives the sentence, or several do.
    """
    if vocabulary is None and lexicon is None:
        words = _packaged_words()
    else:
        words = _words(vocabulary or load_vocabulary(), lexicon or load_lexicon())
    found = {
        plan
        for plan, used in _plans(JOINT.split(sentence), words)
        if any(render(plan, wording, vocabulary, used) == sentence for wording in WORDINGS)
    }
    if len(found) != 1:
        raise InvalidInputError(f"cannot read the instruction '{sentence}': {len(found)} plans read like that")
    return found.pop()


@functools.cache
def _packaged_words() -> _Words:
    return _words(load_vocabulary(), load_lexicon())


def _words(vocabulary: Vocabulary, lexicon: Lexicon) -> _Words:
    named = {name for word in vocabulary.present.values() for name in (word.noun, word.count_noun) if name}
    known = dict(_with_substitutes(named | set(vocabulary.absent), Part.NOUN, lexicon))
    singular = {said: (word, True, used) for said, (word, used) in known.items()}
    adjectives = {a for word in vocabulary.present.values() for a in word.adjectives} | set(vocabulary.colours)
    verbs: dict[str, tuple[tuple[str, Used], ...]] = {}
    for said, verb in _with_substitutes({*Verb, "pick up", "place"} - {Verb.PLACE}, Part.VERB, lexicon):
        verbs[said] = (*verbs.get(said, ()), verb)
    places = {said: (relation, Used()) for said, relation in PLACES.items()}
    for top in lexicon.of(Part.RELATION, "top"):
        places[f"on the {top.say} of"] = (Relation.ON, Used({top}))
    for center in lexicon.of(Part.RELATION, "center"):
        places[f"in the {center.say} of"] = (Relation.AT_CENTER, Used({center}))
    return _Words(
        nouns=singular | {plural(said): (word, False, used) for said, (word, used) in known.items()},
        verbs=verbs,
        ordinals=dict(_with_substitutes({*vocabulary.ordinals, *vocabulary.sides}, Part.ORDINAL, lexicon)),
        adjectives=dict(_with_substitutes(adjectives, Part.COLOUR, lexicon)),
        places=places,
    )


def _with_substitutes(words: Iterable[str], part: Part, lexicon: Lexicon) -> Iterator[tuple[str, tuple[str, Used]]]:
    """Each way to say one of the words, with the word and the substitute that it is."""
    for word in words:
        yield str(word), (str(word), Used())
        for substitute in lexicon.of(part, word):
            yield substitute.say, (str(word), Used({substitute}))


def _plans(clauses: Sequence[str], words: _Words, before: tuple[Step, ...] = ()) -> Iterator[tuple[Plan, Used]]:
    if not clauses:
        yield Plan(steps=before), Used()
        return
    for step, used in _steps(clauses[0], before[-1] if before else None, words):
        for plan, others in _plans(clauses[1:], words, (*before, step)):
            yield plan, used | others


def _steps(clause: str, previous: Step | None, words: _Words) -> Iterator[tuple[Step, Used]]:
    cuts = [*(match.start() for match in TAIL.finditer(clause)), len(clause)]
    for cut in cuts:
        for step, used in _bare_steps(clause[:cut], previous, words):
            for constraints, others in _constraints(clause[cut:], step, words):
                yield replace(step, constraints=constraints), used | others


def _bare_steps(text: str, previous: Step | None, words: _Words) -> Iterator[tuple[Step, Used]]:
    for said, meant in words.verbs.items():
        if not text.startswith(f"{said} "):
            continue
        rest = text.removeprefix(f"{said} ")
        for verb, used in meant:
            for step, others in _steps_of(verb, rest, previous, words):
                yield step, used | others


def _steps_of(verb: str, rest: str, previous: Step | None, words: _Words) -> Iterator[tuple[Step, Used]]:
    if verb == "pick up":
        yield from _pickings(rest, previous, words)
    elif verb in (Verb.PUT, Verb.PUSH):
        for thing, where in _cuts(rest):
            for (obj, used), (relation, place, others) in itertools.product(
                _references(thing, words), _destinations(where, previous, words)
            ):
                yield _moved(Verb(verb), obj, relation, place), used | others
    elif verb != "place":
        if rest == "it" and previous is not None and previous.destination is not None:
            yield Step(verb=Verb(verb), object=previous.destination), Used()
        for obj, used in _references(rest, words):
            yield Step(verb=Verb(verb), object=obj), used


def _pickings(rest: str, previous: Step | None, words: _Words) -> Iterator[tuple[Step, Used]]:
    """What comes after "pick up": a thing, "and place it", and where."""
    for said, meant in words.verbs.items():
        for (verb, used), it in itertools.product(meant, ("it", "them")):
            thing, found, where = rest.partition(f" and {said} {it} ")
            if verb != "place" or not found:
                continue
            for (obj, others), (relation, place, more) in itertools.product(
                _references(thing, words), _destinations(where, previous, words)
            ):
                yield _moved(Verb.PLACE, obj, relation, place), used | others | more


def _moved(verb: Verb, obj: Reference, relation: Relation, place: Reference | None) -> Step:
    """``place`` is None where a thing is brought to itself."""
    return Step(verb=verb, object=obj, relation=relation, destination=obj.bare if place is None else place)


def _cuts(text: str) -> Iterator[tuple[str, str]]:
    """Every way to cut the text in two between words."""
    for match in re.finditer(" ", text):
        yield text[: match.start()], text[match.end() :]


def _destinations(text: str, previous: Step | None, words: _Words) -> Iterator[tuple[Relation, Reference | None, Used]]:
    if text in ("inside itself", "on top of itself"):
        yield (Relation.IN if text == "inside itself" else Relation.ON), None, Used()
    if text == "inside" and previous is not None and previous.destination is None:
        yield Relation.IN, previous.object, Used()
    for relation, rest, used in _relations(text, words):
        for place, others in _references(rest, words):
            yield relation, place, used | others


def _relations(text: str, words: _Words) -> Iterator[tuple[Relation, str, Used]]:
    for said, (relation, used) in words.places.items():
        if text.startswith(f"{said} "):
            yield relation, text.removeprefix(f"{said} "), used


def _references(text: str, words: _Words) -> Iterator[tuple[Reference, Used]]:
    """Noun phrases that are the whole text."""
    yield from _bare_references(text, words)
    for head, tail in _cuts(text):
        claims = re.sub("^that (is|are) ", "", tail)
        for reference, used in _bare_references(head, words):
            for made, others in _claims(claims, words):
                yield _claimed(reference, made), used | others


def _claimed(reference: Reference, claims: tuple[Claim, ...]) -> Reference:
    """A claim is said of what stands right before it: of the cabinet in "the drawer of the cabinet that is ..."."""
    if reference.of is not None:
        return replace(reference, of=_claimed(reference.of, claims))
    return replace(reference, claims=claims)


def _claims(text: str, words: _Words) -> Iterator[tuple[tuple[Claim, ...], Used]]:
    for claim, used in _one_claim(text, words):
        yield (claim,), used
    for match in re.finditer(" and ", text):
        for claim, used in _one_claim(text[: match.start()], words):
            for claims, others in _claims(text[match.end() :], words):
                yield (claim, *claims), used | others


def _one_claim(text: str, words: _Words) -> Iterator[tuple[Claim, Used]]:
    for relation, rest, used in _relations(text, words):
        for landmark, others in _bare_references(rest, words):
            yield Claim(relation=relation, landmarks=(landmark,)), used | others
    if text.startswith("between "):
        first, _, second = text.removeprefix("between ").partition(" and the ")
        for (a, used), (b, others) in itertools.product(
            _bare_references(first, words), _bare_references(f"the {second}", words)
        ):
            yield Claim(relation=Relation.BETWEEN, landmarks=(a, b)), used | others


def _bare_references(text: str, words: _Words) -> Iterator[tuple[Reference, Used]]:
    head, _, whole = text.partition(" of the ")
    number = re.match(r"(the|both|all (\w+)) ", head)
    if number is None:
        return
    count = 2 if number[1] == "both" else _number(number[2])
    for reference, used in _described(head[number.end() :], count, words):
        if not whole:
            yield reference, used
            continue
        for of, others in _bare_references(f"the {whole}", words):
            yield replace(reference, of=of), used | others


def _number(word: str | None) -> int | None:
    if word is None or word.isdigit():
        return None if word is None else int(word)
    return next((count for count, name in NUMBERS.items() if name == word), None)


def _described(text: str, count: int | None, words: _Words) -> Iterator[tuple[Reference, Used]]:
    if text in words.nouns:
        noun, singular, used = words.nouns[text]
        # "The moka pots" is said of what was counted before, and then resolved to it.
        if count is None or not singular:
            yield Reference(noun=noun, count=count), used
    for name, known in (("ordinal", words.ordinals), ("adjective", words.adjectives)):
        for said, (word, used) in known.items():
            if text.startswith(f"{said} "):
                for bare, others in _described(text.removeprefix(f"{said} "), count, words):
                    changed = replace(bare, ordinal=word) if name == "ordinal" else replace(bare, adjective=word)
                    yield changed, used | others


def _constraints(text: str, step: Step, words: _Words) -> Iterator[tuple[tuple[Constraint, ...], Used]]:
    """Constraints that are the whole text, after the step that they belong to."""
    if not text:
        yield (), Used()
        return
    if text.startswith(", but "):
        yield from _imperatives(text.removeprefix(", but "), step, words)
    yield from _single(SINGLE_WORDINGS, text, step, words)


def _imperatives(text: str, step: Step, words: _Words) -> Iterator[tuple[tuple[Constraint, ...], Used]]:
    yield from _single(IMPERATIVES, text, step, words)
    for match in re.finditer("(,)? and ", text):
        firsts = _single(IMPERATIVES, text[: match.start()], step, words)
        for (first, used), (rest, others) in itertools.product(firsts, _imperatives(text[match.end() :], step, words)):
            yield first + rest, used | others


def _single(
    wordings: dict[Demand, tuple[str, ...]], text: str, step: Step, words: _Words
) -> Iterator[tuple[tuple[Constraint, ...], Used]]:
    for demand, forms in wordings.items():
        for form in forms:
            for constraint, used in _demands(form, demand, text, step, words):
                yield (constraint,), used


def _demands(form: str, demand: Demand, text: str, step: Step, words: _Words) -> Iterator[tuple[Constraint, Used]]:
    for pattern in _patterns(form):
        match = re.fullmatch(pattern, text)
        if match is None:
            continue
        found = match.groupdict()
        for subject, used in _subjects(found.get("subject"), demand, step, words):
            if demand not in (Demand.ALSO_AT, Demand.NOT_AT, Demand.ONLY_AT):
                yield Constraint(demand=demand, subject=subject), used
                continue
            for relation, landmark, others in _destinations(found.get("where") or "", None, words):
                yield Constraint(demand=demand, subject=subject, relation=relation, landmark=landmark), used | others


@functools.cache
def _patterns(form: str) -> tuple[str, ...]:
    """The form as a pattern: once as it is, and once for several things."""
    several = (
        form.replace("{it} is", "{it} are").replace("where it is", "where they are").replace("il it is", "il they are")
    )
    return tuple(_pattern(one) for one in dict.fromkeys((form, several)))


def _pattern(form: str) -> str:
    pattern = re.escape(form)
    for name, stands in (
        ("it", SUBJECT), ("subject", SUBJECT), ("where", WHERE), ("there", r".+"),
        ("pick", r"\w+"), ("picking", r"\w+ing"), ("up", "( up)?"),
    ):  # fmt: skip
        pattern = pattern.replace(re.escape(f"{{{name}}}"), stands)
    return pattern


def _subjects(text: str | None, demand: Demand, step: Step, words: _Words) -> Iterator[tuple[Reference, Used]]:
    """What is said of: a thing of the step, with all that the step says of it, or one that only the demand names."""
    of_step = [reference for reference in (step.object, step.destination) if reference is not None]
    if text is None or text == "it":
        yield step.object, Used()
        return
    for reference, used in _references(text.removeprefix("the top of ") if demand is Demand.EMPTY else text, words):
        same = [one for one in of_step if _is_named(reference, one)]
        yield from ((one, used) for one in same or [reference])


def _is_named(said: Reference, meant: Reference) -> bool:
    """Whether the phrase could be short for the other: without its claims, its whole or its number."""
    short = replace(meant, claims=(), of=said.of, count=said.count)
    return said in (short, replace(short, ordinal=None), replace(short, adjective=None, ordinal=None))
