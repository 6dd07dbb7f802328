"""The leaderboard as a Gradio app: filters, table, a page for each policy, outcome against process, the guide."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ...toolkit.errors import MissingExtraError
from ...toolkit.listening import check_can_listen
from ...toolkit.prompts import BUILT_IN
from ...toolkit.records import Family, Level, Prompt
from ..recordings.sources import HUB, results_folder
from ..submissions.results import ALL, Entry
from ..submissions.results_file import read_results
from .board import asset, masthead, missing_page, policy_page, scatter_page, table_page
from .ranking import Filters, placed_entries

TITLE = "ConflictVLA leaderboard"

REFRESH_S = 600.0
"""Results on the Hub are looked up again after this time."""

FILTERS = ("prompt", "family", "level", "text", "verified_only")
"""Fields of ``Filters`` in the order of their controls."""

FONT = ("system-ui", "-apple-system", "Segoe UI", "Roboto", "Arial", "sans-serif")


@dataclass(slots=True)
class Board:
    """Entries of a folder or of a dataset on the Hub, which is read again from time to time.

    Attributes:
        source: Folder, or ``hf://OWNER/NAME``; ``packaged`` for the scripted agents' results.
        clock: Seconds that only grow.
    """

    source: str | Path
    clock: Callable[[], float] = time.monotonic
    _entries: tuple[Entry, ...] = ()
    _read_at: float | None = field(default=None)

    def entries(self) -> tuple[Entry, ...]:
        """The entries now. A file that cannot be read is left out here: the others are still shown.

        Raises:
            DatasetError: There is nothing to show.
        """
        due = self._read_at is None or (str(self.source).startswith(HUB) and self.clock() - self._read_at > REFRESH_S)
        if due:
            self._entries = read_results(results_folder(self.source), partial=True)
            self._read_at = self.clock()
        return self._entries

    def entry(self, name: str) -> Entry | None:
        """The entry of that name, or None: another policy's page must not pass for it."""
        return next((entry for entry in self.entries() if entry.name == name), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Components:
    """The app's components, as Gradio has them.

    Attributes:
        filters: The controls, in the order of ``FILTERS``.
        tabs: The tabs.
        table: The table of results.
        choice: The policy whose page is shown.
        page: Its page.
        scatter: Outcome against process.
    """

    filters: tuple[Any, ...]
    tabs: Any
    table: Any
    choice: Any
    page: Any
    scatter: Any


def build_app(source: str | Path) -> Any:
    """The app, as ``gradio.Blocks``.

    Args:
        source: Folder with ``results/*.json``, or ``hf://OWNER/NAME`` with them.

    Raises:
        MissingExtraError: Gradio is not installed.
        DatasetError: There are no results to show.
    """
    gr = _gradio()
    board = Board(source)
    board.entries()
    with gr.Blocks(title=TITLE, analytics_enabled=False) as app:
        gr.HTML(masthead())
        with gr.Row():
            filters = (
                gr.Radio([*BUILT_IN], value=Prompt.P0.value, label="Prompt condition"),
                gr.Dropdown([ALL, *map(str, Family)], value=ALL, label="Conflict family"),
                gr.Dropdown([ALL, *map(str, Level)], value=ALL, label="Level"),
                gr.Textbox(label="Policy's name contains", max_lines=1),
                gr.Checkbox(label="Verified only"),
            )
        with gr.Tabs() as tabs:
            with gr.Tab("Results", id="results"):
                table = gr.HTML(elem_id="results-table", apply_default_css=False, js_on_load=asset("board.js"))
            with gr.Tab("One policy", id="policy"):
                choice = gr.Dropdown(label="Policy", elem_id="policy-choice")
                page = gr.HTML(elem_id="policy-page", apply_default_css=False)
            with gr.Tab("Outcome against process", id="scatter"):
                scatter = gr.HTML(elem_id="scatter", apply_default_css=False)
            with gr.Tab("Submit", id="submit"):
                gr.Markdown(asset("guide.md"))
        parts = _Components(filters=filters, tabs=tabs, table=table, choice=choice, page=page, scatter=scatter)
        _connect(app, board, parts)
    return app


def _connect(app: Any, board: Board, parts: _Components) -> None:
    """Have the pages follow filters, choices and links."""
    gr, endpoint = _gradio(), _endpoint()

    def show(*values: Any) -> tuple[str, str]:
        filters = Filters(**dict(zip(FILTERS, values, strict=True)))
        return table_page(board.entries(), filters), scatter_page(board.entries(), filters)

    def show_policy(name: str, prompt: str) -> str:
        entry = board.entry(name)
        return missing_page(name) if entry is None else policy_page(entry, prompt, endpoint)

    def open_linked_policy(request: Any) -> tuple[Any, Any, str]:
        """Show the page of the policy that a link names, or that there is no such entry."""
        named = str(request.query_params.get("policy", ""))
        placed = placed_entries(board.entries(), Filters())
        order = {one.entry.name: position for position, one in enumerate(placed)}
        entries = sorted(board.entries(), key=lambda entry: order.get(entry.name, len(order)))
        known = [(f"{e.result.policy_name} ({e.result.policy_revision})", e.name) for e in entries]
        shown = board.entry(named) if named else entries[0]
        selected = gr.Tabs(selected="policy" if named else "results")
        if shown is None:
            return selected, gr.Dropdown(choices=known, value=None), missing_page(named)
        page = policy_page(shown, Filters().prompt, endpoint)
        return selected, gr.Dropdown(choices=known, value=shown.name), page

    # Gradio passes the request to a parameter of this type, and cannot look up a name that is imported late.
    open_linked_policy.__annotations__["request"] = gr.Request
    quiet = {"show_progress": "hidden", "api_visibility": "private"}
    filters, prompt = list(parts.filters), parts.filters[FILTERS.index("prompt")]
    for control in filters:
        control.change(show, filters, [parts.table, parts.scatter], **quiet)
    gr.on([parts.choice.input, prompt.change], show_policy, [parts.choice, prompt], parts.page, **quiet)
    app.load(show, filters, [parts.table, parts.scatter], **quiet)
    app.load(open_linked_policy, None, [parts.tabs, parts.choice, parts.page], **quiet)


def serve(
    source: str | Path,
    *,
    host: str = "127.0.0.1",
    port: int = 7860,
    block: bool = True,
    ready: Callable[[str], None] | None = None,
) -> str:
    """Start the leaderboard; returns its address once it answers.

    Args:
        source: See ``build_app``.
        host: Where to listen; ``0.0.0.0`` for all of this machine's addresses.
        port: 0 for any free one.
        block: Whether to serve until interrupted before returning.
        ready: Called with the address once it answers.

    Raises:
        InvalidInputError: It cannot listen there.
        MissingExtraError: Gradio is not installed.
        DatasetError: There are no results to show.
    """
    app = build_app(source)
    check_can_listen(host, port)
    theme = _gradio().themes.Default(font=FONT, font_mono=("ui-monospace", "monospace"))
    _, address, _ = app.launch(
        server_name=host,
        server_port=port or None,
        prevent_thread_lock=True,
        quiet=True,
        ssr_mode=False,
        theme=theme,
        footer_links=["gradio"],
    )
    if ready:
        ready(str(address).rstrip("/"))
    if block:
        app.block_thread()
    return str(address)


def _gradio() -> Any:
    try:
        import gradio
    except ImportError as error:
        raise MissingExtraError("the leaderboard", "serve", "gradio") from error
    return gradio


def _endpoint() -> str:
    from huggingface_hub.constants import ENDPOINT

    return ENDPOINT
