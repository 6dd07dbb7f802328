"""Products of vectors and of the constraints' Jacobian: added up in MuJoCo's order, without its zeros."""

from __future__ import annotations

import math

from ..compiling import kernel
from ..pointers import U0, U1, U2, U3, U4, FloatPointer, IndexPointer, Int32Pointer
from .rows import Rows, span_of


@kernel
def copy(numbers: FloatPointer | Int32Pointer, into: FloatPointer | Int32Pointer, count: int) -> None:
    """Copy ``count`` numbers."""
    for k in range(count):
        into[k] = numbers[k]


@kernel
def fill(numbers: FloatPointer, count: int, value: float) -> None:
    """Set ``count`` numbers to a value."""
    for k in range(count):
        numbers[k] = value


@kernel
def dot(a: FloatPointer, a_at: int, b: FloatPointer, b_at: int, begin: int, size: int) -> float:
    """MuJoCo's scalar product of two stretches of ``size`` numbers, of which one is zero before ``begin``."""
    whole = size >> U2 << U2
    begin = min(begin >> U2 << U2, whole)
    sum_0 = sum_1 = sum_2 = sum_3 = 0.0
    for k in range(begin, whole, U4):
        sum_0 += a[a_at + k] * b[b_at + k]
        sum_1 += a[a_at + k + U1] * b[b_at + k + U1]
        sum_2 += a[a_at + k + U2] * b[b_at + k + U2]
        sum_3 += a[a_at + k + U3] * b[b_at + k + U3]
    return _add_remainder((sum_0 + sum_2) + (sum_1 + sum_3), a, a_at + whole, b, b_at + whole, size - whole)


@kernel
def norm(vector: FloatPointer, size: int) -> float:
    """A vector's length."""
    return math.sqrt(dot(vector, U0, vector, U0, U0, size))


@kernel
def _add_remainder(total: float, a: FloatPointer, a_at: int, b: FloatPointer, b_at: int, left: int) -> float:
    """Add what is left of a scalar product after whole groups of four."""
    if left == U1:
        total += a[a_at] * b[b_at]
    elif left == U2:
        total += a[a_at] * b[b_at] + a[a_at + U1] * b[b_at + U1]
    elif left == U3:
        total += a[a_at] * b[b_at] + a[a_at + U1] * b[b_at + U1] + a[a_at + U2] * b[b_at + U2]
    return total


@kernel
def jac_times(rows: Rows, vector: FloatPointer, product: FloatPointer) -> None:
    """The Jacobian times a vector of shape (nv,), written to ``product`` of shape (n,)."""
    nv, whole, jac, dof = rows.nv, rows.nv >> U2 << U2, rows.jac, rows.dof
    for row in range(rows.singles):
        product[row] = jac[row * nv + dof[row]] * vector[dof[row]]
    for contact in range(rows.contacts):
        begin, end, begin_2, end_2 = span_of(rows.spans, contact)
        rest = max(end, end_2) > whole
        begin, end = begin >> U2 << U2, min((end + U3) >> U2 << U2, whole)
        begin_2, end_2 = max(begin_2 >> U2 << U2, end), min((end_2 + U3) >> U2 << U2, whole)
        row = rows.first_row[contact]
        for r in range(row, row + rows.dim[contact]):
            at = r * nv
            sum_0 = sum_1 = sum_2 = sum_3 = 0.0
            for k in range(begin, end, U4):
                sum_0 += jac[at + k] * vector[k]
                sum_1 += jac[at + k + U1] * vector[k + U1]
                sum_2 += jac[at + k + U2] * vector[k + U2]
                sum_3 += jac[at + k + U3] * vector[k + U3]
            for k in range(begin_2, end_2, U4):
                sum_0 += jac[at + k] * vector[k]
                sum_1 += jac[at + k + U1] * vector[k + U1]
                sum_2 += jac[at + k + U2] * vector[k + U2]
                sum_3 += jac[at + k + U3] * vector[k + U3]
            total = (sum_0 + sum_2) + (sum_1 + sum_3)
            product[r] = _add_remainder(total, jac, at + whole, vector, whole, nv - whole) if rest else total


@kernel
def jac_transposed_times(rows: Rows, vector: FloatPointer, total: FloatPointer) -> None:
    """The Jacobian's transpose times a vector of shape (n,), written to ``total``, shape (nv + 3,).

    The last three numbers are arbitrary.
    """
    nv, jac, dof = rows.nv, rows.jac, rows.dof
    fill(total, nv, 0.0)
    for row in range(rows.singles):
        total[dof[row]] += jac[row * nv + dof[row]] * vector[row]
    for contact in range(rows.contacts):
        row = rows.first_row[contact]
        f_0, f_1, f_2 = vector[row], vector[row + U1], vector[row + U2]
        if f_0 != 0.0 or f_1 != 0.0 or f_2 != 0.0:
            begin, end, begin_2, end_2 = span_of(rows.spans, contact)
            column, column_2 = begin >> U2 << U2, max(begin_2 >> U2, (end + U3) >> U2) << U2
            add_three(jac, nv, row, f_0, f_1, f_2, total, U0, column, end)
            add_three(jac, nv, row, f_0, f_1, f_2, total, U0, column_2, end_2)
        for r in range(row + U3, row + rows.dim[contact]):
            add_row(jac, nv, r, rows.spans, contact, vector[r], total, U0)


@kernel
def add_three(
    jac: FloatPointer,
    nv: int,
    row: int,
    f_0: float,
    f_1: float,
    f_2: float,
    into: FloatPointer,
    into_at: int,
    begin: int,
    end: int,
) -> None:
    """Add multiples of three rows of the Jacobian to a stretch of numbers, in whole groups of four columns."""
    at_0, at_1, at_2 = row * nv, (row + U1) * nv, (row + U2) * nv
    for k in range(begin, end, U4):
        k_1, k_2, k_3 = k + U1, k + U2, k + U3
        a_0 = into[into_at + k] + jac[at_0 + k] * f_0 + jac[at_1 + k] * f_1 + jac[at_2 + k] * f_2
        a_1 = into[into_at + k_1] + jac[at_0 + k_1] * f_0 + jac[at_1 + k_1] * f_1 + jac[at_2 + k_1] * f_2
        a_2 = into[into_at + k_2] + jac[at_0 + k_2] * f_0 + jac[at_1 + k_2] * f_1 + jac[at_2 + k_2] * f_2
        a_3 = into[into_at + k_3] + jac[at_0 + k_3] * f_0 + jac[at_1 + k_3] * f_1 + jac[at_2 + k_3] * f_2
        into[into_at + k], into[into_at + k_1], into[into_at + k_2], into[into_at + k_3] = a_0, a_1, a_2, a_3


@kernel
def add_row(
    jac: FloatPointer,
    nv: int,
    row: int,
    spans: IndexPointer,
    contact: int,
    factor: float,
    into: FloatPointer,
    into_at: int,
) -> None:
    """Add a multiple of a contact's row of the Jacobian to a stretch of nv numbers."""
    at = row * nv
    begin, end, begin_2, end_2 = span_of(spans, contact)
    for k in range(begin, end):
        into[into_at + k] += jac[at + k] * factor
    for k in range(begin_2, end_2):
        into[into_at + k] += jac[at + k] * factor
