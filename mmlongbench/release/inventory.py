"""The inventory: checks that every file of the lock is there unchanged, and that there are no other files."""

from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from mmlongbench.io.files import TEMPORARY, sha256_of
from mmlongbench.io.progress import Progress
from mmlongbench.release.findings import FileAudit
from mmlongbench.release.layout import CLAIMS, DATA, IMAGES, ITEMS, LOCK, REJECTS, TOMBSTONES
from mmlongbench.release.lock import Lock

OTHER_BYTES = "the bytes are not those of the lock"
_UNFINISHED = (TEMPORARY, ".build")
"""How the names of incomplete files, and of the working folder of a build, begin."""


def files_below(root: Path) -> Iterator[Path]:
    """Yield every file in the folder `root`, or `root` itself if it is a file."""
    return (path for path in entries_below(root) if path.is_file())


def entries_below(root: Path) -> Iterator[Path]:
    """Yield everything that is not a folder: files, links to folders, devices; or `root` itself if it is not a
    folder.
    """
    return (path for path in (root, *root.rglob("*")) if not path.is_dir() or (path.is_symlink() and path != root))


def names_there(release: Path) -> Iterator[str]:
    """Yield the paths of all files of a release, except the lock, files of claims (`CLAIMS`) and `TOMBSTONES`; a link
    to a folder is followed only if it is `mmlb_data`, `mmlb_image` or `items` itself.
    """
    for top in release.iterdir():
        is_part = top.name in (DATA, IMAGES, ITEMS)
        for path in entries_below(top) if is_part or not top.is_symlink() else (top,):
            if path not in (release / LOCK, release / TOMBSTONES) and not (
                top.name == DATA and path.name.endswith(CLAIMS)
            ):
                yield path.relative_to(release).as_posix()


def inventory(release: Path, lock: Lock) -> dict[str, str | None]:
    """Return every file that is in the lock or on disk, sorted by path, with its SHA-256 in the lock; None if the lock
    does not have the file.
    """
    listed = {path: file.sha256 for path, file in lock.files.items()}
    return {path: listed.get(path) for path in sorted({*listed, *names_there(release)})}


def audit_others(release: Path, lock: Lock, progress: Progress, shown: frozenset[str] | None = None) -> list[FileAudit]:
    """Return what is wrong outside `mmlb_data/`: one entry for each folder or file at the top that has a problem.

    `shown` are the images that prompts show; None if this is not known for all prompts.
    """
    files = inventory(release, lock)
    parts = {path: path.split("/")[0] for path in files}
    asked = [path for path in files if parts[path] != DATA]
    found: dict[str, FileAudit] = {}
    with progress.bar("audit: files", len(asked)) as advance:
        for path in asked:
            is_ours = files[path] is not None or parts[path] in (IMAGES, ITEMS, REJECTS)
            size = lock.files[path].bytes if path in lock.files else None
            if is_ours and (problem := problem_of(release, path, files[path], size)):
                found.setdefault(parts[path], FileAudit(parts[path], 0)).problem(problem, path)
            elif parts[path] == IMAGES and shown is not None and path.removeprefix(f"{IMAGES}/") not in shown:
                found.setdefault(IMAGES, FileAudit(IMAGES, 0)).problem("no example shows the image", path)
            advance()
    return list(found.values())


def problem_of(release: Path, name: str, sha256: str | None, size: int | None = None) -> str | None:
    """Return why a file of the inventory is not the file of the lock; None if it is. A file of another size than
    `size` is not read.
    """
    if sha256 is None:
        is_temporary = any(part.startswith(_UNFINISHED) for part in name.split("/"))
        return "temporary file is left" if is_temporary else "file is not in the lock"
    if ".." in (pure := PurePosixPath(name)).parts or pure.is_absolute():
        return "the path leaves the release"
    path = release / name
    try:
        if not path.is_file():  # reading a pipe might never end
            return "is no file" if path.exists() else "missing file"
        if leads_out(release, name):
            return "is a link out of the release"
        if size is not None and path.stat().st_size != size:
            return OTHER_BYTES
        return None if sha256_of(path) == sha256 else OTHER_BYTES
    except OSError:
        return "the file cannot be read"


def is_release_path(name: str) -> bool:
    """Return whether a name in a lock can be that of a file of a release, below its folder."""
    pure = PurePosixPath(name)
    is_inside = ".." not in pure.parts and not pure.is_absolute() and "\\" not in name and "\0" not in name
    return is_inside and (name == REJECTS or (len(pure.parts) > 1 and pure.parts[0] in (DATA, IMAGES, ITEMS)))


def leads_out(release: Path, name: str) -> bool:
    """Return whether a file is a link that leads out of its top folder; the top folders may be links themselves."""
    top, *rest = PurePosixPath(name).parts
    root = (release / top).resolve() if rest else release.resolve()
    return not (release / name).resolve().is_relative_to(root)
