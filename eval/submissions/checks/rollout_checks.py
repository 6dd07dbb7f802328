"""All checks of submitted rollouts that need no simulator."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Sequence
from itertools import product

from ....builders.rollouts.episode_record import EpisodeRecord
from ....toolkit.records import Arm, Instance, LanguageProbe, VisualProbe
from ...recordings.rollout_set import RolloutSet
from ...scoring.pairs import pair_rollouts
from .findings import SubmissionFinding, findings
from .frame_checks import check_frames
from .record_checks import check_records


def check_rollouts(
    rollouts: RolloutSet, instances: Sequence[Instance], lite: Collection[str] = ()
) -> tuple[SubmissionFinding, ...]:
    """Everything that is wrong with one policy's rollouts: with their records, frames and pairs, and what is missing.

    Args:
        rollouts: Read with all frame features that they have.
        instances: The task release, all its arms.
        lite: Ids of the cases in its lite selection.
    """
    episodes = rollouts.records()
    return (
        *check_records(episodes, instances),
        *check_frames(episodes, rollouts),
        *_check_pairs(rollouts),
        *_check_complete(episodes, instances, lite),
    )


def _check_pairs(rollouts: RolloutSet) -> Iterator[SubmissionFinding]:
    refused: dict[str, list[str]] = defaultdict(list)
    for arm in (Arm.CONFLICT, Arm.CONTROL):
        for refusal in pair_rollouts(rollouts, arm).refusals:
            refused[refusal.field].append(refusal.rollout_id)
    for field, rollout_ids in refused.items():
        yield from findings("pairs", f"no pair can be scored because of {field}", rollout_ids)


def _check_complete(
    episodes: Sequence[EpisodeRecord], instances: Sequence[Instance], lite: Collection[str]
) -> Iterator[SubmissionFinding]:
    """Every instance of a condition in use (prompt and probes), in every initial state and seed in use, once.

    Of a release with a lite selection that selection alone is complete in itself. Controls are a choice of their own:
    complete, or none under that condition.
    """
    counts = Counter((e.instance_id, e.init_state, e.seed, e.visual_probe) for e in episodes)
    repeated = [_run_name(*run) for run, count in counts.items() if count > 1]
    yield from findings("complete", "rolled out more than once", repeated)
    visual_probes: dict[tuple[bool, str, LanguageProbe], set[VisualProbe]] = defaultdict(set)
    for episode in episodes:
        condition = (episode.arm is Arm.CONTROL, episode.prompt, episode.language_probe)
        visual_probes[condition].add(episode.visual_probe)
    repeats = sorted(product({e.init_state for e in episodes}, {e.seed for e in episodes}))
    missing = [
        _run_name(instance.instance_id, state, seed, visual_probe)
        for instance in _asked_for(episodes, instances, lite)
        for state, seed in repeats
        for visual_probe in sorted(
            visual_probes.get((instance.arm is Arm.CONTROL, instance.prompt, instance.language_probe), ())
        )
        if (instance.instance_id, state, seed, visual_probe) not in counts
    ]
    yield from findings("complete", "a complete evaluation also has these rollouts", missing)


def _asked_for(
    episodes: Sequence[EpisodeRecord], instances: Sequence[Instance], lite: Collection[str]
) -> Sequence[Instance]:
    """The instances that a run of this kind has: all, or those of the lite selection where no other case was run."""
    arms = {Arm.REFERENCE, Arm.CONFLICT, *(episode.arm for episode in episodes)}
    of_arms = [instance for instance in instances if instance.arm in arms]
    run = {episode.case_id for episode in episodes if episode.arm is not Arm.REFERENCE}
    if not run or not run <= set(lite):
        return of_arms
    return [instance for instance in of_arms if instance.arm is Arm.REFERENCE or instance.case_id in lite]


def _run_name(instance_id: str, init_state: int, seed: int, visual_probe: VisualProbe) -> str:
    name = f"{instance_id} init{init_state} seed{seed}"
    return name if visual_probe is VisualProbe.V0 else f"{name} {visual_probe}"
