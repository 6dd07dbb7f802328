"""How much of the protocol's full evaluation some rollouts are: all of it, the lite selection, or a part."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import pyarrow.compute as pc

from ...builders.rollouts.episode_record import PROBES
from ...toolkit.records import Arm, Instance, LanguageProbe, Prompt
from ..recordings.deviations import find_deviations
from ..recordings.rollout_set import RolloutSet

PROTOCOL_PROMPTS = (Prompt.P0, Prompt.P1)
PROTOCOL_INIT_STATES = range(5)

FIXED = ("prompt_text", "horizon", "tasks_version")
"""What a rollout of the full evaluation has exactly as the task release says."""

COMPLETE, LITE, PARTIAL, OFF_PROTOCOL = "complete", "lite", "partial", "off protocol"
COVERAGES = (COMPLETE, LITE, PARTIAL, OFF_PROTOCOL)
"""Everything; every case of the lite selection, under P0 at least, and no other; less; or other initial states than
0-4, other seeds than 0 and those that follow it, so that nobody can pick a lucky one, or prompts or horizons that are
not the task release's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Coverage:
    """How much of a full evaluation was run.

    Attributes:
        kind: One of ``COVERAGES``.
        rollouts: Rollouts of the full evaluation that are there, with the task release's prompts and horizons.
        of: Rollouts that it has: every case and reference under P0 and P1 in initial states 0-4, for each seed.
    """

    kind: str
    rollouts: int
    of: int

    def __str__(self) -> str:
        return self.kind if self.kind == COMPLETE else f"{self.kind}: {self.rollouts:,} of {self.of:,}"


def coverage_of(rollouts: RolloutSet, instances: Sequence[Instance], lite: Collection[str] = ()) -> Coverage:
    """What these rollouts cover.

    Args:
        rollouts: Of one policy. Those under a probe, and those that the policy did not finish, cover nothing.
        instances: The task release, all its arms.
        lite: Ids of the cases in its lite selection.
    """
    full = {i.instance_id: i for i in instances if _is_in_full(i)}
    plain = rollouts.episodes.filter(pc.not_equal(rollouts.episodes["end"], "policy_error"))
    for name, level in PROBES.items():
        plain = plain.filter(pc.equal(plain[name], level))
    seeds, states = (
        sorted(set(plain.filter(pc.equal(plain["arm"], Arm.CONFLICT.value))[name].to_pylist()))
        for name in ("seed", "init_state")
    )
    columns = [plain[name].to_pylist() for name in ("instance_id", "init_state", "seed", *FIXED)]
    done = {
        (name, state, seed)
        for name, state, seed, *fixed in zip(*columns, strict=True)
        if name in full and state in PROTOCOL_INIT_STATES and seed in seeds and fixed == _fixed(full[name])
    }
    of = len(full) * len(PROTOCOL_INIT_STATES) * max(len(seeds), 1)
    on_protocol = seeds == list(range(len(seeds))) and set(states) <= set(PROTOCOL_INIT_STATES)
    if not on_protocol or find_deviations(rollouts.episodes, instances):
        kind = OFF_PROTOCOL
    elif len(done) == of:
        kind = COMPLETE
    else:
        kind = LITE if _is_whole_lite(done, full, seeds, lite) else PARTIAL
    return Coverage(kind=kind, rollouts=len(done), of=of)


def _fixed(instance: Instance) -> list[object]:
    return [getattr(instance, name) for name in FIXED]


def _is_in_full(instance: Instance) -> bool:
    return (
        instance.arm in (Arm.REFERENCE, Arm.CONFLICT)
        and instance.prompt in PROTOCOL_PROMPTS
        and instance.language_probe is LanguageProbe.W0
    )


def _is_whole_lite(
    done: set[tuple[str, int, int]], full: dict[str, Instance], seeds: Sequence[int], lite: Collection[str]
) -> bool:
    """Whether the cases run are those of the lite selection, all of them, with their references, in every state."""
    prompts = {full[instance_id].prompt for instance_id, _, _ in done}
    cases = [i for i in full.values() if i.case_id in lite and i.prompt in prompts]
    wanted = {i.instance_id for i in cases} | {i.pair_id for i in cases}
    every = {(name, state, seed) for name in wanted for state in PROTOCOL_INIT_STATES for seed in seeds}
    return bool(cases) and Prompt.P0 in prompts and done == every
