"""The learned example in real scenes: it does what it is asked, can be language-blind, and is trained repeatably."""

from __future__ import annotations

import dataclasses
import functools
import json
import pickle
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch

from conflictvla.eval.policies.interface import Episode, Policy, Refusal
from conflictvla.eval.policies.learned.network import load_config
from conflictvla.eval.policies.learned.policy import PACKAGED
from conflictvla.eval.policies.observing import observe
from conflictvla.eval.policies.registry import load_policy
from conflictvla.eval.training.demonstrations import (
    Demonstrations,
    demonstrate,
    read_demonstrations,
    write_demonstrations,
)
from conflictvla.eval.training.recipe import INIT_STATES, SUITE, record_example, train_example
from conflictvla.toolkit.arrays import FloatArray
from conflictvla.toolkit.errors import DatasetError, InvalidInputError, NotFoundError
from conflictvla.toolkit.libero.base_tasks import base_task, base_tasks
from conflictvla.toolkit.prompts import BUILT_IN, RELEASED
from conflictvla.toolkit.records import BaseTask, Prompt
from conflictvla.toolkit.simulation.scene import Scene

from ..trials import instance_of, roll_out

STOVE, RACK = (base_task("libero_goal", name) for name in ("turn_on_the_stove", "put_the_wine_bottle_on_the_rack"))


@functools.cache
def scene_of(task: BaseTask) -> Scene:
    return Scene(task)


def first_chunk(policy: Policy, prompt: str, task: BaseTask = STOVE) -> FloatArray:
    scene = scene_of(task)
    scene.reset(0)
    policy.reset(Episode(instruction=prompt, init_state=0, seed=0, instance=instance_of(task), scene=scene))
    chunk = policy.act(observe(scene, 0))
    assert not isinstance(chunk, Refusal)
    return chunk


@pytest.mark.parametrize("prompt", RELEASED)
@pytest.mark.parametrize("task", [STOVE, RACK], ids=lambda task: task.name)
def test_the_shipped_policy_completes_a_task_under_both_prompt_conditions(task: BaseTask, prompt: Prompt) -> None:
    instance = dataclasses.replace(instance_of(task), instruction=BUILT_IN[prompt].text(task.instruction))
    assert roll_out(scene_of(task), load_policy("learned"), 0, instance=instance).succeeded


def test_given_another_task_in_the_same_scene_it_does_not_do_the_first() -> None:
    instance = dataclasses.replace(instance_of(STOVE), instruction=RACK.instruction)
    trial = roll_out(scene_of(STOVE), load_policy("learned"), 0, instance=instance, steps=150)
    assert not trial.succeeded
    assert trial.target_moved_m < 0.01


def test_masked_it_acts_the_same_whatever_the_instruction() -> None:
    heard, masked = load_policy("learned"), load_policy("learned?language=masked")
    assert (masked.info.name, masked.info.settings["language"]) == ("learned_masked", "masked")
    assert (first_chunk(masked, STOVE.instruction) == first_chunk(masked, "open the sesame")).all()
    assert (first_chunk(heard, STOVE.instruction) != first_chunk(heard, RACK.instruction)).any()


@pytest.mark.parametrize("prompt", ["", "?!", "defenestrate the xylophone", "¡enciende la estufa!"])
def test_prompts_of_unknown_words_or_none_give_executable_actions(prompt: str) -> None:
    chunk = first_chunk(load_policy("learned?replan_steps=10"), prompt)
    assert chunk.shape == (10, 7)
    assert np.abs(chunk).max() <= 1.0


def test_another_suites_scene_is_refused_by_name() -> None:
    with pytest.raises(InvalidInputError, match=r"libero_object/.*knows scenes with akita_black_bowl_1.* only"):
        first_chunk(
            load_policy("learned"), "", base_task("libero_object", "pick_up_the_butter_and_place_it_in_the_basket")
        )


@pytest.mark.parametrize(
    ("spec", "complaint"),
    [
        ("learned?language=deaf", "no language=deaf"),
        ("learned?replan_steps=0", "replan_steps=0 is not a number from 1"),
        ("learned?images=raw", "no setting 'images'"),
        ("learned:absent/nowhere", "the Hub gave none"),
    ],
)
def test_what_cannot_be_meant_is_refused(spec: str, complaint: str) -> None:
    with pytest.raises((NotFoundError, InvalidInputError), match=complaint):
        load_policy(spec)


@pytest.fixture
def copied(tmp_path: Path) -> Path:
    return Path(shutil.copytree(PACKAGED, tmp_path / "copied"))


def test_damaged_checkpoints_are_refused_in_one_line_and_nothing_is_unpickled(copied: Path) -> None:
    weights, config = copied / "model.safetensors", copied / "config.json"
    complete, fields = weights.read_bytes(), json.loads(config.read_text())
    for content in (complete[: len(complete) // 2], pickle.dumps(Bomb()), b""):
        weights.write_bytes(content)
        with pytest.raises(DatasetError, match=r"model.safetensors cannot be read .*train it again") as refused:
            load_policy(f"learned:{copied}")
        assert "\n" not in str(refused.value)
    weights.write_bytes(complete)
    for changed in ({"hidden": 8}, {"type": "act"}, {"vocabulary": None}, {"chunk": "many"}, {"hidden": 10**9}):
        config.write_text(json.dumps({**fields, **changed}))
        with pytest.raises(DatasetError, match="copied"):
            load_policy(f"learned:{copied}")
    config.write_text("[")
    with pytest.raises(DatasetError, match=r"config.json cannot be read"):
        load_policy(f"learned:{copied}")


class Bomb:
    """Ends the test run if anything unpickles it."""

    def __reduce__(self) -> tuple[object, tuple[str]]:
        return exit, ("unpickled",)


@pytest.fixture(scope="module")
def demonstrated() -> Demonstrations:
    return demonstrate(STOVE, INIT_STATES[:2], seed=0)


def test_demonstrations_come_back_from_their_file_and_damaged_ones_are_refused(
    demonstrated: Demonstrations, tmp_path: Path
) -> None:
    file = tmp_path / f"{min(task.name for task in base_tasks(SUITE))}.safetensors"
    write_demonstrations(demonstrated, file)
    again = read_demonstrations(file)
    for field in dataclasses.fields(Demonstrations):
        np.testing.assert_array_equal(getattr(again, field.name), getattr(demonstrated, field.name))
    assert demonstrated.lengths.sum() == len(demonstrated.vectors) == len(demonstrated.actions)
    with pytest.raises(InvalidInputError, match="other initial states"):
        record_example(tmp_path)
    file.write_bytes(file.read_bytes()[:100])
    with pytest.raises(DatasetError, match="remove it and record them again"):
        read_demonstrations(file)


def test_training_again_gives_the_same_weights_and_masked_it_hears_nothing(
    demonstrated: Demonstrations, tmp_path: Path
) -> None:
    torch.manual_seed(7)  # whatever was drawn before
    for name in ("first", "second"):
        train_example((demonstrated,), tmp_path / name, steps=40)
        torch.rand(3)
    count = train_example((demonstrated,), tmp_path / "blind", language=False, steps=40)
    assert count == json.loads((tmp_path / "blind" / "config.json").read_text())["training"]["demonstrations"]
    files = [(tmp_path / name / "model.safetensors").read_bytes() for name in ("first", "second", "blind")]
    assert files[0] == files[1] != files[2]
    with pytest.raises(InvalidInputError, match="39 gradient steps"):
        train_example((demonstrated,), tmp_path / "hasty", steps=39)
    assert not (tmp_path / "hasty").exists()
    config = load_config(tmp_path / "first", "")
    assert {"turn", "stove", "acting"} <= set(config.vocabulary)
    assert "bowl" not in config.vocabulary
    assert not load_config(tmp_path / "blind", "").language
    blind = load_policy(f"learned:{tmp_path / 'blind'}")
    assert (first_chunk(blind, STOVE.instruction) == first_chunk(blind, RACK.instruction)).all()
