"""How a scene looks under a visual probe: other colours and another place of its cameras, in what is drawn alone.

What a renderer draws is a list of shapes that MuJoCo makes anew from model and data for every picture. Only that list
is changed here; the model and the data, and so physics, states and hashes, are never written to.
"""

from __future__ import annotations

from typing import Any

import mujoco
import numpy as np

from ...probes.visual_settings import VisualSettings, draw_visual_settings
from ...records import VisualNoise, VisualProbe
from ..scene import Scene

ROBOT_PREFIXES = ("robot0_", "gripper0_", "mount0_")
"""What robosuite calls the robot's parts; a probe leaves the robot as it is, as the paper's code does."""

WORLD = 0
"""Number of the body that does not move: cameras fixed to it are the scene's, others the robot's."""


def scene_settings(
    scene: Scene, probe: VisualProbe, *, init_state: int, seed: int, noise: VisualNoise = VisualNoise.GAUSSIAN
) -> VisualSettings | None:
    """Draw how an episode in this scene looks; see ``draw_visual_settings``."""
    if probe is VisualProbe.V0:  # spares most rollouts the names of all materials
        return None
    return draw_visual_settings(
        probe, entity_materials(scene), task_id=scene.task.task_id, init_state=init_state, seed=seed, noise=noise
    )


def entity_materials(scene: Scene) -> tuple[str, ...]:
    """Names of the materials of everything but the robot: objects, fixtures, table, floor and walls; sorted."""
    model = scene.model
    names = {model.material(number).name for number in set(model.geom_matid.tolist()) if number >= 0}
    return tuple(sorted(name for name in names if not name.startswith(ROBOT_PREFIXES)))


def perturb_drawing(drawing: Any, model: Any, camera: str, settings: VisualSettings) -> None:
    """Give what is about to be drawn other colours, and its camera another place.

    Args:
        drawing: MuJoCo's ``MjvScene``, just updated from the scene.
        model: MuJoCo's model of the scene.
        camera: From which camera.
        settings: How it is to look. Materials that the scene does not have are ignored.
    """
    numbers = {model.material(number).name: number for number in range(model.nmat)}
    colours = {numbers[name]: colour for name, colour in settings.colours.items() if name in numbers}
    if colours:
        for index in range(drawing.ngeom):
            shape = drawing.geoms[index]
            if shape.objtype == mujoco.mjtObj.mjOBJ_GEOM and model.geom_matid[shape.objid] in colours:
                shape.rgba[:3] = colours[model.geom_matid[shape.objid]]
    if model.cam_bodyid[model.camera(camera).id] == WORLD:
        for eye in drawing.camera:  # a camera is drawn as two eyes
            eye.pos = eye.pos + np.asarray(settings.camera_offset_m, np.float32)
