"""The lock: what a release is made of, written last. No time, no worker count, no absolute path."""

import json
from collections import Counter
from importlib.metadata import version
from pathlib import Path
from typing import Any

from mmlongbench.errors import ReleaseError
from mmlongbench.io.safe_read import read_regular
from mmlongbench.release.layout import LOCK

MAKERS = ("mmlongbench", "pymupdf", "pillow", "tokenizers", "pyarrow", "tantivy", "numpy")
"""The packages whose versions a lock has."""
MAX_BYTES = 512 * 1024 * 1024
"""Of a lock."""


def versions() -> dict[str, str]:
    """The versions of everything that makes bytes."""
    from PIL import features

    made = {name: version(name) for name in MAKERS}
    return {**made, "libjpeg-turbo": str(features.version("libjpeg_turbo"))}


def lock_bytes(lock: dict[str, Any]) -> list[bytes]:
    """A lock as a file a person can read and diff."""
    return [json.dumps(lock, ensure_ascii=False, indent=1).encode("utf-8", "backslashreplace"), b"\n"]


def read_lock(release: Path) -> dict[str, Any]:
    """The lock of a release.

    Raises:
        ReleaseError: there is none, or it is no lock of this format.

    """
    path = release / LOCK
    try:
        lock = json.loads(read_regular(path, MAX_BYTES), object_pairs_hook=_once)
    except FileNotFoundError as error:
        raise ReleaseError(
            f"{release}: no {LOCK}: not a release of this engine, or one whose build has not ended; "
            "public files that others made are audited by their own path, or that of mmlb_data/"
        ) from error
    except RecursionError as error:
        raise ReleaseError(f"{path}: expected a lock, found JSON that is nested too deeply") from error
    except (ValueError, OSError) as error:
        raise ReleaseError(f"{path}: expected JSON, found {error}") from error
    if not isinstance(lock, dict) or type(lock.get("format")) is not int or lock["format"] != 1:
        raise ReleaseError(f"{path}: expected a lock of format 1")
    for key, kind in (("manifest", list), ("datasets", dict), ("files", dict)):
        if not isinstance(lock.get(key), kind):
            found = type(lock[key]).__name__ if key in lock else "nothing"
            raise ReleaseError(f"{path}: {key}: expected a {kind.__name__}, found {found}")
    for name, file in lock["files"].items():
        is_described = isinstance(file, dict) and isinstance(file.get("bytes"), int)
        if not (is_described and isinstance(file.get("sha256"), str)):
            raise ReleaseError(f"{path}: files: {name}: expected its bytes and sha256, found {file!r:.200}")
    names = Counter(str(data.get("name")) for data in lock["manifest"] if isinstance(data, dict))
    if twice := sorted(name for name, times in names.items() if times > 1):
        raise ReleaseError(f"{path}: manifest: two datasets are called {twice[0]!r}")
    return lock


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object of JSON, each of whose keys stands in it once: of two, readers would take one or the other."""
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found:
            raise ValueError(f"the key {key!r:.80} twice in one object")
        found[key] = value
    return found
