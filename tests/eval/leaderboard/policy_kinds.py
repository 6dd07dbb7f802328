"""Eight policies of known kind, recorded as rollouts: what a board has to tell apart."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from pathlib import Path

import numpy as np
import pyarrow as pa

from conflictvla.builders.rollouts.episode_record import EpisodeRecord
from conflictvla.builders.rollouts.schema import Rollout
from conflictvla.eval.scores.scores import Scores, score
from conflictvla.eval.scoring.scored_pairs import ScoredPairs
from conflictvla.eval.submissions.coverage import COMPLETE, Coverage
from conflictvla.eval.submissions.results import POLICY, Result, result_of
from conflictvla.eval.submissions.results_file import result_json
from conflictvla.toolkit.arrays import FloatArray
from conflictvla.toolkit.records import Arm, Family, Level

from ..synthetic_rollouts import make_record, make_rollout, write_dataset

STEPS = 40
DISTANCE_M = 0.3

BASE_TASKS = tuple(
    (suite, task)
    for suite, tasks in (
        ("libero_goal", ("put_the_bowl_on_the_plate", "open_the_middle_drawer", "turn_on_the_stove")),
        ("libero_object", ("pick_up_the_milk", "pick_up_the_butter", "pick_up_the_ketchup")),
    )
    for task in tasks
)


@dataclass(frozen=True, kw_only=True)
class Kind:
    """What a policy does with the reference instruction, and with the conflict of a numbered case.

    Attributes:
        reach: Share of the way to the target under conflict, at the reference's speed; then it rests.
        completes: Whether the reference goal is completed under conflict.
        capable: Whether it is completed with the reference instruction.
        answers_controls: Whether it does under a control what it does under the conflict; None without controls.
    """

    reach: Callable[[int], float]
    completes: Callable[[int], bool] = lambda _: False
    capable: bool = True
    answers_controls: bool | None = None


KINDS = {
    "full_responder": Kind(reach=lambda _: 0.0, answers_controls=False),
    "wording_reactive": Kind(reach=lambda _: 0.0, answers_controls=True),
    "half_responder": Kind(reach=lambda case: float(case % 2), completes=lambda case: case % 2 == 1),
    "late_detector": Kind(reach=lambda _: 0.6),
    "fumbling_persistent": Kind(reach=lambda _: 0.97),
    "persistent": Kind(reach=lambda _: 1.0, completes=lambda _: True),
    "incapable": Kind(reach=lambda _: 0.0, capable=False),
    "random": Kind(reach=lambda _: np.nan, capable=False),
}
"""In the order in which a board has to have them; the last two cannot be ranked."""


def write_kinds(folder: Path) -> Path:
    """A leaderboard's folder with a results file for each kind, each scored from its rollouts."""
    (folder / "results").mkdir(parents=True)
    for name in KINDS:
        result = result_of_kind(folder, name)
        (folder / "results" / result.file_name).write_text(result_json(result), encoding="utf-8")
    return folder


def result_of_kind(folder: Path, name: str, kind: Kind | None = None, controls: int | None = None) -> Result:
    """The result of a kind of policy, by default the known one of this name.

    Args:
        folder: Where its rollouts are written.
        name: The policy's.
        kind: What it does.
        controls: Of how many of its pairs controls were run, those of the first base tasks; by default of all.
    """
    kind = kind or KINDS[name]
    scores = score(write_dataset(folder / "rollouts" / name, _rollouts(name, kind)))
    with_controls = _with_controls(scores, kind, controls)
    return result_of(with_controls, coverage=Coverage(kind=COMPLETE, rollouts=9, of=9), kind=POLICY)


def _rollouts(name: str, kind: Kind) -> list[Rollout]:
    noise = np.random.default_rng(5)
    rollouts = []
    for suite, task in BASE_TASKS:
        reference = make_record(policy=name, suite=suite, base_task=task, success=kind.capable, steps=STEPS)
        rollouts.append(_motion(reference, 1.0 if kind.capable else np.nan, noise))
        for case, family in enumerate(Family):
            conflict = make_record(
                arm=Arm.CONFLICT,
                policy=name,
                suite=suite,
                base_task=task,
                case=case,
                family=family,
                level=tuple(Level)[case],
                success=kind.completes(case),
                steps=STEPS,
            )
            rollouts.append(_motion(conflict, kind.reach(case), noise))
    return rollouts


def _motion(record: EpisodeRecord, reach: float, noise: np.random.Generator) -> Rollout:
    """Straight to a share of the way to the target, or anywhere at all where that is NaN."""
    action = np.zeros((STEPS, 7))
    if np.isnan(reach):
        action[:, :3] = noise.uniform(-0.6, 0.6, (STEPS, 3))
    else:
        action[: round(reach * STEPS), 0] = 0.6
    moved_m: FloatArray = np.vstack([np.zeros((1, 3)), np.cumsum(action[:, :3], axis=0)]) * DISTANCE_M / (0.6 * STEPS)
    target = np.broadcast_to(np.array([DISTANCE_M, 0.0, 0.0]), (STEPS + 1, 1, 3))
    return make_rollout(record, action, moved_m, target)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ScoresWithControls(Scores):
    """Scores with pairs of control rollouts."""

    controls: pa.Table


def _with_controls(scores: Scores, kind: Kind, count: int | None) -> Scores:
    """Its scores with pairs of controls: as under the conflict, or done as the reference is."""
    if kind.answers_controls is None:
        return scores
    controls = scores.pairs.sort_by([("suite", "ascending"), ("base_task", "ascending")]).slice(0, count)
    if not kind.answers_controls:
        for column, value in (("TAR", 1.0), ("Early20_TS", 1.0), ("conflict_success", True)):
            at = controls.column_names.index(column)
            controls = controls.set_column(at, column, pa.array([value] * controls.num_rows))
    parts = {part.name: getattr(scores, part.name) for part in fields(ScoredPairs)}
    return ScoresWithControls(**parts | {"controls": controls})
