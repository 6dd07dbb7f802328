"""What a user's `pip install` brings: the package and its data, and nothing else."""

import subprocess
import sys
import zipfile
from pathlib import Path

PACKAGE_FOLDERS = {"cli", "toolkit", "builders", "eval", "dataset_cards"}


def _names(wheel: Path) -> set[str]:
    with zipfile.ZipFile(wheel) as archive:
        return {name for name in archive.namelist() if not name.endswith("/")}


def test_only_top_level_name_is_conflictvla(wheel: Path) -> None:
    top_level = {name.split("/")[0] for name in _names(wheel)}

    assert {name for name in top_level if not name.endswith(".dist-info")} == {"conflictvla"}


def test_wheel_holds_every_file_of_the_package_and_no_other(wheel: Path, working_tree: list[Path]) -> None:
    in_folders = {path for path in working_tree if path.parts[0] in PACKAGE_FOLDERS}
    at_the_root = {path for path in working_tree if len(path.parts) == 1 and path.name.endswith((".py", "py.typed"))}
    expected = {f"conflictvla/{path.as_posix()}" for path in in_folders | at_the_root}

    assert {name for name in _names(wheel) if name.startswith("conflictvla/")} == expected


def test_installed_wheel_imports_without_the_source_tree(wheel: Path, tmp_path: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path)
    use = "from conflictvla.toolkit.language.vocabulary import load_vocabulary; load_vocabulary()"
    code = f"import conflictvla; {use}; print(conflictvla.__file__)"

    result = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False)

    assert result.returncode == 0, result.stderr
    assert result.stdout.strip() == str(tmp_path / "conflictvla" / "__init__.py")
