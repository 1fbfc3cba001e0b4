"""Where the sources of a dataset come from: entries of the key `downloads` of a manifest.

`mmlongbench fetch` reads them. A build reads them only to say where the assets of a release come from; they are not in
the lock.
"""

import re
from pathlib import PurePosixPath

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from mmlongbench.io.printable import printable, without_secrets

MAIN = "main"
"""The revision of a dataset of the hub that is downloaded if an entry names none."""
RESERVED = "downloads.json"
"""The file of a data folder that lists what was downloaded."""
FETCH_LOCK = ".fetch.lock"
"""The file of a data folder that one process holds while it downloads."""
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


class DownloadSpec(BaseModel):
    """One place that sources of a dataset come from: a dataset of the hub, a URL, or steps for a person."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, use_attribute_docstrings=True)

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
    def name(self) -> str:
        """The place in messages, without secrets: `hub:owner/name`, or the URL."""
        return f"hub:{self.hub}" if self.hub else without_secrets(self.url)

    def matches(self, file: str) -> bool:
        """Return whether a file of the hub's dataset is one of `files`."""
        return any(re.fullmatch(_regex(pattern), file) for pattern in self.files)

    def holds(self, path: PurePosixPath) -> bool:
        """Return whether a path below the data folder is where these files go, or inside it or above it."""
        to = PurePosixPath(self.to)
        return path.is_relative_to(to) or to.is_relative_to(path)

    def gives(self, path: PurePosixPath) -> bool:
        """Return whether these files may be at a path below the data folder, or inside it."""
        if not self.hub:
            return self.holds(path)
        return any(self.holds(path) and _may_meet(f"{self.to}/{pattern}", str(path)) for pattern in self.files)


def _may_meet(pattern: str, path: str) -> bool:
    """Return whether a file of a pattern may be at a path, or in the folder that the path is."""
    if "**/" in pattern:
        return True
    pairs = zip(pattern.split("/"), path.split("/"), strict=False)
    return path.count("/") <= pattern.count("/") and all(re.fullmatch(_regex(one), other) for one, other in pairs)


def _regex(pattern: str) -> str:
    """Return the regular expression of a pattern: `**/` is any folders, `*` and `?` do not match a slash."""
    parts = re.split(r"(\*\*/|\*|\?)", pattern)
    known = {"**/": "(?:[^/]+/)*", "*": "[^/]*", "?": "[^/]"}
    return "".join(known.get(part) or re.escape(part) for part in parts)
