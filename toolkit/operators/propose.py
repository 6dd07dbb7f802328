"""From a base plan to proposals of all levels: edits of its steps, and valid side steps before them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ..facts import SceneFacts
from ..plan import Plan, Reference, Relation, Step, Verb
from ..records import Family
from ..vocabulary import Vocabulary
from . import grounding, instruction, physical, spatial
from .edit import Operator
from .surroundings import Surroundings

ATOMIC: tuple[Operator, ...] = (*instruction.ATOMIC, *grounding.ATOMIC, *spatial.ATOMIC, *physical.ATOMIC)
COMPOUND: tuple[Operator, ...] = (*instruction.COMPOUND, *grounding.COMPOUND, *spatial.COMPOUND, *physical.COMPOUND)


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


def propose(base: Plan, facts: SceneFacts, words: Vocabulary) -> Iterator[Proposal]:
    """Every proposal for a base plan, each once, in a fixed order.

    Single-step base plans give single-step conflicts, and multi-step ones with each valid side step in front. Base
    plans of several steps keep their own steps.
    """
    around = Surroundings.of(base, facts, words)
    # Breaking two side steps can leave the same step: what they differed in is gone.
    yield from dict.fromkeys(_proposals(base, around))


def _proposals(base: Plan, around: Surroundings) -> Iterator[Proposal]:
    main = base.steps[-1]
    if len(base.steps) == 1:
        for operators, compound in ((ATOMIC, False), (COMPOUND, True)):
            for operator in operators:
                for step in operator.edit(main, around):
                    plan = Plan(steps=(step,))
                    yield Proposal(plan=plan, operator=operator.name, family=operator.family, compound=compound)
        leads: list[Step] = side_steps(around)
    else:
        leads = list(base.steps[:-1])
    for lead in leads:
        yield from _after(lead, main, around)


def _after(lead: Step, main: Step, around: Surroundings) -> Iterator[Proposal]:
    """Conflicts of several steps: the lead valid and the main step broken, or both broken in one family."""
    for operator in ATOMIC:
        for step in operator.edit(main, around):
            plan = Plan(steps=(lead, step))
            yield Proposal(plan=plan, operator=operator.name, family=operator.family, compound=False)
    for first in ATOMIC:
        broken_leads = list(first.edit(lead, around))
        for second in ATOMIC:
            if broken_leads and second.family is first.family:
                # Each broken main step meets one broken lead: all products would only repeat the same factors.
                for number, step in enumerate(second.edit(main, around)):
                    broken = broken_leads[number % len(broken_leads)]
                    plan = Plan(steps=(broken, step))
                    name = f"{first.name}&{second.name}"
                    yield Proposal(plan=plan, operator=name, family=first.family, compound=True)


def side_steps(around: Surroundings) -> list[Step]:
    """Steps that are valid in every initial state and leave the base task's own things alone."""
    steps = []
    for entity in around.wholes():
        noun = around.word(entity).noun
        index = around.facts.index(entity.name)
        if entity.switches and noun not in around.busy and not around.facts.is_on[:, index].any():
            steps.append(Step(verb=Verb.TURN_ON, object=Reference(noun=noun)))
    steps += [
        Step(verb=Verb.OPEN, object=drawer)
        for drawer in around.drawers()
        if drawer.of is not None and drawer.of.noun not in around.busy and drawer.noun not in around.busy
    ]
    steps += [
        Step(verb=Verb.PUT, object=thing, relation=Relation.ON, destination=place)
        for thing in around.movable()
        for place in around.surfaces()
        if not around.busy & {thing.noun, place.noun} and thing != place and _steady(thing.noun, place.noun)
    ]
    return steps


def _steady(thing: str, place: str) -> bool:
    """A wine rack is for bottles; everything else would slide off its slant."""
    return place != "rack" or thing == "wine bottle"
