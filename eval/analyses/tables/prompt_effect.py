"""Does a prompt, such as the premise check P1, change anything? Every condition is compared with P0."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from ....toolkit.records import Prompt
from ...measures import MEASURES, PROCESS_MEASURES, PROCESS_NAMES, Measure
from ..analysis import Analysis, Row
from ..columns import (
    arrow,
    column,
    count_fields,
    difference_text,
    interval_fields,
    measure_symbol,
    number_fields,
    p_values,
    percents,
    plain,
    text_fields,
)
from ..differences import measure_changes, table_with_false_discovery
from ..groups import ordered
from ..marks import numbers_by

BASE = Prompt.P0.value
"""The instruction alone, with which every other prompt condition is compared."""

SCHEMA = pa.schema(
    [
        *text_fields("policy", "prompt", "measure"),
        *number_fields("P0", "under"),
        *interval_fields("difference"),
        *number_fields("p", "q"),
        *count_fields("n"),
    ]
)

ALL_PROCESS = "all process measures"
"""In place of a measure: all four process measures at once."""

MOVES_SCHEMA = pa.schema([*text_fields("prompt", "measure"), *count_fields("moved", "clearly", "against", "policies")])

LEAST_MOVE = 1e-9
"""A smaller difference is a rounding error of its sums, and no move."""


def prompt_effect(pairs: pa.Table) -> pa.Table:
    """What each prompt condition changes against P0, over cases and initial states rolled out under both.

    Returns:
        A row for each policy, prompt condition and measure: the means under ``P0`` and ``under`` the condition, their
        difference with its interval over base tasks, and the p-value of a paired sign-flip permutation test, with ``q``
        adjusted over the condition's rows; then the selectivity. ``n`` counts what is compared: for a process measure
        the pairs where it is defined under both, for FR those whose reference rollouts succeed under both. A policy
        without P0, or with nothing else, has no row.
    """
    others = ordered(set(pairs["prompt"].to_pylist()) - {BASE}, "prompt")
    tables = [table_with_false_discovery(_rows(pairs, prompt), SCHEMA) for prompt in others]
    rows = [row for table in tables for row in table.to_pylist()]
    return pa.Table.from_pylist(sorted(rows, key=lambda row: str(row["policy"])), schema=SCHEMA)


def _rows(pairs: pa.Table, prompt: str) -> list[dict[str, Any]]:
    """What a prompt condition changes of every policy that has pairs under it and under P0."""
    rows: list[dict[str, Any]] = []
    for policy in sorted(set(pairs["policy"].to_pylist())):
        both = _under_both(pairs.filter(pc.equal(pairs["policy"], policy)), prompt)
        if both.num_rows:
            names = {"policy": policy, "prompt": prompt}
            rows += [names | change.columns("P0", "under") for change in measure_changes(both, "_under")]
    return rows


def prompt_moves(effect: pa.Table) -> pa.Table:
    """How many policies a prompt condition moves in each measure, as the paper counts for its Figure 4.

    Args:
        effect: From ``prompt_effect``.

    Returns:
        A row for each prompt condition and measure. ``moved``: policies whose mean moves where the measure's arrow
        points, of them ``clearly``: those whose interval does not reach zero; ``against``: policies that move the other
        way; ``policies``: all that were compared. The last row of each condition counts the policies that move in all
        process measures at once, or against the arrow in all.
    """
    found: list[dict[str, Any]] = []
    rows = effect.to_pylist()
    for (prompt,), numbers in numbers_by(rows, ["prompt"]).items():
        of_prompt = [rows[number] for number in numbers]
        counted = [_count(measure, of_prompt) for measure in MEASURES]
        found += [{"prompt": prompt, **count} for count in counted if count["policies"]]
        found.append({"prompt": prompt, **_count_all_process(of_prompt)})
    return pa.Table.from_pylist(found, schema=MOVES_SCHEMA)


def favourable(row: Row, measure: Measure, end: str = "difference") -> float:
    """A row's change, positive where it goes where the measure's arrow points; ``end`` may name a bound."""
    change = float(row[end])
    if abs(change) < LEAST_MOVE:
        return 0.0
    return change if measure.higher_is_better else -change


def _count(measure: Measure, rows: list[dict[str, Any]]) -> dict[str, Any]:
    own = [row for row in rows if row["measure"] == measure.name and row["n"]]
    nearer = "difference_lo" if measure.higher_is_better else "difference_hi"
    return {
        "measure": measure.name,
        "moved": sum(favourable(row, measure) > 0 for row in own),
        "clearly": sum(favourable(row, measure, nearer) > 0 for row in own),
        "against": sum(favourable(row, measure) < 0 for row in own),
        "policies": len(own),
    }


def _count_all_process(rows: list[dict[str, Any]]) -> dict[str, Any]:
    counts = {"moved": 0, "clearly": 0, "against": 0, "policies": 0}
    for numbers in numbers_by(rows, ["policy"]).values():
        own = [rows[number] for number in numbers]
        each = [_count(measure, own) for measure in PROCESS_MEASURES]
        for name in counts:
            counts[name] += all(count[name] for count in each)
    return {"measure": ALL_PROCESS, **counts}


def _under_both(pairs: pa.Table, prompt: str) -> pa.Table:
    """One row for each case, initial state and seed that has a pair under P0 and one under the prompt (``*_under``)."""
    keys = ["suite", "base_task", "case_id", "init_state", "seed"]
    measured = [*keys, "reference_success", "conflict_success", *PROCESS_NAMES]
    base, other = (pairs.filter(pc.equal(pairs["prompt"], name)).select(measured) for name in (BASE, prompt))
    joined = base.join(other, keys=keys, right_suffix="_under", join_type="inner")
    return joined.sort_by([(key, "ascending") for key in keys])


def _measure_and_arrow(row: Row) -> str:
    arrows = {measure.name: f" {arrow(measure)}" for measure in MEASURES}
    return measure_symbol(row) + arrows.get(row["measure"], "")


ANALYSIS = Analysis(
    name="prompt_effect",
    title="Other prompts, such as the premise check P1, against the instruction alone (P0)",
    note="Percent, with 95% intervals over base tasks; p: paired sign-flip test; q: Benjamini-Hochberg, each "
    "prompt condition its own; FR on pairs that qualify under both.",
    compute=lambda scored: prompt_effect(scored.pairs),
    labels=(plain("policy"), plain("prompt"), column("measure", measure_symbol)),
    numbers=(
        percents("P0"),
        percents("under"),
        column("under − P0", difference_text),
        p_values("p"),
        p_values("q"),
        plain("n"),
    ),
)

MOVES = Analysis(
    name="prompt_moves",
    title="How many policies a prompt moves",
    note="Counts of policies. Moved: where the arrow points, clearly where the 95% interval does not reach zero; "
    "against: the other way.",
    compute=lambda _scored, effect: prompt_moves(effect),
    labels=(plain("prompt"), column("measure", _measure_and_arrow)),
    numbers=(plain("moved"), plain("clearly"), plain("against"), plain("policies")),
    uses=("prompt_effect",),
)
