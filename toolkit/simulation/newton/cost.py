"""What the constraints cost at given accelerations, and the forces that follow."""

from __future__ import annotations

import math

from .compiling import inlined, kernel
from .rows import FOUR, ONE, THREE, TWO, ZERO, Array, Rows, place

SATISFIED, QUADRATIC, LINEAR_NEGATIVE, LINEAR_POSITIVE, CONE = range(5)
"""States of a row (MuJoCo's ``mjtConstraintState``)."""


@inlined
def _scaled(rows: Rows, contact: int, residual: Array, j: int) -> float:
    """A component of a contact's residual, in units in which its friction cone is circular."""
    scaled: float = residual[rows.first_row[contact] + j] * rows.scale[contact, j]
    return scaled


@inlined
def _tangent_squared(rows: Rows, contact: int, residual: Array) -> float:
    """The squared length of a contact's scaled tangential residual, added up as MuJoCo's scalar product does."""
    dim = rows.dim[contact]
    u_1, u_2 = _scaled(rows, contact, residual, ONE), _scaled(rows, contact, residual, TWO)
    if dim == THREE:
        return u_1 * u_1 + u_2 * u_2
    u_3 = _scaled(rows, contact, residual, THREE)
    if dim == FOUR:
        return u_1 * u_1 + u_2 * u_2 + u_3 * u_3
    u_4, u_5 = _scaled(rows, contact, residual, FOUR), _scaled(rows, contact, residual, FOUR + ONE)
    return (u_1 * u_1 + u_3 * u_3) + (u_2 * u_2 + u_4 * u_4) + u_5 * u_5


@kernel
def update(rows: Rows, residual: Array, cone: Array) -> float:
    """Set the forces and states of all rows.

    Args:
        rows: The constraints.
        residual: The Jacobian times accelerations, less the reference accelerations, shape (n,).
        cone: The second derivatives of contacts in the middle zone of their friction cones are written here, lower
            triangles, shape (contacts, 6, 6).

    Returns:
        The cost.
    """
    d, r, force, state = rows.d, rows.r, rows.force, rows.state
    cost = 0.0
    for row in range(place(len(residual))):
        force[row] = -d[row] * residual[row]

    for row in range(place(rows.frictions)):
        loss, jar = rows.friction_loss[row], residual[row]
        if jar <= -r[row] * loss:
            cost += -0.5 * r[row] * loss * loss - loss * jar
            force[row], state[row] = loss, LINEAR_NEGATIVE
        elif jar >= r[row] * loss:
            cost += -0.5 * r[row] * loss * loss + loss * jar
            force[row], state[row] = -loss, LINEAR_POSITIVE
        else:
            cost += 0.5 * d[row] * jar * jar
            state[row] = QUADRATIC

    for row in range(place(rows.frictions), place(len(rows.dof))):
        if residual[row] >= 0.0:
            force[row], state[row] = 0.0, SATISFIED
        else:
            cost += 0.5 * d[row] * residual[row] * residual[row]
            state[row] = QUADRATIC

    for contact in range(place(len(rows.dim))):
        row, dim, mu = rows.first_row[contact], rows.dim[contact], rows.scale[contact, ZERO]
        normal, tangent = residual[row] * mu, math.sqrt(_tangent_squared(rows, contact, residual))
        if normal >= mu * tangent or (tangent <= 0.0 and normal >= 0.0):
            zone = SATISFIED
            force[row] = force[row + ONE] = force[row + TWO] = 0.0
            if dim > THREE:
                force[row + THREE : row + dim] = 0.0
        elif mu * normal + tangent <= 0.0 or (tangent <= 0.0 and normal < 0.0):
            zone = QUADRATIC
            cost += 0.5 * d[row] * residual[row] * residual[row]
            cost += 0.5 * d[row + ONE] * residual[row + ONE] * residual[row + ONE]
            cost += 0.5 * d[row + TWO] * residual[row + TWO] * residual[row + TWO]
            for k in range(row + THREE, row + dim):
                cost += 0.5 * d[k] * residual[k] * residual[k]
        else:
            zone = CONE
            cost += _in_cone(rows, contact, residual, tangent, cone[contact])
        state[row] = state[row + ONE] = state[row + TWO] = zone
        if dim > THREE:
            state[row + THREE : row + dim] = zone
    return cost


@inlined
def _in_cone(rows: Rows, contact: int, residual: Array, tangent: float, cone: Array) -> float:
    """Forces, second derivative and cost of a contact in the middle zone of its friction cone."""
    row, dim, scale = rows.first_row[contact], rows.dim[contact], rows.scale[contact]
    mu, normal = scale[ZERO], _scaled(rows, contact, residual, ZERO)
    weight, outside = rows.d[row] / (mu * mu * (1.0 + mu * mu)), normal - mu * tangent
    force = -weight * outside * mu
    rows.force[row] = force
    for j in range(ONE, dim):
        rows.force[row + j] = -force / tangent * _scaled(rows, contact, residual, j) * scale[j]

    cone[0, 0] = 1.0
    factor = -mu / tangent
    for j in range(ONE, dim):
        cone[j, ZERO] = factor * _scaled(rows, contact, residual, j)
    factor = mu * normal / (tangent * tangent * tangent)
    for k in range(ONE, dim):
        for j in range(k, dim):
            cone[j, k] = factor * _scaled(rows, contact, residual, j) * _scaled(rows, contact, residual, k)
    factor = mu * mu - mu * normal / tangent
    for j in range(ONE, dim):
        cone[j, j] += factor
    for k in range(dim):
        factor = weight * scale[k]
        for j in range(k, dim):
            cone[j, k] *= factor * scale[j]
    cost: float = 0.5 * weight * outside * outside
    return cost
