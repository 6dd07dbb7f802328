"""What a user's `pip install` brings: the package and its data, and nothing else."""

import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[1]
PACKAGE_FOLDERS = {"toolkit", "builders", "eval", "dataset_cards"}
BUILD = "import sys; from setuptools import build_meta; print(build_meta.build_wheel(sys.argv[1]))"


def _files() -> list[Path]:
    """Files of the working tree that git does not ignore."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=True).stdout
    return [Path(name) for name in listed.split("\0") if name and (REPOSITORY / name).is_file()]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    # From a copy: setuptools takes up whatever an earlier build left in the source tree.
    source, out = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("wheel")
    for path in _files():
        (source / path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(REPOSITORY / path, source / path)
    built = subprocess.run(
        [sys.executable, "-c", BUILD, str(out)], cwd=source, capture_output=True, text=True, check=False
    )
    assert built.returncode == 0, built.stderr
    return next(out.glob("*.whl"))


def _names(wheel: Path) -> set[str]:
    with zipfile.ZipFile(wheel) as archive:
        return {name for name in archive.namelist() if not name.endswith("/")}


def test_only_top_level_name_is_conflictvla(wheel: Path) -> None:
    top_level = {name.split("/")[0] for name in _names(wheel)}

    assert {name for name in top_level if not name.endswith(".dist-info")} == {"conflictvla"}


def test_wheel_holds_every_file_of_the_package_and_no_other(wheel: Path) -> None:
    expected = {
        f"conflictvla/{path.as_posix()}"
        for path in _files()
        if path.parts[0] in PACKAGE_FOLDERS
        or (len(path.parts) == 1 and (path.suffix == ".py" or path.name == "py.typed"))
    }

    assert {name for name in _names(wheel) if name.startswith("conflictvla/")} == expected


def test_installed_wheel_imports_without_the_source_tree(wheel: Path, tmp_path: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path)
    code = "import conflictvla, conflictvla.toolkit.vocabulary as v; v.load_vocabulary(); print(conflictvla.__file__)"

    result = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False)

    assert result.returncode == 0, result.stderr
    assert result.stdout.strip() == str(tmp_path / "conflictvla" / "__init__.py")
