"""The site as it is built: complete, from this machine alone, and fit to read on a phone."""

from __future__ import annotations

import functools
import http.server
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser

import conflictvla

from .browser import chromium, needs_chromium
from .pages import PAGES, REPOSITORY

WIDTHS = (1280, 390)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, built as ``make docs`` does in a fresh clone: any warning, such as a dead link, is an error."""
    shutil.rmtree(REPOSITORY / "build" / "docs", ignore_errors=True)
    out = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--config-file", "docs/mkdocs.yml"]
    built = subprocess.run(
        [*command, "--site-dir", str(out)], cwd=REPOSITORY, capture_output=True, text=True, check=False
    )
    assert built.returncode == 0, built.stderr
    return out


@pytest.fixture(scope="module")
def address(site: Path) -> Iterator[str]:
    """Where the site is served."""
    handler = functools.partial(Quiet, directory=str(site))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *arguments: object) -> None:
        pass


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as opened:
        yield opened


def html_of(page: Path) -> str:
    return str(page.relative_to(PAGES).with_suffix(".html"))


def test_every_page_is_in_the_menu(site: Path) -> None:
    menu = (site / "index.html").read_text(encoding="utf-8")
    for page in PAGES.rglob("*.md"):
        assert f'href="{html_of(page)}"' in menu


def test_the_api_page_has_the_real_docstrings(site: Path) -> None:
    text = (site / "api.html").read_text(encoding="utf-8")
    for name, home in conflictvla._HOMES.items():
        assert f'id="conflictvla{home}.{name}"' in text
    assert "Rollouts are stored as a LeRobotDataset v3.0" in text


@needs_chromium
@pytest.mark.parametrize("width", WIDTHS)
def test_pages_fit_the_screen_and_ask_no_other_machine(address: str, browser: Browser, width: int) -> None:
    page = browser.new_page(viewport={"width": width, "height": 900})
    asked: list[str] = []
    said: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.on("pageerror", lambda error: said.append(str(error)))
    for source in PAGES.rglob("*.md"):
        page.goto(f"{address}/{html_of(source)}")
        assert page.locator("article h1").count() == 1
        assert page.evaluate("document.documentElement.scrollWidth") <= width, source
    page.close()
    assert [url for url in asked if not url.startswith((address, "data:", "blob:"))] == []
    assert said == []


@needs_chromium
def test_the_search_finds_a_page(address: str, browser: Browser) -> None:
    page = browser.new_page(viewport={"width": WIDTHS[0], "height": 900})
    page.goto(f"{address}/index.html", wait_until="networkidle")
    # Whole words at once can be lost while the index is still being read.
    page.get_by_role("textbox", name="Search").press_sequentially("selectivity", delay=50)
    page.locator('.md-search-result__link[href*="measures.html"]').first.click()
    page.wait_for_url("**/measures.html*")
    page.close()
