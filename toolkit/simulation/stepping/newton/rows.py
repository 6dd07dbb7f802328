"""The constraints of one substep, as MuJoCo has them, and which degrees of freedom each touches.

First comes one row for the friction of each joint that has some, then one for each joint at a limit, then three to six
rows for each contact.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import mujoco
import numpy as np
import numpy.typing as npt

from ..compiling import kernel
from ..mujoco_library import CONTACT, DataFields, offset_of
from ..pointers import (
    FIVE,
    FOUR,
    ONE,
    SIX,
    THREE,
    TWO,
    WORD,
    ZERO,
    Integers,
    Numbers,
    Places,
    integers_at,
    numbers_at,
    place,
    places_at,
)

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
def span_of(spans: Places, contact: int) -> tuple[int, int, int, int]:
    """Where a contact's rows may differ from zero."""
    at = contact * FOUR
    return spans[at], spans[at + ONE], spans[at + TWO], spans[at + THREE]
