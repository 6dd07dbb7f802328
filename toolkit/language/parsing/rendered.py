"""Parsing of rendered instructions, in the plan's words or in substitutes, into their plans.

The way back from ``render.render``: sentences are taken apart by what its grammar could have put together, and a
reading counts only where rendering it gives the very sentence. LIBERO's own instructions: see ``parsing.libero``.
"""

from __future__ import annotations

import functools
import itertools
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from ...errors import InvalidInputError
from ..lexicon import Lexicon, load_lexicon
from ..plan import Constraint, Demand, Plan, Reference, Relation, Step, Verb
from ..render import render
from ..sentence_forms import IMPERATIVES, SINGLE_WORDINGS, STEP_JOINTS, in_plural
from ..vocabulary import Vocabulary, load_vocabulary
from ..wording import WORDINGS
from .phrases import (
    RENDERED_RELATIONS,
    Meanings,
    Used,
    cuts,
    packaged_meanings,
    phrase_meanings,
    references,
    relations_at,
)

JOINT = re.compile("|".join(STEP_JOINTS))
TAIL = re.compile(r"(?=, but | without | while | before | and (?!place|put|set|position))")
"""Where a step's constraints may begin."""

SUBJECT = "(?P<subject>.+?)"
WHERE = f"(?P<where>(?:{'|'.join(sorted(RENDERED_RELATIONS, key=len, reverse=True))}).*)"


def parse_rendered_instruction(
    sentence: str, vocabulary: Vocabulary | None = None, lexicon: Lexicon | None = None
) -> Plan:
    """The plan that the sentence was rendered from, in whatever words.

    Args:
        sentence: What ``render`` gives for any wording but LIBERO's own.
        vocabulary: Names of everything in the scenes; the packaged one by default.
        lexicon: Substitutes of words; the packaged one by default.

    Raises:
        InvalidInputError: No plan gives the sentence, or several do.
    """
    if vocabulary is None and lexicon is None:
        words = packaged_meanings()
    else:
        words = phrase_meanings(vocabulary or load_vocabulary(), lexicon or load_lexicon())
    found = {
        plan
        for plan, used in _plans(JOINT.split(sentence), words)
        if any(render(plan, wording, vocabulary, used) == sentence for wording in WORDINGS)
    }
    if len(found) != 1:
        raise InvalidInputError(f"cannot read the instruction '{sentence}': {len(found)} plans read like that")
    return found.pop()


def _plans(clauses: Sequence[str], words: Meanings, before: tuple[Step, ...] = ()) -> Iterator[tuple[Plan, Used]]:
    """Plans of which each clause is a step."""
    if not clauses:
        yield Plan(steps=before), Used()
        return
    for step, used in _steps(clauses[0], before[-1] if before else None, words):
        for plan, others in _plans(clauses[1:], words, (*before, step)):
            yield plan, used | others


def _steps(clause: str, previous: Step | None, words: Meanings) -> Iterator[tuple[Step, Used]]:
    ends = [*(match.start() for match in TAIL.finditer(clause)), len(clause)]
    for end in ends:
        for step, used in _bare_steps(clause[:end], previous, words):
            for constraints, others in _constraints(clause[end:], step, words):
                yield replace(step, constraints=constraints), used | others


def _bare_steps(text: str, previous: Step | None, words: Meanings) -> Iterator[tuple[Step, Used]]:
    for form, meant in words.verbs.items():
        if not text.startswith(f"{form} "):
            continue
        rest = text.removeprefix(f"{form} ")
        for verb, used in meant:
            for step, others in _steps_of(verb, rest, previous, words):
                yield step, used | others


def _steps_of(verb: str, rest: str, previous: Step | None, words: Meanings) -> Iterator[tuple[Step, Used]]:
    if verb == "pick up":
        yield from _picking_steps(rest, previous, words)
    elif verb in (Verb.PUT, Verb.PUSH):
        for noun_phrase, where in cuts(rest):
            for (obj, used), (relation, place, others) in itertools.product(
                references(noun_phrase, words), _destinations(where, previous, words)
            ):
                yield _moving_step(Verb(verb), obj, relation, place), used | others
    elif verb != "place":
        if rest == "it" and previous is not None and previous.destination is not None:
            yield Step(verb=Verb(verb), object=previous.destination), Used()
        for obj, used in references(rest, words):
            yield Step(verb=Verb(verb), object=obj), used


def _picking_steps(rest: str, previous: Step | None, words: Meanings) -> Iterator[tuple[Step, Used]]:
    """What comes after "pick up": a noun phrase, "and place it", and where."""
    for form, meant in words.verbs.items():
        for (verb, used), it in itertools.product(meant, ("it", "them")):
            noun_phrase, found, where = rest.partition(f" and {form} {it} ")
            if verb != "place" or not found:
                continue
            for (obj, others), (relation, place, more) in itertools.product(
                references(noun_phrase, words), _destinations(where, previous, words)
            ):
                yield _moving_step(Verb.PLACE, obj, relation, place), used | others | more


def _moving_step(verb: Verb, obj: Reference, relation: Relation, place: Reference | None) -> Step:
    """A step that moves an object; ``place`` is None where the object is brought to itself."""
    return Step(verb=verb, object=obj, relation=relation, destination=obj.bare if place is None else place)


def _destinations(
    text: str, previous: Step | None, words: Meanings
) -> Iterator[tuple[Relation, Reference | None, Used]]:
    if text in ("inside itself", "on top of itself"):
        yield (Relation.IN if text == "inside itself" else Relation.ON), None, Used()
    if text == "inside" and previous is not None and previous.destination is None:
        yield Relation.IN, previous.object, Used()
    for relation, rest, used in relations_at(text, words):
        for place, others in references(rest, words):
            yield relation, place, used | others


def _constraints(text: str, step: Step, words: Meanings) -> Iterator[tuple[tuple[Constraint, ...], Used]]:
    """Constraints that make up the whole text, after the step that they belong to."""
    if not text:
        yield (), Used()
        return
    if text.startswith(", but "):
        yield from _imperatives(text.removeprefix(", but "), step, words)
    yield from _single_constraints(SINGLE_WORDINGS, text, step, words)


def _imperatives(text: str, step: Step, words: Meanings) -> Iterator[tuple[tuple[Constraint, ...], Used]]:
    yield from _single_constraints(IMPERATIVES, text, step, words)
    for match in re.finditer("(,)? and ", text):
        firsts = _single_constraints(IMPERATIVES, text[: match.start()], step, words)
        for (first, used), (rest, others) in itertools.product(firsts, _imperatives(text[match.end() :], step, words)):
            yield first + rest, used | others


def _single_constraints(
    wordings: dict[Demand, tuple[str, ...]], text: str, step: Step, words: Meanings
) -> Iterator[tuple[tuple[Constraint, ...], Used]]:
    for demand, forms in wordings.items():
        for form in forms:
            for constraint, used in _demands(form, demand, text, step, words):
                yield (constraint,), used


def _demands(form: str, demand: Demand, text: str, step: Step, words: Meanings) -> Iterator[tuple[Constraint, Used]]:
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
    """The form as a pattern: once as it is, and once for several objects."""
    return tuple(_pattern(variant) for variant in dict.fromkeys((form, in_plural(form))))


def _pattern(form: str) -> str:
    pattern = re.escape(form)
    for name, stands in (
        ("it", SUBJECT), ("subject", SUBJECT), ("where", WHERE), ("there", r".+"),
        ("pick", r"\w+"), ("picking", r"\w+ing"), ("up", "( up)?"),
    ):  # fmt: skip
        pattern = pattern.replace(re.escape(f"{{{name}}}"), stands)
    return pattern


def _subjects(text: str | None, demand: Demand, step: Step, words: Meanings) -> Iterator[tuple[Reference, Used]]:
    """What a demand is about: an entity of the step, with all the step's claims, or one that only the demand names."""
    of_step = [reference for reference in (step.object, step.destination) if reference is not None]
    if text is None or text == "it":
        yield step.object, Used()
        return
    for reference, used in references(text.removeprefix("the top of ") if demand is Demand.EMPTY else text, words):
        same = [full for full in of_step if _is_short_for(reference, full)]
        yield from ((full, used) for full in same or [reference])


def _is_short_for(short: Reference, full: Reference) -> bool:
    """Whether a phrase could be short for another: without its claims, its whole or its number."""
    bare = replace(full, claims=(), of=short.of, count=short.count)
    return short in (bare, replace(bare, ordinal=None), replace(bare, adjective=None, ordinal=None))
