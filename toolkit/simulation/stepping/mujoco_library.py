"""MuJoCo's own functions and structures, for compiled code to use without a detour through Python.

Arguments are addresses, pointers and integers. The bindings have loaded the same library, so both work on the same
state.
"""

from __future__ import annotations

import ctypes
import functools
from pathlib import Path
from typing import Any, NamedTuple

import llvmlite.binding
import mujoco
import numpy as np
from numba import types

from ...errors import InvalidInputError
from .pointers import FLOAT_POINTER

NAMES = ("libmujoco*.so*", "libmujoco*.dylib", "mujoco.dll")
"""What the library is called in MuJoCo's wheels on Linux, macOS and Windows."""

CONTACT = np.dtype(
    [
        ("dist", "f8"),
        ("pos", "f8", 3),
        ("frame", "f8", 9),
        ("includemargin", "f8"),
        ("friction", "f8", 5),
        ("solref", "f8", 2),
        ("solreffriction", "f8", 2),
        ("solimp", "f8", 5),
        ("mu", "f8"),
        ("H", "f8", 36),
        ("dim", "i4"),
        ("geom1", "i4"),
        ("geom2", "i4"),
        ("geom", "i4", 2),
        ("flex", "i4", 2),
        ("elem", "i4", 2),
        ("vert", "i4", 2),
        ("exclude", "i4"),
        ("efc_address", "i4"),
    ],
    align=True,
)
"""MuJoCo 3.2.3's ``mjContact``."""


class DataFields(NamedTuple):
    """Where fields lie in MuJoCo's ``mjData``, in bytes from its beginning: counts are integers, others pointers.

    Those that MuJoCo moves from one substep to the next; of the others, which never move, NumPy's views are enough.
    """

    nf: int
    nl: int
    nefc: int
    ncon: int
    contact: int
    efc_id: int
    efc_J: int  # noqa: N815
    efc_D: int  # noqa: N815
    efc_R: int  # noqa: N815
    efc_frictionloss: int
    efc_aref: int
    efc_force: int
    efc_state: int


NO_FIELDS = DataFields(*[0] * len(DataFields._fields))
"""For data that nothing is read from."""


def offset_of(name: str) -> int:
    """Where a field of ``CONTACT`` lies, in bytes from its beginning."""
    assert CONTACT.fields is not None
    return CONTACT.fields[name][1]


_POINTERS = tuple(name for name in DataFields._fields if name.startswith("efc_"))

_SAMPLE = """
<mujoco>
  <worldbody>
    <geom type="plane" size="1 1 1"/>
    <body pos="0 0 .1">
      <joint type="slide" axis="0 0 1" frictionloss="1" limited="true" range="1 2"/>
      <joint type="slide" axis="1 0 0" frictionloss="1"/>
      <geom size=".2"/>
    </body>
  </worldbody>
</mujoco>
"""
"""A scene with constraints of each kind, in numbers that are not all the same."""


def library_file() -> Path:
    """MuJoCo's library, as its wheel brings it.

    Raises:
        InvalidInputError: The package holds none.
    """
    folder = Path(mujoco.__file__).parent
    found = [file for name in NAMES for file in sorted(folder.glob(name))]
    if not found:
        raise InvalidInputError(
            f"{folder}: holds none of {', '.join(NAMES)}: install mujoco {mujoco.__version__} from its wheel"
        )
    return found[0]


def _function(name: str, *arguments: types.Type) -> Any:
    return types.ExternalFunction(name, types.void(*arguments))


llvmlite.binding.load_library_permanently(str(library_file()))

mj_fwdPosition = _function("mj_fwdPosition", types.intp, types.intp)  # noqa: N816
mj_fwdVelocity = _function("mj_fwdVelocity", types.intp, types.intp)  # noqa: N816
mj_fwdActuation = _function("mj_fwdActuation", types.intp, types.intp)  # noqa: N816
mj_fwdAcceleration = _function("mj_fwdAcceleration", types.intp, types.intp)  # noqa: N816
mj_fwdConstraint = _function("mj_fwdConstraint", types.intp, types.intp)  # noqa: N816
mj_checkAcc = _function("mj_checkAcc", types.intp, types.intp)  # noqa: N816
mj_Euler = _function("mj_Euler", types.intp, types.intp)  # noqa: N816
mj_jacSite = _function("mj_jacSite", types.intp, types.intp, types.intp, types.intp, types.int32)  # noqa: N816
mj_fullM = _function("mj_fullM", types.intp, types.intp, types.intp)  # noqa: N816
mj_mulM = _function("mj_mulM", types.intp, types.intp, FLOAT_POINTER, FLOAT_POINTER)  # noqa: N816


@functools.cache
def data_fields() -> DataFields:
    """Find the fields of ``mjData`` by what they hold for a small scene: no binding tells where they are."""
    model = mujoco.MjModel.from_xml_string(_SAMPLE)
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    wanted = {getattr(data, name).ctypes.data: name for name in _POINTERS}
    wanted[data.contact[0].frame.ctypes.data - offset_of("frame")] = "contact"
    address = data._address  # noqa: SLF001  # the bindings' own way to the C structure
    words = ctypes.cast(address, ctypes.POINTER(ctypes.c_uint64))
    found: dict[str, int] = {}
    word = 0
    while len(found) < len(wanted):
        if name := wanted.get(words[word]):
            found[name] = 8 * word
        word += 1

    # Counts stand before all pointers, one after the other; only the number of entries of the Jacobian is between them.
    counts = [data.ne, data.nf, data.nl, data.nefc, data.nefc * model.nv, data.ncon]
    integers = (ctypes.c_int32 * (2 * word)).from_address(address)[:]
    ne = next(4 * k for k in range(len(integers)) if integers[k : k + len(counts)] == counts)
    return DataFields(nf=ne + 4, nl=ne + 8, nefc=ne + 12, ncon=ne + 20, **found)
