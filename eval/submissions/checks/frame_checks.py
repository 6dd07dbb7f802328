"""What must hold of the frames of submitted rollouts: how each ends, and what starts and actions have to agree with."""

from __future__ import annotations

import hashlib
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from ....builders.rollouts.episode_record import EpisodeRecord
from ....toolkit.arrays import Float32Array
from ...measures.process import moving_at_end
from ...recordings.rollout_set import RolloutSet
from .findings import SubmissionFinding, findings

Start = tuple[str, str, int]
"""Suite, base task and initial state in which a rollout starts."""


def start_of(episode: EpisodeRecord) -> Start:
    """Where a rollout starts."""
    return episode.suite, episode.base_task, episode.init_state


def check_frames(episodes: Sequence[EpisodeRecord], rollouts: RolloutSet) -> Iterator[SubmissionFinding]:
    """Everything that is wrong with one policy's frames.

    Args:
        episodes: The records of the rollouts, in their order.
        rollouts: Read with all frame features that they have.
    """
    yield from _check_ends(episodes, rollouts)
    yield from _check_starts(episodes, rollouts)
    yield from _check_copies(episodes, rollouts)


def _check_ends(episodes: Sequence[EpisodeRecord], rollouts: RolloutSet) -> Iterator[SubmissionFinding]:
    lengths = dict(zip((e.rollout_id for e in episodes), rollouts.lengths.tolist(), strict=True))
    failed = [e.rollout_id for e in episodes if e.end == "policy_error"]
    yield from findings("ends", "the policy failed, so these were not carried out", failed)
    late = [e.rollout_id for e in episodes if e.success and e.success_step != lengths[e.rollout_id]]
    yield from findings("ends", "a rollout ends where the goal is reached, these do not", late)
    short = [e.rollout_id for e in episodes if e.end == "horizon" and lengths[e.rollout_id] != e.horizon]
    yield from findings("ends", "a failed rollout lasts until the horizon, these were cut short", short)
    restless = [
        episode.rollout_id
        for row, episode in enumerate(episodes)
        if episode.refusal_step is not None and rollouts.rollout_feature("action", row)[episode.refusal_step :].any()
    ]
    yield from findings("ends", "the arm rests after a refusal, in these it moves", restless)
    otherwise = [
        episode.rollout_id
        for row, episode in enumerate(episodes)
        if episode.moving_at_end not in (None, _moves_at_end(episode, rollouts.rollout_feature("action", row)))
    ]
    yield from findings("ends", "moving_at_end is not what the actions show", otherwise)


def _moves_at_end(episode: EpisodeRecord, actions: Float32Array) -> bool:
    """Whether the arm moves at the end; after a refusal it rests."""
    return episode.refusal_step is None and moving_at_end(actions)


def _check_starts(episodes: Sequence[EpisodeRecord], rollouts: RolloutSet) -> Iterator[SubmissionFinding]:
    """Rollouts of one scene and initial state begin with the same hashes and the same first frame, bit by bit."""
    observed = _observations(rollouts)
    rows_by_start: dict[Start, list[int]] = defaultdict(list)
    for row, episode in enumerate(episodes):
        rows_by_start[start_of(episode)].append(row)
    deviating: dict[str, list[str]] = defaultdict(list)
    for rows in rows_by_start.values():
        recorded: dict[str, list[Any]] = {
            "scene_sha256": [episodes[row].scene_sha256 for row in rows],
            "settled_state_sha256": [episodes[row].settled_state_sha256 for row in rows],
            "first frame": [_digest([values[rollouts.offsets[row]] for values in observed]) for row in rows],
        }
        for name, values in recorded.items():
            usual = Counter(values).most_common(1)[0][0]
            deviating[name] += [
                episodes[row].rollout_id for row, value in zip(rows, values, strict=True) if value != usual
            ]
    for name, rollout_ids in deviating.items():
        yield from findings("starts", f"{name} differs between rollouts of one initial state", rollout_ids)


def _check_copies(episodes: Sequence[EpisodeRecord], rollouts: RolloutSet) -> Iterator[SubmissionFinding]:
    """The simulator is exact: equal actions from one start give equal rollouts, and other starts other rollouts.

    A policy that ignores its instruction does give the same rollout for a case and its reference; that is no copy.
    """
    observed = _observations(rollouts)
    starts: dict[bytes, set[Start]] = defaultdict(set)
    outcomes: dict[tuple[Start, bytes], set[tuple[Any, ...]]] = defaultdict(set)
    recordings = []
    for row, episode in enumerate(episodes):
        frames = slice(rollouts.offsets[row], rollouts.offsets[row + 1])
        observations = _digest([values[frames] for values in observed])
        actions = start_of(episode), _digest([rollouts.frames["action"][frames]])
        recordings.append((episode.rollout_id, observations, actions))
        starts[observations].add(start_of(episode))
        outcomes[actions].add((observations, episode.success, episode.final_eef_pos_m))
    copied = [rollout_id for rollout_id, observations, _ in recordings if len(starts[observations]) > 1]
    yield from findings("copies", "the same recording stands for different scenes or initial states", copied)
    contradicting = [rollout_id for rollout_id, _, actions in recordings if len(outcomes[actions]) > 1]
    yield from findings("copies", "equal actions from one start cannot end differently, these do", contradicting)


def _observations(rollouts: RolloutSet) -> list[Float32Array]:
    """All frame features but the actions, in the order of their names."""
    return [values for name, values in sorted(rollouts.frames.items()) if name != "action"]


def _digest(parts: Sequence[Float32Array]) -> bytes:
    digest = hashlib.sha256()
    for part in parts:
        digest.update(np.ascontiguousarray(part, "<f4").tobytes())
    return digest.digest()
