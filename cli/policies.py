"""Commands about policies: list the presets, serve a policy, train the example."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.markup import escape

from .console import ERR, OUT, plain_table, print_json, print_line, print_markup, progress_bar
from .options import COUNT, PORT, JsonOption, new_folder

if TYPE_CHECKING:
    from ..eval.policies.presets import Preset


def presets(
    name: Annotated[str | None, typer.Argument(help="A preset, for all of its values and their sources.")] = None,
    as_json: JsonOption = False,
) -> None:
    """List the settings under which published models are run, or show one with the source of each value."""
    from ..eval.policies.presets import PRESETS, find_preset, preset_rows

    chosen = PRESETS if name is None else (find_preset(name),)
    if as_json:
        print_json([{**dict(preset_rows(preset)), "sources": preset.sources} for preset in chosen])
    elif name is None:
        table = plain_table("preset", "model", "policy", "images", "gripper", "replan")
        for preset in chosen:
            ways = preset.conventions
            size = f"{ways.images} {ways.image_size}"
            replan = str(ways.replan_steps or "server's")
            table.add_row(preset.name, preset.model, escape(preset.policy), size, ways.gripper, replan)
        OUT.print(table)
    else:
        _print_preset(chosen[0])


def _print_preset(preset: Preset) -> None:
    from ..eval.policies.presets import preset_rows

    for key, value in preset_rows(preset):
        print_line(f"{key:>14}  {value}")
        source = preset.sources.get(key)
        if source:
            print_markup(f"{'':>14}  [dim]{escape(source)}[/]")


def serve_policy(
    policy: Annotated[str, typer.Option(help="A scripted agent, such as persist.")],
    protocol: Annotated[str, typer.Option(help="openpi or vla-eval.")] = "openpi",
    host: Annotated[str, typer.Option(help="Address to listen at; 0.0.0.0 for other machines too.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="Port to listen at; 0 for any that is free.", callback=PORT)] = 8000,
) -> None:
    """Serve a scripted agent to clients of openpi's or vla-eval's protocol, until interrupted.

    The client must run this package's scenes: the server runs the same scene beside it, in step.
    """
    from ..eval.policies.serving.served_agent import serve_agent

    server = serve_agent(policy, protocol, host=host, port=port)
    print_line(f"{policy} is served at {protocol}://{host}:{server.port}; Ctrl-C ends it")
    try:
        server.serve_forever()
    except KeyboardInterrupt:
        print_line("ended", to=ERR)


def train_example(
    out: Annotated[
        Path, typer.Option(help="Folder; its demonstrations are recorded once and used again.", callback=new_folder)
    ],
    masked: Annotated[bool, typer.Option("--masked", help="Mask every prompt: the language-blind twin.")] = False,
    steps: Annotated[
        int | None, typer.Option(help="Gradient steps; default: as many as the shipped one took.", callback=COUNT)
    ] = None,
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
        used = train(demonstrations, folder, language=not masked, steps=steps or STEPS, progress=advance)
    successful = sum(len(each.lengths) for each in demonstrations)
    print_line(f"{folder}  from {used} of {successful} successful demonstrations")
