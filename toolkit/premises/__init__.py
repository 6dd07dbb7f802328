"""The premise checker: the judge of every base instruction, case and side step."""

from .checker import check, factors
from .violation import Violation

__all__ = ["Violation", "check", "factors"]
