"""Locks that also hold on shared file systems: files created by one process alone, with a sign of life while it lives.

Neither clocks of other machines nor file locks of the operating system are relied upon. A process is dead when this
machine has no such process, or, wherever it is, when its file was not touched for ``EXPIRY_S`` while it was watched.
"""

from __future__ import annotations

import contextlib
import functools
import json
import os
import socket
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path

from ....toolkit.errors import InvalidInputError

HEARTBEAT_S = 15.0
"""How often a process touches its files."""

EXPIRY_S = 120.0
"""How long a file may stay untouched before its process counts as dead. Network file systems may
show an old time for up to a minute."""

POLL_S = 1.0
"""Pause between two looks at a lock that another process holds."""

BREAK_S = 10.0
"""How long the file may stay untouched by which one process alone removes a dead one's lock."""


@functools.cache
def _machine() -> str:
    """Within what process numbers mean the same: a boot of a machine, and a namespace of processes."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
        return f"{boot} {Path('/proc/self/ns/pid').stat().st_ino}"
    except OSError:
        return f"{socket.gethostname()} {uuid.getnode()}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Worker:
    """A process at work on a run.

    Attributes:
        host: Name of its machine.
        pid: Its number there.
        machine: Which machine it is and which of its processes can be seen, since containers share names and numbers.
        token: Different for each run of each process.
    """

    host: str = field(default_factory=socket.gethostname)
    pid: int = field(default_factory=os.getpid)
    machine: str = field(default_factory=_machine)
    token: str = field(default_factory=lambda: uuid.uuid4().hex)

    def __str__(self) -> str:
        return f"process {self.pid} on {self.host}"

    def text(self) -> str:
        """As what a lock file contains."""
        return json.dumps(asdict(self), sort_keys=True)


def read_worker(file: Path) -> Worker | None:
    """Who has created a lock file; None where it is gone, or not written yet."""
    try:
        return Worker(**json.loads(file.read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError):
        return None


class Heartbeat:
    """Touches files of this process while a block runs, so that others see that it lives."""

    def __init__(self) -> None:
        self._files: set[Path] = set()
        self._stop = threading.Event()

    def __enter__(self) -> Heartbeat:
        threading.Thread(target=self._beat, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()

    @contextlib.contextmanager
    def touching(self, file: Path) -> Iterator[None]:
        """Also touch this file, until the block ends."""
        self._files = self._files | {file}
        try:
            yield
        finally:
            self._files = self._files - {file}

    def _beat(self) -> None:
        while not self._stop.wait(HEARTBEAT_S):
            for file in self._files:
                with contextlib.suppress(OSError):
                    os.utime(file)


class Watch:
    """Watches files of other processes.

    Args:
        expiry_s: How long one may stay untouched, in s.
    """

    def __init__(self, expiry_s: float = EXPIRY_S) -> None:
        self._expiry_s = expiry_s
        self._seen: dict[Path, tuple[int, float]] = {}

    def is_abandoned(self, file: Path) -> bool:
        """Whether the process of a file is dead; False where there is no such file."""
        try:
            touched = file.stat().st_mtime_ns
        except OSError:
            return False
        worker = read_worker(file)
        if worker is not None and worker.machine == _machine() and not _is_running(worker.pid):
            return True
        last, since = self._seen.get(file, (None, 0.0))
        if touched != last:
            self._seen[file] = touched, time.monotonic()
            return False
        return time.monotonic() - since > self._expiry_s


class Lock:
    """A lock that is held.

    Args:
        file: Its file.
        worker: Who holds it.
    """

    def __init__(self, file: Path, worker: Worker) -> None:
        self._file, self._worker = file, worker

    def check(self) -> None:
        """Make sure, before a step that cannot be undone, that no other process has taken it for abandoned.

        Raises:
            InvalidInputError: It has, since this one was not running for a long time.
        """
        if read_worker(self._file) != self._worker:
            raise InvalidInputError(
                f"{self._file}: another process has gone on, since this one stood still: give the command again"
            )


@contextlib.contextmanager
def locked(file: Path, worker: Worker, heartbeat: Heartbeat, wait: Callable[[str], None]) -> Iterator[Lock]:
    """Hold a lock while a block runs.

    Args:
        file: Its file; it is there while the lock is held.
        worker: Who wants it.
        heartbeat: Touches the file.
        wait: Called once with one line where another process holds it.

    Raises:
        InvalidInputError: The folder cannot be written.
    """
    watch, looks = Watch(), 0
    while not create_alone(file, worker.text()):
        holder = read_worker(file)
        if holder == worker:  # a network file system may answer a repeated request like this
            break
        if watch.is_abandoned(file):
            _break(file, holder, watch)
            continue
        looks += 1
        if looks == 2:  # most hold it for an instant
            wait(f"waiting for {holder or 'another process'}, which has {file} and reads or writes the dataset")
        time.sleep(POLL_S)
    try:
        with heartbeat.touching(file):
            yield Lock(file, worker)
    finally:
        if read_worker(file) == worker:
            file.unlink(missing_ok=True)


def create_alone(file: Path, text: str) -> bool:
    """Create a file unless it exists; of several processes one alone succeeds, on network file systems too.

    Raises:
        InvalidInputError: It cannot be written.
        FileNotFoundError: Its folder is gone.
    """
    try:
        descriptor = os.open(file, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666)
    except FileExistsError:
        return False
    except FileNotFoundError:
        raise
    except OSError as error:
        raise InvalidInputError(f"{file.parent}: cannot be written ({error.strerror})") from error
    with os.fdopen(descriptor, "w", encoding="utf-8") as opened:
        opened.write(text)
    return True


def _break(file: Path, dead: Worker | None, watch: Watch) -> None:
    """Remove the lock of a dead process; one process alone does so, and none removes a later one's."""
    guard = file.with_name(f"{file.name}.break")
    if not create_alone(guard, ""):
        with contextlib.suppress(OSError):
            before = guard.stat().st_mtime_ns
            time.sleep(BREAK_S)
            if guard.stat().st_mtime_ns == before:  # whoever created it died within an instant
                guard.unlink(missing_ok=True)
        return
    try:
        if watch.is_abandoned(file) and read_worker(file) == dead:  # still, and not a new one
            file.unlink(missing_ok=True)
    finally:
        guard.unlink(missing_ok=True)


def _is_running(pid: int) -> bool:
    """Whether there is such a process, other than one that has ended and whose parent takes no note of it."""
    with contextlib.suppress(OSError, IndexError):
        return Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0] not in "ZX"
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:  # it belongs to somebody else
        return True
    return True
