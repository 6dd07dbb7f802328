"""The measures: hand-computed cases, the protocol's axioms, and agreement with a slow independent implementation."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy.spatial.transform import Rotation

from conflictvla.eval.measures import MEASURES, outcome, process
from conflictvla.eval.statistics.ratio import mean_of_defined
from conflictvla.toolkit.arrays import FloatArray

from . import reference_measures as slow

BOTH = np.array([0], np.int64), np.array([1], np.int64)


@dataclass(frozen=True, kw_only=True)
class Motion:
    """One rollout: actions (H, 7), gripper and targets at steps 0 to H."""

    action: FloatArray
    eef: FloatArray
    targets: FloatArray


@dataclass(frozen=True, kw_only=True)
class Result:
    tar: float
    ts: float
    early: float
    ams: float


def measure(reference: Motion, conflict: Motion) -> Result:
    """All process measures of one pair through the vectorised code, in float32 as they are recorded."""
    both = (reference, conflict)
    action = np.concatenate([motion.action for motion in both]).astype(np.float32)
    offsets = np.concatenate([[0], np.cumsum([len(motion.action) for motion in both])])
    eef = np.concatenate([motion.eef[:-1] for motion in both]).astype(np.float32)
    targets = np.concatenate([motion.targets[:-1].reshape(len(motion.action), -1) for motion in both])
    count = reference.targets.shape[1]
    approach = process.target_approach_m(
        eef,
        targets.astype(np.float32),
        offsets,
        np.array([motion.eef[-1] for motion in both], np.float32).astype(np.float64),
        np.array([motion.targets[-1] for motion in both], np.float32).astype(np.float64),
        np.array([count, count]),
    )
    norm = process.arm_action_norm(action)
    mean = process.mean_action_norm(norm, offsets)
    similarity = process.trajectory_similarity(action, norm, offsets, *BOTH)
    return Result(
        tar=float(process.target_approach_ratio(approach[:1], approach[1:])[0]),
        ts=float(similarity.whole[0]),
        early=float(similarity.early[0]),
        ams=float(process.action_magnitude_suppression(mean[:1], mean[1:])[0]),
    )


def straight(steps: int, *, covers_m: float, distance_m: float = 0.3, speed: float = 0.5) -> Motion:
    """Along +x towards one target, at constant speed."""
    eef = np.linspace(0.0, covers_m, steps + 1)[:, None] * np.array([1.0, 0.0, 0.0])
    action = np.zeros((steps, 7))
    action[:, 0] = speed
    action[:, 6] = 1.0
    targets = np.broadcast_to(np.array([distance_m, 0.0, 0.0]), (steps + 1, 1, 3))
    return Motion(action=action, eef=eef, targets=targets)


def resting(steps: int) -> Motion:
    return straight(steps, covers_m=0.0, speed=0.0)


def actions(values: list[list[float]]) -> FloatArray:
    return np.array([[*row, 0.0, 0.0, 0.0, 0.0, 1.0] for row in values])


def with_actions(action: FloatArray) -> Motion:
    moving = straight(len(action), covers_m=0.2)
    return Motion(action=action, eef=moving.eef, targets=moving.targets)


def test_half_the_approach_is_a_target_approach_ratio_of_one_half() -> None:
    assert measure(straight(40, covers_m=0.2), straight(40, covers_m=0.1)).tar == pytest.approx(0.5, abs=1e-6)


def test_the_state_after_the_last_action_counts_for_the_closest_approach() -> None:
    late = straight(10, covers_m=0.0)
    eef = late.eef.copy()
    eef[-1] = [0.2, 0.0, 0.0]
    conflict = Motion(action=late.action, eef=eef, targets=late.targets)
    assert measure(straight(10, covers_m=0.2), conflict).tar == pytest.approx(1.0, abs=1e-6)


def test_going_closer_than_the_reference_did_is_clipped_to_one() -> None:
    assert measure(straight(40, covers_m=0.1), straight(40, covers_m=0.3)).tar == 1.0


def test_going_away_from_the_target_is_no_approach() -> None:
    assert measure(straight(40, covers_m=0.2), straight(40, covers_m=-0.2)).tar == 0.0


def test_a_target_that_the_reference_hardly_approached_does_not_count() -> None:
    # Approaches in metres: the first target qualifies with 0.10, the second with 0.019 does not.
    assert process.target_approach_ratio(np.array([[0.10, 0.019]]), np.array([[0.05, 0.019]])) == pytest.approx(
        0.5, abs=1e-6
    )


@pytest.mark.parametrize(("approach_m", "counts"), [(0.0199, False), (0.02, True), (0.021, True)])
def test_a_target_counts_from_an_approach_of_two_centimetres(approach_m: float, *, counts: bool) -> None:
    tar = process.target_approach_ratio(np.array([[approach_m]]), np.array([[approach_m]]))[0]
    assert np.isfinite(tar) == counts


def test_two_qualified_targets_are_averaged() -> None:
    # 0.05 / 0.10 and 0.20 / 0.20, so (0.5 + 1) / 2.
    assert process.target_approach_ratio(np.array([[0.10, 0.20]]), np.array([[0.05, 0.20]])) == pytest.approx(
        0.75, abs=1e-6
    )


def test_the_ratio_is_undefined_where_no_target_qualifies() -> None:
    assert math.isnan(process.target_approach_ratio(np.array([[0.019, np.nan]]), np.array([[0.3, np.nan]]))[0])


def test_unused_target_slots_are_not_measured() -> None:
    motion = straight(5, covers_m=0.1)
    slots = np.concatenate([motion.targets, np.zeros_like(motion.targets)], axis=1)
    approach = process.target_approach_m(
        motion.eef[:-1].astype(np.float32),
        slots[:-1].reshape(5, 6).astype(np.float32),
        np.array([0, 5]),
        motion.eef[-1:],
        slots[-1:],
        np.array([1]),
    )
    assert approach[0, 0] == pytest.approx(0.1)
    assert np.isnan(approach[0, 1])


def test_a_moving_target_is_followed_at_its_own_position() -> None:
    # The gripper rests at the origin; the target comes from 0.5 m to 0.2 m and leaves again.
    targets = np.array([[[0.5, 0, 0]], [[0.2, 0, 0]], [[0.4, 0, 0]]])
    motion = Motion(action=np.zeros((2, 7)), eef=np.zeros((3, 3)), targets=targets)
    approach = process.target_approach_m(
        motion.eef[:-1].astype(np.float32),
        targets[:-1].reshape(2, 3).astype(np.float32),
        np.array([0, 2]),
        motion.eef[-1:],
        targets[-1:],
        np.array([1]),
    )
    assert approach[0, 0] == pytest.approx(0.3)


def test_similarity_of_known_angles() -> None:
    # Step cosines: same direction 1, 60 degrees 0.5, opposite -1 clipped to 0, so 1.5 / 3.
    reference = with_actions(actions([[0.5, 0, 0], [0.5, 0, 0], [0.5, 0, 0]]))
    conflict = with_actions(actions([[0.25, 0, 0], [0.25, 0.25 * math.sqrt(3), 0], [-0.5, 0, 0]]))
    assert measure(reference, conflict).ts == pytest.approx(0.5, abs=1e-6)


def test_two_arms_at_rest_are_alike_and_one_at_rest_is_not() -> None:
    # Both rest: 1; only the conflict's rests: 0; only the reference's rests: 0; both move alike: 1.
    reference = with_actions(actions([[0, 0, 0], [0.5, 0, 0], [9e-5, 0, 0], [0.5, 0, 0]]))
    conflict = with_actions(actions([[9e-5, 0, 0], [0, 0, 0], [0.5, 0, 0], [0.5, 0, 0]]))
    assert measure(reference, conflict).ts == pytest.approx(0.5, abs=1e-6)


def test_similarity_is_over_the_shorter_rollout() -> None:
    reference = with_actions(actions([[0.5, 0, 0]] * 4))
    conflict = with_actions(actions([[0.5, 0, 0]] * 2 + [[-0.5, 0, 0]] * 10))
    assert measure(reference, conflict).ts == pytest.approx(0.5, abs=1e-6)


def test_early_similarity_looks_at_the_first_twenty_actions_only() -> None:
    reference = with_actions(actions([[0.5, 0, 0]] * 40))
    conflict = with_actions(actions([[0.5, 0, 0]] * 20 + [[0, 0.5, 0]] * 20))
    result = measure(reference, conflict)
    assert result.early == pytest.approx(1.0, abs=1e-6)
    assert result.ts == pytest.approx(0.5, abs=1e-6)


def test_the_gripper_counts_neither_for_similarity_nor_for_magnitude() -> None:
    reference = with_actions(actions([[0.5, 0, 0]] * 5))
    opened = reference.action.copy()
    opened[:, 6] = -1.0
    result = measure(reference, with_actions(opened))
    assert result.ts == pytest.approx(1.0, abs=1e-6)
    assert result.ams == pytest.approx(0.0, abs=1e-6)


def test_rotation_counts_for_similarity_and_magnitude() -> None:
    # Norms 5 and 3 (in tenths); the cosine is 9 / 15.
    reference = with_actions(np.array([[0.3, 0, 0, 0, 0.4, 0, 1.0]]))
    conflict = with_actions(np.array([[0.3, 0, 0, 0, 0, 0, 1.0]]))
    result = measure(reference, conflict)
    assert result.ts == pytest.approx(0.6, abs=1e-6)
    assert result.ams == pytest.approx(0.4, abs=1e-6)


def test_magnitude_suppression_compares_means_of_different_lengths() -> None:
    assert measure(straight(10, covers_m=0.1, speed=0.8), straight(30, covers_m=0.1, speed=0.2)).ams == pytest.approx(
        0.75, abs=1e-6
    )


def test_moving_more_than_the_reference_is_no_suppression() -> None:
    assert measure(straight(10, covers_m=0.1, speed=0.2), straight(10, covers_m=0.1, speed=0.8)).ams == 0.0


moving_actions = hnp.arrays(np.float32, st.tuples(st.integers(1, 60), st.just(7)), elements=st.floats(-1, 1, width=32))
positions = st.floats(-2, 2, width=32)


@st.composite
def motions(draw: st.DrawFn, targets: int = 2) -> Motion:
    action = draw(moving_actions).astype(np.float64)
    steps = len(action) + 1
    eef = draw(hnp.arrays(np.float32, (steps, 3), elements=positions)).astype(np.float64)
    target = draw(hnp.arrays(np.float32, (steps, targets, 3), elements=positions)).astype(np.float64)
    return Motion(action=action, eef=eef, targets=target)


@st.composite
def clearly_moving(draw: st.DrawFn) -> Motion:
    """Every action has a norm of at least 0.1, and the gripper covers at least 5 cm towards its target."""
    motion = draw(motions(targets=1))
    action = motion.action.copy()
    action[:, 0] = np.where(np.abs(action[:, 0]) < 0.1, 0.1, action[:, 0])
    towards = straight(len(action), covers_m=draw(st.floats(0.05, 0.29)))
    return Motion(action=action, eef=towards.eef, targets=towards.targets)


@given(clearly_moving())
@settings(deadline=None, max_examples=60)
def test_a_moving_rollout_is_wholly_like_itself(motion: Motion) -> None:
    result = measure(motion, motion)
    # Epsilon in the denominators keeps them a hair from the ideal: 1e-8 / 0.01 at the least motion drawn here.
    assert result.tar == pytest.approx(1.0, abs=2e-6)
    assert result.ts == pytest.approx(1.0, abs=2e-6)
    assert result.early == pytest.approx(1.0, abs=2e-6)
    assert result.ams == pytest.approx(0.0, abs=2e-6)


@given(clearly_moving(), st.integers(1, 60))
@settings(deadline=None, max_examples=60)
def test_a_conflict_rollout_that_never_moves_scores_nothing_and_full_suppression(motion: Motion, steps: int) -> None:
    still = resting(steps)
    assert measure(motion, still) == Result(tar=0.0, ts=0.0, early=0.0, ams=1.0)


@given(motions(), motions())
@settings(deadline=None, max_examples=60)
def test_measures_stay_in_range_and_are_defined(reference: Motion, conflict: Motion) -> None:
    result = measure(reference, conflict)
    assert math.isnan(result.tar) or 0.0 <= result.tar <= 1.0
    for value in (result.ts, result.early, result.ams):
        assert 0.0 <= value <= 1.0


@given(motions(), motions(), st.integers(0, 2**32 - 1))
@settings(deadline=None, max_examples=60)
def test_a_common_rotation_of_the_axes_changes_nothing(reference: Motion, conflict: Motion, seed: int) -> None:
    turn = Rotation.random(rng=np.random.default_rng(seed)).as_matrix()

    def turned(motion: Motion) -> Motion:
        action = motion.action.copy()
        action[:, :3], action[:, 3:6] = motion.action[:, :3] @ turn.T, motion.action[:, 3:6] @ turn.T
        return Motion(action=action, eef=motion.eef @ turn.T, targets=motion.targets @ turn.T)

    # Rounding to float32 after the turn may carry a norm or an approach across its threshold; those say nothing here.
    norms = np.linalg.norm(np.concatenate([reference.action, conflict.action])[:, :6], axis=1)
    approaches = [slow.approach(reference.eef.tolist(), reference.targets[:, k].tolist()) for k in range(2)]
    assume(not ((norms > 1e-5) & (norms < 1e-3)).any())
    assume(all(abs(approach - 0.02) > 1e-4 for approach in approaches))
    before, after = measure(reference, conflict), measure(turned(reference), turned(conflict))
    assert after.tar == pytest.approx(before.tar, abs=1e-3, nan_ok=True)
    assert after.ts == pytest.approx(before.ts, abs=1e-5)
    assert after.early == pytest.approx(before.early, abs=1e-5)
    assert after.ams == pytest.approx(before.ams, abs=1e-5)


@given(motions(), motions())
@settings(deadline=None, max_examples=60)
def test_vectorised_measures_agree_with_the_slow_implementation(reference: Motion, conflict: Motion) -> None:
    result = measure(reference, conflict)
    plus, minus = (
        [slow.approach(motion.eef.tolist(), motion.targets[:, k].tolist()) for k in range(2)]
        for motion in (reference, conflict)
    )
    left, right = reference.action.tolist(), conflict.action.tolist()
    assert result.tar == pytest.approx(slow.tar(plus, minus), abs=1e-12, nan_ok=True)
    assert result.ts == pytest.approx(slow.ts(left, right), abs=1e-12)
    assert result.early == pytest.approx(slow.ts(left, right, 20), abs=1e-12)
    assert result.ams == pytest.approx(slow.ams(left, right), abs=1e-12)


def test_many_pairs_in_blocks_agree_with_the_slow_implementation() -> None:
    rng = np.random.default_rng(11)
    lengths = rng.integers(1, 400, 700)
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    action = np.clip(rng.normal(0, 0.4, (offsets[-1], 7)), -1, 1).astype(np.float32)
    action[rng.random(len(action)) < 0.1] = 0.0
    reference, conflict = rng.integers(0, 700, 1500), rng.integers(0, 700, 1500)
    norm = process.arm_action_norm(action)
    similarity = process.trajectory_similarity(action, norm, offsets, reference, conflict)
    for pair in rng.integers(0, 1500, 60):
        left, right = (
            action[offsets[row] : offsets[row + 1]].astype(float).tolist() for row in (reference[pair], conflict[pair])
        )
        assert similarity.whole[pair] == pytest.approx(slow.ts(left, right), abs=1e-12)
        assert similarity.early[pair] == pytest.approx(slow.ts(left, right, 20), abs=1e-12)


def test_refused_arms_rest_until_the_horizon() -> None:
    """What follows a refusal is not recorded, and counts as the zeros it stands for: in either rollout, or in both."""
    rng = np.random.default_rng(5)
    lengths = rng.integers(1, 60, 300)
    refused = rng.random(300) < 0.6
    steps = np.where(refused, lengths + rng.integers(0, 60, 300), lengths)
    motions = [np.clip(rng.normal(0, 0.4, (length, 7)), -1, 1).astype(np.float32) for length in lengths]
    for motion in motions:
        motion[rng.random(len(motion)) < 0.3] = 0.0
    rested = [np.pad(motion, ((0, step - len(motion)), (0, 0))) for motion, step in zip(motions, steps, strict=True)]
    reference, conflict = rng.integers(0, 300, 600), rng.integers(0, 300, 600)

    action, offsets = np.concatenate(motions), np.concatenate([[0], np.cumsum(lengths)])
    norm = process.arm_action_norm(action)
    found = process.trajectory_similarity(action, norm, offsets, reference, conflict, steps)
    mean, stops = process.mean_action_norm(norm, offsets, steps), process.stops_for_good(norm, offsets, steps)
    for pair in range(600):
        left, right = (rested[row].astype(float).tolist() for row in (reference[pair], conflict[pair]))
        assert found.whole[pair] == pytest.approx(slow.ts(left, right), abs=1e-12)
        assert found.early[pair] == pytest.approx(slow.ts(left, right, 20), abs=1e-12)
        ams = process.action_magnitude_suppression(mean[reference[[pair]]], mean[conflict[[pair]]])
        assert ams[0] == pytest.approx(slow.ams(left, right), abs=1e-12)
    whole = np.concatenate([[0], np.cumsum(steps)])
    assert (stops == process.stops_for_good(process.arm_action_norm(np.concatenate(rested)), whole)).all()


def test_stopping_for_good_needs_a_whole_second_at_the_end() -> None:
    norms = [np.ones(30), np.r_[np.ones(10), np.zeros(20)], np.r_[np.ones(11), np.zeros(19)], np.zeros(5), np.ones(5)]
    offsets = np.concatenate([[0], np.cumsum([len(part) for part in norms])])
    assert process.stops_for_good(np.concatenate(norms), offsets).tolist() == [False, True, False, True, False]


def test_persistence_curve_counts_failures_above_both_thresholds() -> None:
    tar, early = np.array([0.9, 0.5, 0.1, np.nan]), np.array([0.8, 0.9, 0.9, 1.0])
    curve = process.persistence_curve(tar, early, np.array([0.0, 0.5, 0.85]))
    # Rows are thresholds for TAR, columns for Early20; the undefined pair is left out of all three.
    assert curve == pytest.approx(np.array([[1, 1, 2 / 3], [2 / 3, 2 / 3, 1 / 3], [1 / 3, 1 / 3, 0]]))


def test_persistence_curve_without_failures_is_undefined() -> None:
    assert np.isnan(process.persistence_curve(np.array([]), np.array([]), np.array([0.5]))).all()


def test_outcome_measures_of_four_pairs() -> None:
    plus, minus = np.array([True, True, True, False]), np.array([True, False, False, True])
    assert outcome.premise_consistent_success_rate(plus).value() == 0.75
    assert outcome.reference_goal_success_rate(minus).value() == 0.5
    assert outcome.success_rate_drop(plus, minus).value() == 0.25
    # Three pairs are qualified, two of them fail under conflict.
    assert outcome.failure_rate(plus, minus).value() == pytest.approx(2 / 3)
    assert outcome.qualified_failures(plus, minus).tolist() == [False, True, True, False]


def test_failure_rate_without_a_qualified_pair_is_undefined() -> None:
    none = np.array([False, False])
    assert math.isnan(outcome.failure_rate(none, none).value())


def test_measures_of_no_pairs_are_undefined() -> None:
    none = np.zeros(0, np.bool_)
    assert math.isnan(outcome.premise_consistent_success_rate(none).value())
    assert math.isnan(mean_of_defined(np.array([np.nan])).value())


def test_undefined_pairs_are_left_out_of_a_mean() -> None:
    assert mean_of_defined(np.array([0.2, np.nan, 0.4])).value() == pytest.approx(0.3)


def test_every_measure_says_which_way_is_better() -> None:
    better_high = {measure.name for measure in MEASURES if measure.higher_is_better}
    assert better_high == {"PCSR", "dSR", "FR", "AMS"}
