"""The inventory: every file of the lock that is no public one stands there unchanged, and no other beside it."""

from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Any

from mmlongbench.files import sha256_of
from mmlongbench.progress import Progress
from mmlongbench.release.findings import FileAudit
from mmlongbench.release.layout import DATA, IMAGES, ITEMS, REJECTS


def files_below(root: Path) -> Iterator[Path]:
    """Every file of a folder, or the file itself."""
    return (path for path in (root, *root.rglob("*")) if path.is_file())


def audit_others(release: Path, lock: dict[str, Any], progress: Progress) -> list[FileAudit]:
    """What is wrong with images, items and rejects: one finding for each of these that has a problem."""
    listed = {path: file["sha256"] for path, file in lock["files"].items() if not path.startswith(f"{DATA}/")}
    roots = (release / part for part in (IMAGES, ITEMS, REJECTS))
    there = {path.relative_to(release).as_posix() for root in roots for path in files_below(root)}
    found: dict[str, FileAudit] = {}
    with progress.bar("audit: files", len(listed.keys() | there)) as advance:
        for path in sorted(listed.keys() | there):
            if problem := _problem(release / path, listed.get(path)):
                part = PurePosixPath(path).parts[0]
                found.setdefault(part, FileAudit(part, 0)).problem(problem, path)
            advance()
    return list(found.values())


def _problem(path: Path, sha256: str | None) -> str | None:
    if sha256 is None:
        return "file is not in the lock"
    try:
        return None if sha256_of(path) == sha256 else "the bytes are not those of the lock"
    except FileNotFoundError:
        return "missing file"
    except OSError:
        return "the file cannot be read"
