"""The second derivative of the whole cost, as a Cholesky factor.

Matrices lie row after row in flat arrays, each row in a multiple of four numbers, and only their lower triangles count:
what lies beyond is arbitrary. Row i of the factor is zero before column ``envelope[i]``: the first degree of freedom
that any constraint couples with degree of freedom i.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from ..compiling import kernel
from ..pointers import (
    U0,
    U1,
    U2,
    U3,
    U4,
    U6,
    WORD_BYTES,
    FloatPointer,
    IndexPointer,
    Int32Pointer,
    float_pointer,
    index_pointer,
    int32_pointer,
)
from .cost import CONE, QUADRATIC
from .products import add_row, add_three, copy, dot, fill
from .rows import MINVAL, Rows, span_of


class Factors(NamedTuple):
    """The Hessian's factor, and memory to change it in.

    Attributes:
        envelope: First column of each row of the factor, shape (nv,).
        factor: The factor of M + J^T D J over the rows in quadratic state.
        state: The states of rows that the factor belongs to, shape (n,).
        cone_factor: The factor with contacts in the middle zone of their friction cones too.
        contact_hessian: Memory for a contact's second derivative, shape (6 * 8,).
        contact_rows: Memory for a contact's rows of the Jacobian, shape (6 * nv,).
        zeros: Zeros, shape (6,).
    """

    envelope: IndexPointer
    factor: FloatPointer
    state: Int32Pointer
    cone_factor: FloatPointer
    contact_hessian: FloatPointer
    contact_rows: FloatPointer
    zeros: IndexPointer


@kernel
def _stride(size: int) -> int:
    """How many numbers lie from one row of a matrix to the next."""
    stride: int = (size + U3) >> U2 << U2
    return stride


@kernel
def lay_out_factors(rows: Rows, tree: IndexPointer, workspace: int) -> Factors:
    """Lay out memory for the factor, which is computed later, and find its envelope.

    Args:
        rows: The constraints.
        tree: First degree of freedom of the tree that a degree of freedom is in, shape (nv,).
        workspace: Address of memory for n + 2 nv (nv + 3) + 7 nv + 54 words.
    """
    nv, padded = rows.nv, rows.nv * _stride(rows.nv)
    cone_factor_at = workspace + padded * WORD_BYTES
    contact_hessian_at = cone_factor_at + padded * WORD_BYTES
    contact_rows_at = contact_hessian_at + U6 * _stride(U6) * WORD_BYTES
    zeros_at = contact_rows_at + U6 * nv * WORD_BYTES
    envelope_at = zeros_at + U6 * WORD_BYTES
    factors = Factors(
        index_pointer(envelope_at),
        float_pointer(workspace),
        int32_pointer(envelope_at + nv * WORD_BYTES),
        float_pointer(cone_factor_at),
        float_pointer(contact_hessian_at),
        float_pointer(contact_rows_at),
        index_pointer(zeros_at),
    )
    for k in range(U6):
        factors.zeros[k] = U0
    copy(tree, factors.envelope, nv)
    for contact in range(rows.contacts):
        first, _, begin, end = span_of(rows.spans, contact)
        for dof in range(begin, end):
            factors.envelope[dof] = min(factors.envelope[dof], first)
    return factors


@kernel
def factorize(rows: Rows, mass: FloatPointer, factors: Factors) -> None:
    """Compute the factor from the joint-space inertia M, shape (nv * nv,), and the rows in quadratic state."""
    nv, stride, jac, d, state = rows.nv, _stride(rows.nv), rows.jac, rows.d, rows.state
    factor, envelope = factors.factor, factors.envelope
    fill(factor, nv * stride, 0.0)
    for row in range(rows.singles):
        if state[row] == QUADRATIC:
            dof = rows.dof[row]
            slope = jac[row * nv + dof]
            factor[dof * stride + dof] += slope * (slope * d[row])
    for contact in range(rows.contacts):
        row = rows.first_row[contact]
        if state[row] == QUADRATIC:
            _add_contact(factor, stride, rows, contact)
    for i in range(nv):
        for k in range(envelope[i], i + U1):
            factor[i * stride + k] += mass[i * nv + k]
    _factorize(factor, envelope, nv)


@kernel
def _add_contact(hessian: FloatPointer, stride: int, rows: Rows, contact: int) -> None:
    """Add the part of a contact's rows."""
    begin, end, begin_2, end_2 = span_of(rows.spans, contact)
    row, jac, d, nv = rows.first_row[contact], rows.jac, rows.d, rows.nv
    # Columns go in whole groups of four, and none twice, though a group may reach into the second span.
    column, after = begin >> U2 << U2, (end + U3) >> U2 << U2
    _add_block(hessian, stride, jac, d, nv, row, begin, end, column, after)
    if end_2:
        _add_block(hessian, stride, jac, d, nv, row, begin_2, end_2, column, after)
        _add_block(hessian, stride, jac, d, nv, row, begin_2, end_2, max(begin_2 >> U2 << U2, after), end_2)
    for r in range(row + U3, row + rows.dim[contact]):
        for i in range(begin, end):
            add_row(jac, nv, r, rows.spans, contact, jac[r * nv + i] * d[r], hessian, i * stride)
        for i in range(begin_2, end_2):
            add_row(jac, nv, r, rows.spans, contact, jac[r * nv + i] * d[r], hessian, i * stride)


@kernel
def _add_block(
    hessian: FloatPointer,
    stride: int,
    jac: FloatPointer,
    d: FloatPointer,
    nv: int,
    row: int,
    begin: int,
    end: int,
    first: int,
    last: int,
) -> None:
    """Add the part of three rows to rows ``begin`` to ``end`` of the matrix, columns ``first`` to ``last``."""
    d_0, d_1, d_2 = d[row], d[row + U1], d[row + U2]
    for i in range(begin, end):
        f_0, f_1, f_2 = jac[row * nv + i] * d_0, jac[(row + U1) * nv + i] * d_1, jac[(row + U2) * nv + i] * d_2
        add_three(jac, nv, row, f_0, f_1, f_2, hessian, i * stride, first, min(last, i + U1))


@kernel
def _factorize(matrix: FloatPointer, envelope: IndexPointer, size: int) -> None:
    """Replace a matrix by its Cholesky factor."""
    stride = _stride(size)
    for j in range(size):
        at_j = j * stride
        pivot = matrix[at_j + j] - dot(matrix, at_j, matrix, at_j, envelope[j], j)
        pivot = math.sqrt(max(pivot, MINVAL))
        matrix[at_j + j] = pivot
        inverse = 1.0 / pivot
        for i in range(j + U1, size):
            if envelope[i] <= j:
                at_i = i * stride
                product = dot(matrix, at_i, matrix, at_j, max(envelope[i], envelope[j]), j)
                matrix[at_i + j] = (matrix[at_i + j] - product) * inverse


@kernel
def solve(rows: Rows, cone: FloatPointer, factors: Factors, result: FloatPointer) -> None:
    """Replace a vector by the one that the Hessian maps to it.

    Args:
        rows: The constraints.
        cone: Second derivatives of contacts in the middle zone of their friction cones, lower triangles, shape
            (contacts * 36,).
        factors: The factor without them.
        result: The vector, shape (nv,).
    """
    has_cones = _add_cones(rows, cone, factors)
    _solve(factors.cone_factor if has_cones else factors.factor, factors.envelope, rows.nv, result)


@kernel
def _solve(factor: FloatPointer, envelope: IndexPointer, size: int, result: FloatPointer) -> None:
    """Replace a vector of shape (nv,) by the one that the factorized matrix maps to it."""
    stride = _stride(size)
    for i in range(size):
        product = dot(factor, i * stride, result, U0, envelope[i], i)
        result[i] = (result[i] - product) / factor[i * stride + i]
    for k in range(size):
        i = size - U1 - k
        value = result[i]
        for j in range(i + U1, size):
            if envelope[j] <= i:
                value -= factor[j * stride + i] * result[j]
        result[i] = value / factor[i * stride + i]


@kernel
def _update(
    factor: FloatPointer, envelope: IndexPointer, size: int, vector: FloatPointer, at: int, start: int, sign: float
) -> bool:
    """Make it the factor of its matrix plus or minus v v^T; v begins at ``at``, is zero before ``start``, is used up.

    Returns:
        Whether that matrix is positive definite.
    """
    definite, stride = True, _stride(size)
    for k in range(start, size):
        if vector[at + k] != 0.0:
            before = factor[k * stride + k]
            squared = before * before + sign * (vector[at + k] * vector[at + k])
            if squared < MINVAL:
                squared, definite = MINVAL, False
            after = math.sqrt(squared)
            c, s = after / before, vector[at + k] / before
            c_inverse = 1.0 / c
            factor[k * stride + k] = after
            for i in range(k + U1, size):
                if envelope[i] <= k:
                    updated = (factor[i * stride + k] + sign * (s * vector[at + i])) * c_inverse
                    vector[at + i] = c * vector[at + i] - s * updated
                    factor[i * stride + k] = updated
    return definite


@kernel
def update_factor(rows: Rows, factors: Factors) -> bool:
    """Bring the factor up to date with the rows that have come into quadratic state or left it.

    Returns:
        Whether it is exact; otherwise it must be computed anew.
    """
    nv, jac, d, state = rows.nv, rows.jac, rows.d, rows.state
    factor, envelope, before, vector = factors.factor, factors.envelope, factors.state, factors.contact_rows
    for row in range(rows.singles):
        is_now = state[row] == QUADRATIC
        if is_now != (before[row] == QUADRATIC):
            dof = rows.dof[row]
            fill(vector, nv, 0.0)
            vector[dof] = jac[row * nv + dof] * math.sqrt(d[row])
            if not _update(factor, envelope, nv, vector, U0, dof, 1.0 if is_now else -1.0):
                return False
    for contact in range(rows.contacts):
        row = rows.first_row[contact]
        is_now, first = state[row] == QUADRATIC, rows.spans[contact * U4]
        if is_now != (before[row] == QUADRATIC):
            for r in range(row, row + rows.dim[contact]):
                fill(vector, nv, 0.0)
                add_row(jac, nv, r, rows.spans, contact, math.sqrt(d[r]), vector, U0)
                if not _update(factor, envelope, nv, vector, U0, first, 1.0 if is_now else -1.0):
                    return False
    return True


@kernel
def _add_cones(rows: Rows, cone: FloatPointer, factors: Factors) -> bool:
    """Compute ``cone_factor`` if there are contacts in the middle zone of their friction cones; returns whether."""
    nv, jac, state, found = rows.nv, rows.jac, rows.state, False
    cone_factor, envelope, contact_hessian, contact_rows = (
        factors.cone_factor,
        factors.envelope,
        factors.contact_hessian,
        factors.contact_rows,
    )
    for contact in range(rows.contacts):
        row, dim = rows.first_row[contact], rows.dim[contact]
        if state[row] != CONE:
            continue
        if not found:
            found = True
            copy(factors.factor, cone_factor, nv * _stride(nv))
        stride = _stride(dim)
        for r in range(dim):
            for c in range(r + U1):
                contact_hessian[r * stride + c] = cone[(contact * U6 + r) * U6 + c]
        _factorize(contact_hessian, factors.zeros, dim)
        fill(contact_rows, dim * nv, 0.0)
        for r in range(dim):
            for c in range(r + U1):
                add_row(jac, nv, row + r, rows.spans, contact, contact_hessian[r * stride + c], contact_rows, c * nv)
        for r in range(dim):
            _update(cone_factor, envelope, nv, contact_rows, r * nv, rows.spans[contact * U4], 1.0)
    return found
