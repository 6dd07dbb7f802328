"""Reading tasks and scoring work from the base install: no torch, no LeRobot, no simulator."""

import os
import subprocess
import sys
from collections.abc import Callable
from importlib.metadata import Distribution, distribution
from pathlib import Path

import pytest
from packaging.requirements import Requirement

REPOSITORY = Path(__file__).resolve().parents[1]
OPTIONAL_STACKS = ("torch", "lerobot", "mujoco", "robosuite", "libero")
BASE_MODULES = (
    "conflictvla",
    "conflictvla.toolkit.records",
    "conflictvla.toolkit.plan",
    "conflictvla.toolkit.facts",
    "conflictvla.toolkit.vocabulary",
    "conflictvla.builders.rollout_schema",
)
IMPORT_BASE = f"""
import importlib, sys
for name in {BASE_MODULES!r}:
    importlib.import_module(name)
print([name for name in {OPTIONAL_STACKS!r} if name in sys.modules])
"""
READ_TASKS = """
from conflictvla.toolkit.base_tasks import base_tasks
from conflictvla.toolkit.errors import MissingExtraError
try:
    base_tasks("libero_goal")
except MissingExtraError as error:
    print(error)
"""
NAMES_THE_EXTRA = "simulation needs the package 'libero': install it with  pip install 'conflictvla[sim]'"


def _base_distributions() -> dict[str, Distribution]:
    """The installed distributions that a base install brings, by name."""
    found: dict[str, Distribution] = {}
    wanted = [Requirement("conflictvla")]
    while wanted:
        requirement = wanted.pop()
        if requirement.name in found:
            continue
        found[requirement.name] = distribution(requirement.name)
        for line in found[requirement.name].requires or ():
            needed = Requirement(line)
            if needed.marker is None or any(needed.marker.evaluate({"extra": e}) for e in requirement.extras or {""}):
                wanted.append(needed)
    return found


@pytest.fixture(scope="module")
def base_site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of links to what a base install brings, and to nothing else of this environment."""
    site = tmp_path_factory.mktemp("site")
    for installed in _base_distributions().values():
        for part in {file.parts[0] for file in installed.files or () if file.parts[0] not in ("..", "__pycache__")}:
            if not (site / part).exists():
                (site / part).symlink_to(str(installed.locate_file(part)))
    (site / "conflictvla").symlink_to(REPOSITORY)
    return site


def _run(python: str | Path, code: str, *, only_from: Path | None = None) -> str:
    """What a fresh interpreter prints; with ``only_from`` it sees that folder and the standard library alone."""
    options = ["-S"] if only_from else []
    environment = {"PYTHONPATH": str(only_from)} if only_from else {}
    result = subprocess.run(
        [str(python), *options, "-c", code],
        env=os.environ | environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    return result.stdout.strip()


def test_base_modules_load_no_optional_stack_although_it_is_installed() -> None:
    assert _run(sys.executable, IMPORT_BASE) == "[]"


def test_base_modules_import_from_the_base_install(base_site: Path) -> None:
    assert _run(sys.executable, IMPORT_BASE, only_from=base_site) == "[]"


def test_reading_libero_from_the_base_install_names_the_extra_in_one_line(base_site: Path) -> None:
    assert _run(sys.executable, READ_TASKS, only_from=base_site) == NAMES_THE_EXTRA


@pytest.mark.slow
def test_pip_installs_a_base_that_has_no_optional_stack(wheel: Path, new_venv: Callable[..., Path]) -> None:
    python = new_venv(str(wheel))

    find = f"import importlib.util; print([n for n in {OPTIONAL_STACKS!r} if importlib.util.find_spec(n)])"
    assert _run(python, find) == "[]"
    assert _run(python, IMPORT_BASE) == "[]"
    assert _run(python, READ_TASKS) == NAMES_THE_EXTRA
