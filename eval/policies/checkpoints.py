"""Where a checkpoint lies and what exactly it is: a folder, or a repository of the Hugging Face Hub at a commit."""

from __future__ import annotations

import functools
import hashlib
from dataclasses import dataclass
from pathlib import Path

from ...toolkit.errors import InvalidInputError, NotFoundError, first_line
from .spec import safe_name

CONFIG_FILE = "config.json"

READ = ("*.json", "*.safetensors", "*.txt", "*.model")
"""Files that are fetched from the Hub: text and safetensors, nothing that would be unpickled or executed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkpoint:
    """A checkpoint on this machine.

    Attributes:
        folder: Where its files are.
        name: Short name: the folder's, or the repository's without its owner.
        revision: The Hub's commit, or the hash of the files.
    """

    folder: Path
    name: str
    revision: str


def find_checkpoint(target: str, where: str) -> Checkpoint:
    """The checkpoint at a path, or of a Hub repository (``owner/name`` or ``owner/name@revision``), fetched if need be.

    Args:
        target: Path or Hub id.
        where: What the target belongs to, for error messages.

    Raises:
        NotFoundError: There is neither.
        InvalidInputError: The folder holds no checkpoint.
    """
    folder = Path(target).expanduser()
    if not folder.is_dir():
        return _from_hub(target, where)
    if not (folder / CONFIG_FILE).is_file():
        raise InvalidInputError(f"{where}: {folder} holds no {CONFIG_FILE}; name the folder that save_pretrained wrote")
    return Checkpoint(folder=folder, name=safe_name(folder.resolve().name), revision=files_sha256(folder))


def files_sha256(folder: Path) -> str:
    """Hash of a checkpoint's files and their names, 16 hexadecimal digits."""
    digest = hashlib.sha256()
    for file in sorted(path for pattern in READ for path in folder.rglob(pattern)):
        about = file.stat()
        digest.update(file.relative_to(folder).as_posix().encode())
        digest.update(_file_sha256(file, about.st_size, about.st_mtime_ns))
    return digest.hexdigest()[:16]


@functools.cache
def _file_sha256(file: Path, size: int, changed_ns: int) -> bytes:
    """A file's hash, computed again only when the file has changed: weights take seconds."""
    del size, changed_ns
    with file.open("rb") as content:
        return hashlib.file_digest(content, "sha256").digest()


def _from_hub(target: str, where: str) -> Checkpoint:
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HfHubHTTPError, HFValidationError, LocalEntryNotFoundError

    repository, _, revision = target.partition("@")
    try:
        folder = Path(snapshot_download(repository, revision=revision or None, allow_patterns=list(READ)))
    except HFValidationError as error:
        raise NotFoundError(f"{where}: no folder '{target}', and no name of a Hub repository either") from error
    except (HfHubHTTPError, LocalEntryNotFoundError, OSError) as error:
        raise NotFoundError(f"{where}: no folder '{target}', and the Hub gave none: {first_line(error)}") from error
    if not (folder / CONFIG_FILE).is_file():
        raise InvalidInputError(f"{where}: the repository {repository} holds no {CONFIG_FILE}")
    # A snapshot's folder is named after its commit.
    return Checkpoint(folder=folder, name=safe_name(repository.rpartition("/")[2]), revision=folder.name)
