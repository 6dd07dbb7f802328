"""Commands about policies: probe one before GPU hours are spent, serve one, list the presets, train the example."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape
from rich.table import Table

from .console import ERR, FOUND_SOMETHING_WRONG, OUT, JsonOption, echo_json, progress_bar

PolicyOption = Annotated[
    str,
    typer.Option(
        help="A scripted agent, learned, lerobot:PATH_OR_HUB_ID, openpi://HOST:PORT, vla-eval://HOST:PORT, or "
        "module:Class."
    ),
]
PresetOption = Annotated[
    str | None, typer.Option(help="Settings of a published model; conflictvla presets  lists them.")
]


def named_policy(policy: str, preset: str | None) -> str:
    """The policy with the settings of a preset, if there is one."""
    from ..eval.policies.presets import with_preset

    return policy if preset is None else with_preset(policy, preset)


def probe(
    policy: PolicyOption,
    preset: PresetOption = None,
    task: Annotated[str | None, typer.Option(help="Base task that the policy was trained on, as suite/name.")] = None,
    init_state: Annotated[int, typer.Option(help="LIBERO's number of the initial state.")] = 0,
    seed: Annotated[int, typer.Option(help="Seed handed to the policy.")] = 0,
    steps: Annotated[int, typer.Option(help="How many steps the policy acts in each trial.")] = 60,
    as_json: JsonOption = False,
) -> None:
    """Check in minutes whether a policy gets and gives what LIBERO means. Exit code 1 where something fails."""
    from ..eval.policies.registry import load_policy
    from ..eval.preflight.checks import CHECKS, DEFAULT_TASK, probe_policy

    loaded = load_policy(named_policy(policy, preset))
    with progress_bar("checks", len(CHECKS)) as advance:
        findings = probe_policy(
            loaded, task=task or DEFAULT_TASK, init_state=init_state, seed=seed, steps=steps, progress=advance
        )
    if as_json:
        echo_json([dataclasses.asdict(finding) for finding in findings])
    else:
        table = Table("check", "verdict", "found", "what to change", box=None, pad_edge=False)
        colours = {"pass": "green", "warn": "yellow", "fail": "red"}
        for found in findings:
            verdict = f"[{colours[found.verdict]}]{found.verdict}[/]"
            table.add_row(found.check, verdict, escape(found.detail), escape(found.advice))
        OUT.print(table)
    if any(found.verdict == "fail" for found in findings):
        raise typer.Exit(FOUND_SOMETHING_WRONG)


def serve_policy(
    policy: Annotated[str, typer.Option(help="A scripted agent, such as persist.")],
    protocol: Annotated[str, typer.Option(help="openpi or vla-eval.")] = "openpi",
    host: Annotated[str, typer.Option(help="Address to listen at; 0.0.0.0 for other machines too.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="Port to listen at; 0 for any that is free.")] = 8000,
) -> None:
    """Serve a scripted agent to clients of openpi's or vla-eval's protocol, until interrupted.

    The client must run this package's scenes: the server runs the same scene beside it, in step.
    """
    from ..eval.policies.twin import serve_agent

    server = serve_agent(policy, protocol, host=host, port=port)
    where = f"{protocol}://{host}:{server.port}"
    OUT.print(f"{escape(policy)} is served at {escape(where)}; Ctrl-C ends it", highlight=False, soft_wrap=True)
    try:
        server.serve_forever()
    except KeyboardInterrupt:
        ERR.print("ended")


def presets(
    name: Annotated[str | None, typer.Argument(help="A preset, for all of its values and their sources.")] = None,
    as_json: JsonOption = False,
) -> None:
    """List the settings under which published models are run, or show one with the source of each value."""
    from ..eval.policies.presets import PRESETS, find_preset, preset_rows

    chosen = PRESETS if name is None else (find_preset(name),)
    if as_json:
        echo_json([{**dict(preset_rows(preset)), "sources": preset.sources} for preset in chosen])
        return
    if name is None:
        table = Table("preset", "model", "policy", "images", "gripper", "replan", box=None, pad_edge=False)
        for preset in chosen:
            ways = preset.conventions
            size = f"{ways.images} {ways.image_size}"
            replan = str(ways.replan_steps or "server's")
            table.add_row(preset.name, preset.model, escape(preset.policy), size, ways.gripper, replan)
        OUT.print(table)
        return
    for key, value in preset_rows(chosen[0]):
        source = chosen[0].sources.get(key)
        OUT.print(f"{key:>14}  {escape(str(value))}", highlight=False, soft_wrap=True)
        if source:
            OUT.print(f"{'':>14}  [dim]{escape(source)}[/]", highlight=False, soft_wrap=True)


def train_example(
    out: Annotated[Path, typer.Option(help="Folder; its demonstrations are recorded once and used again.")],
    masked: Annotated[bool, typer.Option("--masked", help="Mask every prompt: the language-blind twin.")] = False,
    steps: Annotated[int | None, typer.Option(help="Gradient steps; default: as many as the shipped one took.")] = None,
) -> None:
    """Train the learned example anew: record scripted demonstrations of libero_goal, then clone them.

    Run it with  conflictvla run --policy learned:OUT/checkpoint.
    """
    from ..eval.training.recipe import STEPS, demonstration_count, record_example
    from ..eval.training.recipe import train_example as train

    folder = out / ("checkpoint_masked" if masked else "checkpoint")
    with progress_bar("demonstrations", demonstration_count()) as advance:
        demonstrations = record_example(out / "demonstrations", advance)
    with progress_bar("hundreds of steps", (steps or STEPS) // 100) as advance:
        kept = train(demonstrations, folder, language=not masked, steps=steps or STEPS, progress=advance)
    successful = sum(len(each.lengths) for each in demonstrations)
    said = f"{escape(str(folder))}  from {kept} of {successful} successful demonstrations"
    OUT.print(said, highlight=False, soft_wrap=True)
