"""A hash of sources changes with any file of them, and with nothing else."""

import shutil
from pathlib import Path

import pytest

from conflictvla.toolkit.simulation.observing.facts_cache import MEASURED_BY, TOOLKIT
from conflictvla.toolkit.source_hash import sources_sha256


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the toolkit's sources."""
    folder = tmp_path_factory.mktemp("copy") / "toolkit"
    shutil.copytree(TOOLKIT, folder, ignore=shutil.ignore_patterns("__pycache__", "suites"))
    return folder


def _python_files(root: Path, names: tuple[str, ...]) -> list[Path]:
    return [file for name in names for file in ([root / name] if name.endswith(".py") else (root / name).rglob("*.py"))]


@pytest.mark.parametrize("names", [MEASURED_BY, ("simulation/stepping",)], ids=["facts", "kernels"])
def test_changing_any_file_changes_the_hash(copy: Path, names: tuple[str, ...]) -> None:
    original = sources_sha256(copy, *names)
    assert original == sources_sha256(TOOLKIT, *names)
    files = _python_files(copy, names)
    assert {"solver.py", "movers.py", "mujoco_library.py"} <= {file.name for file in files}
    hashes = {original}
    for file in files:
        content = file.read_bytes()
        file.write_bytes(content + b"\n")
        hashes.add(sources_sha256(copy, *names))
        file.write_bytes(content)
    assert len(hashes) == len(files) + 1
    assert sources_sha256(copy, *names) == original


def test_a_new_file_and_another_name_change_the_hash_and_other_files_do_not(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "a.py").write_text("x = 1\n")
    hashes = [sources_sha256(tmp_path, "folder")]
    (tmp_path / "folder" / "notes.txt").write_text("nothing that runs\n")
    (tmp_path / "beside.py").write_text("x = 2\n")
    assert sources_sha256(tmp_path, "folder") == hashes[0]
    (tmp_path / "folder" / "b.py").write_text("")
    hashes.append(sources_sha256(tmp_path, "folder"))
    (tmp_path / "folder" / "b.py").rename(tmp_path / "folder" / "c.py")
    hashes.append(sources_sha256(tmp_path, "folder"))
    assert len(set(hashes)) == 3


def test_a_name_that_does_not_exist_is_refused(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        sources_sha256(tmp_path, "nowhere")


def test_facts_depend_on_no_module_that_their_hash_leaves_out() -> None:
    import grimp

    package = TOOLKIT.parent
    used = grimp.build_graph("conflictvla").find_upstream_modules(
        "conflictvla.toolkit.simulation.observing.scene_facts"
    )
    assert "conflictvla.toolkit.simulation.stepping.newton.solver" in used
    hashed = _python_files(TOOLKIT, MEASURED_BY)
    for module in used:
        parts = module.split(".")[1:]
        file, init = package.joinpath(*parts).with_suffix(".py"), package.joinpath(*parts, "__init__.py")
        assert file in hashed or init in hashed, f"{module} is missing in MEASURED_BY"
