"""The house rules that a tool can check: floors, sizes, names, and nothing that only one machine has."""

import re
import shutil
import subprocess
import sys
import tomllib
from collections import Counter
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[1]
MAX_LINES = 500
MAX_FILES = 10
CROWDED = {
    "cli": "one module for each group of commands",
    "toolkit": "a floor's own root",
    "builders": "a floor's own root",
    "eval": "a floor's own root",
    "eval/analyses/tables": "one module for each table",
    "eval/measures": "one module for each measure or group of them",
    "tests": "one module for each concern of the whole repository",
}
"""Folders that may hold more Python files, and why."""
WRITTEN_BY_HAND = {"", ".py", ".pyi", ".md", ".toml", ".yaml", ".yml", ".j2", ".html", ".css", ".js", ".sh"}
CATCH_ALL_NAMES = {"utils", "util", "helpers", "helper", "common", "core", "misc"}
REPLACED_WORDS = re.compile(
    r"\b(strangers?|keepers?|likewise|held against|to be had|whose it is|(is|are|was|were) told)\b", re.IGNORECASE
)
MACHINE_PATH = re.compile(r"(?<![\w.~-])/(home|root|tmp|work)/\w")
CLASS = re.compile(r"^class (\w+)", re.MULTILINE)
NOT_IN_THE_PACKAGE = {"tests", "docs", ".ci"}


def _tracked() -> list[Path]:
    listed = subprocess.run(
        ["git", "ls-files", "-z"], cwd=REPOSITORY, capture_output=True, text=True, check=True
    ).stdout
    return [Path(name) for name in listed.split("\0") if name and (REPOSITORY / name).is_file()]


def _lint_imports(folder: Path) -> subprocess.CompletedProcess[str]:
    """Run import-linter on the package that is importable from a folder, or else on the installed one."""
    command = [str(Path(sys.executable).with_name("lint-imports")), "--no-cache", "--no-logo"]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a copy of the package, and the contracts beside it."""
    folder = tmp_path_factory.mktemp("copy")
    for path in _tracked():
        if path.suffix == ".py" and path.parts[0] not in NOT_IN_THE_PACKAGE:
            (folder / "conflictvla" / path).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(REPOSITORY / path, folder / "conflictvla" / path)
    shutil.copy(REPOSITORY / "pyproject.toml", folder)
    return folder


def test_the_package_keeps_its_contracts() -> None:
    result = _lint_imports(REPOSITORY)

    assert result.returncode == 0, result.stdout


@pytest.mark.parametrize(
    ("file", "planted", "refusal"),
    [
        ("toolkit/errors.py", "from ..eval import policies", "toolkit is not allowed to import conflictvla.eval"),
        ("builders/hub_release.py", "from ..cli import console", "builders is not allowed to import conflictvla.cli"),
        (
            "eval/scoring/pairs.py",
            "from ..report.figures import svg",
            "eval.scoring is not allowed to import conflictvla.eval.report",
        ),
        (
            "eval/policies/interface.py",
            "def late() -> None:\n    from ..rollouts import jobs",
            "eval.policies is not allowed to import conflictvla.eval.rollouts",
        ),
        (
            "toolkit/simulation/scene.py",
            "from .observing import targets",
            "No cycles are allowed in conflictvla.toolkit",
        ),
        (
            "toolkit/operators/edit.py",
            "from ..premises import check",
            "operators is not allowed to import conflictvla.toolkit.premises",
        ),
        (
            "eval/measures/outcome.py",
            "from ...builders.rollouts import schema",
            "eval.measures is not allowed to import conflictvla.builders",
        ),
        (
            "eval/scores/costs.py",
            "from ...toolkit.simulation import scene",
            "eval.scores is not allowed to import conflictvla.toolkit.simulation",
        ),
    ],
    ids=["toolkit", "builders", "rooms", "late-import", "circle", "operators", "measures", "scores"],
)
def test_a_planted_violation_is_refused(copy: Path, file: str, planted: str, refusal: str) -> None:
    module = copy / "conflictvla" / file
    before = module.read_text(encoding="utf-8")
    module.write_text(f"{before}\n{planted}\n", encoding="utf-8")
    try:
        result = _lint_imports(copy)
    finally:
        module.write_text(before, encoding="utf-8")

    assert result.returncode == 1
    assert refusal in " ".join(result.stdout.split())


def test_a_room_without_a_place_among_the_others_is_refused(copy: Path) -> None:
    room = copy / "conflictvla" / "eval" / "attic"
    room.mkdir()
    (room / "__init__.py").touch()
    try:
        result = _lint_imports(copy)
    finally:
        shutil.rmtree(room)

    assert result.returncode != 0
    assert "attic" in result.stdout


def test_no_file_is_longer_than_500_lines() -> None:
    lengths = {
        str(path): (REPOSITORY / path).read_bytes().count(b"\n")
        for path in _tracked()
        if path.suffix in WRITTEN_BY_HAND
    }

    assert {name: lines for name, lines in lengths.items() if lines > MAX_LINES} == {}


def test_the_map_names_every_room_and_only_files_that_exist() -> None:
    text = (REPOSITORY / "CONTRIBUTING.md").read_text(encoding="utf-8")
    paths = [name for name in re.findall(r"`([\w./-]+)`", text) if "/" in name and name.split("/")[0] != "build"]
    inits = [path for path in _tracked() if path.name == "__init__.py" and path.parts[0] not in NOT_IN_THE_PACKAGE]

    assert [name for name in paths if not any(REPOSITORY.glob(name)) and not any(REPOSITORY.glob(f"*/**/{name}"))] == []
    rooms = [path.parent for path in inits if path.parent.name]
    assert [str(room) for room in rooms if f"`{room}/`" not in text and f"`{room.name}/`" not in text] == []


def test_no_room_is_crowded() -> None:
    rooms = Counter(str(path.parent) for path in _tracked() if path.suffix == ".py" and path.name != "__init__.py")

    assert {room: count for room, count in rooms.items() if count > MAX_FILES and room not in CROWDED} == {}


def test_the_root_has_no_module_but_the_package_itself() -> None:
    assert [path.name for path in _tracked() if len(path.parts) == 1 and path.suffix == ".py"] == ["__init__.py"]


def test_a_class_has_its_name_alone() -> None:
    found: dict[str, list[str]] = {}
    for path in _tracked():
        if path.suffix == ".py" and path.parts[0] not in NOT_IN_THE_PACKAGE:
            for name in CLASS.findall((REPOSITORY / path).read_text(encoding="utf-8")):
                found.setdefault(name, []).append(str(path))

    assert {name: paths for name, paths in found.items() if len(paths) > 1} == {}


def test_no_folder_or_file_has_a_catch_all_name() -> None:
    named = [str(path) for path in _tracked() if CATCH_ALL_NAMES & {part.split(".")[0] for part in path.parts}]

    assert named == []


def test_no_text_uses_a_word_that_the_glossary_replaces() -> None:
    prose = {".py", ".md", ".j2", ".html", ".js"}
    allowed = {Path("CONTRIBUTING.md"), Path("tests/test_floors.py")}
    found = []
    for path in _tracked():
        if path.suffix in prose and path not in allowed:
            lines = enumerate((REPOSITORY / path).read_text(encoding="utf-8").splitlines(), start=1)
            found += [f"{path}:{number}: {line.strip()}" for number, line in lines if REPLACED_WORDS.search(line)]

    assert found == []


def test_no_text_names_a_path_of_one_machine() -> None:
    found = []
    for path in _tracked():
        try:
            text = (REPOSITORY / path).read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue
        lines = enumerate(text.splitlines(), start=1)
        found += [f"{path}:{number}: {line.strip()}" for number, line in lines if MACHINE_PATH.search(line)]

    assert found == []


@pytest.mark.parametrize(
    ("text", "is_found"),
    [("cp x /home" + "/ann/x", True), ("'/tmp" + "/run'", True), ("https://a.org/work/b", False), ("~/tmp/b", False)],
)
def test_machine_path_is_no_web_address(text: str, *, is_found: bool) -> None:
    assert bool(MACHINE_PATH.search(text)) is is_found


def test_every_package_is_listed_for_the_wheel() -> None:
    settings = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))
    folders = {path.parent for path in _tracked() if path.suffix == ".py" and path.parts[0] not in NOT_IN_THE_PACKAGE}

    assert set(settings["tool"]["setuptools"]["packages"]) == {
        ".".join(("conflictvla", *folder.parts)) for folder in folders
    }


def test_every_requirement_is_pinned_and_no_host_is_named() -> None:
    settings = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = settings["optional-dependencies"]
    requirements = [*settings["dependencies"], *(line for extra in extras.values() for line in extra)]
    pins = (REPOSITORY / "constraints.txt").read_text(encoding="utf-8")

    pinned = set(re.findall(r"^([a-z0-9-]+)==\S+", pins, re.MULTILINE))
    assert {re.split(r"[\[<>=~! ]", line)[0].lower() for line in requirements} - pinned == set()
    assert "://" not in pins
