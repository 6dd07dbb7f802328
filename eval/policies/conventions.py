"""What a checkpoint was trained to receive and to give, where LIBERO's users differ: pictures, state, gripper, chunks.

Each is a named setting, recorded with every rollout, because a single wrong one leaves a good checkpoint at 0 %.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np

from ...toolkit.arrays import FloatArray, Image
from ...toolkit.errors import InvalidInputError, NotFoundError, choices
from .interface import Observation

Turn = Literal["rotated", "upright", "raw", "mirrored"]
AxisAngle = Literal["robosuite", "shortest"]
GripperRule = Literal["as_is", "snap", "flip", "open_high"]

RENDER_SIZE = 256
"""Width and height at which LIBERO's demonstrations for VLAs were rendered, in pixels."""

AGENTVIEW, WRIST = "agentview", "robot0_eye_in_hand"
"""LIBERO's names of the two cameras."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Conventions:
    """How observations are handed to a checkpoint and its actions read.

    Attributes:
        images: ``rotated``, the default: LIBERO's picture turned by 180 degrees, which nearly all checkpoints were
            trained on. LIBERO hands pictures out upside down but not turned, so this one shows the scene mirrored left
            to right. ``upright``: as the scene looks. ``raw``: as LIBERO hands out. ``mirrored``: raw, mirrored.
        image_size: Width and height of the pictures, in pixels; rendered at 256 and resized with padding.
        axis_angle: ``robosuite``, the default: the angle runs to 2 pi, as in LIBERO's demonstrations. ``shortest``: to
            pi, from the antipode of the quaternion where need be.
        gripper: What becomes of the last action dimension. ``as_is``; ``snap``: below 0 opens, else closes, as in
            vla-eval; ``flip``: the sign changed; ``open_high``: from 0 (closed) to 1 (open), OpenVLA's own.
        replan_steps: How many actions of a chunk are executed before the policy is asked again; None for all.
    """

    images: Turn = "rotated"
    image_size: int = RENDER_SIZE
    axis_angle: AxisAngle = "robosuite"
    gripper: GripperRule = "as_is"
    replan_steps: int | None = None

    def settings(self) -> dict[str, str | int | float | bool]:
        """The settings for a record, by name; 0 replan steps stand for all."""
        values = dataclasses.asdict(self)
        return {**values, "replan_steps": self.replan_steps or 0}


SETTINGS = tuple(field.name for field in dataclasses.fields(Conventions))
"""Names of the settings, as in a policy's query (``openpi://host:8000?images=raw&replan_steps=5``)."""

CHOICES = {"images": get_args(Turn), "axis_angle": get_args(AxisAngle), "gripper": get_args(GripperRule)}
"""Values of the settings that are not numbers."""


def read_conventions(settings: Mapping[str, str], base: Conventions, where: str) -> Conventions:
    """Conventions with some settings changed, as a user wrote them.

    Args:
        settings: Text by name; names that are not conventions are left alone.
        base: What holds where a setting is not given.
        where: What the settings belong to, for error messages.

    Raises:
        InvalidInputError: A value is not a number, or below 1.
        NotFoundError: There is no such choice.
    """
    changes: dict[str, Any] = {
        name: _read_choice(settings, name, where) if name in CHOICES else read_count(settings, name, where)
        for name in SETTINGS
        if name in settings
    }
    return dataclasses.replace(base, **changes)


def read_count(settings: Mapping[str, str], name: str, where: str) -> int:
    """A setting that counts something, from 1.

    Raises:
        InvalidInputError: It is no such number.
    """
    text = settings[name]
    if not text.isdecimal() or int(text) < 1:
        raise InvalidInputError(f"{where}: {name}={text} is not a number from 1")
    return int(text)


def _read_choice(settings: Mapping[str, str], name: str, where: str) -> str:
    if settings[name] not in CHOICES[name]:
        raise NotFoundError(f"{where}: no {name}={settings[name]}: {choices(settings[name], list(CHOICES[name]))}")
    return settings[name]


def turned(upright: Image, turn: Turn) -> Image:
    """A picture of the scene as it looks, shape (H, W, 3), turned as a checkpoint expects it."""
    if turn == "rotated":
        return np.ascontiguousarray(upright[:, ::-1])
    if turn == "raw":
        return np.ascontiguousarray(upright[::-1])
    return np.ascontiguousarray(upright[::-1, ::-1]) if turn == "mirrored" else upright


def picture(observation: Observation, camera: str, conventions: Conventions) -> Image:
    """A view as the checkpoint expects it, shape (image_size, image_size, 3)."""
    return resized(turned(observation.image(camera, RENDER_SIZE), conventions.images), conventions.image_size)


def resized(image: Image, size: int) -> Image:
    """A square picture in another size, bit for bit as openpi's ``resize_with_pad`` resizes it."""
    if image.shape[0] == size:
        return image
    from PIL import Image as Pictures

    # Theirs divides twice, which can come out a pixel short and is then padded.
    inner = int(image.shape[0] / (image.shape[0] / size))
    shrunk = Pictures.fromarray(image).resize((inner, inner), resample=Pictures.Resampling.BILINEAR)
    padded = np.zeros((size, size, 3), dtype=np.uint8)
    start = (size - inner) // 2
    padded[start : start + inner, start : start + inner] = np.asarray(shrunk)
    return padded


def state_vector(observation: Observation, conventions: Conventions) -> FloatArray:
    """LIBERO's 8-D state as the checkpoint expects it: position in m, axis-angle in rad, fingers in m."""
    state = np.array(observation.state)
    if conventions.axis_angle == "shortest":
        state[3:6] = shortest_axis_angle(state[3:6])
    return state


def shortest_axis_angle(axis_angle: FloatArray) -> FloatArray:
    """The same rotation with an angle of at most pi, shape (3,)."""
    angle = float(np.linalg.norm(axis_angle))
    return axis_angle if angle <= np.pi else axis_angle * (1.0 - 2.0 * np.pi / angle)


def executable_actions(actions: FloatArray, conventions: Conventions) -> FloatArray:
    """Actions of a checkpoint as LIBERO executes them, shape (n, 7), cut to the replan steps."""
    chunk = np.array(actions[: conventions.replan_steps], dtype=np.float64)
    grip = chunk[:, 6]
    if conventions.gripper == "flip":
        chunk[:, 6] = -grip
    elif conventions.gripper == "open_high":
        chunk[:, 6] = np.where(grip > 0.5, -1.0, 1.0)
    elif conventions.gripper == "snap":
        chunk[:, 6] = np.where(grip < 0.0, -1.0, 1.0)
    return chunk
