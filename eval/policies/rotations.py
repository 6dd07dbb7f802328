"""Rotations as observations give them."""

from __future__ import annotations

import numpy as np

from ...toolkit.arrays import FloatArray


def axis_angle(quat_wxyz: FloatArray) -> FloatArray:
    """Unit quaternions as axis times angle, the angle in [0, 2 pi] as in robosuite: antipodes are kept apart.

    Args:
        quat_wxyz: Shape (..., 4).

    Returns:
        Shape (..., 3), rad.
    """
    w = np.clip(quat_wxyz[..., :1], -1.0, 1.0)
    sine = np.sqrt(1.0 - w * w)
    turned = sine >= 1e-9
    scale = np.divide(2.0 * np.arccos(w), sine, out=np.zeros_like(sine), where=turned)
    return np.asarray(quat_wxyz[..., 1:] * scale)
