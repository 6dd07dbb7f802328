"""What was run is compared with the installed task release: on the packaged rollouts, and on altered copies of them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from conflictvla.builders.rollouts.episode_record import EpisodeRecord, episodes_table
from conflictvla.builders.tasks_dataset.reading import load_instances
from conflictvla.eval.recordings.deviations import find_deviations, summed
from conflictvla.eval.recordings.reading import read_rollouts
from conflictvla.eval.recordings.sources import packaged_rollouts
from conflictvla.toolkit.prompts import PLACEBO
from conflictvla.toolkit.records import Instance, LanguageProbe

RECORDED = read_rollouts(packaged_rollouts() / "persist").records()
RELEASED = {i.instance_id: i for i in load_instances()}
EPISODES = tuple(replace(e, horizon=RELEASED[e.instance_id].horizon) for e in RECORDED)
ONE = EPISODES[0]


def deviations(*changed: EpisodeRecord) -> list[str]:
    return [str(found) for found in find_deviations(episodes_table([*EPISODES[1:], *changed]))]


def as_recorded(instance: Instance) -> dict[str, Any]:
    names = ("instance_id", "prompt", "instruction", "prompt_text", "horizon", "tasks_version", "language_probe")
    return {name: getattr(instance, name) for name in names}


def test_rollouts_of_the_release_do_not_deviate() -> None:
    assert deviations(ONE) == []


def test_rollouts_under_a_language_probe_are_compared_with_the_probes() -> None:
    probe = next(i for i in load_instances(language=(LanguageProbe.W2,)) if i.prompt == "P1")
    assert deviations(replace(ONE, **as_recorded(probe))) == []
    (found,) = deviations(replace(ONE, **as_recorded(probe) | {"prompt_text": "else"}))
    assert found == f"the prompt is not the task release's (P1) in 1 rollout, the first of {probe.instance_id}"


@pytest.mark.parametrize("text", ["put the bowl on the moon", f"please {ONE.prompt_text}"])
def test_another_prompt_is_named_with_its_condition(text: str) -> None:
    assert deviations(replace(ONE, prompt_text=text)) == [
        f"the prompt is not the task release's (P0) in 1 rollout, the first of {ONE.instance_id}"
    ]


def test_another_horizon_is_named_with_both() -> None:
    assert deviations(replace(ONE, horizon=ONE.horizon + 7)) == [
        "the horizon is not the task release's in 1 rollout, the first of "
        f"{ONE.instance_id} ({ONE.horizon + 7} instead of {ONE.horizon})"
    ]


def under(prompt: str, text: str, **changes: Any) -> EpisodeRecord:
    name = ONE.instance_id.removesuffix("P0") + prompt
    return replace(ONE, instance_id=name, prompt=prompt, prompt_text=text, **changes)


def test_the_placebo_is_compared_by_its_words_and_ones_own_is_named_with_its_version() -> None:
    assert deviations(under("placebo", PLACEBO.text(ONE.instruction))) == []
    (placebo,) = deviations(under("placebo", ONE.instruction))
    assert placebo.startswith("the prompt is not the task release's (placebo) in 1 rollout")
    (own,) = deviations(under("polite", f"please {ONE.instruction}", prompt_version="2+abc"))
    assert own.startswith("the prompt is in words that no task release has (polite 2+abc) in 1 rollout")
    (other,) = deviations(under("polite", "please do something else"))
    assert other.startswith("the prompt is not the task release's (polite)")
    (horizon,) = deviations(under("placebo", PLACEBO.text(ONE.instruction), horizon=ONE.horizon + 1))
    assert horizon.startswith("the horizon is not the task release's")


def test_what_cannot_be_compared_says_so() -> None:
    (version,) = deviations(replace(ONE, tasks_version="0.9.0"))
    assert "cannot be compared with the task release (recorded with tasks 0.9.0, installed are " in version
    (own_suite,) = deviations(replace(ONE, instance_id="my_suite/my_task/reference/P0"))
    assert f"(tasks {ONE.tasks_version} do not have these instances)" in own_suite


def test_deviations_of_parts_are_added_up() -> None:
    parts = [find_deviations(episodes_table([replace(e, horizon=9)])) for e in EPISODES]
    (found,) = summed(deviation for part in parts for deviation in part)
    assert found.count == len(EPISODES)
    first = min(EPISODES, key=lambda e: e.instance_id)
    assert found.example == f"{first.instance_id} (9 instead of {first.horizon})"
