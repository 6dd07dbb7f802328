"""Repeats: reference rollouts of one policy that differ in nothing but the seed."""

from __future__ import annotations

import numpy as np
import pyarrow.compute as pc

from ...toolkit.records import PROTOCOL_VERSION, Arm
from ..recordings.rollout_set import RolloutSet
from .pairs import MATCHED_ON, MUST_AGREE, Pairing, row_codes

NOT_COMPARED = ("seed",)


def pair_repeats(rollouts: RolloutSet) -> Pairing:
    """Pair reference rollouts that agree in every field on which a pair must agree and in the horizon, except the seed.

    Of the rollouts of one group, ordered by seed, each is paired with the next: k repeats give k - 1 pairs, and a
    rollout is in two of them at most. The lower seed stands in the place of the reference rollout, the higher one in
    that of the conflict rollout. Rollouts that the policy broke off, or of another protocol, are left out.
    """
    episodes = rollouts.episodes
    fields = [name for name in (*MATCHED_ON, *MUST_AGREE, "horizon") if name not in NOT_COMPARED]
    usable = pc.and_(
        pc.and_(pc.equal(episodes["arm"], Arm.REFERENCE.value), pc.not_equal(episodes["end"], "policy_error")),
        pc.equal(episodes["protocol_version"], PROTOCOL_VERSION),
    )
    rows = np.flatnonzero(np.asarray(usable.to_numpy(), np.bool_))
    groups = row_codes(episodes, fields)[rows]
    seeds = rollouts.column("seed")[rows]
    order = np.lexsort((rollouts.column("rollout_id")[rows].astype(str), seeds, groups))
    rows, groups, seeds = rows[order], groups[order], seeds[order]
    # Of several rollouts with one seed the first stands for all: a repeat of the same seed is no other draw.
    distinct = np.ones(len(rows), np.bool_)
    distinct[1:] = (np.diff(groups) != 0) | (np.diff(seeds) != 0)
    rows, groups = rows[distinct], groups[distinct]
    follows = np.flatnonzero(np.diff(groups) == 0)
    return Pairing(reference=rows[follows], conflict=rows[follows + 1], refusals=(), unused_references=0)
