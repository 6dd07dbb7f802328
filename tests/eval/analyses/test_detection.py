"""Refusals as detection, by hand: both kinds together and each apart, references once a pair, controls beside them."""

from __future__ import annotations

import math
from collections.abc import Sequence

import pyarrow as pa
import pytest

from conflictvla.eval.analyses.tables.detection import detection_table

CONFLICT = ["refusal", None, "question", None]
REFERENCE = [None, None, "question", "question"]
STEPS = [0, None, 10, None]


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
    (row,) = (r for r in detection_table(pairs(CONFLICT, REFERENCE, STEPS)).to_pylist() if r["kind"] == kind)
    assert (row["conflict"], row["reference"], row["balanced_accuracy"]) == (conflict, reference, accuracy)
    assert (row["mean_step"], row["median_step"], row["refused"]) == (steps, steps, refused)
    assert (row["n"], row["references"], row["controls"]) == (4, 2, 0)
    assert row["balanced_accuracy_lo"] < accuracy < row["balanced_accuracy_hi"]
    assert math.isnan(row["control"])


def test_controls_refused_stand_beside_the_references() -> None:
    controls = pairs(["question", "question", "question", None], REFERENCE, [0, 0, 0, None])
    table = detection_table(pairs(CONFLICT, REFERENCE, STEPS), controls)
    found = {row["kind"]: (row["control"], row["controls"]) for row in table.to_pylist()}
    assert found == {"either": (0.75, 4), "refusal": (0.0, 4), "question": (0.75, 4)}


def test_a_policy_that_refuses_nothing_has_no_row() -> None:
    assert detection_table(pairs([None] * 4, [None] * 4, [None] * 4)).num_rows == 0
    assert detection_table(pairs(CONFLICT, REFERENCE, STEPS).slice(0, 0)).num_rows == 0
