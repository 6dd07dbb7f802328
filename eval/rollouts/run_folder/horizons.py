"""Which kind of horizon rollouts have, as their horizons and plans show it: it is not recorded as such."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Self

from ....builders.cases.instances import plan_horizon
from ....builders.rollouts.episode_record import EpisodeRecord
from ....toolkit.errors import InvalidInputError
from ....toolkit.language.plan_json import plan_from_json
from ....toolkit.records import Arm, Instance
from ...selection import HorizonKind

NEITHER = "neither"
"""What stands for the kind of a horizon that is neither by the plan nor the base task's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GivenHorizon:
    """How long a rollout may be, and what that depends on.

    Attributes:
        pair_id: Its reference instance.
        is_reference: Whether it is of that instance itself.
        horizon: Its horizon.
        steps: How many steps the plan of its instruction has; None where that is not known.
    """

    pair_id: str
    is_reference: bool
    horizon: int
    steps: int | None

    @classmethod
    def of_record(cls, record: EpisodeRecord) -> Self:
        """That of a recorded rollout, which has a goal, perhaps an empty one, for each step of its plan."""
        return cls(
            pair_id=record.pair_id,
            is_reference=record.arm is Arm.REFERENCE,
            horizon=record.horizon,
            steps=None if record.step_goals is None else len(record.step_goals),
        )

    @classmethod
    def of_instance(cls, instance: Instance) -> Self:
        """That of an instance."""
        return cls(
            pair_id=instance.pair_id,
            is_reference=instance.arm is Arm.REFERENCE,
            horizon=instance.horizon,
            steps=_steps(instance.plan),
        )


def horizon_kinds(given: Iterable[GivenHorizon]) -> Sequence[str | None]:
    """The kind of each horizon: one of ``HorizonKind`` or ``NEITHER``.

    None where both kinds are one and the same, as for references and for plans with no more steps than the base
    task's, and where nobody can say: without the reference, or without the steps of a plan.
    """
    given = tuple(given)
    references = {each.pair_id: each for each in given if each.is_reference}
    return [_kind(each, references.get(each.pair_id)) for each in given]


def _kind(given: GivenHorizon, reference: GivenHorizon | None) -> str | None:
    if reference is None or not given.steps or not reference.steps:
        return None
    by_plan = plan_horizon(reference.horizon, given.steps, base_steps=reference.steps)
    if by_plan == reference.horizon:
        return None if given.horizon == by_plan else NEITHER
    kinds = {by_plan: HorizonKind.PLAN.value, reference.horizon: HorizonKind.BASE.value}
    return kinds.get(given.horizon, NEITHER)


@cache
def _steps(plan: str) -> int | None:
    try:
        return len(plan_from_json(plan).steps)
    except InvalidInputError:
        return None  # of a task release of one's own
