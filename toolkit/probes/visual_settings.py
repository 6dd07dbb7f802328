"""What a visual probe does to the pictures of one episode: drawn once, recorded with it, and enough to draw them again.

The levels are cumulative, V3 being V2 and more: V1 changes the light, V2 the colours of everything but the
robot, V3 where the scene's camera stands, and V4 adds noise. Source: "VLA-Arena", section 2.4 and appendix E.3.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from ..errors import DatasetError
from ..records import VisualNoise, VisualProbe

Colour = tuple[float, float, float]

LIGHT_FACTORS = (0.7, 1.3)
"""Range of the factors of brightness, contrast and saturation, 1 being no change. The paper's text gives no range and
its code 0.25 to 1.75. Here V1 is to be natural and every later level to stay readable: with all three at 0.5 the eye
loses the objects of LIBERO's darkest scene at V2 (living room, basket), with 0.7 it does not."""

TEMPERATURES_K = (3500.0, 8500.0)
"""Range of the light's colour temperature in K, warm white lamps to an overcast sky, as in the paper's code."""

NEUTRAL_K = 6500.0
"""Temperature at which a picture stays as it is (the paper's default, and the white of sRGB)."""

COLOURS = (0.2, 0.8)
"""Range of red, green and blue of a material's colour, as in the paper's code: neither black nor glaring."""

CAMERA_OFFSET_M = 0.105
"""Most that a scene camera moves along each axis, in m, as in the paper's code; its direction stays."""

NOISE_AMOUNT = {VisualNoise.GAUSSIAN: 0.085, VisualNoise.SALT_PEPPER: 0.03}
"""Gaussian: the standard deviation, white being 1 (the paper's code has 0.085; ImageNet-C begins with 0.08). Salt and
pepper: the share of pixels that are set to black or white (ImageNet-C's first severity)."""

DECIMALS = 4
"""Draws are rounded, so that their text is short and gives the same numbers back."""


@dataclass(frozen=True, slots=True, kw_only=True)
class VisualSettings:
    """How the pictures of one episode are perturbed; what a level does not touch has its neutral value.

    Attributes:
        brightness: Factor, as of PIL's ``ImageEnhance``; 1 is no change.
        contrast: Factor, as of PIL's ``ImageEnhance``; 1 is no change.
        saturation: Factor, as of PIL's ``ImageEnhance``; 1 is no change.
        temperature_k: Colour temperature of the light, in K.
        colours: Red, green and blue in [0, 1] by name of the material; a texture is tinted with it.
        camera_offset_m: How far the scene's cameras are moved in the world, in m; the robot's own camera stays.
        noise: Kind of the noise; None for none.
        noise_seed: What the noise of each picture is drawn from, beside its step and camera.
    """

    brightness: float = 1.0
    contrast: float = 1.0
    saturation: float = 1.0
    temperature_k: float = NEUTRAL_K
    colours: Mapping[str, Colour] = field(default_factory=dict)
    camera_offset_m: tuple[float, float, float] = (0.0, 0.0, 0.0)
    noise: VisualNoise | None = None
    noise_seed: int = 0


def draw_visual_settings(
    probe: VisualProbe,
    materials: Sequence[str],
    *,
    task_id: str,
    init_state: int,
    seed: int,
    noise: VisualNoise = VisualNoise.GAUSSIAN,
) -> VisualSettings | None:
    """Draw how an episode's pictures are perturbed; None for V0.

    What is drawn depends on base task, initial state and seed alone: a reference and its conflicts see the same
    perturbation, under either prompt condition, and V3 has the light of V1 and the colours of V2.

    Args:
        probe: The level.
        materials: Names of the materials of all but the robot.
        task_id: The base task.
        init_state: LIBERO's number of the initial state.
        seed: The rollout's seed.
        noise: Kind of the noise of V4.
    """
    level = list(VisualProbe).index(probe)
    if level == 0:
        return None
    where = f"{task_id} init{init_state} seed{seed}"
    drawn: dict[str, Any] = {}
    light = _generator(where, "light")
    for name in ("brightness", "contrast", "saturation"):
        drawn[name] = round(light.uniform(*LIGHT_FACTORS), DECIMALS)
    drawn["temperature_k"] = round(light.uniform(*TEMPERATURES_K), DECIMALS)
    if level >= 2:
        drawn["colours"] = {
            name: _draw_triple(_generator(where, f"colour {name}"), *COLOURS) for name in sorted(materials)
        }
    if level >= 3:
        drawn["camera_offset_m"] = _draw_triple(_generator(where, "camera"), -CAMERA_OFFSET_M, CAMERA_OFFSET_M)
    if level >= 4:
        drawn |= {"noise": noise, "noise_seed": int(_generator(where, "noise").integers(2**32))}
    return VisualSettings(**drawn)


def visual_settings_json(settings: VisualSettings | None) -> str:
    """Settings as an episode's column holds them: JSON, ``{}`` for none; equal settings give equal text."""
    return "{}" if settings is None else json.dumps(asdict(settings), sort_keys=True, separators=(",", ":"))


def read_visual_settings(text: str, where: str) -> VisualSettings | None:
    """Settings back from an episode's column; None for none.

    Args:
        text: What ``visual_settings_json`` gave.
        where: What a message calls the place.

    Raises:
        DatasetError: It is something else.
    """
    try:
        content = json.loads(text)
        return None if content == {} else _parse_settings(content)
    except (ValueError, TypeError, KeyError) as error:
        raise DatasetError(f"{where}: visual_settings are unreadable ({error}): record this episode again") from error


def _parse_settings(content: Any) -> VisualSettings:
    known = set(VisualSettings.__dataclass_fields__)
    if not isinstance(content, dict) or set(content) != known:
        raise ValueError(f"not an object of {', '.join(sorted(known))}")
    numbers = {name: _number(content[name]) for name in ("brightness", "contrast", "saturation", "temperature_k")}
    colours = {str(name): _triple(colour) for name, colour in dict(content["colours"]).items()}
    noise, noise_seed = content["noise"], content["noise_seed"]
    if not isinstance(noise_seed, int) or noise_seed < 0:
        raise ValueError(f"noise_seed is {noise_seed!r}")
    return VisualSettings(
        **numbers,
        colours=colours,
        camera_offset_m=_triple(content["camera_offset_m"]),
        noise=None if noise is None else VisualNoise(noise),
        noise_seed=noise_seed,
    )


def _number(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise ValueError(f"{value!r} is no finite number")
    return float(value)


def _triple(values: Any) -> tuple[float, float, float]:
    first, second, third = values
    return _number(first), _number(second), _number(third)


def _draw_triple(generator: np.random.Generator, low: float, high: float) -> tuple[float, float, float]:
    return _triple([round(value, DECIMALS) for value in generator.uniform(low, high, 3).tolist()])


def _generator(where: str, what: str) -> np.random.Generator:
    """A stream of its own for each value that is drawn, so that one more level changes none of the others."""
    return np.random.default_rng(int.from_bytes(hashlib.sha256(f"{where} {what}".encode()).digest()[:16]))
