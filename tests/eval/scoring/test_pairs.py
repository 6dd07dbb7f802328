"""Pairing: what belongs together is paired once, and every field that differs is refused by its name."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from conflictvla.builders.rollouts.episode_record import EpisodeRecord
from conflictvla.builders.rollouts.schema import Rollout
from conflictvla.eval.recordings.reading import read_rollouts
from conflictvla.eval.recordings.rollout_set import RolloutSet
from conflictvla.eval.scoring.pair_table import score_pairs
from conflictvla.eval.scoring.pairs import MUST_AGREE, Pairing, pair_rollouts
from conflictvla.toolkit.records import PROTOCOL_VERSION, Arm, LanguageProbe, Prompt, VisualProbe

from ..synthetic_rollouts import make_record, make_rollout, reaching_rollout, sha256, small_evaluation, write_dataset

OTHER_VALUES: dict[str, Any] = {
    "policy_revision": "r2",
    "policy_settings": '{"replan_steps": 5}',
    "seed": 8,
    "prompt_version": "1.1",
    "language_probe": LanguageProbe.W2,
    "visual_settings": '{"brightness": 1.2}',
    "suite": "libero_10",
    "base_task": "turn_on_the_stove",
    "base_task_index": 3,
    "targets": ("bowl", "plate"),
    "scene_sha256": sha256("another fixture pose"),
    "settled_state_sha256": sha256("another settled state"),
    "protocol_version": "1.1",
    "tasks_version": "1.0.1",
    "schema_version": "2.1",
    "conflictvla_version": "0.2.0",
    "libero_distribution": "hf-libero 0.1.3",
    "mujoco_version": "3.3.0",
    "robosuite_version": "1.4.1",
    "numpy_version": "2.1.0",
}


def refused_fields(pairing: Pairing) -> dict[str, int]:
    """How many conflict rollouts each field refused."""
    return dict(Counter(refusal.field for refusal in pairing.refusals))


def rollout(record: EpisodeRecord) -> Rollout:
    made = reaching_rollout(record, np.random.default_rng(1), steps=6)
    # The record's own targets, where a test has changed them.
    targets = record.targets if len(record.targets) > 1 else made.episode.targets
    return replace(made, episode=replace(made.episode, targets=targets))


def read(tmp_path: Path, records: list[EpisodeRecord]) -> RolloutSet:
    return read_rollouts(write_dataset(tmp_path / "set", [rollout(record) for record in records]))


def pairing(tmp_path: Path, *records: EpisodeRecord) -> Pairing:
    return pair_rollouts(read(tmp_path, list(records)))


def test_a_conflict_rollout_is_paired_with_its_reference(tmp_path: Path) -> None:
    found = pairing(tmp_path, make_record(arm=Arm.CONFLICT), make_record())
    assert (found.reference.tolist(), found.conflict.tolist()) == ([1], [0])
    assert found.refusals == ()


def test_one_reference_rollout_serves_many_pairs(tmp_path: Path) -> None:
    cases = [make_record(arm=Arm.CONFLICT, case=case) for case in range(3)]
    found = pairing(tmp_path, make_record(), *cases)
    assert found.reference.tolist() == [0, 0, 0]
    assert sorted(found.conflict.tolist()) == [1, 2, 3]


def test_rollouts_under_another_visual_probe_are_other_pairs(tmp_path: Path) -> None:
    probes = (VisualProbe.V0, VisualProbe.V3)
    records = [
        make_record(arm=arm, visual_probe=probe, rollout_id=f"persist/{arm}/{probe}")
        for probe in probes
        for arm in (Arm.REFERENCE, Arm.CONFLICT)
    ]
    rollouts = read(tmp_path, records)
    found = pair_rollouts(rollouts)
    assert len(found) == 2
    values = rollouts.column("visual_probe")
    assert values[found.reference].tolist() == values[found.conflict].tolist() == ["V0", "V3"]


def test_init_state_prompt_and_policy_keep_pairs_apart(tmp_path: Path) -> None:
    places: list[dict[str, Any]] = [{}, {"init_state": 1}, {"prompt": Prompt.P1}, {"policy": "stop"}]
    records = [make_record(arm=arm, **place) for place in places for arm in (Arm.REFERENCE, Arm.CONFLICT)]
    rollouts = read(tmp_path, records)
    found = pair_rollouts(rollouts)
    assert len(found) == 4
    for name in ("init_state", "prompt", "policy_name", "pair_id"):
        values = rollouts.column(name)
        assert values[found.reference].tolist() == values[found.conflict].tolist()


def test_pairs_do_not_depend_on_how_rollouts_are_stored(tmp_path: Path) -> None:
    made = small_evaluation()
    forwards = read_rollouts(write_dataset(tmp_path / "a", made))
    backwards = read_rollouts(write_dataset(tmp_path / "b", made[::-1]))
    ids = [
        [rollouts.column("rollout_id")[rows].tolist() for rows in (found.reference, found.conflict)]
        for rollouts, found in ((forwards, pair_rollouts(forwards)), (backwards, pair_rollouts(backwards)))
    ]
    assert ids[0] == ids[1]


def test_the_cases_below_cover_every_field_that_must_agree() -> None:
    # Two prompts of one pair_id are covered by a test of their own.
    assert {*OTHER_VALUES, "prompt"} == set(MUST_AGREE)


@pytest.mark.parametrize("field", OTHER_VALUES)
def test_a_pair_that_disagrees_is_refused_by_the_name_of_the_field(tmp_path: Path, field: str) -> None:
    reference = make_record()
    conflict = replace(make_record(arm=Arm.CONFLICT), **{field: OTHER_VALUES[field]})
    rollouts = read(tmp_path, [reference, conflict])
    found = pair_rollouts(rollouts)
    assert len(found) == 0
    (refusal,) = found.refusals
    assert refusal.field == field
    assert refusal.rollout_id == conflict.rollout_id
    values = rollouts.episodes[field].to_pylist()
    assert (refusal.reference, refusal.conflict) == (str(values[0]), str(values[1]))
    assert refused_fields(found) == {field: 1}
    assert found.unused_references == 1
    assert f"{field}: reference has" in str(refusal)


def test_a_conflict_of_more_steps_has_a_longer_horizon_and_is_measured_over_what_both_did(tmp_path: Path) -> None:
    """The reference ends at its horizon of 4, the conflict, which does the same and goes on, at 8."""
    rng = np.random.default_rng(2)
    action, eef = rng.uniform(-1.0, 1.0, (8, 7)), rng.normal(size=(9, 3))
    target = np.zeros((9, 1, 3))
    reference = make_rollout(make_record(horizon=4), action[:4], eef[:5], target[:5])
    conflict = make_rollout(make_record(arm=Arm.CONFLICT, horizon=8), action, eef, target)
    rollouts = read_rollouts(write_dataset(tmp_path / "set", [reference, conflict]))

    found = pair_rollouts(rollouts)
    assert (len(found), found.refusals) == (1, ())
    (pair,) = score_pairs(rollouts, found).to_pylist()

    assert (pair["reference_steps"], pair["conflict_steps"]) == (4, 8)
    assert pair["TS"] == pytest.approx(1.0)
    assert pair["Early20_TS"] == pytest.approx(1.0)
    mean = [np.linalg.norm(action[:steps, :6].astype(np.float32), axis=1).mean() for steps in (4, 8)]
    assert pair["AMS"] == pytest.approx(max(0.0, 1.0 - mean[1] / mean[0]))


def test_a_reference_under_the_other_prompt_is_refused(tmp_path: Path) -> None:
    reference = make_record(prompt=Prompt.P1)
    conflict = make_record(arm=Arm.CONFLICT, pair_id=reference.pair_id)
    (refusal,) = pairing(tmp_path, reference, conflict).refusals
    assert (refusal.field, refusal.reference, refusal.conflict) == ("prompt", "P1", "P0")


def test_a_pair_with_one_and_the_same_prompt_is_refused(tmp_path: Path) -> None:
    reference = make_record()
    masked: dict[str, Any] = {"prompt_text": reference.prompt_text, "prompt_sha256": reference.prompt_sha256}
    conflicts = [make_record(arm=Arm.CONFLICT, case=0, **masked), make_record(arm=Arm.CONFLICT, case=1)]
    found = pairing(tmp_path, reference, *conflicts)
    assert found.conflict.tolist() == [2]
    (refusal,) = found.refusals
    assert (refusal.rollout_id, refusal.field) == (conflicts[0].rollout_id, "same prompt as the reference rollout")
    said = "same prompt as the reference rollout for 'put the bowl on the plate'"
    assert str(refusal) == f"{conflicts[0].rollout_id}: {said}"


def test_a_conflict_rollout_without_a_reference_is_refused(tmp_path: Path) -> None:
    found = pairing(tmp_path, make_record(init_state=1), make_record(arm=Arm.CONFLICT))
    (refusal,) = found.refusals
    assert refusal.field == "no reference rollout"
    assert str(refusal).endswith(
        "no reference rollout for libero_goal/put_the_bowl_on_the_plate/reference/P0 in init state 0"
    )


def test_no_reference_rollouts_at_all(tmp_path: Path) -> None:
    found = pairing(tmp_path, make_record(arm=Arm.CONFLICT))
    assert refused_fields(found) == {"no reference rollout": 1}


def test_references_alone_make_no_pairs(tmp_path: Path) -> None:
    found = pairing(tmp_path, make_record())
    assert (len(found), found.refusals, found.unused_references) == (0, (), 1)


def test_two_references_of_one_run_are_refused(tmp_path: Path) -> None:
    again = make_record(rollout_id="again")
    found = pairing(tmp_path, make_record(), again, make_record(arm=Arm.CONFLICT))
    assert refused_fields(found) == {"duplicate reference rollout": 1}


def test_a_conflict_rollout_recorded_twice_is_refused_both_times(tmp_path: Path) -> None:
    conflict = make_record(arm=Arm.CONFLICT)
    found = pairing(tmp_path, make_record(), conflict, replace(conflict, rollout_id="again"))
    assert refused_fields(found) == {"duplicate conflict rollout": 2}


def test_repeated_runs_are_paired_by_seed_and_revision(tmp_path: Path) -> None:
    runs: list[dict[str, Any]] = [{"seed": 1}, {"seed": 2}, {"seed": 1, "policy_revision": "r2"}]
    records = [
        make_record(arm=arm, **run, rollout_id=f"{arm}-{number}")
        for number, run in enumerate(runs)
        for arm in (Arm.REFERENCE, Arm.CONFLICT)
    ]
    rollouts = read(tmp_path, records)
    found = pair_rollouts(rollouts)
    assert len(found) == 3
    for name in ("seed", "policy_revision"):
        values = rollouts.column(name)
        assert values[found.reference].tolist() == values[found.conflict].tolist()


def test_a_run_without_a_reference_of_its_own_is_refused_by_what_differs(tmp_path: Path) -> None:
    references = [make_record(seed=seed, rollout_id=f"reference-{seed}") for seed in (1, 2)]
    (refusal,) = pairing(tmp_path, *references, make_record(arm=Arm.CONFLICT, seed=3)).refusals
    assert (refusal.field, refusal.conflict) == ("seed", "3")


@pytest.mark.parametrize("failing", [Arm.REFERENCE, Arm.CONFLICT])
def test_a_rollout_that_the_policy_broke_off_is_refused(tmp_path: Path, failing: Arm) -> None:
    records = [
        make_record(arm=arm, end="policy_error" if arm is failing else "horizon")
        for arm in (Arm.REFERENCE, Arm.CONFLICT)
    ]
    (refusal,) = pairing(tmp_path, *records).refusals
    assert refusal.field == "end"
    assert "policy_error" in str(refusal)


def test_control_rollouts_are_paired_with_the_same_references_apart_from_conflicts(tmp_path: Path) -> None:
    cases = [make_record(arm=arm, case=case) for case in range(2) for arm in (Arm.CONFLICT, Arm.CONTROL)]
    rollouts = read(tmp_path, [make_record(), *cases])
    conflicts, controls = (pair_rollouts(rollouts, arm) for arm in (Arm.CONFLICT, Arm.CONTROL))
    assert conflicts.reference.tolist() == controls.reference.tolist() == [0, 0]
    for found, arm in ((conflicts, "conflict"), (controls, "control")):
        assert rollouts.column("arm")[found.conflict].tolist() == [arm, arm]
        assert rollouts.column("case_id")[found.conflict].tolist() == [cases[0].case_id, cases[2].case_id]


def test_refused_control_rollouts_are_named_as_such(tmp_path: Path) -> None:
    other, repeated = make_record(arm=Arm.CONTROL, mujoco_version="3.3.0"), make_record(arm=Arm.CONTROL, case=1)
    rollouts = read(tmp_path, [make_record(), other, repeated, replace(repeated, rollout_id="repeated")])
    refused = {refusal.rollout_id: refusal for refusal in pair_rollouts(rollouts, Arm.CONTROL).refusals}
    assert str(refused[other.rollout_id]).endswith("mujoco_version: reference has 3.2.3, control has 3.3.0")
    assert refused["repeated"].field == refused[repeated.rollout_id].field == "duplicate control rollout"
    assert str(refused["repeated"]).endswith(f"for {repeated.instance_id} in init state 0")
    assert pair_rollouts(rollouts).refusals == ()


def test_rollouts_of_another_protocol_are_refused(tmp_path: Path) -> None:
    records = [make_record(arm=arm, protocol_version="0.9") for arm in (Arm.REFERENCE, Arm.CONFLICT)]
    (refusal,) = pairing(tmp_path, *records).refusals
    assert refusal.field == "protocol_version"
    assert f"measures are of protocol {PROTOCOL_VERSION}" in str(refusal)
