"""The pair that the page shows in full: chosen by a stated rule, its motion taken from the recorded rollouts."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ...toolkit.arrays import FloatArray
from ...toolkit.errors import DatasetError, NotFoundError
from ..measures import PROCESS_NAMES
from ..measures.process import arm_action_norm
from ..recordings.rollout_set import RolloutSet
from ..recordings.video_files import video_path

VIDEO_CAMERA = "agentview"

RULE = "the qualified failure with the highest product of TAR and Early20"
FALLBACK_RULE = "the pair with the highest product of TAR and Early20, as there is no qualified failure"
LAST_RULE = "the first pair, as no pair has a defined TAR"


@dataclass(frozen=True, slots=True, kw_only=True)
class ChosenPair:
    """A row of the table of pairs, and the rule that chose it.

    Attributes:
        rule: The rule.
        policy: The policy.
        prompt: Prompt condition.
        suite: Suite of the base task.
        init_state: Initial state.
        family: Conflict family.
        level: Structural level.
        base_instruction: The reference rollout's instruction.
        instruction: The conflict rollout's.
        reference_rollout: Id of the reference rollout.
        conflict_rollout: Id of the conflict rollout.
        reference_success: Whether the reference rollout reaches the reference goal.
        conflict_success: Whether the conflict rollout does.
        reference_steps: Executed actions of the reference rollout.
        conflict_steps: Executed actions of the conflict rollout.
        measures: The process measures by name, as fractions; NaN where undefined.
    """

    rule: str
    policy: str
    prompt: str
    suite: str
    init_state: int
    family: str
    level: str
    base_instruction: str
    instruction: str
    reference_rollout: str
    conflict_rollout: str
    reference_success: bool
    conflict_success: bool
    reference_steps: int
    conflict_steps: int
    measures: Mapping[str, float]

    @classmethod
    def of(cls, pairs: pa.Table, row: int, rule: str) -> ChosenPair:
        """The pair in one row of the table of pairs."""
        names = [field.name for field in fields(cls) if field.name not in ("rule", "measures")]
        (values,) = pairs.slice(row, 1).to_pylist()
        measures = {name: values[name] for name in PROCESS_NAMES}
        return cls(rule=rule, measures=measures, **{name: values[name] for name in names})


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PairMotion:
    """Motion of a pair's two rollouts.

    Attributes:
        reference_eef_m: Gripper site before each action and after the last, shape (H+ + 1, 3).
        conflict_eef_m: The same of the conflict rollout, shape (H- + 1, 3).
        reference_norm: Norm of each of the arm's actions, shape (H+,).
        conflict_norm: The same of the conflict rollout, shape (H-,).
        targets: Names of the reference goal's targets.
        target_m: Where they are at the start, shape (K, 3).
    """

    reference_eef_m: FloatArray
    conflict_eef_m: FloatArray
    reference_norm: FloatArray
    conflict_norm: FloatArray
    targets: tuple[str, ...]
    target_m: FloatArray


def choose_pair(pairs: pa.Table) -> ChosenPair | None:
    """The clearest failed persistence among the pairs; None without pairs.

    Ties go to the first in the table's own order, so the choice is the same for the same scores.
    """
    if not pairs.num_rows:
        return None
    strength = pairs["TAR"].to_numpy() * pairs["Early20_TS"].to_numpy()
    failed = pc.and_(pairs["reference_success"], pc.invert(pairs["conflict_success"])).to_numpy()
    for among, rule in ((failed, RULE), (np.ones(len(failed), np.bool_), FALLBACK_RULE)):
        candidates = np.where(among & np.isfinite(strength), strength, -1.0)
        if candidates.max() >= 0:
            return ChosenPair.of(pairs, int(candidates.argmax()), rule)
    return ChosenPair.of(pairs, 0, LAST_RULE)


def pair_motion(pair: ChosenPair, parts: Iterable[RolloutSet]) -> PairMotion:
    """Read the motion of a pair.

    Args:
        pair: Which pair.
        parts: Rollout sets; both rollouts of the pair are in one of them.

    Raises:
        DatasetError: If no part holds the pair, so scores and rollouts do not belong together.
    """
    ids = [pair.reference_rollout, pair.conflict_rollout]
    for part in parts:
        if set(ids) <= set(part.episodes["rollout_id"].to_pylist()):
            return _motion(part, *(int(row) for row in part.rows_of(ids)))
    raise DatasetError(f"rollouts {ids[0]} and {ids[1]} are not among these rollouts: give those that were scored")


def _motion(part: RolloutSet, reference: int, conflict: int) -> PairMotion:
    eef, norm = [], []
    for row in (reference, conflict):
        before = part.rollout_feature("observation.eef_pos_m", row).astype(np.float64)
        eef.append(np.concatenate([before, part.final_eef_pos_m[row : row + 1]]))
        norm.append(arm_action_norm(part.rollout_feature("action", row)))
    targets = tuple(part.episodes["targets"][reference].as_py())
    first = part.rollout_feature("observation.target_pos_m", reference)[0].astype(np.float64).reshape(-1, 3)
    return PairMotion(
        reference_eef_m=eef[0],
        conflict_eef_m=eef[1],
        reference_norm=norm[0],
        conflict_norm=norm[1],
        targets=targets,
        target_m=first[: len(targets)],
    )


def pair_videos(chosen: ChosenPair, folder: Path) -> tuple[tuple[str, str], ...]:
    """Caption and content, as a data URI, of the videos of both rollouts of the pair.

    Raises:
        NotFoundError: One of them is not in the folder; the message gives the command that makes it.
    """
    found = []
    for arm, rollout_id in (("reference", chosen.reference_rollout), ("conflict", chosen.conflict_rollout)):
        file = video_path(folder, rollout_id, VIDEO_CAMERA)
        if not file.is_file():
            how = f"conflictvla render ROLLOUTS --rollout {rollout_id} --out {folder}"
            raise NotFoundError(f"{folder}: no video of the pair shown; make it with  {how}")
        content = base64.b64encode(file.read_bytes()).decode("ascii")
        found.append((f"{arm} rollout", f"data:video/mp4;base64,{content}"))
    return tuple(found)
