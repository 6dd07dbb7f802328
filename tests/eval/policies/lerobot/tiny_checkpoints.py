"""LeRobot checkpoints of a few thousand weights, trained for a few steps on recorded rollouts, without a download."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.dataset as pads
import torch
from lerobot.configs import FeatureType, PolicyFeature
from lerobot.policies import ACTConfig, DiffusionConfig, MultiTaskDiTConfig, get_policy_class, make_pre_post_processors

from conflictvla.eval.policies.conventions import turned

from ...rendered_frames import render_frames

SIZE = 32
HORIZON = 8
ACT_STEPS, DIFFUSION_STEPS = 3, 2
STEPS = 6

INPUTS = {
    "observation.images.image": PolicyFeature(FeatureType.VISUAL, (3, SIZE, SIZE)),
    "observation.images.image2": PolicyFeature(FeatureType.VISUAL, (3, SIZE, SIZE)),
    "observation.state": PolicyFeature(FeatureType.STATE, (8,)),
}
OUTPUTS = {"action": PolicyFeature(FeatureType.ACTION, (7,))}
CAMERAS = {"observation.images.image": "agentview", "observation.images.image2": "robot0_eye_in_hand"}


@dataclass(frozen=True)
class Demonstration:
    """Frames of one rollout by feature, and its instruction."""

    frames: dict[str, torch.Tensor]
    instruction: str


def read_demonstration(dataset: Path, rollout_id: str, instruction: str, frames: int) -> Demonstration:
    """The first frames of a recorded rollout, with its pictures rendered from the recorded states."""
    table = pads.dataset(dataset / "data").to_table(columns=["observation.state", "action", "episode_index"])
    table = table.filter(pads.field("episode_index") == 0).slice(0, frames)
    columns = {
        name: torch.tensor(np.stack(table[name].to_numpy(zero_copy_only=False)))
        for name in ("observation.state", "action")
    }
    for feature, camera in CAMERAS.items():
        views = render_frames(dataset, rollout_id, camera=camera, size=SIZE, steps=list(range(frames)))
        pictures = np.stack([turned(view, "rotated") for view in views])
        columns[feature] = torch.tensor(pictures).permute(0, 3, 1, 2).float() / 255.0
    return Demonstration(frames=columns, instruction=instruction)


def tiny_act() -> ACTConfig:
    small = {"dim_model": 16, "n_heads": 2, "dim_feedforward": 16, "n_encoder_layers": 1, "n_decoder_layers": 1}
    return ACTConfig(
        chunk_size=HORIZON,
        n_action_steps=ACT_STEPS,
        use_vae=False,
        pretrained_backbone_weights=None,
        **_base(),
        **small,
    )


def tiny_diffusion() -> DiffusionConfig:
    return DiffusionConfig(
        horizon=HORIZON,
        n_action_steps=DIFFUSION_STEPS,
        down_dims=(16, 32),
        diffusion_step_embed_dim=16,
        spatial_softmax_num_keypoints=4,
        num_train_timesteps=8,
        num_inference_steps=2,
        crop_ratio=1.0,
        use_group_norm=True,
        pretrained_backbone_weights=None,
        **_base(),
    )


def tiny_multi_task_dit(clip: Path) -> MultiTaskDiTConfig:
    """Conditioned on language through a CLIP of random weights."""
    return MultiTaskDiTConfig(
        horizon=HORIZON,
        n_action_steps=DIFFUSION_STEPS,
        objective="flow_matching",
        num_integration_steps=2,
        hidden_dim=32,
        num_layers=1,
        num_heads=2,
        timestep_embed_dim=16,
        vision_encoder_name=str(clip),
        text_encoder_name=str(clip),
        image_crop_shape=None,
        tokenizer_max_length=32,
        **_base(),
    )


def _base() -> dict[str, Any]:
    return {"input_features": dict(INPUTS), "output_features": dict(OUTPUTS), "device": "cpu", "push_to_hub": False}


def make_tiny_clip(folder: Path) -> Path:
    """A CLIP with random weights and a tokenizer of single letters."""
    from transformers import CLIPConfig, CLIPModel, CLIPTokenizer

    folder.mkdir()
    letters = list("abcdefghijklmnopqrstuvwxyz0123456789.,;:'")
    words = [*letters, *(f"{letter}</w>" for letter in letters), "<|startoftext|>", "<|endoftext|>"]
    (folder / "vocab.json").write_text(json.dumps({word: number for number, word in enumerate(words)}))
    (folder / "merges.txt").write_text("#version: 0.2\n")
    CLIPTokenizer(str(folder / "vocab.json"), str(folder / "merges.txt")).save_pretrained(folder)
    part = {"hidden_size": 16, "intermediate_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2}
    ends = {"bos_token_id": len(words) - 2, "eos_token_id": len(words) - 1, "pad_token_id": len(words) - 1}
    torch.manual_seed(0)
    CLIPModel(
        CLIPConfig(
            text_config={**part, **ends, "vocab_size": len(words), "max_position_embeddings": 32},
            vision_config={**part, "image_size": SIZE, "patch_size": 16},
            projection_dim=16,
        )
    ).save_pretrained(folder)
    return folder


def train(config: Any, demonstrations: list[Demonstration], folder: Path) -> list[float]:
    """Train a policy of a config's class for a few steps and save it with its processors; returns the losses."""
    torch.manual_seed(0)
    torch.set_num_threads(1)
    policy = get_policy_class(config.type)(config)
    before, after = make_pre_post_processors(config, dataset_stats=_statistics(demonstrations))
    batch = _batch(config, demonstrations)
    optimizer = torch.optim.Adam(policy.parameters(), lr=3e-3)
    losses = []
    policy.train()
    for _ in range(STEPS):
        torch.manual_seed(1)  # one noise, so that losses can be compared
        loss, _ = policy.forward(before(dict(batch)))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(float(loss.detach()))
    for part in (policy, before, after):
        part.save_pretrained(folder)
    return losses


def _batch(config: Any, demonstrations: list[Demonstration]) -> dict[str, Any]:
    """Windows of the demonstrations as LeRobot's data loader cuts them."""
    history = config.n_obs_steps
    rows: dict[str, list[torch.Tensor]] = {name: [] for name in (*INPUTS, "action")}
    instructions = []
    for demonstration in demonstrations:
        for start in range(history - 1, len(demonstration.frames["action"]) - HORIZON, 4):
            for name in INPUTS:
                window = demonstration.frames[name][start - history + 1 : start + 1]
                rows[name].append(window if history > 1 else window[0])
            rows["action"].append(demonstration.frames["action"][start - history + 1 : start - history + 1 + HORIZON])
            instructions.append(demonstration.instruction)
    batch: dict[str, Any] = {name: torch.stack(parts) for name, parts in rows.items()}
    return {**batch, "action_is_pad": torch.zeros(len(instructions), HORIZON, dtype=torch.bool), "task": instructions}


def _statistics(demonstrations: list[Demonstration]) -> dict[str, dict[str, torch.Tensor]]:
    statistics = {}
    for name in (*INPUTS, "action"):
        values = torch.cat([demonstration.frames[name] for demonstration in demonstrations]).float()
        if values.ndim == 4:
            flat = values.permute(1, 0, 2, 3).flatten(1)
            shape: tuple[int, ...] = (3, 1, 1)
        else:
            flat, shape = values.T, (-1,)
        statistics[name] = {
            "mean": flat.mean(1).reshape(shape),
            "std": (flat.std(1) + 1e-2).reshape(shape),
            "min": (flat.amin(1) - 1e-2).reshape(shape),
            "max": (flat.amax(1) + 1e-2).reshape(shape),
        }
    return statistics
