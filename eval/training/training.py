"""Behaviour cloning of scripted demonstrations: chunks of actions, with prompts under both prompt conditions."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from ...toolkit.errors import InvalidInputError
from ...toolkit.prompts import BUILT_IN, RELEASED
from ..policies.learned.network import Network, NetworkConfig, pad_prompts
from ..policies.learned.words import SPECIAL, UNKNOWN, Words, vocabulary_of
from .demonstrations import Demonstrations

LEAST_SCALE = 0.02
"""Smallest standard deviation that features are divided by: what hardly varies must not be blown up."""

LEAST_STEPS = 40
"""Fewest gradient steps: the learning rate needs some to rise and fall in."""

LATER_WEIGHT = 0.9
"""What each further action of a chunk counts of the one before: the next ones are executed, the last ones never."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingConfig:
    """How a network is trained.

    Attributes:
        steps: Gradient steps.
        batch: Frames a step.
        learning_rate: AdamW's at its highest; it warms up and falls to zero as a cosine.
        weight_decay: AdamW's.
        masked_share: Share of frames that are shown with the prompt masked, so that the network can run without it.
        forgotten_share: Share of the words that become unknown, anew at each step, so that unknown words mean little.
        wordings: How many forgetful versions of each prompt a step draws from.
        seed: Seed of weights, order and forgetting.
    """

    steps: int
    batch: int = 512
    learning_rate: float = 1e-3
    weight_decay: float = 1e-3
    masked_share: float = 0.1
    forgotten_share: float = 0.1
    wordings: int = 4
    seed: int = 0


def train(
    demonstrations: Sequence[Demonstrations],
    suite: str,
    config: TrainingConfig,
    *,
    language: bool = True,
    progress: Callable[[float], None] = lambda _: None,
) -> Network:
    """Train a network on demonstrations of several base tasks of one suite.

    Args:
        demonstrations: Of each base task.
        suite: The suite.
        config: How to train.
        language: Whether the network sees the prompts; without, it is the same network with every prompt masked.
        progress: Called with the loss after every hundred steps.

    Raises:
        InvalidInputError: The base tasks' scenes hold different objects, or there are too few steps.
    """
    if config.steps < LEAST_STEPS:
        raise InvalidInputError(f"{config.steps} gradient steps: at least {LEAST_STEPS} are needed")
    names = {each.names for each in demonstrations}
    if len(names) != 1:
        raise InvalidInputError(f"the base tasks of {suite} have different scenes: one network cannot see them all")
    prompts = [BUILT_IN[prompt].text(each.instruction) for each in demonstrations for prompt in RELEASED]
    shape = NetworkConfig(suite=suite, names=names.pop(), vocabulary=vocabulary_of(prompts), language=language)
    with _repeatable(config.seed):
        network = Network(shape)
        frames = _frames(demonstrations, shape.chunk)
        _set_scale(network, frames.vectors)
        _fit(network, frames, _Bank(Words(shape.vocabulary), prompts, config), config, progress)
    network.eval()
    return network


def _fit(
    network: Network, frames: _Frames, bank: _Bank, config: TrainingConfig, progress: Callable[[float], None]
) -> None:
    """Take the gradient steps."""
    optimizer = torch.optim.AdamW(network.parameters(), config.learning_rate, weight_decay=config.weight_decay)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, config.learning_rate, config.steps, pct_start=0.05)
    order = torch.empty(0, dtype=torch.long)
    for step in range(config.steps):
        if len(order) < config.batch:
            order = torch.randperm(len(frames.vectors))
        rows, order = order[: config.batch], order[config.batch :]
        language = network.config.language
        prompts = bank.rows(frames.tasks[rows]) if language else torch.zeros(len(rows), dtype=torch.long)
        predicted = network(frames.vectors[rows], network.prompt(bank.draw())[prompts])
        off = (predicted - frames.chunks[rows]).abs().mean(dim=2)
        loss = (off * frames.weights[rows]).sum() / frames.weights[rows].sum()
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(network.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        if (step + 1) % 100 == 0:
            progress(float(loss.detach()))


@contextmanager
def _repeatable(seed: int) -> Iterator[None]:
    """Draws from a seed and sums in one order; the caller's generator and threads are given back."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            yield
    finally:
        torch.set_num_threads(threads)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Frames:
    """Scene vectors (N, width), the actions from there on (N, chunk, 7), their weights (N, chunk), and tasks (N,)."""

    vectors: Tensor
    chunks: Tensor
    weights: Tensor
    tasks: Tensor


def _frames(demonstrations: Sequence[Demonstrations], chunk: int) -> _Frames:
    actions = np.concatenate([each.actions for each in demonstrations])
    lengths = np.concatenate([each.lengths for each in demonstrations])
    ends = np.repeat(np.cumsum(lengths), lengths)
    ahead = np.arange(len(actions))[:, None] + np.arange(chunk)
    weights = np.where(ahead < ends[:, None], LATER_WEIGHT ** np.arange(chunk), 0.0).astype(np.float32)
    tasks = np.repeat(np.arange(len(demonstrations)), [len(each.vectors) for each in demonstrations])
    return _Frames(
        vectors=torch.from_numpy(np.concatenate([each.vectors for each in demonstrations])),
        chunks=torch.from_numpy(actions[np.minimum(ahead, ends[:, None] - 1)]),
        weights=torch.from_numpy(weights),
        tasks=torch.from_numpy(tasks),
    )


def _set_scale(network: Network, vectors: Tensor) -> None:
    features = network.features(vectors)
    network.mean.copy_(features.mean(dim=0))
    network.scale.copy_(features.std(dim=0).clamp_min(LEAST_SCALE))


class _Bank:
    """Prompts as a step shows them: row 0 is the masked one, then come forgetful versions of every task's prompts.

    Args:
        words: Numbers the words.
        prompts: Of every task under every prompt condition, task by task.
        config: How to train.
    """

    def __init__(self, words: Words, prompts: Sequence[str], config: TrainingConfig) -> None:
        self._masked = words.masked_prompt()
        self._prompts = [words.numbers(prompt) for prompt in prompts]
        self._config = config
        self._random = random.Random(config.seed)

    def draw(self) -> Tensor:
        """All rows, words forgotten anew, shape (1 + wordings * prompts, L)."""
        unknown, share = SPECIAL.index(UNKNOWN), self._config.forgotten_share
        forgetful = [
            [unknown if self._random.random() < share else word for word in prompt]
            for prompt in self._prompts * self._config.wordings
        ]
        return pad_prompts([self._masked, *forgetful])

    def rows(self, tasks: Tensor) -> Tensor:
        """Which row each frame is shown with, by its task, shape (N,)."""
        condition = torch.randint(len(RELEASED), tasks.shape)
        wording = torch.randint(self._config.wordings, tasks.shape)
        row = 1 + wording * len(self._prompts) + tasks * len(RELEASED) + condition
        return torch.where(torch.rand(tasks.shape) < self._config.masked_share, 0, row)
