"""All checks of submitted rollouts that need no simulator, and what a complete evaluation consists of."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from itertools import product

from ....builders.rollouts.episode_record import EpisodeRecord
from ....toolkit.records import Arm, Instance, LanguageProbe, Prompt, VisualProbe
from ...recordings.rollout_set import RolloutSet
from ...scoring.pairs import pair_rollouts
from .findings import SubmissionFinding, findings
from .frame_checks import check_frames
from .record_checks import check_records


def check_rollouts(rollouts: RolloutSet, instances: Sequence[Instance]) -> tuple[SubmissionFinding, ...]:
    """Everything that is wrong with one policy's rollouts: with their records, frames and pairs, and what is missing.

    Args:
        rollouts: Read with all frame features that they have.
        instances: The task release, references and conflicts.
    """
    episodes = rollouts.records()
    return (
        *check_records(episodes, instances),
        *check_frames(episodes, rollouts),
        *_check_pairs(rollouts),
        *_check_complete(episodes, instances),
    )


def expected_pairs(rollouts: RolloutSet, instances: Sequence[Instance]) -> dict[str, int]:
    """Pairs without a language probe of a complete evaluation, by prompt condition; 0 for one that is not used."""
    episodes = rollouts.episodes
    prompts, states = set(episodes["prompt"].to_pylist()), set(episodes["init_state"].to_pylist())
    repeats = len(states) * len(set(episodes["seed"].to_pylist()))
    conflicts = Counter(i.prompt for i in instances if i.arm is Arm.CONFLICT and i.language_probe is LanguageProbe.W0)
    return {str(prompt): repeats * conflicts[prompt] * (prompt in prompts) for prompt in Prompt}


def _check_pairs(rollouts: RolloutSet) -> Iterator[SubmissionFinding]:
    refused: dict[str, list[str]] = defaultdict(list)
    for refusal in pair_rollouts(rollouts).refusals:
        refused[refusal.field].append(refusal.rollout_id)
    for field, rollout_ids in refused.items():
        yield from findings("pairs", f"no pair can be scored because of {field}", rollout_ids)


def _check_complete(episodes: Sequence[EpisodeRecord], instances: Sequence[Instance]) -> Iterator[SubmissionFinding]:
    """Every instance of a condition in use (prompt and probes), in every initial state and seed in use, once."""
    counts = Counter((e.instance_id, e.init_state, e.seed, e.visual_probe) for e in episodes)
    repeated = [_run_name(*run) for run, count in counts.items() if count > 1]
    yield from findings("complete", "rolled out more than once", repeated)
    visual_probes: dict[tuple[Prompt, LanguageProbe], set[VisualProbe]] = defaultdict(set)
    for episode in episodes:
        visual_probes[episode.prompt, episode.language_probe].add(episode.visual_probe)
    repeats = sorted(product({e.init_state for e in episodes}, {e.seed for e in episodes}))
    missing = [
        _run_name(instance.instance_id, state, seed, visual_probe)
        for instance in instances
        for state, seed in repeats
        for visual_probe in sorted(visual_probes.get((instance.prompt, instance.language_probe), ()))
        if (instance.instance_id, state, seed, visual_probe) not in counts
    ]
    yield from findings("complete", "a complete evaluation also has these rollouts", missing)


def _run_name(instance_id: str, init_state: int, seed: int, visual_probe: VisualProbe) -> str:
    name = f"{instance_id} init{init_state} seed{seed}"
    return name if visual_probe is VisualProbe.V0 else f"{name} {visual_probe}"
