"""Commands to give before GPU hours are spent: check a policy, check this installation."""

from __future__ import annotations

import dataclasses
from typing import Annotated

import typer
from rich.markup import escape

from ..eval.selection import MOST_NUMBERS
from .console import FOUND_SOMETHING_WRONG, OUT, plain_table, print_json, progress_bar
from .options import (
    InitStateOption,
    JsonOption,
    PolicyOption,
    PolicySeedOption,
    PresetOption,
    policy_with_preset,
    within,
)


def probe(
    policy: PolicyOption,
    preset: PresetOption = None,
    task: Annotated[str | None, typer.Option(help="Base task that the policy was trained on, as suite/name.")] = None,
    init_state: InitStateOption = 0,
    seed: PolicySeedOption = 0,
    steps: Annotated[
        int, typer.Option(help="How many steps the policy acts in each trial.", callback=within(1, MOST_NUMBERS))
    ] = 60,
    as_json: JsonOption = False,
) -> None:
    """Check in minutes whether a policy gets and gives what LIBERO means. Exit code 1 where something fails."""
    from ..eval.policies.registry import policy_of_suite
    from ..eval.preflight.checks import CHECKS, DEFAULT_TASK, check_policy

    task = task or DEFAULT_TASK
    loaded = policy_of_suite(policy_with_preset(policy, preset), task.partition("/")[0])
    with progress_bar("checks", len(CHECKS)) as advance:
        results = check_policy(loaded, task=task, init_state=init_state, seed=seed, steps=steps, progress=advance)
    if as_json:
        print_json([dataclasses.asdict(result) for result in results])
    else:
        table = plain_table("check", "verdict", "found", "what to change")
        colours = {"pass": "green", "warn": "yellow", "fail": "red"}
        for result in results:
            verdict = f"[{colours[result.verdict]}]{result.verdict}[/]"
            table.add_row(result.check, verdict, escape(result.detail), escape(result.advice))
        OUT.print(table)
    if any(result.verdict == "fail" for result in results):
        raise typer.Exit(FOUND_SOMETHING_WRONG)


def doctor(as_json: JsonOption = False) -> None:
    """Check what is installed here and what it can do. Exit code 1 where something needed is broken."""
    from ..eval.preflight.doctor import diagnose

    lines = diagnose()
    if as_json:
        print_json([{"check": line.check, "state": line.state, "detail": line.detail} for line in lines])
    else:
        table = plain_table("check", "state", "detail")
        colours = {"ok": "green", "absent": "yellow", "broken": "red"}
        for line in lines:
            table.add_row(line.check, f"[{colours[line.state]}]{line.state}[/]", escape(line.detail))
        OUT.print(table)
    if any(line.state == "broken" for line in lines):
        raise typer.Exit(FOUND_SOMETHING_WRONG)
