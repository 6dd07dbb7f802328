"""Options and arguments that several commands take."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer

from ..eval.selection import LARGEST_NUMBER
from ..toolkit.atomic_files import check_file_place, check_folder_place
from ..toolkit.errors import InvalidInputError
from ..toolkit.listening import LARGEST_PORT
from ..toolkit.records import VisualNoise


def within(low: float, high: float = math.inf) -> Callable[[typer.CallbackParam, float | None], float | None]:
    """The callback of an option that takes a number, or none: refuses what is outside, NaN and infinity too.

    Not typer's own ``min`` and ``max``, which answer with a box of several lines.
    """

    def check(param: typer.CallbackParam, value: float | None) -> float | None:
        if value is None or (low <= value <= high and not math.isinf(value)):
            return value
        least_to_most = f"at least {low:g}" if math.isinf(high) else f"{low:g} to {high:,.15g}"
        raise InvalidInputError(f"{param.opts[0]} {value:.15g}: choose {least_to_most}")

    return check


def local(value: Path | None) -> Path | None:
    """The callback of an option that names a file or folder of this machine: refuses an address on the Hub."""
    if value is not None:
        _check_local(value)
    return value


def all_local(values: list[Path]) -> list[Path]:
    """As ``local``, of an argument that may be given several times."""
    for value in values:
        _check_local(value)
    return values


def new_file(value: Path | None) -> Path | None:
    """As ``local``, of a file to write; refuses, before any work, a place where it cannot be written."""
    if value is not None:
        _check_local(value)
        check_file_place(value)
    return value


def new_folder(value: Path | None) -> Path | None:
    """As ``new_file``, of a folder to write into."""
    if value is not None:
        _check_local(value)
        check_folder_place(value)
    return value


def _check_local(path: Path) -> None:
    if path.parts[:1] == ("hf:",):  # a path has lost one of its two slashes
        raise InvalidInputError(
            f"hf://{'/'.join(path.parts[1:])}: name a file or folder of this machine; a copy comes with  "
            "hf download --repo-type dataset OWNER/NAME --local-dir FOLDER"
        )


SEEDS = within(0, LARGEST_NUMBER)
COUNT = within(1)
SIZE = within(16, 480)
"""Of pictures, in pixels; LIBERO's scenes are drawn no higher."""
PORT = within(0, LARGEST_PORT)

RolloutsArgument = Annotated[
    str, typer.Argument(help="Folder with one or more rollout datasets, or hf://OWNER/NAME@REVISION.")
]
DatasetArgument = Annotated[str, typer.Argument(help="A rollout dataset, or hf://OWNER/NAME@REVISION.")]

JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON for machines.")]
PartialOption = Annotated[bool, typer.Option("--partial", help="Leave defective episodes out, and say why.")]
TasksOption = Annotated[
    Path | None, typer.Option("--tasks", help="Another task release; default: the packaged one.", callback=local)
]
ToleranceOption = Annotated[
    float,
    typer.Option(
        help="Largest difference of positions, in m and rad; 0.01 where records were rounded otherwise.",
        callback=within(0),
    ),
]

LiteOption = Annotated[
    bool, typer.Option("--lite", help="Only the lite selection: 160 cases, one a base task and family.")
]
SuiteOption = Annotated[str | None, typer.Option(help="LIBERO suite.")]
InitStateOption = Annotated[int, typer.Option(help="LIBERO's number of the initial state.")]
VisualNoiseOption = Annotated[VisualNoise, typer.Option(help="Noise of V4.")]
CameraOption = Annotated[str, typer.Option(help="agentview or robot0_eye_in_hand.")]

PolicyOption = Annotated[
    str,
    typer.Option(
        help="A scripted agent, learned, lerobot:PATH_OR_HUB_ID, openpi://HOST:PORT, vla-eval://HOST:PORT, "
        "module:Class; or one a suite: SUITE=POLICY,SUITE=POLICY, or a YAML file."
    ),
]
PresetOption = Annotated[
    str | None, typer.Option(help="Settings of a published model; conflictvla presets  lists them.")
]
FamilyOption = Annotated[
    str | None, typer.Option(help="The policy's architecture family; tables group by it. Default: the preset's.")
]
PolicySeedOption = Annotated[int, typer.Option(help="Seed handed to the policy.", callback=SEEDS)]
DrawSeedOption = Annotated[int, typer.Option(help="Seed of the draw.", callback=SEEDS)]


def policy_with_preset(policy: str, preset: str | None) -> str:
    """The policy with the settings of a preset, if there is one; a file of several policies is read here, once."""
    from ..eval.policies.by_suite.mapping import is_mapping, read_mapping
    from ..eval.policies.presets import with_preset

    if is_mapping(policy):
        return read_mapping(policy, preset).text()
    return policy if preset is None else with_preset(policy, preset)


def policy_family(family: str | None, preset: str | None) -> str | None:
    """The policy's architecture family: what the user gives, or else the preset's."""
    from ..eval.policies.presets import checked_family, find_preset

    if family is not None:
        return checked_family(family)
    return None if preset is None else find_preset(preset).family
