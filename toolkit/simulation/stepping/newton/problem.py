"""The constraint problem of a model, and of one substep of it: what is solved, by which settings, in what memory."""

from __future__ import annotations

import platform
from typing import Any, NamedTuple

import mujoco
import numpy as np

from ....arrays import FloatArray
from ....libero.install import MUJOCO_VERSION
from ..compiling import kernel
from ..mujoco_library import NO_FIELDS, DataFields, data_fields
from ..pointers import U0, U2, U3, U4, U5, U6, WORD_BYTES, FloatPointer, float_pointer, index_pointer, unsigned
from .hessian import Factors, lay_out_factors
from .rows import DofSpans, Rows, find_dof_spans, read_rows, row_count, supports

PROCESSORS = ("x86_64", "AMD64")
"""Processors on which MuJoCo's library rounds twice to multiply and add, as compiled code here does."""

MAX_ROWS = 1000
"""How many rows of constraints the workspace holds; scenes of LIBERO had 271 at most under random actions."""


class Settings(NamedTuple):
    """When the solver ends.

    Attributes:
        tolerance: Improvement and gradient, scaled, that are small enough.
        line_tolerance: The same for the line search, relative to it.
        iterations: Newton steps, at most.
        line_iterations: Evaluations of a line search, at most.
        scale: Makes improvement and gradient comparable between models.
    """

    tolerance: float
    line_tolerance: float
    iterations: int
    line_iterations: int
    scale: float


class ConstraintProblem(NamedTuple):
    """What stays the same from one substep to the next.

    Attributes:
        acc: View of the accelerations that are solved for, shape (nv,).
        warm_start: View of the accelerations of the last solution, shape (nv,).
        acc_smooth: View of the accelerations without constraints, shape (nv,).
        force_smooth: View of all forces but those of constraints, shape (nv,).
        force: View of the forces of constraints, shape (nv,).
        mass: The joint-space inertia in full, shape (nv, nv); the caller keeps it up to date.
        workspace: Memory to solve in.
        max_rows: Rows of constraints that the workspace holds; MuJoCo solves what has more.
        settings: When to end.
        dof_spans: Which degrees of freedom can move what.
        fields: Where to find the constraints in MuJoCo's data.
        supported: Whether MuJoCo's arithmetic is known for this model; otherwise MuJoCo solves it.
    """

    acc: FloatArray
    warm_start: FloatArray
    acc_smooth: FloatArray
    force_smooth: FloatArray
    force: FloatArray
    mass: FloatArray
    workspace: FloatArray
    max_rows: int
    settings: Settings
    dof_spans: DofSpans
    fields: DataFields
    supported: bool


class Substep(NamedTuple):
    """The constraints of one substep, and the memory that they are solved in.

    Attributes:
        solved_here: Whether they are solved here; otherwise by MuJoCo.
        settings: When to end.
        rows: The constraints.
        acc: Accelerations, shape (nv,), as what follows.
        warm_start: The accelerations of the last solution.
        acc_smooth: Accelerations without constraints.
        force_smooth: All forces but those of constraints.
        force: Forces of constraints, in joint space.
        mass: The joint-space inertia, shape (nv * nv,).
        factors: The Hessian, factorized.
        momentum: Mass times accelerations.
        momentum_slope: Mass times direction.
        direction: The direction of search.
        gradient: The cost's gradient.
        padded_force: Forces of constraints, shape (nv + 3,).
        residual: Residuals at the accelerations last looked at, shape (n,).
        slope: Their change along the direction, shape (n,).
        quadratic: Of the line search, shape (n * 3,).
        cone_terms: Of the line search, shape (contacts * 6,).
        cone: Second derivatives of contacts, shape (contacts * 36,).
    """

    solved_here: bool
    settings: Settings
    rows: Rows
    acc: FloatPointer
    warm_start: FloatPointer
    acc_smooth: FloatPointer
    force_smooth: FloatPointer
    force: FloatPointer
    mass: FloatPointer
    factors: Factors
    momentum: FloatPointer
    momentum_slope: FloatPointer
    direction: FloatPointer
    gradient: FloatPointer
    padded_force: FloatPointer
    residual: FloatPointer
    slope: FloatPointer
    quadratic: FloatPointer
    cone_terms: FloatPointer
    cone: FloatPointer


def constraint_problem(model: Any, data: Any, mass: FloatArray) -> ConstraintProblem:
    """The constraint problem of a model and its data.

    Args:
        model: The MuJoCo model.
        data: The MuJoCo data.
        mass: Where the caller writes the joint-space inertia in full, shape (nv, nv).
    """
    options = model.opt
    supported = bool(
        mujoco.__version__ == MUJOCO_VERSION
        and platform.machine() in PROCESSORS
        and options.solver == mujoco.mjtSolver.mjSOL_NEWTON
        and not mujoco.mj_isSparse(model)
        and not options.noslip_iterations
        and not options.disableflags & mujoco.mjtDisableBit.mjDSBL_WARMSTART
        and supports(model)
    )
    return ConstraintProblem(
        acc=data.qacc,
        warm_start=data.qacc_warmstart,
        acc_smooth=data.qacc_smooth,
        force_smooth=data.qfrc_smooth,
        force=data.qfrc_constraint,
        mass=mass,
        workspace=np.empty(workspace_words(model.nv, MAX_ROWS if supported else 0)),
        max_rows=MAX_ROWS,
        settings=Settings(
            tolerance=options.tolerance,
            line_tolerance=options.ls_tolerance,
            iterations=options.iterations,
            line_iterations=options.ls_iterations,
            scale=1.0 / (model.stat.meaninertia * max(1, model.nv)),
        ),
        dof_spans=find_dof_spans(model),
        fields=data_fields() if supported else NO_FIELDS,
        supported=supported,
    )


def workspace_words(nv: int, n: int) -> int:
    """Words of memory that a substep needs at most; a contact has three rows or more."""
    of_factors = n + 2 * nv * (nv + 3) + 7 * nv + 54
    return 4 * n + of_factors + (5 * nv + 3) + 5 * n + (6 + 36) * (n // 3)


@kernel
def read_substep(data: int, problem: ConstraintProblem) -> Substep:
    """Read the constraints that MuJoCo has set up; ``data`` is the address of its data."""
    nv, n, solved_here = unsigned(len(problem.acc)), U0, problem.supported
    if solved_here:
        n = row_count(data, problem.fields)
        solved_here = n <= unsigned(problem.max_rows)
        n = n if solved_here else U0
    rows_at = unsigned(problem.workspace.ctypes.data)
    rows = read_rows(data, problem.fields, n, nv, problem.dof_spans, rows_at)
    of_joints, of_rows, of_contacts = nv * WORD_BYTES, n * WORD_BYTES, rows.contacts * WORD_BYTES
    joints_at = rows_at + U4 * of_rows
    residuals_at = joints_at + U5 * of_joints + U3 * WORD_BYTES
    contacts_at = residuals_at + U5 * of_rows
    cone_at = contacts_at + U6 * of_contacts
    factors_at = cone_at + U6 * U6 * of_contacts
    return Substep(
        solved_here,
        problem.settings,
        rows,
        float_pointer(problem.acc.ctypes.data),
        float_pointer(problem.warm_start.ctypes.data),
        float_pointer(problem.acc_smooth.ctypes.data),
        float_pointer(problem.force_smooth.ctypes.data),
        float_pointer(problem.force.ctypes.data),
        float_pointer(problem.mass.ctypes.data),
        lay_out_factors(rows, index_pointer(problem.dof_spans.tree.ctypes.data), factors_at),
        float_pointer(joints_at),
        float_pointer(joints_at + of_joints),
        float_pointer(joints_at + U2 * of_joints),
        float_pointer(joints_at + U3 * of_joints),
        float_pointer(joints_at + U4 * of_joints),
        float_pointer(residuals_at),
        float_pointer(residuals_at + of_rows),
        float_pointer(residuals_at + U2 * of_rows),
        float_pointer(contacts_at),
        float_pointer(cone_at),
    )
