"""Pictures of a scene, made only on request: they cost far more than a control step.

The pictures are LIBERO's own to the last bit (a test compares them), but upright: LIBERO's are upside down, and its
users turn them by 180 degrees, or forget to.
"""

from __future__ import annotations

import importlib
import os
from typing import Any
from weakref import WeakKeyDictionary

import mujoco
import numpy as np

from ...arrays import FloatArray, Image
from ...errors import InvalidInputError, NotFoundError, choices, first_line
from ...probes.visual_settings import VisualSettings
from ..scene import Scene, show_physics
from .appearance import perturb_drawing
from .photometry import add_noise, adjust_light

CAMERAS = ("agentview", "robot0_eye_in_hand")
"""The two views that LIBERO policies receive: of the table, and from the wrist."""

BACKENDS = ("egl", "osmesa")
"""Headless GL backends, the first that works is used where ``MUJOCO_GL`` names none."""

COLLISION_GROUP = 0
"""Geoms that collide and are not meant to be seen."""


class Camera:
    """Renders a scene from its cameras, in one size.

    Args:
        scene: The scene; its present state is what is rendered.
        size: Width and height in pixels.

    Raises:
        InvalidInputError: The scene cannot be drawn in that size, or no GL library works here.
    """

    def __init__(self, scene: Scene, size: int = 256) -> None:
        # Not the scene itself: a camera in the cache would keep it alive for ever.
        self._model, self._data, self._libero = scene.model, scene.data, scene.libero
        self._renderer = _renderer(scene.model, size)
        self._options = mujoco.MjvOption()
        self._options.geomgroup[COLLISION_GROUP] = 0

    def image(self, camera: str, settings: VisualSettings | None = None, step: int = 0) -> Image:
        """The scene now, upright, shape (size, size, 3).

        Args:
            camera: One of the scene's cameras.
            settings: How a visual probe perturbs it; None for the scene as it is.
            step: How many actions were executed before, which the noise of V4 is drawn for.

        Raises:
            NotFoundError: The scene has no such camera.
        """
        if mujoco.mj_name2id(self._model, mujoco.mjtObj.mjOBJ_CAMERA, camera) < 0:
            raise NotFoundError(f"no camera '{camera}': {choices(camera, list(CAMERAS))}")
        # LIBERO does so after each of its own steps: it lights the flame of a stove that is on.
        self._libero._post_process()  # noqa: SLF001
        self._renderer.update_scene(self._data, camera, scene_option=self._options)
        if settings is None:
            return np.array(self._renderer.render())
        perturb_drawing(self._renderer.scene, self._model, camera, settings)
        return add_noise(adjust_light(self._renderer.render(), settings), settings, camera, step)

    def image_of(
        self, physics: FloatArray, camera: str, settings: VisualSettings | None = None, step: int = 0
    ) -> Image:
        """A recorded physics state (``SceneState.physics``) as a picture; the scene is left in that state."""
        show_physics(self._model, self._data, physics)
        return self.image(camera, settings, step)

    def close(self) -> None:
        """Free the GL context."""
        self._renderer.close()


_CAMERAS: WeakKeyDictionary[Scene, dict[int, Camera]] = WeakKeyDictionary()
"""Cameras of each scene by size in pixels; they are freed with their scene."""


def camera_of(scene: Scene, size: int = 256) -> Camera:
    """The scene's camera of that size, made once and cached as long as the scene lives."""
    cameras = _CAMERAS.setdefault(scene, {})
    if size not in cameras:
        cameras[size] = Camera(scene, size)
    return cameras[size]


def _renderer(model: Any, size: int) -> Any:
    largest = min(model.vis.global_.offwidth, model.vis.global_.offheight)
    if not 1 <= size <= largest:
        raise InvalidInputError(f"pictures of {size} by {size} pixels: choose a size of 1 to {largest}")
    chosen = os.environ.get("MUJOCO_GL", "")
    backends = BACKENDS if chosen in ("", "disable") else (chosen,)
    reason = ""
    for backend in backends:
        try:
            os.environ["MUJOCO_GL"] = backend
            # Read when mujoco was imported, and then "disable": states alone need no GL.
            importlib.reload(mujoco.gl_context)
            return mujoco.Renderer(model, size, size)
        except Exception as error:  # loaders raise various errors when a library is missing
            reason = reason or first_line(error)
    raise InvalidInputError(
        f"cannot render with {' or '.join(backends)} ({reason}): apt-get install libegl1 libegl-mesa0, or libosmesa6"
    )
