"""From a policy's name on the command line to the policy."""

from __future__ import annotations

import importlib

from ...toolkit.errors import InvalidInputError, NotFoundError, choices
from .policy import Policy

SCRIPTED = ("persist", "refuse", "fail_persist")
"""Names of the scripted agents of the demonstration; ``scripted.AGENTS`` has more."""


def load_policy(spec: str) -> Policy:
    """The policy that a spec names: a scripted agent, or ``module:Class`` of the user's own.

    Raises:
        NotFoundError: No such agent, module or class.
        InvalidInputError: The class is not a policy.
    """
    if ":" in spec:
        return _own(spec)
    from . import scripted

    if spec not in scripted.AGENTS:
        raise NotFoundError(
            f"no policy '{spec}': {choices(spec, sorted(scripted.AGENTS))}, or your own as module:Class"
        )
    return scripted.AGENTS[spec]()


def _own(spec: str) -> Policy:
    module, _, name = spec.partition(":")
    try:
        policy = getattr(importlib.import_module(module), name)()
    except ModuleNotFoundError as error:
        raise NotFoundError(f"policy '{spec}': no module '{error.name}' on the Python path") from error
    except AttributeError as error:
        raise NotFoundError(f"policy '{spec}': module '{module}' has no '{name}'") from error
    if not isinstance(policy, Policy):
        raise InvalidInputError(f"policy '{spec}': {name} needs the attribute info and the methods reset and act")
    return policy
