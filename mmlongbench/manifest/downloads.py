"""Where the sources of a dataset come from (the key `downloads` of a manifest), and the record of what was downloaded.

`mmlongbench fetch` reads the entries. A build reads them only to say where the assets of a release come from; they are
not in the lock. The record is a file of the data folder: from where, at which commit, with which bytes. The first
download of a file writes its size and SHA-256; later downloads are checked against them.
"""

import re
from pathlib import Path, PurePosixPath
from typing import Literal

from pydantic import ConfigDict, Field, ValidationError, field_validator, model_validator

from mmlongbench.errors import FetchError
from mmlongbench.io.files import MAX_OF_A_FILE, read_regular, said_bytes
from mmlongbench.io.printable import printable, without_secrets
from mmlongbench.manifest.strict_model import StrictModel

MAIN = "main"  # the revision of a dataset of the hub that is downloaded if an entry names none
RESERVED = "downloads.json"  # the file of a data folder that lists what was downloaded
FETCH_LOCK = ".fetch.lock"  # the file of a data folder that one process holds while it downloads
_URL = re.compile(r"https?://[^/\s]+/\S*")


def fault_of_path(path: str) -> str:
    """Return why a path below the data folder cannot be used; empty if it can.

    >>> fault_of_path("MM-NIAH/mm_niah_test"), fault_of_path("../x"), fault_of_path("a//b")
    ('', "it has a part '..'", "it has a part ''")
    """
    if printable(path) != path or "\\" in path:
        return "it has a backslash or a character that cannot be seen"
    if re.match(r"[A-Za-z]:", path):
        return "it begins with a drive"
    parts = path.split("/")
    if wrong := [part for part in parts if part in ("", ".", "..") or part.startswith(".part-")]:
        return f"it has a part {wrong[0]!r}"
    if any(part != part.strip() or len(part.encode()) > 255 for part in parts) or len(path.encode()) > 1024:
        return "it has a part that is too long, or that begins or ends with a blank"
    return "it is a file of `fetch` itself" if path in (RESERVED, FETCH_LOCK) else ""


class DownloadSpec(StrictModel):
    """One place that sources of a dataset come from: a dataset of the hub, a URL, or steps for a person."""

    hub: str = Field(default="", pattern=r"^([\w.-]+/[\w.-]+)?$")
    """A dataset of the Hugging Face hub, `owner/name`."""
    files: tuple[str, ...] = Field(default=(), strict=False)
    """The files of the dataset that are needed, such as `data/test-*.parquet`; a `*` does not match a slash."""
    revision: str = ""
    """A branch, a tag or a commit of the dataset; the newest commit of `main` by default."""
    url: str = ""
    """The address of one file."""
    steps: tuple[str, ...] = Field(default=(), strict=False)
    """What a person has to do, if no program may download the files."""
    to: str
    """The folder below the data folder that the files go to; for a URL the file. Files of the hub keep their paths
    below it."""
    origin: str = ""
    """The page or address that `steps` lead to, as the origin of the files in a release."""
    licence: str = ""
    """The licence of these files; by default that of the dataset."""
    agree: str = ""
    """What has to be agreed to before the files can be downloaded."""
    unverified: bool = False
    """Whether nothing is known that confirms this place."""

    @field_validator("to")
    @classmethod
    def _inside(cls, value: str) -> str:
        if fault := fault_of_path(value):
            raise ValueError(f"expected a path below the data folder: {fault}")
        return value

    @model_validator(mode="after")
    def _one_place(self) -> "DownloadSpec":
        given = [name for name, value in (("hub", self.hub), ("url", self.url), ("steps", self.steps)) if value]
        if len(given) != 1:
            raise ValueError(f"expected one of hub, url and steps, found {' and '.join(given) or 'none'}")
        if bool(self.hub) != bool(self.files) or (self.revision and not self.hub):
            raise ValueError("expected `files` with `hub`, and `files` and `revision` with nothing else")
        if self.url and not _URL.fullmatch(self.url):
            raise ValueError("url: expected http:// or https:// with a host and a path")
        return self

    @property
    def key(self) -> str:
        """The place in the record of downloads."""
        return f"{self.name}@{self.revision or MAIN} {' '.join(self.files)} → {self.to}"

    @property
    def name(self) -> str:
        """The place in messages, without secrets: `hub:owner/name`, or the URL."""
        return f"hub:{self.hub}" if self.hub else without_secrets(self.url)

    def matches(self, file: str) -> bool:
        """Return whether a file of the hub's dataset is one of `files`."""
        return any(re.fullmatch(_regex(pattern), file) for pattern in self.files)

    def gives(self, path: PurePosixPath) -> bool:
        """Return whether these files may be at a path below the data folder, inside it, or above it."""
        to = PurePosixPath(self.to)
        may_meet = path.is_relative_to(to) or to.is_relative_to(path)
        if not self.hub or not may_meet:
            return may_meet
        for pattern in self.files:
            steps = f"{self.to}/{pattern}".split("/")
            is_inside = len(path.parts) <= len(steps)
            pairs = zip(steps, path.parts, strict=False)
            if "**/" in pattern or (is_inside and all(re.fullmatch(_regex(step), part) for step, part in pairs)):
                return True
        return False


def _regex(pattern: str) -> str:
    """Return the regular expression of a pattern: `**/` is any folders, `*` and `?` do not match a slash."""
    parts = re.split(r"(\*\*/|\*|\?)", pattern)
    known = {"**/": "(?:[^/]+/)*", "*": "[^/]*", "?": "[^/]"}
    return "".join(known.get(part) or re.escape(part) for part in parts)


class FetchedFile(StrictModel):
    """A file that was downloaded whole."""

    origin: str
    """`hub:owner/name@commit/path`, or the URL without secrets."""
    size: int
    sha256: str
    version: str = ""
    """What the server of a URL calls this version of the file (ETag)."""


class FetchedDataset(StrictModel):
    """The files of a dataset of the hub that an entry of a manifest asks for."""

    commit: str
    """The commit that the revision was when its files were first listed."""
    files: tuple[str, ...]
    """Their paths below the data folder, whether they were downloaded or not."""


class DownloadRecord(StrictModel):
    """What was downloaded into a data folder."""

    model_config = ConfigDict(extra="ignore", frozen=True, strict=True)  # earlier versions wrote `unfinished` too

    version: Literal[1] = 1
    datasets: dict[str, FetchedDataset] = Field(default={})
    """By `DownloadSpec.key`."""
    files: dict[str, FetchedFile] = Field(default={})
    """By the path below the data folder."""

    @field_validator("files")
    @classmethod
    def _inside(cls, value: dict[str, FetchedFile]) -> dict[str, FetchedFile]:
        for path in value:
            if fault := fault_of_path(path):
                raise ValueError(f"{path!r:.200}: {fault}")
        return value


def load_record(folder: Path) -> DownloadRecord:
    """Return the record of a data folder, or an empty one; raises FetchError if the file is not a readable record."""
    path = folder / RESERVED
    if not path.exists():
        return DownloadRecord()
    try:
        return DownloadRecord.model_validate_json(read_regular(path, MAX_OF_A_FILE))
    except (OSError, ValueError) as error:
        said = error.errors()[0]["msg"] if isinstance(error, ValidationError) else str(error)
        raise FetchError(
            f"{path}: expected a record of downloads, found another file ({said}); move it away, and the files are "
            "compared with those of their places, or downloaded again"
        ) from error


def state_of(spec: DownloadSpec, folder: Path, record: DownloadRecord) -> str:
    """Return in words what is there of a place, by names and sizes alone; no server is asked."""
    if spec.steps:
        return "there (not checked)" if is_filled(folder / spec.to) else "missing"
    listed = record.datasets.get(spec.key)
    paths = [spec.to] if spec.url else listed.files if listed else ()
    sizes = [
        record.files[path].size
        for path in paths
        if path in record.files
        and (folder / path).is_file()
        and (folder / path).stat().st_size == record.files[path].size
    ]
    if len(sizes) == len(paths) == 1:
        return f"there ({said_bytes(sizes[0])})"
    if sizes:
        state = "there" if len(sizes) == len(paths) else "incomplete"
        return f"{state}: {len(sizes):,} of {len(paths):,} files ({said_bytes(sum(sizes))})"
    patterns = [f"{spec.to}/{pattern}" for pattern in spec.files] or [spec.to]
    return "there (not checked)" if all(any(folder.glob(pattern)) for pattern in patterns) else "missing"


def is_filled(path: Path) -> bool:
    """Return whether a path is a file, or a folder that is not empty."""
    return path.is_file() or (path.is_dir() and any(path.iterdir()))
