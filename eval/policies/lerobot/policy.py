"""Any LeRobot checkpoint as a policy: ``lerobot:PATH`` or ``lerobot:OWNER/NAME@REVISION``, with its own processors."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ....toolkit.arrays import FloatArray
from ....toolkit.errors import InvalidInputError, MissingExtraError, NotFoundError, first_line
from ..checkpoints import Checkpoint, find_checkpoint
from ..conventions import (
    AGENTVIEW,
    SETTINGS,
    WRIST,
    Conventions,
    executable_actions,
    picture,
    read_conventions,
    state_vector,
)
from ..interface import ACTION_WIDTH, Episode, Observation, PolicyInfo
from ..spec import PolicySpec, check_settings

OWN_SETTINGS = ("agentview", "device", "name", "stepwise", "wrist")
"""Settings beside the conventions: the two views' feature names, the torch device, a name for the rollouts, and
``stepwise=1`` to hand every observation to the checkpoint although it asks for one a chunk."""

CONFIG_PREFIX = "config."
"""What a setting begins with that replaces an entry of the checkpoint's ``config.json``."""

STATE_KEY, STATE_WIDTH = "observation.state", 8

VIEWS = {
    "observation.images.image": AGENTVIEW,
    "observation.images.image2": WRIST,
    "observation.images.wrist_image": WRIST,
}
"""Image features of LIBERO datasets and which camera each shows; the first two are LeRobot's own."""

EMPTY_VIEW = "empty_camera"
"""Part of the names of features that a checkpoint reserves and leaves blank."""

EXTRAS = {"pi0": "pi", "pi05": "pi", "pi0_fast": "pi", "wall_x": "wallx"}
"""LeRobot's extras that are not named after the class of checkpoint that needs them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Model:
    """A checkpoint in memory.

    Attributes:
        policy: LeRobot's ``PreTrainedPolicy``.
        before: Its pre-processor.
        after: Its post-processor.
    """

    policy: Any
    before: Any
    after: Any


class LeRobotPolicy:
    """A LeRobot checkpoint; its weights are loaded when the first episode begins.

    A checkpoint that receives one observation a chunk is asked once a chunk, and no picture is made in between. One
    that has a history, such as diffusion policies, receives every observation.

    Args:
        spec: What the user wrote.

    Raises:
        NotFoundError: There is no such checkpoint or setting.
        InvalidInputError: It does not take LIBERO's observations or does not give LIBERO's actions.
        MissingExtraError: LeRobot is not installed.
    """

    def __init__(self, spec: PolicySpec) -> None:
        overrides = {name: value for name, value in spec.settings.items() if name.startswith(CONFIG_PREFIX)}
        check_settings(spec, (*SETTINGS, *OWN_SETTINGS, *overrides))
        self._where = f"policy '{spec.text}'"
        self._checkpoint = find_checkpoint(spec.target, self._where)
        self._config = _read_config(self._checkpoint, overrides, self._where)
        self._views = _views(self._config, spec.settings, self._where)
        _check_widths(self._config, self._where)
        self._config.device = spec.settings.get("device") or _best_device()
        trained = Conventions(image_size=_image_size(self._config, self._views))
        self.conventions = read_conventions(spec.settings, trained, self._where)
        self._stepwise = "stepwise" in spec.settings or _needs_every_step(self._config)
        self._steps = 1 if self._stepwise else self.conventions.replan_steps or int(self._config.n_action_steps)
        if self._stepwise and self.conventions.replan_steps:
            self._config.n_action_steps = self.conventions.replan_steps
        self.info = PolicyInfo(
            name=spec.settings.get("name", self._checkpoint.name),
            revision=self._checkpoint.revision,
            settings={
                **self.conventions.settings(),
                "type": str(self._config.type),
                "n_action_steps": int(getattr(self._config, "n_action_steps", 1)),
                "stepwise": self._stepwise,
                **overrides,
            },
        )
        self._model: Model | None = None
        self._instruction = ""

    def reset(self, episode: Episode) -> None:
        """Begin an episode: forget the last one and seed torch.

        Raises:
            InvalidInputError: The weights or processors cannot be loaded.
            MissingExtraError: The checkpoint's class needs a package that is not installed.
        """
        import torch

        if self._model is None:
            self._model = _load(self._checkpoint, self._config, self._where)
        self._model.policy.reset()
        self._instruction = episode.instruction
        torch.manual_seed(episode.seed)

    def act(self, observation: Observation) -> FloatArray:
        """The checkpoint's next actions, shape (n, 7)."""
        import torch
        from lerobot.policies import prepare_observation_for_inference

        assert self._model is not None  # reset comes first
        frame = self._frame(observation)
        batch = prepare_observation_for_inference(frame, torch.device(self._config.device), task=self._instruction)
        batch = self._model.before(batch)
        with torch.inference_mode():
            if self._stepwise:
                actions = self._model.policy.select_action(batch).unsqueeze(1)
            else:
                actions = self._model.policy.predict_action_chunk(batch)
        chunk = self._model.after(actions).squeeze(0).to("cpu", torch.float64).numpy()
        return executable_actions(chunk[: self._steps, :ACTION_WIDTH], self.conventions)

    def _frame(self, observation: Observation) -> dict[str, npt.NDArray[Any]]:
        frame: dict[str, npt.NDArray[Any]] = {
            key: picture(observation, camera, self.conventions) for key, camera in self._views.items()
        }
        if STATE_KEY in self._config.input_features:
            frame[STATE_KEY] = state_vector(observation, self.conventions).astype(np.float32)
        return frame


def _read_config(checkpoint: Checkpoint, overrides: Mapping[str, str], where: str) -> Any:
    try:
        import lerobot.policies  # noqa: F401  # registers the classes of checkpoints
        from lerobot.configs import PreTrainedConfig
    except ImportError as error:
        raise MissingExtraError("running a LeRobot checkpoint", "lerobot", error.name or "lerobot") from error
    try:
        arguments = [f"--{name.removeprefix(CONFIG_PREFIX)}={value}" for name, value in overrides.items()]
        return PreTrainedConfig.from_pretrained(checkpoint.folder, cli_overrides=arguments)
    except (Exception, SystemExit) as error:  # LeRobot's parser raises whatever it likes, and may want to exit
        raise InvalidInputError(f"{where}: its config.json cannot be read: {first_line(error)}") from error


def _load(checkpoint: Checkpoint, config: Any, where: str) -> Model:
    from lerobot.policies import get_policy_class, make_pre_post_processors

    device = {"device_processor": {"device": config.device}}
    if getattr(config, "pretrained_backbone_weights", None) is not None:
        config.pretrained_backbone_weights = None  # the checkpoint's own replace them, so none need be downloaded
    # LeRobot prints where it loads from; a command's output is for its results.
    with Path(os.devnull).open("w") as nowhere, contextlib.redirect_stdout(nowhere):
        try:
            policy = get_policy_class(config.type).from_pretrained(checkpoint.folder, config=config)
            before, after = make_pre_post_processors(config, str(checkpoint.folder), preprocessor_overrides=device)
        except ImportError as error:
            extra = EXTRAS.get(config.type, config.type)
            raise InvalidInputError(f"{where}: {first_line(error)}; pip install 'lerobot[{extra}]'") from error
        except Exception as error:  # LeRobot, safetensors and torch each have their own
            raise InvalidInputError(f"{where}: cannot be loaded: {first_line(error)}") from error
    return Model(policy=policy, before=before, after=after)


def _views(config: Any, settings: dict[str, str], where: str) -> dict[str, str]:
    """Which camera shows what each image feature of the checkpoint expects."""
    named = {
        settings[name]: camera for name, camera in (("agentview", AGENTVIEW), ("wrist", WRIST)) if name in settings
    }
    wanted = [key for key in config.image_features if EMPTY_VIEW not in key]
    known = {key: camera for key, camera in VIEWS.items() if camera not in named.values()} | named
    unknown = [key for key in wanted if key not in known]
    if unknown:
        raise NotFoundError(
            f"{where}: the checkpoint wants the picture '{unknown[0]}'; name its view with "
            f"?agentview={unknown[0]} or ?wrist={unknown[0]}"
        )
    return {key: known[key] for key in dict.fromkeys([*wanted, *named])}


def _check_widths(config: Any, where: str) -> None:
    state = (config.input_features or {}).get(STATE_KEY)
    if state is not None and tuple(state.shape) != (STATE_WIDTH,):
        raise InvalidInputError(
            f"{where}: the checkpoint wants a state of shape {tuple(state.shape)}; LIBERO's is ({STATE_WIDTH},): "
            "position, axis-angle, fingers"
        )
    action = config.action_feature
    if action is not None and tuple(action.shape) != (ACTION_WIDTH,):
        raise InvalidInputError(
            f"{where}: the checkpoint gives actions of shape {tuple(action.shape)}; LIBERO's is ({ACTION_WIDTH},)"
        )


def _image_size(config: Any, views: dict[str, str]) -> int:
    """The size that the checkpoint declares for its pictures, or LIBERO's."""
    shapes = [config.image_features[key].shape for key in views if key in config.image_features]
    # Channels come first in most configs and last in some; the height stands in the middle of both.
    return int(shapes[0][1]) if shapes else Conventions().image_size


def _needs_every_step(config: Any) -> bool:
    history = int(getattr(config, "n_obs_steps", 1) or 1) > 1
    return history or getattr(config, "temporal_ensemble_coeff", None) is not None


def _best_device() -> str:
    import torch

    return "cuda" if torch.cuda.is_available() else "cpu"
