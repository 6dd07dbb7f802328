"""How far to go along a direction: Newton's method on the cost as a function of one number, bracketed where needed."""

from __future__ import annotations

import math
from typing import NamedTuple

from ..compiling import kernel
from ..pointers import FIVE, FOUR, ONE, SIX, THREE, TWO, Numbers
from .rows import MINVAL, Rows


class Line(NamedTuple):
    """The cost along a direction.

    Attributes:
        rows: The constraints.
        residual: Their residual at the start, shape (n,).
        slope: The residual's change along the direction, shape (n,).
        smooth: Coefficients of the cost of all but the constraints, from the constant one.
        quadratic: Likewise of each row in quadratic state, where a contact's are all in its first row, shape (n * 3,).
        circle: What the middle zone of each contact needs: normal part, its change, squared tangential part, half its
            linear and its quadratic change, and the weight, shape (contacts * 6,).
    """

    rows: Rows
    residual: Numbers
    slope: Numbers
    smooth: tuple[float, float, float]
    quadratic: Numbers
    circle: Numbers


class Point(NamedTuple):
    """A point of a line: how far along, the cost there, and its first two derivatives."""

    alpha: float
    cost: float
    first: float
    second: float


@kernel
def prepare(line: Line) -> None:
    """Fill in ``quadratic`` and ``circle`` from the rest."""
    rows, residual, slope, circle = line.rows, line.residual, line.slope, line.circle
    scale, d = rows.scale, rows.d
    for row in range(rows.singles):
        _keep(line.quadratic, row, _quadratic(d[row], residual[row], slope[row]))
    for contact in range(rows.contacts):
        row, at = rows.first_row[contact], contact * SIX
        mu = scale[at]
        q_0, q_1, q_2 = _quadratic(d[row], residual[row], slope[row])
        u_u = u_v = v_v = 0.0
        for j in range(ONE, rows.dim[contact]):
            p_0, p_1, p_2 = _quadratic(d[row + j], residual[row + j], slope[row + j])
            q_0, q_1, q_2 = q_0 + p_0, q_1 + p_1, q_2 + p_2
            u, v = residual[row + j] * scale[at + j], slope[row + j] * scale[at + j]
            u_u += u * u
            u_v += u * v
            v_v += v * v
        _keep(line.quadratic, row, (q_0, q_1, q_2))
        circle[at], circle[at + ONE] = residual[row] * mu, slope[row] * mu
        circle[at + TWO], circle[at + THREE], circle[at + FOUR] = u_u, u_v, v_v
        circle[at + FIVE] = d[row] / ((mu * mu) * (1.0 + (mu * mu)))


@kernel
def _keep(quadratic: Numbers, row: int, doubled: tuple[float, float, float]) -> None:
    """Write down coefficients, of which the first and the last are twice as large."""
    at = row * THREE
    quadratic[at], quadratic[at + ONE], quadratic[at + TWO] = doubled[0] * 0.5, doubled[1], doubled[2] * 0.5


@kernel
def _with(quadratic: Numbers, row: int, q_0: float, q_1: float, q_2: float) -> tuple[float, float, float]:
    """Coefficients with those of a row added."""
    at = row * THREE
    return q_0 + quadratic[at], q_1 + quadratic[at + ONE], q_2 + quadratic[at + TWO]


@kernel
def _quadratic(d: float, residual: float, slope: float) -> tuple[float, float, float]:
    """One row's coefficients, the first and the last twice as large."""
    weighted = d * residual
    return residual * weighted, slope * weighted, slope * d * slope


@kernel
def point_at(line: Line, alpha: float) -> Point:
    """The cost so far along a line, and its derivatives."""
    rows, quadratic, circle = line.rows, line.quadratic, line.circle
    residual, slope, friction_loss = line.residual, line.slope, rows.friction_loss
    q_0, q_1, q_2 = line.smooth
    for row in range(rows.frictions):
        loss, x = friction_loss[row], residual[row] + alpha * slope[row]
        bound = rows.r[row] * loss
        if -bound < x and x < bound:
            q_0, q_1, q_2 = _with(quadratic, row, q_0, q_1, q_2)
        elif x <= -bound:
            q_0, q_1 = q_0 + loss * (-0.5 * bound - residual[row]), q_1 + -loss * slope[row]
        else:
            q_0, q_1 = q_0 + loss * (-0.5 * bound + residual[row]), q_1 + loss * slope[row]
    for row in range(rows.frictions, rows.singles):
        if residual[row] + alpha * slope[row] < 0.0:
            q_0, q_1, q_2 = _with(quadratic, row, q_0, q_1, q_2)

    cost = first = second = 0.0
    for contact in range(rows.contacts):
        at = contact * SIX
        mu, u_v, v_v = rows.scale[at], circle[at + THREE], circle[at + FOUR]
        normal = circle[at] + alpha * circle[at + ONE]
        squared = circle[at + TWO] + alpha * (2.0 * u_v + alpha * v_v)
        if squared <= 0.0:
            inside = normal < 0.0
            tangent = 0.0
        else:
            tangent = math.sqrt(squared)
            if normal >= mu * tangent:
                continue
            inside = mu * normal + tangent <= 0.0
        if inside:
            q_0, q_1, q_2 = _with(quadratic, rows.first_row[contact], q_0, q_1, q_2)
        elif squared > 0.0:
            tangent_1 = (u_v + alpha * v_v) / tangent
            tangent_2 = v_v / tangent - (u_v + alpha * v_v) * tangent_1 / (tangent * tangent)
            outside, outside_1, weight = normal - mu * tangent, circle[at + ONE] - mu * tangent_1, circle[at + FIVE]
            cost += 0.5 * weight * outside * outside
            first += weight * outside * outside_1
            second += weight * (outside_1 * outside_1 + outside * (-mu * tangent_2))

    cost += alpha * alpha * q_2 + alpha * q_1 + q_0
    first += 2.0 * alpha * q_2 + q_1
    second += 2.0 * q_2
    return Point(alpha, cost, first, MINVAL if second <= 0.0 else second)


@kernel
def _newton_step(line: Line, point: Point) -> Point:
    return point_at(line, point.alpha - point.first / point.second)


@kernel
def search(line: Line, tolerance: float, most: int) -> float:
    """How far to go along a line: to where the cost is least, or 0 if nothing is gained.

    Args:
        line: The line.
        tolerance: Largest first derivative that counts as none.
        most: Evaluations after which the best so far must do.
    """
    start = point_at(line, 0.0)
    near, used = _newton_step(line, start), 2
    if start.cost < near.cost:
        near = start
    if abs(near.first) < tolerance:
        return near.alpha

    ahead, far, passed = 1.0 if near.first < 0.0 else -1.0, near, False
    while near.first * ahead <= -tolerance and used < most:
        far, near, passed = near, _newton_step(line, near), True
        used += 1
        if abs(near.first) < tolerance:
            return near.alpha
    if used >= most or not passed:
        return near.alpha
    return _bracketed(line, start, near, far, tolerance, most - used)


@kernel
def _bracketed(line: Line, start: Point, near: Point, far: Point, tolerance: float, most: int) -> float:
    """As ``search``, when the least cost lies between two points."""
    next_far, next_near = near, _newton_step(line, near)
    used = 1
    while used < most:
        middle = point_at(line, 0.5 * (near.alpha + far.alpha))
        used += 1
        best_cost, best_alpha, found = 0.0, 0.0, False
        for candidate in (next_near, next_far, middle):
            if abs(candidate.first) < tolerance and (not found or candidate.cost < best_cost):
                best_cost, best_alpha, found = candidate.cost, candidate.alpha, True
        if found:
            return best_alpha

        candidates = (next_near, next_far, middle)
        moved_near, near = _tightened(near, candidates)
        if moved_near:
            next_near = _newton_step(line, near)
            used += 1
        # As MuJoCo does it, the far end chooses among the candidates of before.
        moved_far, far = _tightened(far, candidates)
        if moved_far:
            next_far = _newton_step(line, far)
            used += 1
        if not moved_near and not moved_far:
            return middle.alpha

    if near.cost <= far.cost and near.cost < start.cost:
        return near.alpha
    if far.cost <= near.cost and far.cost < start.cost:
        return far.alpha
    return 0.0


@kernel
def _tightened(end: Point, candidates: tuple[Point, Point, Point]) -> tuple[bool, Point]:
    """The candidate nearest to where the cost is least, on the same side of it as one end of a bracket."""
    moved = False
    for candidate in candidates:
        if (end.first < 0.0 and candidate.first < 0.0 and end.first < candidate.first) or (
            end.first > 0.0 and candidate.first > 0.0 and end.first > candidate.first
        ):
            end, moved = candidate, True
    return moved, end
