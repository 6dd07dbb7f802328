"""The protocol's process measures once more, frame by frame in plain Python, to hold the vectorised ones against.

Written from the protocol's text alone: no NumPy, no shared constants, no shared helpers.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

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


def displacement(path: Sequence[Vector]) -> list[list[float]]:
    return [[x - x0 for x, x0 in zip(point, path[0], strict=True)] for point in path]


def position_similarity(reference: Sequence[Vector], conflict: Sequence[Vector]) -> float:
    """PS from both gripper paths at steps 0 to H."""
    values = []
    for a, b in list(zip(displacement(reference), displacement(conflict), strict=False))[1:]:
        longest = max(norm(a), norm(b))
        if longest >= 0.001:
            values.append(clip01(math.fsum(x * y for x, y in zip(a, b, strict=True)) / longest**2))
    return math.fsum(values) / len(values) if values else 1.0


def divergence_step(reference: Sequence[Vector], conflict: Sequence[Vector]) -> float:
    """The first step at which the gripper paths are more than 2 cm apart; NaN where there is none."""
    for t, (a, b) in enumerate(zip(displacement(reference), displacement(conflict), strict=False)):
        if math.dist(a, b) > 0.02:
            return float(t)
    return math.nan


def warping_similarity(reference: Sequence[Vector], conflict: Sequence[Vector]) -> float:
    """WS from both gripper paths at steps 0 to H, by the recursion as it stands in textbooks."""
    sampled = []
    for path in (displacement(reference), displacement(conflict)):
        last = len(path) - 1
        sampled.append([path[t] for t in range(0, last, 4)] + [path[last]])
    a, b = sampled
    cost = [[math.inf] * (len(b) + 1) for _ in range(len(a) + 1)]
    cost[0][0] = 0.0
    for i, p in enumerate(a, 1):
        for j, q in enumerate(b, 1):
            cost[i][j] = math.dist(p, q) + min(cost[i - 1][j], cost[i][j - 1], cost[i - 1][j - 1])
    return clip01(1.0 - cost[-1][-1] / (math.fsum(norm(p) for p in a) + 1e-8))


def carries_other(
    closing: Sequence[float], fingers: Sequence[Vector], eef: Sequence[Vector], targets: Sequence[Sequence[Vector]]
) -> bool:
    """Whether closed fingers that hold something move by 5 cm while no target moves by more than 2 cm."""
    gap = [abs(f[0] - f[1]) for f in fingers]
    t = 1
    while t < len(gap):
        start = t
        while t < len(gap) and closing[t] > 0 and gap[t] >= 0.004 and abs(gap[t] - gap[t - 1]) <= 0.001:
            t += 1
        if t - start >= 10:
            moved = max(math.dist(eef[s], eef[start]) for s in range(start, t))
            stayed = all(math.dist(o[s], o[start]) <= 0.02 for o in targets for s in range(start, t))
            if moved >= 0.05 and stayed:
                return True
        t = max(t, start + 1)
    return False


Path = Sequence[Vector]
Motion = tuple[Path, Sequence[Path]]


def other_approach(reference: Motion, conflict: Motion) -> float:
    """OA from the gripper's path and those of the other objects, at steps 0 to H; NaN without other objects."""
    values = []
    for before, now in zip(reference[1], conflict[1], strict=True):
        gained = approach(conflict[0], now) - approach(reference[0], before)
        values.append(clip01(gained / (math.dist(conflict[0][0], now[0]) + 1e-8)))
    return max(values) if values else math.nan


def touches_other(contacts: Sequence[Sequence[float]], entities: Sequence[str], goal: Sequence[str]) -> bool:
    """Whether an entity that the goal does not name is touched at some step from 0 to H."""
    return any(value > 0 for row in contacts for value, name in zip(row, entities, strict=True) if name not in goal)


def grasps_other(contacts: Sequence[Sequence[float]], objects: Sequence[str], targets: Sequence[str]) -> bool:
    """Whether both fingers touch an object that is no target at ten steps from 0 to H - 1 in a row."""
    for k, name in enumerate(objects):
        row = 0
        for contact in contacts:
            row = row + 1 if contact[k] == 2 else 0
            if row == 10 and name not in targets:
                return True
    return False


def jerk_norms(path: Sequence[Vector]) -> list[float]:
    """Norms of the third differences of a path sampled at 20 Hz, in its unit over s^3."""
    return [
        norm([(d - 3 * c + 3 * b - a) * 20.0**3 for a, b, c, d in zip(*four, strict=True)])
        for four in zip(path, path[1:], path[2:], path[3:], strict=False)
    ]


def percentile(values: Sequence[float], share: float) -> float:
    """With linear interpolation between order statistics."""
    ordered = sorted(values)
    place = share * (len(ordered) - 1)
    below = math.floor(place)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (ordered[above] - ordered[below]) * (place - below)


def path_length(path: Sequence[Vector]) -> float:
    return math.fsum(math.dist(p, q) for p, q in pairwise(path))
