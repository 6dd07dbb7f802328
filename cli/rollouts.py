"""Commands that make rollouts, execute them again and show them: demo, run, replay, render."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..eval.selection import HorizonKind
from ..toolkit.counting import counted
from ..toolkit.records import VisualNoise
from .console import ERR, FOUND_SOMETHING_WRONG, OUT, print_json, print_line, print_warning, progress_bar
from .dry_run import show_dry_run
from .options import (
    COUNT,
    SIZE,
    CameraOption,
    DatasetArgument,
    DrawSeedOption,
    FamilyOption,
    JsonOption,
    PolicyOption,
    PresetOption,
    RolloutsArgument,
    ToleranceOption,
    local,
    new_folder,
    policy_family,
    policy_with_preset,
)
from .run_progress import run_progress, show_by_agent

if TYPE_CHECKING:
    from ..eval.rollouts.replay import ReplayCheck
    from ..eval.rollouts.run import Run
SELECTION = "What is run: without a choice all 14,530 rollouts of a full evaluation"
PROBED = "Probes"
EXECUTION = "How it is run"
"""Panels of the help of  run."""


def demo(
    out: Annotated[Path, typer.Option(help="Folder for rollouts, scores and report.", callback=new_folder)] = Path(
        "demo"
    ),
) -> None:
    """Run three scripted agents with known answers on eight conflict cases, score them and write a report."""
    from ..eval.demo import demo_rollout_count, run_demo
    from ..eval.scores.terminal import print_table

    with progress_bar("rollouts", demo_rollout_count()) as advance:
        result = run_demo(out, show_by_agent(advance))
    print_table(result.scores, "overall", OUT)
    print_line(f"{result.lesson}\n")
    print_line(f"{result.report}  the report; open it in a browser")
    print_line(f"{result.scores_file}  the scores")
    print_line(f"{result.rollouts}  the rollouts, one LeRobot v3.0 dataset an agent")


def run(
    policy: PolicyOption,
    out: Annotated[Path, typer.Option(help="Folder; rollouts go to OUT/rollouts/<policy>.", callback=new_folder)],
    preset: PresetOption = None,
    family: FamilyOption = None,
    cases: Annotated[
        str | None,
        typer.Option(help="Case ids with * as wildcard, comma-separated; default: all.", rich_help_panel=SELECTION),
    ] = None,
    lite: Annotated[
        bool, typer.Option("--lite", help="Only 160 cases, one a base task and family.", rich_help_panel=SELECTION)
    ] = False,
    references_only: Annotated[
        bool, typer.Option("--references-only", help="No conflicts: plain success.", rich_help_panel=SELECTION)
    ] = False,
    controls: Annotated[
        bool,
        typer.Option(
            "--controls",
            help="Each case's repaired twin too; give a release with them to --tasks.",
            rich_help_panel=SELECTION,
        ),
    ] = False,
    prompts: Annotated[
        str | None,
        typer.Option(
            help="Prompt conditions: P0, P1, placebo, your own; default: P0, P1 and all of --prompts-file.",
            rich_help_panel=SELECTION,
        ),
    ] = None,
    prompts_file: Annotated[
        Path | None,
        typer.Option(
            help="Your own wordings, YAML or JSON: a name and its text each.", callback=local, rich_help_panel=SELECTION
        ),
    ] = None,
    init_states: Annotated[
        str, typer.Option(help="Initial states, such as 0-4 or 0,7.", rich_help_panel=SELECTION)
    ] = "0-4",
    seeds: Annotated[
        str, typer.Option(help="Seeds handed to the policy, such as 0-2.", rich_help_panel=SELECTION)
    ] = "0",
    horizon: Annotated[
        HorizonKind,
        typer.Option(help="By the steps of an instruction's plan, or the base task's own.", rich_help_panel=SELECTION),
    ] = HorizonKind.PLAN,
    tasks: Annotated[
        Path | None,
        typer.Option(
            help="Another task release; default: the packaged one.", callback=local, rich_help_panel=SELECTION
        ),
    ] = None,
    language: Annotated[
        str, typer.Option(help="Language probes, comma-separated, such as W0,W2.", rich_help_panel=PROBED)
    ] = "W0",
    visual: Annotated[
        str, typer.Option(help="Visual probes, comma-separated, such as V0,V3.", rich_help_panel=PROBED)
    ] = "V0",
    visual_noise: Annotated[
        VisualNoise, typer.Option(help="Noise of V4.", rich_help_panel=PROBED)
    ] = VisualNoise.GAUSSIAN,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show rollouts, hours and GB; run nothing.", rich_help_panel=EXECUTION)
    ] = False,
    workers: Annotated[int, typer.Option(help="Processes on this machine.", rich_help_panel=EXECUTION)] = 1,
    ray: Annotated[
        str | None, typer.Option(help="Address of a Ray cluster to run on, or 'local'.", rich_help_panel=EXECUTION)
    ] = None,
    shard: Annotated[
        str | None,
        typer.Option(
            help="One part of the base tasks, such as 1/8; the others run in the same OUT.", rich_help_panel=EXECUTION
        ),
    ] = None,
    answer_limit: Annotated[
        float,
        typer.Option(help="Longest time for an answer of the policy, in seconds.", rich_help_panel=EXECUTION),
    ] = 600.0,
    keep_going: Annotated[
        bool, typer.Option("--keep-going", help="Go on when the policy fails.", rich_help_panel=EXECUTION)
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Roll a policy out on conflict cases and their references.

    Without a choice it is the full evaluation: every case under P0 and P1 in five initial states, and the references.
    Run again to continue after an interruption, with more cases or states to extend what is there, or elsewhere at the
    same time to share the work: only what is missing is run. Exit code 1 where --keep-going left rollouts out; they are
    listed in OUT/rollouts/<policy>.failures.jsonl, and run again by the next call.
    """
    from ..eval.rollouts.executors.choose import choose_executor
    from ..eval.rollouts.jobs import parse_shard
    from ..eval.rollouts.run import run_policy
    from ..eval.run_selection import RunSelection
    from ..eval.selection import parse_language_probes, parse_numbers, parse_visual_probes, with_horizons
    from ..toolkit.prompts_file import read_prompts_file

    states, probes = parse_numbers(init_states, "--init-states"), parse_visual_probes(visual)
    drawn, spec = parse_numbers(seeds, "--seeds"), policy_with_preset(policy, preset)
    selection = RunSelection(
        cases=cases,
        prompts=None if prompts is None else (prompts,),
        own_prompts=read_prompts_file(prompts_file) if prompts_file else (),
        language=parse_language_probes(language),
        lite=lite,
        controls=controls,
        references_only=references_only,
        tasks=tasks,
    )
    instances = with_horizons(selection.instances(), horizon)
    part, named_family = None if shard is None else parse_shard(shard), policy_family(family, preset)
    executor = choose_executor(workers, ray, answer_limit_s=answer_limit)
    if dry_run:
        show_dry_run(
            spec,
            instances,
            out / "rollouts",
            init_states=states,
            seeds=drawn,
            visual_probes=probes,
            shard=part,
            workers=workers,
            as_json=as_json,
        )
        return
    with run_progress(as_json=as_json) as progress:
        finished = run_policy(
            spec,
            instances,
            out / "rollouts",
            init_states=states,
            seeds=drawn,
            visual_probes=probes,
            visual_noise=visual_noise,
            policy_family=named_family,
            executor=executor,
            keep_going=keep_going,
            shard=part,
            progress=progress,
        )
    _print_run(finished, out, as_json=as_json)
    if finished.failures:
        raise typer.Exit(FOUND_SOMETHING_WRONG)


def _print_run(finished: Run, out: Path, *, as_json: bool) -> None:
    if not as_json:
        _print_where(finished, out)
    if finished.clipped_warning:
        print_warning(finished.clipped_warning)
    if finished.failures:
        _print_failures(finished)


def _print_failures(finished: Run) -> None:
    failures, others = finished.failures, finished.failed_in_others
    print_line(f"{counted(len(failures), 'rollout')} failed; the first: {failures[0].error}", to=ERR)
    listed = "" if finished.failures_file is None else f"{finished.failures_file} lists all that failed; "
    but = f", but for {others} that other commands have asked for" if others else ""
    print_line(f"{listed}the same command runs them again{but}", to=ERR)


def _print_where(finished: Run, out: Path) -> None:
    if finished.dataset is not None:
        print_line(f"{finished.dataset}  {counted(finished.rollouts, 'rollout')}")
        print_line(f"next: conflictvla score {out} --out {out / 'scores.json'}")
    elif finished.unfinished is not None:
        still = finished.unfinished
        print_line(f"{still.dataset}  unfinished: {still.done:,} of {counted(still.planned, 'rollout')}")
        if finished.left_in_call:
            print_line(
                f"this part is done; {counted(finished.left_in_call, 'rollout')} of the other parts left, and "
                "whichever process runs the last one writes the dataset"
            )
        if finished.left_in_others:
            print_line(
                f"{counted(finished.left_in_others, 'rollout')} left that this command does not ask for: give the "
                f"command again that does; to take what is there: conflictvla merge {out} --out FOLDER"
            )
    elif not finished.failures:
        print_line("no rollouts in this part")


def replay(
    rollouts: RolloutsArgument,
    sample: Annotated[int | None, typer.Option(help="Replay only that many, drawn at random.", callback=COUNT)] = None,
    seed: DrawSeedOption = 0,
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
    differing = [check for check in checks if check.difference is not None]
    if as_json:
        print_json([{"rollout_id": c.rollout_id, "difference": c.difference, "largest": c.largest} for c in checks])
    else:
        for check in differing:
            print_line(f"{check.rollout_id}: {check.difference}")
        print_line(f"{counted(len(checks), 'rollout')} replayed, {len(differing)} differ")
    if differing:
        raise typer.Exit(FOUND_SOMETHING_WRONG)


def render(
    rollouts: DatasetArgument,
    out: Annotated[Path, typer.Option(help="Folder for the videos.", callback=new_folder)],
    rollout: Annotated[
        list[str] | None, typer.Option(help="A rollout id; may be given several times. Default: all.")
    ] = None,
    camera: CameraOption = "agentview",
    size: Annotated[int, typer.Option(help="Width and height in pixels, even.", callback=SIZE)] = 256,
) -> None:
    """Make videos of recorded rollouts, afterwards, from the simulator's recorded states."""
    from ..eval.recordings.reading import find_dataset
    from ..eval.recordings.sources import local_folder
    from ..eval.rollouts.render import render_rollouts

    dataset = find_dataset(local_folder(rollouts))
    with progress_bar("videos", len(rollout) if rollout else None) as advance:
        files = render_rollouts(dataset, out, rollout_ids=rollout, camera=camera, size=size, progress=advance)
    print_line(f"{out}  {counted(len(files), 'video')}")
