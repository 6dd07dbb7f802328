"""Under which conditions the behaviour of successful rollouts is compared with premise-consistent P0."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ...builders.rollouts.episode_record import PROBES
from ...toolkit.arrays import BoolArray
from ...toolkit.records import Arm, Family, LanguageProbe, Level, Prompt, VisualProbe
from .groups import ordered

BASELINE = {"arm": Arm.REFERENCE.value, "prompt": Prompt.P0.value, **PROBES}
"""What holds of the rollouts that the others are compared with."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Condition:
    """Which rollouts are compared with the baseline.

    Attributes:
        kind: ``prompt`` (premise-consistent, under another than P0), ``conflict`` (all conflicts under P0), ``family``,
            ``level``, ``language_probe`` or ``visual_probe`` (premise-consistent P0 under one probe alone).
        name: Such as ``P1``, ``conflict``, ``spatial``, ``L2`` or ``V3``.
    """

    kind: str
    name: str

    def holds(self, trajectories: pa.Table) -> BoolArray:
        """Whether each rollout is under this condition, shape (N,)."""
        wanted: dict[str, str] = dict(BASELINE)
        if self.kind in ("prompt", *PROBES):
            wanted[self.kind] = self.name
        else:
            wanted["arm"] = Arm.CONFLICT.value
        if self.kind in ("family", "level"):
            wanted[self.kind] = self.name
        return has_values(trajectories, wanted)


WITHOUT_OTHER_PROMPT = (
    Condition(kind="conflict", name="conflict"),
    *[Condition(kind="family", name=family.value) for family in Family],
    *[Condition(kind="level", name=level.value) for level in Level],
    *[Condition(kind="language_probe", name=probe.value) for probe in LanguageProbe if probe is not LanguageProbe.W0],
    *[Condition(kind="visual_probe", name=probe.value) for probe in VisualProbe if probe is not VisualProbe.V0],
)
"""Conditions under P0."""


def conditions_of(trajectories: pa.Table) -> tuple[Condition, ...]:
    """Every condition that rollouts can be under: the other prompt conditions that occur, and those under P0."""
    others = set(trajectories["prompt"].to_pylist()) - {BASELINE["prompt"]}
    return (*(Condition(kind="prompt", name=name) for name in ordered(others, "prompt")), *WITHOUT_OTHER_PROMPT)


def is_baseline(trajectories: pa.Table) -> BoolArray:
    """Whether each rollout is one of the baseline, shape (N,)."""
    return has_values(trajectories, BASELINE)


def has_values(trajectories: pa.Table, values: Mapping[str, str]) -> BoolArray:
    """Whether each rollout has these values, shape (N,)."""
    found = np.ones(trajectories.num_rows, np.bool_)
    for name, value in values.items():
        same = pc.fill_null(pc.equal(trajectories[name], value), fill_value=False)
        found &= np.asarray(same.to_numpy(), np.bool_)
    return found
