"""The response of a set of pairs: the mean over its capability-qualified pairs, and what controls say about it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from ...builders.rollouts.episode_record import PROBES
from ...toolkit.arrays import FloatArray
from ..measures.response import response
from ..statistics.intervals import Interval, cluster_intervals
from ..statistics.ratio import mean_of_defined
from ..statistics.resampling import generator
from .groups import base_task_clusters, success

SAME_CASE = ("policy", "prompt", *PROBES, "case_id", "init_state", "seed")
"""What the conflict rollout and the control rollout of a case have in common, in one run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ResponseSummary:
    """The response over some pairs.

    Attributes:
        response: Mean over the capability-qualified pairs, with its interval over base tasks; NaN where undefined.
        n: Pairs that it is over: the reference rollout succeeds, and TAR is defined.
        undefined: Pairs whose reference rollout succeeds and whose TAR is undefined; they are left out.
    """

    response: Interval
    n: int
    undefined: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ResponseEffect:
    """The premise effect on the response over some pairs.

    Attributes:
        effect: Mean of paired differences, with its interval over base tasks; NaN where undefined.
        controls: Conflict pairs whose control was run too.
        base_tasks: Base tasks of the differences: those with such a pair whose reference rollout succeeds.
    """

    effect: Interval
    controls: int
    base_tasks: int


def response_of(pairs: pa.Table) -> ResponseSummary:
    """The response over pairs with ``PAIR_COLUMNS``."""
    values = qualified_responses(pairs)
    (interval,) = cluster_intervals([mean_of_defined(values)], base_task_clusters(pairs), generator())
    n = int(np.isfinite(values).sum())
    return ResponseSummary(response=interval, n=n, undefined=int(success(pairs, "reference").sum()) - n)


def qualified_responses(pairs: pa.Table) -> FloatArray:
    """The response of each pair, shape (P,); NaN where the reference rollout fails, or TAR is undefined."""
    values = response(success(pairs, "conflict"), approach(pairs), pairs["Early20_TS"].to_numpy())
    return np.where(success(pairs, "reference"), values, np.nan)


def approach(pairs: pa.Table) -> FloatArray:
    """Which approach counts as persistence in each pair, shape (P,): TAR.

    The protocol has phase-TAR in L3 and L4, where an ideal robot does the valid step first and TAR counts that against
    it. Phases are not measured yet; once pairs have a column of them, it takes TAR's place here, and nowhere else.
    """
    return np.asarray(pairs["TAR"].to_numpy(), np.float64)


def premise_effect(conflicts: pa.Table, controls: pa.Table) -> ResponseEffect:
    """Response to the conflict minus response to its control, over the cases rolled out with both.

    The control gives the same instruction with its premise mended, so what odd or long words do is in both and cancels.

    Args:
        conflicts: Pairs of conflict rollouts.
        controls: Pairs of control rollouts of the same cases.
    """
    both = _with_response(conflicts).join(
        _with_response(controls).select([*SAME_CASE, "response"]),
        keys=list(SAME_CASE),
        right_suffix="_control",
        join_type="inner",
    )
    both = both.sort_by([(key, "ascending") for key in SAME_CASE])
    difference = both["response"].to_numpy() - both["response_control"].to_numpy()
    tasks = base_task_clusters(both)
    (interval,) = cluster_intervals([mean_of_defined(difference, least=-1.0)], tasks, generator())
    informed = int(np.unique(tasks[np.isfinite(difference)]).size)
    return ResponseEffect(effect=interval, controls=both.num_rows, base_tasks=informed)


def _with_response(pairs: pa.Table) -> pa.Table:
    columns = pairs.select([*SAME_CASE, "suite", "base_task"])
    return columns.append_column("response", pa.array(qualified_responses(pairs)))
