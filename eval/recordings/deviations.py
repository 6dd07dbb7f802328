"""Recorded prompts and horizons compared with those of a task release, by default the installed one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, fields, replace
from functools import cache
from typing import Any

import pyarrow as pa

from ...builders.tasks_dataset.reading import instances_table
from ...toolkit.counting import noun_for
from ...toolkit.prompts import BUILT_IN, RELEASED
from ...toolkit.records import Instance, LanguageProbe, Prompt

PROMPT, OWN_PROMPT, HORIZON, NOT_COMPARED = "prompt", "own prompt", "horizon", "not compared"
"""Kinds of deviations."""

RULES = {
    PROMPT: "the prompt is not the task release's ({detail})",
    OWN_PROMPT: "the prompt is in words that no task release has ({detail})",
    HORIZON: "the horizon is not the task release's",
    NOT_COMPARED: "prompt and horizon cannot be compared with the task release ({detail})",
}

COMPARED = ("instance_id", "prompt", "prompt_version", "language_probe", "prompt_text", "horizon", "tasks_version")
"""Columns of episodes that say what was run, as far as a release fixes it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Deviation:
    """Rollouts that were not run as the task release has it, or of which nobody can say so.

    Attributes:
        kind: One of ``RULES``.
        detail: Which condition or version they have; for a horizon nothing.
        count: How many rollouts.
        example: The first instance that it concerns; for a horizon with both values.
    """

    kind: str
    detail: str
    count: int
    example: str

    def __str__(self) -> str:
        what = RULES[self.kind].format(detail=self.detail)
        return f"{what} in {self.count} {noun_for(self.count, 'rollout')}, the first of {self.example}"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Released:
    """What a task release fixes of an instance, as far as it is compared."""

    instruction: str
    prompt_text: str
    horizon: int
    tasks_version: str


def find_deviations(episodes: pa.Table, instances: Iterable[Instance] | None = None) -> tuple[Deviation, ...]:
    """Deviations of recorded rollouts from a task release; none where they follow it.

    Args:
        episodes: One row a rollout, with ``COMPARED``.
        instances: The task release, all its arms; by default the installed one.
    """
    released = _installed() if instances is None else {one.instance_id: _fixed_by(one) for one in instances}
    distinct = episodes.select(COMPARED).group_by(list(COMPARED)).aggregate([([], "count_all")])
    return summed(deviation for row in distinct.to_pylist() for deviation in _deviations_of(row, released))


def summed(deviations: Iterable[Deviation]) -> tuple[Deviation, ...]:
    """One deviation of each kind and detail, with the count of all and the first of the examples."""
    counts: Counter[tuple[str, str]] = Counter()
    first: dict[tuple[str, str], Deviation] = {}
    for deviation in sorted(deviations, key=lambda one: one.example):
        key = deviation.kind, deviation.detail
        counts[key] += deviation.count
        first.setdefault(key, deviation)
    return tuple(replace(first[key], count=counts[key]) for key in sorted(first))


def _deviations_of(row: dict[str, Any], release: Mapping[str, _Released]) -> Iterator[Deviation]:
    """Every way in which the episodes with these values are not as the release has them."""
    released, example, count = release.get(_released_id(row)), row["instance_id"], row["count_all"]
    if released is None or released.tasks_version != row["tasks_version"]:
        detail = _why_not(row["tasks_version"], release)
        yield Deviation(kind=NOT_COMPARED, detail=detail, count=count, example=example)
        return
    if row["prompt_text"] != _expected_prompt(row, released):
        yield Deviation(kind=PROMPT, detail=row["prompt"], count=count, example=example)
    elif row["prompt"] not in BUILT_IN:
        condition = f"{row['prompt']} {row['prompt_version'] or 'without version'}"
        yield Deviation(kind=OWN_PROMPT, detail=condition, count=count, example=example)
    if row["horizon"] != released.horizon:
        both = f"{example} ({row['horizon']} instead of {released.horizon})"
        yield Deviation(kind=HORIZON, detail="", count=count, example=both)


def _released_id(row: dict[str, Any]) -> str:
    """Id of the released instance: under the same prompt condition, or under P0 where a release does not have it."""
    instance_id: str = row["instance_id"]
    if row["prompt"] in RELEASED:
        return instance_id
    probe = "" if row["language_probe"] == LanguageProbe.W0 else f"/{row['language_probe']}"
    ending = f"/{row['prompt']}{probe}"
    return f"{instance_id.removesuffix(ending)}/{Prompt.P0}{probe}" if instance_id.endswith(ending) else instance_id


def _expected_prompt(row: dict[str, Any], released: _Released) -> str:
    """The released prompt; under a user's own condition the recorded one, where it holds the released instruction."""
    if row["prompt"] in RELEASED:
        return released.prompt_text
    if row["prompt"] in BUILT_IN:
        return BUILT_IN[row["prompt"]].text(released.instruction)
    return str(row["prompt_text"] if released.instruction in row["prompt_text"] else released.instruction)


def _why_not(tasks_version: str, release: Mapping[str, _Released]) -> str:
    installed = sorted({released.tasks_version for released in release.values()})
    if tasks_version not in installed:
        return f"recorded with tasks {tasks_version}, installed are {' and '.join(installed)}"
    return f"tasks {tasks_version} do not have these instances"


def _fixed_by(instance: Instance) -> _Released:
    return _Released(**{field.name: getattr(instance, field.name) for field in fields(_Released)})


@cache
def _installed() -> dict[str, _Released]:
    """What the installed release fixes of each instance, by its id."""
    names = [field.name for field in fields(_Released)]
    rows = instances_table(("instance_id", *names)).to_pylist()
    return {row["instance_id"]: _Released(**{name: row[name] for name in names}) for row in rows}
