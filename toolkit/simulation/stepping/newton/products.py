"""Products of vectors and of the constraints' Jacobian, added up in MuJoCo's order and without its zeros."""

from __future__ import annotations

import math

from ..compiling import kernel
from ..pointers import FOUR, ONE, THREE, TWO, ZERO, Integers, Numbers, Places
from .rows import Rows, span_of


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
