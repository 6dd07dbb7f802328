"""Commands that take evaluations out into the world: publish, verify, submit, leaderboard."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape

from ..toolkit.atomic_files import write_atomic
from ..toolkit.errors import InvalidInputError
from ..toolkit.records import Prompt
from .console import (
    FOUND_SOMETHING_WRONG,
    OUT,
    JsonOption,
    TasksOption,
    ToleranceOption,
    by_agent,
    echo_json,
    progress_bar,
)

SubmissionArgument = Annotated[str, typer.Argument(help="A rollout dataset, or hf://OWNER/NAME@REVISION.")]


def add_release_commands(app: typer.Typer) -> None:
    """Add them to the command line."""
    for command in (publish, verify, submit, leaderboard):
        app.command()(command)
    rollouts_app = typer.Typer(help="Record the release of rollouts.", no_args_is_help=True)
    rollouts_app.command("build")(rollouts_build)
    app.add_typer(rollouts_app, name="rollouts")


def publish(
    dataset: Annotated[Path, typer.Argument(help="A task release, a rollout dataset, or a folder of results.")],
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
    if not dry_run:
        commit = upload_release(release, private=private)
    if as_json:
        files = [{"path": f.path, "size": f.size, "sha256": f.sha256} for f in release.files]
        echo_json({"repo_id": repo_id, "version": version, "files": files, "sent": not dry_run})
        return
    if dry_run:
        for file in release.files:
            OUT.print(f"{file.size:>12,}  {file.sha256[:12]}  {escape(file.path)}", highlight=False, soft_wrap=True)
    tags = ", ".join((release.version, *release.moving_tags))
    what = f"{len(release.files)} files, {release.size / 1e6:.1f} MB, tags {tags}"
    if dry_run:
        OUT.print(f"{escape(repo_id)}  {what}; nothing was sent", highlight=False, soft_wrap=True)
    else:
        OUT.print(f"{escape(repo_id)}@{release.version}  {what}, commit {commit[:12]}", highlight=False, soft_wrap=True)


def verify(
    submission: SubmissionArgument,
    sample: Annotated[int, typer.Option(help="How many rollouts to execute again.")] = 50,
    seed: Annotated[int, typer.Option(help="Seed of the draw; choose it once the submission is fixed.")] = 0,
    tolerance: ToleranceOption = 0.0,
    result: Annotated[Path | None, typer.Option(help="The results file that was submitted with it.")] = None,
    out: Annotated[Path | None, typer.Option(help="Write the verification, for the leaderboard's verified/.")] = None,
    cases: Annotated[str | None, typer.Option(help="Expect only these cases, as for conflictvla run.")] = None,
    tasks: TasksOption = None,
    as_json: JsonOption = False,
) -> None:
    """Verify a submission: scores anew, every record and state checked, a random sample executed again.

    Needs no policy and no GPU. Exit code 1 where something is wrong.
    """
    from ..builders.tasks_dataset.reading import load_all_instances
    from ..eval.rollouts.run import with_references
    from ..eval.selection import select_conflicts
    from ..eval.submissions.results import read_result
    from ..eval.submissions.submit import open_source
    from ..eval.submissions.verify import verification_of, verify_submission

    everything = load_all_instances(tasks)
    wanted = None
    if cases is not None:
        wanted = with_references(select_conflicts(everything, cases, tuple(Prompt)), everything)
    claimed = None if result is None else read_result(result)
    source = open_source(submission)
    with progress_bar("rollouts", None) as advance:
        report = verify_submission(
            source.folder,
            everything,
            sample=sample,
            seed=seed,
            wanted=wanted,
            claimed=claimed,
            address=(source.repo_id, source.commit),
            tolerance=tolerance,
            progress=lambda done: advance(done),
        )
    if out is not None:
        verification = verification_of(report, result)
        write_atomic(out, verification.to_json())
    if as_json:
        found = [{"check": f.check, "count": f.count, "message": f.message} for f in report.findings]
        echo_json({"rollouts": report.rollouts, "replayed": report.replayed, "findings": found})
    else:
        for one in report.findings:
            OUT.print(f"[red]{one.check}[/]  {escape(one.message)}", highlight=False, soft_wrap=True)
        states = "every outcome seen in the recorded states" if report.states_checked else "no states were recorded"
        OUT.print(f"{report.rollouts} rollouts checked, {states}", highlight=False, soft_wrap=True)
        OUT.print(
            f"{report.replayed} executed again (seed {report.seed}); one well-forged rollout would have been missed "
            f"with probability {report.missed_one_forged:.2f}",
            highlight=False,
            soft_wrap=True,
        )
        found_wrong = len(report.findings)
        OUT.print(f"findings: {found_wrong}" if found_wrong else "verified", highlight=False)
    if report.findings:
        raise typer.Exit(FOUND_SOMETHING_WRONG)


def submit(
    dataset: SubmissionArgument,
    to: Annotated[str, typer.Option(help="The leaderboard's dataset on the Hub.")] = "conflictvla/results",
    scripted: Annotated[bool, typer.Option("--scripted", help="The policy is a scripted agent.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Check and show only; open no pull request.")] = False,
    out: Annotated[Path | None, typer.Option(help="Also write the results file here.")] = None,
    tasks: TasksOption = None,
) -> None:
    """Submit rollouts to the leaderboard: checks them, shows what a reviewer sees, opens a pull request.

    Exit code 1 where a check objects; nothing is sent then.
    """
    from ..builders.tasks_dataset.reading import load_all_instances
    from ..eval.submissions.results import SCRIPTED
    from ..eval.submissions.submit import check_submission, open_pull_request, open_source, review_page

    checked = check_submission(open_source(dataset), load_all_instances(tasks), kind=SCRIPTED if scripted else "policy")
    typer.echo(review_page(checked))
    if out is not None:
        write_atomic(out, checked.result.to_json())
    if checked.findings:
        raise typer.Exit(FOUND_SOMETHING_WRONG)
    if dry_run:
        OUT.print("nothing was sent", highlight=False)
    else:
        OUT.print(f"{open_pull_request(checked, to)}  the pull request", highlight=False, soft_wrap=True)


def leaderboard(
    data: Annotated[
        str, typer.Option(help="Folder with results/*.json, or hf://OWNER/NAME; default: the scripted agents'.")
    ] = "packaged",
    host: Annotated[str, typer.Option(help="Address to listen on; 0.0.0.0 for all of this machine's.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="Port to listen on.")] = 7860,
    space: Annotated[Path | None, typer.Option(help="Write a Hugging Face Space to this folder instead.")] = None,
    package: Annotated[
        str | None, typer.Option(help="Requirement by which the Space gets this package; default: from PyPI.")
    ] = None,
) -> None:
    """Show the leaderboard in a browser, until interrupted."""
    from ..eval.leaderboard.app import serve
    from ..eval.leaderboard.space import write_space

    if space is not None:
        write_space(space, data, package)
        OUT.print(f"{escape(str(space))}  a Space; upload it with  hf upload --repo-type space", soft_wrap=True)
        return
    OUT.print(f"http://{host}:{port}  the leaderboard; stop with Ctrl-C", highlight=False, soft_wrap=True)
    serve(data, host=host, port=port)


def rollouts_build(
    out: Annotated[Path, typer.Option(help="Folder; one dataset an agent, and results for the leaderboard.")],
    agents: Annotated[
        str, typer.Option(help="Scripted agents, with commas between them.")
    ] = "persist,refuse,fail_persist",
    per_cell: Annotated[int | None, typer.Option(help="Most cases of a family and level; default: all.")] = None,
    compact: Annotated[bool, typer.Option("--compact", help="Without the simulator's states, packed tightly.")] = False,
    videos: Annotated[int, typer.Option(help="Render so many pairs of each agent, to OUT/AGENT/rendered.")] = 0,
    verify: Annotated[int, typer.Option(help="Execute so many of each agent again, and mark its result.")] = 0,
    workers: Annotated[int, typer.Option(help="Processes on this machine; the result does not depend on it.")] = 1,
) -> None:
    """Record the scripted agents over the cases, each once under P0 with its reference; run again to continue."""
    from ..builders.tasks_dataset.reading import load_instances
    from ..eval.release import build_rollouts, plan_rollouts, render_some, verify_rollouts
    from ..eval.rollouts.executors.choose import choose_executor

    if compact and videos:
        raise InvalidInputError("--videos needs the simulator's states, which --compact leaves out: give one of them")
    plan = plan_rollouts(load_instances(), per_cell, agents.split(","))
    with progress_bar("rollouts", plan.rollouts) as advance:
        build_rollouts(out, plan, choose_executor(workers, None), compact=compact, progress=by_agent(advance))
    for said in plan.left_out:
        OUT.print(f"left out: {escape(said)}", highlight=False, soft_wrap=True)
    OUT.print(
        f"{escape(str(out))}  {plan.rollouts} rollouts of {len(plan.agents)} agents", highlight=False, soft_wrap=True
    )
    if verify:
        with progress_bar("rollouts", None) as advance:
            wrong = verify_rollouts(out, plan, verify, lambda done: advance(done))
        for said in wrong:
            OUT.print(escape(said), highlight=False, soft_wrap=True)
        if wrong:
            raise typer.Exit(FOUND_SOMETHING_WRONG)
        OUT.print(f"{escape(str(out / 'verified'))}  {verify} of each agent executed again: verified", soft_wrap=True)
    if videos:
        with progress_bar("videos", None) as advance:
            files = render_some(out, plan, videos, lambda done: advance(done))
        OUT.print(f"{escape(str(out / '*' / files[0].parent.name))}  {len(files)} videos", soft_wrap=True)
