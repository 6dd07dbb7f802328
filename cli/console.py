"""What commands share: what they print, how they end, and what long ones show while they work."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import typer
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Column, Table

from ..toolkit.json_values import null_for_nan

OUT = Console()
ERR = Console(stderr=True)

FOUND_SOMETHING_WRONG = 1
WRONG_USAGE = 2

LOG_EVERY_S = 60.0
"""How often a long command writes to a log how far it is."""


def print_line(text: str, *, to: Console = OUT) -> None:
    """Print text as it is: in one line however long, and nothing in it is markup."""
    print_markup(escape(text), to=to)


def print_markup(markup: str, *, to: Console = OUT) -> None:
    """Print one line in rich's markup; whatever a user or a file has written must be escaped."""
    to.print(markup, highlight=False, soft_wrap=True)


def print_error(text: str) -> None:
    """Print the one line that wrong use is answered with."""
    print_markup(f"[bold red]error:[/] {escape(text)}", to=ERR)


def print_warning(text: str) -> None:
    """Print what a user should look at, though the command has done its work."""
    print_markup(f"[bold yellow]warning:[/] {escape(text)}", to=ERR)


def print_json(content: Any) -> None:
    """Print content as one line of JSON, with null for what is not a number."""
    typer.echo(json.dumps(null_for_nan(content), allow_nan=False))


def plain_table(*heads: str) -> Table:
    """A table without lines, to be filled and printed; nothing in it is cut, but words may be broken."""
    return Table(*(Column(head, overflow="fold") for head in heads), box=None, pad_edge=False)


@contextmanager
def progress_bar(what: str, total: int | None) -> Iterator[Callable[..., None]]:
    """A progress bar on the error stream; the yielded function names what was just done and advances it.

    Where nobody watches, as in a batch job's log, it is a line a minute.
    """
    if not ERR.is_terminal:
        yield _log_lines(what, total)
        return
    columns = (
        TextColumn(what),
        BarColumn(bar_width=24),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        TextColumn("{task.description}", markup=False),
    )
    with Progress(*columns, console=ERR, transient=True) as bar:
        job = bar.add_task("starting the simulator", total=total)
        yield lambda done, advance=1: bar.update(job, advance=int(advance), description=done)


def _log_lines(what: str, total: int | None) -> Callable[..., None]:
    """Stands in for a progress bar: prints how far a job is, at most once in ``LOG_EVERY_S``."""
    done = done_then = 0
    then = time.monotonic()

    def advance(text: str, step: int = 1) -> None:
        nonlocal done, done_then, then
        done, elapsed_s = done + int(step), time.monotonic() - then
        if elapsed_s < LOG_EVERY_S:
            return
        rate = 60 * (done - done_then) / elapsed_s
        of_all = "" if total is None else f"/{total}"
        left = "" if total is None or not rate else f", {(total - done) / rate:.0f} min left"
        print_line(f"{what} {done}{of_all}, {rate:.3g} a minute{left}: {text}", to=ERR)
        done_then, then = done, time.monotonic()

    return advance
