"""English: instructions rendered from plans, and LIBERO's own instructions read into plans.

Rendering is a small grammar over the parts of a plan, lower-case as LIBERO's. Where English offers several ways to say
a thing, a wording number picks one, so that the same plan always reads the same.
"""

from __future__ import annotations

import re
from dataclasses import replace

from .errors import InvalidInputError
from .plan import Claim, Constraint, Demand, Plan, Reference, Relation, Step, Verb
from .vocabulary import Vocabulary, load_vocabulary

NUMBERS = {2: "two", 3: "three", 4: "four", 5: "five"}

IN_WORDS = ("in", "inside")

SINGLE_WORDINGS: dict[Demand, tuple[str, ...]] = {
    Demand.STAY: (" without moving {it}", " while leaving {it} exactly where it is"),
    Demand.EMPTY: (" and leave {subject} empty", " while keeping {subject} empty"),
    Demand.ALSO_AT: (" and {where} at the same time",),
    Demand.KEEP_OPEN: (" while keeping {it} open",),
    Demand.KEEP_CLOSED: (" while keeping {it} closed",),
    Demand.KEEP_ON: (" while keeping {it} switched on",),
    Demand.KEEP_OFF: (" while keeping {it} switched off",),
    Demand.PICK_UP_AFTER: (" before picking {it} up for the first time",),
}
"""Ways to say a demand that stands alone after its step."""

IMPERATIVES: dict[Demand, tuple[str, ...]] = {
    Demand.STAY: ("keep {it} exactly where it is", "do not move {it}"),
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
    Demand.PICK_UP_AFTER: ("do not pick {it} up until it is {there}",),
}
"""Ways to say a demand after "but", alone or in a list.

None says "ends up", which could be heard as one thing after the other, and none points at a step with "that", which
could be heard as an earlier one.
"""

STEP_JOINTS = (", then ", " and then ", ", and after that ")
COMMA_JOINTS = (", then ", ", and after that ")


def render(plan: Plan, wording: int = 0, vocabulary: Vocabulary | None = None) -> str:
    """The plan in English.

    Args:
        plan: What to say.
        wording: Picks among equivalent wordings; the same number always gives the same words. 0 is LIBERO's style.
        vocabulary: What things are called; the packaged one by default.
    """
    words = vocabulary or load_vocabulary()
    clauses = []
    for index, step in enumerate(plan.steps):
        previous = plan.steps[index - 1].object if index else None
        clauses.append(_clause(step, previous, wording, words))
    said = clauses[0]
    for step, clause in zip(plan.steps, clauses[1:], strict=False):
        said += _joint(step, wording) + clause
    return said


def noun_phrase(reference: Reference, vocabulary: Vocabulary | None = None) -> str:
    """The reference as a noun phrase, such as ``the bowl that is on the stove``."""
    words = vocabulary or load_vocabulary()
    noun = reference.noun if reference.count in (None, 1) else _plural(reference.noun)
    article = _article(reference.count)
    described = " ".join(part for part in (article, reference.ordinal, reference.adjective, noun) if part)
    if reference.of is not None:
        described += f" of {noun_phrase(reference.of, words)}"
    if reference.claims:
        is_are = "is" if reference.count in (None, 1) else "are"
        described += f" that {is_are} " + " and ".join(_claim(claim, words) for claim in reference.claims)
    return described


def _article(count: int | None) -> str:
    if count in (None, 1):
        return "the"
    return "both" if count == 2 else f"all {NUMBERS.get(count, count)}"


def _joint(step: Step, wording: int) -> str:
    """After a constraint a bare "and then" could be heard as part of it."""
    if wording == 0:
        return " and "
    return (
        STEP_JOINTS[wording % len(STEP_JOINTS)] if not step.constraints else COMMA_JOINTS[wording % len(COMMA_JOINTS)]
    )


def _clause(step: Step, previous: Reference | None, wording: int, words: Vocabulary) -> str:
    clause = f"{step.verb} {noun_phrase(step.object, words)}"
    if step.destination is not None and step.relation is not None:
        clause += f" {_towards(step, previous, wording, words)}"
    return clause + _constraints(step, wording, words)


def _towards(step: Step, previous: Reference | None, wording: int, words: Vocabulary) -> str:
    assert step.destination is not None
    if step.verb is Verb.PUSH and step.relation is Relation.IN_FRONT_OF:
        return f"to the front of {noun_phrase(step.destination, words)}"
    if step.relation is Relation.IN and step.destination == previous and not step.object.claims:
        return "inside"  # after a claim, "the bowl that is on top of the cabinet inside", it would belong to that
    return _place(step.relation, (step.destination,), wording, words)


def _place(relation: Relation | None, landmarks: tuple[Reference, ...], wording: int, words: Vocabulary) -> str:
    phrases = [noun_phrase(landmark, words) for landmark in landmarks]
    if relation is Relation.ON:
        return f"{_onto(landmarks[0], words)} {phrases[0]}"
    if relation is Relation.IN:
        return f"{IN_WORDS[wording % 2]} {phrases[0]}"
    return f"{relation} {' and '.join(phrases)}"


def _onto(landmark: Reference, words: Vocabulary) -> str:
    for word in words.present.values():
        if word.noun == landmark.noun:
            return word.rests_on
    return "on"


def _claim(claim: Claim, words: Vocabulary) -> str:
    return _place(claim.relation, claim.landmarks, 1, words)


def _constraints(step: Step, wording: int, words: Vocabulary) -> str:
    if not step.constraints:
        return ""
    if len(step.constraints) == 1:
        (constraint,) = step.constraints
        imperatives = tuple(f", but {form}" for form in IMPERATIVES[constraint.demand])
        forms = SINGLE_WORDINGS.get(constraint.demand, ()) + imperatives
        return _demand(forms[wording % len(forms)], constraint, step, words)
    said = [
        _demand(IMPERATIVES[constraint.demand][wording % len(IMPERATIVES[constraint.demand])], constraint, step, words)
        for constraint in step.constraints
    ]
    return f", but {' and '.join(said)}"


def _demand(form: str, constraint: Constraint, step: Step, words: Vocabulary) -> str:
    """A pronoun is used only where nothing but the step's object can be meant."""
    subject = noun_phrase(constraint.subject, words)
    if constraint.demand is Demand.EMPTY and _onto(constraint.subject, words) == "on top of":
        subject = f"the top of {subject}"  # an empty cabinet would be one with empty drawers
    it = subject
    if constraint.subject.bare == step.object.bare and step.destination is None:
        it = f"the {constraint.subject.noun}" if constraint.subject.of else "it"  # "it" could be the whole
    where = "" if constraint.landmark is None else _place(constraint.relation, (constraint.landmark,), 1, words)
    there = "" if step.destination is None else _place(step.relation, (step.destination,), 1, words)
    return form.format(it=it, subject=subject, where=where, there=there)


def _plural(noun: str) -> str:
    if re.search(r"(s|x|ch|sh)$", noun):
        return noun + "es"
    if noun.endswith("knife"):
        return noun[:-2] + "ves"
    return noun + "s"


STEP_PATTERN = re.compile(
    r"^(?:(?P<move>put|push) (?P<what>the .+?) (?P<where>on top of|on|in|inside|to the front of)(?: (?P<place>the .+))?"
    r"|(?P<verb>open|close|turn on|turn off) (?P<thing>the .+))$"
)
PLACES = {
    "on top of": Relation.ON,
    "on": Relation.ON,
    "in": Relation.IN,
    "inside": Relation.IN,
    "to the front of": Relation.IN_FRONT_OF,
}


def parse_base_instruction(instruction: str, vocabulary: Vocabulary | None = None) -> Plan:
    """Read one of LIBERO's own instructions into a plan.

    Raises:
        InvalidInputError: The grammar or the vocabulary does not cover the instruction yet.
    """
    words = vocabulary or load_vocabulary()
    steps: list[Step] = []
    for clause in re.split(r" and (?=(?:put|push|open|close|turn) )", instruction):
        match = STEP_PATTERN.match(clause)
        if match is None:
            raise InvalidInputError(f"cannot read the instruction '{instruction}': no rule for '{clause}'")
        if match["verb"]:
            steps.append(Step(verb=Verb(match["verb"]), object=_parse_noun_phrase(match["thing"], words)))
            continue
        destination = _parse_noun_phrase(match["place"], words) if match["place"] else steps[-1].object
        what = _parse_noun_phrase(match["what"], words)
        steps.append(
            Step(verb=Verb(match["move"]), object=what, relation=PLACES[match["where"]], destination=destination)
        )
    return Plan(steps=tuple(steps))


def _parse_noun_phrase(text: str, words: Vocabulary) -> Reference:
    head, _, whole = text.removeprefix("the ").partition(" of the ")
    reference = Reference(noun=head)
    first, _, rest = head.partition(" ")
    if first in words.ordinals and rest:
        reference = Reference(noun=rest, ordinal=first)
    known = {name for word in words.present.values() for name in word.names}
    if reference.noun not in known:
        raise InvalidInputError(f"toolkit/vocabulary.json has no noun '{reference.noun}': add it")
    return replace(reference, of=_parse_noun_phrase(f"the {whole}", words)) if whole else reference
