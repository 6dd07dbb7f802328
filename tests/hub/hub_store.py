"""What a Hub stores: repositories with commits, branches, tags and pull requests, and the content of large files."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass, field


class HubError(Exception):
    """An answer other than success, with the codes that the Hub's clients look at."""

    def __init__(self, status: int, code: str, message: str) -> None:
        super().__init__(message)
        self.status, self.code, self.message = status, code, message


@dataclass(frozen=True)
class Blob:
    content: bytes
    large: bool

    @property
    def sha256(self) -> str:
        return hashlib.sha256(self.content).hexdigest()

    @property
    def git_oid(self) -> str:
        return hashlib.sha1(b"blob %d\0" % len(self.content) + self.content).hexdigest()

    @property
    def etag(self) -> str:
        return self.sha256 if self.large else self.git_oid


@dataclass(frozen=True)
class Commit:
    oid: str
    title: str
    parent: str | None
    files: dict[str, Blob]


@dataclass
class PullRequest:
    number: int
    title: str
    description: str
    author: str
    base: str
    status: str = "open"
    comments: list[tuple[str, str]] = field(default_factory=list)


@dataclass
class Repo:
    kind: str
    repo_id: str
    private: bool
    owner: str
    commits: dict[str, Commit] = field(default_factory=dict)
    branches: dict[str, str] = field(default_factory=dict)
    tags: dict[str, str] = field(default_factory=dict)
    pull_requests: dict[int, PullRequest] = field(default_factory=dict)

    def add_commit(self, title: str, parent: str | None, files: dict[str, Blob]) -> Commit:
        described = [title, parent, sorted((path, blob.sha256) for path, blob in files.items()), len(self.commits)]
        oid = hashlib.sha1(json.dumps(described).encode()).hexdigest()
        self.commits[oid] = Commit(oid, title, parent, files)
        return self.commits[oid]

    def find(self, revision: str) -> Commit:
        oid = self.branches.get(revision) or self.tags.get(revision) or revision
        if oid not in self.commits:
            raise HubError(404, "RevisionNotFound", f"Invalid rev id: {revision}")
        return self.commits[oid]

    def history(self, revision: str) -> Iterator[Commit]:
        commit: Commit | None = self.find(revision)
        while commit is not None:
            yield commit
            commit = self.commits[commit.parent] if commit.parent else None

    def merge(self, number: int) -> None:
        pull = self.pull_requests[number]
        head = self.find(f"refs/pr/{number}")
        main = self.find("main")
        base = self.commits[pull.base].files
        changed = {path: blob for path, blob in head.files.items() if base.get(path) != blob}
        self.branches["main"] = self.add_commit(pull.title, main.oid, main.files | changed).oid
        pull.status = "merged"


@dataclass
class Store:
    """All repositories, and large files by their hash. Tokens are users' names after ``hf_``."""

    repos: dict[tuple[str, str], Repo] = field(default_factory=dict)
    large: dict[str, bytes] = field(default_factory=dict)

    def create(self, kind: str, repo_id: str, user: str, *, private: bool) -> Repo:
        if repo_id.split("/")[0] != user:
            raise HubError(403, "", "You don't have the rights to create a repo under this namespace")
        if (kind, repo_id) in self.repos:
            raise HubError(409, "", f"You already created this {kind} repo")
        repo = self.repos[kind, repo_id] = Repo(kind, repo_id, private, user)
        attributes = Blob(b"*.parquet filter=lfs diff=lfs merge=lfs -text\n", large=False)
        repo.branches["main"] = repo.add_commit("initial commit", None, {".gitattributes": attributes}).oid
        return repo

    def repo(self, kind: str, repo_id: str, user: str | None) -> Repo:
        repo = self.repos.get((kind, repo_id))
        if repo is None or (repo.private and user != repo.owner):
            # As on the Hub: who may not see a repository cannot tell that it exists.
            raise HubError(404 if user else 401, "RepoNotFound", "Repository not found")
        return repo
