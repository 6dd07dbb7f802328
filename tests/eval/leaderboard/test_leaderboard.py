"""The leaderboard in a real browser: filters, sorting, keyboard, narrow screens, many entries, hostile text."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import httpx
import pytest
from playwright.sync_api import Browser, Page, expect

from conflictvla.eval.leaderboard.app import Board, serve
from conflictvla.eval.leaderboard.board import policy_page, table_page
from conflictvla.eval.leaderboard.ranking import Filters, Standing, placed_entries
from conflictvla.eval.policies.registry import SCRIPTED
from conflictvla.eval.submissions.results_file import read_results
from conflictvla.toolkit.errors import DatasetError

from ...browser import chromium, needs_chromium
from ..in_process import conflictvla
from .made_up_results import write_board

HOSTILE = ("<img src=x onerror=document.title='hit'>", "${7*7}{{7*7}}{7*7}", "=HYPERLINK(1)", "[a](javascript:1)")
NAMES = [f"policy-{number:03d}" for number in range(196)]
TAR, AMS = 8, 11
"""Columns of the table, from 1."""

PHONE = {"width": 390, "height": 844}

pytestmark = needs_chromium


@pytest.fixture(scope="module")
def board(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_board(tmp_path_factory.mktemp("board"), [*NAMES, *HOSTILE], verified=NAMES[:3])


@pytest.fixture(scope="module")
def address(board: Path) -> str:
    return serve(board, port=0, block=False)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as browser:
        yield browser


@pytest.fixture
def page(browser: Browser, address: str) -> Iterator[Page]:
    page = browser.new_page(viewport={"width": 1280, "height": 900})
    page.set_default_timeout(60_000)
    expect.set_options(timeout=60_000)
    page.goto(address)
    expect(page.locator("#results-table tr.entry")).to_have_count(200)
    yield page
    page.close()


def column(page: Page, number: int) -> list[str]:
    cells = page.locator(f"#results-table tr.entry > :nth-child({number})")
    return list(cells.evaluate_all("cells => cells.map(cell => cell.dataset.sort)"))


def test_two_hundred_entries_are_ranked_by_response_and_sorted_best_first_by_any_head_that_is_pressed(
    page: Page, board: Path
) -> None:
    placed = placed_entries(read_results(board), Filters())
    ranked = [one for one in placed if one.standing is Standing.RANKED]
    assert 0 < len(ranked) < len(placed)
    links = page.locator("#results-table tr.entry a")
    assert links.all_inner_texts() == [one.entry.result.policy_name for one in placed]
    assert page.locator("#results-table tbody.ranked tr.entry").count() == len(ranked)
    expect(page.locator("#results-table tbody.below_gate .heading")).to_contain_text("Not ranked")
    assert [rank for rank in column(page, 1) if rank] == [str(one.rank) for one in ranked]

    for head, number, best_first in (("TAR ↓", TAR, False), ("AMS ↑", AMS, True)):
        page.get_by_role("button", name=head, exact=True).click()
        for group in (slice(None, len(ranked)), slice(len(ranked), None)):
            values = [float(value) for value in column(page, number)[group]]
            assert values == sorted(values, reverse=best_first)
        expect(page.get_by_role("columnheader", name=head)).to_have_attribute("data-order", "best first")
    page.get_by_role("button", name="AMS").press("Enter")
    values = [float(value) for value in column(page, AMS)[: len(ranked)]]
    assert values == sorted(values)
    assert page.get_by_role("columnheader", name="AMS").get_attribute("aria-sort") == "ascending"
    page.get_by_role("button", name="Policy", exact=True).press("Space")
    names = [one.entry.result.policy_name for one in ranked]
    assert [name for name in column(page, 2)[: len(ranked)] if name in NAMES] == sorted(n for n in names if n in NAMES)


def test_what_was_run_stands_in_every_row_on_every_screen(page: Page) -> None:
    for width in (1280, 390):
        page.set_viewport_size({"width": width, "height": 844})
        runs = page.locator("#results-table tr.entry th .run")
        assert runs.count() == 200
        expect(runs.first).to_be_visible()
        expect(runs.first).to_have_text("complete · P0, P1 · states 0–1 · seed 7")


def test_the_head_stays_in_sight_while_the_rows_scroll(page: Page) -> None:
    page.locator("#results-table .scroll").evaluate("e => { e.scrollIntoView(); e.scrollTop = 3000 }")
    head = page.get_by_role("columnheader", name="TAR").bounding_box()
    frame = page.locator("#results-table .scroll").bounding_box()
    assert head is not None
    assert frame is not None
    assert abs(head["y"] - frame["y"]) < 2


def test_a_link_to_no_entry_shows_none(page: Page, address: str) -> None:
    page.goto(f"{address}?policy=withdrawn-123")
    expect(page.locator("#policy-page h2")).to_have_text("No such entry")
    page.get_by_label("Policy", exact=True).click()
    page.get_by_role("option", name="policy-007").click()
    expect(page.locator("#policy-page h2")).to_have_text("policy-007")


def test_filters_change_the_table_and_keep_the_order(page: Page) -> None:
    page.get_by_role("button", name="AMS").click()
    page.get_by_label("Conflict family").click()
    page.get_by_role("option", name="spatial").click()
    expect(page.locator("#results-table .count")).to_have_text("200 of 200 results: P0, spatial, all levels")
    expect(page.get_by_role("columnheader", name="AMS")).to_have_attribute("aria-sort", "descending")
    ranked = page.locator("#results-table tbody.ranked tr.entry").count()
    ams = [float(value) for value in column(page, AMS)[:ranked]]
    assert ams == sorted(ams, reverse=True)
    page.get_by_label("Verified only").check()
    expect(page.locator("#results-table tr.entry")).to_have_count(3)
    expect(page.locator("#results-table .mark").first).to_have_text("✓ verified")
    page.get_by_label("Policy's name contains").fill("002")
    expect(page.locator("#results-table tr.entry")).to_have_count(1)
    page.get_by_label("P1").check()
    expect(page.locator("#results-table .count")).to_have_text("1 of 200 results: P1, spatial, all levels")


def test_a_policys_link_opens_its_page_with_figures_and_rollouts(page: Page, address: str) -> None:
    link = page.get_by_role("link", name="policy-007")
    link.focus()
    link.press("Enter")
    expect(page.locator("#policy-page h2")).to_have_text("policy-007")
    assert page.locator("#policy-page figure svg").count() == 4
    rollouts = page.get_by_role("link", name="ann/rollouts at aaaaaaaa")
    assert (rollouts.get_attribute("href") or "").endswith(f"/datasets/ann/rollouts/tree/{'a' * 40}")
    expect(page.locator("#policy-page tbody tr")).to_have_count(9)


def test_everything_can_be_reached_with_the_keyboard_alone(page: Page) -> None:
    reached = set()
    for _ in range(30):
        page.keyboard.press("Tab")
        focused = "document.activeElement"
        reached.add(page.evaluate(f"{focused}.innerText || {focused}.ariaLabel || {focused}.type"))
        if "Verified" in reached:
            break
    assert {"Results", "PCSR ↑", "AMS ↑", "Pairs ↑", "Verified", "checkbox"} <= reached


def test_scatter_and_guide_are_there_and_the_papers_ranges_are_no_entries(page: Page) -> None:
    page.get_by_role("tab", name="Outcome against process").click()
    expect(page.locator("#scatter figure svg")).to_have_count(3)
    expect(page.locator("#scatter")).to_contain_text("Context, not entries")
    page.get_by_role("tab", name="Submit").click()
    expect(page.get_by_role("heading", name="Submit your policy")).to_be_visible()


def test_a_phone_shows_it_without_the_page_scrolling_sideways(page: Page) -> None:
    page.set_viewport_size(PHONE)  # type: ignore[arg-type]
    width = "document.documentElement.scrollWidth"
    assert page.evaluate(width) <= PHONE["width"]
    scroller = page.locator("#results-table .scroll")
    assert scroller.evaluate("e => e.scrollWidth > e.clientWidth")
    scroller.evaluate("e => { e.scrollLeft = 300 }")
    first = page.locator("#results-table tr.entry th").first.bounding_box()
    assert first is not None
    assert 0 <= first["x"] < 60
    page.goto(page.url + "?policy=policy-007-" + read_name(page))
    expect(page.locator("#policy-page h2")).to_have_text("policy-007")
    assert page.evaluate(width) <= PHONE["width"]


def read_name(page: Page) -> str:
    href = page.get_by_role("link", name="policy-007").get_attribute("href") or ""
    return href.rsplit("-", 1)[-1]


def test_hostile_text_are_shown_as_they_are(page: Page) -> None:
    for name in HOSTILE:
        expect(page.locator("#results-table").get_by_text(name, exact=True)).to_be_visible()
    assert page.locator("#results-table img").count() == 0
    page.get_by_role("tab", name="One policy").click()
    page.get_by_label("Policy", exact=True).click()
    page.get_by_role("option", name=HOSTILE[0]).click()
    expect(page.locator("#policy-page h2")).to_have_text(HOSTILE[0])
    page.get_by_role("tab", name="Outcome against process").click()
    expect(page.locator("#scatter .legend")).to_contain_text(HOSTILE[0])
    assert page.title() == "ConflictVLA leaderboard"


def test_a_damaged_file_does_not_take_the_others_down(board: Path, tmp_path: Path) -> None:
    copy = Path(shutil.copytree(board, tmp_path / "copy"))
    (copy / "results/broken.json").write_text("{")
    (copy / "verified/broken.json").write_text("[]")
    assert len(Board(copy).entries()) == 200
    with pytest.raises(DatasetError, match=r"broken\.json"):
        read_results(copy)
    with pytest.raises(DatasetError, match=r"holds no results"):
        Board(tmp_path).entries()


def test_without_data_it_shows_the_scripted_agents_as_marks_of_the_scale() -> None:
    placed = placed_entries(Board("packaged").entries(), Filters())
    assert {one.standing for one in placed} == {Standing.SCALE}
    agents = {one.entry.result.policy_name: one for one in placed}
    assert agents.keys() >= set(SCRIPTED)
    for one in placed:
        assert one.entry.result.coverage.of == 14_530
        assert one.entry.verification is not None
    order = [one.entry.result.policy_name for one in placed]
    assert order[0] == "refuse"
    assert {"fail_persist", "persist"} <= set(order[-4:])
    assert agents["refuse"].row.response.value > 0.95
    assert agents["fail_persist"].row.response.value < 0.1
    assert agents["persist"].row.response.value < 0.05
    rgsr = {name: one.row.measures["RGSR"].value for name, one in agents.items()}
    assert rgsr["refuse"] == rgsr["fail_persist"] == 0.0


def test_pages_without_a_value_or_a_fitting_entry_say_so(board: Path) -> None:
    entries = read_results(board)
    assert "No result fits" in table_page(entries, Filters(text="nobody"))
    p0_alone = [replace(e, result=replace(e.result, rows=e.result.rows[:1])) for e in entries]
    assert "No entry was run under P1; there are results under P0." in table_page(p0_alone, Filters(prompt="P1"))
    alone = replace(entries[0].result, rows=tuple(r for r in entries[0].result.rows if r.prompt == "P1"), repo_id="")
    page = policy_page(replace(entries[0], result=alone), "P0", "https://hub")
    assert '<th scope="col" class="words">P1</th>' in page
    assert "not on the Hub" in page


@pytest.mark.slow
def test_a_space_starts_and_shows_its_results(board: Path, tmp_path: Path) -> None:
    done = conflictvla("leaderboard", "--data", "hf://maintainers/results", "--space", tmp_path / "space")
    assert done.returncode == 0, done.stderr
    card = (tmp_path / "space/README.md").read_text()
    assert card.startswith("---\ntitle: ConflictVLA leaderboard\n")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    environment = {**os.environ, "RESULTS": str(board), "PORT": str(port)}
    space = subprocess.Popen([sys.executable, "app.py"], cwd=tmp_path / "space", env=environment)
    try:
        client = httpx.Client(transport=httpx.HTTPTransport(retries=60))
        for _ in range(240):
            try:
                config = client.get(f"http://127.0.0.1:{port}/config", timeout=5)
                break
            except httpx.HTTPError:
                assert space.poll() is None
        assert json.loads(config.text)["title"] == "ConflictVLA leaderboard"
    finally:
        space.terminate()
        space.wait()


def test_a_space_gets_the_package_from_where_it_is_asked_for(tmp_path: Path) -> None:
    wanted = "conflictvla[serve] @ git+https://host/owner/conflictvla@0123abc"
    for folder, options in (("released", ()), ("early", ("--package", wanted))):
        conflictvla("leaderboard", "--data", "hf://maintainers/results", "--space", tmp_path / folder, *options)
    assert (tmp_path / "released/requirements.txt").read_text().startswith("conflictvla[serve]==")
    assert (tmp_path / "early/requirements.txt").read_text() == f"{wanted}\n"


def test_wrong_use_is_one_line(tmp_path: Path) -> None:
    done = conflictvla("leaderboard", "--data", tmp_path)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert "holds no results" in done.stderr
    done = conflictvla("leaderboard", "--data", tmp_path, "--space", tmp_path / "space")
    assert "a Space reads its results from the Hub" in done.stderr
