"""Memory as compiled code sees it: pointers, which are indexed like arrays, but are without a length.

An array that one compiled function hands to another is seven numbers, of which only the pointer is of use: with
arrays, the constraint solver took twice as long to compile.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from numba import types
from numba.extending import intrinsic

from ...arrays import FloatArray

Numbers = FloatArray
"""A pointer to floating-point numbers."""

Integers = npt.NDArray[np.int32]
"""A pointer to whole numbers of 32 bits."""

Places = npt.NDArray[Any]
"""A pointer to places in arrays, which are unsigned."""

place: Any = np.uintp
"""What counts places in arrays, as an unsigned number."""

ZERO, ONE, TWO, THREE, FOUR, FIVE, SIX = (place(n) for n in range(7))

WORD = place(8)
"""Bytes of a number, and of a place."""

_CPointer: Any = types.CPointer

NUMBERS = _CPointer(types.float64)


def _pointer_at(pointer: types.CPointer) -> Any:
    """What makes such a pointer of an address."""

    def typed(_context: Any, address: types.Type) -> Any:
        def convert(context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
            return builder.inttoptr(arguments[0], context.get_value_type(pointer))

        return pointer(address), convert

    return intrinsic(typed)


numbers_at = _pointer_at(NUMBERS)
integers_at = _pointer_at(_CPointer(types.int32))
places_at = _pointer_at(_CPointer(types.uintp))
