"""The page: what it says about the scores, put into the template."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

import pyarrow as pa
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from ...toolkit.atomic_files import write_atomic
from ..analyses.analysis import Cell
from ..analyses.columns import SYMBOLS, arrow, interval_cell, p_value, percent, probe_text, signed
from ..analyses.groups import base_task_clusters
from ..analyses.persistence import PERSISTENCE_LEVELS
from ..analyses.tables.measures import GROUPINGS, TITLES, group_column, shown_measures
from ..measures import MEASURES, Measure
from ..recordings.reading import read_rollouts_by_policy
from ..recordings.rollout_set import RolloutSet
from ..scores.scores import Scores
from ..scores.text_tables import TextTable, text_table
from ..scoring.pairs import Refusal
from ..statistics.intervals import CONFIDENCE, FEW_CLUSTERS, INTERVAL_METHOD
from ..statistics.resampling import RESAMPLES, SEED
from .chosen_pair import ChosenPair, choose_pair, pair_motion, pair_videos
from .panels import failure_distributions, family_panels, level_panels, prompt_panels
from .picture import outcome_panels
from .plots import (
    action_norms,
    gripper_paths,
    persistence_curve,
    persistence_map,
    picture_note,
)
from .probe_panels import AXES, DRAWN, probe_panels
from .styles import CONFLICT_COLOUR, REFERENCE_COLOUR, Style, policy_styles

FOLDER = Path(__file__).parent

SHOWN_ELSEWHERE = {*GROUPINGS, "outcome_tests", "prompt_effect", "probe_effect", "abstention", "undefined"}
"""Tables that the page has a place of its own for; all others of the registry follow one another in one section."""

SHOWN_REFUSALS = 20

PROBE_CHANGES = ("PCSR", "RGSR", "selectivity", "TAR", "Early20_TS")
"""What of a probe's effect is shown at once; the rest is in the table of all."""

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
class Row:
    """A table row as text: the policy, its group within the table (or empty), the measures, the number of pairs."""

    policy: str
    group: str
    cells: tuple[Cell, ...]
    n: int
    first_of_policy: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class TableView:
    """A score table as text."""

    title: str
    by: str
    group: str | None
    prompts: tuple[str, ...]
    measures: tuple[Measure, ...]
    rows: tuple[Row, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class PairView:
    """The pair shown in full."""

    chosen: ChosenPair
    paths: Markup
    norms: Markup
    values: tuple[tuple[str, str], ...]
    videos: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbeChange:
    """What one probe changes of one policy; ``cells`` are rows of the effect with their numbers as text."""

    policy: str
    condition: str
    cells: tuple[dict[str, Any], ...]
    n: int


def write_report(
    scores: Scores, rollouts: RolloutSet | Path | str, path: Path | str, *, videos: Path | None = None
) -> Path:
    """Write one HTML file that needs nothing else: no network, no other file.

    Args:
        scores: What to report.
        rollouts: The rollouts that were scored, or the folder they are in; one pair's motion is shown from them.
        path: Where to write; folders are made as needed.
        videos: Folder with videos of the rollouts (see ``rollouts.render``); the page gets those of the pair shown.

    Returns:
        The path written. The same scores, rollouts and videos give the same bytes.

    Raises:
        DatasetError: If the rollouts are damaged, or not those that were scored.
        NotFoundError: If the folder lacks a video of the pair shown; the message says which.
    """
    path = Path(path)
    write_atomic(path, render_report(scores, rollouts, videos=videos))
    return path


def render_report(scores: Scores, rollouts: RolloutSet | Path | str, *, videos: Path | None = None) -> str:
    """The page as text; see ``write_report``."""
    # Instructions and policy names come from data that anyone may have uploaded: everything is escaped.
    environment = Environment(
        autoescape=True,
        loader=FileSystemLoader(FOLDER),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.globals.update(arrow=arrow, percent=percent, p_value=p_value)
    styles = policy_styles(scores.policies)
    views = {by: _table_view(scores, by) for by in TITLES}
    return environment.get_template("report.html.j2").render(
        scores=scores,
        provenance=scores.provenance,
        key_result=key_result(scores),
        views=views,
        styles=styles,
        measures=MEASURES,
        pictures=[panel.render() for panel in outcome_panels(scores)],
        picture_note=picture_note(len(scores.policies)),
        curve=_curve(scores, styles),
        maps=_maps(scores, styles),
        distributions=[panel.plot.render() for panel in failure_distributions(scores)],
        families=[panel.plot.render() for panel in family_panels(scores)],
        levels=[panel.plot.render() for panel in level_panels(scores)],
        prompts=[(panel.caption, panel.plot.render()) for panel in prompt_panels(scores)],
        further=_further_tables(scores),
        few_base_tasks=_few_base_tasks(scores),
        prompt_effect=[_shown(row) for row in scores.table("prompt_effect").to_pylist()],
        probes=[(panel.caption, panel.plot.render()) for panel in probe_panels(scores)],
        probe_lines={SYMBOLS[name]: drawn for name, drawn in DRAWN.items()},
        probe_views=[views[by] for by in AXES if len({row.group for row in views[by].rows}) > 1],
        probe_changes=_probe_changes(scores.table("probe_effect")),
        probe_table=text_table(scores, "probe_effect"),
        outcome_tests=scores.table("outcome_tests").to_pylist(),
        abstention=scores.table("abstention").to_pylist(),
        pair=_pair_view(scores, rollouts, videos),
        colours={"reference": REFERENCE_COLOUR, "conflict": CONFLICT_COLOUR},
        pairs_json=script_json(_pair_list(scores)),
        refusals=_shown_refusals(scores),
        undefined=scores.table("undefined").to_pylist(),
        statistics={"confidence": CONFIDENCE, "method": INTERVAL_METHOD, "resamples": RESAMPLES, "seed": SEED},
        css=Markup((FOLDER / "report.css").read_text(encoding="utf-8")),
        script=Markup((FOLDER / "report.js").read_text(encoding="utf-8")),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyResult:
    """The page's first lines: how often the invalid task is completed, then what the failures look like."""

    outcome: str
    process: str


def key_result(scores: Scores) -> KeyResult:
    """The key result in words; ``process`` is empty where no qualified failure has a defined TAR."""
    rows = scores.table("overall").to_pylist()
    if not rows:
        return KeyResult(outcome="No pair could be scored", process="")
    low, high = (end(rows, key=lambda row: row["RGSR"]) for end in (min, max))
    if len(rows) == 1:
        reached = f"{percent(low['RGSR'])}% of rollouts, against {percent(low['PCSR'])}% with valid ones"
        outcome = f"With invalid premises {low['policy']} still reaches the reference goal in {reached}"
    elif percent(low["RGSR"]) == percent(high["RGSR"]):
        reached = f"{percent(low['RGSR'])}% of rollouts"
        outcome = f"With invalid premises all {len(rows)} policies still reach the reference goal in {reached}"
    else:
        reached = f"{percent(low['RGSR'])}% ({low['policy']}) to {percent(high['RGSR'])}% ({high['policy']})"
        outcome = f"With invalid premises the reference goal is still reached in {reached} of rollouts"
    return KeyResult(outcome=outcome, process=_about_failures(scores))


def script_json(value: object) -> Markup:
    """JSON that may stand inside a script element: no character of it can end that element."""
    text = json.dumps(value, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    return Markup(text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026"))


def _about_failures(scores: Scores) -> str:
    rows = [row for row in scores.table("qualified").to_pylist() if not math.isnan(row["TAR"])]
    if not rows:
        return ""
    least, most = (end(rows, key=lambda row: row["TAR"]) for end in (min, max))
    covered = f"{percent(least['TAR'])}% ({least['policy']})"
    if least is not most:
        covered += f" to {percent(most['TAR'])}% ({most['policy']})"
    return (
        f"Where a policy fails although its reference rollout succeeds, its gripper still covers {covered} of the "
        "reference rollout's approach to the target. Failing alone does not tell refusal from failed persistence."
    )


def _table_view(scores: Scores, by: str) -> TableView:
    table = scores.table(by).to_pylist()
    measures, group = shown_measures(by), group_column(by)
    rows = [
        Row(
            policy=row["policy"],
            group=row[group] if group else "",
            cells=tuple(interval_cell(row, measure.name) for measure in measures),
            n=row["n"],
            first_of_policy=index == 0 or table[index - 1]["policy"] != row["policy"],
        )
        for index, row in enumerate(table)
    ]
    prompts = tuple(sorted({row["prompt"] for row in table}))
    return TableView(title=TITLES[by], by=by, group=group, prompts=prompts, measures=measures, rows=tuple(rows))


def _curve(scores: Scores, styles: dict[str, Style]) -> Markup:
    curves = [(policy, scores.failed_persistence(policy), styles[policy]) for policy in scores.policies]
    return persistence_curve(curves, PERSISTENCE_LEVELS).render()


def _maps(scores: Scores, styles: dict[str, Style]) -> list[tuple[str, Markup | None]]:
    """Each policy's map, or None where it has no qualified failure with a defined TAR."""
    maps: list[tuple[str, Markup | None]] = []
    for policy in scores.policies:
        curve = scores.failed_persistence(policy)
        drawn = None if math.isnan(curve[0, 0]) else persistence_map(policy, curve, PERSISTENCE_LEVELS, styles[policy])
        maps.append((policy, drawn))
    return maps


def _further_tables(scores: Scores) -> list[TextTable]:
    """Tables without a place of their own, where the supplementary measures were taken, as for every report."""
    if not scores.has_supplementary:
        return []
    shown = (analysis for analysis in scores.analyses() if analysis.on_page and analysis.name not in SHOWN_ELSEWHERE)
    return [text_table(scores, analysis.name) for analysis in shown]


def _few_base_tasks(scores: Scores) -> list[tuple[str, int]]:
    """Policies whose pairs come from too few base tasks for a bootstrap, and how many these are."""
    clusters, policies = base_task_clusters(scores.pairs), scores.pairs["policy"].to_numpy()
    counts = [(policy, len(set(clusters[policies == policy].tolist()))) for policy in scores.policies]
    return [(policy, count) for policy, count in counts if count < FEW_CLUSTERS]


def _shown(row: dict[str, Any]) -> dict[str, Any]:
    """A row of an effect with its numbers as text."""
    return (
        row
        | {"symbol": SYMBOLS.get(row["measure"], row["measure"]), "difference": signed(row["difference"])}
        | {"low": signed(row["difference_lo"]), "high": signed(row["difference_hi"])}
        | {"p": p_value(row["p"]), "q": p_value(row["q"])}
    )


def _probe_changes(effect: pa.Table) -> list[ProbeChange]:
    """The effect of each probe in one line, for the measures that tell collapse from care."""
    changes = []
    for key, rows in groupby(effect.to_pylist(), lambda row: (row["policy"], row["prompt"], probe_text(row))):
        policy, *condition = key
        cells = {row["measure"]: _shown(row) for row in rows}
        chosen = tuple(cells[name] for name in PROBE_CHANGES)
        changes.append(
            ProbeChange(policy=policy, condition=" ".join(condition), cells=chosen, n=cells["selectivity"]["n"])
        )
    return changes


def _pair_view(scores: Scores, rollouts: RolloutSet | Path | str, videos: Path | None) -> PairView | None:
    chosen = choose_pair(scores.pairs)
    if chosen is None:
        return None
    parts = (
        [rollouts]
        if isinstance(rollouts, RolloutSet)
        else read_rollouts_by_policy(rollouts, partial=bool(scores.left_out))
    )
    motion = pair_motion(chosen, parts)
    values = tuple((measure.symbol, percent(chosen.row[measure.name])) for measure in MEASURES if measure.process)
    return PairView(
        chosen=chosen,
        paths=gripper_paths(motion),
        norms=action_norms(motion),
        values=values,
        videos=() if videos is None else pair_videos(chosen, videos),
    )


def _pair_list(scores: Scores) -> dict[str, Any]:
    """The pairs column by column; text as numbers into a list of distinct texts, measures in tenths of a percent."""
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
    return columns


def _shown_refusals(scores: Scores) -> tuple[Refusal, ...]:
    return scores.refusals[:SHOWN_REFUSALS]
