"""All checks of submitted rollouts that need no simulator."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Sequence
from itertools import product

from ....builders.cases.instances import with_built_in_prompts
from ....builders.rollouts.episode_record import EpisodeRecord
from ....toolkit.counting import counted
from ....toolkit.records import Arm, Instance, LanguageProbe, VisualProbe
from ...recordings.rollout_set import RolloutSet
from ...scoring.pairs import pair_rollouts
from ..coverage import Coverage, coverage_of
from .findings import SubmissionFinding, findings
from .frame_checks import check_frames
from .record_checks import check_records


def check_rollouts(
    rollouts: RolloutSet,
    instances: Sequence[Instance],
    lite: Collection[str] = (),
    cases: Collection[str] | None = None,
) -> tuple[SubmissionFinding, ...]:
    """Everything that is wrong with one policy's rollouts: with their records, frames and pairs, and what is missing.

    Args:
        rollouts: Read with all frame features that they have.
        instances: The task release, all its arms.
        lite: Ids of the cases in its lite selection.
        cases: Ids of the cases that must be there, and no other; by default all of the release.
    """
    episodes = rollouts.records()
    known = with_built_in_prompts(instances, {episode.prompt for episode in episodes})
    return (
        *check_records(episodes, known),
        *check_frames(episodes, rollouts),
        *_check_pairs(rollouts),
        *_check_cases(episodes, cases),
        *_check_complete(
            episodes,
            _instances_of(known, cases),
            lite,
            coverage_of(rollouts, instances, lite) if cases is None else None,
        ),
    )


def _check_cases(episodes: Sequence[EpisodeRecord], cases: Collection[str] | None) -> Iterator[SubmissionFinding]:
    others = [e.rollout_id for e in episodes if cases is not None and e.case_id is not None and e.case_id not in cases]
    yield from findings("cases", "rollouts of other cases than the chosen ones", others)


def _instances_of(instances: Sequence[Instance], cases: Collection[str] | None) -> Sequence[Instance]:
    """The conflicts and controls of some cases, with their references; all instances where no cases are chosen."""
    if cases is None:
        return instances
    references = {instance.pair_id for instance in instances if instance.case_id in cases}
    return [i for i in instances if i.case_id in cases or i.instance_id in references]


def _check_pairs(rollouts: RolloutSet) -> Iterator[SubmissionFinding]:
    refused: dict[str, list[str]] = defaultdict(list)
    for arm in (Arm.CONFLICT, Arm.CONTROL):
        for refusal in pair_rollouts(rollouts, arm).refusals:
            refused[refusal.field].append(refusal.rollout_id)
    for field, rollout_ids in refused.items():
        yield from findings("pairs", f"no pair can be scored because of {field}", rollout_ids)


def _check_complete(
    episodes: Sequence[EpisodeRecord],
    instances: Sequence[Instance],
    lite: Collection[str],
    coverage: Coverage | None,
) -> Iterator[SubmissionFinding]:
    """Every instance of a condition in use (prompt and probes), in every initial state and seed in use, once.

    Conflict rollouts say what is in use; references under further seeds, initial states or conditions are there for the
    noise floor and ask for nothing. Of a release with a lite selection that selection alone is complete in itself.
    Controls are a choice of their own under each condition: none, or all of them in the same initial states, for all
    seeds or the first ones. Where something is missing, the finding also says how far it is to the full evaluation, if
    its coverage is given: what is missing in the conditions in use is only a part of that.
    """
    counts = Counter((e.instance_id, e.init_state, e.seed, e.visual_probe) for e in episodes)
    repeated = [_run_name(*run) for run, count in counts.items() if count > 1]
    yield from findings("complete", "rolled out more than once", repeated)
    paired = [episode for episode in episodes if episode.arm is not Arm.REFERENCE]
    states, seeds = sorted({e.init_state for e in paired}), sorted({e.seed for e in paired})
    most_controlled = max((e.seed for e in paired if e.arm is Arm.CONTROL), default=-1)
    controlled = [seed for seed in seeds if seed <= most_controlled]
    visual_probes: dict[tuple[bool, str, LanguageProbe], set[VisualProbe]] = defaultdict(set)
    for episode in paired:
        for of_controls in {False, episode.arm is Arm.CONTROL}:
            visual_probes[of_controls, episode.prompt, episode.language_probe].add(episode.visual_probe)
    missing = [
        _run_name(instance.instance_id, state, seed, visual_probe)
        for instance in _asked_for(episodes, instances, lite)
        for state, seed in product(states, controlled if instance.arm is Arm.CONTROL else seeds)
        for visual_probe in sorted(
            visual_probes.get((instance.arm is Arm.CONTROL, instance.prompt, instance.language_probe), ())
        )
        if (instance.instance_id, state, seed, visual_probe) not in counts
    ]
    rule = f"missing under the prompts, initial states and seeds that were run, {len(missing):,} in all"
    if coverage is not None:
        rule = f"the full evaluation has {counted(coverage.of - coverage.rollouts, 'more rollout')}; {rule}"
    yield from findings("complete", rule, missing)


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
