"""Commands about the conflict cases themselves: list, show, build, review, check."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.markup import escape
from rich.table import Table

from ..toolkit.atomic_files import write_atomic
from ..toolkit.errors import InvalidInputError
from ..toolkit.records import SUITES, Arm, Family, Level, Prompt
from .console import (
    ERR,
    FOUND_SOMETHING_WRONG,
    OUT,
    JsonOption,
    TasksOption,
    echo_json,
    new_folder_for,
    progress_bar,
)
from .pictures import pictures

if TYPE_CHECKING:
    from ..toolkit.records import Instance


def add_task_commands(app: typer.Typer) -> None:
    """Add them to the command line, under ``tasks``."""
    tasks_app = typer.Typer(help="Browse, check and build the conflict cases.", no_args_is_help=True)
    for name, command in (
        ("list", tasks_list),
        ("show", tasks_show),
        ("build", tasks_build),
        ("review", tasks_review),
        ("check", tasks_check),
        ("pictures", pictures),
    ):
        tasks_app.command(name)(command)
    app.add_typer(tasks_app, name="tasks")


def tasks_list(
    suite: Annotated[str | None, typer.Option(help="LIBERO suite.")] = None,
    task: Annotated[str | None, typer.Option(help="Base task's name.")] = None,
    family: Annotated[Family | None, typer.Option(help="Conflict family.")] = None,
    level: Annotated[Level | None, typer.Option(help="Structural level.")] = None,
    tasks: TasksOption = None,
    as_json: JsonOption = False,
) -> None:
    """List the conflict cases."""
    from ..builders.tasks_dataset.reading import load_instances

    found = [
        instance
        for instance in load_instances(tasks)
        if instance.arm is Arm.CONFLICT
        and instance.prompt is Prompt.P0
        and suite in (None, instance.suite)
        and task in (None, instance.base_task)
        and family in (None, instance.family)
        and level in (None, instance.level)
    ]
    if not found:
        raise InvalidInputError("no case fits these filters; conflictvla tasks list  shows all")
    if as_json:
        echo_json([{"case_id": i.case_id, "instruction": i.instruction} for i in found])
        return
    for instance in found:
        OUT.print(f"[dim]{instance.case_id}[/]  {escape(instance.instruction)}", highlight=False, soft_wrap=True)
    OUT.print(f"{len(found)} cases", highlight=False)


def tasks_show(
    case_id: Annotated[str, typer.Argument(help="A case id, or a beginning of one that fits only it.")],
    picture: Annotated[Path | None, typer.Option(help="Write a picture of the scene at the start, as PNG.")] = None,
    tasks: TasksOption = None,
) -> None:
    """Show one case: its instruction, in other words too, what it presupposes, and the evidence against it."""
    from ..builders.tasks_dataset.reading import load_all_instances
    from ..eval.selection import find_case

    everything = load_all_instances(tasks)
    case = find_case(everything, case_id)
    probes = [i for i in everything if (i.case_id, i.prompt) == (case.case_id, case.prompt)][1:]
    OUT.print(f"[bold]{escape(case.instruction)}[/]", highlight=False, soft_wrap=True)
    for name, value in (
        ("case", case.case_id),
        ("base task", f"{case.suite}/{case.base_task}"),
        ("reference", case.base_instruction),
        ("family, level", f"{case.family}, {case.level}"),
        ("operator", case.operator),
        ("targets", ", ".join(case.targets)),
        *((probe.language_probe, probe.instruction) for probe in probes),
    ):
        OUT.print(f"{name:>14}  {escape(str(value))}", highlight=False, soft_wrap=True)
    for factor in case.factors:
        OUT.print(f"\n[red]{escape(factor.premise)}[/]", highlight=False)
        OUT.print(f"      expected  {escape(factor.expected)}", highlight=False, soft_wrap=True)
        OUT.print(f"      observed  {escape(factor.observed)}", highlight=False, soft_wrap=True)
        if factor.margin is not None:
            OUT.print(f"        margin  {100 * factor.margin:.1f} cm", highlight=False)
    if picture is not None:
        _write_scene_picture(case, picture)


def _write_scene_picture(case: Instance, file: Path) -> None:
    from ..builders.review.sheet import scene_picture
    from ..toolkit.libero.base_tasks import base_task

    new_folder_for(file)
    png = scene_picture(base_task(case.suite, case.base_task))
    write_atomic(file, png)
    OUT.print(f"\n{escape(str(file))}", highlight=False, soft_wrap=True)


def tasks_build(
    out: Annotated[Path, typer.Option(help="Folder for the task release.")],
    suite: Annotated[list[str] | None, typer.Option(help="LIBERO suite; may be given several times.")] = None,
    total: Annotated[int | None, typer.Option(help="Cases in all; default: the release's, for its suites.")] = None,
    per_cell: Annotated[int | None, typer.Option(help="Most cases of one base task, family and level.")] = None,
    init_states: Annotated[int, typer.Option(help="In how many initial states each case must hold.")] = 50,
    workers: Annotated[int, typer.Option(help="Processes; the result does not depend on it.")] = 1,
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
    from ..builders.cases.candidates import judge_candidates
    from ..builders.cases.selection import RELEASE_CASES, select_cases
    from ..builders.release_folder import check_writable
    from ..builders.tasks_dataset.card import count_rows
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
    with progress_bar("base tasks", len(base)) as advance:
        judged = judge_candidates(
            base,
            init_states=init_states,
            workers=workers,
            fresh=fresh,
            progress=lambda done: advance(f"{done.task.task_id}: {len(done.candidates)} candidates"),
        )
    if total is None and per_cell is None:
        total, per_cell = (RELEASE_CASES, None) if not suite else (None, 2)
    cases = select_cases(judged, total=total, per_cell=per_cell)
    for task in judged:
        if task.skipped:
            ERR.print(f"skipped {escape(task.task.task_id)}: {escape(task.skipped)}", highlight=False, soft_wrap=True)
    if not cases:
        raise InvalidInputError(f"no valid case on any of {len(base)} base tasks; nothing was written")
    write_tasks(cases, out)
    table = Table("family", *Level, "all", box=None, pad_edge=False)
    for name, counts in count_rows(cases):
        table.add_row(name, *map(str, counts))
    OUT.print(table)
    OUT.print(f"{escape(str(out))}  {len(cases)} cases", highlight=False, soft_wrap=True)
    if total is not None and len(cases) < total:
        ERR.print(f"validity allows {len(cases)} cases, {total - len(cases)} fewer than asked for", highlight=False)
        raise typer.Exit(FOUND_SOMETHING_WRONG)


def _build_probes(out: Path, levels: str, tasks: Path | None) -> None:
    from ..builders.probes.dataset import level_counts, write_probes
    from ..builders.probes.instances import measured_facts, probe_instances
    from ..builders.tasks_dataset.reading import load_instances
    from ..eval.selection import parse_language_probes

    wanted = parse_language_probes(levels, "--probes")
    instances = load_instances(tasks)
    with progress_bar("base tasks", len({(i.suite, i.base_task) for i in instances})) as advance:
        found = probe_instances(instances, measured_facts, wanted, advance)
    if not found:
        raise InvalidInputError(f"no instruction has any of the levels {levels}; nothing was written")
    write_probes(found, tasks, out)
    table = Table("level", "references", "cases", box=None, pad_edge=False)
    for level, references, cases in level_counts(found):
        if level in wanted:
            table.add_row(level, str(references), str(cases))
    OUT.print(table)
    OUT.print(f"{escape(str(out))}  {len(found)} instances under probes", highlight=False, soft_wrap=True)


def tasks_review(
    out: Annotated[Path | None, typer.Option(help="Write a review sheet, one HTML file.")] = None,
    read: Annotated[Path | None, typer.Option(help="Read verdicts that a sheet exported into the ledger.")] = None,
    suite: Annotated[str | None, typer.Option(help="LIBERO suite.")] = None,
    tasks: TasksOption = None,
) -> None:
    """Review cases: write a sheet with scene, instruction and evidence, or read its verdicts back."""
    from ..builders.review.ledger import add_verdicts, parse_entries, reviewed_content
    from ..builders.review.sheet import review_sheet, scene_picture_if_any
    from ..builders.tasks_dataset.reading import load_instances

    if (out is None) == (read is None):
        raise InvalidInputError("give either --out for a sheet or --read for its verdicts")
    found = [i for i in load_instances(tasks) if i.arm is Arm.CONFLICT and i.prompt is Prompt.P0]
    if read is not None:
        try:
            text = read.read_bytes()
        except OSError as error:
            raise InvalidInputError(f"{read}: cannot be read ({error.strerror})") from error
        contents = {str(i.case_id): reviewed_content(i.instruction, i.factors) for i in found}
        new = add_verdicts(parse_entries(text, str(read)), contents)
        OUT.print(f"{new} new verdicts; build the tasks again to have them in the data", highlight=False)
    if out is not None:
        chosen = [case for case in found if suite in (None, case.suite)]
        if not chosen:
            raise InvalidInputError(f"no case of the suite '{suite}'")
        new_folder_for(out)
        with progress_bar("base tasks", len({(case.suite, case.base_task) for case in chosen})) as advance:
            write_atomic(out, review_sheet(chosen, scene_picture_if_any, advance))
        OUT.print(f"{escape(str(out))}  {len(chosen)} cases; open it in a browser", highlight=False, soft_wrap=True)


def tasks_check(
    tasks: TasksOption = None,
    init_states: Annotated[int, typer.Option(help="How many initial states to check in, from 0.")] = 50,
) -> None:
    """Judge every released case again in the simulator. Exit code 1 where one no longer holds."""
    from ..builders.cases.check import check_release
    from ..builders.tasks_dataset.reading import load_all_instances

    instances = load_all_instances(tasks)
    base_task_count = len({(instance.suite, instance.base_task) for instance in instances})
    with progress_bar("base tasks", base_task_count) as advance:
        problems = check_release(instances, init_states, advance)
    for problem in problems:
        OUT.print(f"{escape(problem.instance_id)}: {escape(problem.reason)}", highlight=False, soft_wrap=True)
    count = sum(instance.prompt is Prompt.P0 for instance in instances)
    OUT.print(f"{count} instructions checked in {init_states} initial states, {len(problems)} wrong", highlight=False)
    if problems:
        raise typer.Exit(FOUND_SOMETHING_WRONG)
