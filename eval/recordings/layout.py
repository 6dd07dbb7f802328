"""Where the files of a dataset are, and what its columns are called: LeRobot v3, or plain files with a manifest.

A manifest is a JSON file ``manifest.json`` in the dataset's folder:

- ``manifest_version``: ``"1.0"``.
- ``control_hz``: frames per second, 20.
- ``episodes``: relative paths (``*`` and ``**`` allowed) of ``.parquet`` or ``.jsonl`` files with one row an episode:
  the columns of ``EPISODE_COLUMNS`` (``OPTIONAL_COLUMNS`` may be left out), ``episode_index`` (unique) and ``length``
  (its number of frames).
- ``frames``: relative paths of ``.parquet`` or ``.npz`` files with one row a frame: ``episode_index``,
  ``frame_index`` (from 0 within each episode) and the features of ``FRAME_FEATURES``, as list columns or arrays of
  shape (frames, width).
- ``columns`` (optional): their names for our columns, such as ``{"action": "actions"}``.
- ``constants`` (optional): episode columns that are the same for every episode, such as ``{"policy_name": "mine"}``.

A LeRobot dataset whose columns have other names can be scored as it is by putting a manifest beside its files.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ...builders.rollouts.episode_record import EPISODE_COLUMNS
from ...builders.rollouts.schema import FRAME_FEATURES
from ...toolkit.errors import DatasetError
from ...toolkit.records import CONTROL_HZ

MANIFEST = "manifest.json"
MANIFEST_VERSION = "1.0"

RECORD_AGAIN = "record this episode again"

KEY_COLUMNS = ("episode_index", "length", "frame_index")
"""Columns that tie an episode to its frames, beside those of the schema."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """One dataset on disk.

    Attributes:
        folder: Its folder.
        metadata: The file that describes it.
        episodes: Patterns of the files of episodes, relative to the folder.
        frames: Patterns of the files of frames.
        columns: Their names for our columns, where they differ.
        constants: Episode columns that are the same for every episode.
        total_episodes: How many episodes it promises; None where it promises nothing.
        total_frames: How many frames.
    """

    folder: Path
    metadata: Path
    episodes: tuple[str, ...]
    frames: tuple[str, ...]
    columns: Mapping[str, str] = field(default_factory=dict)
    constants: Mapping[str, Any] = field(default_factory=dict)
    total_episodes: int | None = None
    total_frames: int | None = None

    @property
    def episodes_where(self) -> Path:
        """What messages call the place of the episodes."""
        return self.folder / ("meta/episodes" if self.metadata.name == "info.json" else self.episodes[0])

    @property
    def frames_where(self) -> Path:
        """What messages call the place of the frames."""
        return self.folder / ("data" if self.metadata.name == "info.json" else self.frames[0])

    def episode_files(self) -> list[Path]:
        """Files of episodes, sorted, so that chunks and files follow their numbers.

        Raises:
            DatasetError: If there is none.
        """
        return self._files(self.episodes, self.episodes_where)

    def frame_files(self) -> list[Path]:
        """Files of frames, sorted in the same way.

        Raises:
            DatasetError: If there is none.
        """
        return self._files(self.frames, self.frames_where)

    def _files(self, patterns: tuple[str, ...], where: Path) -> list[Path]:
        files = sorted({file for pattern in patterns for file in self.folder.glob(pattern)})
        if not files:
            raise DatasetError(
                f"{where}: holds no {'parquet ' if self.metadata.name == 'info.json' else ''}file: "
                "the dataset is incomplete, copy or record it again"
            )
        return files


def is_dataset(folder: Path) -> bool:
    """Whether a folder describes itself as a dataset."""
    return (folder / MANIFEST).is_file() or (folder / "meta" / "info.json").is_file()


def layout_of(folder: Path) -> Layout:
    """The layout of a dataset; a manifest goes before LeRobot's own metadata.

    Raises:
        DatasetError: If the metadata is unreadable, or of a version or rate that is not supported.
    """
    return _manifest_layout(folder) if (folder / MANIFEST).is_file() else _lerobot_layout(folder)


def _lerobot_layout(folder: Path) -> Layout:
    file = folder / "meta" / "info.json"
    info = _read_object(file)
    try:
        version, fps = str(info["codebase_version"]), float(info["fps"])
        episodes, frames = int(info["total_episodes"]), int(info["total_frames"])
    except KeyError as error:
        raise DatasetError(f"{file}: {error} is missing: copy it again or record again") from error
    except (ValueError, TypeError) as error:
        raise DatasetError(f"{file}: unreadable ({error}): copy it again or record again") from error
    if not version.startswith("v3."):
        raise DatasetError(f"{file}: codebase_version is {version}, not v3.x: convert it with LeRobot's own converter")
    if fps != CONTROL_HZ:
        raise DatasetError(f"{file}: fps is {fps:g}, but the protocol's control rate is {CONTROL_HZ}: record again")
    return Layout(
        folder=folder,
        metadata=file,
        episodes=("meta/episodes/**/*.parquet",),
        frames=("data/**/*.parquet",),
        total_episodes=episodes,
        total_frames=frames,
    )


def _manifest_layout(folder: Path) -> Layout:
    file = folder / MANIFEST
    content = _read_object(file)
    known = {"manifest_version", "control_hz", "episodes", "frames", "columns", "constants"}
    for name in sorted({"manifest_version", "control_hz", "episodes", "frames"} - set(content)):
        raise DatasetError(f"{file}: field '{name}' is missing: a manifest has {', '.join(sorted(known))}")
    for name in sorted(set(content) - known):
        raise DatasetError(f"{file}: field '{name}' is not known: a manifest has {', '.join(sorted(known))}")
    if content["manifest_version"] != MANIFEST_VERSION:
        raise DatasetError(
            f"{file}: manifest_version is {content['manifest_version']!r}, this version reads {MANIFEST_VERSION!r}"
        )
    if content["control_hz"] != CONTROL_HZ:
        raise DatasetError(
            f"{file}: control_hz is {content['control_hz']!r}, but the protocol's control rate is {CONTROL_HZ}"
        )
    return Layout(
        folder=folder,
        metadata=file,
        episodes=_patterns(file, content, "episodes"),
        frames=_patterns(file, content, "frames"),
        columns=_mapping(file, content, "columns", {*EPISODE_COLUMNS, *FRAME_FEATURES, *KEY_COLUMNS}, text=True),
        constants=_mapping(file, content, "constants", set(EPISODE_COLUMNS), text=False),
    )


def _read_object(file: Path) -> dict[str, Any]:
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise DatasetError(f"{file}: unreadable ({error}): copy it again or record again") from error
    if not isinstance(content, dict):
        raise DatasetError(f"{file}: unreadable (not a JSON object): copy it again or record again")
    return content


def _patterns(file: Path, content: dict[str, Any], name: str) -> tuple[str, ...]:
    given = content[name]
    patterns = [given] if isinstance(given, str) else given
    if not isinstance(patterns, list) or not patterns or not all(isinstance(text, str) and text for text in patterns):
        raise DatasetError(f"{file}: field '{name}' is {given!r}, not a path or a list of paths")
    for text in patterns:
        # A dataset from elsewhere must not make this program read what lies outside its folder.
        if Path(text).is_absolute() or ".." in Path(text).parts:
            raise DatasetError(f"{file}: field '{name}' names {text!r}, but paths stay within the dataset's folder")
    return tuple(patterns)


def _mapping(file: Path, content: dict[str, Any], name: str, keys: set[str], *, text: bool) -> dict[str, Any]:
    given = content.get(name, {})
    if not isinstance(given, dict) or (text and not all(isinstance(value, str) for value in given.values())):
        raise DatasetError(f"{file}: field '{name}' is {given!r:.80}, not an object of names")
    for key in sorted(set(given) - keys):
        raise DatasetError(f"{file}: field '{name}' has '{key}', which is no column of ours: see the rollout schema")
    return given
