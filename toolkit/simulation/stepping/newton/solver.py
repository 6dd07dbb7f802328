"""Accelerations under the constraints: Newton's method on the cost, from the better of two starts."""

from __future__ import annotations

from ..compiling import inlined, kernel
from ..mujoco_library import mj_fwdConstraint, mj_mulM
from ..pointers import U0, FloatPointer
from . import cost, hessian, line_search
from .problem import Substep
from .products import copy, dot, fill, jac_times, jac_transposed_times, norm
from .rows import MINVAL


@kernel
def smooth_cost(substep: Substep) -> float:
    """The constraints' cost at the accelerations without them, which ``solve`` may start from."""
    return _evaluate(substep, substep.acc_smooth)


@inlined
def solve(model: int, data: int, substep: Substep, cost_smooth: float) -> None:
    """Solve for the accelerations, as MuJoCo's ``mj_fwdConstraint`` does, and store them as the next warm start.

    Args:
        model: Address of MuJoCo's model.
        data: Address of MuJoCo's data.
        substep: The constraints.
        cost_smooth: From ``smooth_cost``, for the present ``acc_smooth``.
    """
    rows = substep.rows
    if not substep.solved_here:
        mj_fwdConstraint(model, data)
    elif rows.n == U0:
        fill(substep.force, rows.nv, 0.0)
        copy(substep.acc_smooth, substep.acc, rows.nv)
        copy(substep.acc_smooth, substep.warm_start, rows.nv)
    else:
        _iterate(model, data, substep, _start(model, data, substep, cost_smooth))
        copy(substep.acc, substep.warm_start, rows.nv)


@kernel
def _start(model: int, data: int, substep: Substep, cost_smooth: float) -> float:
    """Begin at the warm start, or at the accelerations without constraints where they cost less; returns the cost."""
    acc, momentum, nv = substep.acc, substep.momentum, substep.rows.nv
    copy(substep.warm_start, acc, nv)
    constraints = _evaluate(substep, acc)
    mj_mulM(model, data, momentum, acc)
    if _add_smooth_cost(substep, constraints) > cost_smooth:
        copy(substep.acc_smooth, acc, nv)
        constraints = _evaluate(substep, acc)
        mj_mulM(model, data, momentum, acc)
    return constraints


@inlined
def _iterate(model: int, data: int, substep: Substep, constraints: float) -> None:
    """Newton's method, from where the constraints cost ``constraints`` until nothing is gained."""
    rows, factors, settings = substep.rows, substep.factors, substep.settings
    smooth = _add_smooth_cost(substep, 0.0)
    total = constraints + smooth
    _find_gradient(substep)
    hessian.factorize(rows, substep.mass, factors)
    for _ in range(settings.iterations):
        _find_direction(substep)
        if not _move_along(model, data, substep, smooth):
            break
        copy(rows.state, factors.state, rows.n)
        before = total
        constraints = cost.update(rows, substep.residual, substep.cone)
        smooth = _add_smooth_cost(substep, 0.0)
        total = constraints + smooth
        _find_gradient(substep)
        improvement, steepness = settings.scale * (before - total), settings.scale * norm(substep.gradient, rows.nv)
        if improvement < settings.tolerance or steepness < settings.tolerance:
            break
        # MuJoCo keeps its Hessian up to date even when that was the last step.
        if not hessian.update_factor(rows, factors):
            hessian.factorize(rows, substep.mass, factors)


@kernel
def _evaluate(substep: Substep, acc: FloatPointer) -> float:
    """Write residual, forces and states of the constraints at some accelerations; returns their cost."""
    rows, residual, aref = substep.rows, substep.residual, substep.rows.aref
    jac_times(rows, acc, residual)
    for row in range(rows.n):
        residual[row] -= aref[row]
    return cost.update(rows, residual, substep.cone)


@kernel
def _add_smooth_cost(substep: Substep, total: float) -> float:
    """Add the cost of the accelerations' distance from those without constraints to a total."""
    acc, acc_smooth, momentum, force_smooth = substep.acc, substep.acc_smooth, substep.momentum, substep.force_smooth
    for i in range(substep.rows.nv):
        force = momentum[i] - force_smooth[i]
        total += 0.5 * force * (acc[i] - acc_smooth[i])
    return total


@kernel
def _find_gradient(substep: Substep) -> None:
    """Write the cost's gradient, and the constraints' forces in joint space."""
    rows, momentum, gradient, padded = substep.rows, substep.momentum, substep.gradient, substep.padded_force
    force, force_smooth = substep.force, substep.force_smooth
    jac_transposed_times(rows, rows.force, padded)
    for i in range(rows.nv):
        force[i] = padded[i]
        gradient[i] = momentum[i] - force_smooth[i] - force[i]


@kernel
def _find_direction(substep: Substep) -> None:
    """Write the direction of Newton's method."""
    direction, nv = substep.direction, substep.rows.nv
    copy(substep.gradient, direction, nv)
    hessian.solve(substep.rows, substep.cone, substep.factors, direction)
    for i in range(nv):
        direction[i] = -direction[i]


@kernel
def _move_along(model: int, data: int, substep: Substep, smooth: float) -> bool:
    """Move along the direction to where the cost is least; returns whether that is another place."""
    rows, settings, residual, slope = substep.rows, substep.settings, substep.residual, substep.slope
    acc, direction, nv = substep.acc, substep.direction, rows.nv
    momentum, momentum_slope = substep.momentum, substep.momentum_slope
    length = norm(direction, nv)
    if length < MINVAL:
        return False
    mj_mulM(model, data, momentum_slope, direction)
    jac_times(rows, direction, slope)
    against = dot(substep.force_smooth, U0, direction, U0, U0, nv)
    linear = dot(direction, U0, momentum, U0, U0, nv) - against
    curvature = 0.5 * dot(direction, U0, momentum_slope, U0, U0, nv)
    line = line_search.SearchLine(
        rows, residual, slope, (smooth, linear, curvature), substep.quadratic, substep.cone_terms
    )
    line_search.prepare_line(line)
    tolerance = settings.tolerance * settings.line_tolerance * length / settings.scale
    alpha = line_search.search(line, tolerance, settings.line_iterations)
    if alpha == 0.0:
        return False
    for i in range(nv):
        acc[i] += direction[i] * alpha
        momentum[i] += momentum_slope[i] * alpha
    for row in range(rows.n):
        residual[row] += slope[row] * alpha
    return True
