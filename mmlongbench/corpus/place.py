"""Checks and prepares the folder of a corpus: it must be new or empty, or hold the same corpus or an interrupted build.
Any other folder is refused and not changed.
"""

import shutil
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from mmlongbench.corpus.info import INDEX, INFO, PASSAGES, REJECTS, CorpusInfo, SourceInfo, read_info
from mmlongbench.errors import BuildError

CLAIM = "claim"
"""The file in the working folder that a writer locks."""
_WORK = ".build"
_IDENTITY = ("mode", "words", "limit", "source")


class OtherCorpusError(BuildError):
    """A folder holds another corpus than the wanted one."""


def existing(out: Path, wanted: Mapping[str, object]) -> CorpusInfo | None:
    """Return the description of the corpus in a folder if it is the wanted corpus; None if there is no corpus.

    Raises:
        OtherCorpusError: the folder holds another corpus.

    """
    if not (out / INFO).is_file():
        return None
    info = read_info(out)
    for name in _IDENTITY:
        found: object = getattr(info, name)
        asked = wanted[name]
        if not _is_same(found, asked):
            message = f"holds a corpus whose {name} is {_words(found)}, not {_words(asked)}"
            raise OtherCorpusError(f"--out {out}: {message}; give another folder, or remove this one")
    return info


def _is_same(found: object, asked: object) -> bool:
    """Return whether two values are the same; sources are the same if they have the same bytes, whatever their names.

    Sources without a hash cannot be compared and count as different.
    """
    if not isinstance(found, SourceInfo) or not isinstance(asked, SourceInfo):
        return found == asked
    return bool(found.sha256) and (found.format, found.sha256) == (asked.format, asked.sha256)


def _words(value: object) -> str:
    """Return a value of `corpus.json` as a message shows it."""
    if not isinstance(value, SourceInfo):
        return str(value)
    return f"{value.name} ({value.format}, sha256 {value.sha256[:12]}…)" if value.sha256 else "one without a hash"


def check_place(out: Path) -> None:
    """Refuse a folder whose content is neither a corpus nor an interrupted build of one."""
    if out.exists() and not out.is_dir():
        raise BuildError(f"--out {out}: is a file; give a folder instead")
    if out.is_dir() and not ((out / INFO).is_file() or (out / _WORK).is_dir()) and any(out.iterdir()):
        raise BuildError(f"--out {out}: is not empty and holds no corpus; give an empty or a new folder")


def open_place(out: Path) -> Path:
    """Make the working folder inside the folder of the corpus, and return its path."""
    check_place(out)
    try:
        (out / _WORK).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise BuildError(f"--out {out}: cannot be written: {error.strerror}") from error
    return out / _WORK


def clear(out: Path) -> None:
    """Remove the files of an interrupted build; the caller must hold the lock."""
    left = [out / name for name in (PASSAGES, INDEX, REJECTS)]
    for path in [*left, *(path for path in (out / _WORK).iterdir() if path.name != CLAIM)]:
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)


def leave_nothing(out: Path, *, is_new: bool) -> None:
    """Remove the files of a failed build. If the build also made the folder `out` (`is_new`), remove it, too."""
    shutil.rmtree(out / _WORK, ignore_errors=True)
    if is_new:
        with suppress(OSError):
            out.rmdir()
