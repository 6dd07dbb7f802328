"""Grounding premises: every noun phrase picks something out, by name, colour, place in a row and number.

A word that the vocabulary does not have is never a conflict: nobody has looked at what else it could mean.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from ..facts import Entity, SceneFacts
from ..language.plan import Plan, Reference
from ..language.vocabulary import Vocabulary
from ..language.word_forms import plural, with_article
from ..records import Family
from .violation import Violation

SIDE_BY_SIDE_M = 0.08
"""Of two entities one is the left one where their middles are this far apart from left to right."""


def entities_named(reference: Reference, facts: SceneFacts, words: Vocabulary) -> list[int]:
    """Indices of the entities that bear the noun, or a synonym of it, colours and numbers aside."""
    wanted = words.names_of(reference.noun)
    found = [i for i, entity in enumerate(facts.entities) if wanted & words.word(entity.category).names]
    if reference.of is not None:
        wholes = {facts.entities[i].name for i in entities_named(reference.of, facts, words)}
        found = [i for i in found if facts.entities[i].part_of in wholes]
    return found


def candidates(reference: Reference, facts: SceneFacts, words: Vocabulary) -> list[int]:
    """Indices of the entities that the noun phrase could mean, its claims aside."""
    found = entities_named(reference, facts, words)
    return _with_ordinal(reference, _with_adjective(reference, found, facts, words), facts, words)


def _with_adjective(reference: Reference, found: list[int], facts: SceneFacts, words: Vocabulary) -> list[int]:
    """Those that the adjective fits: those that it is the very name of, or else those that show the colour."""
    if reference.adjective is None:
        return found
    called = [i for i in found if reference.adjective in words.word(facts.entities[i].category).adjectives]
    return called or [i for i in found if reference.adjective in words.word(facts.entities[i].category).colours_seen]


def _with_ordinal(reference: Reference, found: list[int], facts: SceneFacts, words: Vocabulary) -> list[int]:
    """Those that the ordinal fits: in a row, a side of a whole, or the left or right one of two."""
    if reference.ordinal is None:
        return found
    if reference.ordinal in words.sides:
        sided = [i for i in found if facts.entities[i].side == reference.ordinal]
        return sided or _left_or_right(reference.ordinal, found, facts)
    return [i for i in found if _has_ordinal(facts.entities[i], reference.ordinal, words)]


def _left_or_right(side: str, found: list[int], facts: SceneFacts) -> list[int]:
    """The one of two that is further to the side (right is +y) in every state, by a margin."""
    if len(found) != 2 or side not in ("left", "right"):
        return []
    left, right = sorted(found, key=lambda i: float(facts.position_m[0, i, 1]))
    if np.min(facts.position_m[:, right, 1] - facts.position_m[:, left, 1]) < SIDE_BY_SIDE_M:
        return []
    return [left if side == "left" else right]


def phrase(reference: Reference) -> str:
    """The reference in functional notation, such as ``drawer(fourth, cabinet)`` or ``bowl``."""
    inner = [part for part in (reference.ordinal, phrase(reference.of) if reference.of else None) if part]
    adjective = f"{reference.adjective} " if reference.adjective else ""
    return f"{adjective}{reference.noun}" + (f"({', '.join(inner)})" if inner else "")


def grounding_violations(plan: Plan, facts: SceneFacts, words: Vocabulary) -> Iterator[Violation]:
    """Violations about every noun phrase of the plan."""
    picked_out: set[Reference] = set()
    for reference in plan.references():
        # A claim once made picks out the entity for the rest of the sentence: "... without moving the bowl".
        is_picked_out = reference.bare in picked_out
        yield from _reference_violations(reference, facts, words, is_picked_out=is_picked_out)
        if reference.claims:
            picked_out.add(reference.bare)


def _reference_violations(
    reference: Reference, facts: SceneFacts, words: Vocabulary, *, is_picked_out: bool
) -> Iterator[Violation]:
    states, backdrop = len(facts.init_states), words.backdrop(facts.workspace)
    if reference.of is not None and not entities_named(reference.of, facts, words):
        return  # the whole is reported itself
    found = entities_named(reference, facts, words)
    sure = words.knows(reference.noun) and not words.names_of(reference.noun) & backdrop
    if not found:
        whole = f" of the {reference.of.noun}" if reference.of else ""
        sure = sure or (words.knows(reference.noun) and reference.of is not None)
        yield Violation(
            family=Family.GROUNDING,
            premise=f"exists({phrase(Reference(noun=reference.noun, of=reference.of))})",
            expected=f"{with_article(reference.noun)}{whole} in the scene",
            observed=f"none under any of the names {_join(words.names_of(reference.noun))}; "
            f"the scene holds {_join(_nouns(facts, words))}",
            violated=states if sure else 0,
            unclear=0 if sure else states,
            states=states,
        )
        return
    fitting = _with_adjective(reference, found, facts, words)
    if not fitting:
        seen = frozenset().union(*(words.word(facts.entities[i].category).colours_seen for i in found))
        sure = sure and reference.adjective in words.colours
        yield Violation(
            family=Family.GROUNDING,
            premise=f"colour({reference.noun}, {reference.adjective})",
            expected=f"{with_article(f'{reference.adjective} {reference.noun}')} in the scene",
            observed=f"the {reference.noun} shows only {_join(seen)}",
            violated=states if sure else 0,
            unclear=0 if sure else states,
            states=states,
        )
        if reference.count is not None:
            yield from _number_violations(reference, len(found), states, sure=sure, is_picked_out=is_picked_out)
        return
    in_row = _with_ordinal(reference, fitting, facts, words)
    if not in_row:
        yield _missing_part(reference, fitting, facts, words)
        return
    yield from _number_violations(reference, len(in_row), states, sure=sure, is_picked_out=is_picked_out)


def _missing_part(reference: Reference, found: list[int], facts: SceneFacts, words: Vocabulary) -> Violation:
    states = len(facts.init_states)
    sides = [entity.side for entity in facts.entities if entity.side and entity.category == reference.noun]
    length = max((facts.entities[i].row_length or 1) for i in found)
    row = f"there is 1 {reference.noun}" if length == 1 else f"there are {length} {plural(reference.noun)}"
    return Violation(
        family=Family.GROUNDING,
        premise=f"exists({phrase(Reference(noun=reference.noun, ordinal=reference.ordinal, of=reference.of))})",
        expected=with_article(replace(reference, adjective=None).name),
        observed=f"the {plural(reference.noun)} are {', '.join(sides)}" if sides else f"{row} in the row",
        violated=0 if reference.ordinal in words.sides else states,
        unclear=states if reference.ordinal in words.sides else 0,
        states=states,
    )


def _number_violations(
    reference: Reference, available: int, states: int, *, sure: bool, is_picked_out: bool
) -> Iterator[Violation]:
    if reference.count is not None and available < reference.count:
        yield Violation(
            family=Family.GROUNDING,
            premise=f"count({reference.noun}, {reference.count})",
            expected=f"{reference.count} {plural(reference.noun)} in the scene",
            observed=f"there {'is' if available == 1 else 'are'} {available}",
            violated=states if sure else 0,
            unclear=0 if sure else states,
            states=states,
        )
    if reference.count is None and not reference.claims and not is_picked_out and available > 1:
        yield Violation(
            family=Family.GROUNDING,
            premise=f"unique({phrase(reference)})",
            expected=f"one {reference.noun} that is meant",
            observed=f"{available} fit the words",
            violated=0,
            unclear=states,
            states=states,
        )


def _has_ordinal(entity: Entity, word: str, words: Vocabulary) -> bool:
    if entity.rank is None or entity.row_length is None:
        return False
    ordinal = words.ordinals[word]
    if ordinal.row_length is not None and ordinal.row_length != entity.row_length:
        return False
    return entity.rank == (ordinal.rank if ordinal.rank >= 0 else entity.row_length + ordinal.rank)


def _nouns(facts: SceneFacts, words: Vocabulary) -> frozenset[str]:
    return frozenset(words.word(entity.category).noun for entity in facts.entities)


def _join(names: frozenset[str]) -> str:
    return ", ".join(sorted(names))
