"""Commands run in this process, which saves the seconds that starting Python and loading everything takes."""

from __future__ import annotations

import contextlib
import io
import math
import sys
from dataclasses import dataclass
from pathlib import Path
from unittest import mock

from conflictvla.cli import console
from conflictvla.cli.app import main


@dataclass(frozen=True)
class Done:
    returncode: int
    stdout: str
    stderr: str


def conflictvla(*arguments: str | Path) -> Done:
    """What the command prints and how it ends, but for the lines that tell a log how far it is after a minute."""
    out, err = io.StringIO(), io.StringIO()
    code: object = 0
    with (
        mock.patch.object(console, "LOG_EVERY_S", math.inf),
        mock.patch.object(sys, "argv", ["conflictvla", *map(str, arguments)]),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
    ):
        try:
            main()
        except SystemExit as end:
            code = end.code or 0
    assert isinstance(code, int)
    return Done(returncode=code, stdout=out.getvalue(), stderr=err.getvalue())
