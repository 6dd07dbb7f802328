"""The command line: its commands and groups of commands, and the entry point."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from ..toolkit.errors import ConflictVLAError
from .console import WRONG_USAGE, print_error
from .merging import merge
from .policies import presets, serve_policy, train_example
from .preflight import doctor, probe
from .release import publish, rollouts_app
from .rollouts import demo, render, replay, run
from .scores import compare, cost, report, score
from .submissions import leaderboard, submit, verify
from .suites import suites_app
from .tasks import tasks_app

app = typer.Typer(
    help="What does a vision-language-action model do when its task makes no sense?",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
)
for command in (
    probe,
    presets,
    serve_policy,
    train_example,
    cost,
    demo,
    run,
    merge,
    replay,
    render,
    score,
    compare,
    report,
    doctor,
    publish,
    verify,
    submit,
    leaderboard,
):
    app.command()(command)
app.add_typer(suites_app, name="suites")
app.add_typer(tasks_app, name="tasks")
app.add_typer(rollouts_app, name="rollouts")


@app.callback()
def about(
    debug: Annotated[bool, typer.Option("--debug", help="Show tracebacks; may stand anywhere on the line.")] = False,
) -> None:
    """What does a vision-language-action model do when its task makes no sense?"""


def main() -> None:
    """Entry point: errors of ours become one line and exit code 2; ``--debug`` shows the traceback."""
    debug = "--debug" in sys.argv
    sys.argv = [argument for argument in sys.argv if argument != "--debug"]
    try:
        app()
    except ConflictVLAError as error:
        if debug:
            raise
        print_error(str(error))
        sys.exit(WRONG_USAGE)
