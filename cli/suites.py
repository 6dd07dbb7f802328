"""Commands about suites of base tasks beside LIBERO's: list them, draw their initial states."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.markup import escape

from ..eval.selection import MOST_NUMBERS
from ..toolkit.counting import counted
from .console import print_line, print_markup, progress_bar
from .options import SEEDS, within

suites_app = typer.Typer(help="Suites of base tasks beside LIBERO's.", no_args_is_help=True)


@suites_app.command("list")
def suites_list() -> None:
    """List the suites: LIBERO's, the package's, and those of the folders in CONFLICTVLA_SUITES."""
    from ..toolkit.libero.install import load_libero
    from ..toolkit.libero.suite_folders import read_suite, suite_folders

    folders = suite_folders()
    libero = load_libero()
    for name in sorted(libero.benchmark.get_benchmark_dict()):
        print_markup(f"{escape(name)}  [dim]{escape(libero.distribution)}[/]")
    for name, folder in sorted(folders.items()):
        suite = read_suite(folder)
        tasks = f"{counted(suite.n_tasks, 'task')}, horizon {suite.horizon}"
        print_markup(f"{escape(name)}  {tasks}  [dim]{escape(str(folder))}[/]")


@suites_app.command("states")
def suites_states(
    suite: Annotated[str, typer.Argument(help="Name of a suite that is a folder: the package's, or one of your own.")],
    count: Annotated[int, typer.Option(help="Initial states of each task.", callback=within(1, MOST_NUMBERS))] = 50,
    seed: Annotated[int, typer.Option(help="Seed of the draws.", callback=SEEDS)] = 0,
) -> None:
    """Draw the initial states of a suite's tasks, and write each task's beside its BDDL file.

    Your own suite is a folder with a suite.json and a BDDL file for each task; name it, or the folder that it is in, in
    the environment variable CONFLICTVLA_SUITES.
    """
    from ..builders.suite_states import write_suite_states

    with progress_bar("initial states", None) as advance:
        files = write_suite_states(suite, count=count, seed=seed, progress=advance)
    print_line(f"{files[0].parent}  {counted(len(files), 'file')} with {counted(count, 'initial state')} each")
