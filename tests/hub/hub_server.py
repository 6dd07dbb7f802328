"""A small Hub: the parts of its HTTP interface that huggingface_hub, datasets and lerobot use, over a real socket.

Large files take the LFS way (``HF_HUB_DISABLE_XET=1``). Pull requests, branches, tags, private repositories and rights
behave as on the Hub as far as these clients can tell; whatever else they ask for is answered with 404 and noted in
``unknown``.
"""

from __future__ import annotations

import base64
import json
import re
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NoReturn
from urllib.parse import parse_qs, unquote, urlsplit

import yaml

from .hub_store import Blob, Commit, HubError, PullRequest, Repo, Store

LARGE = 1 << 20
DATE = "2026-01-01T00:00:00.000Z"
REPO_API = re.compile(r"/api/(model|dataset|space)s/([^/]+/[^/]+)(?:/(.*))?")
RESOLVE = re.compile(r"/(?:(dataset|space)s/)?([^/]+/[^/]+)/resolve/([^/]+)/(.+)")
LFS_BATCH = re.compile(r"/(?:(dataset|space)s/)?([^/]+/[^/]+)\.git/info/lfs/objects/batch")

Answer = tuple[int, Any, dict[str, str]]


class Hub(ThreadingHTTPServer):
    """The server; serves from its own threads between ``start`` and ``stop``."""

    daemon_threads = True

    def __init__(self, port: int = 0) -> None:
        super().__init__(("127.0.0.1", port), _Handler)
        self.store = Store()
        self.lock = threading.RLock()
        self.unknown: list[str] = []
        self.uploads: list[str] = []
        self.refuse_uploads_after: int | None = None
        self.authorizations: set[str] = set()

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    def start(self) -> None:
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def stop(self) -> None:
        self.shutdown()
        self.server_close()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Hub

    def log_message(self, *_: object) -> None:
        pass

    def do_GET(self) -> None:
        self._answer()

    def do_HEAD(self) -> None:
        self._answer()

    def do_POST(self) -> None:
        self._answer()

    def do_PUT(self) -> None:
        self._answer()

    def do_DELETE(self) -> None:
        self._answer()

    def _answer(self) -> None:
        body = self._body()
        with self.server.lock:
            try:
                status, content, headers = self._route(body)
            except HubError as error:
                status, content = error.status, {"error": error.message}
                headers = {"X-Error-Code": error.code} if error.code else {}
                headers["X-Error-Message"] = error.message
        data = content if isinstance(content, bytes) else json.dumps(content).encode()
        data = self._part(data, headers) if status == 200 and "Accept-Ranges" in headers else data
        self.send_response(206 if "Content-Range" in headers else status)
        for name, value in {"Content-Length": str(len(data)), **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)

    def _part(self, data: bytes, headers: dict[str, str]) -> bytes:
        wanted = re.fullmatch(r"bytes=(\d+)-(\d*)", self.headers.get("Range", ""))
        if wanted is None:
            return data
        first, last = int(wanted[1]), min(int(wanted[2] or len(data) - 1), len(data) - 1)
        headers["Content-Range"] = f"bytes {first}-{last}/{len(data)}"
        return data[first : last + 1]

    def _body(self) -> bytes:
        if self.headers.get("Transfer-Encoding", "") != "chunked":
            return self.rfile.read(int(self.headers.get("Content-Length", 0)))
        parts = []
        while size := int(self.rfile.readline(), 16):
            parts.append(self.rfile.read(size))
            self.rfile.readline()
        self.rfile.readline()
        return b"".join(parts)

    @property
    def user(self) -> str | None:
        given = self.headers.get("Authorization", "")
        if given:
            self.server.authorizations.add(given)
        return given.removeprefix("Bearer hf_") if given.startswith("Bearer hf_") else None

    def _route(self, body: bytes) -> Answer:
        address = urlsplit(self.path)
        path, query = address.path, parse_qs(address.query)
        if path.startswith("/lfs/"):
            return self._store_large(path.removeprefix("/lfs/"), body)
        if found := LFS_BATCH.fullmatch(path):
            return self._batch(self._repo(found[1] or "model", found[2]), json.loads(body))
        if found := RESOLVE.fullmatch(path):
            repo = self._repo(found[1] or "model", found[2])
            return self._resolve(repo.find(unquote(found[3])), unquote(found[4]))
        if found := REPO_API.fullmatch(path):
            return self._repo_api(self._repo(found[1], found[2]), found[3] or "", query, body)
        if (self.command, path) == ("POST", "/api/repos/create"):
            return self._create(json.loads(body))
        if path == "/api/whoami-v2" and self.user:
            return 200, {"type": "user", "name": self.user, "orgs": [], "auth": {"type": "access_token"}}, {}
        if path == "/api/validate-yaml":
            return 200, {"errors": _yaml_errors(json.loads(body)["content"]), "warnings": []}, {}
        return self._not_known()

    def _not_known(self) -> NoReturn:
        self.server.unknown.append(f"{self.command} {self.path}")
        raise HubError(404, "", "Not found")

    def _repo(self, kind: str, repo_id: str) -> Repo:
        return self.server.store.repo(kind, repo_id, self.user)

    def _may_write(self, repo: Repo) -> str:
        if self.user is None:
            raise HubError(401, "", "Invalid credentials in Authorization header")
        if self.user != repo.owner:
            raise HubError(403, "", "Forbidden: pass `create_pr=1` as a query parameter to create a Pull Request")
        return self.user

    def _create(self, wanted: dict[str, Any]) -> Answer:
        if self.user is None:
            raise HubError(401, "", "Invalid username or password.")
        kind = wanted.get("type", "model")
        repo_id = f"{wanted.get('organization') or self.user}/{wanted['name']}"
        private = wanted.get("visibility") == "private"
        prefix = "" if kind == "model" else f"{kind}s/"
        answer = {"url": f"{self.server.endpoint}/{prefix}{repo_id}", "name": repo_id, "id": repo_id}
        try:
            self.server.store.create(kind, repo_id, self.user, private=private)
        except HubError as error:
            if error.status != 409:
                raise
            return 409, answer | {"error": error.message}, {}
        return 200, answer, {}

    def _store_large(self, oid: str, body: bytes) -> Answer:
        limit = self.server.refuse_uploads_after
        if limit is not None and len(self.server.uploads) >= limit:
            raise HubError(403, "", "Request has expired")
        if Blob(body, large=True).sha256 != oid:
            raise HubError(400, "", "The content does not have this hash")
        self.server.store.large[oid] = body
        self.server.uploads.append(oid)
        return 200, b"", {"ETag": f'"{oid}"'}

    def _batch(self, repo: Repo, wanted: dict[str, Any]) -> Answer:
        if self.user is None:
            raise HubError(401, "", "Invalid credentials in Authorization header")
        objects = []
        for item in wanted["objects"]:
            answer = {"oid": item["oid"], "size": item["size"]}
            if item["oid"] not in self.server.store.large:
                answer["actions"] = {"upload": {"href": f"{self.server.endpoint}/lfs/{item['oid']}"}}
            objects.append(answer)
        return 200, {"transfer": "basic", "objects": objects}, {}

    def _resolve(self, commit: Commit, path: str) -> Answer:
        if path not in commit.files:
            raise HubError(404, "EntryNotFound", "Entry not found")
        blob = commit.files[path]
        headers = {"ETag": f'"{blob.etag}"', "X-Repo-Commit": commit.oid, "Accept-Ranges": "bytes"}
        if blob.large:
            headers |= {"X-Linked-Etag": f'"{blob.sha256}"', "X-Linked-Size": str(len(blob.content))}
        return 200, blob.content, headers

    def _repo_api(self, repo: Repo, rest: str, query: dict[str, list[str]], body: bytes) -> Answer:
        name, _, argument = rest.partition("/")
        actions: dict[tuple[str, str], Callable[[], Any]] = {
            ("GET", ""): lambda: _info(repo, repo.find("main")),
            ("GET", "revision"): lambda: _info(repo, repo.find(unquote(argument))),
            ("GET", "refs"): lambda: _refs(repo),
            ("GET", "tree"): lambda: self._tree(repo, argument, query),
            ("GET", "commits"): lambda: [_commit_row(commit) for commit in repo.history(unquote(argument))],
            ("POST", "paths-info"): lambda: self._paths_info(repo, argument, body),
            ("POST", "preupload"): lambda: self._preupload(repo, argument, json.loads(body)),
            ("POST", "commit"): lambda: self._commit(repo, unquote(argument), body, create_pr="create_pr" in query),
            ("POST", "tag"): lambda: self._tag(repo, unquote(argument), json.loads(body)),
            ("DELETE", "tag"): lambda: self._untag(repo, unquote(argument)),
            ("POST", "branch"): lambda: self._branch(repo, unquote(argument), json.loads(body)),
            ("GET", "discussions"): lambda: self._discussions(repo, argument),
            ("POST", "discussions"): lambda: self._discuss(repo, argument, json.loads(body or b"{}")),
        }
        action = actions.get((self.command, name))
        if action is None:
            self._not_known()
        return 200, action(), {}

    def _tree(self, repo: Repo, argument: str, query: dict[str, list[str]]) -> list[dict[str, Any]]:
        revision, _, folder = argument.partition("/")
        folder = unquote(folder)
        prefix = f"{folder}/" if folder else ""
        inside = {p: b for p, b in repo.find(unquote(revision)).files.items() if p.startswith(prefix)}
        if folder and not inside:
            raise HubError(404, "EntryNotFound", f"{folder} does not exist")
        recursive = query.get("recursive", ["false"])[0].lower() == "true"
        rows: dict[str, dict[str, Any]] = {}
        for path, blob in sorted(inside.items()):
            parts = path.removeprefix(prefix).split("/")
            for depth in range(1, len(parts) if recursive else min(len(parts), 2)):
                rows.setdefault(prefix + "/".join(parts[:depth]), _folder_row(prefix + "/".join(parts[:depth])))
            if recursive or len(parts) == 1:
                rows[path] = _file_row(path, blob)
        return list(rows.values())

    def _paths_info(self, repo: Repo, revision: str, body: bytes) -> list[dict[str, Any]]:
        files = repo.find(unquote(revision)).files
        rows = []
        for path in parse_qs(body.decode())["paths"]:
            if path in files:
                rows.append(_file_row(path, files[path]))
            elif any(name.startswith(f"{path}/") for name in files):
                rows.append(_folder_row(path))
        return rows

    def _preupload(self, repo: Repo, revision: str, wanted: dict[str, Any]) -> dict[str, Any]:
        known = repo.find(unquote(revision)).files
        files = []
        for file in wanted["files"]:
            before = known.get(file["path"])
            large = file["path"].endswith(".parquet") or file["size"] > LARGE
            row = {"path": file["path"], "uploadMode": "lfs" if large else "regular", "shouldIgnore": False}
            files.append(row | ({"oid": before.etag} if before else {}))
        return {"files": files}

    def _commit(self, repo: Repo, revision: str, body: bytes, *, create_pr: bool) -> dict[str, Any]:
        user = self.user if create_pr else self._may_write(repo)
        if user is None:
            raise HubError(401, "", "Invalid credentials in Authorization header")
        before = repo.find(revision)
        lines = [json.loads(line) for line in body.splitlines() if line.strip()]
        header = next(line["value"] for line in lines if line["key"] == "header")
        if header.get("parentCommit") not in (None, before.oid):
            raise HubError(412, "", "The branch has moved on")
        files = dict(before.files)
        for line in lines:
            self._apply(line["key"], line["value"], files)
        commit = repo.add_commit(header["summary"], before.oid, files)
        answer: dict[str, Any] = {"commitUrl": f"{self.server.endpoint}/datasets/{repo.repo_id}/commit/{commit.oid}"}
        answer |= {"commitOid": commit.oid, "success": True}
        if not create_pr:
            repo.branches[revision] = commit.oid
            return answer
        number = len(repo.pull_requests) + 1
        pull = PullRequest(number, header["summary"], header.get("description", ""), user, before.oid)
        repo.pull_requests[number] = pull
        repo.branches[f"refs/pr/{number}"] = commit.oid
        prefix = "" if repo.kind == "model" else f"{repo.kind}s/"
        return answer | {"pullRequestUrl": f"{self.server.endpoint}/{prefix}{repo.repo_id}/discussions/{number}"}

    def _apply(self, key: str, value: dict[str, Any], files: dict[str, Blob]) -> None:
        if key == "file":
            files[value["path"]] = Blob(base64.b64decode(value["content"]), large=False)
        elif key == "lfsFile":
            if value["oid"] not in self.server.store.large:
                raise HubError(400, "", f"LFS pointer pointed to a file that does not exist: {value['path']}")
            files[value["path"]] = Blob(self.server.store.large[value["oid"]], large=True)
        elif key == "deletedFile":
            del files[value["path"]]

    def _tag(self, repo: Repo, revision: str, wanted: dict[str, Any]) -> dict[str, Any]:
        self._may_write(repo)
        if wanted["tag"] in repo.tags:
            raise HubError(409, "", "Reference already exists")
        repo.tags[wanted["tag"]] = repo.find(revision).oid
        return {}

    def _untag(self, repo: Repo, tag: str) -> dict[str, Any]:
        self._may_write(repo)
        if repo.tags.pop(tag, None) is None:
            raise HubError(404, "RevisionNotFound", f"no tag {tag}")
        return {}

    def _branch(self, repo: Repo, branch: str, wanted: dict[str, Any]) -> dict[str, Any]:
        self._may_write(repo)
        if branch in repo.branches:
            raise HubError(409, "", "Reference already exists")
        repo.branches[branch] = repo.find(wanted.get("startingPoint", "main")).oid
        return {}

    def _discussions(self, repo: Repo, argument: str) -> dict[str, Any]:
        if not argument:
            rows = [_discussion_row(repo, pull) for pull in repo.pull_requests.values()]
            return {"discussions": rows, "count": len(rows), "start": 0}
        pull = repo.pull_requests[int(argument)]
        created = {"id": "0", "type": "comment", "createdAt": DATE, "author": {"name": pull.author}}
        comment = {"edited": False, "hidden": False, "latest": {"raw": pull.description}}
        return _discussion_row(repo, pull) | {
            "changes": {"base": "refs/heads/main"},
            "filesWithConflicts": [],
            "diff": "".join(f"+++ b/{path}\n" for path in repo.find(f"refs/pr/{pull.number}").files),
            "events": [created | {"data": comment}],
        }

    def _discuss(self, repo: Repo, argument: str, wanted: dict[str, Any]) -> dict[str, Any]:
        number, _, action = argument.partition("/")
        if action == "merge":
            self._may_write(repo)
            repo.merge(int(number))
        elif action == "comment":
            repo.pull_requests[int(number)].comments.append((str(self.user), wanted["comment"]))
        else:
            self._not_known()
        return {}


def _info(repo: Repo, commit: Commit) -> dict[str, Any]:
    return {
        "_id": "0",
        "id": repo.repo_id,
        "author": repo.owner,
        "sha": commit.oid,
        "lastModified": DATE,
        "private": repo.private,
        "disabled": False,
        "gated": False,
        "tags": [],
        "siblings": [{"rfilename": path} for path in sorted(commit.files)],
    }


def _refs(repo: Repo) -> dict[str, Any]:
    heads = {name: oid for name, oid in repo.branches.items() if not name.startswith("refs/pr/")}
    pulls = {name: oid for name, oid in repo.branches.items() if name.startswith("refs/pr/")}

    def rows(refs: dict[str, str], prefix: str) -> list[dict[str, str]]:
        return [{"name": name, "ref": prefix + name, "targetCommit": oid} for name, oid in refs.items()]

    branches, tags = rows(heads, "refs/heads/"), rows(repo.tags, "refs/tags/")
    return {"branches": branches, "converts": [], "tags": tags, "pullRequests": rows(pulls, "")}


def _file_row(path: str, blob: Blob) -> dict[str, Any]:
    row: dict[str, Any] = {"type": "file", "path": path, "size": len(blob.content), "oid": blob.git_oid}
    if blob.large:
        row["lfs"] = {"oid": blob.sha256, "size": len(blob.content), "pointerSize": 130}
    return row


def _folder_row(path: str) -> dict[str, Any]:
    return {"type": "directory", "path": path, "size": 0, "oid": "0" * 40}


def _commit_row(commit: Commit) -> dict[str, Any]:
    return {"id": commit.oid, "title": commit.title, "message": "", "date": DATE, "authors": [{"user": "someone"}]}


def _discussion_row(repo: Repo, pull: PullRequest) -> dict[str, Any]:
    return {
        "num": pull.number,
        "title": pull.title,
        "status": pull.status,
        "isPullRequest": True,
        "author": {"name": pull.author},
        "createdAt": DATE,
        "repo": {"name": repo.repo_id, "type": repo.kind},
    }


def _yaml_errors(card: str) -> list[dict[str, str]]:
    found = re.match(r"---\n(.*?)\n---\n", card, re.DOTALL)
    try:
        header = yaml.safe_load(found[1]) if found else {}
    except yaml.YAMLError as error:
        return [{"message": str(error)}]
    return [] if isinstance(header, dict) else [{"message": "the header is no mapping"}]
