"""Pairs: each conflict or control rollout with the reference rollout it may be compared with, or what forbids it.

LIBERO's own resets leak state from one episode into the next, and versions move success rates by several points, so a
pair is checked and never assumed (see docs/pages/concepts.md).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ...builders.rollouts.episode_record import VERSION_FIELDS
from ...toolkit.arrays import IntArray, ObjectArray
from ...toolkit.records import PROTOCOL_VERSION, Arm
from ..recordings.rollout_set import RolloutSet

MATCHED_ON = ("policy_name", "pair_id", "init_state", "visual_probe")
"""Fields that say which reference rollouts are meant for a conflict or control rollout."""

RUN_FIELDS = ("policy_revision", "policy_settings", "seed")
"""Fields that tell repeated runs apart; among several reference rollouts they say which one is the partner."""

MUST_AGREE = (
    *RUN_FIELDS,
    "prompt",
    "prompt_version",
    "language_probe",
    "visual_settings",
    "suite",
    "base_task",
    "base_task_index",
    "targets",
    "scene_sha256",
    "settled_state_sha256",
    *VERSION_FIELDS,
)
"""Fields on which the two rollouts of a pair must agree, in the order in which a disagreement is looked for. The
horizon is none of them: a conflict whose plan has more steps has a longer one."""

NO_REFERENCE = "no reference rollout"
DUPLICATE_REFERENCE = "duplicate reference rollout"
DUPLICATE = {arm: f"duplicate {arm} rollout" for arm in (Arm.CONFLICT, Arm.CONTROL)}
SAME_PROMPT = "same prompt as the reference rollout"
"""The policy was given one and the same string in both rollouts, so that nothing tells one from the other."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RefusedPair:
    """A conflict or control rollout that is not scored, and why.

    Attributes:
        rollout_id: The conflict or control rollout.
        field: The episode field that disagrees, or ``no reference rollout``, ``duplicate reference rollout``,
            ``duplicate conflict rollout``, ``duplicate control rollout``, ``same prompt as the reference rollout``.
        reference: The reference rollout's value of that field; empty where there is no one reference rollout.
        conflict: The other rollout's value of that field; for a missing or repeated rollout, what was looked for; for
            one prompt in both, its text.
        arm: Of which arm the rollout is.
    """

    rollout_id: str
    field: str
    reference: str
    conflict: str
    arm: str = Arm.CONFLICT.value

    def __str__(self) -> str:
        if self.reference:
            return f"{self.rollout_id}: {self.field}: reference has {self.reference}, {self.arm} has {self.conflict}"
        return f"{self.rollout_id}: {self.field} for {self.conflict}"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Pairing:
    """The pairs of a rollout set, P of them, in an order that does not depend on how the rollouts are stored.

    Attributes:
        reference: Row of each pair's reference rollout in the set, shape (P,).
        conflict: Row of each pair's conflict rollout, or of its control rollout, shape (P,), each row once.
        refusals: One for each such rollout without a pair, by rollout id.
        unused_references: Reference rollouts that are in no pair.
    """

    reference: IntArray
    conflict: IntArray
    refusals: tuple[RefusedPair, ...]
    unused_references: int

    def __len__(self) -> int:
        return len(self.conflict)


def pair_rollouts(rollouts: RolloutSet, arm: Arm = Arm.CONFLICT) -> Pairing:
    """Pair each rollout of one arm, conflict or control, with its reference rollout.

    A reference rollout is a candidate where ``MATCHED_ON`` agree; among several, the one whose ``RUN_FIELDS`` agree
    too. The pair is then refused by the first of ``MUST_AGREE`` that differs, by a protocol version other than the
    one that is scored, where both have one and the same prompt, or by ``end`` where the policy itself failed. Of two
    rollouts of the same instance, initial state and run neither is scored, since nothing says which is right.

    Args:
        rollouts: Of all arms.
        arm: Which rollouts are paired; those of the other one are passed by.
    """
    episodes = rollouts.episodes
    references, conflicts = rows_of_arm(episodes, Arm.REFERENCE), rows_of_arm(episodes, arm)
    partner, matched = _partners(episodes, references, conflicts)

    reasons = np.full(len(conflicts), "", dtype=object)
    reasons[matched == 0] = NO_REFERENCE
    reasons[matched > 1] = DUPLICATE_REFERENCE
    own_run = row_codes(episodes, ("policy_name", "instance_id", "init_state", "visual_probe", *RUN_FIELDS))[conflicts]
    reasons[_occurrences(own_run) > 1] = DUPLICATE[arm]
    _refuse_disagreements(episodes, conflicts, partner, reasons)

    order = _stable_order(episodes, conflicts)
    paired = order[reasons[order] == ""]
    pairs = partner[paired]
    return Pairing(
        reference=pairs,
        conflict=conflicts[paired],
        refusals=_refusals(episodes, conflicts, partner, reasons, arm),
        unused_references=len(references) - len(np.unique(pairs)),
    )


def rows_of_arm(episodes: pa.Table, arm: Arm) -> IntArray:
    """Rows of the rollouts of one arm."""
    return np.flatnonzero(np.asarray(pc.equal(episodes["arm"], arm.value).to_numpy(), np.bool_))


def row_codes(episodes: pa.Table, columns: Sequence[str]) -> IntArray:
    """One whole number a row, equal for two rows exactly where all the columns are equal; shape (N,)."""
    codes = np.zeros(episodes.num_rows, np.int64)
    for name in columns:
        column = episodes[name]
        if pa.types.is_list(column.type):
            column = pc.binary_join(column, "\x1f")
        own = pc.dictionary_encode(column, null_encoding="encode").combine_chunks().indices.to_numpy()
        # Renumbering after each column keeps the product of the counts far from overflow.
        _, codes = np.unique(codes * (int(own.max(initial=0)) + 1) + own, return_inverse=True)
    return np.asarray(codes, np.int64)


def _occurrences(codes: IntArray) -> IntArray:
    _, inverse, counts = np.unique(codes, return_inverse=True, return_counts=True)
    return np.asarray(counts[inverse], np.int64) if len(codes) else np.zeros(0, np.int64)


def _lookup(keys: IntArray, wanted: IntArray) -> tuple[IntArray, IntArray]:
    """For each wanted code: position of the first equal key (0 where there is none), and how many keys are equal."""
    order = np.argsort(keys, kind="stable")
    first = np.searchsorted(keys[order], wanted, side="left")
    count = np.searchsorted(keys[order], wanted, side="right") - first
    position = np.zeros(len(wanted), np.int64)
    position[count > 0] = order[first[count > 0]]
    return position, count.astype(np.int64)


def _partners(episodes: pa.Table, references: IntArray, conflicts: IntArray) -> tuple[IntArray, IntArray]:
    """Row of each conflict's reference rollout (-1 where there is none), and how many could be meant."""
    same_task = row_codes(episodes, MATCHED_ON)
    same_run = row_codes(episodes, (*MATCHED_ON, *RUN_FIELDS))
    loose, loose_count = _lookup(same_task[references], same_task[conflicts])
    exact, exact_count = _lookup(same_run[references], same_run[conflicts])
    position = np.where(exact_count > 0, exact, loose)
    # With no reference of the same run the first of the others stands, so that the differing field can be named.
    matched = np.where(exact_count > 0, exact_count, np.minimum(loose_count, 1))
    if not len(references):
        return np.full(len(conflicts), -1, np.int64), matched
    return np.where(matched > 0, references[position], -1).astype(np.int64), matched


def _refuse_disagreements(episodes: pa.Table, conflicts: IntArray, partner: IntArray, reasons: ObjectArray) -> None:
    """Write the first disagreeing field into ``reasons``, shape (C,), wherever nothing stands there yet."""
    for name in MUST_AGREE:
        codes = row_codes(episodes, (name,))
        reasons[(reasons == "") & (codes[conflicts] != codes[partner])] = name
    foreign = np.asarray(pc.not_equal(episodes["protocol_version"], PROTOCOL_VERSION).to_numpy(), np.bool_)
    reasons[(reasons == "") & foreign[conflicts]] = "protocol_version"
    prompts = row_codes(episodes, ("prompt_text",))
    reasons[(reasons == "") & (prompts[conflicts] == prompts[partner])] = SAME_PROMPT
    failed = np.asarray(pc.equal(episodes["end"], "policy_error").to_numpy(), np.bool_)
    reasons[(reasons == "") & (failed[conflicts] | failed[partner])] = "end"


def _stable_order(episodes: pa.Table, conflicts: IntArray) -> IntArray:
    """Positions in ``conflicts`` sorted by who did what where."""
    run = ("policy_name", "policy_revision", "policy_settings")
    keys = (*run, "prompt", "instance_id", "init_state", "seed", "visual_probe")
    chosen = episodes.take(pa.array(conflicts)).select([*keys, "rollout_id"])
    by = [(name, "ascending") for name in chosen.column_names]
    return np.asarray(pc.sort_indices(chosen, sort_keys=by).to_numpy(), np.int64)


def _refusals(
    episodes: pa.Table, conflicts: IntArray, partner: IntArray, reasons: ObjectArray, arm: Arm
) -> tuple[RefusedPair, ...]:
    refusals = []
    for position in np.flatnonzero(reasons != ""):
        field, row = str(reasons[position]), int(conflicts[position])
        rollout_id = episodes["rollout_id"][row].as_py()
        if field in MUST_AGREE or field == "end":
            reference = str(episodes[field][int(partner[position])].as_py())
            conflict = str(episodes[field][row].as_py())
            if field == "protocol_version" and reference == conflict:
                reference = f"{reference}, but measures are of protocol {PROTOCOL_VERSION}"
        elif field == SAME_PROMPT:
            reference, conflict = "", repr(episodes["prompt_text"][row].as_py())
        else:
            reference, key = "", "instance_id" if field == DUPLICATE[arm] else "pair_id"
            conflict = f"{episodes[key][row].as_py()} in init state {episodes['init_state'][row].as_py()}"
        refusals.append(
            RefusedPair(rollout_id=rollout_id, field=field, reference=reference, conflict=conflict, arm=arm.value)
        )
    return tuple(sorted(refusals, key=lambda refusal: refusal.rollout_id))
