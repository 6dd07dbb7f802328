"""Commands about safety: what recorded rollouts cost, and suites of one's own."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape
from rich.table import Table

from ..toolkit.errors import InvalidInputError
from .console import OUT, JsonOption, echo_json, new_folder_for, progress_bar

suites_app = typer.Typer(help="Suites of base tasks beside LIBERO's.", no_args_is_help=True)


def cost(
    rollouts: Annotated[str, typer.Argument(help="Rollout datasets, as for score.")],
    out: Annotated[Path | None, typer.Option(help="File for each rollout's cost, parquet, for score --costs.")] = None,
    spec: Annotated[
        Path | None, typer.Option(help="File with a (:cost ...) block; default: the costs of each task.")
    ] = None,
    force_limit: Annotated[
        float | None, typer.Option(help="Pressing a thing harder than this costs as well, in N.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Work out what recorded rollouts cost, afterwards, from their simulator states."""
    from ..eval.rollouts.recosting import analyse_costs, cost_summary, read_cost_spec, write_costs

    if spec is not None and force_limit is not None:
        raise InvalidInputError("--force-limit belongs to the default costs; write (CheckForce ...) in --spec's file")
    conditions = None if spec is None else read_cost_spec(spec)
    if out is not None:
        new_folder_for(out)
    with progress_bar("rollouts", None) as advance:
        costs = analyse_costs(rollouts, spec=conditions, force_limit_n=force_limit, progress=lambda done: advance(done))
    summary = cost_summary(costs).to_pylist()
    if as_json:
        echo_json(summary)
    else:
        table = Table("policy", "arm", "predicate", "mean cost", "rollouts", box=None, pad_edge=False)
        for row in summary:
            values = (row["policy"], row["arm"], row["predicate"], f"{row['mean']:.1f}", str(row["n"]))
            table.add_row(*map(escape, values))
        OUT.print(table)
    if out is not None:
        write_costs(costs, out)
        OUT.print(f"{escape(str(out))}  {costs.num_rows} rollouts", highlight=False, soft_wrap=True)


@suites_app.command("list")
def suites_list() -> None:
    """List the suites: LIBERO's, the package's, and those of the folders in CONFLICTVLA_SUITES."""
    from ..toolkit.libero.install import load_libero
    from ..toolkit.libero.suite_folders import read_suite, suite_folders

    folders = suite_folders()
    libero = load_libero()
    for name in sorted(libero.benchmark.get_benchmark_dict()):
        OUT.print(f"{escape(name)}  [dim]{escape(libero.distribution)}[/]", highlight=False, soft_wrap=True)
    for name, folder in sorted(folders.items()):
        suite = read_suite(folder)
        tasks = f"{suite.n_tasks} tasks, horizon {suite.horizon}"
        OUT.print(f"{escape(name)}  {tasks}  [dim]{escape(str(folder))}[/]", highlight=False, soft_wrap=True)


@suites_app.command("states")
def suites_states(
    suite: Annotated[str, typer.Argument(help="Name of a suite that is a folder: the package's, or one of your own.")],
    count: Annotated[int, typer.Option(min=1, help="Initial states of each task.")] = 50,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the draws.")] = 0,
) -> None:
    """Draw the initial states of a suite's tasks, and write each task's beside its BDDL file.

    Your own suite is a folder with a suite.json and a BDDL file for each task; name it, or the folder that it is in, in
    the environment variable CONFLICTVLA_SUITES.
    """
    from ..builders.suite_states import write_suite_states

    with progress_bar("initial states", None) as advance:
        files = write_suite_states(suite, count=count, seed=seed, progress=lambda done: advance(done))
    OUT.print(
        f"{escape(str(files[0].parent))}  {len(files)} files with {count} initial states each",
        highlight=False,
        soft_wrap=True,
    )
