"""Forms of words: what instructions are rendered in, and what rendered ones are parsed by."""

from __future__ import annotations

from .plan import Demand

NUMBERS = {2: "two", 3: "three", 4: "four", 5: "five"}
"""Numbers that are written out."""

IN_WORDS = ("in", "inside")
"""Forms of the relation ``in``."""

SINGLE_WORDINGS: dict[Demand, tuple[str, ...]] = {
    Demand.STAY: (" without moving {it}", " while leaving {it} exactly where it is"),
    Demand.NOT_LIFTED: (" without ever {picking} {it}{up}",),
    Demand.EMPTY: (" and leave {subject} empty", " while keeping {subject} empty"),
    Demand.ALSO_AT: (" and {where} at the same time",),
    Demand.KEEP_OPEN: (" while keeping {it} open",),
    Demand.KEEP_CLOSED: (" while keeping {it} closed",),
    Demand.KEEP_ON: (" while keeping {it} switched on",),
    Demand.KEEP_OFF: (" while keeping {it} switched off",),
    Demand.PICK_UP_AFTER: (" before {picking} {it}{up} for the first time",),
    Demand.NOT_OPENED: (" without opening {subject}", " without opening {subject} at any time"),
}
"""Forms of a demand that stands alone after its step."""

IMPERATIVES: dict[Demand, tuple[str, ...]] = {
    Demand.STAY: ("keep {it} exactly where it is", "do not move {it}"),
    Demand.NOT_LIFTED: ("do not {pick} {it}{up} at any time", "never lift {it}"),
    Demand.EMPTY: ("leave {subject} empty", "keep {subject} empty the whole time"),
    Demand.ALSO_AT: ("have {it} {where} at the same time", "make sure that {it} is {where} at the same time"),
    Demand.NOT_AT: ("make sure that {it} is never {where}", "never let {it} be {where}"),
    Demand.ONLY_AT: (
        "make sure that nothing but {subject} is ever {where}",
        "never let anything but {subject} be {where}",
    ),
    Demand.KEEP_OPEN: ("leave {it} open the whole time",),
    Demand.KEEP_CLOSED: ("leave {it} closed the whole time", "keep {it} closed"),
    Demand.KEEP_ON: ("leave {it} on the whole time",),
    Demand.KEEP_OFF: ("leave {it} off the whole time", "keep {it} switched off"),
    Demand.PICK_UP_AFTER: ("do not {pick} {it}{up} until it is {there}",),
    Demand.NOT_OPENED: ("do not open {subject}", "never open {subject}"),
}
"""Forms of a demand after "but", alone or in a list.

None has "ends up", which could be heard as one event after the other, and none points at a step with "that", which
could be heard as an earlier one.
"""

STEP_JOINTS = (", then ", " and then ", ", and after that ")
COMMA_JOINTS = (", then ", ", and after that ")
"""Forms of what stands between two steps: any, and those after a step with a constraint."""


def in_plural(form: str) -> str:
    """A form about one object, made into one about several."""
    return (
        form.replace("{it} is", "{it} are").replace("where it is", "where they are").replace("il it is", "il they are")
    )
