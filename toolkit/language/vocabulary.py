"""The words: names of everything in the scenes, the colours it shows, and everyday objects that some scenes lack.

The data is one reviewed file, ``vocabulary.json``; each entry has a line with its reason. Names serve two purposes: a
reference is grounded only in what bears the name, and an absent object must be absent under every name that a person
might use.
"""

from __future__ import annotations

import functools
import json
from dataclasses import dataclass, field
from importlib import resources
from typing import Any

from ..errors import NotFoundError, choices


@dataclass(frozen=True, slots=True, kw_only=True)
class Word:
    """A kind of object or fixture that occurs in the scenes.

    Attributes:
        category: LIBERO's category.
        noun: What instructions call it.
        also: Every other noun, synonym or hypernym, that a person might use for it.
        adjectives: Adjectives that instructions use for it, or that a person could take to mean it.
        colours_seen: Every colour that a person could see on it.
        rests_on: How objects are put onto it: ``on`` or ``on top of``.
        surface: Whether one would naturally put objects onto it.
        opens_in_life: Whether such an object opens in daily life, though the simulator's does not (a corked bottle).
        countable: Whether one would say "two of them" or "the red one".
        adjective: Tells it from others of the same noun, such as ``white`` of a mug; None where none is needed.
        count_noun: Noun for one package of an uncountable thing, such as ``milk carton``; None for the rest.
        mouth_m: Widest opening that it would have if it were opened; None where that is no narrower than itself.
        switches_in_life: Whether such an object has a switch in daily life, though the simulator's does not.
        scenery: Whether it is furniture that instructions do not act on, such as the table.
        stands_open: Whether there is room between its boards, which some would call under it.
        looks_movable: Whether it looks as if it could be carried, though it is fixed in place: its picture would speak
            against the case.
        names: Every noun for it.
    """

    category: str
    noun: str
    also: frozenset[str]
    adjectives: frozenset[str]
    colours_seen: frozenset[str]
    rests_on: str
    surface: bool
    opens_in_life: bool
    countable: bool
    adjective: str | None = None
    count_noun: str | None = None
    mouth_m: float | None = None
    switches_in_life: bool = False
    scenery: bool = False
    stands_open: bool = False
    looks_movable: bool = False
    names: frozenset[str] = field(init=False)

    def __post_init__(self) -> None:
        names = self.also | {self.noun} | ({self.count_noun} if self.count_noun else frozenset())
        object.__setattr__(self, "names", names)


@dataclass(frozen=True, slots=True, kw_only=True)
class AbsentWord:
    """An everyday object that some scenes do not hold.

    Attributes:
        noun: What instructions call it.
        also: Every other noun for it.
        role: What an instruction could do with it: ``movable``, ``surface``, ``hollow``, ``appliance``
            (opens and switches) or ``switch`` (only switches).
    """

    noun: str
    also: frozenset[str]
    role: str

    @property
    def names(self) -> frozenset[str]:
        """Every noun for it."""
        return self.also | {self.noun}


@dataclass(frozen=True, slots=True, kw_only=True)
class Ordinal:
    """Which part of a row a word picks.

    Attributes:
        rank: From the top, from 0; negative counts from the bottom.
        row_length: The word makes sense only in a row of this length; None for any.
    """

    rank: int
    row_length: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Vocabulary:
    """All words.

    Attributes:
        present: What occurs in the scenes, by LIBERO category.
        absent: Everyday objects that some scenes do not hold, by noun.
        colours: Colours that an instruction may give to an object which does not have them.
        ordinals: Words for a part of a row.
        sides: Words for one of several side by side.
        backdrops: Nouns for what can be seen, or guessed, around the workspace, by LIBERO's name of the workspace. They
            are neither present nor absent.
    """

    present: dict[str, Word]
    absent: dict[str, AbsentWord]
    colours: tuple[str, ...]
    ordinals: dict[str, Ordinal]
    sides: tuple[str, ...] = ()
    backdrops: dict[str, frozenset[str]] = field(default_factory=dict)

    def word(self, category: str) -> Word:
        """The word for a LIBERO category.

        Raises:
            NotFoundError: The vocabulary does not have it yet.
        """
        if category not in self.present:
            raise NotFoundError(
                f"toolkit/language/vocabulary.json has no category '{category}': "
                f"{choices(category, sorted(self.present))}; if it is new, add it"
            )
        return self.present[category]

    def knows(self, noun: str) -> bool:
        """Whether the noun is a name in the vocabulary, so that its absence can be judged."""
        words: list[Word | AbsentWord] = [*self.present.values(), *self.absent.values()]
        return any(noun in word.names for word in words)

    def backdrop(self, workspace: str) -> frozenset[str]:
        """Nouns that are neither present nor absent in this workspace; empty for one that nobody has looked at."""
        return self.backdrops.get(workspace, frozenset())

    def names_of(self, noun: str) -> frozenset[str]:
        """Every name that must be absent for the noun to be absent: its own and its synonyms."""
        return self.absent[noun].names if noun in self.absent else frozenset({noun})


@functools.cache
def load_vocabulary() -> Vocabulary:
    """Read the packaged vocabulary."""
    text = resources.files(__package__).joinpath("vocabulary.json").read_text(encoding="utf-8")
    data: dict[str, Any] = json.loads(text)
    return Vocabulary(
        present={
            category: Word(
                category=category,
                noun=entry["noun"],
                also=frozenset(entry["also"]),
                adjectives=frozenset(entry["adjectives"]),
                colours_seen=frozenset(entry["colours_seen"]),
                rests_on=entry["rests_on"],
                surface=entry["surface"],
                opens_in_life=entry["opens_in_life"],
                countable=entry["countable"],
                adjective=entry.get("adjective"),
                count_noun=entry.get("count_noun"),
                mouth_m=entry.get("mouth_m"),
                switches_in_life=entry.get("switches_in_life", False),
                scenery=entry.get("scenery", False),
                stands_open=entry.get("stands_open", False),
                looks_movable=entry.get("looks_movable", False),
            )
            for category, entry in data["present"].items()
        },
        absent={
            noun: AbsentWord(noun=noun, also=frozenset(entry["also"]), role=entry["role"])
            for noun, entry in data["absent"].items()
        },
        colours=tuple(data["colours"]),
        sides=tuple(data["sides"]),
        backdrops={workspace: frozenset(entry["backdrop"]) for workspace, entry in data["rooms"].items()},
        ordinals={
            word: Ordinal(rank=entry["rank"], row_length=entry.get("of")) for word, entry in data["ordinals"].items()
        },
    )
