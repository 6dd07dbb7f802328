"""Ways to plug in a policy that is not Python code of the user's own: a checkpoint, a server, our learned example."""

from __future__ import annotations

from collections.abc import Callable

from .interface import Policy
from .spec import PolicySpec, read_spec


def _lerobot(spec: PolicySpec) -> Policy:
    from .lerobot.policy import LeRobotPolicy

    return LeRobotPolicy(spec)


def _openpi(spec: PolicySpec) -> Policy:
    from .remote.openpi import OpenPiPolicy

    return OpenPiPolicy(spec)


def _vla_eval(spec: PolicySpec) -> Policy:
    from .remote.vla_eval import VlaEvalPolicy

    return VlaEvalPolicy(spec)


def _learned(spec: PolicySpec) -> Policy:
    from .learned.policy import LearnedPolicy

    return LearnedPolicy(spec)


ADAPTERS: dict[str, Callable[[PolicySpec], Policy]] = {
    "lerobot": _lerobot,
    "openpi": _openpi,
    "vla-eval": _vla_eval,
    "learned": _learned,
}
"""What makes a policy of a spec, by what stands before the colon; each loads its stack only when it is used."""


def is_adapted(text: str) -> bool:
    """Whether a spec has one of the ``ADAPTERS``' schemes."""
    return text.partition("?")[0].partition(":")[0] in ADAPTERS


def load_adapter(text: str) -> Policy:
    """The policy that a spec with one of the ``ADAPTERS``' schemes names.

    Raises:
        InvalidInputError: The spec makes no sense, or does not fit LIBERO.
        NotFoundError: There is no such checkpoint or setting.
        PolicyError: No policy server answers.
    """
    spec = read_spec(text)
    return ADAPTERS[spec.scheme](spec)
