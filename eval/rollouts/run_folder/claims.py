"""Which process runs which rollout, where several work on one run.

A claim is a file that one process alone has created, with the token of that process. It holds as long as the process
gives a sign of life, by one file of its own. Should two processes nevertheless run the same rollout, no harm is done:
either's shard is complete, and takes the place of the other's.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

from .locks import Heartbeat, Watch, Worker, create_alone, read_worker

CLAIMS = "claims"
PROCESSES = "processes"


class Claims:
    """The claims of one process on the rollouts of a run.

    Args:
        folder: The run's hidden folder.
        worker: The process.
    """

    def __init__(self, folder: Path, worker: Worker) -> None:
        self._claims, self._processes = folder / CLAIMS, folder / PROCESSES
        self._worker, self._watch = worker, Watch()

    @contextlib.contextmanager
    def held(self, heartbeat: Heartbeat) -> Iterator[None]:
        """Claims can be taken while the block runs; after it others take what is still claimed."""
        self._claims.mkdir(parents=True, exist_ok=True)
        self._processes.mkdir(exist_ok=True)
        mine = self._file_of(self._worker.token)
        create_alone(mine, self._worker.text())
        try:
            with heartbeat.touching(mine):
                yield
        finally:
            with contextlib.suppress(OSError):
                mine.unlink()

    def take(self, stem: str) -> bool:
        """Claim a rollout, by the stem of its file; False where another process has it, or the run is finished."""
        claim = self._claims / stem
        with contextlib.suppress(FileNotFoundError):  # another process has finished the run
            if create_alone(claim, self._worker.token):
                return True
            if self._is_abandoned(claim):
                claim.unlink(missing_ok=True)
                return create_alone(claim, self._worker.token)
        return False

    def release(self, stem: str) -> None:
        """Give a claim back: its rollout is stored, or has failed."""
        with contextlib.suppress(OSError):
            (self._claims / stem).unlink()

    def living(self) -> dict[str, Worker | None]:
        """The claims that hold, by the stems of their rollouts, and whose each is, where that is known."""
        claims = [claim for claim in self._claims.glob("*") if not self._is_abandoned(claim)]
        return {claim.name: self._holder(claim) for claim in claims}

    def others_at_work(self) -> bool:
        """Whether another process, which may not have claimed anything yet, is at work on the run."""
        mine = self._file_of(self._worker.token)
        return any(file != mine and not self._watch.is_abandoned(file) for file in self._processes.glob("*.json"))

    def _holder(self, claim: Path) -> Worker | None:
        try:
            return read_worker(self._file_of(claim.read_text(encoding="ascii")))
        except OSError:
            return None

    def _is_abandoned(self, claim: Path) -> bool:
        try:
            token = claim.read_text(encoding="ascii")
        except OSError:
            return True
        # One without a token is being written, unless it stays like that.
        file = self._file_of(token) if token else claim
        return not file.exists() or self._watch.is_abandoned(file)

    def _file_of(self, token: str) -> Path:
        return self._processes / f"{token}.json"
