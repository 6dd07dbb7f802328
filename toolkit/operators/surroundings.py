"""What an operator may draw on: the scene's things and words, sorted by what can be done with them."""

from __future__ import annotations

from dataclasses import dataclass

from ..facts import Entity, SceneFacts
from ..plan import Plan, Reference
from ..vocabulary import Vocabulary, Word


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """A scene as operators see it.

    Attributes:
        facts: The scene's facts.
        words: The vocabulary.
        busy: Nouns that the base task itself is about.
    """

    facts: SceneFacts
    words: Vocabulary
    busy: frozenset[str]

    @staticmethod
    def of(base: Plan, facts: SceneFacts, words: Vocabulary) -> Surroundings:
        """The surroundings of a base task's plan."""
        return Surroundings(facts=facts, words=words, busy=frozenset(reference.noun for reference in base.references()))

    def word(self, entity: Entity) -> Word:
        """The word for an entity."""
        return self.words.word(entity.category)

    def wholes(self) -> list[Entity]:
        """Things that are not parts, in the scene's order, each kind once."""
        kinds: dict[str, Entity] = {}
        for entity in self.facts.entities:
            if entity.part_of is None:
                kinds.setdefault(entity.category, entity)
        return list(kinds.values())

    def movable(self) -> list[Reference]:
        """Things that can be picked up or pushed."""
        return [Reference(noun=self.word(entity).noun) for entity in self.wholes() if entity.movable]

    def fixed(self) -> list[Reference]:
        """Things that cannot be moved."""
        return [Reference(noun=self.word(entity).noun) for entity in self.wholes() if not entity.movable]

    def surfaces(self) -> list[Reference]:
        """Things that one would put something onto."""
        return [Reference(noun=self.word(entity).noun) for entity in self.wholes() if self.word(entity).surface]

    def drawers(self) -> list[Reference]:
        """Drawers, from the top, each with its cabinet."""
        ordinals = {0: "top", 1: "middle", 2: "bottom"}
        by_name = {entity.name: entity for entity in self.facts.entities}
        return [
            Reference(
                noun=self.word(entity).noun,
                ordinal=ordinals[entity.rank],
                of=Reference(noun=self.word(by_name[entity.part_of]).noun),
            )
            for entity in self.facts.entities
            if entity.part_of is not None and entity.rank in ordinals and entity.row_length == len(ordinals)
        ]

    def whole_of(self, part: Reference) -> Reference | None:
        """What a part belongs to, also where its phrase leaves that out ("the top drawer")."""
        if part.of is not None or part.ordinal is None:
            return part.of
        return next((drawer.of for drawer in self.drawers()), None)

    def without_opening(self) -> list[Reference]:
        """Movable vessels that have no opening, such as a corked bottle."""
        return [
            Reference(noun=self.word(entity).noun)
            for entity in self.wholes()
            if entity.movable and entity.opening_m is None and "vessel" in self.word(entity).also
        ]

    def hollows(self) -> list[Reference]:
        """Movable things with an opening."""
        return [Reference(noun=self.word(e).noun) for e in self.wholes() if e.movable and e.opening_m is not None]

    def fits(self, thing: Reference, place: Reference) -> bool:
        """Whether the thing would go into the place's opening, turned as it likes; a drawer holds anything."""
        sizes = {self.word(entity).noun: sorted(entity.size_m) for entity in self.wholes()}
        openings = {self.word(entity).noun: entity.opening_m for entity in self.wholes()}
        opening = openings.get(place.noun)
        if thing.noun not in sizes or opening is None:
            return place.ordinal is not None
        return sizes[thing.noun][0] <= opening[1] and sizes[thing.noun][1] <= opening[0]

    def lies_flat(self, thing: Reference) -> bool:
        """Whether something could be lying on top of the thing: it is not taller than it is wide."""
        return any(e.size_m[2] <= max(e.size_m[:2]) for e in self.wholes() if self.word(e).noun == thing.noun)

    def unopenable(self) -> list[Reference]:
        """Things that open neither in the simulator nor in daily life."""
        return [
            Reference(noun=self.word(entity).noun)
            for entity in self.wholes()
            if not entity.opens and not self.word(entity).opens_in_life
        ]

    def unswitchable(self) -> list[Reference]:
        """Things without a switch."""
        return [Reference(noun=self.word(entity).noun) for entity in self.wholes() if not entity.switches]

    def absent(self, *roles: str) -> list[Reference]:
        """Everyday things of the given roles that the scene does not hold under any name."""
        present = frozenset().union(*(self.word(entity).names for entity in self.facts.entities))
        return [
            Reference(noun=word.noun)
            for word in self.words.absent.values()
            if word.role in roles and not word.names & present
        ]

    def countable(self, noun: str) -> bool:
        """Whether one would say "two of them" or "the red one"."""
        return all(self.word(entity).countable for entity in self.facts.entities if noun in self.word(entity).names)

    def unseen_colours(self, noun: str) -> list[str]:
        """Colours that nothing of that name shows."""
        seen = frozenset().union(
            *(
                self.word(e).colours_seen | self.word(e).adjectives
                for e in self.facts.entities
                if noun in self.word(e).names
            )
        )
        return [colour for colour in self.words.colours if colour not in seen]
