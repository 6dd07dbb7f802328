"""Scene facts on disk, by content: measured once for a scene, a set of initial states and a version of this code."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import zipfile
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import mujoco
import numpy as np

from ...atomic_files import atomic_file
from ...errors import InvalidInputError
from ...facts import Entity, SceneFacts
from ...libero.base_tasks import initial_states
from ...source_hash import sources_sha256
from ..scene import Scene
from .scene_facts import measure_facts

CACHE_VARIABLE = "CONFLICTVLA_CACHE"
"""Environment variable that names another cache folder than ``~/.cache/conflictvla``."""

ARRAYS = ("position_m", "box_m", "on", "inside", "is_open", "is_on")
"""Fields of ``SceneFacts`` that are arrays."""

TOOLKIT = Path(__file__).parents[2]
MEASURED_BY = ("arrays.py", "errors.py", "facts.py", "records.py", "source_hash.py", "libero", "safety", "simulation")
"""Files and folders of ``TOOLKIT`` that facts depend on: all that ``scene_facts`` imports, as a test checks."""


def cache_folder() -> Path:
    """The folder of cached facts; it may be deleted at any time."""
    chosen = os.environ.get(CACHE_VARIABLE)
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(chosen) if chosen else Path(base) / "conflictvla"


def cached_facts(scene: Scene, init_states: Iterable[int], *, fresh: bool = False) -> SceneFacts:
    """The scene's facts from the cache, measured and stored where it has none; a damaged entry is measured anew.

    Args:
        scene: The scene; only when it is measured it is left in the last state.
        init_states: Numbers of the initial states.
        fresh: Measure in any case, and store the result.
    """
    states = tuple(init_states)
    file = cache_folder() / "facts" / f"{_key(scene, states)}.npz"
    if not fresh and file.is_file():
        try:
            return _read(file, scene.task.task_id)
        except (OSError, ValueError, KeyError, TypeError, zipfile.BadZipFile):
            pass
    facts = measure_facts(scene, states)
    _write(facts, file)
    return facts


def _key(scene: Scene, states: tuple[int, ...]) -> str:
    digest = hashlib.sha256(f"{scene.scene_sha256}{states}{mujoco.__version__}{np.__version__}".encode())
    digest.update(initial_states(scene.task)[list(states)].tobytes())
    digest.update(sources_sha256(TOOLKIT, *MEASURED_BY).encode())
    return digest.hexdigest()


def _read(file: Path, task_id: str) -> SceneFacts:
    with np.load(file, allow_pickle=False) as stored:
        fields: dict[str, Any] = json.loads(str(stored["fields"]))
        arrays = {name: stored[name] for name in ARRAYS}
    entities = tuple(_entity(entry) for entry in fields["entities"])
    return SceneFacts(
        task_id=task_id,
        scene_sha256=fields["scene_sha256"],
        workspace=fields["workspace"],
        init_states=tuple(fields["init_states"]),
        entities=entities,
        **arrays,
    )


def _entity(entry: dict[str, Any]) -> Entity:
    opening = entry.pop("opening_m")
    size = tuple(entry.pop("size_m"))
    return Entity(**entry, size_m=size, opening_m=None if opening is None else (opening[0], opening[1]))


def _write(facts: SceneFacts, file: Path) -> None:
    """Write facts atomically; a folder that cannot be written only costs time."""
    fields = json.dumps(
        {
            "scene_sha256": facts.scene_sha256,
            "workspace": facts.workspace,
            "init_states": facts.init_states,
            "entities": [asdict(entity) for entity in facts.entities],
        }
    )
    with contextlib.suppress(InvalidInputError), atomic_file(file) as aside, aside.open("wb") as stream:
        np.savez(stream, fields=np.array(fields), **{name: getattr(facts, name) for name in ARRAYS})
