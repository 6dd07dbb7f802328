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
from ..pointers import FIVE, FOUR, SIX, THREE, TWO, WORD, ZERO, Numbers, numbers_at, place, places_at
from .hessian import Factors, factors_of
from .rows import Reach, Rows, handles, reach_of, row_count, rows_of

PROCESSORS = ("x86_64", "AMD64")
"""Where MuJoCo's library multiplies and adds in two roundings, as compiled code here does."""

MOST_ROWS = 1000
"""How many rows of constraints there is room for; scenes of LIBERO had 271 at most under random actions."""


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


class Problem(NamedTuple):
    """What stays the same from one substep to the next.

    Attributes:
        acc: View of the accelerations that are solved for, shape (nv,).
        warm_start: View of what they were solved as last, shape (nv,).
        acc_smooth: View of the accelerations without constraints, shape (nv,).
        force_smooth: View of all forces but those of constraints, shape (nv,).
        force: View of the forces of constraints, shape (nv,).
        mass: The joint-space inertia in full, shape (nv, nv); the caller keeps it up to date.
        room: Room to solve in.
        most_rows: Rows of constraints that there is room for; MuJoCo solves what has more.
        settings: When to end.
        reach: Which degrees of freedom can move what.
        fields: Where to find the constraints in MuJoCo's data.
        followed: Whether MuJoCo's arithmetic can be followed here, for this model; otherwise ask MuJoCo.
    """

    acc: FloatArray
    warm_start: FloatArray
    acc_smooth: FloatArray
    force_smooth: FloatArray
    force: FloatArray
    mass: FloatArray
    room: FloatArray
    most_rows: int
    settings: Settings
    reach: Reach
    fields: DataFields
    followed: bool


class Substep(NamedTuple):
    """The constraints of one substep, and where they are solved.

    Attributes:
        followed: Whether they are solved here; otherwise by MuJoCo.
        settings: When to end.
        rows: The constraints.
        acc: Accelerations, shape (nv,), as the following are.
        warm_start: What they were solved as last.
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
        circle: Likewise, shape (contacts * 6,).
        cone: Second derivatives of contacts, shape (contacts * 36,).
    """

    followed: bool
    settings: Settings
    rows: Rows
    acc: Numbers
    warm_start: Numbers
    acc_smooth: Numbers
    force_smooth: Numbers
    force: Numbers
    mass: Numbers
    factors: Factors
    momentum: Numbers
    momentum_slope: Numbers
    direction: Numbers
    gradient: Numbers
    padded_force: Numbers
    residual: Numbers
    slope: Numbers
    quadratic: Numbers
    circle: Numbers
    cone: Numbers


def problem_of(model: Any, data: Any, mass: FloatArray) -> Problem:
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
        mass=mass,
        room=np.empty(room_words(model.nv, MOST_ROWS if followed else 0)),
        most_rows=MOST_ROWS,
        settings=Settings(
            tolerance=options.tolerance,
            line_tolerance=options.ls_tolerance,
            iterations=options.iterations,
            line_iterations=options.ls_iterations,
            scale=1.0 / (model.stat.meaninertia * max(1, model.nv)),
        ),
        reach=reach_of(model),
        fields=data_fields() if followed else NO_FIELDS,
        followed=followed,
    )


def room_words(nv: int, n: int) -> int:
    """How much room a substep takes at most; a contact has three rows or more."""
    of_factors = n + 2 * nv * (nv + 3) + 7 * nv + 54
    return 4 * n + of_factors + (5 * nv + 3) + 5 * n + (6 + 36) * (n // 3)


@kernel
def substep_of(data: int, problem: Problem) -> Substep:
    """The constraints that MuJoCo has set up, if they are to be solved here; ``data`` is the address of its data."""
    nv, n, followed = place(len(problem.acc)), ZERO, problem.followed
    if followed:
        n = row_count(data, problem.fields)
        followed = n <= place(problem.most_rows)
        n = n if followed else ZERO
    rows_at = place(problem.room.ctypes.data)
    rows = rows_of(data, problem.fields, n, nv, problem.reach, rows_at)
    of_joints, of_rows, of_contacts = nv * WORD, n * WORD, rows.contacts * WORD
    joints_at = rows_at + FOUR * of_rows
    residuals_at = joints_at + FIVE * of_joints + THREE * WORD
    contacts_at = residuals_at + FIVE * of_rows
    cone_at = contacts_at + SIX * of_contacts
    factors_at = cone_at + SIX * SIX * of_contacts
    return Substep(
        followed,
        problem.settings,
        rows,
        numbers_at(problem.acc.ctypes.data),
        numbers_at(problem.warm_start.ctypes.data),
        numbers_at(problem.acc_smooth.ctypes.data),
        numbers_at(problem.force_smooth.ctypes.data),
        numbers_at(problem.force.ctypes.data),
        numbers_at(problem.mass.ctypes.data),
        factors_of(rows, places_at(problem.reach.tree.ctypes.data), factors_at),
        numbers_at(joints_at),
        numbers_at(joints_at + of_joints),
        numbers_at(joints_at + TWO * of_joints),
        numbers_at(joints_at + THREE * of_joints),
        numbers_at(joints_at + FOUR * of_joints),
        numbers_at(residuals_at),
        numbers_at(residuals_at + of_rows),
        numbers_at(residuals_at + TWO * of_rows),
        numbers_at(contacts_at),
        numbers_at(cone_at),
    )
