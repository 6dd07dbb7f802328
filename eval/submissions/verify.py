"""Verification: is a submission what it claims to be, as far as can be seen without its policy?

Scores are computed anew from the trajectories; every rollout is checked against the task release, its scene and the
other rollouts; and a random sample is executed again in the simulator, action by action, where everything must agree.
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import astuple, dataclass, fields
from pathlib import Path

import numpy as np

from ...builders.cases.instances import with_built_in_prompts
from ...builders.rollouts.schema import SIM_STATES
from ...toolkit.errors import InvalidInputError
from ...toolkit.records import Instance
from ...toolkit.simulation.scene_pool import ScenePool
from ..recordings.reading import find_dataset, read_rollouts
from ..rollouts.replay import COMPARED, REPLAYED, draw_sample, replay_rows
from ..rollouts.versions import installed_versions
from ..scores.scores import Scores, score_rollouts
from .checks.findings import SubmissionFinding, findings
from .checks.rollout_checks import check_rollouts
from .checks.state_checks import check_states
from .coverage import coverage_of
from .results import FIGURES, POLICY, RESULTS_VERSION, Result, ResultRow, Verification, result_of

SCORE_TOLERANCE = 1e-6
"""Figures of a results file agree with those computed here, except for rounding."""


def fresh_seed() -> int:
    """A seed that nobody can foresee, so that nobody knows which rollouts will be executed again."""
    return secrets.randbelow(1 << 32)


@dataclass(frozen=True, slots=True, kw_only=True)
class VerificationReport:
    """What verification found.

    Attributes:
        findings: What is wrong; empty for a submission that passes.
        scores: Computed from the trajectories.
        result: What they give for the leaderboard.
        rollouts: Rollouts in the submission.
        replayed: Rollouts that were executed again.
        seed: Seed of their draw.
        states_checked: Whether the simulator's states were recorded, so that every outcome could be checked.
    """

    findings: tuple[SubmissionFinding, ...]
    scores: Scores
    result: Result
    rollouts: int
    replayed: int
    seed: int
    states_checked: bool

    @property
    def missed_one_forged(self) -> float:
        """Chance that a single forged rollout, well enough made to pass everything else, was not in the sample."""
        return 1.0 - self.replayed / self.rollouts


def verify_submission(
    folder: Path,
    instances: Sequence[Instance],
    *,
    sample: int,
    seed: int,
    cases: Collection[str] | None = None,
    lite: Collection[str] = (),
    claimed: Result | None = None,
    address: tuple[str, str] = ("", ""),
    tolerance: float = 0.0,
    scenes: ScenePool | None = None,
    progress: Callable[[str], None] | None = None,
) -> VerificationReport:
    """Verify the rollouts of one policy.

    Args:
        folder: Its dataset.
        instances: The task release, all its arms.
        sample: How many rollouts to execute again.
        seed: Seed of the draw, from ``fresh_seed`` once the submission can no longer be changed.
        cases: Ids of the cases that must be there, and no other; by default all of the release.
        lite: Ids of the cases in the release's lite selection.
        claimed: The result that was submitted with them.
        address: Dataset and commit on the Hub of which the folder is a copy.
        tolerance: Largest difference in a replayed position, in m and rad; see ``replay_rollouts``.
        scenes: Warm scenes to use.
        progress: Called with the id of each rollout after its check.

    Raises:
        DatasetError: The dataset is damaged, or several.
        InvalidInputError: The sample is not positive, or the rollouts are of several policies.
    """
    if sample < 1:
        raise InvalidInputError(f"--sample {sample}: at least 1 is needed")
    dataset = find_dataset(folder)
    rollouts = read_rollouts(dataset, REPLAYED, optional=COMPARED)
    pool = scenes or ScenePool()
    scores = score_rollouts([rollouts])
    known = with_built_in_prompts(instances, rollouts.episodes["prompt"].to_pylist())
    plans = {instance.instance_id: instance.plan for instance in known}
    found = [
        *check_rollouts(rollouts, instances, lite, cases),
        *check_states(dataset, rollouts, pool, plans=plans, tolerance=tolerance, progress=progress),
    ]
    rows = draw_sample(len(rollouts), sample, seed)
    checks = replay_rows(dataset, rollouts, rows, tolerance=tolerance, scenes=pool, progress=progress)
    differing = [f"{check.rollout_id} ({check.difference})" for check in checks.values() if check.difference]
    found += findings("replay", "executed again, these differ from what was recorded", differing)
    kind = POLICY if claimed is None else claimed.kind
    coverage = coverage_of(rollouts, instances, lite)
    result = result_of(scores, coverage=coverage, repo_id=address[0], commit=address[1], kind=kind)
    if claimed is not None:
        found += _check_claims(claimed, result)
    return VerificationReport(
        findings=tuple(found),
        scores=scores,
        result=result,
        rollouts=len(rollouts),
        replayed=len(rows),
        seed=seed,
        states_checked=(dataset / SIM_STATES).is_dir(),
    )


def _check_claims(claimed: Result, computed: Result) -> Iterator[SubmissionFinding]:
    """Where a results file differs from the result of the trajectories."""
    wrong = [
        field.name
        for field in fields(Result)
        if field.name != "rows" and getattr(claimed, field.name) != getattr(computed, field.name)
    ]
    claimed_rows, computed_rows = _rows_by_group(claimed), _rows_by_group(computed)
    for group in sorted(claimed_rows.keys() | computed_rows.keys()):
        ours, theirs = computed_rows.get(group), claimed_rows.get(group)
        if ours is None or theirs is None or _counts(ours) != _counts(theirs):
            wrong.append(f"pairs of {' '.join(group)}")
            continue
        for name in FIGURES:
            both = astuple(ours.value(name)), astuple(theirs.value(name))
            if not np.allclose(*both, rtol=0, atol=SCORE_TOLERANCE, equal_nan=True):
                wrong.append(f"{name} of {' '.join(group)}")
    yield from findings("scores", "the results file is not what the trajectories give", wrong)


def _counts(row: ResultRow) -> tuple[int, ...]:
    return row.n, row.capable, row.controls, row.effect_tasks


def _rows_by_group(result: Result) -> dict[tuple[str, str, str], ResultRow]:
    return {(row.prompt, row.family, row.level): row for row in result.rows}


def verification_of(report: VerificationReport, results_file: Path | None) -> Verification:
    """The verification of a report; the leaderboard shows a mark only where nothing was found wrong.

    Args:
        report: From ``verify_submission``.
        results_file: The results file that was verified.

    Raises:
        InvalidInputError: There is no results file, so that nothing would tell which result was verified.
    """
    if results_file is None:
        raise InvalidInputError("--out writes the verification of a results file: give it with --result")
    return Verification(
        results_version=RESULTS_VERSION,
        result_sha256=hashlib.sha256(results_file.read_bytes()).hexdigest(),
        rollouts_sha256=report.result.rollouts_sha256,
        replayed=report.replayed,
        seed=report.seed,
        mujoco_version=installed_versions().mujoco,
        problems=len(report.findings),
    )
