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
    U0,
    U1,
    U2,
    U3,
    U4,
    U5,
    U6,
    WORD_BYTES,
    FloatPointer,
    IndexPointer,
    Int32Pointer,
    float_pointer,
    index_pointer,
    int32_pointer,
    unsigned,
)

MINVAL = 1e-15
"""What MuJoCo takes for zero (``mjMINVAL``)."""

CONTACT_SIZE = CONTACT.itemsize
_FRICTION, _MU, _DIM, _GEOM = (offset_of(name) for name in ("friction", "mu", "dim", "geom"))


class DofSpans(NamedTuple):
    """Which degrees of freedom can move what; constant for a model.

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
        frictions: How many rows, the first ones, are joint friction.
        singles: How many those and the joint limits after them are, each a row of one degree of freedom.
        contacts: How many contacts there are.
        jac: Jacobian, row after row, and three arbitrary numbers more, for groups of four, shape (n * nv + 3,).
        d: Inverse regularization (MuJoCo's ``efc_D``), shape (n,).
        r: Regularization, shape (n,).
        friction_loss: Largest friction force of a joint, shape (n,).
        aref: Reference acceleration, shape (n,).
        force: Constraint forces, shape (n,).
        state: Constraint states, shape (n,).
        dof: The degree of freedom of each single row, shape (singles,).
        first_row: First row of each contact, shape (contacts,).
        dim: Rows of each contact, shape (contacts,).
        spans: Columns where a contact's rows may differ from zero: from its first number to before its second, and from
            its third to before its fourth, shape (contacts * 4,).
        scale: A contact's ``mu`` and its coefficients of friction, shape (contacts * 6,).
    """

    nv: int
    n: int
    frictions: int
    singles: int
    contacts: int
    jac: FloatPointer
    d: FloatPointer
    r: FloatPointer
    friction_loss: FloatPointer
    aref: FloatPointer
    force: FloatPointer
    state: Int32Pointer
    dof: IndexPointer
    first_row: IndexPointer
    dim: IndexPointer
    spans: IndexPointer
    scale: FloatPointer


def find_dof_spans(model: Any) -> DofSpans:
    """Which degrees of freedom can move what in a model."""
    trees = np.asarray(model.dof_treeid)
    of_tree = [np.flatnonzero(trees == tree) for tree in range(model.ntree)]
    spans = np.array([(dofs[0], dofs[-1] + 1) for dofs in of_tree], np.uintp)
    of_geom = np.asarray(model.body_treeid)[np.asarray(model.geom_bodyid)]
    return DofSpans(
        geom=np.where(of_geom[:, None] < 0, U0, spans[of_geom]),
        joint=np.array(model.jnt_dofadr, np.uintp),
        tree=spans[trees, 0],
    )


def supports(model: Any) -> bool:
    """Whether the solver supports all constraints that a model can have."""
    collides = (np.asarray(model.geom_contype) != 0) | (np.asarray(model.geom_conaffinity) != 0)
    return bool(
        model.opt.cone == mujoco.mjtCone.mjCONE_ELLIPTIC
        and not (model.neq or model.ntendon or model.npair or model.nflex)
        and (np.asarray(model.geom_condim)[collides] >= 3).all()
    )


@kernel
def row_count(data: int, at: DataFields) -> int:
    """How many rows MuJoCo has set up; ``data`` is the address of its data."""
    count: int = unsigned(int32_pointer(data + at.nefc)[U0])
    return count


@kernel
def read_rows(data: int, at: DataFields, n: int, nv: int, dof_spans: DofSpans, workspace: int) -> Rows:
    """Read the constraints that MuJoCo has set up.

    Args:
        data: Address of its data.
        at: Where to find the constraints there.
        n: How many rows there are.
        nv: Degrees of freedom.
        dof_spans: Those of the model.
        workspace: Address of memory for 4 n words.
    """
    frictions = unsigned(int32_pointer(data + at.nf)[U0]) if n else U0
    singles = frictions + unsigned(int32_pointer(data + at.nl)[U0]) if n else U0
    # Twelve words for each contact, which has three rows or more, and one for each of the other rows.
    contacts_bytes, spans_at = (n - singles) // U3 * WORD_BYTES, workspace + singles * WORD_BYTES
    scale_at, first_row_at = spans_at + U4 * contacts_bytes, spans_at + (U4 + U6) * contacts_bytes
    dof, spans, scale = index_pointer(workspace), index_pointer(spans_at), float_pointer(scale_at)
    first_row, dim = index_pointer(first_row_at), index_pointer(first_row_at + contacts_bytes)
    ids, joint = int32_pointer(_stored_address(data + at.efc_id)), index_pointer(dof_spans.joint.ctypes.data)
    for row in range(singles):
        dof[row] = unsigned(ids[row]) if row < frictions else joint[ids[row]]
    geoms, row, contacts = index_pointer(dof_spans.geom.ctypes.data), singles, U0
    while row < n:
        contact = _stored_address(data + at.contact) + ids[row] * CONTACT_SIZE
        first_row[contacts], dim[contacts] = row, int32_pointer(contact + _DIM)[U0]
        scale[contacts * U6] = float_pointer(contact + _MU)[U0]
        for k in range(U5):
            scale[contacts * U6 + U1 + k] = float_pointer(contact + _FRICTION)[k]
        first, second = int32_pointer(contact + _GEOM)[U0], int32_pointer(contact + _GEOM)[U1]
        _write_spans(spans, contacts * U4, geoms, unsigned(first) * U2, unsigned(second) * U2)
        row += dim[contacts]
        contacts += U1
    return Rows(
        nv,
        n,
        frictions,
        singles,
        contacts,
        float_pointer(_stored_address(data + at.efc_J)),
        float_pointer(_stored_address(data + at.efc_D)),
        float_pointer(_stored_address(data + at.efc_R)),
        float_pointer(_stored_address(data + at.efc_frictionloss)),
        float_pointer(_stored_address(data + at.efc_aref)),
        float_pointer(_stored_address(data + at.efc_force)),
        int32_pointer(_stored_address(data + at.efc_state)),
        dof,
        first_row,
        dim,
        spans,
        scale,
    )


@kernel
def _stored_address(address: int) -> Any:
    """The address that is stored at an address."""
    return np.intp(index_pointer(address)[U0])


@kernel
def _write_spans(spans: IndexPointer, at: int, geoms: IndexPointer, first: int, second: int) -> None:
    """Write the degrees of freedom of two geoms in a contact, lowest first."""
    if geoms[first + U1] == U0 or (geoms[second + U1] != U0 and geoms[second] < geoms[first]):
        first, second = second, first
    spans[at], spans[at + U1], spans[at + U2], spans[at + U3] = geoms[first], geoms[first + U1], U0, U0
    if geoms[second] != geoms[first]:
        spans[at + U2], spans[at + U3] = geoms[second], geoms[second + U1]


@kernel
def span_of(spans: IndexPointer, contact: int) -> tuple[int, int, int, int]:
    """A contact's four numbers of ``Rows.spans``."""
    at = contact * U4
    return spans[at], spans[at + U1], spans[at + U2], spans[at + U3]
