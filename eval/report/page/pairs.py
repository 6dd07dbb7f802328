"""The pairs on the page: one of them in full, and all of them in a list that can be searched."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from markupsafe import Markup

from ...analyses.columns import percent
from ...measures import MEASURES
from ...recordings.reading import read_rollouts_by_policy
from ...recordings.rollout_set import RolloutSet
from ...scores.scores import Scores
from ..chosen_pair import ChosenPair, choose_pair, pair_motion, pair_videos
from ..figures.motion_plots import action_norms, gripper_paths

PAIR_FIELDS = (
    "policy",
    "prompt",
    "family",
    "level",
    "suite",
    "base_task",
    "init_state",
    "instruction",
    "base_instruction",
    "reference_success",
    "conflict_success",
    "TAR",
    "TS",
    "Early20_TS",
    "AMS",
)
"""Columns of the table of pairs that the searchable list needs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PairView:
    """The pair shown in full.

    Attributes:
        chosen: The pair.
        paths: Plot of the grippers' paths.
        norms: Plot of the norms of the arm's actions.
        values: Symbol and value of each process measure.
        videos: Caption and content of each video.
    """

    chosen: ChosenPair
    paths: Markup
    norms: Markup
    values: tuple[tuple[str, str], ...]
    videos: tuple[tuple[str, str], ...]


def pair_view(scores: Scores, rollouts: RolloutSet | Path | str, videos: Path | None) -> PairView | None:
    """The pair that the page shows in full; None without pairs.

    Args:
        scores: With the pair.
        rollouts: With its rollouts, in memory or in a folder.
        videos: Folder with their videos.

    Raises:
        DatasetError: The rollouts are damaged, or not those that were scored.
        NotFoundError: The folder lacks a video of the pair.
    """
    chosen = choose_pair(scores.pairs)
    if chosen is None:
        return None
    parts = (
        [rollouts]
        if isinstance(rollouts, RolloutSet)
        else read_rollouts_by_policy(rollouts, partial=bool(scores.left_out))
    )
    motion = pair_motion(chosen, parts)
    values = tuple((measure.symbol, percent(chosen.measures[measure.name])) for measure in MEASURES if measure.process)
    return PairView(
        chosen=chosen,
        paths=gripper_paths(motion),
        norms=action_norms(motion),
        values=values,
        videos=() if videos is None else pair_videos(chosen, videos),
    )


def pair_list(scores: Scores) -> Markup:
    """All pairs for the page's script, column by column.

    Text stands as numbers into a list of distinct texts, measures in tenths of a percent.
    """
    columns: dict[str, Any] = {}
    for name in PAIR_FIELDS:
        values = scores.pairs[name].to_pylist()
        if isinstance(values[0] if values else None, str):
            distinct = sorted(set(values))
            place = {text: index for index, text in enumerate(distinct)}
            columns[name] = {"texts": distinct, "rows": [place[value] for value in values]}
        elif isinstance(values[0] if values else None, float):
            columns[name] = {"rows": [None if math.isnan(value) else round(1000 * value) for value in values]}
        else:
            columns[name] = {"rows": [int(value) for value in values]}
    return script_json(columns)


def script_json(value: object) -> Markup:
    """JSON that may stand inside a script element: no character of it can end that element."""
    text = json.dumps(value, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    return Markup(text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026"))
