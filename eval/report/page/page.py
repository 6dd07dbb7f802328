"""The page: every part of it computed from the scores, and put into the template."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from ....toolkit.atomic_files import write_atomic
from ....toolkit.counting import counted
from ...analyses.columns import SYMBOLS, arrow, p_value, percent
from ...analyses.tables.measures import TITLES
from ...analyses.tables.policy_means import policy_families
from ...measures import MEASURES
from ...recordings.rollout_set import RolloutSet
from ...scores.scores import Scores
from ...scores.text_tables import text_table
from ...statistics.intervals import CONFIDENCE, INTERVAL_METHOD
from ...statistics.resampling import RESAMPLES, SEED
from ..figures.outcome_plot import outcome_note
from ..figures.panels import NamedPlot, failure_distributions, family_panels, level_panels, prompt_figures
from ..figures.persistence_plots import persistence_curve, persistence_map, policy_persistence
from ..figures.picture import outcome_panels
from ..figures.probe_panels import AXES, DRAWN, probe_panels
from ..figures.styles import CONFLICT_COLOUR, REFERENCE_COLOUR, policy_styles
from .key_result import key_result
from .pairs import pair_list, pair_view
from .tables import few_base_tasks, further_tables, probe_changes, prompt_changes, table_view

FOLDER = Path(__file__).parent

SHOWN_REFUSALS = 20


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
        NotFoundError: If the folder lacks a video of the pair shown; the message names it.
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
    environment.globals.update(arrow=arrow, counted=counted, percent=percent, p_value=p_value)
    return environment.get_template("report.html.j2").render(
        scores=scores,
        provenance=scores.provenance,
        measures=MEASURES,
        key_result=key_result(scores),
        colours={"reference": REFERENCE_COLOUR, "conflict": CONFLICT_COLOUR},
        statistics={"confidence": CONFIDENCE, "method": INTERVAL_METHOD, "resamples": RESAMPLES, "seed": SEED},
        css=Markup((FOLDER / "report.css").read_text(encoding="utf-8")),
        script=Markup((FOLDER / "report.js").read_text(encoding="utf-8")),
        **_plots(scores),
        **_tables(scores),
        pair=pair_view(scores, rollouts, videos),
        pairs_json=pair_list(scores),
    )


def _plots(scores: Scores) -> dict[str, object]:
    """The template's plots, with what explains them."""
    persistence = policy_persistence(scores)
    return {
        "styles": policy_styles(scores.policies),
        "pictures": [panel.render() for panel in outcome_panels(scores)],
        "outcome_note": outcome_note(len(scores.policies)),
        "families": _render_all(family_panels(scores)),
        "levels": _render_all(level_panels(scores)),
        "distributions": _render_all(failure_distributions(scores)),
        "curve": persistence_curve(persistence).render(),
        "maps": {one.policy: persistence_map(one).render() for one in persistence},
        "prompts": [(figure.caption, figure.plot.render()) for figure in prompt_figures(scores)],
        "probes": [(panel.caption, panel.plot.render()) for panel in probe_panels(scores)],
        "probe_lines": {SYMBOLS[name]: drawn for name, drawn in DRAWN.items()},
    }


def _tables(scores: Scores) -> dict[str, object]:
    """The template's tables."""
    views = {by: table_view(scores, by) for by in TITLES}
    return {
        "views": views,
        "few_base_tasks": few_base_tasks(scores),
        "quartiles": text_table(scores, "failure_quartiles"),
        "matrices": [text_table(scores, name) for name in ("suite_level", "family_level")],
        "policy_means": text_table(scores, "policy_means"),
        "policy_families": policy_families(scores.pairs),
        "prompt_changes": prompt_changes(scores),
        "prompt_moves": text_table(scores, "prompt_moves"),
        "probe_changes": probe_changes(scores),
        "probe_table": text_table(scores, "probe_effect"),
        "probe_views": [views[by] for by in AXES if len({row.group for row in views[by].rows}) > 1],
        "further": further_tables(scores),
        "outcome_tests": scores.table("outcome_tests").to_pylist(),
        "abstention": scores.table("abstention").to_pylist(),
        "undefined": scores.table("undefined").to_pylist(),
        "refusals": scores.refusals[:SHOWN_REFUSALS],
    }


def _render_all(panels: Iterable[NamedPlot]) -> list[Markup]:
    return [panel.plot.render() for panel in panels]
