"""The second derivative of the whole cost, as a Cholesky factor.

Matrices lie row after row in flat arrays, each row in a multiple of four numbers, and only their lower triangles count:
what lies beyond is arbitrary. Row i of the factor is zero before column ``envelope[i]``: the first degree of freedom
that any constraint couples with degree of freedom i.
"""

from __future__ import annotations

import math

from .compiling import inlined, kernel
from .cost import CONE, QUADRATIC
from .rows import MINVAL, ONE, THREE, TWO, ZERO, Array, Integers, Places, Rows, add_row, add_three, dot, place


@inlined
def _stride(size: int) -> int:
    """From one row of a matrix to the next."""
    stride: int = (size + THREE) >> TWO << TWO
    return stride


@kernel
def find_envelope(rows: Rows, tree: Places, envelope: Places) -> None:
    """Write down for each degree of freedom the first one that it is coupled with, shape (nv,)."""
    for dof in range(place(len(tree))):
        envelope[dof] = tree[dof]
    for contact in range(place(len(rows.dim))):
        first, _, begin, end = rows.spans[contact]
        for dof in range(begin, end):
            envelope[dof] = min(envelope[dof], first)


@kernel
def factorize(rows: Rows, mass: Array, envelope: Places, factor: Array) -> None:
    """Write down the Cholesky factor of M + J^T D J over the rows in quadratic state.

    Args:
        rows: The constraints.
        mass: The joint-space inertia M, shape (nv * nv,).
        envelope: Where the factor's rows begin, shape (nv,).
        factor: The result.
    """
    nv, stride = rows.nv, _stride(rows.nv)
    factor[:] = 0.0
    for row in range(place(len(rows.dof))):
        if rows.state[row] == QUADRATIC:
            dof = rows.dof[row]
            slope = rows.jac[row * nv + dof]
            factor[dof * stride + dof] += slope * (slope * rows.d[row])
    for contact in range(place(len(rows.dim))):
        if rows.state[rows.first_row[contact]] == QUADRATIC:
            _add_contact(factor, stride, rows, contact)
    for i in range(nv):
        for k in range(envelope[i], i + ONE):
            factor[i * stride + k] += mass[i * nv + k]
    _factorize(factor, envelope)


@inlined
def _add_contact(hessian: Array, stride: int, rows: Rows, contact: int) -> None:
    """Add the part of a contact's rows."""
    begin, end, begin_2, end_2 = rows.spans[contact]
    row, jac, d, nv = rows.first_row[contact], rows.jac, rows.d, rows.nv
    # Columns go in whole groups of four, and none twice, though a group may reach into the second span.
    column, after = begin >> TWO << TWO, (end + THREE) >> TWO << TWO
    _add_block(hessian, stride, jac, d, nv, row, begin, end, column, after)
    if end_2:
        _add_block(hessian, stride, jac, d, nv, row, begin_2, end_2, column, after)
        _add_block(hessian, stride, jac, d, nv, row, begin_2, end_2, max(begin_2 >> TWO << TWO, after), end_2)
    for r in range(row + THREE, row + rows.dim[contact]):
        for i in range(begin, end):
            add_row(rows, r, rows.spans[contact], rows.jac[r * rows.nv + i] * rows.d[r], hessian, i * stride)
        for i in range(begin_2, end_2):
            add_row(rows, r, rows.spans[contact], rows.jac[r * rows.nv + i] * rows.d[r], hessian, i * stride)


@kernel
def _add_block(
    hessian: Array, stride: int, jac: Array, d: Array, nv: int, row: int, begin: int, end: int, first: int, last: int
) -> None:
    """Add the part of three rows to rows ``begin`` to ``end`` of the matrix, columns ``first`` to ``last``."""
    d_0, d_1, d_2 = d[row], d[row + ONE], d[row + TWO]
    for i in range(begin, end):
        f_0, f_1, f_2 = jac[row * nv + i] * d_0, jac[(row + ONE) * nv + i] * d_1, jac[(row + TWO) * nv + i] * d_2
        add_three(jac, nv, row, f_0, f_1, f_2, hessian, i * stride, first, min(last, i + ONE))


@kernel
def _factorize(matrix: Array, envelope: Places) -> None:
    """Replace a matrix by its Cholesky factor."""
    size = place(len(envelope))
    stride = _stride(size)
    for j in range(size):
        at_j = j * stride
        pivot = matrix[at_j + j] - dot(matrix, at_j, matrix, at_j, envelope[j], j)
        pivot = math.sqrt(max(pivot, MINVAL))
        matrix[at_j + j] = pivot
        inverse = 1.0 / pivot
        for i in range(j + ONE, size):
            if envelope[i] <= j:
                at_i = i * stride
                product = dot(matrix, at_i, matrix, at_j, max(envelope[i], envelope[j]), j)
                matrix[at_i + j] = (matrix[at_i + j] - product) * inverse


@kernel
def solve(factor: Array, envelope: Places, result: Array) -> None:
    """Replace a vector of shape (nv,) by the one that the factorized matrix maps to it."""
    size = place(len(result))
    stride = _stride(size)
    for i in range(size):
        product = dot(factor, i * stride, result, ZERO, envelope[i], i)
        result[i] = (result[i] - product) / factor[i * stride + i]
    for k in range(size):
        i = size - ONE - k
        value = result[i]
        for j in range(i + ONE, size):
            if envelope[j] <= i:
                value -= factor[j * stride + i] * result[j]
        result[i] = value / factor[i * stride + i]


@kernel
def _update(factor: Array, envelope: Places, vector: Array, at: int, start: int, sign: float) -> bool:
    """Make it the factor of its matrix plus or minus v v^T; v begins at ``at``, is zero before ``start``, is used up.

    Returns:
        Whether that matrix is positive definite.
    """
    size, definite = place(len(envelope)), True
    stride = _stride(size)
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
            for i in range(k + ONE, size):
                if envelope[i] <= k:
                    updated = (factor[i * stride + k] + sign * (s * vector[at + i])) * c_inverse
                    vector[at + i] = c * vector[at + i] - s * updated
                    factor[i * stride + k] = updated
    return definite


@kernel
def follow_states(rows: Rows, before: Integers, factor: Array, envelope: Places, vector: Array) -> bool:
    """Bring the factor up to date with the rows that have come into quadratic state or left it.

    Args:
        rows: The constraints.
        before: Their states that the factor is for, shape (n,).
        factor: The factor.
        envelope: Where its rows begin.
        vector: Scratch, shape (nv,) or longer.

    Returns:
        Whether it is exact; otherwise it must be computed anew.
    """
    for row in range(place(len(rows.dof))):
        is_now = rows.state[row] == QUADRATIC
        if is_now != (before[row] == QUADRATIC):
            dof = rows.dof[row]
            vector[:] = 0.0
            vector[dof] = rows.jac[row * rows.nv + dof] * math.sqrt(rows.d[row])
            if not _update(factor, envelope, vector, ZERO, dof, 1.0 if is_now else -1.0):
                return False
    for contact in range(place(len(rows.dim))):
        row, spans = rows.first_row[contact], rows.spans[contact]
        is_now = rows.state[row] == QUADRATIC
        if is_now != (before[row] == QUADRATIC):
            for r in range(row, row + rows.dim[contact]):
                vector[:] = 0.0
                add_row(rows, r, spans, math.sqrt(rows.d[r]), vector, ZERO)
                if not _update(factor, envelope, vector, ZERO, spans[ZERO], 1.0 if is_now else -1.0):
                    return False
    return True


@kernel
def add_cones(
    rows: Rows, cone: Array, factor: Array, envelope: Places, local: Array, nothing: Places, parts: Array, coned: Array
) -> bool:
    """Write down the factor with the parts of contacts in the middle zone of their friction cones added.

    Args:
        rows: The constraints.
        cone: The contacts' second derivatives, lower triangles, shape (contacts, 6, 6).
        factor: The factor without them.
        envelope: Where the factor's rows begin.
        local: Scratch, shape (6 * 8,).
        nothing: Zeros, shape (6,).
        parts: Scratch, shape (6 * nv,).
        coned: The result; not written if there are no such contacts.

    Returns:
        Whether there are any.
    """
    nv, found = rows.nv, False
    for contact in range(place(len(rows.dim))):
        row, dim, spans = rows.first_row[contact], rows.dim[contact], rows.spans[contact]
        if rows.state[row] != CONE:
            continue
        if not found:
            found = True
            for k in range(place(len(factor))):
                coned[k] = factor[k]
        stride = _stride(dim)
        for r in range(dim):
            for c in range(r + ONE):
                local[r * stride + c] = cone[contact, r, c]
        _factorize(local, nothing[:dim])
        for k in range(dim * nv):
            parts[k] = 0.0
        for r in range(dim):
            for c in range(r + ONE):
                add_row(rows, row + r, spans, local[r * stride + c], parts, c * nv)
        for r in range(dim):
            _update(coned, envelope, parts, r * nv, spans[ZERO], 1.0)
    return found
