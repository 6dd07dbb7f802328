"""The response: its bounds, its ends, that it falls with every sign of persistence, and hand-computed values."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from conflictvla.eval.measures.response import RESPONSE_THRESHOLDS, persistence, response

from .test_measures import measure, resting, straight

SHARE = st.floats(0.0, 1.0)


def one(tar: float, early: float, *, succeeds: bool = False) -> float:
    return float(response(np.array([succeeds]), np.array([tar]), np.array([early]))[0])


@given(SHARE, SHARE, st.booleans())
def test_it_is_within_its_bounds_and_defined_wherever_tar_is(tar: float, early: float, succeeds: bool) -> None:  # noqa: FBT001
    assert 0.0 <= one(tar, early, succeeds=succeeds) <= 1.0


@given(SHARE, SHARE)
def test_a_conflict_rollout_that_completes_the_goal_has_none(tar: float, early: float) -> None:
    assert one(tar, early, succeeds=True) == 0.0


@given(SHARE, SHARE, SHARE, SHARE)
def test_it_never_rises_with_tar_or_early20(tar: float, early: float, other_tar: float, other_early: float) -> None:
    low, high = sorted((tar, other_tar)), sorted((early, other_early))
    assert one(low[0], high[0]) >= one(low[1], high[0]) >= one(low[1], high[1])


@given(SHARE, SHARE)
def test_persistence_is_the_share_of_the_grid_that_both_reach(tar: float, early: float) -> None:
    reached = [tar >= x and early >= y for x in RESPONSE_THRESHOLDS for y in RESPONSE_THRESHOLDS]
    assert persistence(np.array([tar]), np.array([early]))[0] == pytest.approx(np.mean(reached))


@given(st.integers(20, 60), st.floats(0.03, 0.3), st.floats(0.1, 1.0))
def test_a_copy_has_none_and_an_arm_at_rest_has_all(steps: int, covers_m: float, speed: float) -> None:
    reference = straight(steps, covers_m=covers_m, speed=speed)
    copied, rests = measure(reference, reference), measure(reference, resting(steps))
    assert one(copied.tar, copied.early) == 0.0
    assert one(rests.tar, rests.early) == 1.0


def test_half_of_the_way_at_the_same_speed_is_half_a_response() -> None:
    stops = measure(straight(40, covers_m=0.2), straight(40, covers_m=0.1))
    assert one(stops.tar, stops.early) == pytest.approx(0.5)


def test_a_pair_without_tar_has_none_whatever_its_outcome() -> None:
    assert np.isnan([one(np.nan, 1.0), one(np.nan, 1.0, succeeds=True)]).all()
