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
    places_at,
)
from .cost import CONE, QUADRATIC
from .products import add_row, add_three, copy, dot, fill
from .rows import MINVAL, Rows, span_of


class Factors(NamedTuple):
    """The Hessian's factor, and room to change it in.

    Attributes:
        envelope: Where its rows begin, shape (nv,).
        factor: That of M + J^T D J over the rows in quadratic state.
        state: The states of rows that it is for, shape (n,).
        coned: The same with contacts in the middle zone of their friction cones.
        local: Room for a contact's second derivative, shape (6 * 8,).
        parts: Room for a contact's rows of the Jacobian, shape (6 * nv,).
        zeros: Zeros, shape (6,).
    """

    envelope: Places
    factor: Numbers
    state: Integers
    coned: Numbers
    local: Numbers
    parts: Numbers
    zeros: Places


@kernel
def _stride(size: int) -> int:
    """From one row of a matrix to the next."""
    stride: int = (size + THREE) >> TWO << TWO
    return stride


@kernel
def factors_of(rows: Rows, tree: Places, room: int) -> Factors:
    """The factor that is to be computed.

    Args:
        rows: The constraints.
        tree: First degree of freedom of the tree that a degree of freedom is in, shape (nv,).
        room: Address of room for n + 2 nv (nv + 3) + 7 nv + 54 words.
    """
    nv, padded = rows.nv, rows.nv * _stride(rows.nv)
    coned_at = room + padded * WORD
    local_at = coned_at + padded * WORD
    parts_at = local_at + SIX * _stride(SIX) * WORD
    zeros_at = parts_at + SIX * nv * WORD
    envelope_at = zeros_at + SIX * WORD
    factors = Factors(
        places_at(envelope_at),
        numbers_at(room),
        integers_at(envelope_at + nv * WORD),
        numbers_at(coned_at),
        numbers_at(local_at),
        numbers_at(parts_at),
        places_at(zeros_at),
    )
    for k in range(SIX):
        factors.zeros[k] = ZERO
    copy(tree, factors.envelope, nv)
    for contact in range(rows.contacts):
        first, _, begin, end = span_of(rows.spans, contact)
        for dof in range(begin, end):
            factors.envelope[dof] = min(factors.envelope[dof], first)
    return factors


@kernel
def factorize(rows: Rows, mass: Numbers, factors: Factors) -> None:
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
        for k in range(envelope[i], i + ONE):
            factor[i * stride + k] += mass[i * nv + k]
    _factorize(factor, envelope, nv)


@kernel
def _add_contact(hessian: Numbers, stride: int, rows: Rows, contact: int) -> None:
    """Add the part of a contact's rows."""
    begin, end, begin_2, end_2 = span_of(rows.spans, contact)
    row, jac, d, nv = rows.first_row[contact], rows.jac, rows.d, rows.nv
    # Columns go in whole groups of four, and none twice, though a group may reach into the second span.
    column, after = begin >> TWO << TWO, (end + THREE) >> TWO << TWO
    _add_block(hessian, stride, jac, d, nv, row, begin, end, column, after)
    if end_2:
        _add_block(hessian, stride, jac, d, nv, row, begin_2, end_2, column, after)
        _add_block(hessian, stride, jac, d, nv, row, begin_2, end_2, max(begin_2 >> TWO << TWO, after), end_2)
    for r in range(row + THREE, row + rows.dim[contact]):
        for i in range(begin, end):
            add_row(jac, nv, r, rows.spans, contact, jac[r * nv + i] * d[r], hessian, i * stride)
        for i in range(begin_2, end_2):
            add_row(jac, nv, r, rows.spans, contact, jac[r * nv + i] * d[r], hessian, i * stride)


@kernel
def _add_block(
    hessian: Numbers,
    stride: int,
    jac: Numbers,
    d: Numbers,
    nv: int,
    row: int,
    begin: int,
    end: int,
    first: int,
    last: int,
) -> None:
    """Add the part of three rows to rows ``begin`` to ``end`` of the matrix, columns ``first`` to ``last``."""
    d_0, d_1, d_2 = d[row], d[row + ONE], d[row + TWO]
    for i in range(begin, end):
        f_0, f_1, f_2 = jac[row * nv + i] * d_0, jac[(row + ONE) * nv + i] * d_1, jac[(row + TWO) * nv + i] * d_2
        add_three(jac, nv, row, f_0, f_1, f_2, hessian, i * stride, first, min(last, i + ONE))


@kernel
def _factorize(matrix: Numbers, envelope: Places, size: int) -> None:
    """Replace a matrix by its Cholesky factor."""
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
def solve(rows: Rows, cone: Numbers, factors: Factors, result: Numbers) -> None:
    """Replace a vector by the one that the Hessian maps to it.

    Args:
        rows: The constraints.
        cone: Second derivatives of contacts in the middle zone of their friction cones, lower triangles, shape
            (contacts * 36,).
        factors: The factor without them.
        result: The vector, shape (nv,).
    """
    coned = _add_cones(rows, cone, factors)
    _solve(factors.coned if coned else factors.factor, factors.envelope, rows.nv, result)


@kernel
def _solve(factor: Numbers, envelope: Places, size: int, result: Numbers) -> None:
    """Replace a vector of shape (nv,) by the one that the factorized matrix maps to it."""
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
def _update(factor: Numbers, envelope: Places, size: int, vector: Numbers, at: int, start: int, sign: float) -> bool:
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
            for i in range(k + ONE, size):
                if envelope[i] <= k:
                    updated = (factor[i * stride + k] + sign * (s * vector[at + i])) * c_inverse
                    vector[at + i] = c * vector[at + i] - s * updated
                    factor[i * stride + k] = updated
    return definite


@kernel
def follow_states(rows: Rows, factors: Factors) -> bool:
    """Bring the factor up to date with the rows that have come into quadratic state or left it.

    Returns:
        Whether it is exact; otherwise it must be computed anew.
    """
    nv, jac, d, state = rows.nv, rows.jac, rows.d, rows.state
    factor, envelope, before, vector = factors.factor, factors.envelope, factors.state, factors.parts
    for row in range(rows.singles):
        is_now = state[row] == QUADRATIC
        if is_now != (before[row] == QUADRATIC):
            dof = rows.dof[row]
            fill(vector, nv, 0.0)
            vector[dof] = jac[row * nv + dof] * math.sqrt(d[row])
            if not _update(factor, envelope, nv, vector, ZERO, dof, 1.0 if is_now else -1.0):
                return False
    for contact in range(rows.contacts):
        row = rows.first_row[contact]
        is_now, first = state[row] == QUADRATIC, rows.spans[contact * FOUR]
        if is_now != (before[row] == QUADRATIC):
            for r in range(row, row + rows.dim[contact]):
                fill(vector, nv, 0.0)
                add_row(jac, nv, r, rows.spans, contact, math.sqrt(d[r]), vector, ZERO)
                if not _update(factor, envelope, nv, vector, ZERO, first, 1.0 if is_now else -1.0):
                    return False
    return True


@kernel
def _add_cones(rows: Rows, cone: Numbers, factors: Factors) -> bool:
    """Compute ``coned``, if there are contacts in the middle zone of their friction cones; returns whether."""
    nv, jac, state, found = rows.nv, rows.jac, rows.state, False
    coned, envelope, local, parts = factors.coned, factors.envelope, factors.local, factors.parts
    for contact in range(rows.contacts):
        row, dim = rows.first_row[contact], rows.dim[contact]
        if state[row] != CONE:
            continue
        if not found:
            found = True
            copy(factors.factor, coned, nv * _stride(nv))
        stride = _stride(dim)
        for r in range(dim):
            for c in range(r + ONE):
                local[r * stride + c] = cone[(contact * SIX + r) * SIX + c]
        _factorize(local, factors.zeros, dim)
        fill(parts, dim * nv, 0.0)
        for r in range(dim):
            for c in range(r + ONE):
                add_row(jac, nv, row + r, rows.spans, contact, local[r * stride + c], parts, c * nv)
        for r in range(dim):
            _update(coned, envelope, nv, parts, r * nv, rows.spans[contact * FOUR], 1.0)
    return found
