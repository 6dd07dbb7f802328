"""Memory as compiled code sees it: pointers, which are indexed like arrays but have no length, and unsigned indices.

An array that one compiled function hands to another is seven numbers, of which only the pointer is of use: with
arrays, the constraint solver took twice as long to compile. Indices are unsigned: compiled code then need not ask
whether one counts from an array's end, which halves the time of the innermost loops.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from numba import types
from numba.extending import intrinsic

from ...arrays import FloatArray

FloatPointer = FloatArray
"""A pointer to floating-point numbers."""

Int32Pointer = npt.NDArray[np.int32]
"""A pointer to integers of 32 bits."""

IndexPointer = npt.NDArray[Any]
"""A pointer to unsigned indices."""

unsigned: Any = np.uintp
"""The type of an index."""

U0, U1, U2, U3, U4, U5, U6 = (unsigned(n) for n in range(7))
"""Unsigned constants, like C's 0u to 6u: to Numba, an unsigned number plus a signed one is a float."""

WORD_BYTES = unsigned(8)
"""Bytes of a number, and of an index."""

_CPointer: Any = types.CPointer

FLOAT_POINTER = _CPointer(types.float64)


def _pointer_from_address(pointer: types.CPointer) -> Any:
    """A function for compiled code that makes a pointer of an address."""

    def typed(_context: Any, address: types.Type) -> Any:
        def convert(context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
            return builder.inttoptr(arguments[0], context.get_value_type(pointer))

        return pointer(address), convert

    return intrinsic(typed)


float_pointer = _pointer_from_address(FLOAT_POINTER)
int32_pointer = _pointer_from_address(_CPointer(types.int32))
index_pointer = _pointer_from_address(_CPointer(types.uintp))
