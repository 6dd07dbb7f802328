"""Commands about the leaderboard: submit rollouts to it, verify a submission, show it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.markup import escape

from ..toolkit.atomic_files import write_atomic
from ..toolkit.counting import counted
from ..toolkit.errors import InvalidInputError
from ..toolkit.records import Family, Level, Prompt
from .console import FOUND_SOMETHING_WRONG, OUT, print_json, print_line, print_markup, progress_bar
from .options import (
    COUNT,
    PORT,
    SEEDS,
    DatasetArgument,
    JsonOption,
    TasksOption,
    ToleranceOption,
    local,
    new_file,
    new_folder,
)
from .run_progress import warn_of_missing

if TYPE_CHECKING:
    from ..eval.submissions.verify import VerificationReport


def verify(
    submission: DatasetArgument,
    sample: Annotated[int, typer.Option(help="How many rollouts to execute again.", callback=COUNT)] = 50,
    seed: Annotated[
        int | None,
        typer.Option(help="Seed of the draw, to repeat a verification; default: a fresh one, printed.", callback=SEEDS),
    ] = None,
    tolerance: ToleranceOption = 0.0,
    result: Annotated[
        Path | None, typer.Option(help="The results file that was submitted with it.", callback=local)
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="Write the verification, for the leaderboard's verified/.", callback=new_file)
    ] = None,
    cases: Annotated[str | None, typer.Option(help="Expect only these cases, as for conflictvla run.")] = None,
    tasks: TasksOption = None,
    as_json: JsonOption = False,
) -> None:
    """Verify a submission: scores anew, every record and state checked, a random sample executed again.

    Needs no policy and no GPU. Exit code 1 where something is wrong.
    """
    from ..builders.tasks_dataset.reading import load_all_instances, load_lite_cases
    from ..eval.selection import select_conflicts
    from ..eval.submissions.results_file import read_result, verification_json
    from ..eval.submissions.submit import fetch_submission
    from ..eval.submissions.verify import fresh_seed, verification_of, verify_submission

    if out is not None and result is None:
        raise InvalidInputError("--out writes the verification of a results file: give it with --result")
    everything = load_all_instances(tasks)
    chosen = None if cases is None else {str(one.case_id) for one in select_conflicts(everything, cases, None)}
    claimed = None if result is None else read_result(result)
    source = fetch_submission(submission)
    with progress_bar("rollouts", None) as advance:
        report = verify_submission(
            source.folder,
            everything,
            sample=sample,
            seed=fresh_seed() if seed is None else seed,
            cases=chosen,
            lite=load_lite_cases(tasks),
            claimed=claimed,
            address=(source.repo_id, source.commit),
            tolerance=tolerance,
            progress=advance,
        )
    if out is not None:
        write_atomic(out, verification_json(verification_of(report, result)))
    _print_verification(report, as_json=as_json)
    if report.findings:
        raise typer.Exit(FOUND_SOMETHING_WRONG)


def _print_verification(report: VerificationReport, *, as_json: bool) -> None:
    if as_json:
        found = [{"check": f.check, "count": f.count, "message": f.message} for f in report.findings]
        print_json({"rollouts": report.rollouts, "replayed": report.replayed, "seed": report.seed, "findings": found})
        return
    for finding in report.findings:
        print_markup(f"[red]{finding.check}[/]  {escape(finding.message)}")
    states = "every outcome seen in the recorded states" if report.states_checked else "no states were recorded"
    print_line(f"{counted(report.rollouts, 'rollout')} checked, {states}")
    print_line(
        f"{report.replayed} executed again (seed {report.seed}); one well-forged rollout would have been missed "
        f"with probability {report.missed_one_forged:.2f}"
    )
    print_line(f"findings: {len(report.findings)}" if report.findings else "verified")


def submit(
    dataset: DatasetArgument,
    to: Annotated[str, typer.Option(help="The leaderboard's dataset on the Hub.")] = "conflictvla/results",
    scripted: Annotated[bool, typer.Option("--scripted", help="The policy is a scripted agent.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Check and show only; open no pull request.")] = False,
    out: Annotated[Path | None, typer.Option(help="Also write the results file here.", callback=new_file)] = None,
    tasks: TasksOption = None,
) -> None:
    """Submit rollouts to the leaderboard: checks them, shows what a reviewer sees, opens a pull request.

    Exit code 1 where a check objects; nothing is sent then.
    """
    from ..builders.tasks_dataset.reading import load_all_instances, load_lite_cases
    from ..eval.submissions.results import POLICY, SCRIPTED_AGENT
    from ..eval.submissions.results_file import result_json
    from ..eval.submissions.submit import check_submission, fetch_submission, open_pull_request, review_page

    warn_of_missing(dataset)
    kind = SCRIPTED_AGENT if scripted else POLICY
    source = fetch_submission(dataset)
    checked = check_submission(source, load_all_instances(tasks), kind=kind, lite=load_lite_cases(tasks))
    typer.echo(review_page(checked))
    if out is not None:
        write_atomic(out, result_json(checked.result))
    if checked.findings:
        raise typer.Exit(FOUND_SOMETHING_WRONG)
    if dry_run:
        print_line("nothing was sent")
    else:
        print_line(f"{open_pull_request(checked, to)}  the pull request")


def leaderboard(
    data: Annotated[
        str, typer.Option(help="Folder with results/*.json, or hf://OWNER/NAME; default: the scripted agents'.")
    ] = "packaged",
    terminal: Annotated[bool, typer.Option("--terminal", help="Print the table here instead.")] = False,
    as_json: JsonOption = False,
    sort: Annotated[
        str, typer.Option(help="With --terminal or --json: column to sort by, best first, such as PCSR or TAR.")
    ] = "response",
    prompt: Annotated[Prompt, typer.Option(help="With --terminal or --json: prompt condition.")] = Prompt.P0,
    family: Annotated[Family | None, typer.Option(help="With --terminal or --json: conflict family.")] = None,
    level: Annotated[Level | None, typer.Option(help="With --terminal or --json: level.")] = None,
    host: Annotated[str, typer.Option(help="Address to listen on; 0.0.0.0 for all of this machine's.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="Port to listen on; 0 for any that is free.", callback=PORT)] = 7860,
    space: Annotated[
        Path | None, typer.Option(help="Write a Hugging Face Space to this folder instead.", callback=new_folder)
    ] = None,
    package: Annotated[
        str | None, typer.Option(help="Requirement by which the Space gets this package; default: from PyPI.")
    ] = None,
) -> None:
    """Show the leaderboard in a browser, until interrupted; with --terminal or --json here, and ready at once.

    Ranked by response among the policies that are capable; scripted agents stand apart as marks of the scale.
    """
    if terminal or as_json:
        _print_board(data, sort, (prompt, family, level), as_json=as_json)
        return
    from ..eval.leaderboard.app import serve
    from ..eval.leaderboard.space import write_space

    if space is not None:
        write_space(space, data, package)
        print_line(f"{space}  a Space; upload it with  hf upload --repo-type space")
        return
    serve(
        data,
        host=host,
        port=port,
        ready=lambda address: print_line(f"{address}  the leaderboard; stop with Ctrl-C"),
    )


def _print_board(data: str, sort: str, shown: tuple[Prompt, Family | None, Level | None], *, as_json: bool) -> None:
    """Print the entries in the terminal, or as JSON."""
    from ..eval.leaderboard.columns import find_column
    from ..eval.leaderboard.listing import board_rows, board_table
    from ..eval.leaderboard.ranking import Filters
    from ..eval.recordings.sources import results_folder
    from ..eval.submissions.results import ALL
    from ..eval.submissions.results_file import read_results

    column = find_column(sort)
    prompt, family, level = shown
    filters = Filters(prompt=prompt.value, family=family or ALL, level=level or ALL)
    entries = read_results(results_folder(data))
    if as_json:
        print_json([*board_rows(entries, filters, column)])
        return
    print_line(f"{prompt}, {family or 'all families'}, {level or 'all levels'}; by {column.name}, best first")
    OUT.print(board_table(entries, filters, column, width=OUT.width))
    print_line("percent, with 95% intervals; response: see  conflictvla score --by response")
