"""What is installed on this machine, and whether it works."""

from __future__ import annotations

import importlib.metadata
import platform
import sys
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from ...toolkit.errors import ConflictVLAError, describe_error, first_line
from ...toolkit.libero.install import MUJOCO_VERSION, libero_distribution
from ...toolkit.rounding import KERNEL, rounding_kernel

if TYPE_CHECKING:
    from ...toolkit.simulation.scene import Scene

State = Literal["ok", "absent", "broken"]

PACKAGES = {
    "base": ("datasets", "huggingface-hub", "numpy", "pyarrow", "scipy"),
    "sim": ("mujoco", "robosuite"),
    "lerobot": ("lerobot", "torch"),
    "remote": ("msgpack", "websockets"),
    "serve": ("gradio",),
    "figures": ("matplotlib",),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class DoctorLine:
    """What was found of one part of the installation.

    Attributes:
        check: What was looked at.
        state: ``ok``; ``absent`` (optional and not installed); ``broken`` (needed, or installed and not working).
        detail: Version, measurement, or what to do.
    """

    check: str
    state: State
    detail: str


def diagnose() -> tuple[DoctorLine, ...]:
    """Look at the interpreter, the packages, the task release, and a real simulated scene."""
    return (_python(), *_packages(), _tasks(), *_simulation())


def _python() -> DoctorLine:
    supported = sys.version_info >= (3, 12)
    return DoctorLine(
        check="python",
        state="ok" if supported else "broken",
        detail=platform.python_version() + ("" if supported else ": version 3.12 or later is needed"),
    )


def _packages() -> list[DoctorLine]:
    lines = []
    for extra, names in PACKAGES.items():
        for name in names:
            try:
                lines.append(DoctorLine(check=name, state="ok", detail=importlib.metadata.version(name)))
            except importlib.metadata.PackageNotFoundError:
                how = f"pip install 'conflictvla[{extra}]'" if extra != "base" else "pip install conflictvla"
                state: State = "broken" if extra == "base" else "absent"
                lines.append(DoctorLine(check=name, state=state, detail=f"not installed: {how}"))
    return lines


def _tasks() -> DoctorLine:
    from ...builders.tasks_dataset.reading import load_tasks

    started = time.perf_counter()
    try:
        rows = load_tasks().num_rows
    except ConflictVLAError as error:
        return DoctorLine(check="tasks", state="broken", detail=str(error))
    return DoctorLine(check="tasks", state="ok", detail=f"{rows} instances, {time.perf_counter() - started:.2f} s")


def _simulation() -> list[DoctorLine]:
    try:
        distribution = libero_distribution()
    except ImportError as error:
        return [DoctorLine(check="libero", state="absent", detail=str(error))]
    except ConflictVLAError as error:
        return [DoctorLine(check="libero", state="broken", detail=str(error))]
    return [DoctorLine(check="libero", state="ok", detail=distribution), _mujoco_pin(), _rounding(), *_scene()]


def _mujoco_pin() -> DoctorLine:
    version = importlib.metadata.version("mujoco")
    if version == MUJOCO_VERSION:
        return DoctorLine(check="mujoco version", state="ok", detail=f"{version}, as released cases were proven under")
    detail = f"{version}: success rates differ between versions; pip install mujoco=={MUJOCO_VERSION}"
    return DoctorLine(check="mujoco version", state="broken", detail=detail)


def _rounding() -> DoctorLine:
    kernel = rounding_kernel()
    detail = f"OpenBLAS kernel {kernel}: what is recorded here replays exactly "
    elsewhere = "on any x86 processor with AVX2" if kernel in (KERNEL, "Zen") else "under the same one"
    return DoctorLine(check="rounding", state="ok", detail=detail + elsewhere)


def _scene() -> list[DoctorLine]:
    """Build a scene and repeat an episode: the bits must agree; then look at it."""
    try:
        from ...toolkit.libero.base_tasks import base_tasks
        from ...toolkit.simulation.scene import Scene

        scene = Scene(base_tasks("libero_goal")[0])
        hashes = set()
        for _ in range(2):
            scene.reset(0)
            hashes.add(scene.state().sha256())
        started = time.perf_counter()
        for _ in range(20):
            scene.step([0.0] * 6 + [-1.0])
        step_ms = (time.perf_counter() - started) / 20 * 1000
    except Exception as error:  # whatever is wrong with the installation is the finding
        return [DoctorLine(check="scene", state="broken", detail=describe_error(error))]
    if len(hashes) > 1:
        return [DoctorLine(check="scene", state="broken", detail="two resets to one initial state differ")]
    detail = f"resets exactly; {step_ms:.1f} ms a control step"
    if not scene.solves_constraints:
        detail += ", up to twice the usual: on this processor MuJoCo solves the constraints itself"
    return [DoctorLine(check="scene", state="ok", detail=detail), _pictures(scene)]


def _pictures(scene: Scene) -> DoctorLine:
    """Render one view; a machine that simulates states alone need not be able to."""
    from ...toolkit.simulation.pictures.rendering import Camera

    try:
        camera = Camera(scene)
        camera.image("agentview")
        started = time.perf_counter()
        camera.image("agentview")
    except ConflictVLAError as error:
        return DoctorLine(check="pictures", state="absent", detail=first_line(error))
    return DoctorLine(
        check="pictures", state="ok", detail=f"{(time.perf_counter() - started) * 1000:.0f} ms a view of 256 pixels"
    )
