"""Grounding premises: every noun phrase picks something out, by name, colour, place in a row and number.

A word that the vocabulary does not have is never a conflict: nobody has looked at what else it could mean.
"""

from __future__ import annotations

from collections.abc import Iterator

from ..facts import Entity, SceneFacts
from ..plan import Plan, Reference
from ..records import Family
from ..vocabulary import Vocabulary
from .finding import Finding


def named(reference: Reference, facts: SceneFacts, words: Vocabulary) -> list[int]:
    """Entities that bear the noun, or a synonym of it, colours and numbers aside."""
    wanted = words.names_of(reference.noun)
    found = [i for i, entity in enumerate(facts.entities) if wanted & words.word(entity.category).names]
    if reference.of is not None:
        wholes = {facts.entities[i].name for i in named(reference.of, facts, words)}
        found = [i for i in found if facts.entities[i].part_of in wholes]
    return found


def candidates(reference: Reference, facts: SceneFacts, words: Vocabulary) -> list[int]:
    """Entities that the noun phrase could mean, its claims aside."""
    return [
        i
        for i in named(reference, facts, words)
        if _has_adjective(facts.entities[i], reference, words) and _has_ordinal(facts.entities[i], reference, words)
    ]


def phrase(reference: Reference) -> str:
    """The reference in functional notation, such as ``drawer(fourth, cabinet)`` or ``bowl``."""
    inner = [part for part in (reference.ordinal, phrase(reference.of) if reference.of else None) if part]
    adjective = f"{reference.adjective} " if reference.adjective else ""
    return f"{adjective}{reference.noun}" + (f"({', '.join(inner)})" if inner else "")


def grounding_findings(plan: Plan, facts: SceneFacts, words: Vocabulary) -> Iterator[Finding]:
    """Findings about every noun phrase of the plan."""
    for reference in plan.references():
        yield from _reference_findings(reference, facts, words)


def _reference_findings(reference: Reference, facts: SceneFacts, words: Vocabulary) -> Iterator[Finding]:
    states = len(facts.init_states)
    if reference.of is not None and not named(reference.of, facts, words):
        return  # the whole is reported itself
    found = named(reference, facts, words)
    if not found:
        whole = f" of the {reference.of.noun}" if reference.of else ""
        yield Finding(
            family=Family.GROUNDING,
            premise=f"exists({phrase(Reference(noun=reference.noun, of=reference.of))})",
            expected=f"a {reference.noun}{whole} in the scene",
            observed=f"none under any of the names {_listed(words.names_of(reference.noun))}; "
            f"the scene holds {_listed(_nouns(facts, words))}",
            violated=states if words.knows(reference.noun) else 0,
            unclear=0 if words.knows(reference.noun) else states,
            states=states,
        )
        return
    if not any(_has_adjective(facts.entities[i], reference, words) for i in found):
        seen = frozenset().union(*(words.word(facts.entities[i].category).colours_seen for i in found))
        yield Finding(
            family=Family.GROUNDING,
            premise=f"colour({reference.noun}, {reference.adjective})",
            expected=f"a {reference.adjective} {reference.noun} in the scene",
            observed=f"the {reference.noun} shows only {_listed(seen)}",
            violated=states if reference.adjective in words.colours else 0,
            unclear=0 if reference.adjective in words.colours else states,
            states=states,
        )
    in_row = [i for i in found if _has_ordinal(facts.entities[i], reference, words)]
    if not in_row:
        length = max((facts.entities[i].row_length or 1) for i in found)
        yield Finding(
            family=Family.GROUNDING,
            premise=f"exists({phrase(Reference(noun=reference.noun, ordinal=reference.ordinal, of=reference.of))})",
            expected=f"a {reference.ordinal} {reference.noun}",
            observed=f"there are {length} {reference.noun}s in the row",
            violated=states,
            states=states,
        )
        return
    yield from _number_findings(reference, len(in_row), states)


def _number_findings(reference: Reference, available: int, states: int) -> Iterator[Finding]:
    if reference.count is not None and available < reference.count:
        yield Finding(
            family=Family.GROUNDING,
            premise=f"count({reference.noun}, {reference.count})",
            expected=f"{reference.count} {reference.noun}s in the scene",
            observed=f"there {'is' if available == 1 else 'are'} {available}",
            violated=states,
            states=states,
        )
    if reference.count is None and not reference.claims and available > 1:
        yield Finding(
            family=Family.GROUNDING,
            premise=f"unique({phrase(reference)})",
            expected=f"one {reference.noun} that is meant",
            observed=f"{available} fit the words",
            violated=0,
            unclear=states,
            states=states,
        )


def _has_adjective(entity: Entity, reference: Reference, words: Vocabulary) -> bool:
    word = words.word(entity.category)
    return reference.adjective is None or reference.adjective in word.adjectives | word.colours_seen


def _has_ordinal(entity: Entity, reference: Reference, words: Vocabulary) -> bool:
    if reference.ordinal is None:
        return True
    if entity.rank is None or entity.row_length is None:
        return False
    ordinal = words.ordinals[reference.ordinal]
    if ordinal.row_length is not None and ordinal.row_length != entity.row_length:
        return False
    return entity.rank == (ordinal.rank if ordinal.rank >= 0 else entity.row_length + ordinal.rank)


def _nouns(facts: SceneFacts, words: Vocabulary) -> frozenset[str]:
    return frozenset(words.word(entity.category).noun for entity in facts.entities)


def _listed(names: frozenset[str]) -> str:
    return ", ".join(sorted(names))
