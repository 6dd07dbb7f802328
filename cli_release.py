"""Commands that take evaluations out into the world: publish, verify, submit, leaderboard."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape

from .cli_progress import OUT

JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON for machines.")]


def add_release_commands(app: typer.Typer) -> None:
    """Add them to the command line."""
    for command in (publish,):
        app.command()(command)


def publish(
    dataset: Annotated[Path, typer.Argument(help="A task release, a rollout data set, or a folder of results.")],
    repo_id: Annotated[str, typer.Option(help="Data set on the Hub, as OWNER/NAME.")],
    version: Annotated[str, typer.Option(help="Version, such as 1.0.0: a tag that never moves.")],
    dry_run: Annotated[bool, typer.Option("--dry-run", help="List what would go, and send nothing.")] = False,
    private: Annotated[bool, typer.Option("--private", help="Create the data set as private.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Release a data set on the Hugging Face Hub: checked, with card and checksums, under a version tag.

    An interrupted upload goes on when the command is given again. A released version is never overwritten.
    """
    from .builders.hub_release import upload_release
    from .eval.publish import plan_publication

    release = plan_publication(dataset, repo_id=repo_id, version=version)
    if not dry_run:
        commit = upload_release(release, private=private)
    if as_json:
        files = [{"path": f.path, "size": f.size, "sha256": f.sha256} for f in release.files]
        typer.echo(json.dumps({"repo_id": repo_id, "version": version, "files": files, "sent": not dry_run}))
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
