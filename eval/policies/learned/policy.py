"""The learned policy as a policy: ``learned`` ships with the package, ``learned:PATH`` is one that you trained."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ....toolkit.arrays import FloatArray
from ....toolkit.errors import MissingExtraError, NotFoundError, choices
from ..checkpoints import find_checkpoint
from ..conventions import read_count
from ..interface import Episode, Observation, PolicyInfo
from ..spec import PolicySpec, check_settings
from .scene_vector import SceneVector
from .words import Words

if TYPE_CHECKING:
    from torch import Tensor

    from .network import Network

PACKAGED = Path(__file__).with_name("checkpoint")
"""The checkpoint that ships with the package."""

LANGUAGE = ("heard", "masked")
"""Choices of the setting ``language``: the prompt as it is, or the same for every instruction."""

REPLAN_STEPS = 4
"""Actions of a chunk that are executed before the next is asked for, where the setting is not given."""


class LearnedPolicy:
    """A small network that receives the simulator's state, not pictures, and reads the prompt.

    Args:
        spec: What the user wrote; settings are ``language``, ``replan_steps`` and ``name``.

    Raises:
        NotFoundError: There is no such checkpoint, setting or choice.
        InvalidInputError: A setting makes no sense.
        DatasetError: The checkpoint is damaged.
        MissingExtraError: PyTorch is not installed.
    """

    def __init__(self, spec: PolicySpec) -> None:
        where = f"policy '{spec.text}'"
        check_settings(spec, ("language", "name", "replan_steps"))
        language = spec.settings.get("language", LANGUAGE[0])
        if language not in LANGUAGE:
            raise NotFoundError(f"{where}: no language={language}: {choices(language, list(LANGUAGE))}")
        checkpoint = find_checkpoint(spec.target or str(PACKAGED), where)
        self._masked = language == "masked"
        self._network = _load(checkpoint.folder, where)
        self._words = Words(self._network.config.vocabulary)
        self._steps = (
            read_count(spec.settings, "replan_steps", where) if "replan_steps" in spec.settings else REPLAN_STEPS
        )
        self.info = PolicyInfo(
            name=spec.settings.get("name", "learned_masked" if self._masked else "learned"),
            revision=checkpoint.revision,
            settings={"language": language, "replan_steps": self._steps},
        )
        self._vector: SceneVector | None = None
        self._prompt: Tensor | None = None

    def reset(self, episode: Episode) -> None:
        """Begin an episode: read the prompt.

        Raises:
            InvalidInputError: The scene is not of the suite that the network was trained on.
        """
        import torch

        from .network import pad_prompts

        self._vector = SceneVector(episode.scene, self._network.config.names)
        reads_prompt = self._network.config.language and not self._masked
        words = self._words.numbers(episode.instruction) if reads_prompt else self._words.masked_prompt()
        with torch.inference_mode():
            self._prompt = self._network.prompt(pad_prompts([words]))

    def act(self, observation: Observation) -> FloatArray:
        """The next actions, shape (n, 7)."""
        import torch

        del observation  # it receives the objects too, which no observation holds
        assert self._vector is not None  # reset comes first
        with torch.inference_mode():
            seen = torch.from_numpy(self._vector.read()).unsqueeze(0)
            chunk = self._network(seen, self._prompt)[0, : self._steps]
        return np.asarray(np.clip(chunk.numpy().astype(np.float64), -1.0, 1.0))


def _load(folder: Path, where: str) -> Network:
    try:
        from .network import load_network
    except ImportError as error:
        raise MissingExtraError("the learned policy", "lerobot", error.name or "torch") from error
    return load_network(folder, where)
