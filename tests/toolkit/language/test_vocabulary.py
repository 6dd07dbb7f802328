"""The words fit the scenes: everything has a name, and what is absent is absent under every name."""

from __future__ import annotations

import json
from importlib import resources

import pytest

from conflictvla.toolkit.errors import NotFoundError
from conflictvla.toolkit.language.plan_json import plan_from_json
from conflictvla.toolkit.language.vocabulary import load_vocabulary
from conflictvla.toolkit.records import BaseTask

from ..goal_scene import GOAL_TASKS, measured_facts

WORDS = load_vocabulary()
ROLES = {"movable", "surface", "hollow", "appliance", "switch"}


@pytest.mark.parametrize("task", GOAL_TASKS, ids=lambda task: task.name)
def test_every_entity_of_a_scene_has_a_word(task: BaseTask) -> None:
    for entity in measured_facts(task.instruction).entities:
        assert WORDS.word(entity.category).noun


@pytest.mark.parametrize("task", GOAL_TASKS, ids=lambda task: task.name)
def test_absent_objects_share_no_name_with_what_a_scene_holds(task: BaseTask) -> None:
    present = {
        name for entity in measured_facts(task.instruction).entities for name in WORDS.word(entity.category).names
    }

    assert {word.noun: sorted(word.names & present) for word in WORDS.absent.values() if word.names & present} == {}


def test_unknown_category_is_refused_by_name() -> None:
    with pytest.raises(NotFoundError, match=r"no category 'wooden_cabnet'.*did you mean 'wooden_cabinet'"):
        WORDS.word("wooden_cabnet")


def test_names_of_an_absent_object_hold_its_synonyms() -> None:
    assert WORDS.names_of("mug") == {"mug", "cup", "coffee mug"}
    assert WORDS.names_of("gizmo") == {"gizmo"}


@pytest.mark.parametrize(
    ("noun", "known"), [("bowl", True), ("dish", True), ("mug", True), ("cup", True), ("gizmo", False)]
)
def test_only_names_of_something_are_known(noun: str, *, known: bool) -> None:
    assert WORDS.knows(noun) is known


def test_every_entry_says_why() -> None:
    data = json.loads(
        resources.files("conflictvla.toolkit.language").joinpath("vocabulary.json").read_text(encoding="utf-8")
    )

    assert all(entry["why"].strip() for entry in (*data["present"].values(), *data["absent"].values()))


def test_absent_objects_are_many_and_each_has_a_known_role() -> None:
    roles = [word.role for word in WORDS.absent.values()]

    assert set(roles) == ROLES
    assert all(roles.count(role) >= 4 for role in ROLES)


def test_no_absent_noun_is_a_synonym_of_another() -> None:
    nouns = set(WORDS.absent)

    assert {word.noun: word.also & nouns for word in WORDS.absent.values() if word.also & nouns} == {}


def test_no_colour_is_seen_on_everything_countable() -> None:
    countable = [word for word in WORDS.present.values() if word.countable]

    for word in countable:
        assert set(WORDS.colours) - word.colours_seen - word.adjectives, word.noun


def test_colours_of_wine_say_nothing_about_the_glass() -> None:
    """'A red wine bottle' may be one of red wine: it would be no conflict."""
    assert WORDS.word("wine_bottle").adjectives >= {"red", "pink", "orange", "yellow"}


@pytest.mark.parametrize(
    "look_alike", ["scale", "sponge", "cutting board", "frying pan", "ramekin", "box", "can", "pot"]
)
def test_objects_that_look_like_something_present_are_never_called_absent(look_alike: str) -> None:
    assert look_alike not in WORDS.absent


@pytest.mark.parametrize(
    ("word", "row_length", "rank"), [("top", 3, 0), ("middle", 3, 1), ("bottom", 3, 2), ("fourth", 3, 3)]
)
def test_ordinals_count_from_the_top(word: str, row_length: int, rank: int) -> None:
    ordinal = WORDS.ordinals[word]

    assert ordinal.row_length in (None, row_length)
    assert (ordinal.rank if ordinal.rank >= 0 else row_length + ordinal.rank) == rank


def test_every_noun_of_a_shipped_plan_is_known() -> None:
    from conflictvla.builders.tasks_dataset.reading import load_instances

    nouns = {reference.noun for i in load_instances() for reference in plan_from_json(i.plan).references()}
    assert {noun for noun in nouns if not WORDS.knows(noun)} == set()
