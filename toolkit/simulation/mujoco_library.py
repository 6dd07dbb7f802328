"""MuJoCo's own functions, for compiled code to call without a detour through Python.

Arguments are addresses and whole numbers. The bindings have loaded the same library, so both work on the same state.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import llvmlite.binding
import mujoco
from numba import types

from ..errors import InvalidInputError

NAMES = ("libmujoco*.so*", "libmujoco*.dylib", "mujoco.dll")
"""What the library is called in MuJoCo's wheels on Linux, macOS and Windows."""


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

mj_forward = _function("mj_forward", types.intp, types.intp)
mj_forwardSkip = _function("mj_forwardSkip", types.intp, types.intp, types.int32, types.int32)  # noqa: N816
mj_fwdPosition = _function("mj_fwdPosition", types.intp, types.intp)  # noqa: N816
mj_fwdConstraint = _function("mj_fwdConstraint", types.intp, types.intp)  # noqa: N816
mj_step2 = _function("mj_step2", types.intp, types.intp)
mj_jacSite = _function("mj_jacSite", types.intp, types.intp, types.intp, types.intp, types.int32)  # noqa: N816
mj_fullM = _function("mj_fullM", types.intp, types.intp, types.intp)  # noqa: N816
