"""What commands share: where they print, how they end, and what long ones show while they work."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from ..toolkit.errors import InvalidInputError
from ..toolkit.json_values import null_for_nan
from ..toolkit.records import Arm

if TYPE_CHECKING:
    from ..eval.rollouts.run import RunProgress

JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON for machines.")]
TasksOption = Annotated[Path | None, typer.Option("--tasks", help="Another task release; default: the packaged one.")]
ToleranceOption = Annotated[
    float,
    typer.Option(help="Largest difference of positions, in m and rad; 0.01 where records were rounded otherwise."),
]

OUT = Console()
ERR = Console(stderr=True)

FOUND_SOMETHING_WRONG = 1
WRONG_USAGE = 2

LOG_EVERY_S = 60.0
"""How often a long command says in a log how far it is."""


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
        ERR.print(f"{what} {done}{of_all}, {rate:.3g} a minute{left}: {escape(text)}", soft_wrap=True, highlight=False)
        done_then, then = done, time.monotonic()

    return advance


@contextmanager
def run_progress(total: int, *, as_json: bool) -> Iterator[Callable[[RunProgress], None]]:
    """What is told after each rollout: an event a line for machines, or a bar with the success so far per arm."""
    if as_json:
        yield lambda state: echo_json(_event(state))
        return
    tally: dict[str, list[bool]] = {arm: [] for arm in Arm}
    with progress_bar("rollouts", total) as advance:

        def show(state: RunProgress) -> None:
            if state.job is None:
                advance("continuing" if state.done else "starting the simulator", state.done)
                return
            tally[state.job.instance.arm].append(bool(state.success))
            rates = ", ".join(f"{arm} {sum(won)}/{len(won)}" for arm, won in tally.items() if won)
            advance(f"reached the goal: {rates}")

        yield show


def _event(state: RunProgress) -> dict[str, Any]:
    job = state.job
    return {
        "done": state.done,
        "total": state.total,
        "instance_id": None if job is None else job.instance.instance_id,
        "init_state": None if job is None else job.init_state,
        "success": state.success,
        "error": state.error,
        "clipped_actions": state.clipped_actions,
    }


def by_agent(advance: Callable[..., None]) -> Callable[[str, RunProgress], None]:
    """What several agents' runs tell, for one bar: each rollout, and at once all that an earlier call finished."""

    def tell(agent: str, state: RunProgress) -> None:
        if state.job is None:
            advance(f"{agent}: ", state.done)
        else:
            advance(f"{agent}: {state.job.instance.instruction}")

    return tell


def echo_json(content: Any) -> None:
    """Print content as one line of JSON, with null for what is not a number."""
    typer.echo(json.dumps(null_for_nan(content), allow_nan=False))


def new_folder_for(file: Path) -> None:
    """Make the folder that a file goes to.

    Raises:
        InvalidInputError: It cannot be made.
    """
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InvalidInputError(f"{file}: cannot be written ({error.strerror}); choose another --out") from error
