"""From a policy's name on the command line to the policy."""

from __future__ import annotations

import importlib
import importlib.metadata
import inspect
import sys
from collections.abc import Callable, Collection
from pathlib import Path
from types import ModuleType
from typing import Any, cast

from ...toolkit.errors import ConflictVLAError, InvalidInputError, NotFoundError, PolicyError, choices, describe_error
from .adapters import is_adapted, load_adapter
from .by_suite.mapping import is_mapping, read_mapping
from .by_suite.policy import SuitePolicy
from .interface import Policy, PolicyInfo, check_info

SCRIPTED = ("persist", "refuse", "fail_persist")
"""Names of the scripted agents of the demonstration; ``agents.AGENTS`` has more."""

ENTRY_POINTS = "conflictvla.policies"
"""Group of entry points in which an installed package offers policy classes by name."""


def load_policy(spec: str) -> Policy:
    """The policy that a spec names.

    A scripted agent; the learned example (``learned``, or ``learned:PATH``); a checkpoint or server (``lerobot:PATH``,
    ``openpi://HOST:PORT``, ``vla-eval://HOST:PORT``), these with settings behind a question mark; a class that an
    installed package offers; ``module:Class``, also in the working directory; or one of these for each suite, as
    ``SUITE=POLICY,SUITE=POLICY`` or a YAML file (see ``by_suite.mapping``).

    Raises:
        NotFoundError: No such agent, checkpoint, module, class, suite, file or setting.
        InvalidInputError: The class is not a policy, its module cannot be imported, or a setting or mapping makes no
            sense.
        PolicyError: No policy server answers, or the class raises when it is called.
    """
    if is_mapping(spec):
        return SuitePolicy(read_mapping(spec), load_policy)
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
            "openpi://HOST:PORT, vla-eval://HOST:PORT, your own as module:Class, or SUITE=POLICY,SUITE=POLICY"
        )
    return scripted.AGENTS[spec]()


def policy_of_suite(spec: str, suite: str) -> Policy:
    """The policy that runs a suite: of several checkpoints the suite's own, and no other is loaded.

    Raises:
        InvalidInputError: There is none for the suite, or as for ``load_policy``.
        NotFoundError, PolicyError: As for ``load_policy``.
    """
    if not is_mapping(spec):
        return load_policy(spec)
    mapping = read_mapping(spec)
    mapping.require_suites([suite])
    return load_policy(mapping.policies[suite])


def policy_for_run(policy: Policy | str, suites: Collection[str]) -> tuple[Policy | str, PolicyInfo]:
    """A policy as a run hands it to whoever executes rollouts, and what it is, which holds for the whole run.

    Args:
        policy: The policy, or its name.
        suites: The suites that are to be run.

    Returns:
        The policy; a name of several checkpoints says what each of them is, so that nobody loads one only to find out.

    Raises:
        InvalidInputError: It has no checkpoint for one of the suites, or its ``info`` cannot be recorded.
        NotFoundError, PolicyError: As for ``load_policy``.
    """
    if isinstance(policy, str):
        loaded = load_policy(policy)
    else:
        loaded = policy
        check_info(policy, f"policy {type(policy).__name__}")
    if isinstance(loaded, SuitePolicy):
        loaded.mapping.require_suites(suites)
        return (loaded.mapping.text() if isinstance(policy, str) else policy), loaded.info
    return policy, loaded.info


def _load_class(spec: str) -> Policy:
    module, _, name = spec.partition(":")
    if module.endswith(".py") or not all(part.isidentifier() for part in (*module.split("."), name)):
        raise InvalidInputError(
            f"policy '{spec}': write your own class as module:Class, such as my_policy:Descend, without folders and "
            ".py; a server as openpi://HOST:PORT or vla-eval://HOST:PORT"
        )
    policy = _made(spec, _found(spec, _imported(spec, module), name))
    if not isinstance(policy, Policy):
        raise InvalidInputError(f"policy '{spec}': {name} needs the attribute info and the methods reset and act")
    check_info(policy, f"policy '{spec}'")
    return policy


def _imported(spec: str, module: str) -> ModuleType:
    """A user's module, also from the working directory; whatever keeps it from being imported is one line."""
    here = str(Path.cwd())
    if here not in sys.path:  # python -m looks there, an installed command does not
        sys.path.insert(0, here)
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        raise NotFoundError(f"policy '{spec}': no module '{error.name}' on the Python path") from error
    except ConflictVLAError:
        raise
    except (Exception, SystemExit) as error:  # it is the user's code
        raise InvalidInputError(
            f"policy '{spec}': module '{module}' cannot be imported: {describe_error(error)}"
        ) from error


def _found(spec: str, module: ModuleType, name: str) -> Callable[[], Any]:
    """What a user's module has under a name; it can be called without arguments."""
    found = getattr(module, name, None)
    if found is None:
        raise NotFoundError(f"policy '{spec}': module '{module.__name__}' has no '{name}'")
    if not callable(found):
        raise InvalidInputError(f"policy '{spec}': {name} is {type(found).__name__}, not a class")
    try:
        inspect.signature(found).bind()
    except TypeError as error:
        raise InvalidInputError(
            f"policy '{spec}': {name} is called without arguments, and is {error}; give it a default"
        ) from error
    except ValueError:  # it is written in C and has no signature
        pass
    return cast("Callable[[], Any]", found)


def _made(spec: str, call: Callable[[], Any]) -> Any:
    """What a user's class makes, and its info is asked for; whatever it raises is one line."""
    try:
        policy = call()
        getattr(policy, "info", None)
    except ConflictVLAError:
        raise
    except (Exception, SystemExit) as error:  # it is the user's code
        raise PolicyError(f"policy '{spec}': it cannot be made: {describe_error(error)}") from error
    return policy
