"""The registry of analyses: one file and one line make a table, in every place where tables are shown."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from conflictvla.eval.analyses import registry
from conflictvla.eval.analyses.analysis import RESERVED_NAMES, Analysis
from conflictvla.eval.analyses.columns import number_fields, numbers, plain, text_fields
from conflictvla.eval.analyses.registry import analyses, find_analysis, register_analysis
from conflictvla.eval.report.page.page import render_report
from conflictvla.eval.scores.formats import markdown
from conflictvla.eval.scores.scores import score
from conflictvla.eval.scores.text_tables import table_names, text_table
from conflictvla.eval.scoring.scored_pairs import ScoredPairs
from conflictvla.toolkit.errors import InvalidInputError, NotFoundError

from ...conftest import REPOSITORY
from ..synthetic_rollouts import small_evaluation, with_controls, write_dataset

NEW_FILE = '''"""How long conflict rollouts are."""

from __future__ import annotations

import pyarrow as pa

from ...scoring.scored_pairs import ScoredPairs
from ..analysis import Analysis
from ..columns import plain


def conflict_length(scored: ScoredPairs) -> pa.Table:
    """Mean number of executed actions under conflict, a row for each policy."""
    table = scored.pairs.group_by("policy").aggregate([("conflict_steps", "mean")])
    return table.rename_columns(["policy", "steps"])


ANALYSIS = Analysis(
    name="conflict_length",
    title="Length of conflict rollouts",
    note="Mean number of executed actions.",
    compute=conflict_length,
    labels=(plain("policy"),),
    numbers=(plain("steps"),),
)
'''
IMPORT = "    behaviour_by_task,\n"
LAST_LINE = "    behaviour.CORRELATION,\n"


@pytest.fixture
def own() -> Iterator[Analysis]:
    """An analysis that is listed for one test."""
    before = list(registry._ANALYSES)
    yield register_analysis(
        Analysis(
            name="highest_approach",
            title="Highest approach",
            note="Largest TAR of a policy's pairs.",
            compute=_highest_approach,
            labels=(plain("policy"),),
            numbers=(numbers("highest", 2, "TAR"),),
            uses=("overall",),
        )
    )
    registry._ANALYSES[:] = before


def _highest_approach(scored: ScoredPairs, overall: pa.Table) -> pa.Table:
    highest = [pc.max(scored.pairs.filter(pc.equal(scored.pairs["policy"], name))["TAR"]) for name in overall["policy"]]
    schema = pa.schema([*text_fields("policy"), *number_fields("highest")])
    return pa.table([overall["policy"].combine_chunks(), pa.array([value.as_py() for value in highest])], schema=schema)


def test_an_analysis_that_is_registered_is_in_scores_file_text_and_page(own: Analysis, tmp_path: Path) -> None:
    folder = write_dataset(tmp_path / "a", small_evaluation("persist"))
    scores = score(folder, supplementary=True)

    (row,) = scores.table("highest_approach").to_pylist()
    assert row["policy"] == "persist"
    assert json.loads(scores.to_json())["highest_approach"] == [row]
    assert "highest-approach" in table_names(scores)
    assert markdown(text_table(scores, "highest-approach")).splitlines()[2] == f"| persist | {row['highest']:.2f} |"
    assert own.title in render_report(scores, folder)


def test_a_name_that_is_taken_or_a_table_that_is_missing_is_refused(own: Analysis) -> None:
    with pytest.raises(InvalidInputError, match="'highest_approach' exists already"):
        register_analysis(replace(own))
    with pytest.raises(NotFoundError, match="no table 'nothing'"):
        register_analysis(replace(own, name="another", uses=("nothing",)))
    with pytest.raises(InvalidInputError, match="'another' uses 'supplementary', which needs"):
        register_analysis(replace(own, name="another", uses=("supplementary",)))


@pytest.mark.parametrize("name", ["pairs", "tables", "Bad Name", "../x", "", "two__lines"])
def test_a_name_that_the_scores_file_or_the_file_system_cannot_take_is_refused(own: Analysis, name: str) -> None:
    with pytest.raises(InvalidInputError, match="cannot be called"):
        replace(own, name=name)


def test_the_reserved_names_are_all_else_that_the_scores_file_holds(tmp_path: Path) -> None:
    rollouts = with_controls(small_evaluation())
    content = json.loads(score(write_dataset(tmp_path / "a", rollouts), supplementary=True).to_json())

    assert set(content) - {analysis.name for analysis in analyses()} == RESERVED_NAMES


def test_names_are_distinct_and_every_table_that_one_uses_is_listed_before_it() -> None:
    listed: set[str] = set()
    for analysis in analyses():
        assert analysis.slug not in listed
        assert {find_analysis(name).slug for name in analysis.uses} <= listed
        listed.add(analysis.slug)


def test_one_file_and_one_line_add_a_table_everywhere(tmp_path: Path) -> None:
    package = tmp_path / "conflictvla"
    ignored = shutil.ignore_patterns(".*", "build", "demo", "dist", "docs", "tests", "__pycache__")
    shutil.copytree(REPOSITORY, package, ignore=ignored)
    (package / "eval/analyses/tables/conflict_length.py").write_text(NEW_FILE)
    listing = package / "eval/analyses/registry.py"
    text = listing.read_text()
    assert text.count(IMPORT) == text.count(LAST_LINE) == 1
    text = text.replace(IMPORT, f"{IMPORT}    conflict_length,\n")
    listing.write_text(text.replace(LAST_LINE, f"{LAST_LINE}    conflict_length.ANALYSIS,\n"))
    write_dataset(tmp_path / "run/rollouts/persist", small_evaluation("persist"))

    def run(*arguments: str) -> str:
        command = [sys.executable, "-m", "conflictvla.cli", *arguments]
        environment = os.environ | {"PYTHONPATH": str(tmp_path)}
        return subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=True).stdout

    printed = run("score", "run", "--by", "conflict-length", "--out", "scores.json")
    assert "Length of conflict rollouts" in " ".join(printed.split())
    assert json.loads((tmp_path / "scores.json").read_text())["conflict_length"][0]["policy"] == "persist"
    run("report", "run", "--out", "report.html")
    assert "Length of conflict rollouts" in (tmp_path / "report.html").read_text()
