"""Commands that draw scenes as policies see them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ..toolkit.counting import counted
from ..toolkit.errors import InvalidInputError
from ..toolkit.records import VisualNoise
from .console import print_line
from .options import SEEDS, SIZE, CameraOption, InitStateOption, VisualNoiseOption, new_file

SHOWN_TASKS = (
    "libero_goal/put_the_bowl_on_the_plate",
    "libero_object/pick_up_the_cream_cheese_and_place_it_in_the_basket",
    "libero_10/LIVING_ROOM_SCENE2_put_both_the_cream_cheese_box_and_the_butter_in_the_basket",
)
"""One scene on each of LIBERO's three kinds of ground: table, floor and living room."""


def pictures(
    out: Annotated[Path, typer.Option(help="A .jpg or .png file.", callback=new_file)],
    task: Annotated[list[str] | None, typer.Option(help="Base task as suite/name; may be given several times.")] = None,
    visual: Annotated[str, typer.Option(help="Visual probes, comma-separated.")] = "V0,V1,V2,V3,V4",
    visual_noise: VisualNoiseOption = VisualNoise.GAUSSIAN,
    init_state: InitStateOption = 0,
    seed: Annotated[
        int, typer.Option(help="Seed of the run, which the perturbations are drawn from too.", callback=SEEDS)
    ] = 0,
    camera: CameraOption = "agentview",
    size: Annotated[int, typer.Option(help="Width and height of each picture in pixels.", callback=SIZE)] = 256,
) -> None:
    """Draw scenes under visual probes side by side, as a policy sees them when an episode begins."""
    from ..builders.probes.pictures import picture_kind, probe_pictures, write_probe_pictures
    from ..eval.selection import parse_visual_probes
    from ..toolkit.libero.base_tasks import base_task

    probes = parse_visual_probes(visual)
    picture_kind(out)
    tasks = []
    for name in task or SHOWN_TASKS:
        suite, slash, own = name.partition("/")
        if not slash:
            raise InvalidInputError(f"--task '{name}': write it as suite/name, such as {SHOWN_TASKS[0]}")
        tasks.append(base_task(suite, own))
    drawn = probe_pictures(
        tasks, probes, init_state=init_state, seed=seed, size=size, camera=camera, noise=visual_noise
    )
    write_probe_pictures(drawn, probes, out)
    print_line(f"{out}  {counted(len(tasks), 'scene')} under {', '.join(probes)}")
