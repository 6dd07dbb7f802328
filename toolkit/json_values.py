"""Values as JSON can hold them."""

from __future__ import annotations

import math
from typing import Any


def null_for_nan(value: Any) -> Any:
    """The same content with None in place of NaN and infinity, for JSON."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {key: null_for_nan(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [null_for_nan(part) for part in value]
    return value
