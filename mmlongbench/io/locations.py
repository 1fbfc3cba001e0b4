"""Where a source is: a path on this machine, files of a dataset of the Hugging Face hub, or a URL.

A path or a URL may lead to an archive or a packed file, or to something inside an archive: `food-101.tar.gz/food-101`
(`mmlongbench.io.sources`).
"""

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias
from urllib.parse import unquote

from mmlongbench.errors import MMLongBenchError
from mmlongbench.io.printable import without_secrets

_TEXT = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+)://")
_PATH = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):/")  # `Path` writes `s3://bucket` as `s3:/bucket`
HUB = "hub:"  # the beginning of a location on the Hugging Face hub
HUB_FORM = "hub:owner/name[@revision][/path]"
_HUB = re.compile(
    r"hub:(?P<repository>[\w.-]+/[\w.-]+)(?:@(?P<revision>refs/[\w.-]+/[\w.-]+|[\w.-]+))?(?:/(?P<path>[^\0]+))?"
)
_URL = re.compile(r"(?:[A-Za-z][A-Za-z0-9+.-]+::)*[A-Za-z][A-Za-z0-9+.-]+://.+", re.DOTALL)
"""Matches a URL, also a chained one of `fsspec`, such as `simplecache::s3://bucket/x`."""
_BLANK = "\ue000"
"""A character that stands for a blank in a URL, because `without_secrets` takes a blank for the end of a URL."""
_MIN_SECRET = 4
"""The shortest value of a query that may be a secret; others, such as a number, are in many messages by chance."""


@dataclass(frozen=True, slots=True)
class LocalPath:
    """A file or a folder of this machine, or something inside an archive."""

    path: Path

    def matching(self) -> "tuple[LocalPath, ...]":
        """Return the paths that this one means: itself, or all whose names match its last part, as
        `data/test-*.parquet` does. If none matches, or something has this very name, it is itself.
        """
        if "*" not in self.path.name or self.path.exists():
            return (self,)
        pattern = re.sub(r"\*+", "*", self.path.name)  # `**` has another meaning, or none
        paths = sorted(path for path in self.path.parent.glob(pattern) if not path.name.startswith("."))
        return tuple(map(LocalPath, paths)) or (self,)

    def __str__(self) -> str:
        return str(self.path)


@dataclass(frozen=True, slots=True)
class HubFiles:
    """Files of a dataset of the Hugging Face hub."""

    repository: str
    """The owner and the name: `ethz/food101`."""
    revision: str
    """A commit, a branch or a tag; empty for the newest files. Of a branch with slashes only `refs/…/…` is known."""
    path: str
    """A file or a folder of the dataset; empty for all files that the reader asks for."""

    def __str__(self) -> str:
        revision = f"@{self.revision}" if self.revision else ""
        return f"{HUB}{self.repository}{revision}{f'/{self.path}' if self.path else ''}"


@dataclass(frozen=True, slots=True)
class Url:
    """A file or a folder that `fsspec` can read, such as `s3://bucket/pdfs`."""

    address: str = field(repr=False)
    """The whole URL, which may have a password."""

    def __str__(self) -> str:
        shown = without_secrets(re.sub(r"\s", _BLANK, self.address))  # first, because a password may have a #
        return shown.partition("#")[0].replace(_BLANK, " ")

    @property
    def name(self) -> str:
        """The name of the file or folder, without what follows a question mark."""
        return Path(str(self).removesuffix("?…").rstrip("/")).name

    @property
    def secrets(self) -> tuple[str, ...]:
        """The parts of the URL that are not shown: user and password, query, fragment."""
        place, _, fragment = self.address.partition("#")
        place, _, query = place.partition("?")
        user, at, _ = place.partition("://")[2].rpartition("@")
        values = [value for pair in query.split("&") if len(value := pair.rpartition("=")[2]) >= _MIN_SECRET]
        found = (user, *re.split("[:/]+", user), query, *values, fragment) if at else (query, *values, fragment)
        return tuple(filter(None, dict.fromkeys((*found, *map(unquote, found)))))


Location: TypeAlias = LocalPath | HubFiles | Url


def parse_location(text: str) -> Location:
    """Return the location that a text of a manifest names.

    Raises:
        ValueError: the text begins with `hub:`, and is no location on the hub; or it is empty.


    >>> parse_location("hub:ethz/food101@v1/data/train.parquet")
    HubFiles(repository='ethz/food101', revision='v1', path='data/train.parquet')
    >>> str(parse_location("https://user:secret@host/pdfs.zip?sig=TOKEN"))
    'https://…@host/pdfs.zip?…'

    """
    if not text.strip():
        raise ValueError("expected a path, found an empty text")
    if text.startswith(HUB):
        parts = _HUB.fullmatch(text)
        if not parts or ".." in (parts["path"] or "").split("/"):
            raise ValueError(f"expected {HUB_FORM}, found {text!r:.200}")
        return HubFiles(parts["repository"], parts["revision"] or "", (parts["path"] or "").strip("/"))
    return Url(text.strip()) if is_url(text) else LocalPath(Path(text))


def is_url(text: str) -> bool:
    """Return whether a text is a URL.

    >>> is_url("s3://bucket/x"), is_url("hub:owner/name"), is_url("data/x")
    (True, False, False)
    """
    return _URL.fullmatch(text.strip()) is not None


def refuse_url(value: object, where: str, error: type[MMLongBenchError]) -> None:
    """Raise `error` if a text or a path is a URL. The message does not repeat the URL, because it may contain a password.

    >>> refuse_url("s3://user:secret@bucket/x", "release", MMLongBenchError)
    Traceback (most recent call last):
    ...
    mmlongbench.errors.MMLongBenchError: release: expected a file or folder of this machine, found a URL (s3://…); download it first
    """  # noqa: E501
    if isinstance(value, Path) and value.parts and Path(value.parts[0]).is_dir():
        return  # a folder of this machine, whose name ends with a colon
    pattern = _PATH if isinstance(value, Path) else _TEXT
    if isinstance(value, str | Path) and (scheme := pattern.match(str(value).strip())):
        raise error(
            f"{where}: expected a file or folder of this machine, found a URL ({scheme[1]}://…); download it first"
        )


def local_path(value: object, what: str, error: type[MMLongBenchError]) -> Path:
    """Return the path that a text or a path is; raise `error` for a URL, an empty text or another value."""
    if not isinstance(value, str | Path):
        raise error(f"{what}: expected a path, found {value!r:.80}")
    refuse_url(value, what, error)
    if not str(value).strip():
        raise error(f"{what}: expected a path, found an empty text")
    return Path(value)
