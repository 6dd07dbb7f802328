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

from ..compiling import kernel
from ..mujoco_library import CONTACT, DataFields, offset_of
from ..pointers import Integers, Numbers, Places, integers_at, numbers_at, places_at

place: Any = np.uintp
"""What counts places in arrays, as an unsigned number."""

ZERO, ONE, TWO, THREE, FOUR, FIVE, SIX = (place(n) for n in range(7))

WORD = place(8)
"""Bytes of a number, and of a place."""

LARGEST_DIM = SIX
"""A contact has at most so many rows."""

MINVAL = 1e-15
"""What MuJoCo takes for zero (``mjMINVAL``)."""

CONTACT_SIZE = CONTACT.itemsize
_FRICTION, _MU, _DIM, _GEOM = (offset_of(name) for name in ("friction", "mu", "dim", "geom"))


class Reach(NamedTuple):
    """Which degrees of freedom can move what; of a model, for good.

    Attributes:
        geom: First degree of freedom of the kinematic tree that a geom is in, and the one after its last, shape
            (ngeom, 2); 0, 0 for one that nothing moves.
        joint: A joint's first degree of freedom, shape (njnt,).
        tree: First degree of freedom of the tree that a degree of freedom is in, shape (nv,).
    """

    geom: npt.NDArray[np.uintp]
    joint: npt.NDArray[np.uintp]
    tree: npt.NDArray[np.uintp]


class Rows(NamedTuple):
    """Constraint rows of one substep: pointers to MuJoCo's arrays, and to what is gathered from its contacts.

    Attributes:
        nv: Degrees of freedom.
        n: Rows.
        frictions: The first so many rows are joint friction.
        singles: Those and the joint limits that follow, each a row of one degree of freedom.
        contacts: Contacts.
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
            on, from its third to before its fourth, shape (contacts * 4,).
        scale: A contact's ``mu`` and its coefficients of friction, shape (contacts * 6,).
    """

    nv: int
    n: int
    frictions: int
    singles: int
    contacts: int
    jac: Numbers
    d: Numbers
    r: Numbers
    friction_loss: Numbers
    aref: Numbers
    force: Numbers
    state: Integers
    dof: Places
    first_row: Places
    dim: Places
    spans: Places
    scale: Numbers


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


@kernel
def row_count(data: int, at: DataFields) -> int:
    """How many rows MuJoCo has set up; ``data`` is the address of its data."""
    count: int = place(integers_at(data + at.nefc)[ZERO])
    return count


@kernel
def rows_of(data: int, at: DataFields, n: int, nv: int, reach: Reach, room: int) -> Rows:
    """The constraints that MuJoCo has set up.

    Args:
        data: Address of its data.
        at: Where to find the constraints there.
        n: How many rows there are.
        nv: Degrees of freedom.
        reach: Of the model.
        room: Address of room for 4 n words.
    """
    frictions = place(integers_at(data + at.nf)[ZERO]) if n else ZERO
    singles = frictions + place(integers_at(data + at.nl)[ZERO]) if n else ZERO
    # Twelve words for each contact, which has three rows or more, and one for each of the other rows.
    most, spans_at = (n - singles) // THREE * WORD, room + singles * WORD
    scale_at, first_row_at = spans_at + FOUR * most, spans_at + (FOUR + SIX) * most
    dof, spans, scale = places_at(room), places_at(spans_at), numbers_at(scale_at)
    first_row, dim = places_at(first_row_at), places_at(first_row_at + most)
    ids, joint = integers_at(_address_at(data + at.efc_id)), places_at(reach.joint.ctypes.data)
    for row in range(singles):
        dof[row] = place(ids[row]) if row < frictions else joint[ids[row]]
    geoms, row, contacts = places_at(reach.geom.ctypes.data), singles, ZERO
    while row < n:
        contact = _address_at(data + at.contact) + ids[row] * CONTACT_SIZE
        first_row[contacts], dim[contacts] = row, integers_at(contact + _DIM)[ZERO]
        scale[contacts * SIX] = numbers_at(contact + _MU)[ZERO]
        for k in range(FIVE):
            scale[contacts * SIX + ONE + k] = numbers_at(contact + _FRICTION)[k]
        one, other = integers_at(contact + _GEOM)[ZERO], integers_at(contact + _GEOM)[ONE]
        _span_both(spans, contacts * FOUR, geoms, place(one) * TWO, place(other) * TWO)
        row += dim[contacts]
        contacts += ONE
    return Rows(
        nv,
        n,
        frictions,
        singles,
        contacts,
        numbers_at(_address_at(data + at.efc_J)),
        numbers_at(_address_at(data + at.efc_D)),
        numbers_at(_address_at(data + at.efc_R)),
        numbers_at(_address_at(data + at.efc_frictionloss)),
        numbers_at(_address_at(data + at.efc_aref)),
        numbers_at(_address_at(data + at.efc_force)),
        integers_at(_address_at(data + at.efc_state)),
        dof,
        first_row,
        dim,
        spans,
        scale,
    )


@kernel
def _address_at(address: int) -> Any:
    """The address that is kept at an address."""
    return np.intp(places_at(address)[ZERO])


@kernel
def _span_both(spans: Places, at: int, geoms: Places, one: int, other: int) -> None:
    """Note the degrees of freedom of two geoms in a contact, lowest first."""
    if geoms[one + ONE] == ZERO or (geoms[other + ONE] != ZERO and geoms[other] < geoms[one]):
        one, other = other, one
    spans[at], spans[at + ONE], spans[at + TWO], spans[at + THREE] = geoms[one], geoms[one + ONE], ZERO, ZERO
    if geoms[other] != geoms[one]:
        spans[at + TWO], spans[at + THREE] = geoms[other], geoms[other + ONE]


@kernel
def copy(numbers: Numbers | Integers, into: Numbers | Integers, count: int) -> None:
    """Copy so many numbers."""
    for k in range(count):
        into[k] = numbers[k]


@kernel
def fill(numbers: Numbers, count: int, value: float) -> None:
    """Set so many numbers to a value."""
    for k in range(count):
        numbers[k] = value


@kernel
def dot(one: Numbers, one_at: int, other: Numbers, other_at: int, begin: int, size: int) -> float:
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
def norm(vector: Numbers, size: int) -> float:
    """A vector's length."""
    return math.sqrt(dot(vector, ZERO, vector, ZERO, ZERO, size))


@kernel
def _with_rest(total: float, one: Numbers, a: int, other: Numbers, b: int, left: int) -> float:
    """Add what is left of a scalar product after whole groups of four."""
    if left == ONE:
        total += one[a] * other[b]
    elif left == TWO:
        total += one[a] * other[b] + one[a + ONE] * other[b + ONE]
    elif left == THREE:
        total += one[a] * other[b] + one[a + ONE] * other[b + ONE] + one[a + TWO] * other[b + TWO]
    return total


@kernel
def span_of(spans: Places, contact: int) -> tuple[int, int, int, int]:
    """Where a contact's rows may differ from zero."""
    at = contact * FOUR
    return spans[at], spans[at + ONE], spans[at + TWO], spans[at + THREE]


@kernel
def jac_times(rows: Rows, vector: Numbers, product: Numbers) -> None:
    """The Jacobian times a vector of shape (nv,), written to ``product`` of shape (n,)."""
    nv, whole, jac, dof = rows.nv, rows.nv >> TWO << TWO, rows.jac, rows.dof
    for row in range(rows.singles):
        product[row] = jac[row * nv + dof[row]] * vector[dof[row]]
    for contact in range(rows.contacts):
        begin, end, begin_2, end_2 = span_of(rows.spans, contact)
        rest = max(end, end_2) > whole
        begin, end = begin >> TWO << TWO, min((end + THREE) >> TWO << TWO, whole)
        begin_2, end_2 = max(begin_2 >> TWO << TWO, end), min((end_2 + THREE) >> TWO << TWO, whole)
        row = rows.first_row[contact]
        for r in range(row, row + rows.dim[contact]):
            at = r * nv
            sum_0 = sum_1 = sum_2 = sum_3 = 0.0
            for k in range(begin, end, FOUR):
                sum_0 += jac[at + k] * vector[k]
                sum_1 += jac[at + k + ONE] * vector[k + ONE]
                sum_2 += jac[at + k + TWO] * vector[k + TWO]
                sum_3 += jac[at + k + THREE] * vector[k + THREE]
            for k in range(begin_2, end_2, FOUR):
                sum_0 += jac[at + k] * vector[k]
                sum_1 += jac[at + k + ONE] * vector[k + ONE]
                sum_2 += jac[at + k + TWO] * vector[k + TWO]
                sum_3 += jac[at + k + THREE] * vector[k + THREE]
            total = (sum_0 + sum_2) + (sum_1 + sum_3)
            product[r] = _with_rest(total, jac, at + whole, vector, whole, nv - whole) if rest else total


@kernel
def jac_transposed_times(rows: Rows, vector: Numbers, total: Numbers) -> None:
    """The Jacobian's transpose times a vector of shape (n,), written to ``total``, shape (nv + 3,).

    The last three numbers are arbitrary.
    """
    nv, jac, dof = rows.nv, rows.jac, rows.dof
    fill(total, nv, 0.0)
    for row in range(rows.singles):
        total[dof[row]] += jac[row * nv + dof[row]] * vector[row]
    for contact in range(rows.contacts):
        row = rows.first_row[contact]
        f_0, f_1, f_2 = vector[row], vector[row + ONE], vector[row + TWO]
        if f_0 != 0.0 or f_1 != 0.0 or f_2 != 0.0:
            begin, end, begin_2, end_2 = span_of(rows.spans, contact)
            column, column_2 = begin >> TWO << TWO, max(begin_2 >> TWO, (end + THREE) >> TWO) << TWO
            add_three(jac, nv, row, f_0, f_1, f_2, total, ZERO, column, end)
            add_three(jac, nv, row, f_0, f_1, f_2, total, ZERO, column_2, end_2)
        for r in range(row + THREE, row + rows.dim[contact]):
            add_row(jac, nv, r, rows.spans, contact, vector[r], total, ZERO)


@kernel
def add_three(
    jac: Numbers,
    nv: int,
    row: int,
    f_0: float,
    f_1: float,
    f_2: float,
    into: Numbers,
    into_at: int,
    begin: int,
    end: int,
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


@kernel
def add_row(
    jac: Numbers, nv: int, row: int, spans: Places, contact: int, factor: float, into: Numbers, into_at: int
) -> None:
    """Add a multiple of a contact's row of the Jacobian to a stretch of nv numbers."""
    at = row * nv
    begin, end, begin_2, end_2 = span_of(spans, contact)
    for k in range(begin, end):
        into[into_at + k] += jac[at + k] * factor
    for k in range(begin_2, end_2):
        into[into_at + k] += jac[at + k] * factor
