"""The constraints of one substep, as MuJoCo has them, and which degrees of freedom each touches.

First comes one row for the friction of each joint that has some, then one for each joint at a limit, then three to six
rows for each contact. Places in arrays are unsigned numbers here: compiled code then need not ask whether one counts
from an array's end, which halves the time of the innermost loops.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import mujoco
import numpy as np
import numpy.typing as npt

from ..mujoco_library import CONTACT, DataFields, address_at, integers_at, numbers_at, offset_of
from .compiling import allocating, inlined, kernel

Array = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int32]
Places = npt.NDArray[Any]

place: Any = np.uintp
"""What counts places in arrays, as an unsigned number."""

ZERO, ONE, TWO, THREE, FOUR = (place(n) for n in range(5))

LARGEST_DIM = 6
"""A contact has at most so many rows."""

MINVAL = 1e-15
"""What MuJoCo takes for zero (``mjMINVAL``)."""

_NUMBERS, _INTEGERS = CONTACT.itemsize // 8, CONTACT.itemsize // 4
_FRICTION, _MU = offset_of("friction") // 8, offset_of("mu") // 8
_DIM, _GEOM = offset_of("dim") // 4, offset_of("geom") // 4


class Reach(NamedTuple):
    """Which degrees of freedom can move what; of a model, for good.

    Attributes:
        geom: First degree of freedom of the kinematic tree that a geom is in, and the one after its last, shape
            (ngeom, 2); 0, 0 for one that nothing moves.
        joint: A joint's first degree of freedom, shape (njnt,).
        tree: First degree of freedom of the tree that a degree of freedom is in, shape (nv,).
    """

    geom: Places
    joint: Places
    tree: Places


class Rows(NamedTuple):
    """Constraint rows of one substep: views of MuJoCo's arrays, and what is gathered from its contacts.

    Attributes:
        nv: Degrees of freedom.
        frictions: The first so many rows are joint friction; with the joint limits that follow they are the single
            rows, each of one degree of freedom.
        jac: Jacobian, row after row, and whatever follows in memory, for whole groups of four, shape (n * nv + 3,).
        d: Inverse regularization (MuJoCo's ``efc_D``), shape (n,).
        r: Regularization, shape (n,).
        friction_loss: Largest friction force of a joint, shape (n,).
        aref: Reference acceleration, shape (n,).
        force: Constraint forces, shape (n,).
        state: Constraint states, shape (n,).
        dof: The degree of freedom of each single row, shape (singles,).
        first_row: First row of each contact, shape (contacts,).
        dim: Rows of each contact, shape (contacts,).
        spans: Where a contact's rows may differ from zero: from its first number to before its second, and, further
            on, from its third to before its fourth, shape (contacts, 4).
        scale: A contact's ``mu`` and its coefficients of friction, shape (contacts, 6).
    """

    nv: int
    frictions: int
    jac: Array
    d: Array
    r: Array
    friction_loss: Array
    aref: Array
    force: Array
    state: Integers
    dof: Places
    first_row: Places
    dim: Places
    spans: Places
    scale: Array


def reach_of(model: Any) -> Reach:
    """Which degrees of freedom can move what in a model."""
    trees = np.asarray(model.dof_treeid)
    of_tree = [np.flatnonzero(trees == tree) for tree in range(model.ntree)]
    spans = np.array([(dofs[0], dofs[-1] + 1) for dofs in of_tree], np.uintp)
    of_geom = np.asarray(model.body_treeid)[np.asarray(model.geom_bodyid)]
    return Reach(
        geom=np.where(of_geom[:, None] < 0, ZERO, spans[of_geom]),
        joint=np.array(model.jnt_dofadr, np.uintp),
        tree=spans[trees, 0],
    )


def handles(model: Any) -> bool:
    """Whether all constraints that a model can have are of the kinds known here."""
    collides = (np.asarray(model.geom_contype) != 0) | (np.asarray(model.geom_conaffinity) != 0)
    return bool(
        model.opt.cone == mujoco.mjtCone.mjCONE_ELLIPTIC
        and not (model.neq or model.ntendon or model.npair or model.nflex)
        and (np.asarray(model.geom_condim)[collides] >= 3).all()
    )


@allocating
def rows_of(data: int, at: DataFields, nv: int, reach: Reach, wanted: bool) -> Rows:  # noqa: FBT001
    """The constraints that MuJoCo has set up, or none if they are not wanted; ``data`` is the address of its data."""
    frictions = limits = count = 0
    if wanted:
        frictions, limits = integers_at(data + at.nf, 1)[0], integers_at(data + at.nl, 1)[0]
        count = integers_at(data + at.nefc, 1)[0]
    singles = frictions + limits
    most = (count - singles) // 3
    dof, first_row, dim = np.empty(singles, np.uintp), np.empty(most, np.uintp), np.empty(most, np.uintp)
    spans, scale = np.empty((most, 4), np.uintp), np.empty((most, LARGEST_DIM))
    ids = integers_at(address_at(data + at.efc_id), count)
    for row in range(singles):
        dof[row] = place(ids[row]) if row < frictions else reach.joint[ids[row]]
    contact, ncon = address_at(data + at.contact), integers_at(data + at.ncon, 1)[0]
    numbers, integers = numbers_at(contact, ncon * _NUMBERS), integers_at(contact, ncon * _INTEGERS)
    contacts = _gather(ids[singles:], singles, numbers, integers, reach, first_row, dim, spans, scale)
    return Rows(
        place(nv),
        frictions,
        numbers_at(address_at(data + at.efc_J), count * nv + 3),
        numbers_at(address_at(data + at.efc_D), count),
        numbers_at(address_at(data + at.efc_R), count),
        numbers_at(address_at(data + at.efc_frictionloss), count),
        numbers_at(address_at(data + at.efc_aref), count),
        numbers_at(address_at(data + at.efc_force), count),
        integers_at(address_at(data + at.efc_state), count),
        dof,
        first_row[:contacts],
        dim[:contacts],
        spans[:contacts],
        scale[:contacts],
    )


@kernel
def _gather(
    ids: Integers,
    singles: int,
    numbers: Array,
    integers: Integers,
    reach: Reach,
    first_row: Places,
    dim: Places,
    spans: Places,
    scale: Array,
) -> int:
    """Write down what is needed of each contact, whose number is that of each of its rows in ``ids``.

    Returns:
        How many contacts there are; MuJoCo's list has more, which exert no force.
    """
    row = contacts = 0
    while row < len(ids):
        number, integer = ids[row] * _NUMBERS, ids[row] * _INTEGERS
        first_row[contacts], dim[contacts] = singles + row, integers[integer + _DIM]
        scale[contacts, 0] = numbers[number + _MU]
        for k in range(LARGEST_DIM - 1):
            scale[contacts, k + 1] = numbers[number + _FRICTION + k]
        one, other = integers[integer + _GEOM], integers[integer + _GEOM + 1]
        _span_both(spans[contacts], reach.geom[one], reach.geom[other])
        row += integers[integer + _DIM]
        contacts += 1
    return contacts


@kernel
def _span_both(spans: Places, one: Places, other: Places) -> None:
    """Note the degrees of freedom of two geoms in a contact, lowest first."""
    if one[1] == ZERO or (other[1] != ZERO and other[0] < one[0]):
        one, other = other, one
    spans[0], spans[1], spans[2], spans[3] = one[0], one[1], ZERO, ZERO
    if other[0] != one[0]:
        spans[2], spans[3] = other[0], other[1]


@kernel
def dot(one: Array, one_at: int, other: Array, other_at: int, begin: int, size: int) -> float:
    """MuJoCo's scalar product of two stretches of so many numbers, of which one is zero before ``begin``."""
    whole = size >> TWO << TWO
    begin = min(begin >> TWO << TWO, whole)
    sum_0 = sum_1 = sum_2 = sum_3 = 0.0
    for k in range(begin, whole, FOUR):
        sum_0 += one[one_at + k] * other[other_at + k]
        sum_1 += one[one_at + k + ONE] * other[other_at + k + ONE]
        sum_2 += one[one_at + k + TWO] * other[other_at + k + TWO]
        sum_3 += one[one_at + k + THREE] * other[other_at + k + THREE]
    return _with_rest((sum_0 + sum_2) + (sum_1 + sum_3), one, one_at + whole, other, other_at + whole, size - whole)


@kernel
def norm(vector: Array) -> float:
    """A vector's length."""
    return math.sqrt(dot(vector, ZERO, vector, ZERO, ZERO, place(len(vector))))


@kernel
def _with_rest(total: float, one: Array, a: int, other: Array, b: int, left: int) -> float:
    """Add what is left of a scalar product after whole groups of four."""
    if left == ONE:
        total += one[a] * other[b]
    elif left == TWO:
        total += one[a] * other[b] + one[a + ONE] * other[b + ONE]
    elif left == THREE:
        total += one[a] * other[b] + one[a + ONE] * other[b + ONE] + one[a + TWO] * other[b + TWO]
    return total


@kernel
def jac_times(rows: Rows, vector: Array, product: Array) -> None:
    """The Jacobian times a vector of shape (nv,), written to ``product`` of shape (n,)."""
    nv, whole = rows.nv, rows.nv >> TWO << TWO
    for row in range(place(len(rows.dof))):
        product[row] = rows.jac[row * nv + rows.dof[row]] * vector[rows.dof[row]]
    for contact in range(place(len(rows.dim))):
        begin, end, begin_2, end_2 = rows.spans[contact]
        rest = max(end, end_2) > whole
        begin, end = begin >> TWO << TWO, min((end + THREE) >> TWO << TWO, whole)
        begin_2, end_2 = max(begin_2 >> TWO << TWO, end), min((end_2 + THREE) >> TWO << TWO, whole)
        row = rows.first_row[contact]
        for r in range(row, row + rows.dim[contact]):
            at = r * nv
            sum_0 = sum_1 = sum_2 = sum_3 = 0.0
            for k in range(begin, end, FOUR):
                sum_0 += rows.jac[at + k] * vector[k]
                sum_1 += rows.jac[at + k + ONE] * vector[k + ONE]
                sum_2 += rows.jac[at + k + TWO] * vector[k + TWO]
                sum_3 += rows.jac[at + k + THREE] * vector[k + THREE]
            for k in range(begin_2, end_2, FOUR):
                sum_0 += rows.jac[at + k] * vector[k]
                sum_1 += rows.jac[at + k + ONE] * vector[k + ONE]
                sum_2 += rows.jac[at + k + TWO] * vector[k + TWO]
                sum_3 += rows.jac[at + k + THREE] * vector[k + THREE]
            total = (sum_0 + sum_2) + (sum_1 + sum_3)
            product[r] = _with_rest(total, rows.jac, at + whole, vector, whole, nv - whole) if rest else total


@kernel
def jac_transposed_times(rows: Rows, vector: Array, total: Array) -> None:
    """The Jacobian's transpose times a vector of shape (n,), written to ``total``, shape (nv + 3,).

    The last three numbers are arbitrary.
    """
    total[:] = 0.0
    for row in range(place(len(rows.dof))):
        total[rows.dof[row]] += rows.jac[row * rows.nv + rows.dof[row]] * vector[row]
    for contact in range(place(len(rows.dim))):
        row = rows.first_row[contact]
        f_0, f_1, f_2 = vector[row], vector[row + ONE], vector[row + TWO]
        if f_0 != 0.0 or f_1 != 0.0 or f_2 != 0.0:
            begin, end, begin_2, end_2 = rows.spans[contact]
            column, column_2 = begin >> TWO << TWO, max(begin_2 >> TWO, (end + THREE) >> TWO) << TWO
            add_three(rows.jac, rows.nv, row, f_0, f_1, f_2, total, ZERO, column, end)
            add_three(rows.jac, rows.nv, row, f_0, f_1, f_2, total, ZERO, column_2, end_2)
        for r in range(row + THREE, row + rows.dim[contact]):
            add_row(rows, r, rows.spans[contact], vector[r], total, ZERO)


@inlined
def add_three(
    jac: Array, nv: int, row: int, f_0: float, f_1: float, f_2: float, into: Array, into_at: int, begin: int, end: int
) -> None:
    """Add multiples of three rows of the Jacobian to a stretch of numbers, in whole groups of four columns."""
    at_0, at_1, at_2 = row * nv, (row + ONE) * nv, (row + TWO) * nv
    for k in range(begin, end, FOUR):
        k_1, k_2, k_3 = k + ONE, k + TWO, k + THREE
        a_0 = into[into_at + k] + jac[at_0 + k] * f_0 + jac[at_1 + k] * f_1 + jac[at_2 + k] * f_2
        a_1 = into[into_at + k_1] + jac[at_0 + k_1] * f_0 + jac[at_1 + k_1] * f_1 + jac[at_2 + k_1] * f_2
        a_2 = into[into_at + k_2] + jac[at_0 + k_2] * f_0 + jac[at_1 + k_2] * f_1 + jac[at_2 + k_2] * f_2
        a_3 = into[into_at + k_3] + jac[at_0 + k_3] * f_0 + jac[at_1 + k_3] * f_1 + jac[at_2 + k_3] * f_2
        into[into_at + k], into[into_at + k_1], into[into_at + k_2], into[into_at + k_3] = a_0, a_1, a_2, a_3


@inlined
def add_row(rows: Rows, row: int, spans: Places, factor: float, into: Array, into_at: int) -> None:
    """Add a multiple of a contact's row of the Jacobian to a stretch of nv numbers."""
    at = row * rows.nv
    for k in range(spans[0], spans[1]):
        into[into_at + k] += rows.jac[at + k] * factor
    for k in range(spans[2], spans[3]):
        into[into_at + k] += rows.jac[at + k] * factor
