"""Which software produced a rollout: recorded with each, and compared before two are paired."""

from __future__ import annotations

import functools
import importlib.metadata
from dataclasses import dataclass

from ..toolkit.libero_install import libero_distribution


@dataclass(frozen=True, slots=True, kw_only=True)
class Versions:
    """Versions of everything that a trajectory depends on."""

    conflictvla: str
    libero_distribution: str
    mujoco: str
    robosuite: str
    numpy: str


@functools.cache
def installed_versions() -> Versions:
    """The versions installed here."""
    return Versions(
        conflictvla=importlib.metadata.version("conflictvla"),
        libero_distribution=libero_distribution(),
        mujoco=importlib.metadata.version("mujoco"),
        robosuite=importlib.metadata.version("robosuite"),
        numpy=importlib.metadata.version("numpy"),
    )
