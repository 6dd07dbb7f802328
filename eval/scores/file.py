"""The scores file: scores as JSON, and back."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pyarrow as pa

from ...toolkit.errors import DatasetError
from ...toolkit.json_values import null_for_nan
from ...toolkit.records import Arm
from ..analyses.tables.measures import GROUPINGS, undefined_reason
from ..measures import MEASURE_NAMES
from ..recordings.defects import Defect
from ..recordings.deviations import Deviation
from ..scoring.pair_table import PAIR_COLUMNS, no_pairs
from ..scoring.pairs import RefusedPair
from ..scoring.provenance import Provenance, Recorded
from ..scoring.rollout_table import REFERENCE_COLUMNS, TRAJECTORY_COLUMNS
from ..scoring.scored_pairs import ScoredPairs
from ..scoring.supplementary import SUPPLEMENTARY_COLUMNS
from ..statistics.intervals import CONFIDENCE, INTERVAL_METHOD, Interval
from ..statistics.resampling import RESAMPLES, SEED

SCORES_VERSION = "2.0"
"""Layout of the scores file."""


def scores_json(scored: ScoredPairs, tables: Mapping[str, pa.Table]) -> str:
    """The file's text: the same rollouts give the same bytes. NaN is null, with the reason beside it.

    It has nothing about controls where none were rolled out.

    Args:
        scored: The measured pairs.
        tables: Of each analysis, by its name. Measures by group stand under ``tables``, others beside it.
    """
    rows = {name: _rows(table) for name, table in tables.items()}
    content: dict[str, Any] = {
        "scores_version": SCORES_VERSION,
        "provenance": asdict(scored.provenance),
        "statistics": {
            "confidence": CONFIDENCE,
            "interval": INTERVAL_METHOD,
            "resamples": RESAMPLES,
            "seed": SEED,
        },
        "pairs_scored": scored.pairs.num_rows,
        "pairs_refused": len(scored.refusals),
        "refusals_by_field": scored.refusals_by_field(),
        "refusals": list(map(_refusal_fields, scored.refusals)),
        "left_out_by_field": scored.left_out_by_field(),
        "left_out": [asdict(defect) for defect in scored.left_out],
        "deviations": [asdict(deviation) for deviation in scored.deviations],
        "tables": {name: rows.pop(name) for name in GROUPINGS},
        "repeats": scored.repeats.to_pydict(),
        "references": scored.references.to_pydict(),
        "pairs": scored.pairs.to_pydict(),
        "probed": scored.probed.to_pydict(),
    }
    if scored.trajectories is not None:
        content["trajectories"] = scored.trajectories.to_pydict()
    if scored.provenance.controls:
        content["controls"] = scored.controls.to_pydict()
        content["refused_controls"] = list(map(_refusal_fields, scored.refused_controls))
    else:
        del content["provenance"]["controls"]
    content |= rows
    return json.dumps(null_for_nan(content), sort_keys=True, indent=1, allow_nan=False, ensure_ascii=False) + "\n"


def read_scored_pairs(path: Path | str) -> ScoredPairs:
    """The measured pairs of a scores file.

    Raises:
        DatasetError: If it is not a scores file of this layout.
    """
    path = Path(path)
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        found = content["scores_version"]
        if found != SCORES_VERSION:
            raise DatasetError(f"{path}: scores_version is {found}, this version reads {SCORES_VERSION}: score again")
        return _scored_pairs(content)
    except (OSError, ValueError, LookupError, TypeError, AttributeError, RecursionError, pa.ArrowException) as error:
        if isinstance(error, DatasetError):
            raise
        raise DatasetError(f"{path}: not a scores file ({error}): write it with `conflictvla score`") from error


def _scored_pairs(content: dict[str, Any]) -> ScoredPairs:
    measured = PAIR_COLUMNS | (SUPPLEMENTARY_COLUMNS if "supplementary" in content else {})
    provenance = content["provenance"]
    recorded = tuple(
        Recorded(field=entry["field"], values=tuple(entry["values"])) for entry in provenance.pop("recorded")
    )
    trajectories = content.get("trajectories")
    return ScoredPairs(
        pairs=_table(content["pairs"], measured),
        probed=_table(content["probed"], measured),
        refusals=tuple(RefusedPair(**refusal) for refusal in content["refusals"]),
        controls=_table(content["controls"], PAIR_COLUMNS) if "controls" in content else no_pairs(),
        refused_controls=tuple(
            RefusedPair(**refusal, arm=Arm.CONTROL.value) for refusal in content.get("refused_controls", ())
        ),
        provenance=Provenance(**provenance, recorded=recorded),
        repeats=_table(content["repeats"], measured),
        references=_table(content["references"], REFERENCE_COLUMNS),
        trajectories=None if trajectories is None else _table(trajectories, TRAJECTORY_COLUMNS),
        left_out=tuple(Defect(**defect) for defect in content["left_out"]),
        deviations=tuple(Deviation(**deviation) for deviation in content["deviations"]),
    )


def _table(columns: dict[str, list[Any]], kinds: dict[str, pa.DataType]) -> pa.Table:
    arrays = []
    for name, kind in kinds.items():
        nan_for_null = pa.types.is_floating(kind)
        arrays.append(pa.array([math.nan if nan_for_null and v is None else v for v in columns[name]], kind))
    return pa.table(arrays, schema=pa.schema(list(kinds.items())))


def _refusal_fields(refusal: RefusedPair) -> dict[str, str]:
    """A refusal without its arm: each arm has a list of its own."""
    fields: dict[str, str] = asdict(refusal)
    del fields["arm"]
    return fields


def _rows(table: pa.Table) -> list[dict[str, Any]]:
    """A table's rows; where they hold all measures, with the reason for each value or interval that is NaN."""
    rows: list[dict[str, Any]] = table.to_pylist()
    if not {f"{name}_lo" for name in MEASURE_NAMES} <= set(table.column_names):
        return rows
    return [row | {"undefined": _reasons(row)} for row in rows]


def _reasons(row: dict[str, Any]) -> dict[str, str]:
    reasons = {}
    for name in MEASURE_NAMES:
        interval = Interval(value=row[name], low=row[f"{name}_lo"], high=row[f"{name}_hi"])
        reason = undefined_reason(name, interval)
        if reason is not None:
            reasons[name] = reason
    return reasons
