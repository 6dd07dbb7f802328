"""What several folders of tests share."""

import atexit
import ctypes
import gc
import os
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from .hub.hub_server import Hub

REPOSITORY = Path(__file__).resolve().parents[1]
C_LIBRARY = ctypes.CDLL(None)
BUILD = "import sys; from setuptools import build_meta; build_meta.build_wheel(sys.argv[1])"


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


HUB_PORT = _free_port()
HUB_HOME = tempfile.mkdtemp(prefix="hub-home-")
atexit.register(shutil.rmtree, HUB_HOME, ignore_errors=True)
# The Hub's clients read these when they are imported: here, and in every process that a test starts, the Hub is ours.
os.environ |= {
    "HF_ENDPOINT": f"http://127.0.0.1:{HUB_PORT}",
    "HF_HOME": HUB_HOME,
    "HF_HUB_DISABLE_XET": "1",
    "HF_HUB_DISABLE_TELEMETRY": "1",
    "HF_HUB_DISABLE_PROGRESS_BARS": "1",
}
os.environ.pop("HF_TOKEN", None)

# Before anything loads NumPy's BLAS: rollouts are compared to the last bit, and the package pins how they are rounded.
import conflictvla  # noqa: E402, F401


@pytest.fixture(scope="module", autouse=True)
def forget(request: pytest.FixtureRequest) -> Iterator[None]:
    """Give up what a module has cached: its scenes, of some hundred MB each, would stay until the last test."""
    yield
    for value in vars(request.module).values():
        if hasattr(value, "cache_clear") and value.__module__ == request.module.__name__:
            value.cache_clear()
    _empty_scene_pools()
    gc.collect()
    _give_back_memory()


def _empty_scene_pools() -> None:
    """Give up the scenes of all pools: some belong to modules without tests, or to parameters of tests."""
    if simulation := sys.modules.get("conflictvla.toolkit.simulation.scene_pool"):
        for value in gc.get_objects():
            if type(value) is simulation.ScenePool:
                value._scenes.clear()


def _give_back_memory() -> None:
    """Give what is free in this process to the machine: each of its threads has kept some, gigabytes by the end."""
    if arrow := sys.modules.get("pyarrow"):
        arrow.default_memory_pool().release_unused()
    if hasattr(C_LIBRARY, "malloc_trim"):
        C_LIBRARY.malloc_trim(0)


@pytest.fixture(scope="session")
def hub() -> Iterator["Hub"]:
    """A Hub on this machine, where the clients look for it."""
    from .hub.hub_server import Hub

    server = Hub(HUB_PORT)
    server.start()
    yield server
    server.stop()


@pytest.fixture(scope="session")
def working_tree() -> list[Path]:
    """Files of the working tree that git does not ignore, relative to the repository."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=True)
    return [Path(name) for name in listed.stdout.split("\0") if name and (REPOSITORY / name).is_file()]


@pytest.fixture(scope="session")
def wheel(working_tree: list[Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel that the working tree gives, built without a network."""
    # From a copy: setuptools takes up whatever an earlier build left in the source tree.
    source, out = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("wheel")
    for path in working_tree:
        (source / path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(REPOSITORY / path, source / path)
    command = [sys.executable, "-c", BUILD, str(out)]
    built = subprocess.run(command, cwd=source, capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stderr
    return next(out.glob("*.whl"))


@pytest.fixture
def new_venv(tmp_path: Path) -> Callable[..., Path]:
    """A function that installs requirements into an environment of its own and returns its interpreter.

    Skips the test where no package index can be reached.
    """

    def create(*requirements: str, dependencies: bool = True, constrained: bool = True) -> Path:
        uv = str(Path(sys.executable).with_name("uv"))
        folder = tmp_path / "venv"
        python = folder / "bin" / "python"
        if not python.exists():
            subprocess.run([uv, "venv", "--quiet", "--python", sys.executable, str(folder)], check=True)
        options = ["--quiet", "--python", str(python)]
        options += ["--constraint", str(REPOSITORY / "constraints.txt")] if constrained else []
        options += [] if dependencies else ["--no-deps"]
        install = [uv, "pip", "install", *options, *requirements]
        result = subprocess.run(install, capture_output=True, text=True, check=False)
        if "Failed to fetch" in result.stderr or "network connectivity is disabled" in result.stderr:
            pytest.skip("no package index can be reached")
        assert result.returncode == 0, result.stderr
        return python

    return create
