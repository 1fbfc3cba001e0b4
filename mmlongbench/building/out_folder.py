"""The folder of a release while something is built in it: who may use it, what is discarded from it."""

import errno
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from mmlongbench.building.build_dir import BuildDir
from mmlongbench.building.build_plan import DatasetPlan
from mmlongbench.building.source_files import SOURCE_FILES
from mmlongbench.building.stages.documents import OCR_TEXTS
from mmlongbench.errors import BuildError, MMLongBenchError
from mmlongbench.io.files import TEMPORARY, file_lock
from mmlongbench.release.layout import DATA, IMAGES, ITEMS, LOCK, REJECTS

_EXPENSIVE = ("negatives", "records", "images", "cells")
"""The stages whose results are not discarded without being asked."""
_CLAIMS = "claims"
_WITHOUT_PLAN = {_CLAIMS, "sample", "extracted", "corpus", "cache", "code", "opened", SOURCE_FILES}
"""What the working folder may have of a build that stopped before it saved a plan."""


@contextmanager
def locked(out: Path) -> Iterator[BuildDir]:
    """Make the folder of a release, and hold its lock while a release is built in it. A build that fails before it
    saves a plan removes the folders that it made, unless something in them takes long to make again
    (`would_be_lost`), or an extension is there. A folder with other content, or with links, is refused.
    """
    out = resolved(out)
    build_dir = BuildDir(out)
    root = build_dir.root
    try:
        new = [folder for folder in (root, out, *out.parents) if not folder.exists()]
        if out.exists() and not out.is_dir():
            raise BuildError(f"--out {out}: is a file; give a folder instead")
        if out.is_dir() and not ((out / LOCK).is_file() or build_dir.holds_work):
            begun = {path.name for path in root.glob("*") if not path.name.startswith(TEMPORARY)}
            if not ({*out.iterdir()} <= {root} and begun <= _WITHOUT_PLAN):
                raise BuildError(
                    f"--out {out}: is not empty and holds no build of mmlongbench; give an empty or a new folder"
                )
        refuse_links(build_dir)
        root.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise BuildError(f"--out {out}: cannot be written: {error.strerror}") from error
    with file_lock(root / _CLAIMS / "build", f"the release {out}"):
        try:
            yield build_dir
        except (MMLongBenchError, OSError):
            is_kept = build_dir.holds_work or would_be_lost(build_dir, {}) or build_dir.extension.root.is_dir()
            if root in new and not is_kept:
                shutil.rmtree(root, ignore_errors=True)
                with suppress(OSError):  # stop at the first folder that is not empty
                    for folder in new[1:]:
                        folder.rmdir()
            raise


def refuse_links(build_dir: BuildDir) -> None:
    """Refuse a working folder that is a link, or has links directly in it: what is discarded there would be elsewhere.
    The `BuildError` names the link.
    """
    root = build_dir.root
    for path in (root, *(root.iterdir() if root.is_dir() and not root.is_symlink() else ())):
        if path.is_symlink():
            raise BuildError(f"--out {build_dir.out}: {path} is a link; remove it, and run the command again")


def refuse_moving(build_dir: BuildDir) -> None:
    """Raise a `BuildError` for a folder in which an extension is being moved to its place; what `build` does first is
    to complete that.
    """
    if build_dir.is_moving:
        raise BuildError(
            f"--out {build_dir.out}: its release was being extended when the build was stopped; run the same `build` "
            "command without --stage to complete it"
        )


def resolved(out: Path) -> Path:
    """Return the folder that a path leads to, with links followed; a loop of links is a `BuildError`."""
    try:
        return out.resolve()
    except (RuntimeError, OSError) as error:  # Python 3.11 raises RuntimeError, later versions OSError
        if isinstance(error, OSError) and error.errno != errno.ELOOP:
            raise
        raise BuildError(f"--out {out}: is a loop of symbolic links; give a folder") from error


def has_expensive_results(build_dir: BuildDir, before: dict[str, DatasetPlan]) -> bool:
    """Return whether an unfinished build has made something that takes long to make again.

    Page sizes, rows and the choice of questions are cheap. Hard negatives, records, images and files are expensive, and
    so are the texts of scanned documents that are read by OCR. The texts of all pages (`pages.ocr: all`), corpora and
    caches are expensive too, but a build that starts again keeps them.
    """
    scanned = (f"documents/{name}" for name, plan in before.items() if plan.spec.pages.ocr is True)
    return any(_has_results(build_dir, stage) for stage in (*_EXPENSIVE, *scanned))


def would_be_lost(build_dir: BuildDir, before: dict[str, DatasetPlan]) -> bool:
    """Return whether something that takes long to make again is lost if the folder of an unfinished build is removed:
    its expensive results, corpora, unpacked or downloaded sources, or texts that OCR has read.
    """
    has_kept = build_dir.corpora.is_dir() or build_dir.opened.is_dir() or _has_results(build_dir, OCR_TEXTS)
    return has_kept or has_expensive_results(build_dir, before)


def _has_results(build_dir: BuildDir, below: str) -> bool:
    return next((build_dir.root / below).rglob("*.jsonl"), None) is not None


def discard_made(out: Path) -> None:
    """Remove the files of the release that an unfinished build has made, so that another one can be built there."""
    refuse_moving(BuildDir(out))
    for folder in (DATA, IMAGES, ITEMS):
        shutil.rmtree(out / folder, ignore_errors=True)
    (out / REJECTS).unlink(missing_ok=True)
