"""What must hold of submitted rollouts, as far as it shows without a simulator.

The rollouts have been read strictly before (ranges, prompt hashes, lengths, repeated ids). Here they are held against
the task release, against each other, and against what a complete evaluation consists of.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np

from ...builders.rollouts.episode_record import VERSION_FIELDS, EpisodeRecord
from ...builders.rollouts.schema import rollout_name
from ...toolkit.errors import DatasetError
from ...toolkit.probes.visual_settings import draw_visual_settings, read_visual_settings, visual_settings_json
from ...toolkit.prompts import prompt_text
from ...toolkit.records import PROTOCOL_VERSION, Arm, Instance, LanguageProbe, Prompt, VisualNoise, VisualProbe
from ..recordings.rollout_set import RolloutSet
from ..scoring.pairs import pair_rollouts
from .results import fits

SHOWN = 3
"""Examples that a finding names."""

WORDED = "tasks_version"
"""The version of an instance's wording."""

ONE_VALUE = (
    *("policy_name", "policy_revision", "policy_settings"),
    *(name for name in VERSION_FIELDS if name != WORDED),
)
"""Fields that have one value throughout a submission; ``WORDED`` has one without and one under language probes."""

POLICY_NAME = re.compile(r"[\w.+/-]{1,100}", re.ASCII)
"""It is shown on the leaderboard and in pull requests, where other characters could be taken for markup."""

OF_THE_INSTANCE = (
    "arm",
    "case_id",
    "pair_id",
    "suite",
    "base_task",
    "base_task_index",
    "family",
    "level",
    "prompt",
    "instruction",
    "horizon",
    "targets",
    "tasks_version",
)
"""Fields that the task release fixes for an instance."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """Something that is wrong with a submission.

    Attributes:
        check: Which check found it, one word or two.
        count: How many rollouts (or missing rollouts) it concerns.
        message: What is wrong, with the first examples.
    """

    check: str
    count: int
    message: str

    def __str__(self) -> str:
        return f"{self.check}: {self.message}"


def finding(check: str, said: str, concerned: Sequence[str]) -> Iterator[Finding]:
    """A finding about these rollouts, or none where there are none."""
    if concerned:
        more = f" and {len(concerned) - SHOWN} more" if len(concerned) > SHOWN else ""
        yield Finding(check=check, count=len(concerned), message=f"{said}: {', '.join(concerned[:SHOWN])}{more}")


def check_rollouts(rollouts: RolloutSet, instances: Sequence[Instance]) -> tuple[Finding, ...]:
    """Everything that is wrong with one policy's rollouts, by the records alone.

    Args:
        rollouts: Read with all frame features that they have.
        instances: The task release, references and conflicts.
    """
    episodes = rollouts.records()
    by_id = {instance.instance_id: instance for instance in instances}
    return (
        *_one_of_each(episodes),
        *_versions(episodes),
        *_instances(episodes, by_id),
        *_names(episodes),
        *_pictures(episodes),
        *_ends(episodes, rollouts),
        *_starts(episodes, rollouts),
        *_copies(episodes, rollouts),
        *_pairs(rollouts),
        *_missing(episodes, instances),
    )


def expected_pairs(rollouts: RolloutSet, instances: Sequence[Instance]) -> dict[str, int]:
    """Pairs without a language probe of a complete evaluation, by prompt condition; 0 for one that is not used."""
    episodes = rollouts.episodes
    prompts, states = set(episodes["prompt"].to_pylist()), set(episodes["init_state"].to_pylist())
    repeats = len(states) * len(set(episodes["seed"].to_pylist()))
    conflicts = Counter(i.prompt for i in instances if i.arm is Arm.CONFLICT and i.language_probe is LanguageProbe.W0)
    return {str(prompt): repeats * conflicts[prompt] * (prompt in prompts) for prompt in Prompt}


def _one_of_each(episodes: Sequence[EpisodeRecord]) -> Iterator[Finding]:
    # Wordings under language probes are a release of their own, with a version of their own.
    reworded = [episode for episode in episodes if episode.language_probe is not LanguageProbe.W0]
    unchanged = [episode for episode in episodes if episode.language_probe is LanguageProbe.W0]
    for name, among in (*((name, episodes) for name in ONE_VALUE), *((WORDED, a) for a in (unchanged, reworded))):
        counts = Counter(getattr(episode, name) for episode in among)
        if len(counts) > 1:
            usual = counts.most_common(1)[0][0]
            odd = [episode.rollout_id for episode in among if getattr(episode, name) != usual]
            yield from finding("provenance", f"{name} has {len(counts)} values", odd)


def _versions(episodes: Sequence[EpisodeRecord]) -> Iterator[Finding]:
    """Versions that move success rates are pinned by this package; it names them itself."""
    wanted = {"protocol_version": PROTOCOL_VERSION}
    for requirement in importlib.metadata.requires("conflictvla") or ():
        pinned = re.match(r"(mujoco|robosuite)==([\w.]+)", requirement)
        if pinned:
            wanted[f"{pinned[1]}_version"] = pinned[2]
    for name, version in wanted.items():
        odd = [episode.rollout_id for episode in episodes if getattr(episode, name) != version]
        yield from finding("versions", f"{name} is not {version}", odd)


def _instances(episodes: Sequence[EpisodeRecord], by_id: Mapping[str, Instance]) -> Iterator[Finding]:
    unknown = [episode.rollout_id for episode in episodes if episode.instance_id not in by_id]
    yield from finding("tasks", "instances that the task release does not have", unknown)
    wrong: dict[str, list[str]] = defaultdict(list)
    for episode in episodes:
        instance = by_id.get(episode.instance_id)
        if instance is None:
            continue
        for name in OF_THE_INSTANCE:
            if getattr(episode, name) != getattr(instance, name):
                wrong[name].append(episode.rollout_id)
        if episode.prompt_text != prompt_text(instance.instruction, instance.prompt):
            wrong["prompt_text"].append(episode.rollout_id)
    for name, concerned in wrong.items():
        yield from finding("tasks", f"{name} is not the task release's", concerned)


def _names(episodes: Sequence[EpisodeRecord]) -> Iterator[Finding]:
    """A rollout's name says policy, instance, initial state and seed, so that no name can hide another rollout."""
    wrong = [
        episode.rollout_id
        for episode in episodes
        if episode.rollout_id
        != rollout_name(
            episode.policy_name, episode.instance_id, episode.init_state, episode.seed, episode.visual_probe
        )
    ]
    yield from finding("names", "rollout_id says another rollout than the fields beside it", wrong)
    odd = sorted({repr(e.policy_name)[:120] for e in episodes if not POLICY_NAME.fullmatch(e.policy_name)})
    for name in ("policy_revision", "policy_settings"):
        long = [e.rollout_id for e in episodes if not fits(name, getattr(e, name))]
        yield from finding("names", f"{name} is too long or holds control characters", long)
    yield from finding("names", "a policy's name is letters, digits and . _ - + / only, at most 100", odd)


def _pictures(episodes: Sequence[EpisodeRecord]) -> Iterator[Finding]:
    """What a visual probe changed is drawn from base task, initial state and seed; nobody may choose it."""
    wrong = []
    for episode in episodes:
        try:
            said = read_visual_settings(episode.visual_settings, episode.rollout_id)
        except DatasetError:
            wrong.append(episode.rollout_id)
            continue
        drawn = draw_visual_settings(
            episode.visual_probe,
            [] if said is None else list(said.colours),
            task_id=f"{episode.suite}/{episode.base_task}",
            init_state=episode.init_state,
            seed=episode.seed,
            noise=(said.noise if said else None) or VisualNoise.GAUSSIAN,
        )
        if visual_settings_json(drawn) != episode.visual_settings:
            wrong.append(episode.rollout_id)
    yield from finding("pictures", "visual_settings are not what this rollout's visual probe draws", wrong)


def _ends(episodes: Sequence[EpisodeRecord], rollouts: RolloutSet) -> Iterator[Finding]:
    lengths = dict(zip((e.rollout_id for e in episodes), rollouts.lengths.tolist(), strict=True))
    failed = [e.rollout_id for e in episodes if e.end == "policy_error"]
    yield from finding("ends", "the policy failed, so these were not carried out", failed)
    late = [e.rollout_id for e in episodes if e.success and e.success_step != lengths[e.rollout_id]]
    yield from finding("ends", "a rollout ends where the goal is reached, these do not", late)
    short = [e.rollout_id for e in episodes if e.end == "horizon" and lengths[e.rollout_id] != e.horizon]
    yield from finding("ends", "a failed rollout lasts until the horizon, these were cut short", short)


def _starts(episodes: Sequence[EpisodeRecord], rollouts: RolloutSet) -> Iterator[Finding]:
    """Rollouts of one scene and initial state begin with the same hashes and the same first frame, bit by bit."""
    observed = [values for name, values in sorted(rollouts.frames.items()) if name != "action"]
    groups: dict[tuple[Any, ...], list[int]] = defaultdict(list)
    for row, episode in enumerate(episodes):
        groups[episode.suite, episode.base_task, episode.init_state].append(row)
    odd: dict[str, list[str]] = defaultdict(list)
    for rows in groups.values():
        starts: dict[str, list[Any]] = {
            "scene_sha256": [episodes[row].scene_sha256 for row in rows],
            "settled_state_sha256": [episodes[row].settled_state_sha256 for row in rows],
            "first frame": [_digest([values[rollouts.offsets[row]] for values in observed]) for row in rows],
        }
        for name, values in starts.items():
            usual = Counter(values).most_common(1)[0][0]
            odd[name] += [episodes[row].rollout_id for row, value in zip(rows, values, strict=True) if value != usual]
    for name, concerned in odd.items():
        yield from finding("starts", f"{name} differs between rollouts of one initial state", concerned)


def _copies(episodes: Sequence[EpisodeRecord], rollouts: RolloutSet) -> Iterator[Finding]:
    """The simulator is exact: equal actions from one start give equal rollouts, and other starts other rollouts.

    A policy that ignores its instruction does give the same rollout for a case and its reference; that is no copy.
    """
    observed = [values for name, values in sorted(rollouts.frames.items()) if name != "action"]
    places: dict[bytes, set[tuple[Any, ...]]] = defaultdict(set)
    answers: dict[tuple[Any, ...], set[tuple[Any, ...]]] = defaultdict(set)
    keys = []
    for row, episode in enumerate(episodes):
        frames = slice(rollouts.offsets[row], rollouts.offsets[row + 1])
        place = (episode.suite, episode.base_task, episode.init_state)
        seen = _digest([values[frames] for values in observed])
        acted = (*place, _digest([rollouts.frames["action"][frames]]))
        keys.append((seen, acted))
        places[seen].add(place)
        answers[acted].add((seen, episode.success, episode.final_eef_pos_m))
    ids = [episode.rollout_id for episode in episodes]
    copied = [name for name, (seen, _) in zip(ids, keys, strict=True) if len(places[seen]) > 1]
    yield from finding("copies", "the same recording stands for different scenes or initial states", copied)
    torn = [name for name, (_, acted) in zip(ids, keys, strict=True) if len(answers[acted]) > 1]
    yield from finding("copies", "equal actions from one start cannot end differently, these do", torn)


def _pairs(rollouts: RolloutSet) -> Iterator[Finding]:
    refused: dict[str, list[str]] = defaultdict(list)
    for refusal in pair_rollouts(rollouts).refusals:
        refused[refusal.field].append(refusal.rollout_id)
    for field, concerned in refused.items():
        yield from finding("pairs", f"no pair can be scored because of {field}", concerned)


def _missing(episodes: Sequence[EpisodeRecord], instances: Sequence[Instance]) -> Iterator[Finding]:
    """Every instance of a condition in use (prompt and probes), in every initial state and seed in use, once."""
    there = Counter((e.instance_id, e.init_state, e.seed, e.visual_probe) for e in episodes)
    repeated = [_run_name(*run) for run, count in there.items() if count > 1]
    yield from finding("complete", "rolled out more than once", repeated)
    pictures: dict[tuple[str, str], set[str]] = defaultdict(set)
    for episode in episodes:
        pictures[episode.prompt, episode.language_probe].add(episode.visual_probe)
    runs = sorted(product({e.init_state for e in episodes}, {e.seed for e in episodes}))
    missing = [
        _run_name(instance.instance_id, state, seed, visual_probe)
        for instance in instances
        for state, seed in runs
        for visual_probe in sorted(pictures.get((instance.prompt, instance.language_probe), ()))
        if (instance.instance_id, state, seed, visual_probe) not in there
    ]
    yield from finding("complete", "a complete evaluation also has these rollouts", missing)


def _run_name(instance_id: str, init_state: int, seed: int, visual_probe: str) -> str:
    name = f"{instance_id} init{init_state} seed{seed}"
    return name if visual_probe == VisualProbe.V0 else f"{name} {visual_probe}"


def _digest(parts: Sequence[np.ndarray[Any, Any]]) -> bytes:
    digest = hashlib.sha256()
    for part in parts:
        digest.update(np.ascontiguousarray(part, "<f4").tobytes())
    return digest.digest()
