"""Does the conflict change the outcome?"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from ...statistics.hypothesis_tests import mcnemar, sign_flip_p
from ...statistics.resampling import generator
from ..analysis import Analysis
from ..columns import count_fields, number_fields, p_values, plain, text_fields
from ..differences import table_with_false_discovery
from ..groups import base_task_clusters, groups_of, success

SCHEMA = pa.schema(
    [
        *text_fields("policy", "prompt"),
        *count_fields("reference_only", "conflict_only"),
        *number_fields("mcnemar_p", "p", "q"),
        *count_fields("n"),
    ]
)


def outcome_tests(pairs: pa.Table) -> pa.Table:
    """Does the conflict change the outcome? Tests of y+ against y-, a row for each policy and prompt condition.

    Returns:
        ``reference_only`` and ``conflict_only`` count discordant pairs, and ``mcnemar_p`` is the exact McNemar test,
        which takes pairs as independent. ``p`` is the sign-flip test over base tasks, which holds its size although
        pairs share reference rollouts; NaN with fewer than two base tasks. ``q`` is ``p`` adjusted over the table.
    """
    clusters = base_task_clusters(pairs)
    rows = []
    for group in groups_of(pairs, None, primary_only=False):
        chosen = pairs.take(pa.array(group.rows))
        reference, conflict = success(chosen, "reference"), success(chosen, "conflict")
        test = mcnemar(reference, conflict)
        drop = reference.astype(np.float64) - conflict
        rows.append(
            {
                "policy": group.policy,
                "prompt": group.prompt,
                "reference_only": test.reference_only,
                "conflict_only": test.conflict_only,
                "mcnemar_p": test.p,
                "p": sign_flip_p(drop, clusters[group.rows], generator()),
                "n": chosen.num_rows,
            }
        )
    return table_with_false_discovery(rows, SCHEMA)


ANALYSIS = Analysis(
    name="outcome_tests",
    title="Outcome with valid against invalid premises",
    note="p: sign-flip test over base tasks; q: Benjamini-Hochberg over the table; McNemar's test takes pairs as "
    "independent.",
    compute=lambda scored: outcome_tests(scored.pairs),
    labels=(plain("policy"), plain("prompt")),
    numbers=(
        plain("reference_only"),
        plain("conflict_only"),
        p_values("p"),
        p_values("q"),
        p_values("mcnemar_p"),
        plain("n"),
    ),
)
