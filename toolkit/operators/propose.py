"""From a base plan to proposals of all levels: edits of its steps, and valid side steps before them."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator
from dataclasses import dataclass, replace

from ..facts import SceneFacts
from ..language.plan import PLACING, Plan, Reference, Relation, Step, Verb
from ..language.vocabulary import Vocabulary
from ..records import Family
from . import grounding, instruction, physical, spatial
from .edit import Operator
from .surroundings import Surroundings

ATOMIC: tuple[Operator, ...] = (*instruction.ATOMIC, *grounding.ATOMIC, *spatial.ATOMIC, *physical.ATOMIC)
COMPOUND: tuple[Operator, ...] = (*instruction.COMPOUND, *grounding.COMPOUND, *spatial.COMPOUND, *physical.COMPOUND)

ONE_IDEA: dict[str, str] = dict.fromkeys(physical.NO_SUCH_PART, "no_such_part")

LEADS_FOR_EACH = 2
"""How many side steps each broken step is proposed with; all of them would only repeat its factor."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal:
    """A plan that an operator thinks is a conflict.

    Attributes:
        plan: The plan.
        operator: Name of the operator, or of both where two steps are broken.
        family: The family that the operator aims at.
        compound: Whether it is meant to violate several premises.
    """

    plan: Plan
    operator: str
    family: Family
    compound: bool


def ideas(operator: str) -> list[str]:
    """The ideas behind an operator's or a compound's name; operators that differ only in the verb share one."""
    return [ONE_IDEA.get(name, name) for name in operator.replace("&", "+").split("+")]


def propose(base: Plan, facts: SceneFacts, words: Vocabulary) -> Iterator[Proposal]:
    """Every proposal for a base plan, each once, in a fixed order.

    Each step of the base plan gives single-step conflicts. Conflicts of several steps have the base plan's own steps
    where those are several, or else a valid side step in front.
    """
    around = Surroundings.of(base, facts, words)
    # Breaking two side steps can leave the same step: what they differed in is gone.
    for proposal in dict.fromkeys(_proposals(base, around)):
        if not _says_the_converse(proposal.plan):
            yield proposal


def _proposals(base: Plan, around: Surroundings) -> Iterator[Proposal]:
    singly = one_by_one(base, around)
    for step in base.steps:
        for operator in ATOMIC:
            yield from (_proposal((edited,), operator, compound=False) for edited in operator.edit(step, around))
        for operator in COMPOUND:
            yield from (_proposal((edited,), operator, compound=True) for edited in operator.edit(step, around))
    if len(singly) > 1:
        yield from _conflicts_within(singly, around)
        return
    leads = side_steps(around)
    random.Random(around.facts.task_id).shuffle(leads)  # reproducible, not secret
    if leads:
        yield from _conflicts_after(leads, base.steps[-1], around)


def _proposal(steps: tuple[Step, ...], operator: Operator, *, compound: bool) -> Proposal:
    return Proposal(plan=Plan(steps=steps), operator=operator.name, family=operator.family, compound=compound)


def one_by_one(base: Plan, around: Surroundings) -> tuple[Step, ...]:
    """The base plan's steps, with "both moka pots" taken as first the left one and then the right one."""
    steps: list[Step] = []
    for step in base.steps:
        sides = [replace(step.object, count=None, ordinal=side) for side in ("left", "right")]
        steps += [step] if step.object.count is None else [replace(step, object=one) for one in sides]
    return tuple(steps)


def _conflicts_within(steps: tuple[Step, ...], around: Surroundings) -> Iterator[Proposal]:
    """Conflicts in one of the base task's own steps, or in two of them in one family."""
    for index, step in enumerate(steps):
        for operator in ATOMIC:
            for edited in _similar_edits(operator, step, around, opening=True):
                edited_steps = (*steps[:index], edited, *steps[index + 1 :])
                if not _moves_twice(edited_steps, around):
                    yield _proposal(edited_steps, operator, compound=False)
    for (i, first), (j, second) in itertools.combinations(enumerate(steps), 2):
        for one, other in itertools.product(ATOMIC, ATOMIC):
            if one.family is other.family:
                broken = list(_similar_edits(one, first, around))
                for number, edited in enumerate(_similar_edits(other, second, around)):
                    if broken:
                        both = list(steps)
                        both[i], both[j] = broken[number % len(broken)], edited
                        if not _moves_twice(tuple(both), around):
                            yield _pair_proposal(tuple(both), one, other)


def _conflicts_after(leads: list[Step], main: Step, around: Surroundings) -> Iterator[Proposal]:
    """Conflicts of two steps: the lead valid and the main step broken, or both broken in one family."""
    turn = itertools.count()
    for operator in ATOMIC:
        for edited in _similar_edits(operator, main, around, opening=True):
            for _ in range(min(LEADS_FOR_EACH, len(leads))):
                lead = leads[next(turn) % len(leads)]
                if not _is_about_the_same(lead, edited, around):
                    yield _proposal((lead, edited), operator, compound=False)
    for one, other in itertools.product(ATOMIC, ATOMIC):
        if one.family is not other.family:
            continue
        broken = [edited for lead in leads for edited in one.edit(lead, around)]
        random.Random(f"{around.facts.task_id}/{one.name}").shuffle(broken)
        # Each broken main step meets one broken lead: all products would only repeat the same factors.
        for number, edited in enumerate(_similar_edits(other, main, around)):
            if broken and not _is_about_the_same(broken[number % len(broken)], edited, around):
                yield _pair_proposal((broken[number % len(broken)], edited), one, other)


def _similar_edits(operator: Operator, step: Step, around: Surroundings, *, opening: bool = False) -> Iterator[Step]:
    """The edits that leave the step a manipulation like its own, or else, where asked for, open or close a vessel."""
    for edited in operator.edit(step, around):
        opened = opening and edited.verb in (Verb.OPEN, Verb.CLOSE) and edited.object in around.hollows()
        if edited.destination is not None or step.destination is None or opened:
            yield edited


def _says_the_converse(plan: Plan) -> bool:
    """Whether one claim places an entity by another, and a second claim the other by the first: both cannot hold."""
    claims = [(r.bare, mark.bare) for r in plan.references() for claim in r.claims for mark in claim.landmarks]
    return any((mark, reference) in claims for reference, mark in claims)


def _moves_twice(steps: tuple[Step, ...], around: Surroundings) -> bool:
    """Whether two steps move one and the same object, which no person would ask for."""
    moved = [step.object for step in steps if step.destination is not None]
    return any(around.same(first, second) for first, second in itertools.combinations(moved, 2))


def _is_about_the_same(lead: Step, main: Step, around: Surroundings) -> bool:
    """Whether both steps are about one and the same object, which no person would ask for."""
    return around.same(lead.object, main.object)


def _pair_proposal(steps: tuple[Step, ...], one: Operator, other: Operator) -> Proposal:
    return Proposal(plan=Plan(steps=steps), operator=f"{one.name}&{other.name}", family=one.family, compound=True)


def side_steps(around: Surroundings) -> list[Step]:
    """Steps that are valid in every initial state and leave the base task's own objects where they are."""
    main = around.base.steps[-1]
    verb = main.verb if main.verb in PLACING else Verb.PUT
    steps = [
        *_switching_steps(around),
        *(_opening_step(drawer) for drawer in around.shut_drawers() if not around.is_busy(drawer)),
    ]
    objects = [r for e, r in around.wholes() if e.movable and not around.is_loaded(e) and not around.is_busy(r)]
    for obj in objects:
        places: list[tuple[Relation, Reference]] = [
            (Relation.ON, place) for place in around.free_surfaces() if not around.is_busy(place)
        ]
        into = main.destination if main.relation is Relation.IN else None
        if into is not None and around.fits(obj, into) and into.ordinal is None:
            places.append((Relation.IN, into))
        places += [(Relation.NEXT_TO, place) for place in around.landmarks() if _is_free(place, around)]
        places += [(Relation.IN, place) for place in around.compartments() if around.fits(obj, place)]
        steps += [
            Step(verb=verb, object=obj, relation=relation, destination=place)
            for relation, place in places
            if not around.same(obj, place) and _stands_steadily(obj.noun, place.noun, relation)
        ]
    return steps


def _opening_step(drawer: Reference) -> Step:
    return Step(verb=Verb.OPEN, object=drawer)


def _switching_steps(around: Surroundings) -> Iterator[Step]:
    for entity, reference in around.wholes():
        if entity.switches and not around.is_busy(reference):
            lit = around.facts.is_on[:, around.facts.index(entity.name)]
            if not lit.any():
                yield Step(verb=Verb.TURN_ON, object=reference)
            elif lit.all():
                yield Step(verb=Verb.TURN_OFF, object=reference)


def _is_free(place: Reference, around: Surroundings) -> bool:
    """Whether something can be put beside it without touching what the base task is about."""
    return place in around.fixed() or not around.is_busy(place)


def _stands_steadily(noun: str, place: str, relation: Relation) -> bool:
    """A wine rack is for bottles: all else would slide off its slant; nothing stands steadily on a box or dish."""
    if relation is not Relation.ON:
        return True
    return noun == "wine bottle" if place == "rack" else place not in ("cookie box", "ramekin")
