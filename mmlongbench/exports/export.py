"""Exports a selection of a release to a target: checks everything first, and lets the folder appear whole or not at
all.
"""

import os
import shutil
import socket
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path

from mmlongbench.errors import MMLongBenchError, PluginError, ReleaseError, nearest
from mmlongbench.exports.registry import target_named
from mmlongbench.exports.target import Export, Exported, Target
from mmlongbench.io.files import TEMPORARY
from mmlongbench.release.layout import IMAGES
from mmlongbench.release.release import Release
from mmlongbench.release.selection import Cell, Selection, select


@dataclass(frozen=True, slots=True)
class Choices:
    """How a target writes examples; the fields are those of `Export`."""

    images: str = ""
    """How images are given: path, file-url, data-uri, or the URL at which mmlb_image/ is served; empty: as the target
    prefers."""
    model: str = ""
    """The name of the model, which requests contain."""
    max_tokens: int | None = None
    """The maximum number of tokens of an answer; by default what the release keeps free."""
    form: str = ""
    """The form of the lines, for the target training."""


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
    return export_cells(release, select(release, selection), target, out, choices)


def export_cells(
    release: Release,
    cells: Sequence[Cell],
    target: str,
    out: Path,
    choices: Choices | None = None,
    finish: Callable[[Path, Exported], None] | None = None,
) -> Exported:
    """Write the examples of cells into a folder, in the form of a target (see `export`).

    `finish` may check what the target wrote, and write more files into the folder before it appears.
    """
    chosen = choices or Choices()
    writer, folder, form = _ready(release, target, out, chosen)
    _check_examples(release, cells)
    with appearing(folder) as temporary:
        made = Export(release, tuple(cells), temporary, chosen.model, chosen.images, chosen.max_tokens, form)
        written = _written(writer, made, target)
        if finish:
            finish(temporary, written)
        files = [Path(root, name) for root, _, names in os.walk(temporary) for name in names]
        own = [file for file in files if not file.is_symlink()]
        _sync(own)
        size = sum(file.stat().st_size for file in own if file.stat().st_nlink == 1)
    return replace(written, files=len(files), bytes=size)


def check_choices(release: Release, target: str, out: Path, choices: Choices | None = None) -> None:
    """Check the target, the folder and the choices of an export, before long work is done for it.

    Raises:
        PluginError: the target is not installed, or is broken.
        ReleaseError: the folder cannot be used, or a choice does not fit the target.

    """
    _ready(release, target, out, choices or Choices())


def _ready(release: Release, target: str, out: Path, choices: Choices) -> tuple[Target, Path, str]:
    """Return the target, the folder to write, and the form of the lines."""
    writer = target_named(target)
    if choices.max_tokens is not None and (type(choices.max_tokens) is not int or choices.max_tokens < 1):
        raise ReleaseError(f"max_tokens {choices.max_tokens!r}: expected a whole number, at least 1")
    if choices.images:
        release.image_urls(choices.images)  # refuses a form that does not exist
    return writer, checked_folder(out, release.path), _form(writer, target, choices.form)


def _form(target: Target, name: str, form: str) -> str:
    """Return the form of the lines: the chosen one, or the target's first."""
    if form and form not in target.forms:
        offered = f"expected {', '.join(target.forms)}" if target.forms else "it has only one form; leave it out"
        raise ReleaseError(f"--format {form}: the target {name}: {offered}{nearest(form, target.forms)}")
    return form or next(iter(target.forms), "")


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


def checked_folder(out: Path, release: Path) -> Path:
    """Return the folder to write, with all links followed.

    Raises:
        ReleaseError: it is not new or empty, or lies inside the release.

    """
    try:
        folder = out.resolve()
        if folder.exists() and not folder.is_dir():
            raise ReleaseError(f"--out {out}: is a file; give a folder that is new or empty")
        if folder.is_dir() and next(folder.iterdir(), None) is not None:
            raise ReleaseError(f"--out {out}: the folder is not empty; give a new one, or empty it first")
    except (OSError, ValueError, RuntimeError) as error:
        raise ReleaseError(f"--out {str(out)!r:.200}: cannot be used: {error}") from error
    if folder.is_relative_to(release.resolve()):
        raise ReleaseError(f"--out {out}: lies inside the release {release}; give a folder outside of it")
    return folder


def _check_examples(release: Release, cells: Sequence[Cell]) -> None:
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
