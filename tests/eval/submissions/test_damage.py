"""Damaged files: each is read as what it holds or refused in one line, not with a traceback.

Arrow promises nothing for such files, and may end the process. A submission's files are therefore read in another
process first, and releases carry checksums.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from conflictvla.eval.submissions.untrusted import trial_reading
from conflictvla.eval.submissions.untrusted.trial_reading import try_reading
from conflictvla.toolkit.errors import DatasetError

from ...conftest import REPOSITORY
from .damage import KINDS, content_of, damaged, outcome

FEW = 20
"""Damaged copies of each kind in every run."""

MANY = 10_000 // len(KINDS) + 1
"""In the exhaustive one: over 10,000 in all."""

READ_COPIES = """
import sys, types
tests = types.ModuleType("tests")  # another package of that name may be installed
tests.__path__ = [sys.argv[1]]
sys.modules["tests"] = tests
from pathlib import Path
from tests.eval.submissions.damage import main
main(sys.argv[2], int(sys.argv[3]), int(sys.argv[4]), Path(sys.argv[5]))
"""

FINE = {"refused", "read as before", "read otherwise"}


@pytest.mark.parametrize("name", KINDS)
def test_a_damaged_file_is_refused_or_read_and_nothing_else(name: str, tmp_path: Path) -> None:
    kind = KINDS[name](tmp_path)
    content, before = kind.file.read_bytes(), content_of(kind.read())
    found: Counter[str] = Counter()
    for copy in damaged(content, FEW, seed=FEW):
        kind.file.write_bytes(copy)
        found[outcome(kind, before)] += 1
    assert set(found) <= FINE
    assert found["refused"] > FEW // 4 or name == "card"


@pytest.mark.slow
@pytest.mark.parametrize("name", KINDS)
def test_ten_thousand_damaged_files_are_refused_or_read_and_nothing_else(name: str, tmp_path: Path) -> None:
    found: Counter[str] = Counter()
    number = 0
    while number < MANY:
        folder = tmp_path / str(number)
        folder.mkdir()
        command = [sys.executable, "-c", READ_COPIES, str(REPOSITORY / "tests"), name, str(number), str(MANY)]
        done = subprocess.run([*command, str(folder)], capture_output=True, text=True, check=False)
        assert done.stdout, done.stderr
        file, *outcomes = done.stdout.splitlines()
        found.update(outcomes)
        number += len(outcomes)
        if number < MANY:
            found["ended the process"] += 1
            with pytest.raises(DatasetError, match="ends the process that reads it"):
                try_reading([Path(file)])
            number += 1
    sys.stdout.write(f"{name}: {dict(found)}\n")
    assert set(found) <= FINE | ({"ended the process"} if name.endswith("parquet") else set())


def test_a_file_that_is_never_read_to_the_end_is_named_in_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    os.mkfifo(tmp_path / "waits.parquet")
    monkeypatch.setattr(trial_reading, "LONGEST_S", 3)
    with pytest.raises(DatasetError, match=r"waits\.parquet: reading it takes over 3 s"):
        try_reading([tmp_path / "waits.parquet"])


@pytest.mark.parametrize("name", [name for name in KINDS if name.endswith("JSON")])
def test_json_that_is_something_else_is_refused(name: str, tmp_path: Path) -> None:
    kind = KINDS[name](tmp_path)
    before = content_of(kind.read())
    for text in (b"[" * 200_000, b'{"a":' * 100_000, b"\xff\xfe\x00", b"", b'"text"', b"7", b'{"provenance": 1}'):
        kind.file.write_bytes(text)
        assert outcome(kind, before) == "refused", text[:20]
