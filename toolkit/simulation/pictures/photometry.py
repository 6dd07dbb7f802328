"""What light and sensor do to a finished picture: brightness, contrast, saturation, colour temperature and noise."""

from __future__ import annotations

import zlib

import numpy as np
import numpy.typing as npt

from ...arrays import FloatArray, Image
from ...probes.visual_settings import NEUTRAL_K, NOISE_AMOUNT, VisualSettings
from ...records import VisualNoise

XYZ_TO_RGB: FloatArray = np.array(
    [[3.2404542, -1.5371385, -0.4985314], [-0.9692660, 1.8760108, 0.0415560], [0.0556434, -0.2040259, 1.0572252]]
)
"""From CIE XYZ to linear sRGB (IEC 61966-2-1)."""

LUMINANCE: FloatArray = np.array([0.2126729, 0.7151522, 0.0721750])
"""What red, green and blue of linear sRGB add to the luminance Y."""


def adjust_light(picture: Image, settings: VisualSettings) -> Image:
    """The picture under another light: brightness, contrast, saturation, then temperature, as the paper's code does.

    Args:
        picture: Shape (height, width, 3).
        settings: How; PIL's ``ImageEnhance`` defines the three factors.
    """
    from PIL import Image as Pillow
    from PIL import ImageEnhance

    lit = Pillow.fromarray(picture)
    for enhancer, factor in (
        (ImageEnhance.Brightness, settings.brightness),
        (ImageEnhance.Contrast, settings.contrast),
        (ImageEnhance.Color, settings.saturation),
    ):
        if factor != 1.0:
            lit = enhancer(lit).enhance(factor)
    changed = np.array(lit)
    if settings.temperature_k != NEUTRAL_K:
        tables = _tables(temperature_gains(settings.temperature_k))
        changed = np.stack([table[changed[..., channel]] for channel, table in enumerate(tables)], axis=-1)
    return changed


def add_noise(picture: Image, settings: VisualSettings, camera: str, step: int) -> Image:
    """The picture with sensor noise; the same episode, step and camera give the same noise.

    Args:
        picture: Shape (height, width, 3).
        settings: Kind and seed of the noise.
        camera: The camera of the picture.
        step: How many actions were executed before it.
    """
    if settings.noise is None:
        return picture
    generator = np.random.default_rng([settings.noise_seed, step, zlib.crc32(camera.encode())])
    amount = NOISE_AMOUNT[settings.noise]
    if settings.noise is VisualNoise.GAUSSIAN:
        noise = generator.standard_normal(picture.shape, dtype=np.float32)
        return np.clip(np.rint(picture + np.float32(255 * amount) * noise), 0, 255).astype(np.uint8)
    drawn = generator.random(picture.shape[:2], dtype=np.float32)
    noisy = picture.copy()
    noisy[drawn < amount / 2] = 0
    noisy[drawn > 1 - amount / 2] = 255
    return noisy


def temperature_gains(temperature_k: float) -> FloatArray:
    """What light of a temperature does to linear red, green and blue, shape (3,), at equal luminance of white.

    The colour of a black body in CIE xy, by the cubic approximation of Kim et al., US patent 7024034 (1667 to 25000 K),
    relative to that of 6500 K.
    """
    gains = _white(temperature_k) / _white(NEUTRAL_K)
    return np.asarray(gains / (LUMINANCE @ gains))


def _white(temperature_k: float) -> FloatArray:
    """Linear sRGB of a black body's light with Y = 1."""
    t = 1000.0 / float(np.clip(temperature_k, 1667.0, 25000.0))
    if t > 1000.0 / 4000.0:
        x = -0.2661239 * t**3 - 0.2343589 * t**2 + 0.8776956 * t + 0.179910
    else:
        x = -3.0258469 * t**3 + 2.1070379 * t**2 + 0.2226347 * t + 0.240390
    if t > 1000.0 / 2222.0:
        y = -1.1063814 * x**3 - 1.34811020 * x**2 + 2.18555832 * x - 0.20219683
    elif t > 1000.0 / 4000.0:
        y = -0.9549476 * x**3 - 1.37418593 * x**2 + 2.09137015 * x - 0.16748867
    else:
        y = 3.0817580 * x**3 - 5.87338670 * x**2 + 3.75112997 * x - 0.37001483
    return np.asarray(XYZ_TO_RGB @ np.array([x / y, 1.0, (1.0 - x - y) / y]))


def _tables(gains: FloatArray) -> npt.NDArray[np.uint8]:
    """What each coded value becomes in each channel, shape (3, 256): light multiplies linear values, not coded ones."""
    coded = np.arange(256) / 255.0
    linear = np.where(coded <= 0.04045, coded / 12.92, ((coded + 0.055) / 1.055) ** 2.4)
    lit = np.clip(gains[:, None] * linear, 0.0, 1.0)
    recoded = np.where(lit <= 0.0031308, 12.92 * lit, 1.055 * lit ** (1 / 2.4) - 0.055)
    return np.rint(255.0 * recoded).astype(np.uint8)
