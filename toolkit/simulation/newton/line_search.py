"""How far to go along a direction: Newton's method on the cost as a function of one number, bracketed where needed."""

from __future__ import annotations

import math
from typing import NamedTuple

from .compiling import inlined, kernel
from .rows import MINVAL, ONE, ZERO, Array, Rows, place


class Line(NamedTuple):
    """The cost along a direction.

    Attributes:
        rows: The constraints.
        residual: Their residual at the start, shape (n,).
        slope: The residual's change along the direction, shape (n,).
        smooth: Coefficients of the cost of all but the constraints, shape (3,).
        quadratic: Likewise of each row in quadratic state, where a contact's are all in its first row, shape (n, 3).
        circle: What the middle zone of each contact needs: normal part, its change, squared tangential part, half its
            linear and its quadratic change, and the weight, shape (contacts, 6).
    """

    rows: Rows
    residual: Array
    slope: Array
    smooth: Array
    quadratic: Array
    circle: Array


class Point(NamedTuple):
    """A point of a line: how far along, the cost there, and its first two derivatives."""

    alpha: float
    cost: float
    first: float
    second: float


@kernel
def prepare(line: Line) -> None:
    """Fill in ``quadratic`` and ``circle`` from the rest."""
    rows, residual, slope, quadratic, circle = line.rows, line.residual, line.slope, line.quadratic, line.circle
    for row in range(place(len(rows.dof))):
        q_0, q_1, q_2 = _quadratic(rows.d[row], residual[row], slope[row])
        quadratic[row, 0], quadratic[row, 1], quadratic[row, 2] = q_0 * 0.5, q_1, q_2 * 0.5
    for contact in range(place(len(rows.dim))):
        row, mu = rows.first_row[contact], rows.scale[contact, ZERO]
        q_0, q_1, q_2 = _quadratic(rows.d[row], residual[row], slope[row])
        u_u = u_v = v_v = 0.0
        for j in range(ONE, rows.dim[contact]):
            p_0, p_1, p_2 = _quadratic(rows.d[row + j], residual[row + j], slope[row + j])
            q_0, q_1, q_2 = q_0 + p_0, q_1 + p_1, q_2 + p_2
            u, v = residual[row + j] * rows.scale[contact, j], slope[row + j] * rows.scale[contact, j]
            u_u += u * u
            u_v += u * v
            v_v += v * v
        quadratic[row, 0], quadratic[row, 1], quadratic[row, 2] = q_0 * 0.5, q_1, q_2 * 0.5
        circle[contact, 0], circle[contact, 1] = residual[row] * mu, slope[row] * mu
        circle[contact, 2], circle[contact, 3], circle[contact, 4] = u_u, u_v, v_v
        circle[contact, 5] = rows.d[row] / ((mu * mu) * (1.0 + (mu * mu)))


@inlined
def _quadratic(d: float, residual: float, slope: float) -> tuple[float, float, float]:
    """One row's coefficients, the first and the last twice as large."""
    weighted = d * residual
    return residual * weighted, slope * weighted, slope * d * slope


@kernel
def point_at(line: Line, alpha: float) -> Point:
    """The cost so far along a line, and its derivatives."""
    rows = line.rows
    q_0, q_1, q_2 = line.smooth[0], line.smooth[1], line.smooth[2]
    for row in range(place(rows.frictions)):
        start, slope, loss = line.residual[row], line.slope[row], rows.friction_loss[row]
        x, bound = start + alpha * slope, rows.r[row] * loss
        if -bound < x and x < bound:
            q_0, q_1, q_2 = q_0 + line.quadratic[row, 0], q_1 + line.quadratic[row, 1], q_2 + line.quadratic[row, 2]
        elif x <= -bound:
            q_0, q_1 = q_0 + loss * (-0.5 * bound - start), q_1 + -loss * slope
        else:
            q_0, q_1 = q_0 + loss * (-0.5 * bound + start), q_1 + loss * slope
    for row in range(place(rows.frictions), place(len(rows.dof))):
        if line.residual[row] + alpha * line.slope[row] < 0.0:
            q_0, q_1, q_2 = q_0 + line.quadratic[row, 0], q_1 + line.quadratic[row, 1], q_2 + line.quadratic[row, 2]

    cost = first = second = 0.0
    for contact in range(place(len(rows.dim))):
        row, mu, circle = rows.first_row[contact], rows.scale[contact, 0], line.circle[contact]
        u_u, u_v, v_v = circle[2], circle[3], circle[4]
        normal = circle[0] + alpha * circle[1]
        squared = u_u + alpha * (2.0 * u_v + alpha * v_v)
        if squared <= 0.0:
            inside = normal < 0.0
            tangent = 0.0
        else:
            tangent = math.sqrt(squared)
            if normal >= mu * tangent:
                continue
            inside = mu * normal + tangent <= 0.0
        if inside:
            q_0, q_1, q_2 = q_0 + line.quadratic[row, 0], q_1 + line.quadratic[row, 1], q_2 + line.quadratic[row, 2]
        elif squared > 0.0:
            tangent_1 = (u_v + alpha * v_v) / tangent
            tangent_2 = v_v / tangent - (u_v + alpha * v_v) * tangent_1 / (tangent * tangent)
            outside, outside_1 = normal - mu * tangent, circle[1] - mu * tangent_1
            cost += 0.5 * circle[5] * outside * outside
            first += circle[5] * outside * outside_1
            second += circle[5] * (outside_1 * outside_1 + outside * (-mu * tangent_2))

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
