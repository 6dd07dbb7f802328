"""The pages of the documentation, and a reader who does what they say, in order, and looks at what comes out."""

from __future__ import annotations

import contextlib
import io
import re
import shlex
import shutil
import socket
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import typer

from conflictvla.cli.app import app

from .eval.in_process import Done, conflictvla

REPOSITORY = Path(__file__).resolve().parents[1]
README = REPOSITORY / "README.md"
PAGES = REPOSITORY / "docs" / "pages"
FENCE = re.compile(r'^```(\w+)(?: title="([^"]+)")?\n(.*?)^```$', re.MULTILINE | re.DOTALL)
SERVERS = {"serve-policy": 8000, "leaderboard": 7860}
"""Commands that go on until they are interrupted, and the ports that pages name for them."""

ENDS = {"--terminal", "--json", "--space"}
"""Options with which they do not."""


@dataclass(frozen=True)
class Snippet:
    """One fenced block. With a title it is a file; ``text`` is what the Python block before it prints."""

    language: str
    title: str
    text: str
    where: str

    def commands(self) -> list[tuple[str, str]]:
        """Each command of a console or bash block with what it prints, which may be left out."""
        text = re.sub(r" \\\n +", " ", self.text)  # a line that goes on in the next one
        if self.language == "bash":
            return [(line, "") for line in text.splitlines()]
        blocks = re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]
        return [(line, shown) for line, _, shown in (block.partition("\n") for block in blocks)]


def snippets(page: Path) -> list[Snippet]:
    """All fenced blocks of a page, in order."""
    text = page.read_text(encoding="utf-8")
    found = [
        Snippet(
            language=block[1],
            title=block[2] or "",
            text=block[3],
            where=f"{page.relative_to(REPOSITORY)}:{text.count(chr(10), 0, block.start()) + 1}",
        )
        for block in FENCE.finditer(text)
    ]
    assert text.count("```") == 2 * len(found), f"{page}: a fence that the tests cannot read"
    return found


def all_pages() -> list[Path]:
    """The README and every page of the site."""
    return [README, *sorted(PAGES.rglob("*.md"))]


def check_command(line: str) -> None:
    """Make sure that a line could be typed: the command exists and takes these arguments; nothing is run."""
    program, *arguments = shlex.split(line, comments=True)
    if program == "conflictvla":
        group: Any = typer.main.get_command(app)
        name: Any = program
        with contextlib.ExitStack() as contexts:
            context = None
            while isinstance(group, typer.core.TyperGroup):
                context = contexts.enter_context(group.make_context(name, [], parent=context, resilient_parsing=True))
                name, group, arguments = group.resolve_command(context, arguments)
            group.make_context(name, arguments, parent=context)
    elif program == "make":
        subprocess.run(["make", "--dry-run", *arguments], cwd=REPOSITORY, check=True, capture_output=True)
    elif program == "pip":
        assert arguments[0] == "install", line
        extras = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]["optional-dependencies"]
        named = [extra for group in re.findall(r"\[(.*?)\]", line) for extra in group.split(",")]
        assert set(named) <= extras.keys(), line
    else:
        assert program in {"source", "python", "hf", "echo"}, f"no test knows how to check: {line}"


@dataclass
class Reader:
    """Follows a page in a folder: writes its files, runs its snippets in one session and its commands.

    Attributes:
        folder: Working directory; must be the process's own already.
        recorded: Runs of scripted agents that another page has made, by their arguments: the recorded bits are the
            same, so they are copied.
    """

    folder: Path
    recorded: dict[str, tuple[Path, Done]] = field(default_factory=dict)
    port: int = field(default_factory=lambda: _free_port())

    def follow(self, page: Path) -> None:
        """Do all that the page says, in order."""
        names: dict[str, Any] = {"__name__": "__main__"}
        printed = ""
        with _own_modules(self.folder), contextlib.ExitStack() as servers:
            for snippet in snippets(page):
                if snippet.title:
                    self._write(snippet)
                elif snippet.language == "console":
                    self._type(snippet, servers)
                elif snippet.language == "python":
                    with contextlib.redirect_stdout(io.StringIO()) as out:
                        exec(compile(snippet.text, snippet.where, "exec"), names)
                    printed = out.getvalue()
                elif snippet.language == "text":
                    expect(printed, snippet.text, snippet.where)
                elif "pip install -e ." in snippet.text:
                    self._install()
                else:
                    assert snippet.language == "bash", f"{snippet.where}: what is this?"

    def _write(self, snippet: Snippet) -> None:
        file = self.folder / snippet.title
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(snippet.text, encoding="utf-8")

    def _type(self, snippet: Snippet, servers: contextlib.ExitStack) -> None:
        code = 0
        for line, shown in snippet.commands():
            if line == "echo $?":
                expect(str(code), shown, snippet.where)
                code = 0
                continue
            assert code == 0, f"{snippet.where}: ended with {code}"
            program, *arguments = shlex.split(line)
            if program == "conflictvla" and arguments[0] in SERVERS and not ENDS & set(arguments):
                printed = servers.enter_context(self._serving(arguments))
                shown = self._at_my_port(shown)
            elif program == "conflictvla":
                done = self._conflictvla([self._at_my_port(argument) for argument in arguments])
                code, printed = done.returncode, done.stdout + done.stderr
            else:
                assert program == "python", f"{snippet.where}: {line}"
                done_here = subprocess.run([sys.executable, *arguments], capture_output=True, text=True, check=False)
                code, printed = done_here.returncode, done_here.stdout + done_here.stderr
            assert code == 0 or "echo $?" in snippet.text, f"{snippet.where}: {line}\n{printed}"
            if shown.strip():
                expect(printed, shown, f"{snippet.where}: {line}")

    def _conflictvla(self, arguments: list[str]) -> Done:
        if arguments[0] != "run" or ":" in arguments[arguments.index("--policy") + 1]:
            return conflictvla(*arguments)
        out = Path(arguments[arguments.index("--out") + 1])
        key = shlex.join(arguments)
        if key in self.recorded:
            folder, done = self.recorded[key]
            shutil.copytree(folder, out, dirs_exist_ok=True)
            return done
        done = conflictvla(*arguments)
        self.recorded[key] = (out.resolve(), done)
        return done

    @contextlib.contextmanager
    def _serving(self, arguments: list[str]) -> Iterator[str]:
        """A server in a process of its own; yields what it prints first."""
        command = [sys.executable, "-m", "conflictvla.cli", *arguments, "--port", str(self.port)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
            try:
                assert server.stdout is not None
                yield server.stdout.readline()
            finally:
                server.terminate()

    def _at_my_port(self, text: str) -> str:
        for port in SERVERS.values():
            text = text.replace(f"localhost:{port}", f"127.0.0.1:{self.port}")
            text = text.replace(f"127.0.0.1:{port}", f"127.0.0.1:{self.port}")
        return text

    def _install(self) -> None:
        """What pip does for the entry points of the page's own package."""
        project = tomllib.loads((self.folder / "pyproject.toml").read_text())["project"]
        metadata = self.folder / f"{project['name'].replace('-', '_')}-{project['version']}.dist-info"
        metadata.mkdir()
        (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: 1\n")
        lines = [
            f"[{group}]\n" + "".join(f"{name} = {where}\n" for name, where in entries.items())
            for group, entries in project["entry-points"].items()
        ]
        (metadata / "entry_points.txt").write_text("".join(lines))
        sys.path.insert(0, str(self.folder))


def expect(printed: str, shown: str, where: str) -> None:
    """Compare what came out with what the page shows; ``...`` there stands for anything."""
    pattern = r"\s+".join(re.escape(word).replace(r"\.\.\.", ".*?") for word in shown.split())
    assert re.fullmatch(pattern.replace(r"\s+.*?", ".*?"), printed.strip(), re.DOTALL), f"{where}\n{printed}"


@contextlib.contextmanager
def _own_modules(folder: Path) -> Iterator[None]:
    """Forget the folder's modules afterwards, and where they were found."""
    path = list(sys.path)
    try:
        yield
    finally:
        sys.path[:] = path
        for name, module in list(sys.modules.items()):
            if str(getattr(module, "__file__", None) or "").startswith(str(folder)):
                del sys.modules[name]


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
