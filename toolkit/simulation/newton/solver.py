"""Accelerations under the constraints: Newton's method on the cost, from the better of two starts."""

from __future__ import annotations

import platform
from typing import Any, NamedTuple

import mujoco
import numpy as np

from ..mujoco_library import NO_FIELDS, DataFields, data_fields, mj_fwdConstraint, mj_mulM
from . import cost, hessian, line_search
from .compiling import allocating, inlined, kernel
from .rows import (
    LARGEST_DIM,
    MINVAL,
    ZERO,
    Array,
    Integers,
    Places,
    Reach,
    Rows,
    dot,
    handles,
    jac_times,
    jac_transposed_times,
    norm,
    reach_of,
    rows_of,
)

MUJOCO_VERSION = "3.2.3"
"""The version whose arithmetic is followed here."""

PROCESSORS = ("x86_64", "AMD64")
"""Where MuJoCo's library multiplies and adds in two roundings, as compiled code here does."""


class Problem(NamedTuple):
    """What stays the same from one substep to the next.

    Attributes:
        acc: View of the accelerations that are solved for, shape (nv,).
        warm_start: View of what they were solved as last, shape (nv,).
        acc_smooth: View of the accelerations without constraints, shape (nv,).
        force_smooth: View of all forces but those of constraints, shape (nv,).
        force: View of the forces of constraints, shape (nv,).
        mass: The joint-space inertia in full, shape (nv * nv,); the caller keeps it up to date.
        tolerance: Improvement and gradient, scaled, that are small enough.
        line_tolerance: The same for the line search, relative to it.
        iterations: Newton steps, at most.
        line_iterations: Evaluations of a line search, at most.
        scale: Makes improvement and gradient comparable between models.
        reach: Which degrees of freedom can move what.
        fields: Where to find the constraints in MuJoCo's data.
        followed: Whether MuJoCo's arithmetic can be followed here, for this model; otherwise ask MuJoCo.
    """

    acc: Array
    warm_start: Array
    acc_smooth: Array
    force_smooth: Array
    force: Array
    mass: Array
    tolerance: float
    line_tolerance: float
    iterations: int
    line_iterations: int
    scale: float
    reach: Reach
    fields: DataFields
    followed: bool


class Substep(NamedTuple):
    """The constraints of one substep, and room to solve them in.

    Attributes:
        rows: The constraints.
        envelope: Where rows of the Hessian's factor begin, shape (nv,).
        smooth: Residual at the accelerations without constraints, shape (n,).
        residual: Residual at the present accelerations, shape (n,).
        slope: The residual's change along the direction of search, shape (n,).
        state: The states that the factor is for, shape (n,).
        cone: Second derivatives of contacts, shape (contacts, 6, 6).
        momentum: Mass times present accelerations, shape (nv,).
        momentum_slope: Mass times direction, shape (nv,).
        direction: The direction of search, shape (nv,).
        gradient: The cost's gradient, shape (nv,).
        force: Room for forces in joint space, shape (nv + 3,).
        factor: The Hessian's factor, as ``hessian`` has it.
        coned: The same with contacts in the middle zone of their friction cones.
        polynomial: Coefficients of the cost without constraints along a line, shape (3,).
        quadratic: Those of the rows, shape (n, 3).
        circle: What a line needs of contacts, shape (contacts, 6).
        local: Room for a contact's second derivative, shape (6 * 8,).
        parts: Room for a contact's rows of the Jacobian, shape (6 * nv,).
        zeros: Zeros, shape (6,).
    """

    rows: Rows
    envelope: Places
    smooth: Array
    residual: Array
    slope: Array
    state: Integers
    cone: Array
    momentum: Array
    momentum_slope: Array
    direction: Array
    gradient: Array
    force: Array
    factor: Array
    coned: Array
    polynomial: Array
    quadratic: Array
    circle: Array
    local: Array
    parts: Array
    zeros: Places


def problem_of(model: Any, data: Any, mass: Array) -> Problem:
    """The constraint problem of a model and its data.

    Args:
        model: The MuJoCo model.
        data: The MuJoCo data.
        mass: Where the caller keeps the joint-space inertia in full, shape (nv, nv).
    """
    options = model.opt
    followed = bool(
        mujoco.__version__ == MUJOCO_VERSION
        and platform.machine() in PROCESSORS
        and options.solver == mujoco.mjtSolver.mjSOL_NEWTON
        and not mujoco.mj_isSparse(model)
        and not options.noslip_iterations
        and not options.disableflags & mujoco.mjtDisableBit.mjDSBL_WARMSTART
        and handles(model)
    )
    return Problem(
        acc=data.qacc,
        warm_start=data.qacc_warmstart,
        acc_smooth=data.qacc_smooth,
        force_smooth=data.qfrc_smooth,
        force=data.qfrc_constraint,
        mass=mass.reshape(-1),
        tolerance=options.tolerance,
        line_tolerance=options.ls_tolerance,
        iterations=options.iterations,
        line_iterations=options.ls_iterations,
        scale=1.0 / (model.stat.meaninertia * max(1, model.nv)),
        reach=reach_of(model),
        fields=data_fields() if followed else NO_FIELDS,
        followed=followed,
    )


@allocating
def substep_of(data: int, problem: Problem) -> Substep:
    """The constraints that MuJoCo has set up, if they are to be solved here; ``data`` is the address of its data."""
    nv = len(problem.acc)
    rows = rows_of(data, problem.fields, nv, problem.reach, problem.followed)
    n, contacts, padded = len(rows.d), len(rows.dim), nv * ((nv + 3) // 4 * 4)
    envelope = np.empty(nv, np.uintp)
    hessian.find_envelope(rows, problem.reach.tree, envelope)
    return Substep(
        rows,
        envelope,
        np.empty(n),
        np.empty(n),
        np.empty(n),
        np.empty(n, np.int32),
        np.empty((contacts, LARGEST_DIM, LARGEST_DIM)),
        np.empty(nv),
        np.empty(nv),
        np.empty(nv),
        np.empty(nv),
        np.empty(nv + 3),
        np.empty(padded),
        np.empty(padded),
        np.empty(3),
        np.empty((n, 3)),
        np.empty((contacts, 6)),
        np.empty(8 * LARGEST_DIM),
        np.empty(nv * LARGEST_DIM),
        np.zeros(LARGEST_DIM, np.uintp),
    )


@kernel
def smooth_cost(problem: Problem, substep: Substep) -> float:
    """The constraints' cost at the accelerations without them, which ``solve`` may start from."""
    return _move(problem.acc_smooth, substep, substep.smooth)


@kernel
def solve(model: int, data: int, problem: Problem, substep: Substep, cost_smooth: float) -> None:
    """Solve for the accelerations, as MuJoCo's ``mj_fwdConstraint`` does, and keep them as the next warm start.

    A problem that cannot be followed here is MuJoCo's to solve.

    Args:
        model: Address of MuJoCo's model.
        data: Address of MuJoCo's data.
        problem: Of this model and data.
        substep: The constraints.
        cost_smooth: From ``smooth_cost``, for the present ``acc_smooth``.
    """
    rows = substep.rows
    if not problem.followed:
        mj_fwdConstraint(model, data)
        return
    if len(rows.d) == 0:
        problem.force[:] = 0.0
        _copy(problem.acc_smooth, problem.acc)
        _copy(problem.acc_smooth, problem.warm_start)
        return
    constraints = _start(model, data, problem, substep, cost_smooth)
    smooth = _with_smooth(problem, substep, 0.0)
    total = constraints + smooth
    _find_gradient(problem, substep)
    hessian.factorize(rows, problem.mass, substep.envelope, substep.factor)
    for _ in range(problem.iterations):
        _find_direction(substep)
        if not _go_along(model, data, problem, substep, smooth):
            break
        _copy(rows.state, substep.state)
        before = total
        constraints = cost.update(rows, substep.residual, substep.cone)
        smooth = _with_smooth(problem, substep, 0.0)
        total = constraints + smooth
        _find_gradient(problem, substep)
        improvement = problem.scale * (before - total)
        if improvement < problem.tolerance or problem.scale * norm(substep.gradient) < problem.tolerance:
            break
        # MuJoCo keeps its Hessian up to date even when that was the last step.
        if not hessian.follow_states(rows, substep.state, substep.factor, substep.envelope, substep.parts):
            hessian.factorize(rows, problem.mass, substep.envelope, substep.factor)
    _copy(problem.acc, problem.warm_start)


@inlined
def _start(model: int, data: int, problem: Problem, substep: Substep, cost_smooth: float) -> float:
    """Begin at the warm start, or without constraints' accelerations if that costs less; returns constraints' cost."""
    _copy(problem.warm_start, problem.acc)
    constraints = _move(problem.acc, substep, substep.residual)
    mj_mulM(model, data, substep.momentum.ctypes.data, problem.acc.ctypes.data)
    if _with_smooth(problem, substep, constraints) > cost_smooth:
        _copy(problem.acc_smooth, problem.acc)
        constraints = _move(problem.acc, substep, substep.residual)
        mj_mulM(model, data, substep.momentum.ctypes.data, problem.acc.ctypes.data)
    return constraints


@inlined
def _move(acc: Array, substep: Substep, residual: Array) -> float:
    """Residual, forces, states and cost of the constraints at some accelerations; returns the cost."""
    jac_times(substep.rows, acc, residual)
    for row in range(len(residual)):
        residual[row] -= substep.rows.aref[row]
    return cost.update(substep.rows, residual, substep.cone)


@inlined
def _with_smooth(problem: Problem, substep: Substep, total: float) -> float:
    """Add to a cost what the accelerations' distance from those without constraints costs."""
    for i in range(len(problem.acc)):
        force = substep.momentum[i] - problem.force_smooth[i]
        total += 0.5 * force * (problem.acc[i] - problem.acc_smooth[i])
    return total


@inlined
def _find_gradient(problem: Problem, substep: Substep) -> None:
    """The cost's gradient, and the constraints' forces in joint space."""
    jac_transposed_times(substep.rows, substep.rows.force, substep.force)
    for i in range(len(problem.force)):
        problem.force[i] = substep.force[i]
        substep.gradient[i] = substep.momentum[i] - problem.force_smooth[i] - problem.force[i]


@inlined
def _find_direction(substep: Substep) -> None:
    """Where Newton's method leads from here."""
    rows, direction = substep.rows, substep.direction
    coned = hessian.add_cones(
        rows,
        substep.cone,
        substep.factor,
        substep.envelope,
        substep.local,
        substep.zeros,
        substep.parts,
        substep.coned,
    )
    _copy(substep.gradient, direction)
    hessian.solve(substep.coned if coned else substep.factor, substep.envelope, direction)
    for i in range(len(direction)):
        direction[i] = -direction[i]


@inlined
def _go_along(model: int, data: int, problem: Problem, substep: Substep, smooth: float) -> bool:
    """Go along the direction to where the cost is least; returns whether that is anywhere else."""
    momentum, direction, polynomial, nv = substep.momentum, substep.direction, substep.polynomial, substep.rows.nv
    length = norm(direction)
    if length < MINVAL:
        return False
    mj_mulM(model, data, substep.momentum_slope.ctypes.data, direction.ctypes.data)
    jac_times(substep.rows, direction, substep.slope)
    against = dot(problem.force_smooth, ZERO, direction, ZERO, ZERO, nv)
    polynomial[0] = smooth
    polynomial[1] = dot(direction, ZERO, momentum, ZERO, ZERO, nv) - against
    polynomial[2] = 0.5 * dot(direction, ZERO, substep.momentum_slope, ZERO, ZERO, nv)
    line = line_search.Line(
        substep.rows, substep.residual, substep.slope, polynomial, substep.quadratic, substep.circle
    )
    line_search.prepare(line)
    tolerance = problem.tolerance * problem.line_tolerance * length / problem.scale
    alpha = line_search.search(line, tolerance, problem.line_iterations)
    if alpha == 0.0:
        return False
    for i in range(len(direction)):
        problem.acc[i] += direction[i] * alpha
        momentum[i] += substep.momentum_slope[i] * alpha
    for row in range(len(substep.residual)):
        substep.residual[row] += substep.slope[row] * alpha
    return True


@kernel
def _copy(values: Array | Integers, into: Array | Integers) -> None:
    for i in range(len(into)):
        into[i] = values[i]
