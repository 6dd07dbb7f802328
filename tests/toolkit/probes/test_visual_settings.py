"""What visual probes draw, what they do to a picture, and that the record of it is read back strictly."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from typing import Any

import numpy as np
import pytest

from conflictvla.toolkit.errors import DatasetError
from conflictvla.toolkit.probes.visual_settings import (
    VisualSettings,
    draw_visual_settings,
    read_visual_settings,
    visual_settings_json,
)
from conflictvla.toolkit.records import VisualNoise, VisualProbe
from conflictvla.toolkit.simulation.pictures import photometry
from conflictvla.toolkit.simulation.pictures.photometry import add_noise, adjust_light, temperature_gains

MATERIALS = ("plate_1_model", "table_texture")
OF_LEVEL: dict[VisualProbe, set[str]] = {
    VisualProbe.V1: {"brightness", "contrast", "saturation", "temperature_k"},
    VisualProbe.V2: {"colours"},
    VisualProbe.V3: {"camera_offset_m"},
    VisualProbe.V4: {"noise", "noise_seed"},
}


def drawn(probe: VisualProbe, **where: Any) -> VisualSettings:
    episode: dict[str, Any] = {"task_id": "suite/task", "init_state": 0, "seed": 0} | where
    found = draw_visual_settings(probe, MATERIALS, **episode)
    assert found is not None
    return found


def test_each_level_is_the_one_before_and_more() -> None:
    assert draw_visual_settings(VisualProbe.V0, MATERIALS, task_id="a/b", init_state=0, seed=0) is None
    before = asdict(VisualSettings())
    for probe, touched in OF_LEVEL.items():
        here = asdict(drawn(probe))
        assert {name for name in here if here[name] != before[name]} == touched
        before = here


@pytest.mark.parametrize("other", [{"seed": 1}, {"init_state": 1}, {"task_id": "suite/other"}])
def test_another_episode_looks_different(other: dict[str, Any]) -> None:
    here, there = (asdict(drawn(VisualProbe.V4, **where)) for where in ({}, other))
    assert not [name for name in here if name != "noise" and here[name] == there[name]]


def test_one_material_more_in_the_scene_changes_no_other_colour() -> None:
    more = draw_visual_settings(VisualProbe.V2, [*MATERIALS, "a_new_thing"], task_id="suite/task", init_state=0, seed=0)
    assert more is not None
    assert {name: more.colours[name] for name in MATERIALS} == drawn(VisualProbe.V2).colours


def test_settings_are_read_back_as_they_were_written() -> None:
    for settings in (
        None,
        VisualSettings(),
        drawn(VisualProbe.V2),
        drawn(VisualProbe.V4, noise=VisualNoise.SALT_PEPPER),
    ):
        assert read_visual_settings(visual_settings_json(settings), "here") == settings


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"brightness": float("nan")}, "nan is no finite number"),
        ({"contrast": "1"}, "'1' is no finite number"),
        ({"colours": {"plate": [0.1, 0.2]}}, "not enough values"),
        ({"camera_offset_m": [True, 0, 0]}, "True is no finite number"),
        ({"noise": "fog"}, "'fog' is not a valid VisualNoise"),
        ({"noise_seed": -1}, "noise_seed is -1"),
        ({"fog": 1}, "not an object of brightness"),
    ],
)
def test_a_damaged_record_is_refused_by_name(change: dict[str, Any], message: str) -> None:
    text = json.dumps(json.loads(visual_settings_json(drawn(VisualProbe.V4))) | change)
    with pytest.raises(DatasetError, match=f"episode 3: visual_settings are unreadable .*{message}"):
        read_visual_settings(text, "episode 3")


PICTURE = np.array([[[200, 100, 40], [10, 20, 30]], [[0, 255, 128], [90, 90, 90]]], np.uint8)


def test_brightness_contrast_and_saturation_are_factors() -> None:
    np.testing.assert_array_equal(adjust_light(PICTURE, VisualSettings()), PICTURE)
    dark = adjust_light(PICTURE, VisualSettings(brightness=0.5))
    np.testing.assert_array_equal(dark[0, 0], [100, 50, 20])
    np.testing.assert_array_equal(dark[1, 0], [0, 127, 64])
    flat = adjust_light(PICTURE, VisualSettings(contrast=0.0))
    assert len(np.unique(flat)) == 1
    grey = adjust_light(PICTURE, VisualSettings(saturation=0.0)).astype(int)
    assert np.ptp(grey, axis=-1).max() == 0
    np.testing.assert_array_equal(grey[1, 1], [90, 90, 90])


def test_temperature_is_that_of_a_black_body() -> None:
    np.testing.assert_allclose(temperature_gains(6500.0), 1.0)
    # CIE illuminant A is a black body of 2856 K at xy = (0.44757, 0.40745).
    xyz = np.linalg.inv(photometry.XYZ_TO_RGB) @ photometry._white(2856.0)
    np.testing.assert_allclose(xyz[:2] / xyz.sum(), [0.44757, 0.40745], atol=0.002)
    warm, cold = temperature_gains(3500.0), temperature_gains(8500.0)
    assert warm[0] > 1.1 > 0.6 > warm[2]
    assert cold[0] < 0.95 < 1.1 < cold[2]
    for gains in (warm, cold):
        assert photometry.LUMINANCE @ gains == pytest.approx(1.0)
    lit = adjust_light(np.full((1, 1, 3), 120, np.uint8), VisualSettings(temperature_k=3500.0))
    assert lit[0, 0, 0] > 120 > lit[0, 0, 2]


def test_noise_is_gaussian_or_salt_and_pepper_and_can_be_drawn_again() -> None:
    grey = np.full((200, 200, 3), 128, np.uint8)
    settings = VisualSettings(noise=VisualNoise.GAUSSIAN, noise_seed=5)
    noisy = add_noise(grey, settings, "agentview", 7)
    assert noisy.mean() == pytest.approx(128, abs=0.5)
    assert noisy.std() == pytest.approx(0.085 * 255, abs=0.5)
    np.testing.assert_array_equal(add_noise(grey, settings, "agentview", 7), noisy)
    for other in (
        add_noise(grey, settings, "agentview", 8),
        add_noise(grey, settings, "robot0_eye_in_hand", 7),
        add_noise(grey, replace(settings, noise_seed=6), "agentview", 7),
    ):
        assert abs(np.corrcoef(other.ravel(), noisy.ravel())[0, 1]) < 0.02
    spots = add_noise(grey, VisualSettings(noise=VisualNoise.SALT_PEPPER, noise_seed=5), "agentview", 7)
    for value in (0, 255):
        assert (spots == value).all(axis=-1).mean() == pytest.approx(0.015, abs=0.003)
    assert set(np.unique(spots)) == {0, 128, 255}
