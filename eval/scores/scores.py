"""Scores of recorded rollouts: pairs, measures, tables and tests, from the datasets alone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import pyarrow as pa
import pyarrow.compute as pc

from ...toolkit.arrays import FloatArray
from ...toolkit.atomic_files import write_atomic
from ...toolkit.errors import DatasetError, InvalidInputError
from ..analyses.behaviour import behaviour_by_task, behaviour_change, behaviour_correlation
from ..analyses.comparisons import abstention, failed_persistence, outcome_tests, prompt_effect, undefined_counts
from ..analyses.costs import cost_table
from ..analyses.groups import PROBES, measure_table
from ..analyses.noise_floor import noise_floor_table
from ..analyses.probe_effects import probe_effect
from ..analyses.supplementary import SUPPLEMENTARY_COLUMNS, supplementary_table, wrong_objects_table
from ..recordings.defects import Defect, defects_by_field
from ..recordings.reading import folders_by_policy
from ..recordings.rollout_set import RolloutSet, check_unique
from ..recordings.sources import local_folder
from ..rollouts.recosting import with_costs
from ..scoring.pairs import Refusal
from ..scoring.parts import PartScores, score_folders, score_part
from ..scoring.provenance import Provenance, provenance_of

Grouping = Literal["overall", "family", "level", "suite", "prompt", "qualified", "language_probe", "visual_probe"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Scores:
    """Measures of every pair, and everything that follows from them. Every table is a ``pyarrow.Table``.

    Attributes:
        pairs: One row a pair without a probe (W0 and V0), with ``pair_table.PAIR_COLUMNS`` and, where asked for,
            ``supplementary.SUPPLEMENTARY_COLUMNS``.
        refusals: Conflict rollouts that could not be scored, and why.
        provenance: Where the scores come from.
        probed: Likewise the pairs under a language or visual probe; no table mixes them with the others.
        repeats: Likewise one row a pair of repeated reference rollouts; without repeats no row.
        trajectories: One row a rollout, with ``rollout_table.TRAJECTORY_COLUMNS``; None where not asked for.
        left_out: Defects for which episodes were left out, where that was asked for.
    """

    pairs: pa.Table
    probed: pa.Table
    refusals: tuple[Refusal, ...]
    provenance: Provenance
    repeats: pa.Table
    trajectories: pa.Table | None = None
    left_out: tuple[Defect, ...] = ()
    _tables: dict[str, pa.Table] = field(default_factory=dict, init=False, repr=False)

    def __repr__(self) -> str:
        policies = ", ".join(self.policies) or "none"
        return f"Scores({self.pairs.num_rows} pairs, {len(self.refusals)} refused; policies: {policies})"

    @property
    def policies(self) -> tuple[str, ...]:
        """Policies with at least one pair, sorted."""
        return tuple(sorted(set(self.pairs["policy"].to_pylist())))

    @property
    def has_supplementary(self) -> bool:
        """Whether the supplementary and behaviour metrics were taken."""
        return set(SUPPLEMENTARY_COLUMNS) <= set(self.pairs.column_names) and self.trajectories is not None

    def table(self, by: Grouping | str = "overall") -> pa.Table:
        """Means over pairs with 95% intervals, one row a policy and group.

        Args:
            by: ``overall``, ``family``, ``level``, ``suite``, ``prompt``, ``qualified`` for the paper's Table III,
                ``language_probe`` (of the pairs under V0) or ``visual_probe`` (under W0); the others are over the pairs
                without a probe. All but ``prompt`` are over P0, or over P1 for a policy that was only rolled out under
                P1.

        Returns:
            ``policy``, ``prompt``, the group's column where there is one, then ``PCSR RGSR dSR FR TAR TS Early20_TS
            AMS``, each with ``_lo`` and ``_hi``, as fractions, and ``n``, the number of pairs. NaN where undefined.

        Raises:
            NotFoundError: If there is no such grouping.
        """
        return self._once(f"by {by}", lambda: measure_table(self._pairs_for(by), by))

    def outcome_tests(self) -> pa.Table:
        """Do outcomes with valid and with invalid premises differ? See ``comparisons.outcome_tests``."""
        return self._once("outcome_tests", lambda: outcome_tests(self.pairs))

    def prompt_effect(self) -> pa.Table:
        """P1 - P0 of each measure, and selectivity, with tests; see ``comparisons.prompt_effect``."""
        return self._once("prompt_effect", lambda: prompt_effect(self.pairs))

    def probe_effect(self) -> pa.Table:
        """What each probe changes of each measure, and selectivity, with tests; see ``probe_effects.probe_effect``."""
        return self._once("probe_effect", lambda: probe_effect(self.pairs, self.probed))

    def costs(self) -> pa.Table:
        """What acting costs, in all and by family, level and suite; see ``costs.cost_table``."""
        return self._once("costs", lambda: cost_table(self.pairs))

    def abstention(self) -> pa.Table:
        """Share of rollouts that stop for good; see ``comparisons.abstention``."""
        return self._once("abstention", lambda: abstention(self.pairs))

    def undefined(self) -> pa.Table:
        """How many pairs lack a process measure, and why; see ``comparisons.undefined_counts``."""
        return self._once("undefined", lambda: undefined_counts(self.pairs))

    def noise_floor(self) -> pa.Table:
        """The measures between repeated reference rollouts; see ``noise_floor.noise_floor_table``."""
        return self._once("noise_floor", lambda: noise_floor_table(self.repeats))

    def supplementary(self) -> pa.Table:
        """Means of the supplementary measures; see ``supplementary.supplementary_table``.

        Raises:
            InvalidInputError: If they were not taken.
        """
        if not self.has_supplementary:
            raise _not_taken()
        return self._once("supplementary", lambda: supplementary_table(self.pairs))

    def wrong_objects(self) -> pa.Table:
        """What the gripper has to do with the wrong things; see ``supplementary.wrong_objects_table``.

        Raises:
            InvalidInputError: If the supplementary measures were not taken.
        """
        means = self.supplementary()
        return self._once("wrong_objects", lambda: wrong_objects_table(means))

    def behaviour_by_task(self) -> pa.Table:
        """Behaviour of successful rollouts against the baseline, a base task a row; see ``behaviour``.

        Raises:
            InvalidInputError: If the behaviour metrics were not taken.
        """
        if self.trajectories is None:
            raise _not_taken()
        trajectories = self.trajectories
        return self._once("behaviour_by_task", lambda: behaviour_by_task(trajectories))

    def behaviour(self) -> pa.Table:
        """Median changes of behaviour over a suite's base tasks; see ``behaviour.behaviour_change``.

        Raises:
            InvalidInputError: If the behaviour metrics were not taken.
        """
        by_task = self.behaviour_by_task()
        return self._once("behaviour", lambda: behaviour_change(self.trajectories, by_task))

    def behaviour_correlation(self) -> pa.Table:
        """Success-rate loss against change of behaviour; see ``behaviour.behaviour_correlation``.

        Raises:
            InvalidInputError: If the behaviour metrics were not taken.
        """
        changes = self.behaviour()
        return self._once("behaviour_correlation", lambda: behaviour_correlation(changes))

    def failed_persistence(self, policy: str) -> FloatArray:
        """Failed-persistence curve of one policy, shape (21, 21); see ``comparisons.failed_persistence``."""
        return failed_persistence(self.pairs, policy)

    def refusals_by_field(self) -> dict[str, int]:
        """How many conflict rollouts each field refused."""
        return dict(sorted(Counter(refusal.field for refusal in self.refusals).items()))

    def left_out_by_field(self) -> dict[str, int]:
        """How many defects each field has for which episodes were left out."""
        return defects_by_field(self.left_out)

    def to_json(self) -> str:
        """The scores file: the same rollouts give the same bytes. NaN is null, with the reason beside it."""
        # The file's layout knows the scores, so the scores cannot know it when they are loaded.
        from .file import scores_json

        return scores_json(self)

    def write(self, path: Path | str) -> Path:
        """Write the scores file, whole or not at all; returns its path."""
        path = Path(path)
        write_atomic(path, self.to_json())
        return path

    def _pairs_for(self, by: str) -> pa.Table:
        """The pairs that a table is over: all levels of one kind of probe without the other, or none of either."""
        if by not in PROBES:
            return self.pairs
        (other,) = set(PROBES) - {by}
        everything = pa.concat_tables([self.pairs, self.probed])
        return everything.filter(pc.equal(everything[other], PROBES[other]))

    def _once(self, name: str, compute: Callable[[], pa.Table]) -> pa.Table:
        if name not in self._tables:
            self._tables[name] = compute()
        return self._tables[name]


def score(
    source: Path | str,
    *,
    supplementary: bool = False,
    partial: bool = False,
    ray_address: str | None = None,
    costs: Path | str | None = None,
) -> Scores:
    """Score recorded rollouts. Needs neither simulator nor policy.

    Policies are read and measured one after the other, so memory does not grow with their number.

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
    groups = folders_by_policy(local_folder(source), partial=partial)
    if ray_address is not None:
        from ..scoring.ray import score_on_ray

        scores = combine(score_on_ray(groups, ray_address, supplementary=supplementary, partial=partial))
    else:
        scores = combine(score_folders(folders, supplementary=supplementary, partial=partial) for folders in groups)
    return scores if costs is None else with_costs(scores, Path(costs))


def score_rollouts(parts: Iterable[RolloutSet], *, supplementary: bool = False) -> Scores:
    """Score rollouts that are already in memory.

    Args:
        parts: Rollout sets such that no pair spans two of them.
        supplementary: As for ``score``.

    Raises:
        DatasetError: If a rollout id occurs twice, or there are no rollouts.
    """
    return combine(score_part(part, supplementary=supplementary) for part in parts)


def combine(parts: Iterable[PartScores]) -> Scores:
    """Put the parts together; their order changes nothing.

    Raises:
        DatasetError: If a rollout id occurs twice, or there are no parts.
    """
    parts = list(parts)
    if not parts:
        raise DatasetError("there are no rollouts to score: give at least one rollout set")
    episodes = pa.concat_tables([part.episodes for part in parts])
    check_unique(episodes["rollout_id"], "these datasets")
    pairs = _in_order([part.pairs for part in parts])
    plain = _without_probe(pairs)
    repeats = _in_order([part.repeats for part in parts])
    trajectories = [part.trajectories for part in parts if part.trajectories is not None]
    return Scores(
        pairs=pairs.filter(plain),
        probed=pairs.filter(pc.invert(plain)),
        refusals=tuple(
            sorted((refusal for part in parts for refusal in part.refusals), key=lambda refusal: refusal.rollout_id)
        ),
        provenance=provenance_of(
            episodes,
            [digest for part in parts for digest in part.digests],
            sum(part.unused_references for part in parts),
        ),
        repeats=repeats.filter(_without_probe(repeats)),
        trajectories=pa.concat_tables(trajectories).sort_by("rollout_id") if trajectories else None,
        left_out=tuple(sorted((defect for part in parts for defect in part.left_out), key=str)),
    )


def _in_order(tables: list[pa.Table]) -> pa.Table:
    by = ("policy", "prompt", "instance_id", "init_state", "seed", "conflict_rollout")
    return pa.concat_tables(tables).sort_by([(name, "ascending") for name in by])


def _without_probe(pairs: pa.Table) -> pa.ChunkedArray:
    return pc.and_(*(pc.equal(pairs[name], level) for name, level in PROBES.items()))


def _not_taken() -> InvalidInputError:
    return InvalidInputError("supplementary measures were not taken: score with  supplementary=True")
