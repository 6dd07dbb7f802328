"""The command that joins runs: merge."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ..toolkit.counting import counted
from ..toolkit.errors import InvalidInputError
from .console import ERR, FOUND_SOMETHING_WRONG, print_json, print_line, print_warning
from .options import JsonOption, all_local, new_folder


def merge(
    runs: Annotated[
        list[Path], typer.Argument(metavar="RUN...", help="Folders with runs, finished or not.", callback=all_local)
    ],
    out: Annotated[
        Path | None,
        typer.Option(
            help="Folder for the joined runs; without it, the one RUN given is finished.", callback=new_folder
        ),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Join runs of the same policy into one dataset, or finish a run whose parts are all there.

    Of several policies each gets a dataset of its own, OUT/rollouts/<policy>. Rollouts under different settings are
    refused, and so are two different recordings of one rollout; the same recording twice is taken once.
    """
    from ..builders.rollouts.run_layout import failures_file
    from ..eval.recordings.finding import ListedFailures
    from ..eval.rollouts.run_folder.merging import finish_runs, merge_runs

    if out is not None:
        merged, unfinished = merge_runs(runs, out)
        for run in unfinished:
            print_warning(
                f"{run.dataset}: unfinished, {run.done:,} of {counted(run.planned, 'rollout')}, taken as they are"
            )
        for one in merged:
            repeated = f", {one.repeated} of them there more than once, each time the same" if one.repeated else ""
            _show(one.dataset, one.rollouts, repeated, as_json=as_json)
        return
    if len(runs) != 1:
        raise InvalidInputError(f"{len(runs)} runs: give --out, the folder for the joined runs")
    failed = False
    for dataset, state in finish_runs(runs[0], lambda line: print_line(line, to=ERR)).items():
        _show(dataset, len(state.records), "", as_json=as_json)
        if state.failures:
            failed = True
            print_warning(str(ListedFailures(file=failures_file(dataset), rollouts=len(state.failures))))
    if failed:
        raise typer.Exit(FOUND_SOMETHING_WRONG)


def _show(dataset: Path, rollouts: int, note: str, *, as_json: bool) -> None:
    if as_json:
        print_json({"dataset": str(dataset), "rollouts": rollouts})
    else:
        print_line(f"{dataset}  {counted(rollouts, 'rollout')}{note}")
