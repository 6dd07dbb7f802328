"""Which software produced a rollout, and how it rounded: recorded with each."""

from __future__ import annotations

import functools
import importlib.metadata
from dataclasses import dataclass

from ...toolkit.libero.install import libero_distribution
from ...toolkit.rounding import rounding_kernel


@dataclass(frozen=True, slots=True, kw_only=True)
class Versions:
    """Versions of everything that a trajectory depends on, and the kernel by which the process rounds."""

    conflictvla: str
    libero_distribution: str
    mujoco: str
    robosuite: str
    numpy: str
    rounding_kernel: str


@functools.cache
def installed_versions() -> Versions:
    """The versions installed here."""
    return Versions(
        conflictvla=importlib.metadata.version("conflictvla"),
        libero_distribution=libero_distribution(),
        mujoco=importlib.metadata.version("mujoco"),
        robosuite=importlib.metadata.version("robosuite"),
        numpy=importlib.metadata.version("numpy"),
        rounding_kernel=rounding_kernel(),
    )
