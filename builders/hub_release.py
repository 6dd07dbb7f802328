"""Releases on the Hugging Face Hub: one commit with all files and their checksums, then a tag that never moves.

A version exists only once its tag does, and the tag is set last, after what the Hub holds was compared with what was
sent. Large files that an interrupted upload has brought over are not sent again.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ..toolkit.errors import ConflictVLAError, HubError, InvalidInputError, first_line

if TYPE_CHECKING:
    from huggingface_hub import HfApi

CARD = "README.md"
CHECKSUMS = "SHA256SUMS"
VERSION = re.compile(r"\d+\.\d+\.\d+(?:-[0-9A-Za-z.]+)?")
REPO_ID = re.compile(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*")
MOST_FILES = 10_000
"""More than the Hub takes in one commit; the rollouts of an evaluation are some dozens of files."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleaseFile:
    """One file of a release.

    Attributes:
        path: Where it goes, with forward slashes.
        content: The file on this machine, or its bytes.
        size: In bytes.
        sha256: Hash of its content.
    """

    path: str
    content: Path | bytes
    size: int
    sha256: str

    @property
    def git_oid(self) -> str:
        """What git calls a file of this content; the Hub shows it for small files in place of the SHA-256."""
        content = self.content if isinstance(self.content, bytes) else self.content.read_bytes()
        return hashlib.sha1(b"blob %d\0" % len(content) + content, usedforsecurity=False).hexdigest()


@dataclass(frozen=True, slots=True, kw_only=True)
class Release:
    """What would go to the Hub.

    Attributes:
        repo_id: ``OWNER/NAME`` of the dataset.
        version: Tag that is set once and never moved.
        moving_tags: Further tags that are moved to this version, such as LeRobot's ``v3.0``.
        files: The card and the checksums included, by path.
    """

    repo_id: str
    version: str
    moving_tags: tuple[str, ...]
    files: tuple[ReleaseFile, ...]

    @property
    def size(self) -> int:
        """Bytes in all."""
        return sum(file.size for file in self.files)


def plan_release(folder: Path, *, repo_id: str, version: str, card: str, moving_tags: Sequence[str] = ()) -> Release:
    """Everything that a folder's release consists of; nothing is sent.

    Hidden files and a card or checksums that lie in the folder are left out.

    Args:
        folder: The dataset.
        repo_id: ``OWNER/NAME``.
        version: Such as ``1.0.0``.
        card: Text of the card, with its header.
        moving_tags: See ``Release``.

    Raises:
        InvalidInputError: Name or version cannot be used, the card names no licence, or the folder holds a link.
    """
    if not REPO_ID.fullmatch(repo_id):
        raise InvalidInputError(f"--repo-id '{repo_id}': write it like OWNER/NAME")
    if not VERSION.fullmatch(version):
        raise InvalidInputError(f"--version '{version}': write it like 1.0.0")
    if not re.search(r"\A---\n(?:.*\n)*?license: \S+\n(?:.*\n)*?---\n", card):
        raise InvalidInputError(f"{folder}: its card names no licence: add a line  license: apache-2.0  to its header")
    files = {path: _release_file(path, source) for path, source in _data_files(folder)}
    files[CARD] = _release_file(CARD, card.encode())
    sums = "".join(f"{file.sha256}  {path}\n" for path, file in sorted(files.items()))
    files[CHECKSUMS] = _release_file(CHECKSUMS, sums.encode())
    if len(files) > MOST_FILES:
        raise InvalidInputError(f"{folder}: {len(files)} files, at most {MOST_FILES} are published")
    ordered = tuple(files[path] for path in sorted(files))
    return Release(repo_id=repo_id, version=version, moving_tags=tuple(moving_tags), files=ordered)


def upload_release(release: Release, *, private: bool = False) -> str:
    """Send a release and tag it; returns the commit. Called again after an interruption, it goes on.

    Raises:
        InvalidInputError: The version is released already, with other content.
        HubError: The Hub refused or cannot be reached; no tag was set.
    """
    from huggingface_hub import HfApi

    api = HfApi()
    with hub_refusals(release.repo_id):
        api.create_repo(release.repo_id, repo_type="dataset", private=private or None, exist_ok=True)
        refs = api.list_repo_refs(release.repo_id, repo_type="dataset")
        released = {tag.name: tag.target_commit for tag in refs.tags}
        commit = released.get(release.version)
        if commit is None:
            head = next((branch.target_commit for branch in refs.branches if branch.name == "main"), None)
            commit = _commit(api, release, head)
            differing = _differing_paths(api, release, commit)
            if differing:
                raise HubError(f"{release.repo_id}: {differing[0]} arrived damaged; publish again")
            api.create_tag(release.repo_id, tag=release.version, revision=commit, repo_type="dataset")
        elif _differing_paths(api, release, commit):
            raise InvalidInputError(
                f"{release.repo_id}: version {release.version} is released already and is never overwritten: "
                "choose a higher --version"
            )
        for tag in release.moving_tags:
            _move_tag(api, release.repo_id, tag, commit, released)
    return commit


def _commit(api: HfApi, release: Release, head: str | None) -> str:
    """One commit that leaves the repository with exactly the release's files, unless it has moved on since ``head``."""
    from huggingface_hub import CommitOperationAdd, CommitOperationDelete

    present = api.list_repo_files(release.repo_id, repo_type="dataset", revision=head)
    stale = set(present) - {file.path for file in release.files} - {".gitattributes"}
    deletions = [CommitOperationDelete(path) for path in sorted(stale)]
    additions = [CommitOperationAdd(file.path, _upload_content(file.content)) for file in release.files]
    message = f"Release {release.version}"
    return str(
        api.create_commit(release.repo_id, [*deletions, *additions], commit_message=message, repo_type="dataset").oid
    )


def _differing_paths(api: HfApi, release: Release, commit: str) -> list[str]:
    """Paths that are not on the Hub as they are in the release."""
    entries = api.list_repo_tree(release.repo_id, repo_type="dataset", revision=commit, recursive=True)
    remote: Mapping[str, object] = {entry.path: entry for entry in entries if hasattr(entry, "blob_id")}
    differing = set(remote) - {file.path for file in release.files} - {".gitattributes"}
    for file in release.files:
        entry = remote.get(file.path)
        lfs = getattr(entry, "lfs", None)
        same = lfs.sha256 == file.sha256 if lfs else getattr(entry, "blob_id", None) == file.git_oid
        if not same:
            differing.add(file.path)
    return sorted(differing)


def _move_tag(api: HfApi, repo_id: str, tag: str, commit: str, present: Mapping[str, str]) -> None:
    if present.get(tag) == commit:
        return
    if tag in present:
        api.delete_tag(repo_id, tag=tag, repo_type="dataset")
    api.create_tag(repo_id, tag=tag, revision=commit, repo_type="dataset")


@contextmanager
def hub_refusals(repo_id: str) -> Iterator[None]:
    """Say in one line, without any credentials, why the Hub did not do what was asked.

    Raises:
        HubError: In place of the client's own errors.
    """
    import httpx
    from huggingface_hub.errors import HfHubHTTPError, LocalTokenNotFoundError, OfflineModeIsEnabled

    log_in = "log in with  hf auth login  and a token that may write there"
    again = "go online and give the command again; what has arrived is not sent again"
    try:
        yield
    except ConflictVLAError:
        raise
    except LocalTokenNotFoundError as error:
        raise HubError(f"{repo_id}: the Hub asks who you are: {log_in}") from error
    except HfHubHTTPError as error:
        status = error.response.status_code
        if status in (401, 403):
            raise HubError(f"{repo_id}: the Hub refuses ({status}): {log_in}") from error
        message = str(error.server_message or f"answer {status}").splitlines()[0]
        raise HubError(f"{repo_id}: the Hub refuses ({status}): {message}") from error
    except (OfflineModeIsEnabled, httpx.HTTPError, ConnectionError) as error:
        raise HubError(f"{repo_id}: the Hub cannot be reached: {again}") from error
    except RuntimeError as error:  # what the client makes of a file that did not get through
        raise HubError(f"{repo_id}: {first_line(error).rstrip('.')}: {again}") from error


def _data_files(folder: Path) -> Iterator[tuple[str, Path]]:
    for path in sorted(folder.rglob("*")):
        relative = path.relative_to(folder)
        if any(part.startswith(".") for part in relative.parts):
            continue
        if path.is_symlink():
            raise InvalidInputError(f"{path}: is a link: put the file itself there")
        if path.is_file() and relative.as_posix() not in (CARD, CHECKSUMS):
            yield relative.as_posix(), path


def _release_file(path: str, content: Path | bytes) -> ReleaseFile:
    if isinstance(content, bytes):
        return ReleaseFile(path=path, content=content, size=len(content), sha256=hashlib.sha256(content).hexdigest())
    with content.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    return ReleaseFile(path=path, content=content, size=content.stat().st_size, sha256=digest)


def _upload_content(content: Path | bytes) -> str | bytes:
    return content if isinstance(content, bytes) else str(content)
