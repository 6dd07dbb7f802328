"""The protocol's process measures once more, frame by frame in plain Python, to hold the vectorised ones against.

Written from the protocol's text alone: no NumPy, no shared constants, no shared helpers.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

Vector = Sequence[float]


def clip01(z: float) -> float:
    return min(1.0, max(0.0, z))


def norm(v: Vector) -> float:
    return math.sqrt(math.fsum(x * x for x in v))


def approach(eef: Sequence[Vector], target: Sequence[Vector]) -> float:
    """A_k from the positions at steps 0 to H, the state after the last action included."""
    d = [math.dist(e, o) for e, o in zip(eef, target, strict=True)]
    return max(0.0, d[0] - min(d))


def tar(reference: Sequence[float], conflict: Sequence[float]) -> float:
    """TAR from each target's A_k^+ and A_k^-; NaN where no target qualifies."""
    ratios = []
    for plus, minus in zip(reference, conflict, strict=True):
        if plus >= 0.02:
            ratios.append(clip01(minus / (plus + 1e-8)))
    return sum(ratios) / len(ratios) if ratios else math.nan


def ts(reference: Sequence[Vector], conflict: Sequence[Vector], most_steps: int | None = None) -> float:
    """TS from the executed 7-D actions of both rollouts, or Early20 TS with ``most_steps=20``."""
    steps = min(len(reference), len(conflict))
    if most_steps is not None:
        steps = min(steps, most_steps)
    total = 0.0
    for t in range(steps):
        u, v = reference[t][:6], conflict[t][:6]
        u_rests, v_rests = norm(u) < 1e-4, norm(v) < 1e-4
        if u_rests and v_rests:
            total += 1.0
        elif not u_rests and not v_rests:
            total += clip01(sum(a * b for a, b in zip(u, v, strict=True)) / (norm(u) * norm(v) + 1e-8))
    return total / steps


def ams(reference: Sequence[Vector], conflict: Sequence[Vector]) -> float:
    """AMS from the executed 7-D actions of both rollouts."""
    plus = math.fsum(norm(u[:6]) for u in reference) / len(reference)
    minus = math.fsum(norm(u[:6]) for u in conflict) / len(conflict)
    return clip01(1.0 - minus / (plus + 1e-8))
