"""The folder of a corpus: new, empty, the same corpus's, or an interrupted build's; anything else is left alone."""

import shutil
from contextlib import suppress
from pathlib import Path
from typing import Any

from mmlongbench.corpus.info import INDEX, INFO, PASSAGES, REJECTS, CorpusInfo, SourceInfo, read_info
from mmlongbench.errors import BuildError

CLAIM = "claim"
"""The file in the working folder that a writer locks."""
_WORK = ".build"
_IDENTITY = ("mode", "words", "limit", "source")


def existing(out: Path, wanted: dict[str, Any]) -> CorpusInfo | None:
    """The corpus that a folder holds, if it is the wanted one; nothing if it holds none.

    Raises:
        BuildError: it holds another.

    """
    if not (out / INFO).is_file():
        return None
    info = read_info(out)
    for name in _IDENTITY:
        found, asked = getattr(info, name), wanted[name]
        if found != asked if name != "source" else not _is_same(found, asked):
            message = f"holds a corpus whose {name} is {_words(found)}, not {_words(asked)}"
            raise BuildError(f"--out {out}: {message}; give another folder, or remove this one")
    return info


def _is_same(found: SourceInfo, asked: SourceInfo) -> bool:
    """Whether two sources have the same bytes, whatever they are called; without a hash nobody can tell."""
    return bool(found.sha256) and (found.format, found.sha256) == (asked.format, asked.sha256)


def _words(value: object) -> str:
    """A value of `corpus.json` as a message shows it."""
    if not isinstance(value, SourceInfo):
        return str(value)
    return f"{value.name} ({value.format}, sha256 {value.sha256[:12]}…)" if value.sha256 else "one without a hash"


def check_place(out: Path) -> None:
    """Refuse a folder that holds what is no corpus, nor an interrupted build of one."""
    if out.exists() and not out.is_dir():
        raise BuildError(f"--out {out}: is a file; give a folder")
    if out.is_dir() and not ((out / INFO).is_file() or (out / _WORK).is_dir()) and any(out.iterdir()):
        raise BuildError(f"--out {out}: is not empty and no corpus; give an empty or a new folder")


def open_place(out: Path) -> Path:
    """Make the working folder inside the folder to write."""
    check_place(out)
    try:
        (out / _WORK).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise BuildError(f"--out {out}: cannot be written: {error.strerror}") from error
    return out / _WORK


def clear(out: Path) -> None:
    """Remove what an interrupted build left; the claim is held."""
    left = [out / name for name in (PASSAGES, INDEX, REJECTS)]
    for path in [*left, *(path for path in (out / _WORK).iterdir() if path.name != CLAIM)]:
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)


def leave_nothing(out: Path, *, is_new: bool) -> None:
    """Undo a build that failed."""
    shutil.rmtree(out / _WORK, ignore_errors=True)
    if is_new:
        with suppress(OSError):
            out.rmdir()
