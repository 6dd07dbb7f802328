"""What the constraints cost at given accelerations, and the forces that follow."""

from __future__ import annotations

import math

from ..compiling import kernel
from ..pointers import U1, U2, U3, U4, U5, U6, FloatPointer
from .rows import Rows

SATISFIED, QUADRATIC, LINEAR_NEGATIVE, LINEAR_POSITIVE, CONE = range(5)
"""States of a row (MuJoCo's ``mjtConstraintState``)."""


@kernel
def _tangent_squared(residual: FloatPointer, row: int, dim: int, scale: FloatPointer, at: int) -> float:
    """The squared length of a contact's scaled tangential residual, added up as MuJoCo's scalar product does."""
    u_1, u_2 = residual[row + U1] * scale[at + U1], residual[row + U2] * scale[at + U2]
    squared: float = u_1 * u_1 + u_2 * u_2
    if dim > U3:
        u_3 = residual[row + U3] * scale[at + U3]
        if dim == U4:
            squared += u_3 * u_3
        else:
            u_4, u_5 = residual[row + U4] * scale[at + U4], residual[row + U5] * scale[at + U5]
            squared = (u_1 * u_1 + u_3 * u_3) + (u_2 * u_2 + u_4 * u_4) + u_5 * u_5
    return squared


@kernel
def update(rows: Rows, residual: FloatPointer, cone: FloatPointer) -> float:
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
        row, dim, at = rows.first_row[contact], rows.dim[contact], contact * U6
        mu, tangent = scale[at], math.sqrt(_tangent_squared(residual, row, dim, scale, at))
        normal = residual[row] * mu
        if normal >= mu * tangent or (tangent <= 0.0 and normal >= 0.0):
            zone = SATISFIED
            force[row] = force[row + U1] = force[row + U2] = 0.0
            for k in range(row + U3, row + dim):
                force[k] = 0.0
        elif mu * normal + tangent <= 0.0 or (tangent <= 0.0 and normal < 0.0):
            zone = QUADRATIC
            cost += 0.5 * d[row] * residual[row] * residual[row]
            cost += 0.5 * d[row + U1] * residual[row + U1] * residual[row + U1]
            cost += 0.5 * d[row + U2] * residual[row + U2] * residual[row + U2]
            for k in range(row + U3, row + dim):
                cost += 0.5 * d[k] * residual[k] * residual[k]
        else:
            zone = CONE
            cost += _in_cone(residual, row, dim, scale, at, d[row], tangent, force, cone, at * U6)
        state[row] = state[row + U1] = state[row + U2] = zone
        for k in range(row + U3, row + dim):
            state[k] = zone
    return cost


@kernel
def _in_cone(
    residual: FloatPointer,
    row: int,
    dim: int,
    scale: FloatPointer,
    scale_at: int,
    d: float,
    tangent: float,
    force: FloatPointer,
    cone: FloatPointer,
    cone_at: int,
) -> float:
    """Forces, second derivative and cost of a contact in the middle zone of its friction cone."""
    mu, normal = scale[scale_at], residual[row] * scale[scale_at]
    weight, outside = d / (mu * mu * (1.0 + mu * mu)), normal - mu * tangent
    pressure = -weight * outside * mu
    force[row] = pressure
    for j in range(U1, dim):
        force[row + j] = -pressure / tangent * (residual[row + j] * scale[scale_at + j]) * scale[scale_at + j]

    cone[cone_at] = 1.0
    factor = -mu / tangent
    for j in range(U1, dim):
        cone[cone_at + j * U6] = factor * (residual[row + j] * scale[scale_at + j])
    factor = mu * normal / (tangent * tangent * tangent)
    for k in range(U1, dim):
        for j in range(k, dim):
            scaled_j, scaled_k = residual[row + j] * scale[scale_at + j], residual[row + k] * scale[scale_at + k]
            cone[cone_at + j * U6 + k] = factor * scaled_j * scaled_k
    factor = mu * mu - mu * normal / tangent
    for j in range(U1, dim):
        cone[cone_at + j * U6 + j] += factor
    for k in range(dim):
        factor = weight * scale[scale_at + k]
        for j in range(k, dim):
            cone[cone_at + j * U6 + k] *= factor * scale[scale_at + j]
    cost: float = 0.5 * weight * outside * outside
    return cost
