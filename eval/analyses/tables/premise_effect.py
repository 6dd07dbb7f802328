"""The premise effect: what a conflict changes beyond its words, against the same case with its conflict repaired.

A control says nearly the same in the same form with valid premises. What odd or long words do to a policy is in both
pairs of a case and cancels in their difference; what remains is the policy's reaction to the premise.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ....builders.rollouts.episode_record import PROBES
from ....toolkit.arrays import FloatArray
from ...measures import MEASURES, PROCESS_NAMES, Measure
from ...statistics.intervals import cluster_intervals
from ...statistics.ratio import mean_of_defined
from ...statistics.resampling import generator
from ..analysis import Analysis
from ..columns import (
    column,
    count_fields,
    difference_text,
    interval_fields,
    interval_values,
    measure_symbol,
    number_fields,
    percents,
    plain,
    text_fields,
)
from ..groups import base_task_clusters, groups_of

CASE = ("policy", "prompt", *PROBES, "suite", "base_task", "case_id", "init_state")
"""What a case's conflict pair and its control pair share, beside the seed."""

GROUPED_BY = (None, "family", "level")

COMPARED = tuple(measure for measure in MEASURES if measure.name in ("RGSR", *PROCESS_NAMES))
"""Measures that a conflict or control rollout has a value of in its own pair."""

SIDES = ("conflict", "control", "effect")

SCHEMA = pa.schema(
    [
        *text_fields("policy", "prompt", "among", "measure"),
        *number_fields("conflict", "control"),
        *interval_fields("effect"),
        *count_fields("n", "cases"),
    ]
)


def premise_effects(pairs: pa.Table, controls: pa.Table) -> pa.Table:
    """The effect on each measure, for each case and initial state with a conflict pair and a control pair.

    The effect is control - conflict for RGSR, TAR, TS and Early20, which a reaction to the conflict lowers, and
    conflict - control for AMS, which it raises; so a positive effect is a reaction to the premise. Only pairs of the
    same seed are subtracted, and seeds are then averaged.

    Args:
        pairs: Conflict pairs, with ``pair_table.PAIR_COLUMNS``.
        controls: Control pairs, with the same columns.

    Returns:
        Rows with ``CASE``, ``family``, ``level``, and for each measure its ``<name>_conflict``, ``<name>_control`` and
        ``<name>_effect``, in [0, 1] and [-1, 1]; NaN where the measure is undefined in one of the pairs of every seed.
    """
    outcome = ["conflict_success", *PROCESS_NAMES]
    keys = [*CASE, "seed"]
    controlled = controls.select([*keys, *outcome])
    both = pairs.select([*keys, "family", "level", *outcome]).join(
        controlled, keys=keys, right_suffix="_control", join_type="inner"
    )
    both = both.sort_by([(key, "ascending") for key in keys])
    values = {}
    for measure in COMPARED:
        name = "conflict_success" if measure.name == "RGSR" else measure.name
        conflict, control = (both[side].to_numpy().astype(np.float64) for side in (name, f"{name}_control"))
        effect = conflict - control if measure.higher_is_better else control - conflict
        for side, each in zip(SIDES, (conflict, control, effect), strict=True):
            values[f"{measure.name}_{side}"] = pa.array(each, mask=~np.isfinite(effect))
    identity = [*CASE, "family", "level"]
    table = pa.table({**{name: both[name] for name in identity}, **values})
    # One thread: sums in a fixed order, so that the same pairs give the same bits.
    means = table.group_by(identity, use_threads=False).aggregate([(name, "mean") for name in values])
    defined = {name: pc.fill_null(means[f"{name}_mean"], float("nan")) for name in values}
    return pa.table({**{name: means[name] for name in identity}, **defined})


def premise_effect_table(pairs: pa.Table, controls: pa.Table) -> pa.Table:
    """Mean effect on each measure, over all cases and by conflict family and level.

    Args:
        pairs: As for ``premise_effects``.
        controls: As for ``premise_effects``.

    Returns:
        A row for each policy, prompt condition, group (``among``: ``all pairs``, a family or a level) and measure: the
        means of the conflict pairs and of the control pairs, the mean effect with its interval over base tasks, and
        how many cases and initial states (``n``) of how many ``cases`` are compared.
    """
    effects = premise_effects(pairs, controls)
    clusters = base_task_clusters(effects)
    rows: list[dict[str, Any]] = []
    for grouped_by in GROUPED_BY:
        for group in groups_of(effects, grouped_by, primary_only=False):
            of_group = {"policy": group.policy, "prompt": group.prompt, "among": group.name or "all pairs"}
            chosen, of_task = effects.take(pa.array(group.rows)), clusters[group.rows]
            changes = [mean_of_defined(_values(chosen, measure, "effect"), -1.0, 1.0) for measure in COMPARED]
            intervals = cluster_intervals(changes, of_task, generator())
            for measure, interval in zip(COMPARED, intervals, strict=True):
                rows.append(of_group | dict(_means(chosen, measure)) | interval_values("effect", interval))
    rows.sort(key=lambda row: (row["policy"], row["prompt"]))  # stable: groups keep their order within
    return pa.Table.from_pylist(rows, schema=SCHEMA)


def _means(effects: pa.Table, measure: Measure) -> Iterator[tuple[str, str | float | int]]:
    """A row's columns without its interval."""
    yield "measure", measure.name
    for side in ("conflict", "control"):
        yield side, mean_of_defined(_values(effects, measure, side)).value()
    defined = np.isfinite(_values(effects, measure, "effect"))
    yield "n", int(defined.sum())
    yield "cases", len(set(effects["case_id"].filter(pa.array(defined)).to_pylist()))


def _values(effects: pa.Table, measure: Measure, side: str) -> FloatArray:
    return np.asarray(effects[f"{measure.name}_{side}"].to_numpy(), np.float64)


ANALYSIS = Analysis(
    name="premise_effect",
    title="Premise effect: conflicts against the same instructions with the conflict repaired",
    note="Percent, on the same cases, initial states and seeds, with 95% intervals over base tasks; effect: control − "
    "conflict, for AMS conflict − control. A policy that reacts to premises has an effect; one that reacts to wording "
    "has none.",
    compute=lambda scored: premise_effect_table(scored.pairs, scored.controls),
    labels=(plain("policy"), plain("prompt"), plain("among"), column("measure", measure_symbol)),
    numbers=(
        percents("conflict"),
        percents("control"),
        column("effect", lambda row: difference_text(row, name="effect")),
        plain("n"),
        plain("cases"),
    ),
    controls=True,
)
