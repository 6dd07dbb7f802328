"""Language probes: other words, the same meaning in the scene, each level on top of the one before."""

from __future__ import annotations

import functools
import re
from dataclasses import replace

import pytest

from conflictvla.builders.tasks_dataset.reading import load_instances, load_tasks
from conflictvla.toolkit.errors import InvalidInputError
from conflictvla.toolkit.language.lexicon import Part, Substitute, load_lexicon
from conflictvla.toolkit.language.parsing.libero import parse_base_instruction
from conflictvla.toolkit.language.parsing.rendered import parse_rendered_instruction
from conflictvla.toolkit.language.plan import Demand, Plan, Reference, Relation, Step, Verb
from conflictvla.toolkit.language.plan_json import plan_from_json, plan_to_json
from conflictvla.toolkit.language.render import render
from conflictvla.toolkit.language.wording import wording_of
from conflictvla.toolkit.libero.base_tasks import base_tasks
from conflictvla.toolkit.probes.substitution import Substitution, in_words, keeps_meaning, slots, substitutions
from conflictvla.toolkit.records import Arm, Instance, LanguageProbe, Prompt

from ..goal_scene import (
    BOTTLE,
    BOWL,
    CABINET,
    CHEESE,
    PLATE,
    TOP_DRAWER,
    claimed,
    demand,
    facts_of,
    measured_facts,
    plan,
    put,
)

LEVELS = tuple(LanguageProbe)
ALONE = [i for i in load_instances(language=LEVELS) if i.prompt == Prompt.P0]
CASES = [i for i in ALONE if i.arm is Arm.CONFLICT]
KETCHUP = next(t for t in base_tasks("libero_object") if t.name == "pick_up_the_ketchup_and_place_it_in_the_basket")
GOAL = "put the wine bottle on top of the cabinet"


def offer(part: Part, word: str, say: str) -> Substitute:
    return next(s for s in load_lexicon().of(part, word) if s.say == say)


def read(instance: Instance) -> Plan:
    if instance.arm is Arm.REFERENCE:
        return parse_base_instruction(instance.instruction, probed=True)
    return parse_rendered_instruction(instance.instruction)


def of_goal(instruction: str, seed: str = "a") -> tuple[Substitution, ...]:
    return substitutions(parse_base_instruction(instruction), measured_facts(instruction), wording=0, seed=seed)


def test_slots_are_the_words_in_the_order_of_mention_each_once() -> None:
    found = slots(parse_base_instruction(GOAL))

    assert [(slot.role, slot.word) for slot in found] == [
        ("verb", "put"),
        ("object", "wine bottle"),
        ("relation", "top"),
        ("destination", "cabinet"),
    ]
    twice = plan(put(BOWL, Relation.ON, PLATE, demand(Demand.EMPTY, PLATE)), put(BOWL, Relation.ON, PLATE))
    assert [slot.word for slot in slots(twice, 1)] == ["put", "bowl", "plate"]


def test_a_word_that_this_wording_does_not_say_is_no_slot() -> None:
    onto = parse_base_instruction("pick up the black bowl on the wooden cabinet and place it on the plate")

    assert "top" not in {slot.word for slot in slots(onto, 0)}  # LIBERO says "on the wooden cabinet"
    assert "top" in {slot.word for slot in slots(onto, 1)}


@pytest.mark.parametrize(
    ("plans", "wording", "words", "expected"),
    [
        (
            plan(put(BOTTLE, Relation.ON, CABINET)),
            1,
            [(Part.RELATION, "top", "top side"), (Part.NOUN, "cabinet", "dresser"), (Part.VERB, "put", "set")],
            "set the wine bottle on the top side of the dresser",
        ),
        (
            plan(put(replace(BOWL, count=2, adjective="purple"), Relation.ON, PLATE)),
            1,
            [(Part.NOUN, "bowl", "cereal bowl"), (Part.COLOUR, "purple", "violet")],
            "put both violet cereal bowls on the plate",
        ),
        (
            plan(Step(verb=Verb.PLACE, object=BOWL, relation=Relation.ON, destination=PLATE,
                      constraints=(demand(Demand.NOT_LIFTED, BOWL),))),
            3,
            [(Part.VERB, "pick up", "lift up"), (Part.NOUN, "bowl", "soup bowl")],
            "lift up the soup bowl and place it on the plate without ever lifting the soup bowl up",
        ),
        (
            plan(Step(verb=Verb.PLACE, object=BOWL, relation=Relation.ON, destination=PLATE,
                      constraints=(demand(Demand.PICK_UP_AFTER, BOWL),))),
            1,
            [(Part.VERB, "pick up", "lift")],
            "lift the bowl and place it on the plate, but do not lift the bowl until it is on the plate",
        ),
        (
            plan(put(claimed(BOWL, Relation.AT_CENTER, Reference(noun="table")), Relation.IN, TOP_DRAWER)),
            1,
            [(Part.RELATION, "center", "middle")],
            "put the bowl that is in the middle of the table inside the top drawer of the cabinet",
        ),
        (
            plan(Step(verb=Verb.OPEN, object=TOP_DRAWER), Step(verb=Verb.TURN_ON, object=Reference(noun="stove"))),
            1,
            [(Part.VERB, "open", "open up"), (Part.VERB, "turn on", "switch on"), (Part.NOUN, "stove", "range")],
            "open up the top drawer of the cabinet and then switch on the range",
        ),
    ],
)  # fmt: skip
def test_substitutes_are_said_as_english_says_them(
    plans: Plan, wording: int, words: list[tuple[Part, str, str]], expected: str
) -> None:
    chosen = [offer(*word) for word in words]

    assert render(plans, wording, substitutes=chosen) == expected
    assert parse_rendered_instruction(expected) == plans


def test_the_same_seed_chooses_alike_and_seeds_differ() -> None:
    assert of_goal(GOAL) == of_goal(GOAL)
    assert len({of_goal(GOAL, str(seed)) for seed in range(8)}) > 3


def test_those_of_the_reference_come_first() -> None:
    reference = of_goal(GOAL)
    case = plan(put(claimed(BOTTLE, Relation.ON, PLATE), Relation.ON, CABINET))
    found = substitutions(case, measured_facts(GOAL), wording=1, seed="other", like=reference)

    assert found == reference


def test_no_substitute_stands_in_the_sentence_already() -> None:
    both = plan(put(CHEESE, Relation.ON, PLATE), Step(
        verb=Verb.PLACE, object=BOWL, relation=Relation.ON, destination=PLATE,
    ))  # fmt: skip

    for seed in range(12):
        for one in substitutions(both, measured_facts(GOAL), wording=1, seed=str(seed)):
            assert (one.slot.word, one.substitute.say) not in {("put", "place"), ("place", "put")}


@pytest.mark.parametrize(
    ("task", "word", "say", "keeps"),
    [
        (GOAL, "wine bottle", "bottle", True),  # no other bottle there
        (GOAL, "bowl", "soup bowl", True),
        (GOAL, "bowl", "dish", False),  # so is the plate
        (GOAL, "bowl", "vessel", False),  # so is the bottle
        (KETCHUP, "ketchup", "tomato ketchup", True),
        (KETCHUP, "ketchup", "condiment", False),  # so is the sauce
    ],
)
def test_a_word_that_means_more_in_this_scene_is_not_offered(task: object, word: str, say: str, *, keeps: bool) -> None:
    facts = measured_facts(GOAL) if task == GOAL else facts_of(KETCHUP)
    named = plan(put(Reference(noun=word), Relation.ON, Reference(noun="plate" if task == GOAL else "basket")))

    assert keeps_meaning(named, facts, [offer(Part.NOUN, word, say)]) is keeps


def test_checker_sees_the_new_words() -> None:
    reworded = in_words(plan(put(BOTTLE, Relation.IN, TOP_DRAWER)), [offer(Part.NOUN, "cabinet", "dresser")])

    assert [reference.noun for reference in reworded.references()] == ["wine bottle", "drawer", "dresser"]


def test_no_probe_shows_a_seam() -> None:
    seams = re.compile(r"[A-Z{}_\x00]|  | ,|,,|\.|\b(\w+) \1\b|^\s|\s$")

    assert [i.instruction for i in ALONE if seams.search(i.instruction)] == []


def test_every_reference_and_a_sample_of_cases_read_back_into_their_plan_at_every_level() -> None:
    chosen = [i for i in ALONE if i.arm is Arm.REFERENCE] + CASES[::40]

    assert len({i.language_probe for i in chosen}) == len(LEVELS)
    assert [i.instruction for i in chosen if plan_to_json(read(i)) != i.plan] == []


@pytest.mark.slow
def test_every_case_reads_back_into_its_plan_at_every_level() -> None:
    assert [i.instruction for i in CASES if plan_to_json(read(i)) != i.plan] == []


@pytest.mark.parametrize(
    "sentence", ["juggle the bowl", "put the bowl", "", "open the gizmo", "put the bowl on the moon"]
)
def test_sentence_that_nothing_renders_is_refused(sentence: str) -> None:
    with pytest.raises(InvalidInputError, match="0 plans read like that"):
        parse_rendered_instruction(sentence)
    with pytest.raises(InvalidInputError, match=r"no rule|no noun"):
        parse_base_instruction(sentence, probed=True)


def test_libero_words_keep_their_own_meaning_without_a_probe() -> None:
    (step,) = parse_base_instruction("put the wine bottle on the rack").steps
    with pytest.raises(InvalidInputError, match="no rule"):
        parse_base_instruction("set the wine bottle on the rack")

    assert parse_base_instruction("set the bottle on the stand", probed=True).steps == (step,)


def test_levels_are_nested_and_recorded_word_by_word() -> None:
    by_instruction: dict[str, dict[int, list[dict[str, str]]]] = {}
    for row in load_tasks("probes").to_list():
        key, _, level = row["instance_id"].rpartition("/")
        by_instruction.setdefault(key, {})[int(level[1:])] = row["substitutions"]
        assert len(row["substitutions"]) == int(level[1:]) == row["language_probe"]

    for levels in by_instruction.values():
        assert sorted(levels) == list(range(1, len(levels) + 1))
        assert all(levels[k][:-1] == levels.get(k - 1, []) for k in levels)


@functools.cache
def _w0() -> dict[str, Instance]:
    return {i.instance_id: i for i in load_instances()}


def test_a_probe_changes_nothing_but_the_words() -> None:
    probes = load_instances(language=LEVELS[1:])
    known = {i.instance_id for i in probes}

    for probe in probes:
        own = _w0()[probe.instance_id.rpartition("/")[0]]
        assert probe.pair_id == f"{own.pair_id}/{probe.language_probe}"
        assert probe.pair_id in known
        assert probe.instruction != own.instruction
        same = replace(
            probe, instance_id=own.instance_id, pair_id=own.pair_id, instruction=own.instruction,
            prompt_text=own.prompt_text, language_probe=LanguageProbe.W0, tasks_version=own.tasks_version,
        )  # fmt: skip
        assert same == own


def test_shipped_words_are_rendered_from_plan_and_substitutions() -> None:
    for row in load_tasks("probes").to_list()[::25]:
        parts = {one["word"]: one["substitute"] for one in row["substitutions"]}
        chosen = [
            s
            for offered in load_lexicon().substitutes.values()
            for s in offered
            if parts.get(s.word) == s.say and s.synset in {one["substitute_synset"] for one in row["substitutions"]}
        ]
        wording = wording_of(_w0()[row["instance_id"].rpartition("/")[0]])
        assert render(plan_from_json(row["plan"]), wording, substitutes=chosen) == row["instruction"]
