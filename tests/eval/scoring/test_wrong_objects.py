"""Approach, contact and grasp of wrong objects: by hand, against a slow reference, and from files old and new."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from conflictvla.builders.rollouts.episode_record import OPTIONAL_COLUMNS
from conflictvla.builders.rollouts.schema import ENTITY_SLOTS, OBJECT_SLOTS, OPTIONAL_FEATURES, Rollout
from conflictvla.eval.measures.wrong_objects import grasp_flags, other_approach, touch_flags
from conflictvla.eval.scores.scores import Scores, read_scores, score
from conflictvla.eval.scoring.supplementary import NO_OBJECTS, NO_OTHER_OBJECT
from conflictvla.toolkit.arrays import FloatArray
from conflictvla.toolkit.records import Arm

from ..measures import reference_measures as slow
from ..synthetic_rollouts import make_record, make_rollout, write_dataset, write_parquet

BOWL, PLATE, MUG = (0.3, 0.0, 0.0), (0.3, 0.2, 0.0), (0.0, 0.4, 0.0)
CABINET = OBJECT_SLOTS


def line(steps: int, end: tuple[float, float, float]) -> FloatArray:
    return np.asarray(np.linspace(0, 1, steps + 1)[:, None] * np.array(end))


def approach_of(reference: FloatArray, conflict: FloatArray, objects: FloatArray, other: list[bool]) -> float:
    """OA of one pair whose objects, shape (K, 3), stand still."""
    paths = [reference, conflict]
    offsets = np.cumsum([0, *(len(path) - 1 for path in paths)])
    frames = np.concatenate([path[:-1] for path in paths]).astype(np.float32)
    still = np.tile(objects.ravel(), (offsets[-1], 1)).astype(np.float32)
    finals = np.stack([path[-1] for path in paths])
    mask = np.array([other, other])
    places = (frames, still, offsets, finals, np.stack([objects, objects]), mask)
    return float(other_approach(*places, np.array([0]), np.array([1]))[0])


def test_going_three_quarters_of_the_way_to_a_mug_instead_of_the_bowl() -> None:
    to_bowl, to_mug = line(40, BOWL), line(40, (0.0, 0.3, 0.0))
    objects = np.array([BOWL, MUG])
    assert approach_of(to_bowl, to_mug, objects, [False, True]) == pytest.approx(0.75, abs=1e-6)
    # The bowl is the goal's own, however near the gripper comes.
    assert approach_of(to_mug, to_bowl, objects, [False, True]) == 0.0
    assert math.isnan(approach_of(to_bowl, to_mug, objects, [False, False]))


def test_passing_by_as_near_as_the_reference_rollout_did_is_no_approach() -> None:
    # The reference rollout comes to 0.2 m from the mug on its way; the conflict rollout to 0.1 m; it stands 0.5 m off.
    mug = np.array([[0.0, 0.5, 0.0]])
    to_there, further = line(40, (0.0, 0.3, 0.0)), line(40, (0.0, 0.4, 0.0))
    assert approach_of(to_there, further, mug, [True]) == pytest.approx(0.2, abs=1e-6)
    assert approach_of(further, to_there, mug, [True]) == 0.0


def contact_rows(*runs: tuple[int, float]) -> FloatArray:
    """Contact of the first object: runs of a length and a value."""
    column = np.concatenate([np.full(length, value) for length, value in runs])
    return np.asarray(column[:, None] * np.eye(1, ENTITY_SLOTS))


@pytest.mark.parametrize(
    ("rows", "found"),
    [
        (contact_rows((5, 0), (10, 2), (5, 0)), True),
        (contact_rows((5, 0), (9, 2), (1, 1), (9, 2)), False),
        (contact_rows((30, 1)), False),
        (contact_rows((10, 2)), True),
    ],
    ids=["ten steps", "nine and nine", "one finger", "from the start to the end"],
)
def test_a_grasp_lasts_ten_steps(rows: FloatArray, *, found: bool) -> None:
    assert bool(grasp_flags(rows.astype(np.float32), np.array([0, len(rows)]))[0, 0]) == found


def test_a_run_over_the_end_of_a_rollout_is_two() -> None:
    rows = contact_rows((5, 0), (7, 2), (7, 2), (5, 0)).astype(np.float32)
    assert not grasp_flags(rows, np.array([0, 12, 24])).any()
    assert touch_flags(rows, np.array([0, 12, 24]), np.zeros((2, ENTITY_SLOTS)))[:, 0].tolist() == [True, True]


def test_contact_after_the_last_action_counts() -> None:
    final = np.zeros((1, ENTITY_SLOTS))
    final[0, 3] = 1.0
    assert np.flatnonzero(touch_flags(np.zeros((4, ENTITY_SLOTS), np.float32), np.array([0, 4]), final)).tolist() == [3]


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 2**32 - 1))
def test_it_agrees_with_the_slow_reference_and_its_axioms_hold(seed: int) -> None:
    rng = np.random.default_rng(seed)
    lengths = rng.integers(1, 50, 2)
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    objects = int(rng.integers(1, 4))
    start = rng.normal(0, 0.3, (objects, 3))
    eef, moved = (
        [np.cumsum(rng.normal(0, 0.02, (steps + 1, *shape)), axis=0).astype(np.float32) for steps in lengths]
        for shape in ((3,), (objects, 3))
    )
    eef = [path - path[0] for path in eef]
    places = [(path - path[0] + start).astype(np.float32) for path in moved]
    other = rng.random(objects) < 0.7

    def found(reference: int, conflict: int) -> float:
        return float(
            other_approach(
                np.concatenate([path[:-1] for path in eef]),
                np.concatenate([place[:-1].reshape(len(place) - 1, -1) for place in places]),
                offsets,
                np.stack([path[-1] for path in eef]).astype(np.float64),
                np.stack([place[-1] for place in places]).astype(np.float64),
                np.stack([other, other]),
                np.array([reference]),
                np.array([conflict]),
            )[0]
        )

    motions = [
        (path.astype(float).tolist(), [place[:, k].astype(float).tolist() for k in np.flatnonzero(other)])
        for path, place in zip(eef, places, strict=True)
    ]
    assert found(0, 1) == pytest.approx(slow.other_approach(*motions), abs=1e-12, nan_ok=True)
    if other.any():
        assert 0.0 <= found(0, 1) <= 1.0
        assert found(1, 1) == 0.0
    contact = rng.choice([0.0, 1.0, 2.0], (12, ENTITY_SLOTS), p=[0.1, 0.1, 0.8]).repeat(6, axis=0).astype(np.float32)
    names = [str(k) for k in range(ENTITY_SLOTS)]
    grasps = grasp_flags(contact, np.array([0, len(contact)]))[0]
    for k, name in enumerate(names):
        assert grasps[k] == slow.grasps_other(contact[:, k : k + 1].tolist(), [name], [])


def pair(*, contact: FloatArray | None = None, **changes: Any) -> list[Rollout]:
    """A reference rollout that reaches the bowl, and a conflict rollout that goes to the mug."""
    action = np.tile([0.5, 0, 0, 0, 0, 0, 1.0], (40, 1))
    objects = np.tile(np.array([BOWL, PLATE, MUG]), (41, 1, 1))
    made = partial(make_rollout, action=action, target_pos_m=objects[:, :1], object_pos_m=objects)
    reference, conflict = (make_record(arm=arm, **changes) for arm in (Arm.REFERENCE, Arm.CONFLICT))
    return [
        made(reference, eef_pos_m=line(40, BOWL)),
        made(conflict, eef_pos_m=line(40, (0.0, 0.3, 0.0)), gripper_contact=contact),
    ]


def scored(folder: Path, rollouts: list[Rollout]) -> dict[str, Any]:
    scores = score(write_dataset(folder / "persist", rollouts), supplementary=True)
    row: dict[str, Any] = scores.pairs.to_pylist()[0]
    return row | {"undefined": scores.table("undefined").to_pylist()}


def test_a_mug_is_grasped_and_a_cabinet_touched(tmp_path: Path) -> None:
    contact = np.zeros((41, ENTITY_SLOTS))
    contact[20:35, 2] = 2.0  # the mug
    contact[:, 1] = 1.0  # the plate belongs to the goal
    contact[40, CABINET] = 1.0
    row = scored(tmp_path, pair(contact=contact))
    assert row["other_approach"] == pytest.approx(0.75, abs=1e-6)
    assert (row["conflict_touches_other"], row["reference_touches_other"]) == (1.0, 0.0)
    assert (row["conflict_grasps_other"], row["reference_grasps_other"]) == (1.0, 0.0)
    assert row["conflict_touched"] == "mug_1 (grasped), cabinet_1"
    assert row["undefined"] == []


def test_the_goals_own_destination_is_not_to_be_grasped_either(tmp_path: Path) -> None:
    contact = np.zeros((41, ENTITY_SLOTS))
    contact[10:25, 1] = 2.0
    row = scored(tmp_path, pair(contact=contact))
    assert (row["conflict_touches_other"], row["conflict_grasps_other"]) == (0.0, 1.0)
    assert row["conflict_touched"] == "plate_1 (grasped)"


def test_a_scene_without_other_objects_says_so(tmp_path: Path) -> None:
    row = scored(tmp_path, pair(goal_entities=("bowl_1", "plate_1", "mug_1")))
    assert math.isnan(row["other_approach"])
    assert row["other_approach_undefined"] == NO_OTHER_OBJECT
    assert (row["conflict_touches_other"], row["conflict_touched"]) == (0.0, "")
    assert [(entry["measure"], entry["n"]) for entry in row["undefined"]] == [("other_approach", 1)]


def test_a_recording_without_objects_is_scored_and_says_what_it_lacks(tmp_path: Path) -> None:
    folder = write_dataset(tmp_path / "persist", pair())
    before = score(folder)
    for file, names in (("data", OPTIONAL_FEATURES), ("meta/episodes", OPTIONAL_COLUMNS)):
        (path,) = (folder / file).rglob("*.parquet")
        write_parquet(path, pq.read_table(path).drop_columns(list(names)))
    scores = score(folder, supplementary=True)
    assert json.loads(scores.to_json())["tables"] == json.loads(before.to_json())["tables"]
    recorded_less = scores.provenance.rollouts_sha256  # the hash is over all that was recorded
    assert scores.provenance == replace(before.provenance, rollouts_sha256=recorded_less)
    (row,) = scores.pairs.to_pylist()
    for name in ("other_approach", "conflict_touches_other", "reference_grasps_other"):
        assert math.isnan(row[name])
    assert row["conflict_touched"] is None
    assert {(entry["measure"], entry["reason"]) for entry in scores.table("undefined").to_pylist()} == {
        (name, NO_OBJECTS) for name in ("other_approach", "touches_other", "grasps_other")
    }
    back: Scores = read_scores(scores.write(tmp_path / "scores.json"))
    assert back.to_json() == scores.to_json()
