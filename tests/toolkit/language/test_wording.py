"""Wording numbers: one for each plan, and no way of wording a plan beyond them."""

from __future__ import annotations

from conflictvla.builders.tasks_dataset.reading import load_instances
from conflictvla.toolkit.language.plan_json import plan_from_json
from conflictvla.toolkit.language.render import render
from conflictvla.toolkit.language.wording import LIBERO_WORDING, WORDINGS, plan_wording, wording_of
from conflictvla.toolkit.records import Arm, Prompt

ALONE = [i for i in load_instances() if i.prompt == Prompt.P0]


def test_reference_is_worded_as_libero_does_and_a_case_never() -> None:
    for instance in ALONE:
        if instance.arm is Arm.REFERENCE:
            assert wording_of(instance) == LIBERO_WORDING
        else:
            assert wording_of(instance) == plan_wording(instance.plan) in WORDINGS


def test_cases_use_every_wording() -> None:
    assert {wording_of(i) for i in ALONE if i.arm is Arm.CONFLICT} == set(WORDINGS)


def test_higher_numbers_only_repeat_the_wordings() -> None:
    for plan in (plan_from_json(instance.plan) for instance in ALONE[::20]):
        for wording in WORDINGS:
            assert render(plan, wording + len(WORDINGS)) == render(plan, wording)
