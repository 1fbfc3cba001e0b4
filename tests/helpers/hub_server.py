"""A small server that speaks the protocol of the Hugging Face hub: listings, commits, files in ranges, tokens, faults,
and uploads.

Large files lie on a second host, to which the first one redirects, as those of the hub do.
"""

import base64
import hashlib
import json
import re
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import unquote, urlsplit

LARGE = 1000
"""Files of at least so many bytes lie on the other host, as large files of the hub do."""


@dataclass(frozen=True)
class Fault:
    """What goes wrong with one answer."""

    status: int = 0
    """Answered in place of the file."""
    headers: Mapping[str, str] = field(default_factory=dict)
    cut: int | None = None
    """The connection ends after so many bytes."""
    body: bytes | None = None
    """Sent in place of the bytes of the file."""
    has_range: bool = True
    """Whether the range is respected; otherwise the whole file is sent."""


@dataclass
class HubDataset:
    """A dataset with its commits, each of which has files."""

    commits: dict[str, dict[str, bytes]]
    branches: dict[str, str]
    needs: str = ""
    """The token without which no file is given."""


def commit_of(files: Mapping[str, bytes]) -> str:
    """The id of a commit, which its files decide."""
    named = json.dumps({name: hashlib.sha1(data).hexdigest() for name, data in files.items()})
    return hashlib.sha1(named.encode()).hexdigest()


class HubServer(ThreadingHTTPServer):
    """Has datasets and single files, counts what comes in, and makes the faults that a test wants."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.datasets: dict[str, HubDataset] = {}
        self.files: dict[str, bytes] = {}
        """Files at `/files/<name>`, which belong to no dataset."""
        self.faults: dict[str, list[Fault]] = {}
        """The faults of the next answers, by a part of the address."""
        self.requests: list[tuple[str, dict[str, str]]] = []
        """The address and the headers of each request."""
        self.other: HubServer | None = None
        """The host of large files."""
        self.stored: dict[str, bytes] = {}
        """Large files that were uploaded, by their SHA-256; they belong to no commit yet."""
        self.received = 0
        """The bytes of all bodies of requests."""
        self.made: list[dict[str, Any]] = []
        """What requests to make a dataset said."""

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    def put(self, name: str, files: Mapping[str, bytes], branch: str = "main", needs: str = "") -> str:
        """Commit files to a dataset, and return the commit."""
        commit = commit_of(files)
        found = self.datasets.setdefault(name, HubDataset({}, {}, needs))
        found.commits[commit] = dict(files)
        found.branches[branch] = commit
        return commit

    def fail(self, part: str, *faults: Fault) -> None:
        """Make faults in the next answers to addresses with this part."""
        self.faults.setdefault(part, []).extend(faults)

    def asked(self, part: str) -> list[dict[str, str]]:
        """The headers of requests for addresses with this part."""
        return [headers for address, headers in self.requests if part in address]

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignore a client that closed its connection."""


class _Handler(BaseHTTPRequestHandler):
    server: HubServer
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def do_HEAD(self) -> None:
        self.do_GET()

    def do_POST(self) -> None:
        address, body = unquote(urlsplit(self.path).path), self._body()
        if address == "/api/repos/create":
            return self._create(json.loads(body))
        if address == "/api/validate-yaml":
            return self._json({"errors": [], "warnings": []})
        if found := re.fullmatch(r"/api/datasets/([^/]+/[^/]+)/preupload/main", address):
            return self._json({"files": [_upload_mode(file) for file in json.loads(body)["files"]]})
        if re.fullmatch(r"/datasets/([^/]+/[^/]+)\.git/info/lfs/objects/batch", address):
            objects = [self._object(each) for each in json.loads(body)["objects"]]
            return self._json({"transfer": "basic", "objects": objects})
        if found := re.fullmatch(r"/api/datasets/([^/]+/[^/]+)/commit/main", address):
            return self._commit(found[1], [json.loads(line) for line in body.splitlines()])
        return self._say(404, b"", {"X-Error-Code": "EntryNotFound"})

    def do_PUT(self) -> None:
        body = self._body()
        self.server.stored[hashlib.sha256(body).hexdigest()] = body
        return self._say(200, b"", {})

    def _body(self) -> bytes:
        """The body of a request, whose bytes are counted."""
        if self.headers.get("transfer-encoding") == "chunked":
            parts = []
            while size := int(self.rfile.readline(), 16):
                parts.append(self.rfile.read(size))
                self.rfile.readline()
            self.rfile.readline()
            body = b"".join(parts)
        else:
            body = self.rfile.read(int(self.headers.get("content-length", "0")))
        self.server.received += len(body)
        headers = {name.lower(): value for name, value in self.headers.items()}
        self.server.requests.append((f"{self.command} {unquote(urlsplit(self.path).path)}", headers))
        return body

    def _create(self, asked: dict[str, Any]) -> None:
        name = f"{asked.get('organization', 'owner')}/{asked['name']}"
        self.server.made.append(asked)
        made = json.dumps({"url": f"{self.server.url}/datasets/{name}"}).encode()
        is_there = name in self.server.datasets
        if not is_there:
            self.server.put(name, {})
        return self._say(409 if is_there else 200, made, {"content-type": "application/json"})

    def _object(self, asked: dict[str, Any]) -> dict[str, Any]:
        """Where a large file must go; nowhere if it is there."""
        if asked["oid"] in self.server.stored:
            return asked
        return {**asked, "actions": {"upload": {"href": f"{self.server.url}/stored/{asked['oid']}"}}}

    def _commit(self, name: str, lines: list[dict[str, Any]]) -> None:
        found = self.server.datasets[name]
        files = dict(found.commits[found.branches["main"]])
        for line in lines:
            value = line["value"]
            if line["key"] == "file":
                files[value["path"]] = base64.b64decode(value["content"])
            elif line["key"] == "lfsFile":
                files[value["path"]] = self.server.stored[value["oid"]]
            elif line["key"] == "deletedFile":
                files.pop(value["path"])
        commit = self.server.put(name, files)
        return self._json({"commitUrl": f"{self.server.url}/datasets/{name}/commit/{commit}", "commitOid": commit})

    def _json(self, value: object) -> None:
        return self._say(200, json.dumps(value).encode(), {"content-type": "application/json"})

    def do_GET(self) -> None:
        address = unquote(urlsplit(self.path).path)
        self.server.requests.append((address, {name.lower(): value for name, value in self.headers.items()}))
        fault = self._fault(address)
        if fault and fault.status:
            return self._say(fault.status, fault.body or b"", fault.headers)
        if listing := re.fullmatch(r"/api/datasets/([^/]+/[^/]+)/revision/(.+)", address):
            return self._list(listing[1], listing[2])
        if tree := re.fullmatch(r"/api/datasets/([^/]+/[^/]+)/tree/([0-9a-f]+|main)", address):
            found = self.server.datasets[tree[1]]
            files = found.commits[found.branches.get(tree[2], tree[2])]
            entries = [_entry(path, data) for path, data in files.items()]
            return self._say(200, json.dumps(entries).encode(), {"content-type": "application/json"})
        if file := re.fullmatch(r"/datasets/([^/]+/[^/]+)/resolve/([0-9a-f]+)/(.+)", address):
            return self._resolve(file[1], file[2], file[3], fault)
        if address.removeprefix("/files/") in self.server.files:
            return self._send(self.server.files[address.removeprefix("/files/")], fault, {})
        return self._say(404, b"", {"X-Error-Code": "EntryNotFound"})

    def _fault(self, address: str) -> Fault | None:
        """The next fault of an address; one of bytes waits for a request of bytes."""
        for part, faults in self.server.faults.items():
            if part in address and faults and (faults[0].status or self.command != "HEAD"):
                return faults.pop(0)
        return None

    def _list(self, name: str, revision: str) -> None:
        found = self.server.datasets.get(name)
        if found is None:
            return self._say(404, b"", {"X-Error-Code": "RepoNotFound"})
        commit = found.branches.get(revision, revision)
        if commit not in found.commits:
            return self._say(404, b"", {"X-Error-Code": "RevisionNotFound"})
        siblings = [_sibling(path, data) for path, data in found.commits[commit].items()]
        info = {"id": name, "sha": commit, "siblings": siblings, "private": False, "tags": [], "downloads": 0}
        return self._say(200, json.dumps(info).encode(), {"content-type": "application/json"})

    def _resolve(self, name: str, commit: str, path: str, fault: Fault | None) -> None:
        found = self.server.datasets[name]
        if found.needs and self.headers["authorization"] != f"Bearer {found.needs}":
            return self._say(403, b"", {"X-Error-Code": "GatedRepo"})
        data = found.commits[commit][path]
        known = {"X-Repo-Commit": commit, "X-Linked-Size": str(len(data))}
        if len(data) >= LARGE and self.server.other:
            stored = hashlib.sha256(data).hexdigest()
            self.server.other.files[stored] = data
            left = [faults for part, faults in self.server.faults.items() if part in path]
            self.server.other.fail(stored, *([fault] if fault else []), *(each for faults in left for each in faults))
            for faults in left:
                faults.clear()
            known["X-Linked-ETag"] = f'"{stored}"'
            return self._say(302, b"", {**known, "location": f"{self.server.other.url}/files/{stored}?sig=SECRET"})
        return self._send(data, fault, known)

    def _send(self, data: bytes, fault: Fault | None, headers: Mapping[str, str]) -> None:
        tag = f'"{hashlib.sha1(data).hexdigest()}"'
        if fault and fault.body is not None:
            data = fault.body
        asked = re.fullmatch(r"bytes=(\d+)-", self.headers.get("range", ""))
        may = self.headers.get("if-range", tag) == tag and (fault is None or fault.has_range)
        begin = int(asked[1]) if asked and may else 0
        if begin >= len(data) > 0:
            return self._say(416, b"", {"content-range": f"bytes */{len(data)}"})
        part = {"content-range": f"bytes {begin}-{len(data) - 1}/{len(data)}"} if begin else {}
        cut = fault.cut if fault else None
        return self._say(206 if begin else 200, data[begin:], {**headers, "etag": tag, **part}, cut)

    def _say(self, status: int, body: bytes, headers: Mapping[str, str], cut: int | None = None) -> None:
        self.send_response(status)
        for name, value in {"content-length": str(len(body)), **headers}.items():
            if value:
                self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body[:cut])
        if cut is not None:
            self.close_connection = True

    def log_message(self, format: str, *args: Any) -> None:
        """Log nothing."""


def _upload_mode(file: dict[str, Any]) -> dict[str, Any]:
    """Whether a file is uploaded in a commit, or as a large file."""
    is_large = file["size"] >= LARGE
    return {"path": file["path"], "uploadMode": "lfs" if is_large else "regular", "shouldIgnore": False}


def _sibling(path: str, data: bytes) -> dict[str, Any]:
    """What a listing says about a file: large files have a SHA-256, small ones the id of git."""
    git = hashlib.sha1(b"blob %d\0" % len(data) + data).hexdigest()
    found: dict[str, Any] = {"rfilename": path, "size": len(data), "blobId": git}
    if len(data) >= LARGE:
        found["lfs"] = {"size": len(data), "sha256": hashlib.sha256(data).hexdigest(), "pointerSize": 130}
    return found


def _entry(path: str, data: bytes) -> dict[str, Any]:
    """What a tree says about a file."""
    sibling = _sibling(path, data)
    found = {"type": "file", "path": path, "size": len(data), "oid": sibling["blobId"]}
    if large := sibling.get("lfs"):
        found["lfs"] = {"oid": large["sha256"], "size": len(data), "pointerSize": large["pointerSize"]}
    return found


@contextmanager
def hub() -> Iterator[HubServer]:
    """A hub with a second host for large files, both of which listen until the block ends."""
    with HubServer() as server, HubServer() as other:
        server.other = other
        threads = [threading.Thread(target=each.serve_forever, args=(0.01,), daemon=True) for each in (server, other)]
        for thread in threads:
            thread.start()
        try:
            yield server
        finally:
            for each in (server, other):
                each.shutdown()
            for thread in threads:
                thread.join()
