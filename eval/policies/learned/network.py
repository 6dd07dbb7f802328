"""The learned policy's network: from a scene vector and a prompt to a chunk of actions, and its files."""

from __future__ import annotations

import dataclasses
import itertools
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from ....toolkit.atomic_files import write_atomic
from ....toolkit.errors import DatasetError, first_line
from ..checkpoints import CONFIG_FILE
from ..interface import ACTION_WIDTH
from .scene_vector import HAND, SceneNames
from .words import PADDING, SPECIAL

WEIGHTS_FILE = "model.safetensors"

TYPE = "conflictvla-learned"
"""Type that ``config.json`` states."""

MOST = 4096
"""Largest size in a config that is believed, so that a damaged one does not take all memory."""

NEAR_M = 0.05
"""Distances up to about this one are distinguished twice as finely: where a hand closes, millimetres count."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NetworkConfig:
    """Everything about a network but its weights.

    Attributes:
        suite: The suite that it was trained on.
        names: What a scene must hold.
        vocabulary: The words that it knows, special ones first.
        language: Whether it was trained with prompts, or with all of them masked.
        chunk: How many actions it gives at once.
        hidden: Width of its layers.
        layers: How many of them there are.
        word_width: Width of the embedding of a word.
        prompt_width: Width of the embedding of a prompt.
    """

    suite: str
    names: SceneNames
    vocabulary: tuple[str, ...]
    language: bool = True
    chunk: int = 10
    hidden: int = 320
    layers: int = 3
    word_width: int = 32
    prompt_width: int = 64


class PromptEncoder(nn.Module):  # type: ignore[misc]  # torch's types are not read, see pyproject.toml
    """Words and their neighbours, weighed by attention: what counts is found wherever in a prompt it stands.

    Args:
        config: The network's.
    """

    def __init__(self, config: NetworkConfig) -> None:
        super().__init__()
        self.embedding = nn.Embedding(len(config.vocabulary), config.word_width, SPECIAL.index(PADDING))
        self.neighbours = nn.Conv1d(config.word_width, config.prompt_width, kernel_size=3, padding=1)
        self.weight = nn.Linear(config.prompt_width, 1)
        self.out = nn.Linear(config.prompt_width, config.prompt_width)

    def forward(self, words: Tensor) -> Tensor:
        """Embeddings of prompts, shape (P, prompt_width), of numbers of words, shape (P, L)."""
        seen = torch.relu(self.neighbours(self.embedding(words).transpose(1, 2))).transpose(1, 2)
        weight = self.weight(seen).masked_fill((words == SPECIAL.index(PADDING)).unsqueeze(-1), -torch.inf)
        return self.out((torch.softmax(weight, dim=1) * seen).sum(dim=1))


class Network(nn.Module):  # type: ignore[misc]  # see above
    """Layers on the scene, each scaled and shifted by the prompt (FiLM, Perez et al. 2018).

    Args:
        config: What it consists of.
    """

    mean: Tensor
    scale: Tensor

    def __init__(self, config: NetworkConfig) -> None:
        super().__init__()
        self.config = config
        self.prompt = PromptEncoder(config)
        width = config.names.width + 2 * 3 * len(config.names.objects)
        self.register_buffer("mean", torch.zeros(width))
        self.register_buffer("scale", torch.ones(width))
        widths = [width, *[config.hidden] * config.layers]
        self.hidden = nn.ModuleList(nn.Linear(*pair) for pair in itertools.pairwise(widths))
        self.film = nn.ModuleList(nn.Linear(config.prompt_width, 2 * config.hidden) for _ in self.hidden)
        self.norm = nn.ModuleList(nn.LayerNorm(config.hidden) for _ in self.hidden)
        self.out = nn.Linear(config.hidden, config.chunk * ACTION_WIDTH)

    def features(self, vectors: Tensor) -> Tensor:
        """Scene vectors, shape (N, width), with where objects are from the hand, once more in detail when near."""
        objects = vectors[:, HAND : HAND + 3 * len(self.config.names.objects)].unflatten(1, (-1, 3))
        apart = (objects - vectors[:, None, :3]).flatten(1)
        return torch.cat([vectors, apart, torch.tanh(apart / NEAR_M)], dim=1)

    def forward(self, vectors: Tensor, prompts: Tensor) -> Tensor:
        """Chunks of actions, shape (N, chunk, 7), of scene vectors (N, width) and embedded prompts (N, P)."""
        seen = (self.features(vectors) - self.mean) / self.scale
        for index, (layer, film, norm) in enumerate(zip(self.hidden, self.film, self.norm, strict=True)):
            gain, shift = film(prompts).chunk(2, dim=1)
            out = torch.relu(norm(layer(seen)) * (1.0 + gain) + shift)
            seen = out if index == 0 else seen + out
        chunk: Tensor = self.out(seen).unflatten(1, (self.config.chunk, ACTION_WIDTH))
        return chunk


def pad_prompts(prompts: Sequence[Sequence[int]]) -> Tensor:
    """Prompts as numbers of words in one tensor, shape (P, L), the shorter ones filled up."""
    parts = [torch.tensor(prompt) for prompt in prompts]
    return nn.utils.rnn.pad_sequence(parts, batch_first=True, padding_value=SPECIAL.index(PADDING))


def save_network(network: Network, folder: Path, training: dict[str, Any]) -> None:
    """Write a network's config and weights, these in half precision.

    Args:
        network: The network.
        folder: Where ``config.json`` and ``model.safetensors`` go.
        training: How it was trained, by name, for the record.
    """
    from safetensors.torch import save

    config = {"type": TYPE, **dataclasses.asdict(network.config), "training": training}
    # Rounding costs nothing that could be measured, and halves the file.
    weights = save({name: value.half().contiguous() for name, value in network.state_dict().items()})
    write_atomic(folder / WEIGHTS_FILE, weights)
    write_atomic(folder / CONFIG_FILE, json.dumps(config, indent=2) + "\n")


def load_config(folder: Path, where: str) -> NetworkConfig:
    """Read ``config.json`` of a folder that ``save_network`` wrote.

    Raises:
        DatasetError: It is none of ours, or damaged.
    """
    file = folder / CONFIG_FILE
    try:
        config = json.loads(file.read_text(encoding="utf-8"))
        if config.get("type") != TYPE:
            raise DatasetError(f"{where}: {file} is of type {config.get('type')!r}, not {TYPE}")
        fields = {field.name: config[field.name] for field in dataclasses.fields(NetworkConfig)}
        sizes = [fields[name] for name in ("chunk", "hidden", "layers", "word_width", "prompt_width")]
        if not all(isinstance(size, int) and 0 < size <= MOST for size in sizes):
            raise DatasetError(f"{where}: {file}: sizes {sizes} are not all integers from 1 to {MOST}")
        names = {name: tuple(listed) for name, listed in fields["names"].items()}
        return NetworkConfig(**fields | {"names": SceneNames(**names), "vocabulary": tuple(fields["vocabulary"])})
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise DatasetError(f"{where}: {file} cannot be read ({error!r}): copy or train it again") from error


def load_network(folder: Path, where: str) -> Network:
    """Read a folder that ``save_network`` wrote.

    Raises:
        DatasetError: Config or weights are damaged, or do not fit each other.
    """
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    config, file = load_config(folder, where), folder / WEIGHTS_FILE
    try:
        network = Network(config)
        network.load_state_dict(load_file(file))
    except (OSError, SafetensorError, RuntimeError) as error:
        raise DatasetError(f"{where}: {file} cannot be read ({first_line(error)}): copy or train it again") from error
    network.eval()
    return network
