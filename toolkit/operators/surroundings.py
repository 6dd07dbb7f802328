"""What an operator may draw on: the scene's entities and their names, sorted by what can be done with them."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from ..facts import Entity, SceneFacts
from ..language.plan import Claim, Plan, Reference, Step
from ..language.vocabulary import Vocabulary, Word

ROW = {0: "top", 1: "middle", 2: "bottom"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """A scene as operators see it.

    Attributes:
        facts: The scene's facts.
        words: The vocabulary.
        base: The base task's plan.
        busy: Names of the entities that the base task itself is about.
    """

    facts: SceneFacts
    words: Vocabulary
    base: Plan
    busy: frozenset[str]
    _meant: dict[Reference, frozenset[str]] = field(default_factory=dict, compare=False, repr=False)

    @staticmethod
    def of(base: Plan, facts: SceneFacts, words: Vocabulary) -> Surroundings:
        """The surroundings of a base task's plan."""
        around = Surroundings(facts=facts, words=words, base=base, busy=frozenset())
        busy = frozenset().union(*(around.names_meant(reference) for reference in base.references()))
        return Surroundings(facts=facts, words=words, base=base, busy=busy)

    def word(self, entity: Entity) -> Word:
        """The word of the vocabulary for an entity."""
        return self.words.word(entity.category)

    def names_meant(self, reference: Reference) -> frozenset[str]:
        """Names of the entities that a noun phrase could mean, whichever side or drawer it names."""
        if reference not in self._meant:
            self._meant[reference] = self._find(reference)
        return self._meant[reference]

    def _find(self, reference: Reference) -> frozenset[str]:
        bearers = [entity for entity in self.facts.entities if reference.noun in self.word(entity).names]
        if reference.adjective is not None:  # what it is the very name of comes before what merely shows the colour
            called = [entity for entity in bearers if reference.adjective in self.word(entity).adjectives]
            bearers = called or [e for e in bearers if reference.adjective in self.word(e).colours_seen]
        return frozenset(
            entity.name
            for entity in bearers
            if (reference.ordinal is None) == (entity.part_of is None or reference.noun != self.word(entity).noun)
            or (reference.ordinal in ("left", "right") and entity.part_of is None)
        ) | (self.names_meant(reference.of) if reference.of else frozenset())

    def same(self, a: Reference, b: Reference) -> bool:
        """Whether two noun phrases could mean one entity; a left one and a right one never do."""
        if a.ordinal and b.ordinal and a.ordinal != b.ordinal:
            return False
        return a.bare == b.bare or bool(self.names_meant(a) & self.names_meant(b))

    def is_busy(self, reference: Reference) -> bool:
        """Whether the base task itself is about it."""
        return bool(self.names_meant(reference) & self.busy)

    def base_claims(self) -> frozenset[Claim]:
        """What the base task itself presupposes about places."""
        return frozenset(claim for reference in self.base.references() for claim in reference.claims)

    def wholes(self) -> list[tuple[Entity, Reference]]:
        """Entities that are not parts and can be distinguished from all others, each with a noun phrase for it."""
        found = []
        for entity in self.facts.entities:
            reference = self._noun_phrase(entity) if entity.part_of is None else None
            if reference is not None:
                found.append((entity, reference))
        return found

    def _noun_phrase(self, entity: Entity) -> Reference | None:
        """A noun phrase for an entity, or None where words fail: of two bowls neither is "the bowl"."""
        word = self.word(entity)
        twins = [e for e in self.facts.entities if e.category == entity.category and e.part_of is None]
        others = any(self.word(e).noun == word.noun and e.category != entity.category for e in self.facts.entities)
        adjective = word.adjective if others else None
        if len(twins) == 1:
            return Reference(noun=word.noun, adjective=adjective)
        sides_matter = any(reference.ordinal in ("left", "right") for reference in self.base.references())
        if len(twins) != 2 or not sides_matter:
            return None
        left = min(twins, key=lambda e: float(self.facts.position_m[0, self.facts.index(e.name), 1]))
        return Reference(noun=word.noun, adjective=adjective, ordinal="left" if entity is left else "right")

    def movable(self) -> list[Reference]:
        """Objects: what can be picked up or pushed."""
        return [reference for entity, reference in self.wholes() if entity.movable]

    def fixed(self) -> list[Reference]:
        """Fixtures: what cannot be moved, without the table, which no task is about."""
        return [r for entity, r in self.wholes() if not entity.movable and not self.word(entity).scenery]

    def scenery(self) -> list[Reference]:
        """The table, where there is one."""
        return [reference for entity, reference in self.wholes() if self.word(entity).scenery]

    def landmarks(self) -> list[Reference]:
        """Objects and fixtures, which a place can be described by."""
        return [*self.movable(), *self.fixed()]

    def surfaces(self) -> list[Reference]:
        """Entities that one would put an object onto."""
        return [reference for entity, reference in self.wholes() if self.word(entity).surface]

    def free_surfaces(self) -> list[Reference]:
        """Surfaces on which nothing stands at the start."""
        return [r for entity, r in self.wholes() if self.word(entity).surface and not self.is_loaded(entity)]

    def is_loaded(self, entity: Entity) -> bool:
        """Whether something rests on it, or on a part of it, in some state."""
        owned = [i for i, other in enumerate(self.facts.entities) if entity.name in (other.name, other.part_of)]
        return bool(self.facts.on[:, :, owned].any())

    def drawers(self) -> list[Reference]:
        """Drawers, from the top, each with its cabinet."""
        return [reference for _, reference in self._parts() if reference.ordinal in ROW.values()]

    def shut_entities(self) -> list[Reference]:
        """Drawers, and fixtures with a door, that are shut in every state."""
        doors = [(e, r) for e, r in self.wholes() if e.opens and e.opening_m is not None]
        shut = [r for e, r in doors if not self.facts.is_open[:, self.facts.index(e.name)].any()]
        return [*self.shut_drawers(), *shut]

    def shut_drawers(self) -> list[Reference]:
        """Drawers that are shut in every state."""
        return [r for e, r in self._parts() if e.opens and not self.facts.is_open[:, self.facts.index(e.name)].any()]

    def compartments(self) -> list[Reference]:
        """Compartments, each with its caddy."""
        return [reference for entity, reference in self._parts() if entity.side is not None]

    def _parts(self) -> list[tuple[Entity, Reference]]:
        by_name = {entity.name: entity for entity in self.facts.entities}
        found = []
        for entity in self.facts.entities:
            row = ROW.get(entity.rank) if entity.rank is not None and entity.row_length == len(ROW) else None
            ordinal = entity.side or row
            whole = self._noun_phrase(by_name[entity.part_of]) if entity.part_of else None
            if ordinal and whole:
                found.append((entity, Reference(noun=self.word(entity).noun, ordinal=ordinal, of=whole)))
        return found

    def whole_of(self, part: Reference) -> Reference | None:
        """What a part belongs to, also where its phrase leaves that out ("the top drawer")."""
        if part.of is not None or part.ordinal is None:
            return part.of
        parts = [reference for _, reference in self._parts() if reference.noun == part.noun]
        return next((reference.of for reference in parts), None)

    def sealed_containers(self) -> list[Reference]:
        """Movable containers that have no opening, such as a corked bottle or a carton, by the package's name."""
        shut = [(e, r) for e, r in self.wholes() if e.movable and e.opening_m is None and self.word(e).opens_in_life]
        return [self.package_of(reference) for _, reference in shut]

    def package_of(self, reference: Reference) -> Reference:
        """The package rather than what is in it: one puts nothing inside milk, but tries to inside a milk carton."""
        nouns = {self.word(e).count_noun for e in self.facts.entities if e.name in self.names_meant(reference)}
        noun = next(iter(nouns)) if len(nouns) == 1 else None
        return replace(reference, noun=noun) if noun else reference

    def hollows(self) -> list[Reference]:
        """Entities with an opening of their own, parts aside."""
        return [
            r
            for e, r in self.wholes()
            if e.opening_m is not None and not any(part.part_of == e.name for part in self.facts.entities)
        ]

    def fits(self, obj: Reference, place: Reference) -> bool:
        """Whether an object would go into a place's opening, turned in some way, with a centimetre to spare."""
        sizes = [sorted(e.size_m) for e, r in self.wholes() if r == obj]
        openings = [e.opening_m for e, r in [*self.wholes(), *self._parts()] if r.bare == place.bare]
        if not sizes or not openings or openings[0] is None:
            return False
        width, depth = openings[0]
        return sizes[0][0] + 0.01 <= depth and sizes[0][1] + 0.01 <= width

    def lies_flat(self, obj: Reference) -> bool:
        """Whether another object could be lying on top of it: it is not taller than it is wide."""
        boxes = [self.facts.box_m[0, self.facts.index(name)] for name in self.names_meant(obj)]
        return any(high[2] - low[2] <= max(high[:2] - low[:2]) for low, high in boxes)

    def unopenable(self) -> list[Reference]:
        """Entities that open neither in the simulator nor in daily life."""
        return [
            r for e, r in self.wholes() if not e.opens and not self.word(e).opens_in_life and not self.word(e).scenery
        ]

    def unswitchable(self) -> list[Reference]:
        """Entities without a switch, in the simulator and in daily life."""
        return [r for e, r in self.wholes() if not e.switches and not self.word(e).switches_in_life]

    def absent_objects(self, *roles: str) -> list[Reference]:
        """Everyday objects of the given roles that the scene does not hold under any name."""
        present = frozenset().union(*(self.word(entity).names for entity in self.facts.entities))
        present |= self.words.backdrop(self.facts.workspace)
        return [
            Reference(noun=word.noun)
            for word in self.words.absent.values()
            if word.role in roles and not word.names & present
        ]

    def countable(self, reference: Reference) -> str | None:
        """The noun under which one would say "two of them" or "the red one" of it; None without one."""
        kinds = [self.word(e) for e in self.facts.entities if e.name in self.names_meant(reference)]
        if all(word.countable for word in kinds):
            return reference.noun
        return kinds[0].count_noun if len({word.noun for word in kinds}) == 1 else None

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

    def concerns(self, step: Step, reference: Reference) -> bool:
        """Whether the step itself is about it: a conflict should concern what the task needs."""
        parts = (step.object, step.object.of, step.destination, step.destination.of if step.destination else None)
        return any(self.same(part, reference) for part in parts if part is not None)
