"""The premise checker: the judge of every base instruction, case and side step."""

from .checker import check, factors
from .finding import Finding

__all__ = ["Finding", "check", "factors"]
