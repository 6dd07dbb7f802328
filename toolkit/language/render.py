"""English: instructions rendered from plans.

Rendering is a small grammar over the parts of a plan, lower-case as LIBERO's. Where English has several wordings, a
number picks one, so that the same plan always reads the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from .lexicon import Part, Substitute
from .plan import Claim, Constraint, Demand, Plan, Reference, Relation, Step, Verb
from .sentence_forms import COMMA_JOINTS, IMPERATIVES, IN_WORDS, NUMBERS, SINGLE_WORDINGS, STEP_JOINTS, in_plural
from .vocabulary import Vocabulary, load_vocabulary
from .word_forms import plural


@dataclass(frozen=True, slots=True)
class _Diction:
    """The vocabulary, and which substitutes stand for its words."""

    vocabulary: Vocabulary
    substitutes: Mapping[tuple[Part, str], str]

    def say(self, part: Part, word: str) -> str:
        """The word, or what stands for it."""
        return self.substitutes.get((part, word), word)


def render(
    plan: Plan, wording: int = 0, vocabulary: Vocabulary | None = None, substitutes: Iterable[Substitute] = ()
) -> str:
    """The plan in English.

    Args:
        plan: The plan.
        wording: Picks among equivalent wordings; the same number always gives the same words. 0 is LIBERO's style.
        vocabulary: Names of everything in the scenes; the packaged one by default.
        substitutes: Words that stand for others, each wherever the other would stand.
    """
    words = _Diction(vocabulary or load_vocabulary(), {(s.part, s.word): s.say for s in substitutes})
    if wording == 0 and _can_be_joined(plan):
        first, second = plan.steps
        objects = f"both {_noun_phrase(first.object, words)} and {_noun_phrase(second.object, words)}"
        return f"{words.say(Part.VERB, 'put')} {objects} {_towards(first, None, 0, words)}"
    sentence = ""
    for index, step in enumerate(plan.steps):
        previous = plan.steps[index - 1] if index else None
        joint = "" if previous is None else _joint(previous, wording)
        sentence += joint + _clause(step, previous, wording, words)
    return sentence


def _can_be_joined(plan: Plan) -> bool:
    """Whether LIBERO would join both steps: "put both the soup and the sauce in the basket"."""
    if len(plan.steps) != 2 or any(step.verb is not Verb.PUT or step.constraints for step in plan.steps):
        return False
    first, second = plan.steps
    return (first.relation, first.destination) == (second.relation, second.destination)


def _noun_phrase(reference: Reference, words: _Diction, *, short: bool = False, style: int = 1) -> str:
    """``short`` leaves out "that is", where the phrase cannot be taken for a destination; ``style`` 0 is LIBERO's."""
    described = " ".join([_article(reference.count), *_description(reference, words)])
    if reference.of is not None:
        described += f" of {_noun_phrase(reference.of, words)}"
    if reference.claims:
        is_are = "" if short else " that is" if reference.count in (None, 1) else " that are"
        described += f"{is_are} " + " and ".join(_claim(claim, words, style) for claim in reference.claims)
    return described


def _description(reference: Reference, words: _Diction) -> Iterator[str]:
    """Ordinal, adjective and noun."""
    if reference.ordinal:
        yield words.say(Part.ORDINAL, reference.ordinal)
    if reference.adjective:
        yield words.say(Part.COLOUR, reference.adjective)
    noun = words.say(Part.NOUN, reference.noun)
    yield noun if reference.count in (None, 1) else plural(noun)


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


def _clause(step: Step, previous: Step | None, wording: int, words: _Diction) -> str:
    short = step.verb is Verb.PLACE and wording % 2 == 0
    obj = "it" if _is_it(step, previous, wording) else _noun_phrase(step.object, words, short=short, style=wording)
    verb = words.say(Part.VERB, "pick up" if step.verb is Verb.PLACE else step.verb)
    if step.destination is None:
        return f"{verb} {obj}{_constraints(step, wording, words)}"
    it = "it" if step.object.count in (None, 1) else "them"
    start = f"{verb} {obj}"
    if step.verb is Verb.PLACE:
        start += f" and {words.say(Part.VERB, 'place')} {it}"
    return f"{start} {_towards(step, previous, wording, words)}{_constraints(step, wording, words)}"


def _is_it(step: Step, previous: Step | None, wording: int) -> bool:
    """As in "put the bowl in the drawer and close it", where only what opens can be meant."""
    closes = step.verb in (Verb.OPEN, Verb.CLOSE) and not step.constraints and not _claims(step.object)
    return bool(
        wording % 2 == 0
        and closes
        and previous
        and not previous.constraints
        and (previous.relation, previous.destination) == (Relation.IN, step.object)
    )


def _claims(reference: Reference) -> tuple[Claim, ...]:
    """Claims of a reference and of what it is part of."""
    return reference.claims + (_claims(reference.of) if reference.of else ())


def _towards(step: Step, previous: Step | None, wording: int, words: _Diction) -> str:
    """Where a step brings its object."""
    assert step.destination is not None
    if step.verb is Verb.PUSH and step.relation is Relation.IN_FRONT_OF:
        return f"to the front of {_noun_phrase(step.destination, words)}"
    if previous and previous.destination is None and previous.object == step.destination and not step.object.claims:
        # After a claim, "the bowl that is on top of the cabinet inside", it would belong to that.
        if step.relation is Relation.IN:
            return "inside"
        if step.relation is Relation.ON and wording == 0:
            return "on it"
    if step.destination.bare == step.object.bare:
        return "inside itself" if step.relation is Relation.IN else "on top of itself"
    return _place(step.relation, (step.destination,), wording, words)


def _place(relation: Relation | None, landmarks: tuple[Reference, ...], wording: int, words: _Diction) -> str:
    phrases = [_noun_phrase(landmark, words) for landmark in landmarks]
    if relation is Relation.ON:
        on = _onto(landmarks[0], words)
        return f"{_on_top(words) if on == 'on top of' else on} {phrases[0]}"
    if relation is Relation.IN:
        return f"{IN_WORDS[wording % 2]} {phrases[0]}"
    if relation is Relation.AT_CENTER:
        return f"{_at_center(words)} {phrases[0]}"
    return f"{relation} {' and '.join(phrases)}"


def _on_top(words: _Diction) -> str:
    top = words.say(Part.RELATION, "top")
    return "on top of" if top == "top" else f"on the {top} of"


def _at_center(words: _Diction) -> str:
    center = words.say(Part.RELATION, "center")
    return "at the center of" if center == "center" else f"in the {center} of"


def _onto(landmark: Reference, words: _Diction) -> str:
    """How the vocabulary puts objects onto a landmark: ``on`` or ``on top of``."""
    for word in words.vocabulary.present.values():
        if word.noun == landmark.noun:
            return word.rests_on
    return "on"


def _claim(claim: Claim, words: _Diction, style: int = 1) -> str:
    if claim.relation is Relation.AT_CENTER and style == 0:
        center = words.say(Part.RELATION, "center")
        table = words.say(Part.NOUN, claim.landmarks[0].noun)
        return f"from {table} center" if center == "center" else f"from the {center} of the {table}"
    if claim.relation is Relation.ON and style == 0:
        return f"on {_noun_phrase(claim.landmarks[0], words)}"
    return _place(claim.relation, claim.landmarks, style, words)


def _constraints(step: Step, wording: int, words: _Diction) -> str:
    if not step.constraints:
        return ""
    if len(step.constraints) == 1:
        (constraint,) = step.constraints
        imperatives = tuple(f", but {form}" for form in IMPERATIVES[constraint.demand])
        forms = SINGLE_WORDINGS.get(constraint.demand, ()) + imperatives
        return _demand(forms[wording % len(forms)], constraint, step, words)
    clauses = [
        _demand(IMPERATIVES[constraint.demand][wording % len(IMPERATIVES[constraint.demand])], constraint, step, words)
        for constraint in step.constraints
    ]
    # "do not move it and keep that empty" could be heard as not doing both.
    joint = ", and " if clauses[0].startswith(("do not", "never")) else " and "
    return f", but {joint.join(clauses)}"


def _demand(form: str, constraint: Constraint, step: Step, words: _Diction) -> str:
    """A pronoun is used only where nothing but the step's object can be meant."""
    mentioned = constraint.subject.bare  # a claim once made picks out the same entity again
    if constraint.demand is Demand.NOT_OPENED:  # its whole was just mentioned
        mentioned = replace(mentioned, of=None)
    subject = _noun_phrase(mentioned, words)
    on_top = step.relation is Relation.ON and _onto(constraint.subject, words) == "on top of"
    if constraint.demand is Demand.EMPTY and on_top:
        subject = f"the top of {subject}"  # an empty cabinet would be one with empty drawers
    if constraint.subject.count not in (None, 1):
        subject = f"the {plural(words.say(Part.NOUN, constraint.subject.noun))}"
        form = in_plural(form)
    it = subject
    if constraint.subject.bare == step.object.bare and step.destination is None:
        # "it" could be the whole
        it = f"the {words.say(Part.NOUN, constraint.subject.noun)}" if constraint.subject.of else "it"
    where = "" if constraint.landmark is None else _place(constraint.relation, (constraint.landmark.bare,), 1, words)
    there = "" if step.destination is None else _place(step.relation, (step.destination.bare,), 1, words)
    return form.format(it=it, subject=subject, where=where, there=there, **_pick_up(words))


def _pick_up(words: _Diction) -> dict[str, str]:
    """The parts of "pick it up" and "picking it up", or of what stands for them."""
    verb, _, particle = words.say(Part.VERB, "pick up").partition(" ")
    return {"pick": verb, "picking": f"{verb}ing", "up": particle and f" {particle}"}
