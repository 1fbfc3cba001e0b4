"""Exports a selection of a release to a target: finds the target, checks everything first, and lets the folder appear
whole or not at all.
"""

import inspect
import os
import shutil
import socket
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from importlib.metadata import EntryPoint
from pathlib import Path

from mmlongbench.errors import MMLongBenchError, PluginError, ReleaseError, nearest
from mmlongbench.exports.target import Export, Exported, Target
from mmlongbench.io.files import TEMPORARY
from mmlongbench.io.progress import Progress
from mmlongbench.manifest.plugins import points_of
from mmlongbench.release.layout import IMAGES
from mmlongbench.release.release import Release
from mmlongbench.release.selection import Cell, Selection, counted, examples_of, select

GROUP = "mmlongbench.exports"
"""The group of entry points of targets; the built-in ones are found in the same way as others."""


@dataclass(frozen=True, slots=True)
class InstalledTarget:
    """A target that is installed."""

    name: str
    origin: str
    """The distribution that it belongs to."""
    summary: str = ""
    problem: str = ""
    """Why it cannot be used; empty if it can."""


def target_named(name: str) -> Target:
    """Return a target; a `PluginError` if none has this name, two have it, or it is broken."""
    points = points_of(GROUP)
    found = {(point.value, _origin(point)): point for point in points.select(name=name)}
    if not found:
        names = sorted({point.name for point in points})
        raise PluginError(
            f"no export target {name!r} is installed (there are: {', '.join(names)}){nearest(name, names)}"
        )
    if len(found) > 1:
        origins = " and ".join(sorted(f"{value} of {origin}" for value, origin in found))
        raise PluginError(f"two export targets are called {name!r}: {origins}; uninstall one")
    ((value, origin), point) = next(iter(found.items()))
    broken = f"export target {name!r} ({value} of {origin}) is broken: "
    try:
        loaded = point.load()
    except (Exception, SystemExit) as error:  # the module of a plug-in may fail in any way; the cause is kept
        raise PluginError(f"{broken}{type(error).__name__}: {' '.join(str(error).split())}") from error
    if not (isinstance(loaded, type) and issubclass(loaded, Target)):
        raise PluginError(f"{broken}{loaded!r} is not a subclass of {Target.__module__}.Target")
    if missing := sorted(loaded.__abstractmethods__):
        raise PluginError(f"{broken}{loaded!r} lacks {', '.join(missing)}, which a target needs")
    if not isinstance(inspect.getattr_static(loaded, "summary", None), str):
        raise PluginError(f"{broken}{loaded!r} lacks summary, a text that says what the target is")
    try:
        return loaded()
    except Exception as error:  # the constructor of a plug-in may fail in any way
        raise PluginError(f"{broken}it cannot be made: {type(error).__name__}: {error}") from error


def _origin(point: EntryPoint) -> str:
    return point.dist.name if point.dist else "an unnamed distribution"


def installed_targets() -> list[InstalledTarget]:
    """Return every target, after trying to load it; the `problem` of a broken one says what is wrong."""
    targets = []
    for point in sorted(points_of(GROUP), key=lambda point: (point.name, point.value)):
        try:
            targets.append(InstalledTarget(point.name, _origin(point), target_named(point.name).summary))
        except PluginError as error:
            targets.append(InstalledTarget(point.name, _origin(point), problem=str(error)))
    return targets


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


def export(
    release: Release,
    selection: Selection,
    target: str,
    out: Path,
    choices: Choices | None = None,
    progress: Progress | None = None,
) -> Exported:
    """Write the chosen examples of a release into a folder, in the form of a target (see `mmlongbench.export`)."""
    return export_cells(release, select(release, selection), target, out, choices, progress=progress)


def export_cells(
    release: Release,
    cells: Sequence[Cell],
    target: str,
    out: Path,
    choices: Choices | None = None,
    finish: Callable[[Path, Exported], None] | None = None,
    progress: Progress | None = None,
) -> Exported:
    """Write the examples of cells into a folder, in the form of a target (see `export`).

    `finish` may check what the target wrote, and write more files into the folder before it appears.
    """
    chosen, shown = choices or Choices(), progress or Progress(False)
    writer, folder, form = check_choices(release, target, out, chosen)
    _check_examples(release, cells, shown)
    with appearing(folder) as temporary, counted(cells, shown, "export: examples written") as counted_cells:
        what = Export(release, tuple(counted_cells), temporary, chosen.model, chosen.images, chosen.max_tokens, form)
        try:
            written = writer.write(what)
        except (MMLongBenchError, OSError, MemoryError):
            raise
        except Exception as error:  # the code of a plug-in may fail in any way
            said = " ".join(str(error).split())[:300]
            raise PluginError(f"export target {target!r}: write: {type(error).__name__}: {said}") from error
        if not isinstance(written, Exported):
            name = type(written).__name__
            raise PluginError(f"export target {target!r}: write returned a {name}, expected an Exported")
        if finish:
            finish(temporary, written)
        files = [Path(root, name) for root, _, names in os.walk(temporary) for name in names]
        own = [file for file in files if not file.is_symlink()]
        for file in own:  # on the disk before the folder gets its name
            with file.open("rb") as opened:
                os.fsync(opened.fileno())
        size = sum(file.stat().st_size for file in own if file.stat().st_nlink == 1)
    return replace(written, files=len(files), bytes=size)


def check_choices(release: Release, target: str, out: Path, choices: Choices | None = None) -> tuple[Target, Path, str]:
    """Return the target, the folder to write and the form of the lines. Nothing of the examples is read.

    Raises:
        PluginError: the target is not installed, or is broken.
        ReleaseError: the folder cannot be used, or a choice does not fit the target.

    """
    writer, chosen = target_named(target), choices or Choices()
    if chosen.max_tokens is not None and (type(chosen.max_tokens) is not int or chosen.max_tokens < 1):
        raise ReleaseError(f"max_tokens {chosen.max_tokens!r}: expected a whole number, at least 1")
    if chosen.images:
        release.image_urls(chosen.images)  # refuses a form that does not exist
    writer.check(chosen.images, chosen.model, chosen.max_tokens)
    folder, form, forms = checked_folder(out, release.path), chosen.form, writer.forms
    if form and form not in forms:
        offered = f"expected {', '.join(forms)}" if forms else "it has only one form; leave it out"
        raise ReleaseError(f"--format {form}: the target {target}: {offered}{nearest(form, forms)}")
    return writer, folder, form or next(iter(forms), "")


def checked_folder(out: Path, release: Path, option: str = "--out") -> Path:
    """Return the folder to write, with all links followed; a `ReleaseError` if it is not new or empty, or lies inside
    the release.
    """
    try:
        folder = out.resolve()
        if folder.exists() and not folder.is_dir():
            raise ReleaseError(f"{option} {out}: is a file; give a folder that is new or empty")
        if folder.is_dir() and next(folder.iterdir(), None) is not None:
            raise ReleaseError(f"{option} {out}: the folder is not empty; give a new one, or empty it first")
    except (OSError, ValueError, RuntimeError) as error:
        raise ReleaseError(f"{option} {str(out)!r:.200}: cannot be used: {error}") from error
    if folder.is_relative_to(release.resolve()):
        raise ReleaseError(f"{option} {out}: lies inside the release {release}; give a folder outside of it")
    return folder


def _check_examples(release: Release, cells: Sequence[Cell], progress: Progress) -> None:
    """Check that there are examples, and that each of their images is there with the size that the lock says."""
    seen: set[str] = set()
    path, is_empty = release.image_urls("path"), True
    for example in examples_of(cells, progress, "export: examples checked"):
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
        raise ReleaseError(f"{release.path.name}: no example is chosen; choose other datasets or lengths")


@contextmanager
def appearing(folder: Path) -> Iterator[Path]:
    """Yield a temporary folder beside `folder`, which is renamed to it if the block ends without an error."""
    start, end = f"{TEMPORARY}{socket.gethostname()}-", f"-{folder.name}"
    temporary = folder.with_name(f"{start}{os.getpid()}{end}"[:200])
    folder.parent.mkdir(parents=True, exist_ok=True)
    for path in folder.parent.glob(f"{TEMPORARY}*"):  # what killed exports into the same folder left on this machine
        process = path.name.removeprefix(start).removesuffix(end)
        if path.name == f"{start}{process}{end}" and process.isdecimal() and not _runs(int(process)):
            shutil.rmtree(path, ignore_errors=True)
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


def _runs(process: int) -> bool:
    """Return whether another process with this id runs."""
    try:
        os.kill(process, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        return True
    return process != os.getpid()
