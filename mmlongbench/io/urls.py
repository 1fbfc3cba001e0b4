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
    pattern = _PATH if isinstance(value, Path) else _TEXT
    if isinstance(value, str | Path) and (scheme := pattern.match(str(value).strip())):
        raise error(
            f"{where}: expected a file or folder of this machine, found a URL ({scheme[1]}://…); download it first"
        )
