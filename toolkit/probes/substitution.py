"""Language probes: an instruction in other words, with the same meaning in its scene.

A *slot* is a word of the plan that the lexicon has substitutes for, with all of its mentions: two names for one object
would read as two objects. At level Wk the first k slots of a fixed order are filled, so that each level holds the
substitutions of the one before. A substitute is offered only where the premise checker, given the scene and the new
words, comes to the same violations, and where every noun phrase that means something still means exactly that.
"""

from __future__ import annotations

import itertools
import random
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from ..facts import SceneFacts
from ..language.lexicon import Lexicon, Part, Substitute, load_lexicon, widened_vocabulary
from ..language.plan import Plan, Reference, Relation, Step, Verb
from ..language.render import render
from ..language.vocabulary import Vocabulary, load_vocabulary
from ..language.word_forms import plural
from ..premises import check
from ..premises.grounding import candidates

MAX_SUBSTITUTIONS = 4
"""Those of W4."""

STAND_IN = "\x00"
"""What no instruction holds: put in the place of a word to see where it is mentioned."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Slot:
    """A word of an instruction that another may stand for.

    Attributes:
        role: What it does where it is first mentioned: ``verb``, ``placing verb`` ("pick up ... and *place* it"),
            ``object``, ``relation``, ``destination``, ``whole`` (what a part belongs to), ``landmark`` (of a claim or a
            demand), ``ordinal`` or ``colour``.
        part: Part of the lexicon.
        word: The word.
    """

    role: str
    part: Part
    word: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Substitution:
    """A slot and what stands in it."""

    slot: Slot
    substitute: Substitute


def slots(plan: Plan, wording: int = 0, lexicon: Lexicon | None = None) -> tuple[Slot, ...]:
    """The slots of an instruction, each word once, in the order of mention.

    Args:
        plan: The instruction's plan.
        wording: Its wording; not every wording has every word.
        lexicon: The packaged one by default.
    """
    entries = lexicon or load_lexicon()
    found: dict[tuple[Part, str], Slot] = {}
    for slot in _words(plan):
        offered = entries.of(slot.part, slot.word)
        if offered and _changes_words(plan, wording, offered[0]):
            found.setdefault((slot.part, slot.word), slot)
    return tuple(found.values())


def _changes_words(plan: Plan, wording: int, substitute: Substitute) -> bool:
    return render(plan, wording, substitutes=[substitute]) != render(plan, wording)


def _words(plan: Plan) -> Iterator[Slot]:
    for step in plan.steps:
        yield Slot(role="verb", part=Part.VERB, word="pick up" if step.verb is Verb.PLACE else str(step.verb))
        yield from _words_of(step.object, "object")
        if step.verb is Verb.PLACE:
            yield Slot(role="placing verb", part=Part.VERB, word="place")
        yield from _destination_words(step)
        for constraint in step.constraints:
            yield from _words_of(constraint.subject, "landmark")
            if constraint.landmark is not None:
                yield from _words_of(constraint.landmark, "landmark")


def _destination_words(step: Step) -> Iterator[Slot]:
    if step.relation is Relation.ON:
        yield Slot(role="relation", part=Part.RELATION, word="top")
    if step.destination is not None:
        yield from _words_of(step.destination, "destination")


def _words_of(reference: Reference, role: str) -> Iterator[Slot]:
    if reference.ordinal is not None:
        yield Slot(role="ordinal", part=Part.ORDINAL, word=reference.ordinal)
    if reference.adjective is not None:
        yield Slot(role="colour", part=Part.COLOUR, word=reference.adjective)
    yield Slot(role=role, part=Part.NOUN, word=reference.noun)
    if reference.of is not None:
        yield from _words_of(reference.of, "whole")
    for claim in reference.claims:
        if claim.relation in (Relation.ON, Relation.AT_CENTER):
            word = "top" if claim.relation is Relation.ON else "center"
            yield Slot(role="relation", part=Part.RELATION, word=word)
        for landmark in claim.landmarks:
            yield from _words_of(landmark, "landmark")


def substitutions(
    plan: Plan,
    facts: SceneFacts,
    *,
    wording: int,
    seed: str,
    like: Sequence[Substitution] = (),
    lexicon: Lexicon | None = None,
) -> tuple[Substitution, ...]:
    """What W1 to W4 substitute, in order; fewer than four where no more are available.

    Args:
        plan: The instruction's plan.
        facts: Facts of its scene.
        wording: Its wording.
        seed: Decides on the order of slots and on one of several substitutes; the same seed gives the same.
        like: Substitutions to begin with where they are available, such as those of the reference: then the two
            instructions of a pair differ in nothing but the conflict.
        lexicon: The packaged one by default.
    """
    entries = lexicon or load_lexicon()
    chosen: list[Substitution] = []
    for slot in _order_slots(slots(plan, wording, entries), seed, like):
        if len(chosen) == MAX_SUBSTITUTIONS:
            break
        for substitute in _order_substitutes(slot, entries, seed, like):
            trial = [*(one.substitute for one in chosen), substitute]
            if _is_unambiguous(plan, wording, trial) and keeps_meaning(plan, facts, trial):
                chosen.append(Substitution(slot=slot, substitute=substitute))
                break
    return tuple(chosen)


def _order_slots(found: Sequence[Slot], seed: str, like: Sequence[Substitution]) -> list[Slot]:
    """Those of ``like`` first, in its order; the others as the seed has it."""
    rank = {(given.slot.part, given.slot.word): number for number, given in enumerate(like)}
    shuffled = list(found)
    random.Random(seed).shuffle(shuffled)  # reproducible, not secret
    return sorted(shuffled, key=lambda slot: rank.get((slot.part, slot.word), len(rank)))


def _order_substitutes(slot: Slot, lexicon: Lexicon, seed: str, like: Sequence[Substitution]) -> list[Substitute]:
    offered = list(lexicon.of(slot.part, slot.word))
    random.Random(f"{seed}/{slot.word}").shuffle(offered)
    same = {one.substitute for one in like}
    return sorted(offered, key=lambda substitute: substitute not in same)


def _is_unambiguous(plan: Plan, wording: int, chosen: Sequence[Substitute]) -> bool:
    """Whether the last substitute occurs nowhere else, as another word or part of one, with and without the others."""
    *others, last = chosen
    hidden = replace(last, say=STAND_IN)
    sentences = (render(plan, wording, substitutes=[*before, hidden]) for before in ((), others))
    return not any(_occurs(last, sentence) for sentence in sentences)


def _occurs(substitute: Substitute, sentence: str) -> bool:
    forms = "|".join(re.escape(form) for form in (substitute.say, plural(substitute.say)))
    return re.search(rf"\b(?:{forms})\b", sentence) is not None


def substitutes_used(plan: Plan, wording: int, instruction: str) -> tuple[Substitute, ...] | None:
    """The substitutes that an instruction uses for its plan's words, or None where none give this instruction."""
    entries = load_lexicon()
    options = [
        (None, *(s for s in entries.of(slot.part, slot.word) if _occurs(s, instruction)))
        for slot in slots(plan, wording, entries)
    ]
    for combination in itertools.product(*options):
        chosen = tuple(substitute for substitute in combination if substitute is not None)
        if render(plan, wording, substitutes=chosen) == instruction:
            return chosen
    return None


def keeps_meaning(plan: Plan, facts: SceneFacts, chosen: Iterable[Substitute]) -> bool:
    """Whether the plan, in the new words, means the same in the scene, by the premise checker's own rules.

    Its violations must be the same, premise by premise, and as certain; what each noun phrase could mean too.
    """
    words, widened = load_vocabulary(), widened_vocabulary()
    substitutes = tuple(chosen)
    reworded = in_words(plan, substitutes)
    before, after = check(plan, facts, words), check(reworded, facts, widened)
    renamed = [(f.family, _renamed(f.premise, substitutes), f.violated, f.unclear) for f in before]
    if renamed != [(f.family, f.premise, f.violated, f.unclear) for f in after]:
        return False
    pairs = zip(plan.references(), reworded.references(), strict=True)
    return all(_mean_the_same(old, new, facts, words, widened) for old, new in pairs)


def _mean_the_same(old: Reference, new: Reference, facts: SceneFacts, words: Vocabulary, widened: Vocabulary) -> bool:
    return candidates(old, facts, words) == candidates(new, facts, widened)


def in_words(plan: Plan, substitutes: Iterable[Substitute]) -> Plan:
    """The plan with substitutes for its nouns, colours and ordinals: what a listener takes it to be."""
    new_words = {(s.part, s.word): s.say for s in substitutes}

    def renamed(reference: Reference) -> Reference:
        return replace(
            reference,
            noun=new_words.get((Part.NOUN, reference.noun), reference.noun),
            adjective=new_words.get((Part.COLOUR, reference.adjective or ""), reference.adjective),
            ordinal=new_words.get((Part.ORDINAL, reference.ordinal or ""), reference.ordinal),
        )

    return plan.mapped(renamed)


def _renamed(premise: str, substitutes: Sequence[Substitute]) -> str:
    """The premise as it reads in the new words."""
    new_words = {s.word: s.say for s in substitutes if s.part in (Part.NOUN, Part.ORDINAL, Part.COLOUR)}
    if not new_words:
        return premise
    words = "|".join(re.escape(word) for word in sorted(new_words, key=len, reverse=True))
    return re.sub(rf"\b({words})\b", lambda match: new_words[match[0]], premise)
