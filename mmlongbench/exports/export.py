"""Exports a selection of a release to a target: checks everything first, and lets the folder appear whole or not at
all.
"""

import os
import shutil
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path

from mmlongbench.errors import MMLongBenchError, PluginError, ReleaseError
from mmlongbench.exports.registry import target_named
from mmlongbench.exports.target import Export, Exported, Target
from mmlongbench.io.atomic import TEMPORARY
from mmlongbench.release.layout import IMAGES
from mmlongbench.release.opened import Release
from mmlongbench.release.selecting import Cell, Selection, select


@dataclass(frozen=True, slots=True)
class Choices:
    """How a target writes examples; the fields are those of `Export`."""

    images: str = ""
    model: str = ""
    max_tokens: int | None = None


def export(release: Release, selection: Selection, target: str, out: Path, choices: Choices | None = None) -> Exported:
    """Write the chosen examples of a release into a folder, in the form of a target.

    Args:
        release: the release.
        selection: which of its examples are meant.
        target: the name of an installed target.
        out: the folder, which is new or empty.
        choices: how the target writes.

    Raises:
        PluginError: the target is not installed, or is broken.
        ReleaseError: the folder cannot be used, an image is missing, nothing is chosen, or a choice does not fit the
            target.

    """
    chosen = choices or Choices()
    writer = target_named(target)
    if chosen.max_tokens is not None and (type(chosen.max_tokens) is not int or chosen.max_tokens < 1):
        raise ReleaseError(f"max_tokens {chosen.max_tokens!r}: expected a whole number, at least 1")
    if chosen.images:
        release.image_urls(chosen.images)  # refuses a form that does not exist
    folder = checked_folder(out, release)
    cells = tuple(select(release, selection))
    _check_examples(release, cells)
    with appearing(folder) as temporary:
        made = Export(release, cells, temporary, chosen.model, chosen.images, chosen.max_tokens)
        written = _written(writer, made, target)
        files = [Path(root, name) for root, _, names in os.walk(temporary) for name in names]
        own = [file for file in files if not file.is_symlink()]
        _sync(own)
        size = sum(file.stat().st_size for file in own if file.stat().st_nlink == 1)
    return replace(written, files=len(files), bytes=size)


def _written(target: Target, export: Export, name: str) -> Exported:
    """Let a target write; an error of its code names the target."""
    try:
        written = target.write(export)
    except (MMLongBenchError, OSError, MemoryError):
        raise
    except Exception as error:  # the code of a plug-in may fail in any way
        said = " ".join(str(error).split())[:300]
        raise PluginError(f"export target {name!r}: write: {type(error).__name__}: {said}") from error
    if not isinstance(written, Exported):
        raise PluginError(f"export target {name!r}: write returned a {type(written).__name__}, expected an Exported")
    return written


def checked_folder(out: Path, release: Release) -> Path:
    """Return the folder to write, with all links followed."""
    try:
        folder = out.resolve()
        if folder.exists() and not folder.is_dir():
            raise ReleaseError(f"--out {out}: is a file; give a folder that is new or empty")
        if folder.is_dir() and next(folder.iterdir(), None) is not None:
            raise ReleaseError(f"--out {out}: the folder is not empty; give a new one, or empty it first")
    except (OSError, ValueError, RuntimeError) as error:
        raise ReleaseError(f"--out {str(out)!r:.200}: cannot be used: {error}") from error
    if folder.is_relative_to(release.path.resolve()):
        raise ReleaseError(f"--out {out}: lies inside the release {release.path}; give a folder outside of it")
    return folder


def _check_examples(release: Release, cells: tuple[Cell, ...]) -> None:
    """Check that there are examples, and that each of their images is there with the size that the lock says."""
    seen: set[str] = set()
    path, is_empty = release.image_urls("path"), True
    for example in (example for cell in cells for example in cell.examples()):
        is_empty = False
        for image in example.prompt.images:
            if image in seen:
                continue
            seen.add(image)
            size, locked = Path(path(image)).stat().st_size, release.lock.files.get(f"{IMAGES}/{image}")
            if locked is None:
                raise ReleaseError(f"{example.file}, {example.id}: image {image!r}: is not in the lock")
            if locked.bytes != size:
                raise ReleaseError(
                    f"{example.file}, {example.id}: image {image!r}: has {size:,} bytes, the lock says "
                    f"{locked.bytes:,}; see `mmlongbench verify`"
                )
    if is_empty:
        raise ReleaseError(f"{release.path.name}: no example is chosen")


@contextmanager
def appearing(folder: Path) -> Iterator[Path]:
    """Yield a temporary folder beside `folder`, which is renamed to it if the block ends without an error."""
    temporary = folder.with_name(f"{TEMPORARY}{socket.gethostname()}-{os.getpid()}-{folder.name}"[:200])
    folder.parent.mkdir(parents=True, exist_ok=True)
    _sweep(folder)
    temporary.mkdir()
    try:
        yield temporary
        try:
            temporary.replace(folder)
        except OSError as error:
            raise ReleaseError(f"{folder}: another command wrote into it meanwhile; nothing was changed") from error
    finally:
        with suppress(OSError):
            shutil.rmtree(temporary, ignore_errors=True)


def _sweep(folder: Path) -> None:
    """Remove what killed exports into the same folder left on this machine."""
    start, end = f"{TEMPORARY}{socket.gethostname()}-", f"-{folder.name}"
    for path in folder.parent.glob(f"{TEMPORARY}*"):
        process = path.name.removeprefix(start).removesuffix(end)
        if path.name == f"{start}{process}{end}" and process.isdecimal() and not _runs(int(process)):
            shutil.rmtree(path, ignore_errors=True)


def _runs(process: int) -> bool:
    """Return whether another process with this id runs."""
    try:
        os.kill(process, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        return True
    return process != os.getpid()


def _sync(files: list[Path]) -> None:
    """Make sure that the files are on the disk before they get their names."""
    for file in files:
        with file.open("rb") as opened:
            os.fsync(opened.fileno())
