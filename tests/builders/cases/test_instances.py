"""Instances under prompt conditions that a release does not have."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from conflictvla.builders.cases.check import judge_prompt
from conflictvla.builders.cases.instances import under_prompt, under_prompts
from conflictvla.builders.tasks_dataset.reading import load_instances
from conflictvla.toolkit.errors import InvalidInputError
from conflictvla.toolkit.prompts import BUILT_IN, PLACEBO, PromptCondition
from conflictvla.toolkit.records import Arm, LanguageProbe, Prompt

INSTANCES = load_instances(language=(LanguageProbe.W0, LanguageProbe.W1))
OWN = PromptCondition(name="polite", version="1", wording="please {instruction}, if you can")


def test_another_condition_changes_the_prompt_and_the_ids_alone() -> None:
    reference = next(i for i in INSTANCES if i.arm is Arm.REFERENCE and i.prompt == Prompt.P0)
    case = next(i for i in INSTANCES if i.pair_id == reference.instance_id and i.arm is Arm.CONFLICT)

    polite = under_prompt(case, OWN)

    assert polite.instance_id == f"{case.case_id}/polite"
    assert polite.pair_id == under_prompt(reference, OWN).instance_id == under_prompt(reference, OWN).pair_id
    assert polite.pair_id == f"{case.suite}/{case.base_task}/reference/polite"
    assert polite.prompt_text == f"please {case.instruction}, if you can"
    assert (polite.prompt, polite.prompt_version) == ("polite", "1")
    changed = {"instance_id", "pair_id", "prompt", "prompt_text", "prompt_version"}
    assert {n for n in case.__slots__ if getattr(case, n) != getattr(polite, n)} == changed


def test_what_a_release_has_is_what_would_be_made() -> None:
    made = [under_prompt(i, BUILT_IN[Prompt.P1]) for i in INSTANCES if i.prompt == Prompt.P0]

    assert made == [i for i in INSTANCES if i.prompt == Prompt.P1]


def test_every_instance_under_a_language_probe_too_has_its_reference_under_the_placebo() -> None:
    placebo = under_prompts(INSTANCES, [PLACEBO])

    references = {i.instance_id for i in placebo if i.arm is Arm.REFERENCE}
    assert len(placebo) == len(INSTANCES) // 2
    assert {i.pair_id for i in placebo} == references
    assert sum(name.endswith("/placebo/W1") for name in references) == 40


def test_released_conditions_are_taken_as_they_are() -> None:
    assert under_prompts(INSTANCES, [BUILT_IN[Prompt.P1]]) == tuple(i for i in INSTANCES if i.prompt == Prompt.P1)


def test_without_p0_nothing_can_be_put_under_another_condition() -> None:
    p1 = [i for i in INSTANCES if i.prompt == Prompt.P1]
    with pytest.raises(InvalidInputError, match="there are no P0 instances to put under the prompt 'placebo'"):
        under_prompts(p1, [PLACEBO])
    with pytest.raises(InvalidInputError, match=r"reference/P1: not a P0 instance, .* prompt 'polite'"):
        under_prompt(p1[0], OWN)


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({}, None),
        ({"instruction": "sing"}, "the prompt is not the instruction in the words of P0"),
        ({"prompt_version": "0.9"}, "the words of P0 are of version 0.9, here they are 1.0"),
        ({"prompt": "placebo"}, "no release has instances under the prompt condition 'placebo'"),
        ({"prompt": "polite"}, "no release has instances under the prompt condition 'polite'"),
    ],
)
def test_a_release_is_checked_for_its_prompts(changes: dict[str, Any], reason: str | None) -> None:
    assert judge_prompt(replace(INSTANCES[0], **changes)) == reason
