"""LaTeX tables: a real LaTeX compiles them where one is installed; without one, their form is checked strictly."""

from __future__ import annotations

import re
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from conflictvla.eval.report import write_tables
from conflictvla.eval.scores.formats import LATEX_PACKAGES, latex
from conflictvla.eval.scores.latex_text import latex_text
from conflictvla.eval.scores.scores import Scores, score
from conflictvla.eval.scores.text_tables import table_names, text_table
from conflictvla.toolkit.records import Prompt

from ..synthetic_rollouts import small_evaluation, write_dataset

NAMES = (
    "open_vla_7b 100% & more",
    "[x] \\input{/etc/passwd} $a$ #1 ~^_",
    "* \\\\ \\end{tabular} \\write18{touch owned}",
    "π0.5 – naïve ½ 手 “q” \u0301 <|>--``",
)
"""Names of policies that LaTeX would take for commands, options or ends of rows, or does not know."""

LATEX = shutil.which("pdflatex") or shutil.which("lualatex") or shutil.which("xelatex")


@pytest.fixture(scope="module")
def scores(tmp_path_factory: pytest.TempPathFactory) -> Scores:
    root = tmp_path_factory.mktemp("run")
    for number, name in enumerate(NAMES):
        rollouts = small_evaluation("p", reach=0.2 * number + 0.1, prompts=tuple(Prompt)[:2])
        renamed = [
            replace(
                made, episode=replace(made.episode, policy_name=name, rollout_id=f"{number}{made.episode.rollout_id}")
            )
            for made in rollouts
        ]
        write_dataset(root / str(number), renamed)
    return score(root, supplementary=True)


@pytest.mark.skipif(LATEX is None, reason="needs a LaTeX")
def test_a_real_latex_compiles_every_exported_table(scores: Scores, tmp_path: Path) -> None:
    files = [file for file in write_tables(scores, tmp_path / "tables") if file.suffix == ".tex"]
    assert len(files) == len(table_names(scores))
    packages = "".join(f"\\usepackage{{{package}}}" for package in LATEX_PACKAGES)
    body = "\n\n".join(f"\\input{{tables/{file.name}}}" for file in files)
    text = f"\\documentclass{{article}}{packages}\\begin{{document}}\n{body}\n\\end{{document}}\n"
    (tmp_path / "all.tex").write_text(text)
    command = [str(LATEX), "-interaction=nonstopmode", "-halt-on-error", "-draftmode", "all.tex"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, errors="replace", timeout=120)
    log = (tmp_path / "all.log").read_text(errors="replace")
    assert done.returncode == 0, log[-3000:]
    assert re.findall(r"^(?:! .*|Missing character.*|LaTeX Warning: (?!Label|Reference).*)", log, re.MULTILINE) == []
    assert not (tmp_path / "owned").exists()


def test_every_table_is_ascii_and_well_formed(scores: Scores) -> None:
    for name in table_names(scores):
        text = latex(text_table(scores, name))
        _, needs, *lines = text.splitlines()
        assert needs.startswith("% Needs: \\usepackage{booktabs}")
        body = "\n".join(lines)
        assert body.isascii()
        assert re.findall(r"\\(?:begin|end)\{\w+\}", body) == ["\\begin{tabular}", "\\end{tabular}"]
        # What LaTeX reads itself: without escaped characters, braces and formulas are balanced.
        plain = re.sub(r"\\[\\{}%&$#_^~]", "", body)
        depth = 0
        for character in plain:
            depth += {"{": 1, "}": -1}.get(character, 0)
            assert depth >= 0
        assert depth == 0
        assert plain.count("$") % 2 == 0
        assert not re.search(r"[#%~]", plain)
        columns = re.match(r"\\begin\{tabular\}\{([lr]+)\}", body)
        assert columns
        rows = [line for line in lines if line.endswith("\\\\")]
        assert rows
        assert {re.sub(r"\\&", "", row).count("&") + 1 for row in rows} == {len(columns[1])}
        assert not any(row.lstrip().startswith(("[", "*")) for row in rows)


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("a_b%c&d", "a\\_b\\%c\\&d"),
        ("\\input{x}", "\\textbackslash{}input\\{x\\}"),
        ("openvla-oft", "openvla-oft"),
        ("a--b", "a-{}-b"),
        ("two\n\nlines", "two lines"),
        ("π0", "$\\pi$0"),
        ("é", "\\'{e}"),
        ("手", "U+624B"),
        ("\u0301x", "U+0301x"),
    ],
)
def test_text_is_read_as_text(text: str, written: str) -> None:
    assert latex_text(text) == written


def test_the_best_is_underlined_and_extremes_have_triangles(scores: Scores) -> None:
    assert "\\underline{" in latex(text_table(scores, "overall"))
    family = latex(text_table(scores, "family"))
    assert "$^{\\bigtriangleup}$" in family
    assert "\\textbf{" in family
