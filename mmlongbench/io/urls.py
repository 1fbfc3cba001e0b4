"""Refuses URLs where files of this machine are expected."""

import re
from pathlib import Path

from mmlongbench.errors import MMLongBenchError

_TEXT = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+)://")
_PATH = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):/")
"""`Path` writes `s3://bucket` as `s3:/bucket`."""


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
