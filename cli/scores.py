"""Commands that work recorded rollouts out: score, compare, report, cost."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.markup import escape

from ..toolkit.counting import counted
from ..toolkit.errors import InvalidInputError
from .console import (
    ERR,
    FOUND_SOMETHING_WRONG,
    OUT,
    WRONG_USAGE,
    plain_table,
    print_json,
    print_line,
    print_warning,
    progress_bar,
)
from .options import JsonOption, PartialOption, RolloutsArgument, local, new_file, new_folder, within
from .run_progress import warn_of_missing

if TYPE_CHECKING:
    from ..eval.scores.scores import Scores


def score(
    rollouts: RolloutsArgument,
    out: Annotated[Path | None, typer.Option(help="File for the scores as JSON.", callback=new_file)] = None,
    by: Annotated[
        str | None,
        typer.Option(
            help="Table: overall, family, level, suite, prompt, success, costs, ...; default: overall, or success "
            "where there are references only."
        ),
    ] = None,
    supplementary: Annotated[bool, typer.Option("--supplementary", help="Also supplementary and behaviour.")] = False,
    strict: Annotated[bool, typer.Option("--strict", help="List all defects and refusals; exit 2 if any.")] = False,
    partial: PartialOption = False,
    ray: Annotated[str | None, typer.Option(help="Address of a Ray cluster to score on, or 'local'.")] = None,
    costs: Annotated[
        Path | None, typer.Option(help="File of conflictvla cost, in place of recorded costs.", callback=local)
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Score recorded rollouts; needs neither simulator nor torch. Exit code 1 where pairs or episodes are left out."""
    from ..eval.scores.scores import score as score_rollouts
    from ..eval.scores.terminal import print_table
    from ..eval.scores.text_tables import text_table

    if strict and partial:
        raise InvalidInputError("--strict refuses what --partial leaves out: give one of them")
    warn_of_missing(rollouts)
    scores = score_rollouts(
        rollouts, supplementary=supplementary, partial=strict or partial, ray_address=ray, costs=costs
    )
    incomplete = bool(scores.left_out or scores.refusals or scores.refused_controls)
    if strict and incomplete:
        for complaint in (*scores.left_out, *scores.refusals, *scores.refused_controls):
            print_line(str(complaint), to=ERR)
        raise typer.Exit(WRONG_USAGE)
    if out is not None:
        scores.write(out)
    shown = by or ("overall" if scores.provenance.conflicts else "success")
    if as_json:
        print_json(text_table(scores, shown).data.to_pylist())
    else:
        print_table(scores, shown, OUT)
    if not scores.provenance.conflicts:
        print_line(
            "no conflict rollouts: what is there shows plain success",
            to=ERR,
        )
    _print_what_is_missing(scores)
    if incomplete:
        raise typer.Exit(FOUND_SOMETHING_WRONG)


def _print_what_is_missing(scores: Scores) -> None:
    for field, count in scores.refusals_by_field().items():
        print_line(f"refused {counted(count, 'conflict rollout')}: {field}", to=ERR)
    for field, count in scores.refused_controls_by_field().items():
        print_line(f"refused {counted(count, 'control rollout')}: {field}", to=ERR)
    for field, count in scores.left_out_by_field().items():
        print_line(f"left out for {counted(count, 'defect')}: {field}", to=ERR)
    for deviation in scores.deviations:
        print_warning(str(deviation))


def compare(
    first: Annotated[str, typer.Argument(metavar="A", help="One policy: its scores file, or its rollouts.")],
    second: Annotated[str, typer.Argument(metavar="B", help="The other policy: its scores file, or its rollouts.")],
    as_json: JsonOption = False,
) -> None:
    """Put two policies side by side on the cases and initial states that both have, with paired intervals."""
    from ..eval.scores.comparison import compare_policies, comparison_table, load_scores
    from ..eval.scores.terminal import print_text_table

    comparison = compare_policies(load_scores(first), load_scores(second))
    if as_json:
        print_json(comparison.table.to_pylist())
    else:
        print_text_table(comparison_table(comparison), OUT)


def report(
    rollouts: RolloutsArgument,
    out: Annotated[Path, typer.Option(help="The HTML file.", callback=new_file)] = Path("report.html"),
    picture: Annotated[
        Path | None, typer.Option(help="Also outcome against process, as an SVG file.", callback=new_file)
    ] = None,
    tables: Annotated[
        Path | None, typer.Option(help="Folder for the tables: md, tex, csv and json.", callback=new_folder)
    ] = None,
    figures: Annotated[
        Path | None, typer.Option(help="Folder for the figures: svg and png.", callback=new_folder)
    ] = None,
    videos: Annotated[
        Path | None, typer.Option(help="Folder of conflictvla render: shows the pair's videos.", callback=local)
    ] = None,
    partial: PartialOption = False,
) -> None:
    """Score recorded rollouts and write one self-contained HTML report."""
    from ..eval.recordings.sources import local_folder
    from ..eval.report import check_png, write_figures, write_picture, write_report, write_tables
    from ..eval.scores.scores import score as score_rollouts

    files = {each.absolute() for each in (out, picture) if each is not None}
    if (picture is not None and len(files) == 1) or files & {each.absolute() for each in (tables, figures) if each}:
        raise InvalidInputError("--out, --picture and the folders of --tables and --figures need names of their own")
    if figures is not None:
        check_png()
    warn_of_missing(rollouts)
    scores = score_rollouts(rollouts, supplementary=True, partial=partial)
    write_report(scores, local_folder(rollouts), out, videos=videos)
    print_line(f"{out}  open it in a browser")
    if picture is not None:
        write_picture(scores, picture)
        print_line(f"{picture}  outcome against process")
    for folder, write in ((tables, write_tables), (figures, write_figures)):
        if folder is not None:
            print_line(f"{folder}  {counted(len(write(scores, folder)), 'file')}")


def cost(
    rollouts: Annotated[str, typer.Argument(help="Rollout datasets, as for score.")],
    out: Annotated[
        Path | None, typer.Option(help="File for each rollout's cost, parquet, for score --costs.", callback=new_file)
    ] = None,
    spec: Annotated[
        Path | None,
        typer.Option(help="File with a (:cost ...) block; default: the costs of each task.", callback=local),
    ] = None,
    force_limit: Annotated[
        float | None,
        typer.Option(help="Pressing an object harder than this costs as well, in N.", callback=within(0)),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Work out what recorded rollouts cost, afterwards, from their simulator states."""
    from ..eval.rollouts.recorded_costs import analyse_costs, cost_summary, read_cost_spec, write_costs

    if spec is not None and force_limit is not None:
        raise InvalidInputError("--force-limit belongs to the default costs; write (CheckForce ...) in --spec's file")
    conditions = None if spec is None else read_cost_spec(spec)
    with progress_bar("rollouts", None) as advance:
        costs = analyse_costs(rollouts, spec=conditions, force_limit_n=force_limit, progress=advance)
    summary = cost_summary(costs).to_pylist()
    if as_json:
        print_json(summary)
    else:
        table = plain_table("policy", "arm", "predicate", "mean cost", "rollouts")
        for row in summary:
            values = (row["policy"], row["arm"], row["predicate"], f"{row['mean']:.1f}", str(row["n"]))
            table.add_row(*map(escape, values))
        OUT.print(table)
    if out is not None:
        write_costs(costs, out)
        print_line(f"{out}  {counted(costs.num_rows, 'rollout')}")
