"""Commands about the conflict cases themselves: list, show, build, review, check, pictures."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.markup import escape

from ..toolkit.atomic_files import write_atomic
from ..toolkit.counting import counted
from ..toolkit.errors import InvalidInputError
from ..toolkit.processes import MOST_WORKERS
from ..toolkit.records import SUITES, Arm, Family, Level, Prompt
from .console import (
    ERR,
    FOUND_SOMETHING_WRONG,
    OUT,
    plain_table,
    print_json,
    print_line,
    print_markup,
    progress_bar,
)
from .options import COUNT, JsonOption, LiteOption, SuiteOption, TasksOption, local, new_file, new_folder, within
from .pictures import pictures

if TYPE_CHECKING:
    from ..builders.cases.case import Case, TaskCandidates
    from ..toolkit.records import BaseTask, Instance

tasks_app = typer.Typer(help="Browse, check and build the conflict cases.", no_args_is_help=True)


@tasks_app.command("list")
def tasks_list(
    suite: SuiteOption = None,
    task: Annotated[str | None, typer.Option(help="Base task's name.")] = None,
    family: Annotated[Family | None, typer.Option(help="Conflict family.")] = None,
    level: Annotated[Level | None, typer.Option(help="Structural level.")] = None,
    lite: LiteOption = False,
    tasks: TasksOption = None,
    as_json: JsonOption = False,
) -> None:
    """List the conflict cases."""
    from ..builders.tasks_dataset.reading import load_lite_cases

    chosen = load_lite_cases(tasks) if lite else None
    found = [
        case
        for case in _load_cases(tasks)
        if suite in (None, case.suite)
        and task in (None, case.base_task)
        and family in (None, case.family)
        and level in (None, case.level)
        and (chosen is None or case.case_id in chosen)
    ]
    if not found:
        raise InvalidInputError("no case fits these filters; conflictvla tasks list  shows all")
    if as_json:
        print_json([{"case_id": case.case_id, "instruction": case.instruction} for case in found])
        return
    for case in found:
        print_markup(f"[dim]{case.case_id}[/]  {escape(case.instruction)}")
    print_line(counted(len(found), "case"))


def _load_cases(tasks: Path | None) -> tuple[Instance, ...]:
    """Every case once, under P0."""
    from ..builders.tasks_dataset.reading import load_instances
    from ..eval.selection import select_conflicts

    return select_conflicts(load_instances(tasks), None, [Prompt.P0])


@tasks_app.command("show")
def tasks_show(
    case_id: Annotated[str, typer.Argument(help="A case id, or a beginning of one that fits only it.")],
    picture: Annotated[
        Path | None, typer.Option(help="Write a picture of the scene at the start, as PNG.", callback=new_file)
    ] = None,
    tasks: TasksOption = None,
) -> None:
    """Show one case: its instruction, repaired and in other words too, what it presupposes, and evidence against it."""
    from ..builders.tasks_dataset.reading import load_all_instances
    from ..eval.selection import find_case

    everything = load_all_instances(tasks)
    case = find_case(everything, case_id)
    others = [i for i in everything if (i.case_id, i.prompt) == (case.case_id, case.prompt) and i != case]
    _print_case(case, others)
    if picture is not None:
        _write_scene_picture(case, picture)


def _print_case(case: Instance, others: Sequence[Instance]) -> None:
    """The case, and what else there is of it: its control, and its wordings under language probes."""
    print_markup(f"[bold]{escape(case.instruction)}[/]")
    for name, value in (
        ("case", case.case_id),
        ("base task", f"{case.suite}/{case.base_task}"),
        ("reference", case.base_instruction),
        ("family, level", f"{case.family}, {case.level}"),
        ("operator", case.operator),
        ("targets", ", ".join(case.targets)),
        *((i.arm if i.arm is Arm.CONTROL else i.language_probe, i.instruction) for i in others),
    ):
        print_line(f"{name:>14}  {value}")
    for factor in case.factors:
        print_markup(f"\n[red]{escape(factor.premise)}[/]")
        print_line(f"      expected  {factor.expected}")
        print_line(f"      observed  {factor.observed}")
        if factor.margin is not None:
            print_line(f"        margin  {100 * factor.margin:.1f} cm")


def _write_scene_picture(case: Instance, file: Path) -> None:
    from ..builders.review.sheet import scene_picture
    from ..toolkit.libero.base_tasks import base_task

    write_atomic(file, scene_picture(base_task(case.suite, case.base_task)))
    print_line(f"\n{file}")


@tasks_app.command("build")
def tasks_build(
    out: Annotated[Path, typer.Option(help="Folder for the task release.", callback=new_folder)],
    suite: Annotated[list[str] | None, typer.Option(help="LIBERO suite; may be given several times.")] = None,
    total: Annotated[
        int | None, typer.Option(help="Cases in all; default: the release's, for its suites.", callback=COUNT)
    ] = None,
    per_cell: Annotated[
        int | None, typer.Option(help="Most cases of one base task, family and level.", callback=COUNT)
    ] = None,
    init_states: Annotated[
        int, typer.Option(help="In how many initial states each case must hold.", callback=COUNT)
    ] = 50,
    workers: Annotated[
        int, typer.Option(help="Processes; the result does not depend on it.", callback=within(1, MOST_WORKERS))
    ] = 1,
    fresh: Annotated[bool, typer.Option("--fresh", help="Measure scenes anew, whatever the cache holds.")] = False,
    probes: Annotated[
        str | None, typer.Option(help="Add these language probes to a release instead, such as W1,W2,W3,W4.")
    ] = None,
    tasks: TasksOption = None,
) -> None:
    """Build conflict cases in the simulator, each proven in every initial state; run again to continue.

    With --probes nothing is built anew: the packaged release, or that of --tasks, is written with its instructions in
    other words as one more config.
    """
    from ..builders.cases.selection import RELEASE_CASES, select_cases
    from ..builders.release_folder import check_writable
    from ..builders.tasks_dataset.writing import write_tasks
    from ..toolkit.libero.base_tasks import base_tasks

    check_writable(out)
    if probes is not None:
        if suite or total is not None or per_cell is not None:
            raise InvalidInputError(
                "--probes adds to a release that is there: leave --suite, --total and --per-cell out"
            )
        _build_probes(out, probes, tasks)
        return
    if tasks is not None:
        raise InvalidInputError("--tasks names the release that --probes adds to: give --probes too")
    base = [task for name in suite or SUITES for task in base_tasks(name)]
    judged = _judge(base, init_states=init_states, workers=workers, fresh=fresh)
    if total is None and per_cell is None:
        total, per_cell = (RELEASE_CASES, None) if not suite else (None, 2)
    cases = select_cases(judged, total=total, per_cell=per_cell)
    if not cases:
        raise InvalidInputError(f"no valid case on any of {counted(len(base), 'base task')}; nothing was written")
    write_tasks(cases, out)
    _print_cases(cases, out)
    if total is not None and len(cases) < total:
        print_line(f"validity allows {counted(len(cases), 'case')}, {total - len(cases)} fewer than asked for", to=ERR)
        raise typer.Exit(FOUND_SOMETHING_WRONG)


def _judge(base: Sequence[BaseTask], *, init_states: int, workers: int, fresh: bool) -> list[TaskCandidates]:
    """The candidates of base tasks; prints which of the tasks can have none, and why."""
    from ..builders.cases.candidates import judge_candidates

    with progress_bar("base tasks", len(base)) as advance:
        judged = judge_candidates(
            base,
            init_states=init_states,
            workers=workers,
            fresh=fresh,
            progress=lambda done: advance(f"{done.task.task_id}: {counted(len(done.candidates), 'candidate')}"),
        )
    for task in judged:
        if task.skipped:
            print_line(f"skipped {task.task.task_id}: {task.skipped}", to=ERR)
    return judged


def _print_cases(cases: Sequence[Case], out: Path) -> None:
    from ..builders.tasks_dataset.card import count_rows

    table = plain_table("family", *Level, "all")
    for name, counts in count_rows(cases):
        table.add_row(name, *map(str, counts))
    OUT.print(table)
    print_line(f"{out}  {counted(len(cases), 'case')}")


def _build_probes(out: Path, levels: str, tasks: Path | None) -> None:
    from ..builders.probes.dataset import level_counts, write_probes
    from ..builders.probes.instances import measured_facts, probe_instances
    from ..builders.tasks_dataset.reading import load_instances
    from ..eval.selection import parse_language_probes

    wanted = parse_language_probes(levels, "--probes")
    instances = load_instances(tasks)
    with progress_bar("base tasks", _base_task_count(instances)) as advance:
        found = probe_instances(instances, measured_facts, wanted, advance)
    if not found:
        raise InvalidInputError(f"no instruction has any of the levels {levels}; nothing was written")
    write_probes(found, tasks, out)
    table = plain_table("level", "references", "cases")
    for level, references, cases in level_counts(found):
        if level in wanted:
            table.add_row(level, str(references), str(cases))
    OUT.print(table)
    print_line(f"{out}  {counted(len(found), 'instance')} under probes")


def _base_task_count(instances: Sequence[Instance]) -> int:
    return len({(instance.suite, instance.base_task) for instance in instances})


@tasks_app.command("review")
def tasks_review(
    out: Annotated[Path | None, typer.Option(help="Write a review sheet, one HTML file.", callback=new_file)] = None,
    read: Annotated[
        Path | None, typer.Option(help="Read verdicts that a sheet exported into the ledger.", callback=local)
    ] = None,
    suite: SuiteOption = None,
    tasks: TasksOption = None,
) -> None:
    """Review cases: write a sheet with scene, instruction and evidence, or read its verdicts back."""
    if (out is None) == (read is None):
        raise InvalidInputError("give either --out for a sheet or --read for its verdicts")
    cases = _load_cases(tasks)
    if read is not None:
        _read_verdicts(read, cases)
    if out is not None:
        _write_sheet(out, cases, suite)


def _read_verdicts(file: Path, cases: Sequence[Instance]) -> None:
    from ..builders.review.ledger import add_verdicts, parse_entries, reviewed_content

    try:
        text = file.read_bytes()
    except OSError as error:
        raise InvalidInputError(f"{file}: cannot be read ({error.strerror})") from error
    contents = {str(case.case_id): reviewed_content(case.instruction, case.factors) for case in cases}
    new = add_verdicts(parse_entries(text, str(file)), contents)
    print_line(f"{counted(new, 'new verdict')}; build the tasks again to have them in the data")


def _write_sheet(out: Path, cases: Sequence[Instance], suite: str | None) -> None:
    from ..builders.review.sheet import review_sheet, scene_picture_if_any

    chosen = [case for case in cases if suite in (None, case.suite)]
    if not chosen:
        raise InvalidInputError(f"no case of the suite '{suite}'")
    with progress_bar("base tasks", _base_task_count(chosen)) as advance:
        write_atomic(out, review_sheet(chosen, scene_picture_if_any, advance))
    print_line(f"{out}  {counted(len(chosen), 'case')}; open it in a browser")


@tasks_app.command("check")
def tasks_check(
    tasks: TasksOption = None,
    init_states: Annotated[int, typer.Option(help="How many initial states to check in, from 0.", callback=COUNT)] = 50,
) -> None:
    """Judge every released case again in the simulator. Exit code 1 where one no longer holds."""
    from ..builders.cases.check import check_release
    from ..builders.tasks_dataset.reading import load_all_instances

    instances = load_all_instances(tasks)
    with progress_bar("base tasks", _base_task_count(instances)) as advance:
        problems = check_release(instances, init_states, advance)
    for problem in problems:
        print_line(f"{problem.instance_id}: {problem.reason}")
    count = sum(instance.prompt == Prompt.P0 for instance in instances)
    print_line(
        f"{counted(count, 'instruction')} checked in {counted(init_states, 'initial state')}, {len(problems)} wrong"
    )
    if problems:
        raise typer.Exit(FOUND_SOMETHING_WRONG)


tasks_app.command()(pictures)
