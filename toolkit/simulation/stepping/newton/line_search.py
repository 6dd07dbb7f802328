"""How far to go along a direction: Newton's method on the cost as a function of one number, bracketed where needed."""

from __future__ import annotations

import math
from typing import NamedTuple

from ..compiling import kernel
from ..pointers import U1, U2, U3, U4, U5, U6, FloatPointer
from .rows import MINVAL, Rows


class SearchLine(NamedTuple):
    """The cost along a direction.

    Attributes:
        rows: The constraints.
        residual: Their residual at the start, shape (n,).
        slope: The residual's change along the direction, shape (n,).
        smooth: Coefficients of the cost of all but the constraints, from the constant one.
        quadratic: The same of each row in quadratic state, where a contact's are all in its first row, shape (n * 3,).
        cone_terms: What the middle zone of each contact needs: normal part, its change, squared tangential part, half
            its linear and its quadratic change, and the weight, shape (contacts * 6,).
    """

    rows: Rows
    residual: FloatPointer
    slope: FloatPointer
    smooth: tuple[float, float, float]
    quadratic: FloatPointer
    cone_terms: FloatPointer


class Point(NamedTuple):
    """A point of a line: how far along, the cost there, and its first two derivatives."""

    alpha: float
    cost: float
    first: float
    second: float


@kernel
def prepare_line(line: SearchLine) -> None:
    """Fill in ``quadratic`` and ``cone_terms`` from the rest."""
    rows, residual, slope, cone_terms = line.rows, line.residual, line.slope, line.cone_terms
    scale, d = rows.scale, rows.d
    for row in range(rows.singles):
        _store_coefficients(line.quadratic, row, _coefficients(d[row], residual[row], slope[row]))
    for contact in range(rows.contacts):
        row, at = rows.first_row[contact], contact * U6
        mu = scale[at]
        q_0, q_1, q_2 = _coefficients(d[row], residual[row], slope[row])
        u_u = u_v = v_v = 0.0
        for j in range(U1, rows.dim[contact]):
            p_0, p_1, p_2 = _coefficients(d[row + j], residual[row + j], slope[row + j])
            q_0, q_1, q_2 = q_0 + p_0, q_1 + p_1, q_2 + p_2
            u, v = residual[row + j] * scale[at + j], slope[row + j] * scale[at + j]
            u_u += u * u
            u_v += u * v
            v_v += v * v
        _store_coefficients(line.quadratic, row, (q_0, q_1, q_2))
        cone_terms[at], cone_terms[at + U1] = residual[row] * mu, slope[row] * mu
        cone_terms[at + U2], cone_terms[at + U3], cone_terms[at + U4] = u_u, u_v, v_v
        cone_terms[at + U5] = d[row] / ((mu * mu) * (1.0 + (mu * mu)))


@kernel
def _store_coefficients(quadratic: FloatPointer, row: int, doubled: tuple[float, float, float]) -> None:
    """Store coefficients, of which the first and the last are given twice as large."""
    at = row * U3
    quadratic[at], quadratic[at + U1], quadratic[at + U2] = doubled[0] * 0.5, doubled[1], doubled[2] * 0.5


@kernel
def _add_coefficients(
    quadratic: FloatPointer, row: int, q_0: float, q_1: float, q_2: float
) -> tuple[float, float, float]:
    """Add the coefficients of a row."""
    at = row * U3
    return q_0 + quadratic[at], q_1 + quadratic[at + U1], q_2 + quadratic[at + U2]


@kernel
def _coefficients(d: float, residual: float, slope: float) -> tuple[float, float, float]:
    """One row's coefficients, the first and the last twice as large."""
    weighted = d * residual
    return residual * weighted, slope * weighted, slope * d * slope


@kernel
def point_at(line: SearchLine, alpha: float) -> Point:
    """The cost at ``alpha`` along a line, and its derivatives."""
    rows, quadratic, cone_terms = line.rows, line.quadratic, line.cone_terms
    residual, slope, friction_loss = line.residual, line.slope, rows.friction_loss
    q_0, q_1, q_2 = line.smooth
    for row in range(rows.frictions):
        loss, x = friction_loss[row], residual[row] + alpha * slope[row]
        bound = rows.r[row] * loss
        if -bound < x and x < bound:
            q_0, q_1, q_2 = _add_coefficients(quadratic, row, q_0, q_1, q_2)
        elif x <= -bound:
            q_0, q_1 = q_0 + loss * (-0.5 * bound - residual[row]), q_1 + -loss * slope[row]
        else:
            q_0, q_1 = q_0 + loss * (-0.5 * bound + residual[row]), q_1 + loss * slope[row]
    for row in range(rows.frictions, rows.singles):
        if residual[row] + alpha * slope[row] < 0.0:
            q_0, q_1, q_2 = _add_coefficients(quadratic, row, q_0, q_1, q_2)

    cost = first = second = 0.0
    for contact in range(rows.contacts):
        at = contact * U6
        mu, u_v, v_v = rows.scale[at], cone_terms[at + U3], cone_terms[at + U4]
        normal = cone_terms[at] + alpha * cone_terms[at + U1]
        squared = cone_terms[at + U2] + alpha * (2.0 * u_v + alpha * v_v)
        if squared <= 0.0:
            inside = normal < 0.0
            tangent = 0.0
        else:
            tangent = math.sqrt(squared)
            if normal >= mu * tangent:
                continue
            inside = mu * normal + tangent <= 0.0
        if inside:
            q_0, q_1, q_2 = _add_coefficients(quadratic, rows.first_row[contact], q_0, q_1, q_2)
        elif squared > 0.0:
            tangent_1 = (u_v + alpha * v_v) / tangent
            tangent_2 = v_v / tangent - (u_v + alpha * v_v) * tangent_1 / (tangent * tangent)
            outside, outside_1, weight = (
                normal - mu * tangent,
                cone_terms[at + U1] - mu * tangent_1,
                cone_terms[at + U5],
            )
            cost += 0.5 * weight * outside * outside
            first += weight * outside * outside_1
            second += weight * (outside_1 * outside_1 + outside * (-mu * tangent_2))

    cost += alpha * alpha * q_2 + alpha * q_1 + q_0
    first += 2.0 * alpha * q_2 + q_1
    second += 2.0 * q_2
    return Point(alpha, cost, first, MINVAL if second <= 0.0 else second)


@kernel
def _newton_step(line: SearchLine, point: Point) -> Point:
    """The point that Newton's method goes to next."""
    return point_at(line, point.alpha - point.first / point.second)


@kernel
def search(line: SearchLine, tolerance: float, max_evaluations: int) -> float:
    """How far to go along a line: to where the cost is least, or 0 if nothing is gained.

    Args:
        line: The line.
        tolerance: Largest first derivative that counts as none.
        max_evaluations: Evaluations of the cost after which the best so far must do.
    """
    start = point_at(line, 0.0)
    near, used = _newton_step(line, start), 2
    if start.cost < near.cost:
        near = start
    if abs(near.first) < tolerance:
        return near.alpha

    ahead, far, passed = 1.0 if near.first < 0.0 else -1.0, near, False
    while near.first * ahead <= -tolerance and used < max_evaluations:
        far, near, passed = near, _newton_step(line, near), True
        used += 1
        if abs(near.first) < tolerance:
            return near.alpha
    if used >= max_evaluations or not passed:
        return near.alpha
    return _search_bracket(line, start, near, far, tolerance, max_evaluations - used)


@kernel
def _search_bracket(
    line: SearchLine, start: Point, near: Point, far: Point, tolerance: float, max_evaluations: int
) -> float:
    """As ``search``, when the least cost lies between two points."""
    next_far, next_near = near, _newton_step(line, near)
    used = 1
    while used < max_evaluations:
        middle = point_at(line, 0.5 * (near.alpha + far.alpha))
        used += 1
        best_cost, best_alpha, found = 0.0, 0.0, False
        for candidate in (next_near, next_far, middle):
            if abs(candidate.first) < tolerance and (not found or candidate.cost < best_cost):
                best_cost, best_alpha, found = candidate.cost, candidate.alpha, True
        if found:
            return best_alpha

        candidates = (next_near, next_far, middle)
        moved_near, near = _tighten(near, candidates)
        if moved_near:
            next_near = _newton_step(line, near)
            used += 1
        # As MuJoCo does it, the far end chooses among the candidates of before.
        moved_far, far = _tighten(far, candidates)
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
def _tighten(end: Point, candidates: tuple[Point, Point, Point]) -> tuple[bool, Point]:
    """Move one end of a bracket to the candidate on its side that is nearest to where the cost is least."""
    moved = False
    for candidate in candidates:
        if (end.first < 0.0 and candidate.first < 0.0 and end.first < candidate.first) or (
            end.first > 0.0 and candidate.first > 0.0 and end.first > candidate.first
        ):
            end, moved = candidate, True
    return moved, end
