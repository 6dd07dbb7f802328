"""What scoring leaves: the measured pairs of all policies, refusals, and what they were computed from."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.compute as pc

from ...builders.rollouts.episode_record import PROBES
from ...toolkit.errors import DatasetError
from ..recordings.defects import Defect, defects_by_field
from ..recordings.deviations import Deviation, summed
from ..recordings.rollout_set import check_unique
from .pair_table import no_pairs
from .pairs import RefusedPair
from .parts import PartScores
from .provenance import Provenance, provenance_of
from .supplementary import SUPPLEMENTARY_COLUMNS

SORTED_BY = ("policy", "prompt", "instance_id", "init_state", "seed", "conflict_rollout")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ScoredPairs:
    """Measures of every pair: all that the analyses are made of. Every table is a ``pyarrow.Table``.

    Attributes:
        pairs: One row a pair without a probe (W0 and V0), with ``pair_table.PAIR_COLUMNS`` and, where asked for,
            ``supplementary.SUPPLEMENTARY_COLUMNS``.
        probed: The pairs under a language or visual probe, with the same columns; no table mixes them with the others.
        refusals: Conflict rollouts that could not be scored, and why.
        provenance: Where the scores come from.
        controls: One row a pair of a control rollout without a probe, which stands in the place of the conflict
            rollout, with ``pair_table.PAIR_COLUMNS``; no table of conflicts counts them. Without controls no row.
        refused_controls: Control rollouts that could not be scored, and why.
        repeats: One row a pair of repeated reference rollouts, with the same columns; without repeats no row.
        references: One row a reference rollout, with ``rollout_table.REFERENCE_COLUMNS``, in a pair or not.
        trajectories: One row a rollout, with ``rollout_table.TRAJECTORY_COLUMNS``; None where not asked for.
        left_out: Defects for which episodes were left out, where that was asked for.
        deviations: Rollouts whose prompt or horizon is not the installed task release's, or cannot be compared with it;
            their pairs are scored all the same.
    """

    pairs: pa.Table
    probed: pa.Table
    refusals: tuple[RefusedPair, ...]
    provenance: Provenance
    repeats: pa.Table
    references: pa.Table
    controls: pa.Table = field(default_factory=no_pairs)
    refused_controls: tuple[RefusedPair, ...] = ()
    trajectories: pa.Table | None = None
    left_out: tuple[Defect, ...] = ()
    deviations: tuple[Deviation, ...] = ()

    @property
    def policies(self) -> tuple[str, ...]:
        """Policies with at least one pair, sorted."""
        return tuple(sorted(set(self.pairs["policy"].to_pylist())))

    @property
    def has_supplementary(self) -> bool:
        """Whether the supplementary and behaviour metrics were taken."""
        return set(SUPPLEMENTARY_COLUMNS) <= set(self.pairs.column_names) and self.trajectories is not None

    def refusals_by_field(self) -> dict[str, int]:
        """How many conflict rollouts each field refused."""
        return _count_fields(self.refusals)

    def refused_controls_by_field(self) -> dict[str, int]:
        """How many control rollouts each field refused."""
        return _count_fields(self.refused_controls)

    def left_out_by_field(self) -> dict[str, int]:
        """How many defects each field has for which episodes were left out."""
        return defects_by_field(self.left_out)


def combine(parts: Iterable[PartScores]) -> ScoredPairs:
    """Put the parts together; their order changes nothing.

    Raises:
        DatasetError: If a rollout id occurs twice, or there are no parts.
    """
    parts = list(parts)
    if not parts:
        raise DatasetError("there are no rollouts to score: give at least one rollout set")
    episodes = pa.concat_tables([part.episodes for part in parts])
    check_unique(episodes["rollout_id"], "these datasets")
    pairs = _sorted([part.pairs for part in parts])
    plain = _without_probe(pairs)
    repeats, controls = _sorted([part.repeats for part in parts]), _sorted([part.controls for part in parts])
    trajectories = [part.trajectories for part in parts if part.trajectories is not None]
    return ScoredPairs(
        pairs=pairs.filter(plain),
        probed=pairs.filter(pc.invert(plain)),
        controls=controls.filter(_without_probe(controls)),
        refusals=_by_rollout(refusal for part in parts for refusal in part.refusals),
        refused_controls=_by_rollout(refusal for part in parts for refusal in part.refused_controls),
        provenance=provenance_of(
            episodes,
            [digest for part in parts for digest in part.digests],
            sum(part.unused_references for part in parts),
        ),
        repeats=repeats.filter(_without_probe(repeats)),
        references=pa.concat_tables([part.references for part in parts]).sort_by("rollout_id"),
        trajectories=pa.concat_tables(trajectories).sort_by("rollout_id") if trajectories else None,
        left_out=tuple(sorted((defect for part in parts for defect in part.left_out), key=str)),
        deviations=summed(deviation for part in parts for deviation in part.deviations),
    )


def _by_rollout(refusals: Iterable[RefusedPair]) -> tuple[RefusedPair, ...]:
    return tuple(sorted(refusals, key=lambda refusal: refusal.rollout_id))


def _count_fields(refusals: Iterable[RefusedPair]) -> dict[str, int]:
    return dict(sorted(Counter(refusal.field for refusal in refusals).items()))


def _sorted(tables: list[pa.Table]) -> pa.Table:
    return pa.concat_tables(tables).sort_by([(name, "ascending") for name in SORTED_BY])


def _without_probe(pairs: pa.Table) -> pa.ChunkedArray:
    return pc.and_(*(pc.equal(pairs[name], level) for name, level in PROBES.items()))
