"""What a step brings about, as a predicate that can be seen in a scene."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class GoalPredicate(StrEnum):
    """What a step goal says of its subjects and places.

    ``ON`` to ``TURN_OFF`` are LIBERO's own predicates, and take its names of objects, fixtures and regions. The others
    are for places that LIBERO has no predicate for, by the premise checker's definitions.
    """

    ON = "on"
    IN = "in"
    OPEN = "open"
    CLOSE = "close"
    TURN_ON = "turnon"
    TURN_OFF = "turnoff"
    RESTS_ON = "rests_on"
    INSIDE = "inside"
    UNDER = "under"
    NEXT_TO = "next_to"
    IN_FRONT_OF = "in_front_of"
    BEHIND = "behind"
    LEFT_OF = "left_of"
    RIGHT_OF = "right_of"
    AT_CENTER = "at_center"


@dataclass(frozen=True, slots=True, kw_only=True)
class StepGoal:
    """What one step brings about.

    Attributes:
        predicate: What is to hold.
        subjects: Of which entities; where several fit the words, of any of them.
        places: Where, for predicates of two arguments; any of them will do.
        count: Of how many of the subjects at once.
    """

    predicate: GoalPredicate
    subjects: tuple[str, ...]
    places: tuple[str, ...] = ()
    count: int = 1

    def __str__(self) -> str:
        """The goal as recorded, such as ``on(akita_black_bowl_1|akita_black_bowl_2, plate_1)``.

        >>> str(StepGoal(predicate=GoalPredicate.ON, subjects=("pot_1", "pot_2"), places=("stove_1",), count=2))
        'on(pot_1&pot_2, stove_1)'
        """
        if self.count == len(self.subjects):
            subjects = "&".join(self.subjects)
        else:
            subjects = (f"{self.count} of " if self.count > 1 else "") + "|".join(self.subjects)
        return f"{self.predicate}({', '.join([subjects, '|'.join(self.places)][: 1 + bool(self.places)])})"
