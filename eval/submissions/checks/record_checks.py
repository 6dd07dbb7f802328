"""What must hold of each submitted record: of its own fields, and against the task release.

The rollouts have been read strictly before (ranges, prompt hashes, lengths, repeated ids).
"""

from __future__ import annotations

import importlib.metadata
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence

from ....builders.rollouts.episode_record import OPTIONAL_COLUMNS, VERSION_FIELDS, EpisodeRecord
from ....builders.rollouts.schema import rollout_name
from ....toolkit.errors import DatasetError
from ....toolkit.probes.visual_settings import draw_visual_settings, read_visual_settings, visual_settings_json
from ....toolkit.prompts import BUILT_IN
from ....toolkit.records import PROTOCOL_VERSION, Instance, LanguageProbe, VisualNoise
from ..untrusted.limits import LONGEST_SETTINGS, LONGEST_TEXT, is_plain_text
from .findings import SubmissionFinding, findings, first_of

WORDING_VERSION = "tasks_version"
"""The version of an instance's wording."""

ONE_VALUE = (
    *("policy_name", "policy_revision", "policy_settings", "policy_family"),
    *(name for name in VERSION_FIELDS if name != WORDING_VERSION),
)
"""Fields with one value throughout a submission; ``WORDING_VERSION`` has one without and one under language probes."""

POLICY_NAME = re.compile(r"[\w.+/-]{1,100}", re.ASCII)
"""It is shown on the leaderboard and in pull requests, where other characters could be taken for markup."""

INSTANCE_FIELDS = (
    "arm",
    "case_id",
    "pair_id",
    "suite",
    "base_task",
    "base_task_index",
    "family",
    "level",
    "prompt",
    "prompt_text",
    "prompt_version",
    "instruction",
    "horizon",
    "targets",
    "tasks_version",
)
"""Fields that the task release fixes for an instance."""


def check_records(episodes: Sequence[EpisodeRecord], instances: Sequence[Instance]) -> Iterator[SubmissionFinding]:
    """Everything that is wrong with one policy's records.

    Args:
        episodes: Those of all its rollouts.
        instances: The task release, and its instances under the other built-in prompt conditions that were run.
    """
    yield from _check_provenance(episodes)
    yield from _check_versions(episodes)
    yield from _check_instances(episodes, {instance.instance_id: instance for instance in instances})
    yield from _check_names(episodes)
    yield from _check_visual_settings(episodes)


def _check_provenance(episodes: Sequence[EpisodeRecord]) -> Iterator[SubmissionFinding]:
    # Wordings under language probes are a release of their own, with a version of their own.
    unchanged = [episode for episode in episodes if episode.language_probe is LanguageProbe.W0]
    reworded = [episode for episode in episodes if episode.language_probe is not LanguageProbe.W0]
    checked = [(name, episodes) for name in ONE_VALUE]
    for name, among in (*checked, (WORDING_VERSION, unchanged), (WORDING_VERSION, reworded)):
        counts = Counter(getattr(episode, name) for episode in among)
        if len(counts) > 1:
            usual = counts.most_common(1)[0][0]
            odd = [episode.rollout_id for episode in among if getattr(episode, name) != usual]
            yield from findings("provenance", f"{name} has {len(counts)} values", odd)


def _check_versions(episodes: Sequence[EpisodeRecord]) -> Iterator[SubmissionFinding]:
    """Versions that move success rates are pinned by this package; it names them itself."""
    wanted = {"protocol_version": PROTOCOL_VERSION}
    for requirement in importlib.metadata.requires("conflictvla") or ():
        pinned = re.match(r"(mujoco|robosuite)==([\w.]+)", requirement)
        if pinned:
            wanted[f"{pinned[1]}_version"] = pinned[2]
    for name, version in wanted.items():
        odd = [episode.rollout_id for episode in episodes if getattr(episode, name) != version]
        yield from findings("versions", f"{name} is not {version}", odd)


def _check_instances(
    episodes: Sequence[EpisodeRecord], instances: Mapping[str, Instance]
) -> Iterator[SubmissionFinding]:
    own = [episode for episode in episodes if episode.prompt not in BUILT_IN]
    names = first_of(sorted({episode.prompt for episode in own}))
    rule = f"a submission is under {', '.join(BUILT_IN)} only, these are in words of your own ({names})"
    yield from findings("prompts", rule, [episode.rollout_id for episode in own])
    comparable = [episode for episode in episodes if episode.prompt in BUILT_IN]
    unknown = [episode.rollout_id for episode in comparable if episode.instance_id not in instances]
    yield from findings("tasks", "instances that the task release does not have", unknown)
    wrong: dict[str, list[str]] = defaultdict(list)
    for episode in episodes:
        instance = instances.get(episode.instance_id)
        if instance is None:
            continue
        for name in INSTANCE_FIELDS:
            recorded = getattr(episode, name)
            if recorded != getattr(instance, name) and not (recorded is None and name in OPTIONAL_COLUMNS):
                wrong[name].append(episode.rollout_id)
    for name, rollout_ids in wrong.items():
        yield from findings("tasks", f"{name} is not the task release's", rollout_ids)


def _check_names(episodes: Sequence[EpisodeRecord]) -> Iterator[SubmissionFinding]:
    """A rollout's name gives policy, instance, initial state and seed, so that no name can hide another rollout."""
    wrong = [
        episode.rollout_id
        for episode in episodes
        if episode.rollout_id
        != rollout_name(
            episode.policy_name, episode.instance_id, episode.init_state, episode.seed, episode.visual_probe
        )
    ]
    yield from findings("names", "rollout_id names another rollout than the fields beside it", wrong)
    limits = {"policy_revision": LONGEST_TEXT, "policy_settings": LONGEST_SETTINGS, "policy_family": LONGEST_TEXT}
    for name, most in limits.items():
        bad = [episode.rollout_id for episode in episodes if not is_plain_text(getattr(episode, name) or "", most)]
        yield from findings("names", f"{name} is too long or holds control characters", bad)
    odd = {episode.policy_name for episode in episodes if not POLICY_NAME.fullmatch(episode.policy_name)}
    rule = "a policy's name is letters, digits and . _ - + / only, at most 100"
    yield from findings("names", rule, sorted(repr(name)[:120] for name in odd))


def _check_visual_settings(episodes: Sequence[EpisodeRecord]) -> Iterator[SubmissionFinding]:
    """What a visual probe changed is drawn from base task, initial state and seed; nobody may choose it."""
    wrong = [episode.rollout_id for episode in episodes if not _drew_its_settings(episode)]
    yield from findings("pictures", "visual_settings are not what this rollout's visual probe draws", wrong)


def _drew_its_settings(episode: EpisodeRecord) -> bool:
    try:
        recorded = read_visual_settings(episode.visual_settings, episode.rollout_id)
    except DatasetError:
        return False
    drawn = draw_visual_settings(
        episode.visual_probe,
        [] if recorded is None else list(recorded.colours),
        task_id=f"{episode.suite}/{episode.base_task}",
        init_state=episode.init_state,
        seed=episode.seed,
        noise=(recorded.noise if recorded else None) or VisualNoise.GAUSSIAN,
    )
    return visual_settings_json(drawn) == episode.visual_settings
