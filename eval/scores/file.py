"""The scores file: scores as JSON, and back."""

from __future__ import annotations

import json
import math
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pyarrow as pa

from ...toolkit.errors import DatasetError
from ...toolkit.json_values import null_for_nan
from ..analyses.groups import GROUPINGS, undefined_reason
from ..analyses.supplementary import SUPPLEMENTARY_COLUMNS
from ..measures import MEASURE_NAMES
from ..recordings.defects import Defect
from ..scoring.pair_table import PAIR_COLUMNS
from ..scoring.pairs import Refusal
from ..scoring.provenance import Provenance, Recorded
from ..scoring.rollout_table import TRAJECTORY_COLUMNS
from ..statistics.intervals import CONFIDENCE, INTERVAL_METHOD, Interval
from ..statistics.resampling import RESAMPLES, SEED
from .scores import Scores

SCORES_VERSION = "1.3"
"""Layout of the scores file."""


def scores_json(scores: Scores) -> str:
    """The file's text: the same rollouts give the same bytes. NaN is null, with the reason beside it."""
    content: dict[str, Any] = {
        "scores_version": SCORES_VERSION,
        "provenance": asdict(scores.provenance),
        "statistics": {
            "confidence": CONFIDENCE,
            "interval": INTERVAL_METHOD,
            "resamples": RESAMPLES,
            "seed": SEED,
        },
        "pairs_scored": scores.pairs.num_rows,
        "pairs_refused": len(scores.refusals),
        "refusals_by_field": scores.refusals_by_field(),
        "refusals": [asdict(refusal) for refusal in scores.refusals],
        "left_out_by_field": scores.left_out_by_field(),
        "left_out": [asdict(defect) for defect in scores.left_out],
        "undefined": scores.undefined().to_pylist(),
        "tables": {by: [_with_reasons(row) for row in scores.table(by).to_pylist()] for by in GROUPINGS},
        "outcome_tests": scores.outcome_tests().to_pylist(),
        "prompt_effect": scores.prompt_effect().to_pylist(),
        "probe_effect": scores.probe_effect().to_pylist(),
        "abstention": scores.abstention().to_pylist(),
        "costs": scores.costs().to_pylist(),
        "noise_floor": [_with_reasons(row) for row in scores.noise_floor().to_pylist()],
        "repeats": scores.repeats.to_pydict(),
        "pairs": scores.pairs.to_pydict(),
        "probed": scores.probed.to_pydict(),
    }
    if scores.trajectories is not None:
        content |= {
            "supplementary": scores.supplementary().to_pylist(),
            "behaviour": scores.behaviour().to_pylist(),
            "behaviour_by_task": scores.behaviour_by_task().to_pylist(),
            "behaviour_correlation": scores.behaviour_correlation().to_pylist(),
            "trajectories": scores.trajectories.to_pydict(),
        }
    return json.dumps(null_for_nan(content), sort_keys=True, indent=1, allow_nan=False, ensure_ascii=False) + "\n"


def read_scores(path: Path | str) -> Scores:
    """Read a scores file back; its tables are computed again from its pairs.

    Raises:
        DatasetError: If it is not a scores file of this layout.
    """
    path = Path(path)
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        found = content["scores_version"]
        if found != SCORES_VERSION:
            raise DatasetError(f"{path}: scores_version is {found}, this version reads {SCORES_VERSION}: score again")
        measured = PAIR_COLUMNS | (SUPPLEMENTARY_COLUMNS if "supplementary" in content else {})
        provenance = content["provenance"]
        recorded = tuple(
            Recorded(field=entry["field"], values=tuple(entry["values"])) for entry in provenance.pop("recorded")
        )
        trajectories = content.get("trajectories")
        return Scores(
            pairs=_table(content["pairs"], measured),
            probed=_table(content["probed"], measured),
            refusals=tuple(Refusal(**refusal) for refusal in content["refusals"]),
            provenance=Provenance(**provenance, recorded=recorded),
            repeats=_table(content["repeats"], measured),
            trajectories=None if trajectories is None else _table(trajectories, TRAJECTORY_COLUMNS),
            left_out=tuple(Defect(**defect) for defect in content["left_out"]),
        )
    except (OSError, ValueError, LookupError, TypeError, AttributeError, RecursionError, pa.ArrowException) as error:
        if isinstance(error, DatasetError):
            raise
        raise DatasetError(f"{path}: not a scores file ({error}): write it with `conflictvla score`") from error


def _table(columns: dict[str, list[Any]], kinds: dict[str, pa.DataType]) -> pa.Table:
    arrays = []
    for name, kind in kinds.items():
        nan_for_null = pa.types.is_floating(kind)
        arrays.append(pa.array([math.nan if nan_for_null and v is None else v for v in columns[name]], kind))
    return pa.table(arrays, schema=pa.schema(list(kinds.items())))


def _with_reasons(row: dict[str, Any]) -> dict[str, Any]:
    """A table row with the reason for each value or interval in it that is NaN."""
    reasons = {}
    for name in MEASURE_NAMES:
        interval = Interval(value=row[name], low=row[f"{name}_lo"], high=row[f"{name}_hi"])
        reason = undefined_reason(name, interval)
        if reason is not None:
            reasons[name] = reason
    return row | {"undefined": reasons}
