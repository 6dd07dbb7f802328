"""Damaged copies of every kind of untrusted file, and what becomes of reading them.

In a process of its own, ``main`` reads copies from a given one on, so that one can go on behind a copy that ends it.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import random
import shutil
import signal
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq

from conflictvla.builders.probes.instances import PROBES_VERSION
from conflictvla.builders.review.ledger import ledger_file, read_ledger
from conflictvla.builders.rollouts.schema import FRAME_FEATURES
from conflictvla.builders.rollouts.sim_states import read_sim_states
from conflictvla.builders.tasks_dataset.reading import load_instances, packaged_tasks
from conflictvla.eval.policies.remote.wire import Message, pack_openpi, pack_vla_eval, unpack_openpi, unpack_vla_eval
from conflictvla.eval.recordings.reading import read_rollouts
from conflictvla.eval.recordings.rollout_set import RolloutSet
from conflictvla.eval.recordings.sources import packaged_rollouts
from conflictvla.eval.scores.scores import read_scores, score
from conflictvla.eval.submissions.publish import plan_publication
from conflictvla.eval.submissions.results_file import read_result, read_verification
from conflictvla.eval.submissions.untrusted.limits import check_folder
from conflictvla.toolkit.errors import ConflictVLAError

from ..leaderboard.made_up_results import write_board
from .recorded import honest, write

LONGEST_S = 60
"""How long reading one file may take."""

MOST_MEMORY_BYTES = 8 << 30


@dataclass(frozen=True)
class Kind:
    """A file, how it is read, and the form of what it holds."""

    file: Path
    read: Callable[[], object]


def _result(folder: Path) -> Kind:
    (file,) = (write_board(folder / "board", ["a"]) / "results").glob("*")
    return Kind(file, lambda: read_result(file))


def _verification(folder: Path) -> Kind:
    (file,) = (write_board(folder / "board", ["a"], verified=["a"]) / "verified").glob("*")
    return Kind(file, lambda: read_verification(file))


def _read_checked(folder: Path) -> RolloutSet:
    check_folder(folder)
    return read_rollouts(folder, tuple(FRAME_FEATURES))


def _frames(folder: Path) -> Kind:
    copy = Path(shutil.copytree(packaged_rollouts() / "refuse", folder / "rollouts"))
    (file,) = (copy / "data").rglob("*.parquet")
    return Kind(file, lambda: _read_checked(copy))


def _recorded(folder: Path) -> Path:
    return write(folder / "rollouts", honest()[:3])


def _episodes(folder: Path) -> Kind:
    copy = _recorded(folder)
    (file,) = (copy / "meta/episodes").rglob("*.parquet")
    return Kind(file, lambda: _read_checked(copy))


def _states(folder: Path) -> Kind:
    copy = _recorded(folder)
    (file,) = (copy / "sim_states").rglob("*.parquet")
    return Kind(file, lambda: read_sim_states(copy, [0, 1, 2]))


def _info(folder: Path) -> Kind:
    copy = _recorded(folder)
    return Kind(copy / "meta/info.json", lambda: read_rollouts(copy))


def _references(folder: Path) -> Kind:
    copy = Path(shutil.copytree(packaged_tasks(), folder / "tasks"))
    return Kind(copy / "references/test.parquet", lambda: load_instances(copy))


def _scores(folder: Path) -> Kind:
    file = score(packaged_rollouts() / "refuse").write(folder / "scores.json")
    return Kind(file, lambda: read_scores(file).to_json())


def _ledger(folder: Path) -> Kind:
    file = folder / "ledger.json"
    entries = json.loads(ledger_file().read_text(encoding="utf-8"))[:20]
    file.write_text(json.dumps(entries), encoding="utf-8")
    return Kind(file, lambda: read_ledger(file))


def _card(folder: Path) -> Kind:
    copy = Path(shutil.copytree(packaged_tasks(), folder / "tasks"))
    for file in copy.rglob("*.parquet"):
        pq.write_table(pq.read_table(file).slice(0, 1), file)
    return Kind(copy / "README.md", lambda: plan_publication(copy, repo_id="ann/x", version=PROBES_VERSION).files)


def _openpi(folder: Path) -> Kind:
    file = folder / "message"
    file.write_bytes(pack_openpi({"actions": np.zeros((10, 7)), "timing": {"infer_ms": 1.5}}))
    return Kind(file, lambda: unpack_openpi(file.read_bytes()))


def _vla_eval(folder: Path) -> Kind:
    file = folder / "message"
    payload = {"actions": np.zeros(7, np.float32), "image": np.zeros((8, 8, 3), np.uint8)}
    file.write_bytes(pack_vla_eval(Message(type="action", payload=payload, seq=3, timestamp=1.0)))
    return Kind(file, lambda: unpack_vla_eval(file.read_bytes()))


KINDS: dict[str, Callable[[Path], Kind]] = {
    "frames parquet": _frames,
    "episodes parquet": _episodes,
    "states parquet": _states,
    "references parquet": _references,
    "results JSON": _result,
    "verification JSON": _verification,
    "info JSON": _info,
    "scores JSON": _scores,
    "ledger JSON": _ledger,
    "card": _card,
    "openpi msgpack": _openpi,
    "vla-eval msgpack": _vla_eval,
}


def damaged(content: bytes, count: int, seed: int) -> Iterator[bytes]:
    """Copies with flipped bits, cut ends, holes, repeated or swapped pieces; most of them near the ends."""
    rng = random.Random(seed)
    for number in range(count):
        changed = bytearray(content)
        for _ in range(rng.choice((1, 1, 2, 8))):
            near_end = rng.random() < 0.5
            at = len(changed) - 1 - rng.randrange(min(4000, len(changed))) if near_end else rng.randrange(len(changed))
            match number % 5:
                case 0:
                    changed[at] ^= 1 << rng.randrange(8)
                case 1:
                    changed[at] = rng.choice((0, 255, 127, 128))
                case 2:
                    del changed[at : at + rng.randrange(1, 40)]
                case 3:
                    changed[at:at] = changed[max(0, at - rng.randrange(1, 40)) : at]
                case _:
                    del changed[at:]
            if not changed:
                changed = bytearray(b"\0")
        yield bytes(changed)


def content_of(value: object) -> str:
    """A hash of what was read, whatever its type."""
    digest = hashlib.sha256()
    if isinstance(value, RolloutSet):
        for part in value.digests(list(value.frames)):
            digest.update(part)
    else:
        digest.update(repr(_plain(value)).encode())
    return digest.hexdigest()


def _plain(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return value.dtype.str, value.shape, value.tobytes()
    if isinstance(value, dict):
        return {str(key): _plain(one) for key, one in value.items()}
    if dataclasses.is_dataclass(value):
        return {field.name: _plain(getattr(value, field.name)) for field in dataclasses.fields(value)}
    if isinstance(value, list | tuple):
        return [_plain(one) for one in value]
    return value


def outcome(kind: Kind, before: str) -> str:
    """Whether a copy is refused, or read as what the file held before, or as something else; or how it goes wrong."""
    try:
        same = content_of(kind.read()) == before
    except ConflictVLAError as error:
        return "several lines" if "\n" in str(error) else "refused"
    except Exception as error:
        return f"raised {type(error).__name__}: {(str(error).splitlines() or [''])[0][:200]}"
    return "read as before" if same else "read otherwise"


def main(name: str, first: int, count: int, folder: Path) -> None:
    """Print the file, then the outcome of each copy from the first one on; one that ends the process stays there."""
    import resource

    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    kind = KINDS[name](folder)
    before = content_of(kind.read())
    resource.setrlimit(resource.RLIMIT_AS, (MOST_MEMORY_BYTES, MOST_MEMORY_BYTES))
    _print_line(str(kind.file))
    for number, copy in enumerate(damaged(kind.file.read_bytes(), count, seed=count)):
        if number < first:
            continue
        kind.file.write_bytes(copy)
        signal.alarm(LONGEST_S)
        _print_line(outcome(kind, before))


def _print_line(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()
