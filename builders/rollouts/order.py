"""The order of a dataset's episodes: it follows from the rollouts alone, however and wherever they were run."""

from __future__ import annotations

from ...toolkit.records import Arm
from .episode_record import EpisodeRecord


def rollout_order(episode: EpisodeRecord) -> tuple[str | int | bool, ...]:
    """By what episodes are sorted: base tasks together, and each reference before what is paired with it."""
    return (
        episode.suite,
        episode.base_task_index,
        episode.base_task,
        episode.pair_id,
        episode.arm is not Arm.REFERENCE,
        episode.instance_id,
        episode.init_state,
        episode.seed,
        episode.visual_probe,
        episode.rollout_id,
    )
