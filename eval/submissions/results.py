"""Results: one evaluation of one policy as numbers, for the leaderboard; and the mark that it was verified."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import astuple, dataclass

import pyarrow as pa

from ...toolkit.errors import InvalidInputError
from ...toolkit.prompts import BUILT_IN
from ...toolkit.records import Family, Level
from ..analyses.groups import rows_where
from ..analyses.response import premise_effect, response_of
from ..analyses.tables.measures import measure_table
from ..measures import MEASURE_NAMES
from ..scores.scores import Scores, why_no_pairs
from ..statistics.intervals import Interval
from .coverage import Coverage

RESULTS_VERSION = "2.0"
"""Layout of results and verification files."""

ALL = "all"
"""What a row's family or level is called where it covers all of them."""

POLICY = "policy"
SCRIPTED_AGENT = "scripted agent"
KINDS = (POLICY, SCRIPTED_AGENT)
"""What was evaluated; scripted agents with known answers are marked as such."""

INTERVAL_ENDINGS = {"value": "", "low": "_lo", "high": "_hi"}
"""Parts of an interval, and the endings of their columns in tables."""


FIGURES = ("response", "premise_effect", *MEASURE_NAMES)
"""Figures of a row, as ``ResultRow.value`` calls them."""

UNDEFINED = Interval(value=float("nan"), low=float("nan"), high=float("nan"))


@dataclass(frozen=True, slots=True, kw_only=True)
class ResultRow:
    """The measures over the pairs of one prompt condition, family and level.

    Attributes:
        prompt: A built-in prompt condition: ``P0``, ``P1`` or ``placebo``.
        family: A conflict family, or ``all``.
        level: A level, or ``all``.
        n: Number of pairs.
        measures: By name, as fractions with their 95% intervals; NaN where undefined.
        response: The response, over the capable pairs; NaN where there are none.
        capable: Pairs that the response is over: those whose reference rollout succeeds and whose TAR is defined.
        premise_effect: Response to the conflict minus response to its control; None where no controls were run, NaN
            where it is undefined.
        controls: Pairs whose control was run too; a full set has ``n``.
        effect_tasks: Base tasks that the premise effect is over.
    """

    prompt: str
    family: str
    level: str
    n: int
    measures: Mapping[str, Interval]
    response: Interval
    capable: int
    premise_effect: Interval | None
    controls: int
    effect_tasks: int

    def value(self, name: str) -> Interval:
        """A measure, ``response`` or ``premise_effect``; NaN where the row does not have it.

        Raises:
            KeyError: There is no such figure.
        """
        if name == "response":
            return self.response
        if name == "premise_effect":
            return self.premise_effect or UNDEFINED
        return self.measures[name]


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """One evaluation of one policy.

    Attributes:
        results_version: Layout.
        kind: One of ``KINDS``.
        policy_name: As recorded.
        policy_revision: As recorded.
        policy_settings: As recorded, JSON text.
        repo_id: Dataset with the rollouts on the Hub; empty where they are not there.
        commit: Its commit, 40 hexadecimal digits; empty where ``repo_id`` is.
        rollouts_sha256: Hash of the recorded content that was scored.
        rollouts: Rollouts scored.
        protocol_version: Of the measures.
        tasks_version: Of the task release.
        conflictvla_version: That recorded the rollouts.
        mujoco_version: That simulated them.
        init_states: Initial states, sorted.
        seeds: Seeds, sorted.
        coverage: How much of a full evaluation it is.
        rows: The measures.
    """

    results_version: str
    kind: str
    policy_name: str
    policy_revision: str
    policy_settings: str
    repo_id: str
    commit: str
    rollouts_sha256: str
    rollouts: int
    protocol_version: str
    tasks_version: str
    conflictvla_version: str
    mujoco_version: str
    init_states: tuple[int, ...]
    seeds: tuple[int, ...]
    coverage: Coverage
    rows: tuple[ResultRow, ...]

    def row(self, prompt: str, family: str = ALL, level: str = ALL) -> ResultRow | None:
        """One row, or None where the evaluation has no such pairs."""
        return next((r for r in self.rows if (r.prompt, r.family, r.level) == (prompt, family, level)), None)

    @property
    def prompts(self) -> tuple[str, ...]:
        """Prompt conditions that it has rows of."""
        return tuple(dict.fromkeys(row.prompt for row in self.rows))

    @property
    def file_name(self) -> str:
        """A name that begins with the policy's and is no other evaluation's."""
        slug = re.sub(r"[^a-z0-9]+", "-", self.policy_name.lower()).strip("-")[:40] or "policy"
        return f"{slug}-{self.rollouts_sha256[:12]}.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class Verification:
    """What was verified of a result, by which draw.

    Attributes:
        results_version: Layout.
        result_sha256: Hash of the results file.
        rollouts_sha256: Hash of the recorded content.
        replayed: Rollouts executed again.
        seed: Seed of their draw.
        mujoco_version: That executed them.
        problems: Findings; a verified mark needs 0.
    """

    results_version: str
    result_sha256: str
    rollouts_sha256: str
    replayed: int
    seed: int
    mujoco_version: str
    problems: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One line of the leaderboard.

    Attributes:
        name: Name of its file without ending.
        result: The result.
        verification: The verification whose hashes fit it, or None.
    """

    name: str
    result: Result
    verification: Verification | None


def result_of(scores: Scores, *, coverage: Coverage, repo_id: str = "", commit: str = "", kind: str = POLICY) -> Result:
    """The result of scored rollouts of one policy.

    Args:
        scores: Of exactly one policy.
        coverage: How much of a full evaluation they are.
        repo_id: See ``Result``.
        commit: See ``Result``.
        kind: One of ``KINDS``.

    Raises:
        InvalidInputError: There are several policies, no pairs, or none under a prompt condition of the release.
    """
    if not scores.policies:
        raise InvalidInputError(f"a result is over pairs, and these rollouts have none: {why_no_pairs(scores)}")
    if len(scores.policies) > 1:
        raise InvalidInputError(f"a result is of one policy, here are {', '.join(scores.policies)}")
    rows = tuple(_rows(scores.pairs, scores.controls))
    if not rows:
        raise InvalidInputError(
            f"a result is under {', '.join(BUILT_IN)}, which all policies share, and no pair is: run some of these too"
        )
    recorded = {entry.field: entry.values for entry in scores.provenance.recorded}
    return Result(
        results_version=RESULTS_VERSION,
        kind=kind,
        policy_name=recorded["policy_name"][0],
        policy_revision=recorded["policy_revision"][0],
        policy_settings=recorded["policy_settings"][0],
        repo_id=repo_id,
        commit=commit,
        rollouts_sha256=scores.provenance.rollouts_sha256,
        rollouts=scores.provenance.rollouts,
        protocol_version=scores.provenance.protocol_version,
        tasks_version=" ".join(recorded["tasks_version"]),
        conflictvla_version=" ".join(recorded["conflictvla_version"]),
        mujoco_version=" ".join(recorded["mujoco_version"]),
        init_states=tuple(sorted(set(scores.pairs["init_state"].to_pylist()))),
        seeds=tuple(sorted(set(scores.pairs["seed"].to_pylist()))),
        coverage=coverage,
        rows=rows,
    )


def _rows(pairs: pa.Table, controls: pa.Table) -> Iterator[ResultRow]:
    """A row for each prompt condition, family and level that has pairs, and for all families and levels together."""
    for prompt in BUILT_IN:
        for family in (ALL, *Family):
            for level in (ALL, *Level):
                group = {"prompt": prompt, "family": str(family), "level": str(level)}
                wanted = {column: value for column, value in group.items() if value != ALL}
                chosen = rows_where(pairs, wanted)
                if chosen.num_rows:
                    yield _row(chosen, rows_where(controls, wanted), **group)


def _row(pairs: pa.Table, controls: pa.Table, *, prompt: str, family: str, level: str) -> ResultRow:
    (row,) = measure_table(pairs, "overall").to_pylist()
    measures = {
        name: Interval(**{part: round(row[name + ending], 6) for part, ending in INTERVAL_ENDINGS.items()})
        for name in MEASURE_NAMES
    }
    found = response_of(pairs)
    controlled = premise_effect(pairs, controls)
    return ResultRow(
        prompt=prompt,
        family=family,
        level=level,
        n=row["n"],
        measures=measures,
        response=_rounded(found.response),
        capable=found.n,
        premise_effect=_rounded(controlled.effect) if controlled.controls else None,
        controls=controlled.controls,
        effect_tasks=controlled.base_tasks,
    )


def _rounded(interval: Interval) -> Interval:
    value, low, high = (round(part, 6) for part in astuple(interval))
    return Interval(value=value, low=low, high=high)
