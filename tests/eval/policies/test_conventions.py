"""Observations reach a checkpoint as LIBERO's users prepare them, and its actions are read by the rule named."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.spatial.transform import Rotation
from vla_eval.benchmarks.libero.utils import preprocess_libero_image, resize_with_pad
from vla_eval.rotation import quat_to_axisangle

from conflictvla.eval.policies.conventions import (
    Conventions,
    executable_actions,
    read_conventions,
    resized,
    shortest_axis_angle,
    turned,
)
from conflictvla.eval.policies.observing import axis_angle
from conflictvla.eval.policies.spec import address, check_settings, read_spec
from conflictvla.toolkit.errors import InvalidInputError, NotFoundError

UPRIGHT = np.arange(256 * 256 * 3, dtype=np.uint32).reshape(256, 256, 3).astype(np.uint8)
RAW = UPRIGHT[::-1]  # LIBERO hands out the scene upside down; test_rendering.py shows it
CHUNK = np.array([[0.0] * 6 + [grip] for grip in (-1.0, -0.2, 0.0, 0.3, 0.9)])


def test_by_default_pictures_are_turned_as_vla_eval_turns_them() -> None:
    np.testing.assert_array_equal(turned(UPRIGHT, Conventions().images), preprocess_libero_image(RAW))


def test_the_four_ways_to_turn_a_picture_are_all_there_are() -> None:
    np.testing.assert_array_equal(turned(UPRIGHT, "upright"), UPRIGHT)
    np.testing.assert_array_equal(turned(UPRIGHT, "raw"), RAW)
    np.testing.assert_array_equal(turned(UPRIGHT, "mirrored"), RAW[:, ::-1])


@pytest.mark.parametrize("size", [*range(40, 260, 7), 224, 256, 384])
def test_pictures_are_resized_as_the_real_packages_resize_them(size: int) -> None:
    np.testing.assert_array_equal(resized(UPRIGHT, size), resize_with_pad(UPRIGHT, size, size))


def _is_a_turn(numbers: list[float]) -> bool:
    """Neither half a turn, which has an axis of two signs, nor so little that robosuite's formula loses its digits."""
    return bool(np.linalg.norm(numbers) > 0.1 and abs(numbers[0]) > 1e-6 and np.linalg.norm(numbers[1:]) > 1e-3)


@given(st.lists(st.floats(-1, 1), min_size=4, max_size=4).filter(_is_a_turn))
def test_the_shortest_rotation_is_vla_evals_and_turns_as_far(numbers: list[float]) -> None:
    quat = np.array(numbers) / np.linalg.norm(numbers)
    long = axis_angle(quat)
    short = shortest_axis_angle(long)
    np.testing.assert_allclose(short, quat_to_axisangle(np.roll(quat, -1)), atol=2e-6)
    assert np.linalg.norm(short) <= np.pi + 1e-9
    one, other = (Rotation.from_rotvec(vector).as_matrix() for vector in (long, short))
    np.testing.assert_allclose(one, other, atol=1e-6)


@pytest.mark.parametrize(
    ("rule", "grips"),
    [
        ("as_is", [-1.0, -0.2, 0.0, 0.3, 0.9]),
        ("snap", [-1.0, -1.0, 1.0, 1.0, 1.0]),
        ("flip", [1.0, 0.2, 0.0, -0.3, -0.9]),
        ("open_high", [1.0, 1.0, 1.0, 1.0, -1.0]),
    ],
)
def test_the_gripper_is_read_by_the_rule(rule: str, grips: list[float]) -> None:
    conventions = read_conventions({"gripper": rule}, Conventions(), "here")
    np.testing.assert_array_equal(executable_actions(CHUNK, conventions)[:, 6], grips)


def test_a_chunk_is_cut_to_the_replan_steps() -> None:
    conventions = read_conventions({"replan_steps": "2"}, Conventions(), "here")
    assert executable_actions(CHUNK, conventions).shape == (2, 7)
    assert executable_actions(CHUNK, Conventions()).shape == (5, 7)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"images": "rotatd"}, "here: no images=rotatd: did you mean 'rotated'"),
        ({"gripper": "x"}, "known: as_is, snap, flip, open_high"),
        ({"replan_steps": "0"}, "replan_steps=0 is not a number from 1"),
        ({"image_size": "-4"}, "image_size=-4 is not a number from 1"),
    ],
)
def test_a_wrong_setting_is_named(settings: dict[str, str], message: str) -> None:
    with pytest.raises((InvalidInputError, NotFoundError), match=message):
        read_conventions(settings, Conventions(), "here")


def test_a_spec_is_taken_apart() -> None:
    spec = read_spec("openpi://gpu-box:9000?images=raw&replan_steps=5")
    assert (spec.scheme, address(spec)) == ("openpi", ("gpu-box", 9000))
    assert spec.settings == {"images": "raw", "replan_steps": "5"}
    assert address(read_spec("openpi://gpu-box")) == ("gpu-box", 8000)
    assert address(read_spec("openpi://[::1]:9")) == ("::1", 9)
    assert read_spec("lerobot:owner/name@v1").target == "owner/name@v1"
    assert read_spec("lerobot:/some/folder?name=x").target == "/some/folder"


@pytest.mark.parametrize("text", ["openpi://", "openpi://host:port", "openpi://host:8000/path", "openpi://me@host"])
def test_an_address_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(InvalidInputError, match="write openpi://HOST:PORT"):
        address(read_spec(text))


@pytest.mark.parametrize("text", ["openpi://host?replan", "openpi://host?replan_steps=5&replan_steps=6"])
def test_settings_that_are_none_are_refused(text: str) -> None:
    with pytest.raises(InvalidInputError, match="policy 'openpi"):
        read_spec(text)


@pytest.mark.parametrize("name", ["", "../elsewhere", "a/b", "-x", "a b"])
def test_a_name_that_no_folder_could_have_is_refused(name: str) -> None:
    with pytest.raises(InvalidInputError, match="use letters, digits"):
        check_settings(read_spec(f"openpi://host?name={name}"), ["name"])


def test_an_unknown_setting_is_refused() -> None:
    with pytest.raises(NotFoundError, match="no setting 'replan': did you mean 'replan_steps'"):
        check_settings(read_spec("openpi://host?replan=5"), ["images", "replan_steps"])
