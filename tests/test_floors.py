"""The house rules that a tool can check: floors, sizes, names, and nothing that only one machine has."""

import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[1]
MAX_LINES = 500
WRITTEN_BY_HAND = {"", ".py", ".pyi", ".md", ".toml", ".yaml", ".yml", ".j2", ".html", ".css", ".js", ".sh"}
CATCH_ALL_NAMES = {"utils", "util", "helpers", "helper", "common", "core", "misc"}
MACHINE_PATH = re.compile(r"(?<![\w.~-])/(home|root|tmp|work)/\w")
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


def test_each_floor_imports_only_from_those_below() -> None:
    result = _lint_imports(REPOSITORY)

    assert result.returncode == 0, result.stdout


def test_upward_import_is_refused(tmp_path: Path) -> None:
    package = tmp_path / "conflictvla"
    for path in _tracked():
        if path.suffix == ".py" and path.parts[0] not in NOT_IN_THE_PACKAGE:
            (package / path).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(REPOSITORY / path, package / path)
    shutil.copy(REPOSITORY / "pyproject.toml", tmp_path)
    with (package / "toolkit" / "errors.py").open("a") as file:
        file.write("\nfrom ..eval import policies\n")

    result = _lint_imports(tmp_path)

    assert result.returncode == 1
    assert "conflictvla.toolkit is not allowed to import conflictvla.eval" in result.stdout


def test_no_file_is_longer_than_500_lines() -> None:
    lengths = {
        str(path): (REPOSITORY / path).read_bytes().count(b"\n")
        for path in _tracked()
        if path.suffix in WRITTEN_BY_HAND
    }

    assert {name: lines for name, lines in lengths.items() if lines > MAX_LINES} == {}


def test_no_folder_or_file_has_a_catch_all_name() -> None:
    named = [str(path) for path in _tracked() if CATCH_ALL_NAMES & {part.split(".")[0] for part in path.parts}]

    assert named == []


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
def test_machine_path_is_told_from_a_web_address(text: str, *, is_found: bool) -> None:
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
