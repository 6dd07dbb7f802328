"""The command line: parse, call one function, print."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.markup import escape
from rich.table import Table

from ..toolkit.errors import ConflictVLAError, InvalidInputError
from ..toolkit.records import VisualNoise
from .console import (
    ERR,
    FOUND_SOMETHING_WRONG,
    OUT,
    WRONG_USAGE,
    JsonOption,
    TasksOption,
    ToleranceOption,
    by_agent,
    echo_json,
    progress_bar,
    run_progress,
)
from .policies import PolicyOption, PresetOption, named_policy, presets, probe, serve_policy, train_example
from .release import add_release_commands
from .safety import cost, suites_app
from .tasks import add_task_commands

if TYPE_CHECKING:
    from ..eval.rollouts.replay import ReplayCheck

app = typer.Typer(
    help="What does a vision-language-action model do when its task makes no sense?",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
)
app.add_typer(suites_app, name="suites")
for command in (probe, presets, serve_policy, train_example, cost):
    app.command()(command)

RolloutsArgument = Annotated[
    str, typer.Argument(help="Folder with one or more rollout datasets, or hf://OWNER/NAME@REVISION.")
]


def main() -> None:
    """Entry point: errors of ours become one line and exit code 2; ``--debug`` shows the traceback."""
    debug = "--debug" in sys.argv
    sys.argv = [argument for argument in sys.argv if argument != "--debug"]
    try:
        app()
    except ConflictVLAError as error:
        if debug:
            raise
        ERR.print(f"[bold red]error:[/] {escape(str(error))}", soft_wrap=True, highlight=False)
        sys.exit(WRONG_USAGE)


@app.callback()
def about(
    debug: Annotated[bool, typer.Option("--debug", help="Show tracebacks; may stand anywhere on the line.")] = False,
) -> None:
    """What does a vision-language-action model do when its task makes no sense?"""


@app.command()
def demo(
    out: Annotated[Path, typer.Option(help="Folder for rollouts, scores and report.")] = Path("demo"),
) -> None:
    """Run three scripted agents with known answers on eight conflict cases, score them and write a report."""
    from ..eval.demo import demo_rollout_count, run_demo
    from ..eval.scores.terminal import print_table

    with progress_bar("rollouts", demo_rollout_count()) as advance:
        result = run_demo(out, by_agent(advance))
    print_table(result.scores, "overall", OUT)
    OUT.print(escape(result.lesson), highlight=False)
    OUT.print()
    for path, what in (
        (result.report, "the report; open it in a browser"),
        (result.scores_file, "the scores"),
        (result.rollouts, "the rollouts, one LeRobot v3.0 dataset an agent"),
    ):
        OUT.print(f"{escape(str(path))}  {what}", highlight=False, soft_wrap=True)


@app.command()
def run(
    policy: PolicyOption,
    out: Annotated[Path, typer.Option(help="Folder; rollouts go to OUT/rollouts/<policy>.")],
    cases: Annotated[
        str | None, typer.Option(help="Case ids with * as wildcard, comma-separated; default: all.")
    ] = None,
    prompts: Annotated[str, typer.Option(help="Prompt conditions, comma-separated.")] = "P0",
    language: Annotated[str, typer.Option(help="Language probes, comma-separated, such as W0,W2.")] = "W0",
    init_states: Annotated[str, typer.Option(help="Initial states, such as 0-4 or 0,7.")] = "0-4",
    seed: Annotated[int, typer.Option(help="Seed handed to the policy.")] = 0,
    visual: Annotated[str, typer.Option(help="Visual probes, comma-separated, such as V0,V3.")] = "V0",
    visual_noise: Annotated[VisualNoise, typer.Option(help="Noise of V4.")] = VisualNoise.GAUSSIAN,
    workers: Annotated[int, typer.Option(help="Processes on this machine.")] = 1,
    ray: Annotated[str | None, typer.Option(help="Address of a Ray cluster to run on, or 'local'.")] = None,
    answer_limit: Annotated[float, typer.Option(help="Longest time for an answer of the policy, in seconds.")] = 600.0,
    keep_going: Annotated[bool, typer.Option("--keep-going", help="Go on when the policy fails in a rollout.")] = False,
    preset: PresetOption = None,
    tasks: TasksOption = None,
    as_json: JsonOption = False,
) -> None:
    """Roll a policy out on conflict cases and their references; run again to continue after an interruption.

    Exit code 1 where --keep-going left rollouts out; they are listed in OUT/rollouts/<policy>.failures.jsonl.
    """
    from ..builders.tasks_dataset.reading import load_instances
    from ..eval.rollouts.executors.choose import choose_executor
    from ..eval.rollouts.run import run_policy, with_references
    from ..eval.selection import (
        parse_language_probes,
        parse_numbers,
        parse_prompts,
        parse_visual_probes,
        select_conflicts,
    )

    states, probes = parse_numbers(init_states, "--init-states"), parse_visual_probes(visual)
    everything = load_instances(tasks, parse_language_probes(language))
    chosen = with_references(select_conflicts(everything, cases, parse_prompts(prompts)), everything)
    executor = choose_executor(workers, ray, answer_limit_s=answer_limit)
    with run_progress(len(chosen) * len(states) * len(probes), as_json=as_json) as report_progress:
        result = run_policy(
            named_policy(policy, preset),
            chosen,
            out / "rollouts",
            init_states=states,
            seed=seed,
            visual_probes=probes,
            visual_noise=visual_noise,
            executor=executor,
            keep_going=keep_going,
            progress=report_progress,
        )
    if result.dataset is not None and not as_json:
        OUT.print(f"{escape(str(result.dataset))}  {result.rollouts} rollouts", highlight=False, soft_wrap=True)
        OUT.print(
            f"next: conflictvla score {escape(str(out))} --out {escape(str(out / 'scores.json'))}", soft_wrap=True
        )
    if result.clipped_warning:
        ERR.print(f"[bold yellow]warning:[/] {escape(result.clipped_warning)}", soft_wrap=True, highlight=False)
    if result.failures:
        ERR.print(
            f"{len(result.failures)} rollouts failed; the first: {escape(result.failures[0].error)}", soft_wrap=True
        )
        raise typer.Exit(FOUND_SOMETHING_WRONG)


@app.command()
def replay(
    rollouts: RolloutsArgument,
    sample: Annotated[int | None, typer.Option(help="Replay only that many, drawn at random.")] = None,
    seed: Annotated[int, typer.Option(help="Seed of the draw.")] = 0,
    tolerance: ToleranceOption = 0.0,
    as_json: JsonOption = False,
) -> None:
    """Execute recorded actions again and compare states and outcome. Exit code 1 where a rollout differs."""
    from ..eval.recordings.reading import find_datasets
    from ..eval.recordings.sources import local_folder
    from ..eval.rollouts.replay import replay_rollouts

    checks: list[ReplayCheck] = []
    folders = find_datasets(local_folder(rollouts))
    with progress_bar("datasets", len(folders)) as advance:
        for folder in folders:
            checks.extend(replay_rollouts(folder, sample=sample, seed=seed, tolerance=tolerance))
            advance(folder.name)
    wrong = [check for check in checks if check.difference is not None]
    if as_json:
        rows = [{"rollout_id": c.rollout_id, "difference": c.difference, "largest": c.largest} for c in checks]
        echo_json(rows)
    else:
        for check in wrong:
            OUT.print(f"{escape(check.rollout_id)}: {escape(check.difference or '')}", highlight=False, soft_wrap=True)
        OUT.print(f"{len(checks)} rollouts replayed, {len(wrong)} differ", highlight=False)
    if wrong:
        raise typer.Exit(FOUND_SOMETHING_WRONG)


@app.command()
def render(
    rollouts: Annotated[str, typer.Argument(help="A rollout dataset, or hf://OWNER/NAME@REVISION.")],
    out: Annotated[Path, typer.Option(help="Folder for the videos.")],
    rollout: Annotated[
        list[str] | None, typer.Option(help="A rollout id; may be given several times. Default: all.")
    ] = None,
    camera: Annotated[str, typer.Option(help="agentview or robot0_eye_in_hand.")] = "agentview",
    size: Annotated[int, typer.Option(help="Width and height in pixels.")] = 256,
) -> None:
    """Make videos of recorded rollouts, afterwards, from the simulator's recorded states."""
    from ..eval.recordings.reading import find_datasets
    from ..eval.recordings.sources import local_folder
    from ..eval.rollouts.render import render_rollouts

    folders = find_datasets(local_folder(rollouts))
    if len(folders) != 1:
        raise InvalidInputError(f"{rollouts}: holds {len(folders)} datasets; name one of them")
    with progress_bar("videos", len(rollout) if rollout else None) as advance:
        files = render_rollouts(
            folders[0], out, rollout_ids=rollout, camera=camera, size=size, progress=lambda done: advance(done)
        )
    OUT.print(f"{escape(str(out))}  {len(files)} videos", highlight=False, soft_wrap=True)


@app.command()
def score(
    rollouts: RolloutsArgument,
    out: Annotated[Path | None, typer.Option(help="File for the scores as JSON.")] = None,
    by: Annotated[
        str, typer.Option(help="Table: overall, family, level, suite, prompt, visual-probe, costs, ...")
    ] = "overall",
    supplementary: Annotated[bool, typer.Option("--supplementary", help="Also supplementary and behaviour.")] = False,
    strict: Annotated[bool, typer.Option("--strict", help="List all defects and refusals; exit 2 if any.")] = False,
    partial: Annotated[bool, typer.Option("--partial", help="Leave defective episodes out, and say why.")] = False,
    ray: Annotated[str | None, typer.Option(help="Address of a Ray cluster to score on, or 'local'.")] = None,
    costs: Annotated[Path | None, typer.Option(help="File of conflictvla cost, in place of recorded costs.")] = None,
    as_json: JsonOption = False,
) -> None:
    """Score recorded rollouts; needs neither simulator nor torch. Exit code 1 where pairs or episodes are left out."""
    from ..eval.scores.scores import score as score_rollouts
    from ..eval.scores.terminal import print_table
    from ..eval.scores.text_tables import text_table

    if strict and partial:
        raise InvalidInputError("--strict refuses what --partial leaves out: give one of them")
    scores = score_rollouts(
        rollouts, supplementary=supplementary, partial=strict or partial, ray_address=ray, costs=costs
    )
    if strict and (scores.left_out or scores.refusals):
        for complaint in (*scores.left_out, *scores.refusals):
            ERR.print(escape(str(complaint)), highlight=False, soft_wrap=True)
        raise typer.Exit(WRONG_USAGE)
    if out is not None:
        scores.write(out)
    if as_json:
        echo_json(text_table(scores, by).data.to_pylist())
    else:
        print_table(scores, by, OUT)
    for field, count in scores.refusals_by_field().items():
        ERR.print(f"refused {count} conflict rollouts: {escape(field)}", highlight=False)
    for field, count in scores.left_out_by_field().items():
        ERR.print(f"left out for {count} defects: {escape(field)}", highlight=False)
    if scores.refusals or scores.left_out:
        raise typer.Exit(FOUND_SOMETHING_WRONG)


@app.command()
def compare(
    first: Annotated[str, typer.Argument(metavar="A", help="One policy: its scores file, or its rollouts.")],
    second: Annotated[str, typer.Argument(metavar="B", help="The other policy, likewise.")],
    as_json: JsonOption = False,
) -> None:
    """Put two policies side by side on the cases and initial states that both have, with paired intervals."""
    from ..eval.scores.comparison import compare_policies, comparison_table, load_scores
    from ..eval.scores.terminal import print_text_table

    comparison = compare_policies(load_scores(first), load_scores(second))
    if as_json:
        echo_json(comparison.table.to_pylist())
    else:
        print_text_table(comparison_table(comparison), OUT)


@app.command()
def report(
    rollouts: RolloutsArgument,
    out: Annotated[Path, typer.Option(help="The HTML file.")] = Path("report.html"),
    picture: Annotated[Path | None, typer.Option(help="Also outcome against process, as an SVG file.")] = None,
    tables: Annotated[Path | None, typer.Option(help="Folder for the tables: md, tex, csv and json.")] = None,
    figures: Annotated[Path | None, typer.Option(help="Folder for the figures: svg and png.")] = None,
    videos: Annotated[Path | None, typer.Option(help="Folder of conflictvla render: shows the pair's videos.")] = None,
    partial: Annotated[bool, typer.Option("--partial", help="Leave defective episodes out, and say why.")] = False,
) -> None:
    """Score recorded rollouts and write one self-contained HTML report."""
    from ..eval.recordings.sources import local_folder
    from ..eval.report import write_figures, write_picture, write_report, write_tables
    from ..eval.scores.scores import score as score_rollouts

    scores = score_rollouts(rollouts, supplementary=True, partial=partial)
    write_report(scores, local_folder(rollouts), out, videos=videos)
    OUT.print(f"{escape(str(out))}  open it in a browser", highlight=False, soft_wrap=True)
    if picture is not None:
        write_picture(scores, picture)
        OUT.print(f"{escape(str(picture))}  outcome against process", highlight=False, soft_wrap=True)
    for folder, write in ((tables, write_tables), (figures, write_figures)):
        if folder is not None:
            OUT.print(f"{escape(str(folder))}  {len(write(scores, folder))} files", highlight=False, soft_wrap=True)


@app.command()
def doctor(as_json: JsonOption = False) -> None:
    """Check what is installed here and what it can do. Exit code 1 where something needed is broken."""
    from ..eval.preflight.doctor import diagnose

    findings = diagnose()
    if as_json:
        echo_json([{"check": f.check, "state": f.state, "detail": f.detail} for f in findings])
    else:
        table = Table("check", "state", "detail", box=None, pad_edge=False)
        colours = {"ok": "green", "absent": "yellow", "broken": "red"}
        for finding in findings:
            table.add_row(finding.check, f"[{colours[finding.state]}]{finding.state}[/]", escape(finding.detail))
        OUT.print(table)
    if any(finding.state == "broken" for finding in findings):
        raise typer.Exit(FOUND_SOMETHING_WRONG)


add_task_commands(app)
add_release_commands(app)
