"""What the constraints cost at given accelerations, and the forces that follow."""

from __future__ import annotations

import math

from ..compiling import kernel
from ..pointers import FIVE, FOUR, ONE, SIX, THREE, TWO, Numbers
from .rows import Rows

SATISFIED, QUADRATIC, LINEAR_NEGATIVE, LINEAR_POSITIVE, CONE = range(5)
"""States of a row (MuJoCo's ``mjtConstraintState``)."""


@kernel
def _tangent_squared(residual: Numbers, row: int, dim: int, scale: Numbers, at: int) -> float:
    """The squared length of a contact's scaled tangential residual, added up as MuJoCo's scalar product does."""
    u_1, u_2 = residual[row + ONE] * scale[at + ONE], residual[row + TWO] * scale[at + TWO]
    squared: float = u_1 * u_1 + u_2 * u_2
    if dim > THREE:
        u_3 = residual[row + THREE] * scale[at + THREE]
        if dim == FOUR:
            squared += u_3 * u_3
        else:
            u_4, u_5 = residual[row + FOUR] * scale[at + FOUR], residual[row + FIVE] * scale[at + FIVE]
            squared = (u_1 * u_1 + u_3 * u_3) + (u_2 * u_2 + u_4 * u_4) + u_5 * u_5
    return squared


@kernel
def update(rows: Rows, residual: Numbers, cone: Numbers) -> float:
    """Set the forces and states of all rows.

    Args:
        rows: The constraints.
        residual: The Jacobian times accelerations, less the reference accelerations, shape (n,).
        cone: The second derivatives of contacts in the middle zone of their friction cones are written here, lower
            triangles, shape (contacts * 36,).

    Returns:
        The cost.
    """
    d, r, friction_loss, force, state = rows.d, rows.r, rows.friction_loss, rows.force, rows.state
    scale = rows.scale
    cost = 0.0
    for row in range(rows.n):
        force[row] = -d[row] * residual[row]

    for row in range(rows.frictions):
        loss, jar = friction_loss[row], residual[row]
        if jar <= -r[row] * loss:
            cost += -0.5 * r[row] * loss * loss - loss * jar
            force[row], state[row] = loss, LINEAR_NEGATIVE
        elif jar >= r[row] * loss:
            cost += -0.5 * r[row] * loss * loss + loss * jar
            force[row], state[row] = -loss, LINEAR_POSITIVE
        else:
            cost += 0.5 * d[row] * jar * jar
            state[row] = QUADRATIC

    for row in range(rows.frictions, rows.singles):
        if residual[row] >= 0.0:
            force[row], state[row] = 0.0, SATISFIED
        else:
            cost += 0.5 * d[row] * residual[row] * residual[row]
            state[row] = QUADRATIC

    for contact in range(rows.contacts):
        row, dim, at = rows.first_row[contact], rows.dim[contact], contact * SIX
        mu, tangent = scale[at], math.sqrt(_tangent_squared(residual, row, dim, scale, at))
        normal = residual[row] * mu
        if normal >= mu * tangent or (tangent <= 0.0 and normal >= 0.0):
            zone = SATISFIED
            force[row] = force[row + ONE] = force[row + TWO] = 0.0
            for k in range(row + THREE, row + dim):
                force[k] = 0.0
        elif mu * normal + tangent <= 0.0 or (tangent <= 0.0 and normal < 0.0):
            zone = QUADRATIC
            cost += 0.5 * d[row] * residual[row] * residual[row]
            cost += 0.5 * d[row + ONE] * residual[row + ONE] * residual[row + ONE]
            cost += 0.5 * d[row + TWO] * residual[row + TWO] * residual[row + TWO]
            for k in range(row + THREE, row + dim):
                cost += 0.5 * d[k] * residual[k] * residual[k]
        else:
            zone = CONE
            cost += _in_cone(residual, row, dim, scale, at, d[row], tangent, force, cone, at * SIX)
        state[row] = state[row + ONE] = state[row + TWO] = zone
        for k in range(row + THREE, row + dim):
            state[k] = zone
    return cost


@kernel
def _in_cone(
    residual: Numbers,
    row: int,
    dim: int,
    scale: Numbers,
    scale_at: int,
    d: float,
    tangent: float,
    force: Numbers,
    cone: Numbers,
    cone_at: int,
) -> float:
    """Forces, second derivative and cost of a contact in the middle zone of its friction cone."""
    mu, normal = scale[scale_at], residual[row] * scale[scale_at]
    weight, outside = d / (mu * mu * (1.0 + mu * mu)), normal - mu * tangent
    pressure = -weight * outside * mu
    force[row] = pressure
    for j in range(ONE, dim):
        force[row + j] = -pressure / tangent * (residual[row + j] * scale[scale_at + j]) * scale[scale_at + j]

    cone[cone_at] = 1.0
    factor = -mu / tangent
    for j in range(ONE, dim):
        cone[cone_at + j * SIX] = factor * (residual[row + j] * scale[scale_at + j])
    factor = mu * normal / (tangent * tangent * tangent)
    for k in range(ONE, dim):
        for j in range(k, dim):
            scaled_j, scaled_k = residual[row + j] * scale[scale_at + j], residual[row + k] * scale[scale_at + k]
            cone[cone_at + j * SIX + k] = factor * scaled_j * scaled_k
    factor = mu * mu - mu * normal / tangent
    for j in range(ONE, dim):
        cone[cone_at + j * SIX + j] += factor
    for k in range(dim):
        factor = weight * scale[scale_at + k]
        for j in range(k, dim):
            cone[cone_at + j * SIX + k] *= factor * scale[scale_at + j]
    cost: float = 0.5 * weight * outside * outside
    return cost
