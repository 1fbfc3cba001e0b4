"""Lets a reader write parts of its sources as files, once for the same sources (`Reader.extract`)."""

import json
import shutil
from collections.abc import Mapping
from pathlib import Path

from mmlongbench.building.build_dir import BuildDir
from mmlongbench.building.fingerprints import files_of
from mmlongbench.building.source_files import stamp_of
from mmlongbench.errors import BuildError
from mmlongbench.io.files import write_whole
from mmlongbench.io.progress import Progress
from mmlongbench.manifest.binding import broken, calling
from mmlongbench.manifest.model import DatasetSpec
from mmlongbench.release.lock import versions
from mmlongbench.task.reader import Reader
from mmlongbench.task.rows import Row


def extract_sources(
    spec: DatasetSpec, reader: Reader[Row], sources: Mapping[str, Path], build_dir: BuildDir, progress: Progress
) -> dict[str, Path]:
    """Return the sources of a dataset together with what the reader extracts from them, by name.

    What an earlier plan extracted is used again if a description of the sources and of the software, which is saved
    beside it, is still true. A killed process leaves no description, so its files are written again.

    Raises:
        BuildError: the folder of the build cannot be written.

    """
    if type(reader).extract is Reader.extract:
        return dict(sources)
    folder = build_dir.extracted(spec.name)
    description = folder.with_name(f"{folder.name}.json")
    now = _described(spec, sources)
    if _saved(description) != now:
        description.unlink(missing_ok=True)
        _extract(spec, reader, sources, folder, progress)
        write_whole(description, [now])
    found = {path.name: path for path in sorted(folder.iterdir())} if folder.is_dir() else {}
    if twice := next((name for name in found if name in sources), None):
        fault = f"wrote {twice!r}, which is the name of another source; use another name"
        raise broken("reader", spec.reader, "extract()", fault)
    return {**sources, **found}


def _extract(
    spec: DatasetSpec, reader: Reader[Row], sources: Mapping[str, Path], folder: Path, progress: Progress
) -> None:
    try:
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        with progress.bar(f"{spec.name}: files in its sources written out", 1) as advance:
            with calling("reader", spec.reader, "extract()"):
                reader.extract(sources, folder)
            advance()
    except OSError as error:
        raise BuildError(
            f"dataset {spec.name!r}: {folder}: files of its sources cannot be written there: "
            f"{error.strerror or error}; make room, and run the same command to continue"
        ) from error


def _described(spec: DatasetSpec, sources: Mapping[str, Path]) -> bytes:
    """Return a description of everything that decides what is extracted: the software, and a stamp of each file."""
    files = {name: [[str(file), *stamp_of(file)] for file in files_of(path)] for name, path in sources.items()}
    return json.dumps([versions(), spec.reader, files], ensure_ascii=False).encode("utf-8", "surrogateescape")


def _saved(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""
