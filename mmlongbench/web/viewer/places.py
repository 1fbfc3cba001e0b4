"""Where the viewer keeps what it makes: in the user's cache folder, never in a release."""

from collections.abc import Iterable
from hashlib import sha256
from pathlib import Path

from mmlongbench.release.published_folder import user_cache

FORMAT = "2"
"""The version of the files that are kept; files of another version are made again."""


def cache_folder() -> Path:
    """Return the folder of everything that the viewer keeps."""
    return user_cache() / "view"


def key_of(files: Iterable[Path], *more: str) -> str:
    """Return a name for what is made of files: it changes if a path, a size or a time of change does.

    A file that does not exist counts, too. `more` are other texts on which the result depends.
    """
    said = [FORMAT, *more]
    for file in files:
        path = file.absolute()
        try:
            found = path.stat()
            said.append(f"{path} {found.st_size} {found.st_mtime_ns}")
        except OSError:
            said.append(f"{path} is missing")
    return sha256("\n".join(said).encode("utf-8", "surrogateescape")).hexdigest()[:32]
