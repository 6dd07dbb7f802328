"""Verdicts belong to what was read: they are stored, read back, and lost when the case changes."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from conflictvla.builders.review.ledger import (
    UNREVIEWED,
    ReviewEntry,
    Verdict,
    add_verdicts,
    parse_entries,
    read_ledger,
    review_status,
    reviewed_content,
    standing_verdicts,
)
from conflictvla.builders.review.sheet import PICTURE_PIXELS, review_sheet
from conflictvla.builders.tasks_dataset.reading import load_instances, load_tasks
from conflictvla.toolkit.errors import DatasetError, InvalidInputError
from conflictvla.toolkit.records import Arm, Prompt

from ...browser import chromium, needs_chromium
from ...eval.in_process import conflictvla

CASES = [i for i in load_instances() if i.arm is Arm.CONFLICT and i.prompt == Prompt.P0][:3]
CONTENTS = {str(case.case_id): reviewed_content(case.instruction, case.factors) for case in CASES}


def _entry(number: int = 0, *, stage: int = 1, verdict: Verdict = Verdict.ACCEPT) -> ReviewEntry:
    case_id = str(CASES[number].case_id)
    return ReviewEntry(
        case_id=case_id,
        stage=stage,
        verdict=verdict,
        reason="",
        reviewer="a reader",
        content_sha256=CONTENTS[case_id],
    )


def test_ledger_gives_back_what_was_added_and_adds_nothing_twice(tmp_path: Path) -> None:
    ledger = tmp_path / "ledger.json"

    assert add_verdicts([_entry(0), _entry(1)], CONTENTS, ledger) == 2
    assert add_verdicts([_entry(1), _entry(2)], CONTENTS, ledger) == 1
    assert read_ledger(ledger) == (_entry(0), _entry(1), _entry(2))


def test_changed_case_loses_its_verdict() -> None:
    changed = {**CONTENTS, str(CASES[0].case_id): reviewed_content("other words", CASES[0].factors)}

    assert standing_verdicts(CONTENTS, [_entry(0)]) == {CASES[0].case_id: _entry(0)}
    assert standing_verdicts(changed, [_entry(0)]) == {}
    assert review_status(None) == UNREVIEWED


def test_changed_evidence_is_a_changed_case() -> None:
    case = CASES[0]
    other = (replace(case.factors[0], observed="something else"), *case.factors[1:])

    assert reviewed_content(case.instruction, other) != reviewed_content(case.instruction, case.factors)


def test_second_stage_counts_before_the_first() -> None:
    first, second = _entry(0), _entry(0, stage=2, verdict=Verdict.REJECT)

    assert standing_verdicts(CONTENTS, [second, first]) == {CASES[0].case_id: second}
    assert review_status(second) == "reject, stage 2, a reader"


@pytest.mark.parametrize(
    ("entry", "reason"),
    [
        (replace(_entry(), case_id="no/such/case"), "no case of these tasks"),
        (replace(_entry(), content_sha256="0" * 64), "earlier form"),
        (replace(_entry(), reviewer=" "), "names no reviewer"),
    ],
)
def test_verdict_on_nothing_known_is_refused(entry: ReviewEntry, reason: str, tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match=reason):
        add_verdicts([entry], CONTENTS, tmp_path / "ledger.json")


@pytest.mark.parametrize("text", ["{", "[1]", '[{"case_id": "x"}]'])
def test_damaged_verdicts_are_refused(text: str) -> None:
    with pytest.raises(DatasetError, match=r"verdicts\.json: is no list of review verdicts"):
        parse_entries(text, "verdicts.json")


def test_stage_beyond_two_is_refused() -> None:
    with pytest.raises(DatasetError, match="has stage 3, not 1 or 2"):
        parse_entries(json.dumps([{**asdict(_entry()), "stage": 3}]), "verdicts.json")


def test_sheet_holds_every_case_with_picture_evidence_and_controls() -> None:
    sheet = review_sheet(CASES, lambda task: b"png")

    assert "data:image/png;base64,cG5n" in sheet
    for case in CASES:
        assert f'<article id="{case.case_id}">' in sheet
        assert all(factor.premise in sheet for factor in case.factors)
    assert sheet.count('type="radio"') == len(Verdict) * len(CASES)
    assert "http" not in sheet


def test_sheet_does_without_pictures() -> None:
    assert "<img" not in review_sheet(CASES, lambda task: None)


def test_shipped_review_column_says_what_the_ledger_says() -> None:
    contents = {
        i.case_id: reviewed_content(i.instruction, i.factors) for i in load_instances() if i.factors and i.case_id
    }
    standing = standing_verdicts(contents, read_ledger())

    for row in load_tasks("cases").select_columns(["case_id", "review"]).to_list():
        assert row["review"] == review_status(standing.get(row["case_id"]))


@needs_chromium
def test_verdicts_given_in_a_browser_come_back_into_the_ledger(tmp_path: Path) -> None:
    sheet, ledger = tmp_path / "sheet.html", tmp_path / "ledger.json"
    sheet.write_text(review_sheet(CASES, lambda task: None), encoding="utf-8")

    with chromium() as browser:
        page = browser.new_page()
        page.goto(sheet.as_uri())
        for article, verdict in zip(page.locator("article").all(), ("accept", "flag", "reject"), strict=True):
            article.get_by_label(verdict).check()
        page.locator("article input[type=text]").nth(1).fill('two bowls: which "bowl"?')
        page.get_by_label("reviewer").fill("a reader")
        page.get_by_label("stage").select_option("2")
        with page.expect_download() as download:
            page.get_by_role("button", name="export verdicts").click()
        exported = download.value.path().read_text(encoding="utf-8")

    add_verdicts(parse_entries(exported, "verdicts.json"), CONTENTS, ledger)
    read = read_ledger(ledger)
    assert [entry.verdict for entry in read] == list(Verdict)
    assert read[1].reason == 'two bowls: which "bowl"?'
    assert {(entry.stage, entry.reviewer) for entry in read} == {(2, "a reader")}


def test_show_writes_a_picture_of_the_scene(tmp_path: Path) -> None:
    picture, case_id = tmp_path / "pictures" / "scene.png", CASES[0].case_id

    done = conflictvla("tasks", "show", str(case_id), "--picture", picture)

    if "cannot render" in done.stderr:
        pytest.skip("no GL library")
    assert done.returncode == 0
    assert Image.open(picture).size == (PICTURE_PIXELS, PICTURE_PIXELS)
    assert np.asarray(Image.open(picture)).std() > 10  # there is something to see
    assert conflictvla("tasks", "show", str(case_id), "--picture", tmp_path).returncode == 2
