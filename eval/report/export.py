"""Tables and figures as files of their own, for papers and for other programs."""

from __future__ import annotations

import json
from pathlib import Path

from pyarrow import csv

from ...toolkit.atomic_files import atomic_file, write_atomic
from ...toolkit.json_values import null_for_nan
from ..analyses.registry import find_analysis
from ..scores.formats import latex, markdown, marks_legend
from ..scores.scores import Scores
from ..scores.text_tables import TextTable, table_names, text_table
from .figures.panels import NamedPlot, failure_distributions, family_panels, level_panels, prompt_figures
from .figures.persistence_plots import persistence_curve, policy_persistence
from .figures.picture import outcome_panels
from .figures.png import check_png, write_png
from .figures.probe_panels import probe_panels
from .figures.svg import drawing


def write_tables(scores: Scores, folder: Path | str) -> list[Path]:
    """Write every table that has rows as markdown and LaTeX (percent) and as CSV and JSON (fractions, full precision).

    Markdown and LaTeX set the best of the policies apart, or the extremes, and have means over policies below their
    rows; JSON names the marks (number of the row, column, mark) and the means beside its rows.

    Args:
        scores: What to write.
        folder: Receives ``<table>.md``, ``.tex``, ``.csv`` and ``.json``; made as needed.

    Returns:
        The files written. The same scores give the same bytes.
    """
    folder = Path(folder)
    files = []
    for table in (text_table(scores, name) for name in table_names(scores)):
        if not table.data.num_rows:
            continue
        texts = {
            "md": f"**{table.title}.** {table.note}{marks_legend(table)}\n\n{markdown(table)}",
            "tex": latex(table),
            "json": _json(table),
        }
        for ending, text in texts.items():
            files.append(folder / f"{table.name}.{ending}")
            write_atomic(files[-1], text)
        files.append(folder / f"{table.name}.csv")
        with atomic_file(files[-1]) as aside:
            csv.write_csv(table.data, aside)
    return files


def _json(table: TextTable) -> str:
    analysis, rows = find_analysis(table.name), table.data.to_pylist()
    content = {
        "title": table.title,
        "rows": rows,
        "marks": [[number, column, mark] for (number, column), mark in sorted(analysis.marks(rows).items())],
        "means": analysis.means(rows),
    }
    return json.dumps(null_for_nan(content), indent=1, ensure_ascii=False) + "\n"


def write_figures(scores: Scores, folder: Path | str) -> list[Path]:
    """Write every figure of the report's sections as SVG and as PNG; see ``write_tables``.

    Raises:
        MissingExtraError: matplotlib, which draws the PNG files, is not installed; nothing is written.
    """
    check_png()
    folder = Path(folder)
    files = []
    for figure in figures(scores):
        plot = figure.plot
        inner = plot.render(x=0, y=0, width=plot.width, height=plot.height)
        fonts = "system-ui, 'Helvetica Neue', Arial, sans-serif"
        files.append(folder / f"{figure.name}.svg")
        text = drawing(plot.width, plot.height, plot.title, [inner], font_family=fonts)
        write_atomic(files[-1], text + "\n")
        files.append(folder / f"{figure.name}.png")
        with atomic_file(files[-1]) as aside:
            write_png(plot, aside)
    return files


def figures(scores: Scores) -> list[NamedPlot]:
    """The figures that do not depend on one chosen pair, with the names of their files."""
    found = [
        NamedPlot(name=f"outcome-{number}", caption=panel.title, plot=panel)
        for number, panel in enumerate(outcome_panels(scores), 1)
    ]
    persistence = policy_persistence(scores)
    if persistence:
        plot = persistence_curve(persistence)
        found.append(NamedPlot(name="failed-persistence", caption=plot.title, plot=plot))
    return [
        *found,
        *failure_distributions(scores),
        *family_panels(scores),
        *level_panels(scores),
        *prompt_figures(scores),
        *probe_panels(scores),
    ]
