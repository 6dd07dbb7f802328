"""Visual probes change what is drawn of a scene, and nothing of the scene itself."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import mujoco
import numpy as np
import pytest

from conflictvla.toolkit.arrays import FloatArray
from conflictvla.toolkit.errors import InvalidInputError
from conflictvla.toolkit.libero.base_tasks import base_task
from conflictvla.toolkit.probes.visual_settings import VisualSettings
from conflictvla.toolkit.records import VisualProbe
from conflictvla.toolkit.simulation.pictures.appearance import entity_materials, scene_settings
from conflictvla.toolkit.simulation.pictures.rendering import CAMERAS, Camera
from conflictvla.toolkit.simulation.scene import Scene

SIZE = 64
ACTION = [0.4, 0.2, -0.5, 0.0, 0.1, 0.2, 1.0]
PLATE = "plate_1_model"


@pytest.fixture(scope="module")
def scene() -> Scene:
    return Scene(base_task("libero_goal", "put_the_bowl_on_the_plate"))


@pytest.fixture(scope="module")
def camera(scene: Scene) -> Iterator[Camera]:
    try:
        made = Camera(scene, SIZE)
    except InvalidInputError as error:
        pytest.skip(str(error))
    yield made
    made.close()


def model_bytes(scene: Scene) -> bytes:
    """Every array of the model."""
    buffer = np.empty(mujoco.mj_sizeModel(scene.model), np.uint8)
    mujoco.mj_saveModel(scene.model, None, buffer)
    return buffer.tobytes()


def data_arrays(scene: Scene) -> dict[str, FloatArray]:
    names = ("qpos", "qvel", "qacc_warmstart", "xpos", "cam_xpos", "cam_xmat", "site_xpos", "light_xpos")
    return {name: np.array(getattr(scene.data, name)) for name in names}


def test_the_colours_are_of_everything_but_the_robot(scene: Scene) -> None:
    found = entity_materials(scene)
    assert {PLATE, "akita_black_bowl_1_akita_black_bowl", "walls_mat", "floorplane", "table_texture"} <= set(found)
    assert not [name for name in found if "robot" in name or "gripper" in name]


def test_looking_under_any_probe_leaves_model_data_and_future_as_they_are(scene: Scene, camera: Camera) -> None:
    def after(*, looking: bool) -> tuple[str, str]:
        scene.reset(3)
        for step, probe in enumerate(VisualProbe):
            settings = scene_settings(scene, probe, init_state=3, seed=0)
            if looking:
                model, data = model_bytes(scene), data_arrays(scene)
                for name in CAMERAS:
                    camera.image(name, settings, step)
                assert model_bytes(scene) == model
                for name, values in data_arrays(scene).items():
                    np.testing.assert_array_equal(values, data[name])
            scene.step(ACTION)
        return scene.scene_sha256, scene.state().sha256()

    assert after(looking=True) == after(looking=False)


def test_no_picture_depends_on_the_one_before(scene: Scene, camera: Camera) -> None:
    scene.reset(0)
    plain = camera.image("agentview")
    perturbed = scene_settings(scene, VisualProbe.V4, init_state=0, seed=0)
    first = camera.image("agentview", perturbed, 3)
    camera.image("robot0_eye_in_hand", perturbed, 3)
    np.testing.assert_array_equal(camera.image("agentview"), plain)
    np.testing.assert_array_equal(camera.image("agentview", perturbed, 3), first)


def test_each_level_looks_different_from_the_one_before(scene: Scene, camera: Camera) -> None:
    scene.reset(0)
    seen = [
        camera.image("agentview", scene_settings(scene, probe, init_state=0, seed=0)).astype(int)
        for probe in VisualProbe
    ]
    for before, after in itertools.pairwise(seen):
        assert np.abs(after - before).mean() > 5


def test_a_colour_is_that_of_its_object_alone(scene: Scene, camera: Camera) -> None:
    scene.reset(0)
    plain = camera.image("agentview").astype(int)
    red = camera.image("agentview", VisualSettings(colours={PLATE: (0.8, 0.0, 0.0)})).astype(int)
    rows, columns = np.nonzero(np.abs(red - plain).max(axis=-1))
    assert len(rows) > 30
    assert np.ptp(rows) < SIZE / 4
    assert np.ptp(columns) < SIZE / 4
    assert (red[rows, columns, 1] <= plain[rows, columns, 1]).all()


def test_scene_cameras_move_and_the_robots_own_does_not(scene: Scene, camera: Camera) -> None:
    scene.reset(0)
    offset = (0.05, -0.08, 0.03)
    moved, plain = VisualSettings(camera_offset_m=offset), VisualSettings()
    wrist = "robot0_eye_in_hand"
    np.testing.assert_array_equal(camera.image(wrist, moved), camera.image(wrist, plain))
    seen = camera.image("agentview", moved)
    number = scene.model.camera("agentview").id
    scene.data.cam_xpos[number] += offset  # the same by MuJoCo's own means
    np.testing.assert_array_equal(seen, camera.image("agentview", plain))
    scene.data.cam_xpos[number] -= offset
    assert np.abs(seen.astype(int) - camera.image("agentview", plain)).mean() > 5
