"""Scores of recorded rollouts: pairs, measures, tables and tests, from the data sets alone."""

from __future__ import annotations

import hashlib
import json
import math
import os
from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ..toolkit.errors import DatasetError
from ..toolkit.records import PROTOCOL_VERSION, Arm
from .aggregation import GROUPINGS, measure_table, undefined_reason
from .comparisons import abstention, failed_persistence, outcome_tests, prompt_effect, undefined_counts
from .measures import MEASURE_NAMES
from .pair_scores import PAIR_COLUMNS, score_pairs
from .pairs import Refusal, pair_rollouts
from .rollouts import RolloutSet, check_unique, read_rollouts_by_policy
from .statistics import CONFIDENCE, RESAMPLES, SEED, Interval

SCORES_VERSION = "1.0"
"""Layout of the scores file."""

RECORDED_FIELDS = (
    "policy_name",
    "policy_revision",
    "policy_settings",
    "seed",
    "protocol_version",
    "tasks_version",
    "schema_version",
    "conflictvla_version",
    "libero_distribution",
    "mujoco_version",
    "robosuite_version",
    "numpy_version",
)
"""Episode fields whose distinct values are written with the scores."""

Grouping = Literal["overall", "family", "level", "suite", "prompt", "qualified"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Recorded:
    """Distinct values of an episode field over all the rollouts."""

    field: str
    values: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Provenance:
    """What the scores were computed from, and by what. Holds no path and no time.

    Attributes:
        protocol_version: Version of the measures.
        scored_with: Version of this package.
        rollouts_sha256: Hash of the recorded content, independent of files and their order.
        rollouts: Rollouts read, of which ``references`` and ``conflicts``.
        references: Reference rollouts read.
        conflicts: Conflict rollouts read; each is in a pair or refused.
        unused_references: Reference rollouts in no pair.
        scenes: Distinct scenes, by their hashes.
        recorded: Versions, policies and seeds found in the rollouts.
    """

    protocol_version: str
    scored_with: str
    rollouts_sha256: str
    rollouts: int
    references: int
    conflicts: int
    unused_references: int
    scenes: int
    recorded: tuple[Recorded, ...]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Scores:
    """Measures of every pair, and everything that follows from them.

    Attributes:
        pairs: One row a pair, with ``pair_scores.PAIR_COLUMNS``.
        refusals: Conflict rollouts that could not be scored, and why.
        provenance: Where the scores come from.
    """

    pairs: pa.Table
    refusals: tuple[Refusal, ...]
    provenance: Provenance
    _tables: dict[str, pa.Table] = field(default_factory=dict, init=False, repr=False)

    def __repr__(self) -> str:
        policies = ", ".join(self.policies) or "none"
        return f"Scores({self.pairs.num_rows} pairs, {len(self.refusals)} refused; policies: {policies})"

    @property
    def policies(self) -> tuple[str, ...]:
        """Policies with at least one pair, sorted."""
        return tuple(sorted(set(self.pairs["policy"].to_pylist())))

    def table(self, by: Grouping | str = "overall") -> pa.Table:
        """Means over pairs with 95% intervals, one row a policy and group.

        Args:
            by: ``overall``, ``family``, ``level``, ``suite``, ``prompt``, or ``qualified`` for the paper's Table III.
                All but ``prompt`` are over P0, or over P1 for a policy that was only rolled out under P1.

        Returns:
            ``policy``, ``prompt``, the group's column where there is one, then ``PCSR RGSR dSR FR TAR TS Early20_TS
            AMS``, each with ``_lo`` and ``_hi``, as fractions, and ``n``, the number of pairs. NaN where undefined.

        Raises:
            NotFoundError: If there is no such grouping.
        """
        if by not in self._tables:
            self._tables[by] = measure_table(self.pairs, by)
        return self._tables[by]

    def outcome_tests(self) -> pa.Table:
        """Exact McNemar test of outcomes with valid against invalid premises; see ``comparisons.outcome_tests``."""
        return self._once("outcome_tests")

    def prompt_effect(self) -> pa.Table:
        """P1 - P0 of each measure, and selectivity, with tests; see ``comparisons.prompt_effect``."""
        return self._once("prompt_effect")

    def abstention(self) -> pa.Table:
        """Share of rollouts that stop for good; see ``comparisons.abstention``."""
        return self._once("abstention")

    def undefined(self) -> pa.Table:
        """How many pairs lack a process measure, and why; see ``comparisons.undefined_counts``."""
        return self._once("undefined_counts")

    def failed_persistence(self, policy: str) -> npt.NDArray[np.float64]:
        """Failed-persistence curve of one policy, shape (21, 21); see ``comparisons.failed_persistence``."""
        return failed_persistence(self.pairs, policy)

    def refusals_by_field(self) -> dict[str, int]:
        """How many conflict rollouts each field refused."""
        return dict(sorted(Counter(refusal.field for refusal in self.refusals).items()))

    def to_json(self) -> str:
        """The scores file: the same rollouts give the same bytes. NaN is null, with the reason beside it."""
        content = {
            "scores_version": SCORES_VERSION,
            "provenance": asdict(self.provenance),
            "statistics": {
                "confidence": CONFIDENCE,
                "interval": "percentile bootstrap over base tasks",
                "resamples": RESAMPLES,
                "seed": SEED,
            },
            "pairs_scored": self.pairs.num_rows,
            "pairs_refused": len(self.refusals),
            "refusals_by_field": self.refusals_by_field(),
            "refusals": [asdict(refusal) for refusal in self.refusals],
            "undefined": self.undefined().to_pylist(),
            "tables": {by: [_with_reasons(row) for row in self.table(by).to_pylist()] for by in GROUPINGS},
            "outcome_tests": self.outcome_tests().to_pylist(),
            "prompt_effect": self.prompt_effect().to_pylist(),
            "abstention": self.abstention().to_pylist(),
            "pairs": self.pairs.to_pydict(),
        }
        return json.dumps(_null_for_nan(content), sort_keys=True, indent=1, allow_nan=False, ensure_ascii=False) + "\n"

    def write(self, path: Path | str) -> Path:
        """Write the scores file, whole or not at all; returns its path."""
        path = Path(path)
        path.parent.mkdir(parents=True, exist_ok=True)
        unfinished = path.with_name(path.name + ".unfinished")
        unfinished.write_text(self.to_json(), encoding="utf-8")
        os.replace(unfinished, path)
        return path

    def _once(self, name: str) -> pa.Table:
        computed = {
            "outcome_tests": outcome_tests,
            "prompt_effect": prompt_effect,
            "abstention": abstention,
            "undefined_counts": undefined_counts,
        }
        if name not in self._tables:
            self._tables[name] = computed[name](self.pairs)
        return self._tables[name]


def score(path: Path | str) -> Scores:
    """Score the rollouts at a path. Needs neither simulator nor policy.

    Args:
        path: A rollout data set, a folder of some, or the output folder of a run.

    Raises:
        DatasetError: One line that says which file, episode and field is damaged, and what to do.
    """
    return score_rollouts(read_rollouts_by_policy(path))


def score_rollouts(parts: Iterable[RolloutSet]) -> Scores:
    """Score rollouts that are already in memory.

    Args:
        parts: Rollout sets such that no pair spans two of them.

    Raises:
        DatasetError: If a rollout id occurs twice, or there are no rollouts.
    """
    digests: list[bytes] = []
    tables, episodes = [], []
    refusals: list[Refusal] = []
    unused = 0
    for part in parts:
        pairing = pair_rollouts(part)
        tables.append(score_pairs(part, pairing))
        refusals += pairing.refusals
        unused += pairing.unused_references
        digests += part.digests()
        episodes.append(part.episodes.select(["rollout_id", "arm", "scene_sha256", *RECORDED_FIELDS]))
    if not tables:
        raise DatasetError("there are no rollouts to score: give at least one rollout set")
    all_episodes = pa.concat_tables(episodes)
    check_unique(all_episodes["rollout_id"], "these data sets")
    pairs = pa.concat_tables(tables)
    by = [(name, "ascending") for name in ("policy", "prompt", "instance_id", "init_state", "seed", "conflict_rollout")]
    return Scores(
        pairs=pairs.sort_by(by),
        refusals=tuple(sorted(refusals, key=lambda refusal: refusal.rollout_id)),
        provenance=_provenance(all_episodes, digests, unused),
    )


def read_scores(path: Path | str) -> Scores:
    """Read a scores file back; its tables are computed again from its pairs.

    Raises:
        DatasetError: If it is not a scores file of this layout.
    """
    path = Path(path)
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        found = content["scores_version"]
        if found != SCORES_VERSION:
            raise DatasetError(f"{path}: scores_version is {found}, this version reads {SCORES_VERSION}: score again")
        columns = []
        for name, kind in PAIR_COLUMNS.items():
            nan_for_null = pa.types.is_floating(kind)
            values = content["pairs"][name]
            columns.append(pa.array([math.nan if nan_for_null and v is None else v for v in values], kind))
        pairs = pa.table(columns, schema=pa.schema(list(PAIR_COLUMNS.items())))
        refusals = tuple(Refusal(**refusal) for refusal in content["refusals"])
        provenance = content["provenance"]
        recorded = tuple(
            Recorded(field=entry["field"], values=tuple(entry["values"])) for entry in provenance.pop("recorded")
        )
        return Scores(pairs=pairs, refusals=refusals, provenance=Provenance(**provenance, recorded=recorded))
    except (OSError, ValueError, KeyError, TypeError, pa.ArrowException) as error:
        if isinstance(error, DatasetError):
            raise
        raise DatasetError(f"{path}: not a scores file ({error}): write it with `conflictvla score`") from error


def _provenance(episodes: pa.Table, digests: list[bytes], unused: int) -> Provenance:
    arms = episodes["arm"].to_pylist()
    recorded = tuple(
        Recorded(field=name, values=tuple(str(value) for value in sorted(set(episodes[name].to_pylist()))))
        for name in RECORDED_FIELDS
    )
    return Provenance(
        protocol_version=PROTOCOL_VERSION,
        scored_with=version("conflictvla"),
        rollouts_sha256=hashlib.sha256(b"".join(sorted(digests))).hexdigest(),
        rollouts=len(arms),
        references=arms.count(Arm.REFERENCE),
        conflicts=arms.count(Arm.CONFLICT),
        unused_references=unused,
        scenes=len(set(episodes["scene_sha256"].to_pylist())),
        recorded=recorded,
    )


def _with_reasons(row: dict[str, Any]) -> dict[str, Any]:
    """A table row with the reason for each value or interval in it that is NaN."""
    reasons = {}
    for name in MEASURE_NAMES:
        interval = Interval(value=row[name], low=row[f"{name}_lo"], high=row[f"{name}_hi"])
        reason = undefined_reason(name, interval)
        if reason is not None:
            reasons[name] = reason
    return row | {"undefined": reasons}


def _null_for_nan(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {key: _null_for_nan(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [_null_for_nan(part) for part in value]
    return value
