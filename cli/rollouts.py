"""Commands that make rollouts, execute them again and show them: demo, run, replay, render."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..eval.selection import HorizonKind
from ..toolkit.records import VisualNoise
from .console import ERR, FOUND_SOMETHING_WRONG, OUT, print_json, print_line, print_warning, progress_bar
from .options import (
    CameraOption,
    DatasetArgument,
    DrawSeedOption,
    JsonOption,
    PolicyOption,
    PolicySeedOption,
    PresetOption,
    RolloutsArgument,
    TasksOption,
    ToleranceOption,
    VisualNoiseOption,
    policy_with_preset,
)
from .run_progress import run_progress, show_by_agent

if TYPE_CHECKING:
    from ..eval.rollouts.replay import ReplayCheck
    from ..eval.rollouts.run import Run
    from ..toolkit.records import Instance


def demo(
    out: Annotated[Path, typer.Option(help="Folder for rollouts, scores and report.")] = Path("demo"),
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
    out: Annotated[Path, typer.Option(help="Folder; rollouts go to OUT/rollouts/<policy>.")],
    cases: Annotated[
        str | None, typer.Option(help="Case ids with * as wildcard, comma-separated; default: all.")
    ] = None,
    prompts: Annotated[str, typer.Option(help="Prompt conditions, comma-separated.")] = "P0",
    language: Annotated[str, typer.Option(help="Language probes, comma-separated, such as W0,W2.")] = "W0",
    init_states: Annotated[str, typer.Option(help="Initial states, such as 0-4 or 0,7.")] = "0-4",
    seed: PolicySeedOption = 0,
    horizon: Annotated[
        HorizonKind, typer.Option(help="By the steps of an instruction's plan, or the base task's own.")
    ] = HorizonKind.PLAN,
    visual: Annotated[str, typer.Option(help="Visual probes, comma-separated, such as V0,V3.")] = "V0",
    visual_noise: VisualNoiseOption = VisualNoise.GAUSSIAN,
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
    from ..eval.rollouts.executors.choose import choose_executor
    from ..eval.rollouts.run import run_policy
    from ..eval.selection import parse_numbers, parse_visual_probes, with_horizons

    states, probes = parse_numbers(init_states, "--init-states"), parse_visual_probes(visual)
    instances = with_horizons(_instances_to_run(cases, prompts, language, tasks), horizon)
    executor = choose_executor(workers, ray, answer_limit_s=answer_limit)
    with run_progress(len(instances) * len(states) * len(probes), as_json=as_json) as progress:
        finished = run_policy(
            policy_with_preset(policy, preset),
            instances,
            out / "rollouts",
            init_states=states,
            seed=seed,
            visual_probes=probes,
            visual_noise=visual_noise,
            executor=executor,
            keep_going=keep_going,
            progress=progress,
        )
    _print_run(finished, out, as_json=as_json)
    if finished.failures:
        raise typer.Exit(FOUND_SOMETHING_WRONG)


def _instances_to_run(cases: str | None, prompts: str, language: str, tasks: Path | None) -> tuple[Instance, ...]:
    """The conflict instances that the options choose, with their references."""
    from ..builders.tasks_dataset.reading import load_instances
    from ..eval.rollouts.run import with_references
    from ..eval.selection import parse_language_probes, parse_prompts, select_conflicts

    everything = load_instances(tasks, parse_language_probes(language))
    return with_references(select_conflicts(everything, cases, parse_prompts(prompts)), everything)


def _print_run(finished: Run, out: Path, *, as_json: bool) -> None:
    if finished.dataset is not None and not as_json:
        print_line(f"{finished.dataset}  {finished.rollouts} rollouts")
        print_line(f"next: conflictvla score {out} --out {out / 'scores.json'}")
    if finished.clipped_warning:
        print_warning(finished.clipped_warning)
    if finished.failures:
        print_line(f"{len(finished.failures)} rollouts failed; the first: {finished.failures[0].error}", to=ERR)


def replay(
    rollouts: RolloutsArgument,
    sample: Annotated[int | None, typer.Option(help="Replay only that many, drawn at random.")] = None,
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
        print_line(f"{len(checks)} rollouts replayed, {len(differing)} differ")
    if differing:
        raise typer.Exit(FOUND_SOMETHING_WRONG)


def render(
    rollouts: DatasetArgument,
    out: Annotated[Path, typer.Option(help="Folder for the videos.")],
    rollout: Annotated[
        list[str] | None, typer.Option(help="A rollout id; may be given several times. Default: all.")
    ] = None,
    camera: CameraOption = "agentview",
    size: Annotated[int, typer.Option(help="Width and height in pixels.")] = 256,
) -> None:
    """Make videos of recorded rollouts, afterwards, from the simulator's recorded states."""
    from ..eval.recordings.reading import find_dataset
    from ..eval.recordings.sources import local_folder
    from ..eval.rollouts.render import render_rollouts

    dataset = find_dataset(local_folder(rollouts))
    with progress_bar("videos", len(rollout) if rollout else None) as advance:
        files = render_rollouts(dataset, out, rollout_ids=rollout, camera=camera, size=size, progress=advance)
    print_line(f"{out}  {len(files)} videos")
