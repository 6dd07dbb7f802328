"""The report's section on probes: there where rollouts under probes are, readable, and nowhere else."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from conflictvla.eval.report import write_figures, write_report, write_tables
from conflictvla.eval.report.page.page import render_report
from conflictvla.eval.scores.scores import Scores, score
from conflictvla.toolkit.records import Prompt

from ...browser import chromium, needs_chromium
from ..analyses.test_probe_effects import write_both
from ..synthetic_rollouts import small_evaluation, write_dataset


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_both(tmp_path_factory.mktemp("probed"))


@pytest.fixture(scope="module")
def scores(folder: Path) -> Scores:
    return score(folder)


def test_completion_of_valid_and_invalid_tasks_stands_side_by_side(scores: Scores, folder: Path) -> None:
    page = render_report(scores, folder)
    section = re.search(r'<section id="probes">(.*?)</section>', page, re.DOTALL)
    assert section
    for tooltip in ("RGSR under V2: 0.0%, 24 pairs", "PCSR under V2: 83.3%, 24 pairs", "PCSR under V2: 0.0%, 24 pairs"):
        assert tooltip in section[1]
    rows = re.findall(r'<th class="name">P0 V2</th>(.*?)</tr>', section[1], re.DOTALL)
    changes = [re.findall(r"<td>([^<]+)", row) for row in rows]
    assert changes == [
        ["0.0", "−12.5", "−12.5", "0.0", "0.0", "24"],  # careful: PCSR, RGSR, selectivity, TAR, Early20, pairs
        ["−83.3", "−12.5", "+70.8", "0.0", "0.0", "24"],
    ]


def test_without_probes_there_is_no_such_section(tmp_path: Path) -> None:
    write_dataset(tmp_path / "plain", small_evaluation("plain", prompts=[Prompt.P0]))
    plain = score(tmp_path)
    assert 'id="probes"' not in render_report(plain, tmp_path)
    assert not [file.name for file in write_figures(plain, tmp_path / "figures") if "probe" in file.name]


def test_figures_and_tables_of_probes_are_exported(scores: Scores, tmp_path: Path) -> None:
    figures = {file.name for file in write_figures(scores, tmp_path)}
    assert {
        f"visual-probe-{policy}.{kind}" for policy in ("careful", "collapses") for kind in ("svg", "png")
    } <= figures
    tables = {file.name for file in write_tables(scores, tmp_path)}
    assert {"visual-probe.md", "probe-effect.tex", "probe-effect.csv"} <= tables


@needs_chromium
@pytest.mark.parametrize("width", [1280, 390])
def test_the_section_fits_the_screen(scores: Scores, folder: Path, tmp_path: Path, width: int) -> None:
    file = write_report(scores, folder, tmp_path / "report.html")
    with chromium() as browser:
        page = browser.new_page(viewport={"width": width, "height": 900})
        page.goto(file.as_uri())
        assert page.evaluate("document.documentElement.scrollWidth") == width
        assert page.locator("#probes .panels svg").count() == 2
        assert page.locator("#probes details table").first.is_hidden()
        page.locator("#probes summary").first.click()
        assert page.locator("#probes details table").first.is_visible()
