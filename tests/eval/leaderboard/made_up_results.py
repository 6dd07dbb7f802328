"""Results files with made-up numbers, for tests of the leaderboard alone."""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from conflictvla.eval.rollouts.versions import installed_versions
from conflictvla.eval.scores.scores import score
from conflictvla.eval.statistics.intervals import Interval
from conflictvla.eval.submissions.coverage import COMPLETE, Coverage
from conflictvla.eval.submissions.results import RESULTS_VERSION, Result, ResultRow, Verification, result_of
from conflictvla.eval.submissions.results_file import result_json, verification_json

from ..synthetic_rollouts import small_evaluation, write_dataset


@functools.cache
def pattern(folder: Path) -> Result:
    """A results file as scoring gives it, for its rows of every prompt condition, family and level."""
    scores = score(write_dataset(folder / "rollouts", small_evaluation()))
    coverage = Coverage(kind=COMPLETE, rollouts=14_530, of=14_530)
    return result_of(scores, coverage=coverage, repo_id="ann/rollouts", commit="a" * 40)


def made_up(folder: Path, name: str, rng: np.random.Generator) -> Result:
    def figure() -> Interval:
        value = round(float(rng.uniform(0.2, 0.8)), 4)
        return Interval(value=value, low=round(value - 0.1, 4), high=round(value + 0.1, 4))

    def row(like: ResultRow) -> ResultRow:
        return replace(like, measures={measure: figure() for measure in like.measures}, response=figure())

    base = pattern(folder)
    rows = tuple(row(one) for one in base.rows)
    digest = hashlib.sha256(name.encode()).hexdigest()
    return replace(base, policy_name=name, rollouts_sha256=digest, rows=rows)


def write_board(folder: Path, names: Sequence[str], verified: Sequence[str] = ()) -> Path:
    """A leaderboard's folder with an entry for each name; for some with the mark that it was verified."""
    rng = np.random.default_rng(1)
    for part in ("results", "verified"):
        (folder / part).mkdir(parents=True)
    for name in names:
        result = made_up(folder, name, rng)
        file = folder / "results" / result.file_name
        file.write_text(result_json(result), encoding="utf-8")
        if name in verified:
            mark = Verification(
                results_version=RESULTS_VERSION,
                result_sha256=hashlib.sha256(file.read_bytes()).hexdigest(),
                rollouts_sha256=result.rollouts_sha256,
                replayed=50,
                seed=11,
                mujoco_version=installed_versions().mujoco,
                problems=0,
            )
            (folder / "verified" / result.file_name).write_text(verification_json(mark), encoding="utf-8")
    return folder
