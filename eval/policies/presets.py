"""The paper's eight models: how each is served, and under which conventions, with the source of every value.

A wrong value here costs a good checkpoint its success rate, so each has the file that states it. Horizons are
each source's own; rollouts always run to those of the protocol, so that policies can be compared.
"""

from __future__ import annotations

from dataclasses import dataclass

from ...toolkit.errors import InvalidInputError, NotFoundError, choices
from ...toolkit.records import CONTINUOUS, GENERALIST, HORIZONS, TOKENIZED, WORLD_MODEL
from .conventions import Conventions
from .spec import read_spec, with_setting

OPENPI_CLIENT = "github.com/Physical-Intelligence/openpi@15a9616: examples/libero/main.py"
OPENPI_CONFIG = "github.com/Physical-Intelligence/openpi@15a9616: src/openpi/training/config.py"
VLA_EVAL = "github.com/allenai/vla-evaluation-harness@e1ee9ad"
VLA_EVAL_LIBERO = "vla-eval 0.8.0: vla_eval/benchmarks/libero/benchmark.py"
LEROBOT_LIBERO = "lerobot 0.6.1: lerobot/envs/libero.py, lerobot/processor/env_processor.py"

LONGEST_FAMILY = 60
"""Most characters of a family's name."""

LEROBOT_HORIZONS = {**HORIZONS, "libero_spatial": 280}


@dataclass(frozen=True, slots=True, kw_only=True)
class Preset:
    """How one published model is run.

    Attributes:
        name: What ``--preset`` takes.
        model: Its name in the paper.
        family: Its architecture family in the paper.
        policy: The policy, to be written after ``--policy``; a server's address may be another.
        conventions: How observations are handed to it and its actions read.
        settings: Further settings of the policy.
        server: The command that starts its server, in its own project; None where this package loads the checkpoint.
        horizons: Most executed actions by suite, in the evaluation that the source describes.
        sources: Where each value stands, by its name.
        note: What else to know, or nothing.
    """

    name: str
    model: str
    family: str
    policy: str
    conventions: Conventions
    server: str | None
    horizons: dict[str, int]
    sources: dict[str, str]
    settings: tuple[tuple[str, str], ...] = ()
    note: str = ""

    @property
    def scheme(self) -> str:
        """What stands before the colon in ``policy``."""
        return self.policy.partition(":")[0]

    def command(self) -> str:
        """The line that runs the model on all cases."""
        return f"conflictvla run --policy {self.policy} --preset {self.name} --out runs"


def _openpi(name: str, model: str, config: str, *, family: str, checkpoint: str, note: str = "") -> Preset:
    return Preset(
        name=name,
        model=model,
        family=family,
        policy="openpi://localhost:8000",
        conventions=Conventions(image_size=224, replan_steps=5),
        server=f"uv run scripts/serve_policy.py policy:checkpoint --policy.config={config} --policy.dir={checkpoint}",
        horizons=HORIZONS,
        sources={
            "policy": OPENPI_CONFIG,
            "images": OPENPI_CLIENT,
            "image_size": OPENPI_CLIENT,
            "axis_angle": OPENPI_CLIENT,
            "gripper": f"{OPENPI_CLIENT}; executed as sent",
            "replan_steps": OPENPI_CLIENT,
            "horizons": OPENPI_CLIENT,
            "server": "github.com/Physical-Intelligence/openpi@15a9616: README.md, scripts/serve_policy.py",
        },
        note=note,
    )


def _vla_eval(name: str, model: str, config: str, *, family: str, chunk: str, note: str = "") -> Preset:
    return Preset(
        name=name,
        model=model,
        family=family,
        policy="vla-eval://localhost:8000",
        conventions=Conventions(gripper="snap"),
        server=f"vla-eval serve -c configs/model_servers/{config}",
        horizons=HORIZONS,
        sources={
            "policy": f"{VLA_EVAL}: configs/model_servers/{config}",
            "images": VLA_EVAL_LIBERO,
            "image_size": VLA_EVAL_LIBERO,
            "axis_angle": f"{VLA_EVAL}: docs/reproductions/common-pitfalls.md (quat_no_antipodal)",
            "gripper": VLA_EVAL_LIBERO,
            "replan_steps": chunk,
            "horizons": VLA_EVAL_LIBERO,
            "server": f"{VLA_EVAL}: configs/model_servers/{config}",
        },
        note=note,
    )


def _lerobot(
    name: str,
    model: str,
    checkpoint: str,
    *,
    family: str,
    replan_steps: int,
    replan_source: str,
    settings: tuple[tuple[str, str], ...] = (),
    note: str = "",
) -> Preset:
    return Preset(
        name=name,
        model=model,
        family=family,
        policy=f"lerobot:{checkpoint}",
        conventions=Conventions(replan_steps=replan_steps),
        server=None,
        horizons=LEROBOT_HORIZONS,
        sources={
            "policy": f"{VLA_EVAL}: docs/reproductions/lerobot.md",
            "images": LEROBOT_LIBERO,
            "image_size": LEROBOT_LIBERO,
            "axis_angle": LEROBOT_LIBERO,
            "gripper": f"{LEROBOT_LIBERO}; the checkpoint's own post-processor gives LIBERO's",
            "replan_steps": replan_source,
            "horizons": LEROBOT_LIBERO,
        },
        settings=settings,
        note=note,
    )


_UNIVLA = "github.com/OpenDriveLab/UniVLA@0ab9e9d: experiments/robot/libero/run_libero_eval.py"

PRESETS: tuple[Preset, ...] = (
    _vla_eval(
        "openvla",
        "OpenVLA",
        "openvla/libero_goal.yaml",
        family=TOKENIZED,
        chunk=f"{VLA_EVAL}: configs/model_servers/openvla/libero_goal.yaml (chunk_size 1, asked every step)",
        note="one checkpoint a suite: libero_spatial.yaml, libero_object.yaml, libero_goal.yaml, libero_10.yaml",
    ),
    _openpi(
        "pi0-fast",
        "π0-FAST",
        "pi0_fast_libero",
        family=TOKENIZED,
        checkpoint="gs://openpi-assets/checkpoints/pi0_fast_libero",
        note="the checkpoint's address is vla-eval's default (model_servers/pi0.py); openpi's README lists none",
    ),
    _vla_eval(
        "openvla-oft",
        "OpenVLA-OFT",
        "oft/libero_goal.yaml",
        family=CONTINUOUS,
        chunk=f"{VLA_EVAL}: configs/model_servers/oft/_base.yaml (the server hands out chunks of 8 one by one)",
        note="one checkpoint a suite, or oft/libero_joint.yaml for all four",
    ),
    _openpi(
        "pi0",
        "π0",
        "pi0_libero",
        family=CONTINUOUS,
        checkpoint="CHECKPOINT",
        note="openpi publishes no π0 checkpoint for LIBERO: train the config pi0_libero",
    ),
    _openpi("pi05", "π0.5", "pi05_libero", family=CONTINUOUS, checkpoint="gs://openpi-assets/checkpoints/pi05_libero"),
    _lerobot(
        "vla-jepa",
        "VLA-JEPA",
        "lerobot/VLA-JEPA-LIBERO",
        family=WORLD_MODEL,
        replan_steps=7,
        replan_source=f"{VLA_EVAL}: configs/model_servers/lerobot/vla_jepa_libero.yaml",
        note="its authors' own evaluation ends libero_spatial at 250 (github.com/ginwind/VLA-JEPA@ec8c70f)",
    ),
    Preset(
        name="univla",
        model="UniVLA",
        family=WORLD_MODEL,
        policy="vla-eval://localhost:8000",
        conventions=Conventions(image_size=224, gripper="open_high"),
        server=None,
        horizons={"libero_spatial": 240, "libero_object": 300, "libero_goal": 320, "libero_10": 550},
        sources=dict.fromkeys(("images", "image_size", "axis_angle", "gripper", "replan_steps", "horizons"), _UNIVLA)
        | {"policy": "no public server: write one for vla-eval, which tells it when to reset its history of actions"},
        note="asked every step, it blends its own chunks; it uses no state; its pictures are resized with Lanczos",
    ),
    _lerobot(
        "gr00t-n1.7",
        "GR00T N1.7",
        "nvidia/gr00t17-lerobot-libero_object-640",
        family=GENERALIST,
        replan_steps=8,
        replan_source="lerobot 0.6.1: lerobot/policies/groot/configuration_groot.py (libero_sim: at most 8)",
        settings=(("config.base_model_path", "nvidia/GR00T-N1.7-3B"),),
        note="one checkpoint a suite: libero_spatial, libero_object, libero_goal, libero_10 in place of libero_object; "
        "the checkpoint names its converter's own path as base model, hence the setting",
    ),
)
"""The eight models, in the paper's order."""


def find_preset(name: str) -> Preset:
    """The preset of a model.

    Raises:
        NotFoundError: There is none of that name.
    """
    found = {preset.name: preset for preset in PRESETS}
    if name not in found:
        raise NotFoundError(f"no preset '{name}': {choices(name, list(found))}")
    return found[name]


def checked_family(family: str) -> str:
    """The name of an architecture family, as tables can show it.

    Raises:
        InvalidInputError: It is empty, longer than ``LONGEST_FAMILY``, or not one line of printable text.
    """
    if not family.strip() or not family.isprintable() or len(family) > LONGEST_FAMILY:
        raise InvalidInputError(
            f"--family {family[:LONGEST_FAMILY]!r}: give one line of 1 to {LONGEST_FAMILY} characters, such as "
            f"'{TOKENIZED}'"
        )
    return family.strip()


def with_preset(policy: str, name: str) -> str:
    """A policy's name with a preset's settings; those that the user gave have precedence.

    Args:
        policy: As in ``load_policy``, of the preset's kind.
        name: The preset.

    Raises:
        NotFoundError: There is no such preset.
        InvalidInputError: The preset is for another kind of policy.
    """
    preset = find_preset(name)
    given = read_spec(policy)
    if given.scheme != preset.scheme:
        raise InvalidInputError(f"--preset {name} is for {preset.scheme}, and the policy is '{policy}'")
    conventions = {key: str(value) for key, value in preset.conventions.settings().items() if value != 0}
    for key, value in {"name": preset.name, **conventions, **dict(preset.settings)}.items():
        if key not in given.settings:
            policy = with_setting(policy, key, value)
    return policy


def preset_rows(preset: Preset) -> list[tuple[str, str | float | dict[str, int]]]:
    """A preset's values by name, in the order in which they are shown."""
    conventions = preset.conventions.settings()
    replan = conventions.pop("replan_steps") or "all that the policy gives"
    return [
        ("preset", preset.name),
        ("model", preset.model),
        ("family", preset.family),
        ("policy", preset.policy),
        (
            "server",
            preset.server or ("none, the checkpoint is loaded here" if preset.scheme == "lerobot" else "your own"),
        ),
        *conventions.items(),
        ("replan_steps", replan),
        *preset.settings,
        ("horizons", preset.horizons),
        *([("note", preset.note)] if preset.note else []),
        ("command", preset.command()),
    ]
