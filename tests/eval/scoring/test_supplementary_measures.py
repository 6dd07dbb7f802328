"""Supplementary measures: by hand, against a slow reference, and their axioms."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from conflictvla.eval.measures.divergence import first_divergence_step
from conflictvla.eval.measures.holding import carries_other
from conflictvla.eval.measures.paths import GripperPaths, gripper_paths
from conflictvla.eval.measures.position import position_similarity
from conflictvla.eval.measures.warping import warping_similarity
from conflictvla.toolkit.arrays import Float32Array, FloatArray

from ..measures import reference_measures as slow

MEASURES = {
    "position": (position_similarity, slow.position_similarity),
    "warping": (warping_similarity, slow.warping_similarity),
    "divergence": (first_divergence_step, slow.divergence_step),
}


def paths_of(*paths: FloatArray) -> GripperPaths:
    offsets = np.cumsum([0, *(len(path) - 1 for path in paths)])
    frames = np.concatenate([path[:-1] for path in paths]).astype(np.float32)
    return gripper_paths(frames, offsets, np.stack([path[-1] for path in paths]))


def line(steps: int, end: tuple[float, float, float], start: tuple[float, float, float] = (0, 0, 0)) -> FloatArray:
    """A gripper path at steps 0 to ``steps``, at constant speed."""
    return np.asarray(np.array(start) + np.linspace(0, 1, steps + 1)[:, None] * (np.array(end) - np.array(start)))


def of_pair(name: str, reference: FloatArray, conflict: FloatArray) -> float:
    fast, _ = MEASURES[name]
    return float(fast(paths_of(reference, conflict), np.array([0]), np.array([1]))[0])


def random_path(rng: np.random.Generator) -> FloatArray:
    steps = int(rng.integers(1, 60))
    # As recorded: float32.
    return np.cumsum(rng.normal(0, 0.01, (steps + 1, 3)), axis=0).astype(np.float32).astype(np.float64)


def test_half_as_far_at_every_step_is_a_position_similarity_of_one_half() -> None:
    assert of_pair("position", line(40, (0.4, 0, 0)), line(40, (0.2, 0, 0))) == pytest.approx(0.5, abs=1e-6)


def test_a_path_at_60_degrees_is_a_position_similarity_of_one_half() -> None:
    turned = line(40, (0.2, 0.2 * math.sqrt(3), 0))
    assert of_pair("position", line(40, (0.4, 0, 0)), turned) == pytest.approx(0.5, abs=1e-6)


def test_the_other_way_is_no_similarity() -> None:
    for name in ("position", "warping"):
        assert of_pair(name, line(40, (0.4, 0, 0)), line(40, (-0.4, 0, 0))) == 0.0


def test_displacements_count_and_not_places() -> None:
    moved = line(40, (1.4, 1, 1), start=(1, 1, 1))
    assert of_pair("position", line(40, (0.4, 0, 0)), moved) == pytest.approx(1.0, abs=1e-6)
    assert of_pair("warping", line(40, (0.4, 0, 0)), moved) == pytest.approx(1.0, abs=1e-5)


def test_half_the_pace_is_the_same_path_to_warping_alone() -> None:
    # At half the pace every other sampled point falls on one of the reference rollout's, the rest halfway between.
    fast, slower = line(40, (0.4, 0, 0)), line(80, (0.4, 0, 0))
    assert of_pair("position", fast, slower) == pytest.approx(0.5, abs=1e-6)
    # Sampled: 11 points 4 cm apart against 21 points 2 cm apart. Ten of them are 2 cm off; the scale is 0.04 * 55.
    assert of_pair("warping", fast, slower) == pytest.approx(1 - 10 * 0.02 / 2.2, abs=1e-6)


def test_divergence_by_hand() -> None:
    # 1 cm a step against none: at step 2 they are 2 cm apart, at step 3 more than that.
    assert of_pair("divergence", line(40, (0.4, 0, 0)), line(40, (0, 0, 0))) == 3.0
    # A rollout of two actions ends before they part.
    assert math.isnan(of_pair("divergence", line(40, (0.4, 0, 0)), line(2, (0, 0, 0))))
    assert math.isnan(of_pair("divergence", line(40, (0.4, 0, 0)), line(40, (0.41, 0, 0))))


@pytest.mark.parametrize("name", MEASURES)
def test_it_agrees_with_the_slow_reference(name: str) -> None:
    rng = np.random.default_rng(4)
    paths = [random_path(rng) for _ in range(60)]
    reference, conflict = rng.integers(0, 60, 400), rng.integers(0, 60, 400)
    fast, reference_measure = MEASURES[name]
    found = fast(paths_of(*paths), reference, conflict)
    expected = [reference_measure(paths[i], paths[j]) for i, j in zip(reference, conflict, strict=True)]
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("name", MEASURES)
def test_no_pairs_have_no_measures(name: str) -> None:
    fast, _ = MEASURES[name]
    nobody = np.zeros(0, np.int64)
    assert fast(paths_of(line(3, (1, 0, 0))), nobody, nobody).shape == (0,)


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), other_steps=st.integers(1, 70))
def test_axioms(seed: int, other_steps: int) -> None:
    rng = np.random.default_rng(seed)
    path, other = random_path(rng), random_path(rng)
    path[1:, 0] += 0.05  # It moves.
    still = np.repeat(path[:1], other_steps + 1, axis=0)
    rotation = np.linalg.qr(rng.normal(size=(3, 3)))[0]
    for name in ("position", "warping"):
        assert of_pair(name, path, path) == pytest.approx(1.0, abs=1e-6)
        assert of_pair(name, path, still) == pytest.approx(0.0, abs=1e-6)
        assert 0.0 <= of_pair(name, path, other) <= 1.0
        turned = of_pair(name, path @ rotation.T, other @ rotation.T)
        assert turned == pytest.approx(of_pair(name, path, other), abs=1e-3)
    assert of_pair("position", still, still) == 1.0
    assert math.isnan(of_pair("divergence", path, path))
    assert 1 <= of_pair("divergence", path, still) <= min(len(path) - 1, other_steps)


def slowly(action: Float32Array, fingers: Float32Array, eef: Float32Array, target: Float32Array) -> bool:
    targets = [target[:, k : k + 3].tolist() for k in range(0, target.shape[1], 3)]
    return slow.carries_other(action[:, 6].tolist(), fingers.tolist(), eef.tolist(), targets)


def carrying(*, gap_m: float = 0.03, carried_m: float = 0.1, target_moves_m: float = 0.0, steps: int = 15) -> bool:
    """Ten steps open, then fingers that close on command at ``gap_m`` and travel for ``steps`` steps."""
    total = 10 + steps
    action = np.zeros((total, 7), np.float32)
    action[:, 6] = -1.0
    action[10:, 6] = 1.0
    share = np.concatenate([np.zeros(11), np.linspace(0, 1, steps - 1)])[:, None]
    fingers = np.tile([0.04, -0.04], (total, 1)).astype(np.float32)
    fingers[10:] = [gap_m / 2, -gap_m / 2]
    eef = (share * [carried_m, 0, 0]).astype(np.float32)
    target = np.zeros((total, 6), np.float32)
    target[:, :3] = share * [0, target_moves_m, 0]
    before = [np.zeros((3, part.shape[1]), np.float32) for part in (action, fingers, eef, target)]
    parts = [np.concatenate(pair) for pair in zip(before, (action, fingers, eef, target), strict=True)]
    found = carries_other(parts[0], parts[1], parts[2], parts[3], np.array([0, 3, 3 + total]))
    assert not found[0]
    expected = slowly(action, fingers, eef, target)
    assert bool(found[1]) == expected
    return expected


def test_something_else_is_carried() -> None:
    assert carrying()


@pytest.mark.parametrize(
    "change",
    [{"gap_m": 0.002}, {"carried_m": 0.04}, {"target_moves_m": 0.1}, {"steps": 8}],
    ids=["empty fingers", "hardly moved", "the target moves along", "too short"],
)
def test_nothing_else_is_carried(change: dict[str, float]) -> None:
    assert not carrying(**change)  # type: ignore[arg-type]


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 2**32 - 1))
def test_carrying_agrees_with_the_slow_reference(seed: int) -> None:
    rng = np.random.default_rng(seed)
    steps = int(rng.integers(20, 80))
    action = np.repeat(rng.choice([-1.0, 1.0], (8, 7), p=[0.2, 0.8]), 10, axis=0)[:steps].astype(np.float32)
    width = np.repeat(rng.choice([0.001, 0.01, 0.03], 8), 10)[:steps, None] / 2
    fingers = (width * [1, -1]).astype(np.float32)
    eef = np.cumsum(rng.normal(0, 0.006, (steps, 3)), axis=0).astype(np.float32)
    target = (np.cumsum(rng.normal(0, 0.0015, (steps, 3)), axis=0)).astype(np.float32)
    found = carries_other(action, fingers, eef, target, np.array([0, steps]))
    assert bool(found[0]) == slowly(action, fingers, eef, target)


@pytest.mark.parametrize("name", sorted(MEASURES))
def test_a_gripper_that_was_refused_stays_where_it_is_until_the_horizon(name: str) -> None:
    fast, reference = MEASURES[name]
    walk, short = line(40, (0.3, 0, 0)), line(4, (0.02, 0.01, 0))
    offsets = np.array([0, 40, 44])
    frames = np.concatenate([walk[:-1], short[:-1]]).astype(np.float32)
    paths = gripper_paths(frames, offsets, np.stack([walk[-1], short[-1]]), np.array([40, 300]))
    stays = np.concatenate([short, np.tile(short[-1], (296, 1))])
    found = fast(paths, np.array([0]), np.array([1]))[0]
    assert found == pytest.approx(reference(walk.tolist(), stays.tolist()), abs=1e-6)
