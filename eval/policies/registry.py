"""From a policy's name on the command line to the policy."""

from __future__ import annotations

import importlib
import importlib.metadata
import sys
from pathlib import Path

from ...toolkit.errors import InvalidInputError, NotFoundError, choices
from .adapters import is_adapted, load_adapter
from .interface import Policy

SCRIPTED = ("persist", "refuse", "fail_persist")
"""Names of the scripted agents of the demonstration; ``agents.AGENTS`` has more."""

ENTRY_POINTS = "conflictvla.policies"
"""Group of entry points in which an installed package offers policy classes by name."""


def load_policy(spec: str) -> Policy:
    """The policy that a spec names.

    A scripted agent; the learned example (``learned``, or ``learned:PATH``); a checkpoint or server (``lerobot:PATH``,
    ``openpi://HOST:PORT``, ``vla-eval://HOST:PORT``), these with settings behind a question mark; a class that an
    installed package offers; or ``module:Class``, also in the working directory.

    Raises:
        NotFoundError: No such agent, checkpoint, module, class or setting.
        InvalidInputError: The class is not a policy, or a setting makes no sense.
        PolicyError: No policy server answers.
    """
    if is_adapted(spec):
        return load_adapter(spec)
    if ":" in spec:
        return _load_class(spec)
    offered = importlib.metadata.entry_points(group=ENTRY_POINTS, name=spec)
    if offered:
        return _load_class(next(iter(offered)).value)
    from .scripted import agents as scripted

    if spec not in scripted.AGENTS:
        raise NotFoundError(
            f"no policy '{spec}': {choices(spec, sorted(scripted.AGENTS))}, learned, lerobot:PATH, "
            "openpi://HOST:PORT, vla-eval://HOST:PORT, or your own as module:Class"
        )
    return scripted.AGENTS[spec]()


def _load_class(spec: str) -> Policy:
    module, _, name = spec.partition(":")
    here = str(Path.cwd())
    if here not in sys.path:  # python -m looks there, an installed command does not
        sys.path.insert(0, here)
    try:
        policy = getattr(importlib.import_module(module), name)()
    except ModuleNotFoundError as error:
        raise NotFoundError(f"policy '{spec}': no module '{error.name}' on the Python path") from error
    except AttributeError as error:
        raise NotFoundError(f"policy '{spec}': module '{module}' has no '{name}'") from error
    if not isinstance(policy, Policy):
        raise InvalidInputError(f"policy '{spec}': {name} needs the attribute info and the methods reset and act")
    return policy
