"""Refusals as detection, by hand: both kinds together and each apart, references once a pair, controls beside them."""

from __future__ import annotations

import math
from collections.abc import Sequence

import pyarrow as pa
import pytest

from conflictvla.builders.rollouts.episode_record import PROBES
from conflictvla.eval.analyses.tables.detection import detection_table

CONFLICT = ["refusal", None, "question", None]
REFERENCE = [None, None, "question", "question"]
STEPS = [0, None, 10, None]
NOBODY = [None] * 4


def references(*refusals: str | None) -> pa.Table:
    tasks = ["stove", "rack"][: len(refusals)]
    fixed = {"policy": "vla", "prompt": "P0", "suite": "libero_goal", **PROBES}
    columns = {name: pa.array([value] * len(tasks), pa.string()) for name, value in fixed.items()}
    return pa.table({**columns, "base_task": pa.array(tasks), "refusal": pa.array(list(refusals), pa.string())})


def pairs(conflict: Sequence[str | None], reference: Sequence[str | None], steps: Sequence[int | None]) -> pa.Table:
    return pa.table(
        {
            "policy": ["vla"] * 4,
            "prompt": ["P0"] * 4,
            "suite": ["libero_goal"] * 4,
            "base_task": ["stove", "stove", "rack", "rack"],
            "reference_rollout": ["stove", "stove", "rack", "rack"],
            "conflict_refusal": pa.array(conflict, pa.string()),
            "reference_refusal": pa.array(reference, pa.string()),
            "conflict_refusal_step": pa.array(steps, pa.int64()),
        }
    )


NONE = pairs(NOBODY, NOBODY, NOBODY).slice(0, 0)


def found(pairs: pa.Table, controls: pa.Table = NONE, of_references: pa.Table | None = None) -> pa.Table:
    return detection_table(pairs, controls, references() if of_references is None else of_references)


@pytest.mark.parametrize(
    ("kind", "conflict", "reference", "accuracy", "steps", "refused"),
    [
        ("either", 0.5, 0.5, 0.5, 5.0, 2),
        ("refusal", 0.25, 0.0, 0.625, 0.0, 1),
        ("question", 0.25, 0.5, 0.375, 10.0, 1),
    ],
)
def test_each_kind_is_counted_apart_and_both_together(
    kind: str, conflict: float, reference: float, accuracy: float, steps: float, refused: int
) -> None:
    (row,) = (r for r in found(pairs(CONFLICT, REFERENCE, STEPS)).to_pylist() if r["kind"] == kind)
    assert (row["conflict"], row["reference"], row["balanced_accuracy"]) == (conflict, reference, accuracy)
    assert (row["mean_step"], row["median_step"], row["refused"]) == (steps, steps, refused)
    assert (row["n"], row["references"], row["controls"]) == (4, 2, 0)
    assert row["balanced_accuracy_lo"] < accuracy < row["balanced_accuracy_hi"]
    assert math.isnan(row["control"])


def test_controls_refused_stand_beside_the_references() -> None:
    controls = pairs(["question", "question", "question", None], REFERENCE, [0, 0, 0, None])
    table = found(pairs(CONFLICT, REFERENCE, STEPS), controls)
    counted = {row["kind"]: (row["control"], row["controls"]) for row in table.to_pylist()}
    assert counted == {"either": (0.75, 4), "refusal": (0.0, 4), "question": (0.75, 4)}


def test_a_policy_that_refuses_nothing_has_no_row() -> None:
    assert found(pairs(NOBODY, NOBODY, NOBODY)).num_rows == 0
    assert found(NONE).num_rows == 0


def test_false_alarms_show_without_a_conflict_rollout() -> None:
    rows = found(NONE, of_references=references("question", None)).to_pylist()
    assert [(row["kind"], row["reference"], row["n"], row["references"]) for row in rows] == [
        ("either", 0.5, 0, 2),
        ("question", 0.5, 0, 2),
    ]
    assert all(math.isnan(row[name]) for row in rows for name in ("conflict", "balanced_accuracy", "control"))
    controls = pairs(["refusal", None, None, None], NOBODY, [0, None, None, None])
    (row, _) = found(NONE, controls, references(None, None)).to_pylist()
    assert (row["reference"], row["control"], row["controls"]) == (0.0, 0.25, 4)
