"""Scenes as the visual probes show them, side by side: a row a scene, a column a level."""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from ...toolkit.arrays import Image
from ...toolkit.atomic_files import write_atomic
from ...toolkit.errors import InvalidInputError
from ...toolkit.records import BaseTask, VisualNoise, VisualProbe

FORMATS = {".jpg": "JPEG", ".jpeg": "JPEG", ".png": "PNG"}

HEAD_PX = 28
"""Height of the line that names the levels."""

JPEG_QUALITY = 88


def probe_pictures(
    tasks: Sequence[BaseTask],
    probes: Sequence[VisualProbe],
    *,
    init_state: int = 0,
    seed: int = 0,
    size: int = 256,
    camera: str = "agentview",
    noise: VisualNoise = VisualNoise.GAUSSIAN,
) -> Image:
    """What a policy sees at the start of an episode under each level, shape (rows * size, columns * size, 3).

    Args:
        tasks: Base tasks, one a row.
        probes: Levels, one a column.
        init_state: LIBERO's number of the initial state.
        seed: Seed of the rollout that the perturbations are drawn for.
        size: Width and height of each picture in pixels.
        camera: ``agentview`` or ``robot0_eye_in_hand``.
        noise: Kind of the noise of V4.

    Raises:
        NotFoundError: There is no such camera.
        InvalidInputError: No GL library works here, or there is no such initial state.
    """
    from ...toolkit.simulation.pictures.appearance import scene_settings
    from ...toolkit.simulation.pictures.rendering import Camera
    from ...toolkit.simulation.scene import Scene

    rows = []
    for task in tasks:
        scene = Scene(task)
        scene.reset(init_state)
        view = Camera(scene, size)
        settings = [scene_settings(scene, probe, init_state=init_state, seed=seed, noise=noise) for probe in probes]
        rows.append(np.concatenate([view.image(camera, drawn) for drawn in settings], axis=1))
        view.close()
    return np.concatenate(rows)


def picture_kind(file: Path) -> str:
    """The format that a file's ending names.

    Raises:
        InvalidInputError: It names none that pictures are written in.
    """
    kind = FORMATS.get(file.suffix.lower())
    if kind is None:
        raise InvalidInputError(f"{file}: pictures are written as .jpg or .png")
    return kind


def write_probe_pictures(pictures: Image, probes: Sequence[VisualProbe], file: Path) -> None:
    """Write pictures with the levels' names above them.

    Args:
        pictures: From ``probe_pictures``.
        probes: Their columns.
        file: A ``.jpg`` or ``.png``.

    Raises:
        InvalidInputError: The file has another ending, or cannot be written.
    """
    from PIL import Image as Pillow
    from PIL import ImageDraw, ImageFont

    kind = picture_kind(file)
    height, width, _ = pictures.shape
    sheet = Pillow.new("RGB", (width, height + HEAD_PX), "white")
    sheet.paste(Pillow.fromarray(pictures), (0, HEAD_PX))
    draw, font = ImageDraw.Draw(sheet), ImageFont.load_default(18)
    for column, probe in enumerate(probes):
        draw.text(((column + 0.5) * width / len(probes), HEAD_PX / 2), probe, fill="black", font=font, anchor="mm")
    buffer = io.BytesIO()
    sheet.save(buffer, format=kind, quality=JPEG_QUALITY)
    write_atomic(file, buffer.getvalue())
