"""Several checkpoints as one policy: of each suite its own is loaded, when the first episode of the suite begins."""

from __future__ import annotations

import dataclasses
import gc
import sys
from collections.abc import Callable, Mapping

from ....toolkit.arrays import FloatArray
from ....toolkit.errors import InvalidInputError, PolicyError
from ..interface import Episode, Observation, Policy, PolicyInfo, Refusal
from .mapping import SuiteMapping

Load = Callable[[str], Policy]


class SuitePolicy:
    """A policy with one checkpoint a suite.

    Its revision is the whole mapping, ``suite=revision, suite=revision`` by suite, so that it is the same in every
    rollout. What each policy is, is found out once, one after the other, and written into ``mapping``: whoever loads
    the policy from that needs no other checkpoint than that of the suite that is run. One is in memory at a time.

    Args:
        mapping: Which policy each suite has.
        load: Makes the policy of a suite.

    Raises:
        InvalidInputError: The policies have several names, and the whole has none.
        NotFoundError, PolicyError: As ``load`` raises them.
    """

    def __init__(self, mapping: SuiteMapping, load: Load) -> None:
        members = mapping.members or {suite: load(policy).info for suite, policy in mapping.policies.items()}
        self.mapping = dataclasses.replace(mapping, members=members)
        self.info = _whole(self.mapping)
        self._load = load
        self._suite = ""
        self._policy: Policy | None = None

    def reset(self, episode: Episode) -> None:
        """Begin an episode with the policy of its suite; it is loaded where the last episode was of another suite.

        Raises:
            PolicyError: It is not what it was when the run began.
        """
        suite = episode.instance.suite
        if self._policy is None or suite != self._suite:
            self._policy = None
            _free_memory()
            self._suite, self._policy = suite, self._loaded(suite)
        self._policy.reset(episode)

    def act(self, observation: Observation) -> FloatArray | Refusal:
        """The next actions of the suite's policy, shape (n, 7), or its refusal."""
        assert self._policy is not None  # reset comes first
        return self._policy.act(observation)

    def _loaded(self, suite: str) -> Policy:
        self.mapping.require_suites([suite])
        policy, then = self._load(self.mapping.policies[suite]), self.mapping.members[suite]
        now = policy.info
        if (now.revision, now.settings) != (then.revision, then.settings):
            raise PolicyError(
                f"the policy of {suite} was {then.revision} when the run began, and is now {now.revision}; restore it, "
                "or begin a run of its own in another folder"
            )
        return policy


def _whole(mapping: SuiteMapping) -> PolicyInfo:
    """What the policies are together."""
    members = dict(sorted(mapping.members.items()))
    names = sorted({info.name for info in members.values()})
    families = {info.family for info in members.values()}
    if mapping.name is None and len(names) > 1:
        raise InvalidInputError(
            f"policy '{mapping.written}': its policies are {', '.join(names)}; name the whole, as in "
            "name=NAME,SUITE=POLICY, or  name:  in the file"
        )
    return PolicyInfo(
        name=mapping.name or names[0],
        revision=", ".join(f"{suite}={info.revision}" for suite, info in members.items()),
        settings=_settings({suite: info.settings for suite, info in members.items()}),
        family=mapping.family or (families.pop() if len(families) == 1 else None),
    )


def _settings(by_suite: Mapping[str, Mapping[str, str | int | float | bool]]) -> dict[str, str | int | float | bool]:
    """The settings that all policies share by their names, the others as ``suite.name``."""
    found: dict[str, str | int | float | bool] = {}
    for suite, settings in by_suite.items():
        for name, value in settings.items():
            shared = all(name in other and other[name] == value for other in by_suite.values())
            found[name if shared else f"{suite}.{name}"] = value
    return found


def _free_memory() -> None:
    """Give the memory of the last checkpoint back before the next is loaded."""
    gc.collect()
    torch = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_available():
        torch.cuda.empty_cache()
