"""Files are written atomically: complete, or absent."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from conflictvla.toolkit.atomic_files import atomic_file, check_file_place, check_folder_place, write_atomic
from conflictvla.toolkit.errors import InvalidInputError


def test_a_file_is_written_with_its_folders_and_nothing_beside_it(tmp_path: Path) -> None:
    file = tmp_path / "new" / "folder" / "scores.json"
    write_atomic(file, "“é”\n")
    assert file.read_bytes() == "“é”\n".encode()
    write_atomic(file, b"again")
    assert file.read_bytes() == b"again"
    assert [*file.parent.iterdir()] == [file]


def test_the_old_file_stays_where_writing_the_new_one_fails(tmp_path: Path) -> None:
    file = tmp_path / "scores.json"
    write_atomic(file, "old")

    def write_half() -> None:
        with atomic_file(file) as aside:
            aside.write_text("half")
            raise RuntimeError

    with pytest.raises(RuntimeError):
        write_half()
    assert file.read_text() == "old"
    assert [*tmp_path.iterdir()] == [file]


@pytest.mark.parametrize("place", ["file/below", "folder", "a" * 300])
def test_a_place_that_cannot_be_written_is_named(tmp_path: Path, place: str) -> None:
    (tmp_path / "file").write_text("")
    (tmp_path / "folder" / "full").mkdir(parents=True)
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(InvalidInputError, match=f"{place}: cannot be written .*; make room or choose another place"):
        write_atomic(tmp_path / place, "content")
    assert sorted(tmp_path.rglob("*")) == before


def test_what_a_killed_process_leaves_has_another_ending(tmp_path: Path) -> None:
    code = (
        "import os, pathlib; from conflictvla.toolkit.atomic_files import atomic_file\n"
        "with atomic_file(pathlib.Path('shard.parquet')) as aside:\n"
        "    aside.write_text('half'); os.kill(os.getpid(), 9)"
    )
    assert subprocess.run([sys.executable, "-c", code], cwd=tmp_path, check=False).returncode == -9
    (left,) = tmp_path.iterdir()
    assert left.suffix == ".part"
    assert not [*tmp_path.glob("*.parquet")]


@pytest.mark.parametrize("check", [check_file_place, check_folder_place])
def test_a_place_can_be_tried_before_long_work_and_nothing_is_left(
    tmp_path: Path, check: Callable[[Path], None]
) -> None:
    (tmp_path / "file").touch()
    check(tmp_path / "new" / "folder" / "x")
    for place in ("file/below", "a" * 300):
        with pytest.raises(InvalidInputError, match=f"{place}: cannot be written .*; choose another place"):
            check(tmp_path / place)
    assert [*tmp_path.iterdir()] == [tmp_path / "file"]


def test_a_folder_is_no_place_for_a_file_and_a_file_none_for_a_folder(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    check_file_place(tmp_path / "file")
    check_folder_place(tmp_path)
    with pytest.raises(InvalidInputError, match="is not a file; choose another place"):
        check_file_place(tmp_path)
    with pytest.raises(InvalidInputError, match="is not a folder; choose another place"):
        check_folder_place(tmp_path / "file")
