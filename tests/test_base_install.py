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
    "conflictvla.toolkit.language.plan",
    "conflictvla.toolkit.facts",
    "conflictvla.toolkit.language.vocabulary",
    "conflictvla.builders.rollouts.schema",
    "conflictvla.builders.tasks_dataset.reading",
    "conflictvla.eval.scores.scores",
    "conflictvla.eval.scores.text_tables",
    "conflictvla.cli.app",
)
IMPORT_BASE = f"""
import importlib, sys
for name in {BASE_MODULES!r}:
    importlib.import_module(name)
assert sys.modules["conflictvla"].load_instances()
print([name for name in {OPTIONAL_STACKS!r} if name in sys.modules])
"""
READ_TASKS = """
from conflictvla.toolkit.libero.base_tasks import base_tasks
from conflictvla.toolkit.errors import MissingExtraError
try:
    base_tasks("libero_goal")
except MissingExtraError as error:
    print(error)
"""
WRITE_PNG = """
from pathlib import Path
from conflictvla.eval.report.figures.plot import Plot
from conflictvla.eval.report.figures.png import write_png
from conflictvla.toolkit.errors import MissingExtraError
try:
    write_png(Plot(width=10, height=10, x_range=(0, 1), y_range=(0, 1), title="empty"), Path("never.png"))
except MissingExtraError as error:
    print(error)
"""
NAMES_SIM = "simulation needs the package 'libero': install it with  pip install 'conflictvla[sim]'"
NAMES_LEROBOT = (
    "writing rollouts as a LeRobot dataset needs the package 'lerobot': "
    "install it with  pip install 'conflictvla[lerobot]'"
)
NAMES_REMOTE = (
    "talking to a policy server needs the package 'websockets': install it with  pip install 'conflictvla[remote]'"
)
NAMES_FIGURES = (
    "writing figures as PNG needs the package 'matplotlib': install it with  pip install 'conflictvla[figures]'"
)
ONE_CASE = "libero_goal/put_the_bowl_on_the_plate/grounding/L1/00*"


def _distributions(requirement: str) -> dict[str, Distribution]:
    """The installed distributions that a requirement brings, by name."""
    found: dict[str, Distribution] = {}
    seen: set[tuple[str, frozenset[str]]] = set()
    wanted = [Requirement(requirement)]
    while wanted:
        needed = wanted.pop()
        key = (needed.name, frozenset(needed.extras))
        if key in seen:
            continue
        seen.add(key)
        found[needed.name] = distribution(needed.name)
        for line in found[needed.name].requires or ():
            further = Requirement(line)
            if further.marker is None or any(further.marker.evaluate({"extra": e}) for e in needed.extras or {""}):
                wanted.append(further)
    return found


def _site(folder: Path, requirement: str) -> Path:
    """Fill a folder with links to what a requirement brings, and to nothing else of this environment."""
    for installed in _distributions(requirement).values():
        for part in {file.parts[0] for file in installed.files or () if file.parts[0] not in ("..", "__pycache__")}:
            if not (folder / part).exists():
                (folder / part).symlink_to(str(installed.locate_file(part)))
    (folder / "conflictvla").symlink_to(REPOSITORY)
    return folder


@pytest.fixture(scope="module")
def base_site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return _site(tmp_path_factory.mktemp("base"), "conflictvla")


@pytest.fixture(scope="module")
def sim_site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return _site(tmp_path_factory.mktemp("sim"), "conflictvla[sim]")


def _python(python: str | Path, *arguments: str, only_from: Path | None = None) -> subprocess.CompletedProcess[str]:
    """Run a fresh interpreter; with ``only_from`` it sees that folder and the standard library alone."""
    options = ["-S"] if only_from else []
    environment = {"PYTHONPATH": str(only_from)} if only_from else {}
    command = [str(python), *options, *arguments]
    return subprocess.run(command, env=os.environ | environment, capture_output=True, text=True, check=False)


def _printed(python: str | Path, code: str, *, only_from: Path | None = None) -> str:
    result = _python(python, "-c", code, only_from=only_from)
    assert result.returncode == 0, result.stderr
    return result.stdout.strip()


def test_base_modules_load_no_optional_stack_although_it_is_installed() -> None:
    assert _printed(sys.executable, IMPORT_BASE) == "[]"


def test_base_modules_work_from_the_base_install(base_site: Path) -> None:
    assert _printed(sys.executable, IMPORT_BASE, only_from=base_site) == "[]"


def test_reading_libero_from_the_base_install_names_the_extra_in_one_line(base_site: Path) -> None:
    assert _printed(sys.executable, READ_TASKS, only_from=base_site) == NAMES_SIM


def test_report_and_picture_are_written_from_the_base_install(base_site: Path, tmp_path: Path) -> None:
    files = ("--out", str(tmp_path / "report.html"), "--picture", str(tmp_path / "picture.svg"))

    result = _python(sys.executable, "-m", "conflictvla.cli", "report", "packaged", *files, only_from=base_site)

    assert (result.returncode, result.stderr) == (0, "")
    assert {file.name for file in tmp_path.iterdir()} == {"report.html", "picture.svg"}


def test_figures_from_the_base_install_name_the_extra_and_leave_nothing(base_site: Path, tmp_path: Path) -> None:
    files = ("--out", str(tmp_path / "report.html"), "--figures", str(tmp_path / "figures"))

    result = _python(sys.executable, "-m", "conflictvla.cli", "report", "packaged", *files, only_from=base_site)

    assert (result.returncode, result.stderr.strip()) == (2, f"error: {NAMES_FIGURES}")
    assert list(tmp_path.iterdir()) == []


def test_png_from_the_base_install_names_the_extra(base_site: Path) -> None:
    assert _printed(sys.executable, WRITE_PNG, only_from=base_site) == NAMES_FIGURES


@pytest.mark.parametrize("command", [("demo",), ("run", "--policy", "persist"), ("tasks", "build")], ids=" ".join)
def test_command_that_simulates_names_the_extra_and_leaves_nothing(
    command: tuple[str, ...], base_site: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"

    result = _python(sys.executable, "-m", "conflictvla.cli", *command, "--out", str(out), only_from=base_site)

    assert (result.returncode, result.stderr.strip()) == (2, f"error: {NAMES_SIM}")
    assert not out.exists()


def test_run_without_lerobot_names_its_extra_in_one_line(sim_site: Path, tmp_path: Path) -> None:
    run = (
        "run",
        "--policy",
        "refuse",
        "--cases",
        ONE_CASE,
        "--prompts",
        "P0",
        "--init-states",
        "0",
        "--out",
        str(tmp_path / "out"),
    )

    result = _python(sys.executable, "-m", "conflictvla.cli", *run, only_from=sim_site)

    assert (result.returncode, result.stderr.strip()) == (2, f"error: {NAMES_LEROBOT}")


@pytest.mark.parametrize("scheme", ["openpi", "vla-eval"])
def test_a_policy_server_without_its_extra_is_one_line(scheme: str, sim_site: Path) -> None:
    probe = ("-m", "conflictvla.cli", "probe", "--policy", f"{scheme}://localhost:1")

    result = _python(sys.executable, *probe, only_from=sim_site)

    assert (result.returncode, result.stderr.strip()) == (2, f"error: {NAMES_REMOTE}")


@pytest.mark.slow
def test_pip_installs_a_base_that_has_no_optional_stack(wheel: Path, new_venv: Callable[..., Path]) -> None:
    python = new_venv(str(wheel))

    find = f"import importlib.util; print([n for n in {OPTIONAL_STACKS!r} if importlib.util.find_spec(n)])"
    assert _printed(python, find) == "[]"
    assert _printed(python, IMPORT_BASE) == "[]"
    assert _printed(python, READ_TASKS) == NAMES_SIM
