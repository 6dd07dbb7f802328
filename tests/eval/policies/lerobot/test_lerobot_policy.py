"""LeRobot checkpoints, trained here on recorded rollouts of a scripted agent, drive the arm as LeRobot would."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from lerobot.policies import get_policy_class, make_pre_post_processors

from conflictvla.builders.rollouts.schema import Rollout
from conflictvla.builders.tasks_dataset.reading import load_instances
from conflictvla.eval.policies.checkpoints import find_checkpoint
from conflictvla.eval.policies.conventions import resized, turned
from conflictvla.eval.policies.interface import Observation, Policy
from conflictvla.eval.policies.lerobot.policy import LeRobotPolicy
from conflictvla.eval.policies.registry import load_policy
from conflictvla.eval.policies.spec import read_spec
from conflictvla.eval.rollouts.executors.in_process import InProcess
from conflictvla.eval.rollouts.jobs import Job
from conflictvla.eval.rollouts.rollout import rollout_id, run_rollout
from conflictvla.eval.rollouts.run import run_policy
from conflictvla.eval.rollouts.versions import installed_versions
from conflictvla.toolkit.arrays import FloatArray
from conflictvla.toolkit.errors import ConflictVLAError, InvalidInputError, NotFoundError
from conflictvla.toolkit.records import Arm, Instance
from conflictvla.toolkit.simulation.pictures.rendering import camera_of
from conflictvla.toolkit.simulation.scene_pool import ScenePool

from . import tiny_checkpoints as tiny

TASK = ("libero_goal", "turn_on_the_stove")
FRAMES = 20
DRIVEN = 4


@pytest.fixture(scope="module")
def scenes() -> ScenePool:
    pool = ScenePool(capacity=4)
    scene = pool.scene(*TASK)
    scene.reset(0)
    try:
        camera_of(scene, tiny.SIZE)
    except InvalidInputError as error:
        pytest.skip(str(error))
    return pool


@pytest.fixture(scope="module")
def instances() -> tuple[Instance, Instance]:
    """A reference and a conflict, cut to a few steps."""
    of_task = [i for i in load_instances() if i.base_task == TASK[1] and i.prompt == "P0"]
    reference = next(i for i in of_task if i.arm is Arm.REFERENCE)
    conflict = next(i for i in of_task if i.arm is Arm.CONFLICT)
    return tuple(dataclasses.replace(i, horizon=DRIVEN) for i in (reference, conflict))  # type: ignore[return-value]


@pytest.fixture(scope="module")
def checkpoints(
    scenes: ScenePool, instances: tuple[Instance, ...], tmp_path_factory: pytest.TempPathFactory
) -> Callable[[str], Path]:
    """A function from a class of checkpoints to the folder of one, trained when it is first asked for."""
    folder = tmp_path_factory.mktemp("checkpoints")
    persist = load_policy("persist")
    long = dataclasses.replace(instances[0], horizon=FRAMES)
    run = run_policy(persist, [long], folder / "rollouts", init_states=[0], executor=InProcess(scenes))
    assert run.dataset is not None
    name = rollout_id(persist.info, Job(instance=long, init_state=0, seed=0))
    shown = tiny.read_demonstration(run.dataset, name, long.instruction, FRAMES)
    # The same frames under another instruction call for the opposite, so that the instruction matters.
    opposite = {**shown.frames, "action": -shown.frames["action"]}
    demonstrations = [shown, tiny.Demonstration(frames=opposite, instruction=instances[1].instruction)]

    def made(kind: str) -> Path:
        target = folder / kind
        if not target.exists():
            configs: dict[str, Callable[[], Any]] = {
                "act": tiny.tiny_act,
                "ensembled": lambda: dataclasses.replace(
                    tiny.tiny_act(), n_action_steps=1, temporal_ensemble_coeff=0.01
                ),
                "diffusion": tiny.tiny_diffusion,
                "multi_task_dit": lambda: tiny.tiny_multi_task_dit(tiny.make_tiny_clip(folder / "tiny-clip")),
            }
            losses = tiny.train(configs[kind](), demonstrations, target)
            assert losses[-1] < losses[0]
        return target

    return made


def _rollout(policy: Policy, instance: Instance, scenes: ScenePool, seed: int = 0) -> Rollout:
    return run_rollout(
        scenes.scene(*TASK), policy, Job(instance=instance, init_state=0, seed=seed), versions=installed_versions()
    )


@pytest.mark.parametrize(
    ("kind", "asked_at"),
    [("act", [0, 3]), ("ensembled", list(range(DRIVEN))), ("diffusion", list(range(DRIVEN)))],
)
def test_actions_are_those_of_lerobots_own_loop(
    kind: str,
    asked_at: list[int],
    checkpoints: Callable[[str], Path],
    scenes: ScenePool,
    instances: tuple[Instance, ...],
) -> None:
    """LeRobot's evaluation asks ``select_action`` at every step; pictures are made only where they are needed."""
    folder = checkpoints(kind)
    asked: list[int] = []

    class Watched(LeRobotPolicy):
        def act(self, observation: Observation) -> FloatArray:
            asked.append(observation.step)
            return super().act(observation)

    through = _rollout(Watched(read_spec(f"lerobot:{folder}")), instances[0], scenes)
    direct = _rollout(_SelectAction(folder), instances[0], scenes)
    assert asked == asked_at
    np.testing.assert_array_equal(through.frames["action"], direct.frames["action"])
    assert len(np.unique(through.frames["action"], axis=0)) > 1


class _SelectAction:
    """What LeRobot's own evaluation does, in LIBERO's raw terms: rotate, scale, pre-process, select, post-process."""

    def __init__(self, folder: Path) -> None:
        from lerobot.configs import PreTrainedConfig

        self.info = dataclasses.replace(load_policy("persist").info, name="direct")
        config = PreTrainedConfig.from_pretrained(folder)
        self._policy = get_policy_class(config.type).from_pretrained(folder, config=config)
        self._before, self._after = make_pre_post_processors(config, str(folder))

    def reset(self, episode: Any) -> None:
        self._policy.reset()
        self._instruction = episode.instruction
        torch.manual_seed(episode.seed)

    def act(self, observation: Observation) -> FloatArray:
        batch: dict[str, Any] = {"observation.state": torch.tensor(observation.state[np.newaxis]).float()}
        for feature, camera in tiny.CAMERAS.items():
            raw = observation.image(camera, 256)[::-1]
            picture = torch.tensor(raw.copy()).flip(0, 1)
            small = torch.tensor(resized(picture.numpy(), tiny.SIZE).copy())
            batch[feature] = small.permute(2, 0, 1).unsqueeze(0).float() / 255
        batch = self._before({**batch, "task": [self._instruction]})
        with torch.inference_mode():
            return self._after(self._policy.select_action(batch)).numpy().astype(np.float64)  # type: ignore[no-any-return]


def test_a_language_conditioned_checkpoint_hears_the_instruction(
    checkpoints: Callable[[str], Path], scenes: ScenePool, instances: tuple[Instance, ...]
) -> None:
    policy = load_policy(f"lerobot:{checkpoints('multi_task_dit')}")
    one, other = (_rollout(policy, instance, scenes).frames["action"] for instance in instances)
    assert np.abs(one[0] - other[0]).max() > 1e-4


def test_a_seed_decides_and_nothing_is_left_over(
    checkpoints: Callable[[str], Path], scenes: ScenePool, instances: tuple[Instance, ...]
) -> None:
    policy = load_policy(f"lerobot:{checkpoints('diffusion')}")
    first, other, again = (_rollout(policy, instances[0], scenes, seed).frames["action"] for seed in (1, 2, 1))
    np.testing.assert_array_equal(first, again)
    assert np.abs(first - other).max() > 0.0


def test_the_record_says_what_ran(checkpoints: Callable[[str], Path]) -> None:
    folder = checkpoints("act")
    info = load_policy(f"lerobot:{folder}").info
    assert (info.name, info.revision) == ("act", find_checkpoint(str(folder), "here").revision)
    assert info.settings["type"] == "act"
    assert info.settings["image_size"] == tiny.SIZE
    assert info.settings["n_action_steps"] == tiny.ACT_STEPS
    renamed = load_policy(f"lerobot:{folder}?name=mine&replan_steps=2&config.n_action_steps=1").info
    assert (renamed.name, renamed.settings["replan_steps"]) == ("mine", 2)
    assert renamed.settings["config.n_action_steps"] == "1"


def test_other_weights_are_another_revision(checkpoints: Callable[[str], Path], tmp_path: Path) -> None:
    before = find_checkpoint(str(checkpoints("act")), "here")
    copy = tmp_path / "act"
    copy.mkdir()
    for file in before.folder.iterdir():
        (copy / file.name).write_bytes(file.read_bytes())
    assert find_checkpoint(str(copy), "here").revision == before.revision
    weights = (copy / "model.safetensors").read_bytes()
    (copy / "model.safetensors").write_bytes(weights[:-1] + bytes([weights[-1] ^ 1]))
    assert find_checkpoint(str(copy), "here").revision != before.revision


def _changed(folder: Path, target: Path, change: Callable[[dict[str, Any]], None]) -> Path:
    target.mkdir()
    for file in folder.iterdir():
        (target / file.name).write_bytes(file.read_bytes())
    config = json.loads((target / "config.json").read_text())
    change(config)
    (target / "config.json").write_text(json.dumps(config))
    return target


def _front_camera(config: dict[str, Any]) -> None:
    config["input_features"]["observation.images.front"] = config["input_features"].pop("observation.images.image")


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        (
            _front_camera,
            NotFoundError,
            r"wants the picture 'observation.images.front'; name its view with \?agentview=",
        ),
        (
            lambda config: config["input_features"]["observation.state"].update(shape=[9]),
            InvalidInputError,
            r"wants a state of shape \(9,\); LIBERO's is \(8,\)",
        ),
        (
            lambda config: config["output_features"]["action"].update(shape=[14]),
            InvalidInputError,
            r"gives actions of shape \(14,\); LIBERO's is \(7,\)",
        ),
        (lambda config: config.update(type="no_such_class"), InvalidInputError, "its config.json cannot be read"),
    ],
)
def test_a_checkpoint_that_does_not_fit_libero_is_refused_with_a_remedy(
    change: Callable[[dict[str, Any]], None],
    error: type[ConflictVLAError],
    message: str,
    checkpoints: Callable[[str], Path],
    tmp_path: Path,
) -> None:
    folder = _changed(checkpoints("act"), tmp_path / "changed", change)
    with pytest.raises(error, match=message) as caught:
        load_policy(f"lerobot:{folder}")
    assert "\n" not in str(caught.value)


def test_a_view_can_be_named(checkpoints: Callable[[str], Path], tmp_path: Path) -> None:
    folder = _changed(checkpoints("act"), tmp_path / "changed", _front_camera)
    load_policy(f"lerobot:{folder}?agentview=observation.images.front")


def test_damaged_weights_are_one_line(
    checkpoints: Callable[[str], Path], tmp_path: Path, scenes: ScenePool, instances: tuple[Instance, ...]
) -> None:
    folder = _changed(checkpoints("act"), tmp_path / "changed", lambda config: None)
    (folder / "model.safetensors").write_bytes(b"not safetensors")
    with pytest.raises(ConflictVLAError, match="cannot be loaded") as caught:
        _rollout(load_policy(f"lerobot:{folder}"), instances[0], scenes)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("lerobot:nowhere/at/all", "no folder 'nowhere/at/all', and no name of a Hub repository either"),
        ("lerobot:.", "holds no config.json"),
        ("lerobot:nowhere?devise=cpu", "no setting 'devise': did you mean 'device'"),
    ],
)
def test_a_checkpoint_that_is_not_there_is_named(spec: str, message: str, tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ConflictVLAError, match=message):
        load_policy(spec)


def test_the_pictures_in_training_were_turned_as_the_adapter_turns_them() -> None:
    """What stands in ``tiny_checkpoints`` is LeRobot's own flip of LIBERO's picture in both directions."""
    upright = np.arange(12, dtype=np.uint8).reshape(2, 2, 3)
    raw = torch.tensor(upright[::-1].copy())
    np.testing.assert_array_equal(turned(upright, "rotated"), torch.flip(raw, dims=[0, 1]).numpy())
