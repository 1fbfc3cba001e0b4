"""Finds files of a release that are not as they were made: before the lock is written, and before a finished release is
extended.
"""

import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path

from mmlongbench.building import lines
from mmlongbench.building.build_dir import BuildDir, Shard
from mmlongbench.building.build_plan import DatasetPlan
from mmlongbench.building.executors.executor import Executor
from mmlongbench.building.lines import WrittenCell
from mmlongbench.building.session import Session
from mmlongbench.building.source_files import Hashed, hash_files
from mmlongbench.building.stages.cells import cell_shards
from mmlongbench.building.stages.images import image_shards
from mmlongbench.errors import BuildError
from mmlongbench.release.layout import IMAGES
from mmlongbench.release.lock import LockedFile


def written_cell(build_dir: BuildDir, shard: Shard) -> WrittenCell:
    """Return what a shard of the cells stage has written."""
    return build_dir.only(shard, lines.CELLS, WrittenCell)


def check_made(
    plans: Sequence[DatasetPlan], session: Session, files: Mapping[str, LockedFile], executor: Executor
) -> None:
    """Make sure that every file of the release is as its shard has made it.

    If a file was changed or is missing, the file and the result of its shard are removed, so that both are made again.
    Files that other machines have uploaded to a URL are not on this machine and are not compared.

    Raises:
        BuildError: a file was changed or is missing; the error names it.

    """
    build_dir = session.build_dir
    here = [path for path in files if executor.has_all_files or (build_dir.out / path).exists()]
    with executor.progress.bar("finish: files compared", len(here)) as advance:
        found = dict(hash_files([build_dir.file(path) for path in here], advance))
    changed = [path for path in here if not _is_same(found[build_dir.file(path)], files[path])]
    if not changed:
        return
    if session.released:
        taken = session.released.lock.files
        if old := [path for path in changed if taken.get(path) == files[path] and not (build_dir.out / path).exists()]:
            raise _changed(session.released.out, old[0])
    gone = set(changed)
    for name in (plan.spec.name for plan in plans):
        made = [(path, shard) for shard in cell_shards(session, name) for path in written_cell(build_dir, shard).files]
        for shard in image_shards(session, name):
            made += [(f"{IMAGES}/{line.path}", shard) for line in build_dir.read(shard, lines.IMAGES)]
        for path, shard in made:
            if path in gone:
                (build_dir.out / path).unlink(missing_ok=True)
                build_dir.discard(shard)
    more = f", and {len(changed) - 1:,} more files" if len(changed) > 1 else ""
    raise BuildError(
        f"{build_dir.out / changed[0]}: is missing or not as this build made it{more}; run the command again "
        "to make it again"
    )


def refuse_changed(files: Mapping[str, LockedFile], out: Path) -> None:
    """Refuse a finished release with a file whose content is not what the lock says.

    Raises:
        BuildError: the error names the first such file.

    """
    for path, found in hash_files([out / name for name in files], lambda: None):
        name = path.relative_to(out).as_posix()
        if not _is_same(found, files[name]):
            raise _changed(out, name)


def _changed(out: Path, name: str) -> BuildError:
    return BuildError(
        f"--out {out}: the release is damaged: {name}: its content is not what the lock says; put the file back, or "
        "build into another folder"
    )


def refuse_damage(files: Mapping[str, LockedFile], out: Path) -> None:
    """Refuse a finished release with a file that is missing or has another size than the lock says.

    Raises:
        BuildError: the error names the first such file.

    """
    for name, described in files.items():
        size = (out / name).stat().st_size if (out / name).is_file() else None
        if size != described.bytes:
            found = "it is missing" if size is None else f"it has {size} bytes"
            raise BuildError(
                f"--out {out}: the release is damaged: {name}: expected {described.bytes} bytes, {found}; "
                "put the file back, or remove the folder and build again "
                f"(`mmlongbench audit {shlex.quote(str(out))}` lists all)"
            )


def _is_same(found: Hashed | OSError, made: LockedFile) -> bool:
    return isinstance(found, Hashed) and found.sha256 == made.sha256
