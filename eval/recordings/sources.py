"""Where rollouts come from: a folder on this machine, or a dataset on the Hugging Face Hub at a revision."""

from __future__ import annotations

import re
from functools import partial
from importlib import resources
from pathlib import Path

from ...toolkit.errors import DatasetError, InvalidInputError, first_line

HUB = "hf://"

PATTERN = re.compile(r"hf://(?:datasets/)?(?P<name>[\w.-]+/[\w.-]+)(?:@(?P<revision>[\w./-]+))?/?")

NEEDED_FILES = ("manifest.json", "meta/*", "meta/episodes/*", "data/*", "*.parquet", "*.jsonl", "*.npz", "*.json")
"""What is fetched: all but videos. ``*`` also matches what lies in subfolders."""

PACKAGED = "packaged"
"""As a source: the recorded rollouts that come with the package."""


def packaged_rollouts() -> Path:
    """Folder of the recorded rollouts that the package carries: one dataset a scripted agent, without states."""
    return Path(str(resources.files("conflictvla.dataset_cards"))) / "rollouts"


def packaged_results() -> Path:
    """Folder of the scripted agents' results over all cases, as the leaderboard reads it."""
    return Path(str(resources.files("conflictvla.dataset_cards"))) / "leaderboard"


def results_folder(source: Path | str) -> Path:
    """As ``local_folder``, but ``packaged`` names the results that come with the package."""
    return packaged_results() if _inside_packaged(source) == () else local_folder(source)


def local_folder(source: Path | str) -> Path:
    """The folder with a source's files, fetched into the Hub's cache first where it is on the Hub.

    Args:
        source: A path, or ``hf://OWNER/NAME`` with ``@REVISION`` behind it: a branch, a tag or, so that the scores can
            be computed again, a commit. ``hf://datasets/OWNER/NAME`` is the same. ``packaged`` names the rollouts
            that come with the package, and ``packaged/NAME`` those of one agent.

    Raises:
        InvalidInputError: If it begins like a Hub address and is none.
        DatasetError: If the dataset or revision does not exist, may not be read, or cannot be reached and is not in
            the cache.
    """
    inside = _inside_packaged(source)
    if inside is not None:
        return packaged_rollouts().joinpath(*inside)
    if not str(source).startswith(HUB):
        return Path(source)
    return _snapshot(*hub_address(str(source)))


def _inside_packaged(source: Path | str) -> tuple[str, ...] | None:
    """What follows ``packaged``; None for a source that begins otherwise, or where a folder has that name."""
    first, inside = Path(source).parts[:1], Path(source).parts[1:]
    return inside if first == (PACKAGED,) and not Path(PACKAGED).exists() else None


def hub_address(source: str) -> tuple[str, str | None]:
    """Name and revision of a dataset on the Hub.

    Raises:
        InvalidInputError: It is no address on the Hub.
    """
    found = PATTERN.fullmatch(source)
    if found is None:
        raise InvalidInputError(f"'{source}' is no address on the Hub: write it like hf://OWNER/NAME@REVISION")
    return found["name"], found["revision"]


def _snapshot(name: str, revision: str | None) -> Path:
    from huggingface_hub.errors import (
        HfHubHTTPError,
        LocalEntryNotFoundError,
        OfflineModeIsEnabled,
        RepositoryNotFoundError,
        RevisionNotFoundError,
    )

    address = f"hf://{name}" + (f"@{revision}" if revision else "")
    try:
        return Path(_download(name, revision))
    except RevisionNotFoundError as error:
        raise DatasetError(f"{address}: there is no revision '{revision}': name a branch, tag or commit") from error
    except RepositoryNotFoundError as error:
        raise DatasetError(
            f"{address}: no such dataset, or it is private: check the name, or log in with  hf auth login"
        ) from error
    except (LocalEntryNotFoundError, OfflineModeIsEnabled, ConnectionError) as error:
        raise DatasetError(
            f"{address}: the Hub cannot be reached and this revision is not in its cache here: go online once, or "
            "give the folder of a copy"
        ) from error
    except HfHubHTTPError as error:
        raise DatasetError(f"{address}: the Hub refused ({first_line(error)})") from error


def _download(name: str, revision: str | None) -> str:
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import OfflineModeIsEnabled

    fetch = partial(snapshot_download, name, repo_type="dataset", revision=revision, allow_patterns=list(NEEDED_FILES))
    try:
        return str(fetch())
    except (OfflineModeIsEnabled, ConnectionError):
        # A commit is asked for on the Hub even where it is in the cache already.
        return str(fetch(local_files_only=True))
