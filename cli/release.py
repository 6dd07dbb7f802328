"""Commands of releases: publish a dataset on the Hub, record the scripted agents' rollouts."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..toolkit.counting import counted
from ..toolkit.errors import InvalidInputError
from .console import FOUND_SOMETHING_WRONG, print_json, print_line, progress_bar
from .options import COUNT, JsonOption, local, new_folder, within
from .run_progress import show_by_agent

if TYPE_CHECKING:
    from ..builders.hub_release import Release
    from ..eval.release import ReleasePlan

rollouts_app = typer.Typer(help="Record the release of rollouts.", no_args_is_help=True)


def publish(
    dataset: Annotated[
        Path, typer.Argument(help="A task release, a rollout dataset, or a folder of results.", callback=local)
    ],
    repo_id: Annotated[str, typer.Option(help="Dataset on the Hub, as OWNER/NAME.")],
    version: Annotated[str, typer.Option(help="Version, such as 1.0.0: a tag that never moves.")],
    dry_run: Annotated[bool, typer.Option("--dry-run", help="List what would go, and send nothing.")] = False,
    private: Annotated[bool, typer.Option("--private", help="Create the dataset as private.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Release a dataset on the Hugging Face Hub: checked, with card and checksums, under a version tag.

    An interrupted upload goes on when the command is given again. A released version is never overwritten.
    """
    from ..builders.hub_release import upload_release
    from ..eval.submissions.publish import plan_publication

    release = plan_publication(dataset, repo_id=repo_id, version=version)
    commit = None if dry_run else upload_release(release, private=private)
    if as_json:
        files = [{"path": f.path, "size": f.size, "sha256": f.sha256} for f in release.files]
        print_json({"repo_id": repo_id, "version": version, "files": files, "sent": not dry_run})
    else:
        _print_release(release, commit)


def _print_release(release: Release, commit: str | None) -> None:
    """What was released as a commit, or what would be where that is None."""
    tags = ", ".join((release.version, *release.moving_tags))
    what = f"{counted(len(release.files), 'file')}, {release.size / 1e6:.1f} MB, tags {tags}"
    if commit is None:
        for file in release.files:
            print_line(f"{file.size:>12,}  {file.sha256[:12]}  {file.path}")
        print_line(f"{release.repo_id}  {what}; nothing was sent")
    else:
        print_line(f"{release.repo_id}@{release.version}  {what}, commit {commit[:12]}")


@rollouts_app.command("build")
def rollouts_build(
    out: Annotated[
        Path, typer.Option(help="Folder; one dataset an agent, and results for the leaderboard.", callback=new_folder)
    ],
    agents: Annotated[
        str, typer.Option(help="Scripted agents, with commas between them.")
    ] = "persist,refuse,fail_persist",
    per_cell: Annotated[
        int | None, typer.Option(help="So many cases of each family and level instead.", callback=COUNT)
    ] = None,
    all_cases: Annotated[bool, typer.Option("--all-cases", help="Every case; default: the lite selection.")] = False,
    init_states: Annotated[str, typer.Option(help="LIBERO's initial states, such as 0-4.")] = "0",
    compact: Annotated[bool, typer.Option("--compact", help="Without the simulator's states, packed tightly.")] = False,
    videos: Annotated[
        int, typer.Option(help="Render so many pairs of each agent, to OUT/AGENT/rendered.", callback=within(0))
    ] = 0,
    verify: Annotated[
        int, typer.Option(help="Execute so many of each agent again, and mark its result.", callback=within(0))
    ] = 0,
    workers: Annotated[int, typer.Option(help="Processes on this machine; the result does not depend on it.")] = 1,
) -> None:
    """Record the scripted agents over the cases, under P0, with their references; run again to continue."""
    from ..builders.tasks_dataset.reading import load_instances, load_lite_cases
    from ..eval.release import build_rollouts, plan_rollouts
    from ..eval.rollouts.executors.choose import choose_executor
    from ..eval.selection import parse_numbers

    if compact and videos:
        raise InvalidInputError("--videos needs the simulator's states, which --compact leaves out: give one of them")
    if per_cell is not None and all_cases:
        raise InvalidInputError("--per-cell chooses some of the cases, --all-cases takes every one: give one of them")
    states = parse_numbers(init_states, "--init-states")
    lite = () if all_cases else load_lite_cases()
    plan = plan_rollouts(load_instances(), per_cell, agents.split(","), init_states=states, lite=lite)
    with progress_bar("rollouts", plan.rollouts) as advance:
        build_rollouts(out, plan, choose_executor(workers, None), compact=compact, progress=show_by_agent(advance))
    for reason in plan.left_out:
        print_line(f"left out: {reason}")
    print_line(f"{out}  {counted(plan.rollouts, 'rollout')} of {counted(len(plan.agents), 'agent')}")
    if verify:
        _verify_rollouts(out, plan, verify)
    if videos:
        _render_pairs(out, plan, videos)


def _verify_rollouts(out: Path, plan: ReleasePlan, sample: int) -> None:
    from ..eval.release import verify_rollouts

    with progress_bar("rollouts", None) as advance:
        findings = verify_rollouts(out, plan, sample, advance)
    for finding in findings:
        print_line(finding)
    if findings:
        raise typer.Exit(FOUND_SOMETHING_WRONG)
    print_line(f"{out / 'verified'}  {sample} of each agent executed again: verified")


def _render_pairs(out: Path, plan: ReleasePlan, count: int) -> None:
    from ..eval.release import render_pairs

    with progress_bar("videos", None) as advance:
        files = render_pairs(out, plan, count, advance)
    print_line(f"{out / '*' / files[0].parent.name}  {counted(len(files), 'video')}")
