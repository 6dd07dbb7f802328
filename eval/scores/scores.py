"""Scores of recorded rollouts: pairs, measures, tables and tests, from the datasets alone."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Self

import pyarrow as pa

from ...toolkit.arrays import FloatArray
from ...toolkit.atomic_files import write_atomic
from ...toolkit.counting import counted
from ...toolkit.errors import InvalidInputError
from ..analyses.analysis import Analysis
from ..analyses.persistence import failed_persistence
from ..analyses.registry import analyses, find_analysis
from ..recordings.reading import open_by_policy
from ..recordings.rollout_set import RolloutSet
from ..recordings.sources import local_folder
from ..scoring.parts import score_datasets, score_part
from ..scoring.ray import score_on_ray
from ..scoring.scored_pairs import ScoredPairs, combine
from .costs import with_costs
from .file import read_scored_pairs, scores_json


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Scores(ScoredPairs):
    """Measures of every pair, and the tables that follow from them, each made when it is first asked for."""

    _tables: dict[str, pa.Table] = field(default_factory=dict, init=False, repr=False)

    @classmethod
    def of(cls, scored: ScoredPairs) -> Self:
        """Scores of measured pairs."""
        return cls(**{part.name: getattr(scored, part.name) for part in fields(ScoredPairs)})

    def __repr__(self) -> str:
        policies = ", ".join(self.policies) or "none"
        return f"Scores({counted(self.pairs.num_rows, 'pair')}, {len(self.refusals)} refused; policies: {policies})"

    def table(self, by: str = "overall") -> pa.Table:
        """One table: the measures by group with 95% intervals, or another analysis.

        Args:
            by: ``overall``, ``family``, ``level``, ``suite``, ``prompt``, ``qualified`` for the paper's Table III,
                ``language_probe`` (of the pairs under V0) or ``visual_probe`` (under W0); the others are over the pairs
                without a probe. All but ``prompt`` are over P0, or for a policy without P0 over the first of its prompt
                conditions. Or the name of any other analysis in the registry, such as ``outcome_tests`` or ``costs``.

        Returns:
            For measures by group: ``policy``, ``prompt``, the group's column where there is one, then ``PCSR RGSR dSR
            FR TAR TS Early20_TS AMS``, each with ``_lo`` and ``_hi``, as fractions, and ``n``, the number of pairs. NaN
            where undefined. For another analysis the columns that its module documents.

        Raises:
            NotFoundError: If there is no such table.
            InvalidInputError: If it needs the supplementary measures and they were not taken.
        """
        analysis = find_analysis(by)
        if analysis.name not in self._tables:
            if analysis.supplementary and not self.has_supplementary:
                raise InvalidInputError("supplementary measures were not taken: give --supplementary")
            self._tables[analysis.name] = analysis.compute(self, *map(self.table, analysis.uses))
        return self._tables[analysis.name]

    def analyses(self) -> tuple[Analysis, ...]:
        """The analyses that these scores have tables for, with or without rows."""
        return tuple(
            analysis
            for analysis in analyses()
            if (self.has_supplementary or not analysis.supplementary)
            and (self.controls.num_rows or not analysis.controls)
        )

    def failed_persistence(self, policy: str) -> FloatArray:
        """Failed-persistence curve of one policy, shape (21, 21); see ``persistence.failed_persistence``."""
        return failed_persistence(self.pairs, policy)

    def to_json(self) -> str:
        """The scores file: the same rollouts give the same bytes. NaN is null, with the reason beside it."""
        return scores_json(self, {analysis.name: self.table(analysis.name) for analysis in self.analyses()})

    def write(self, path: Path | str) -> Path:
        """Write the scores file atomically; returns its path."""
        path = Path(path)
        write_atomic(path, self.to_json())
        return path


def why_no_pairs(scores: Scores) -> str:
    """Why scores have no pairs, and what to do about it."""
    if scores.refusals:
        return "all are refused; conflictvla score --strict  lists why"
    if scores.probed.num_rows:
        return "all are under language or visual probes; run W0 and V0 too"
    return "references alone show plain success, see  conflictvla score; run conflicts too"


def score(
    source: Path | str,
    *,
    supplementary: bool = False,
    partial: bool = False,
    ray_address: str | None = None,
    costs: Path | str | None = None,
) -> Scores:
    """Score recorded rollouts. Needs neither simulator nor policy.

    Frames are read and measured one policy after the other, so those of several never lie in memory together.

    Args:
        source: A rollout dataset, a folder of some, the output folder of a run, or ``hf://OWNER/NAME@REVISION``.
        supplementary: Take the supplementary measures and behaviour metrics too.
        partial: Leave defective episodes out, with the reasons in ``Scores.left_out``, instead of raising.
        ray_address: Measure on this Ray cluster, such as ``auto``, ``local`` or ``HOST:PORT``; its machines must see
            the same folder.
        costs: File of ``conflictvla cost`` whose costs take the place of those recorded.

    Raises:
        DatasetError: One line that says which file, episode and field is damaged, and what to do.
        MissingExtraError: Ray is asked for and not installed.
    """
    groups = open_by_policy(local_folder(source), partial=partial)
    if ray_address is not None:
        folders = [[dataset.layout.folder for dataset in datasets] for datasets in groups]
        parts = score_on_ray(folders, ray_address, supplementary=supplementary, partial=partial)
        scored = combine(parts)
    else:
        scored = combine(score_datasets(datasets, supplementary=supplementary) for datasets in groups)
    return Scores.of(scored if costs is None else with_costs(scored, Path(costs)))


def score_rollouts(parts: Iterable[RolloutSet], *, supplementary: bool = False) -> Scores:
    """Score rollouts that are already in memory.

    Args:
        parts: Rollout sets such that no pair spans two of them.
        supplementary: As for ``score``.

    Raises:
        DatasetError: If a rollout id occurs twice, or there are no rollouts.
    """
    return Scores.of(combine(score_part(part, supplementary=supplementary) for part in parts))


def read_scores(path: Path | str) -> Scores:
    """Read a scores file back; its tables are computed again from its pairs.

    Raises:
        DatasetError: If it is not a scores file of this layout.
    """
    return Scores.of(read_scored_pairs(path))
