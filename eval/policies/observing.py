"""Observations of a scene, as a policy receives them."""

from __future__ import annotations

import functools

import numpy as np

from ...toolkit.arrays import FloatArray, Image
from ...toolkit.probes.visual_settings import VisualSettings
from ...toolkit.simulation.scene import Scene
from .interface import Observation


def observe(scene: Scene, step: int, visual: VisualSettings | None = None) -> Observation:
    """What a policy receives of the scene as it is now.

    Args:
        scene: The scene.
        step: Executed actions so far, from 0.
        visual: Changes its pictures and nothing else; None for the scene as it looks.
    """
    pos, quat, fingers = scene.grip_pos(), scene.grip_quat_wxyz(), scene.gripper_pos_m()
    return Observation(
        step=step,
        eef_pos_m=pos,
        eef_quat_wxyz=quat,
        joint_pos_rad=scene.joint_pos_rad(),
        gripper_pos_m=fingers,
        state=np.concatenate([pos, axis_angle(quat), fingers]),
        camera=functools.partial(_render_view, scene, visual, step),
    )


def _render_view(scene: Scene, visual: VisualSettings | None, step: int, camera: str, size: int) -> Image:
    """Rendering is imported and set up only when a policy looks."""
    from ...toolkit.simulation.pictures.rendering import camera_of

    return camera_of(scene, size).image(camera, visual, step)


def axis_angle(quat_wxyz: FloatArray) -> FloatArray:
    """Unit quaternions as axis times angle, the angle in [0, 2 pi] as in robosuite: antipodes are different.

    Args:
        quat_wxyz: Shape (..., 4).

    Returns:
        Shape (..., 3), rad.
    """
    # Not SciPy's Rotation.as_rotvec: it gives angles up to pi, rounds otherwise, and takes twice as long.
    w = np.clip(quat_wxyz[..., :1], -1.0, 1.0)
    sine = np.sqrt(1.0 - w * w)
    turned = sine >= 1e-9
    scale = np.divide(2.0 * np.arccos(w), sine, out=np.zeros_like(sine), where=turned)
    return np.asarray(quat_wxyz[..., 1:] * scale)
