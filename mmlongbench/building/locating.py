"""Finds the sources of a dataset: the manifest says where they are, or they are drawn as a sample. Archives are
unpacked, but the content of the sources is not read otherwise.
"""

import inspect
import json
import shutil
from collections.abc import Mapping
from pathlib import Path

from mmlongbench.building.build_dir import BuildDir
from mmlongbench.building.fingerprints import files_of
from mmlongbench.building.source_files import stamp_of
from mmlongbench.errors import BuildError, ManifestError, nearest
from mmlongbench.io.files import write_whole
from mmlongbench.io.progress import Progress
from mmlongbench.io.sources import OpenedSource, SourceOpener
from mmlongbench.manifest.binding import broken, calling
from mmlongbench.manifest.errata import load_errata
from mmlongbench.manifest.missing import missing_of
from mmlongbench.manifest.model import SAMPLE, DatasetSpec
from mmlongbench.manifest.plugins import GROUPS, is_installed, sample_function
from mmlongbench.manifest.task_files import task_file
from mmlongbench.release.lock import versions
from mmlongbench.task.reader import Reader
from mmlongbench.task.rows import Row

CORPUS = "corpus"
"""The name under which a sample may return articles, in addition to the sources of its reader. In a manifest, the
articles are not under `source`, but under the key `corpus` of the dataset."""


def find_sources(
    spec: DatasetSpec,
    reader: Reader[Row],
    folder: Path,
    drawn: dict[str, dict[str, Path]],
    opener: SourceOpener,
) -> dict[str, OpenedSource]:
    """Return each source of a dataset as a file or a folder of this machine, by the name that the reader gives it.

    If the manifest asks for a sample, it is drawn into `folder`. `drawn` keeps the paths of each sample, by the reader
    and the options that it depends on, so that datasets share it. `opener` unpacks archives and downloads what is
    elsewhere.
    """
    if isinstance(spec.source, str):
        return {name: OpenedSource(path) for name, path in _drawn(spec, reader, folder, drawn).items()}
    optional = reader.optional_sources
    for name in spec.source:
        if name not in (*reader.sources, *optional):
            names = (*reader.sources, *(f"{each} (optional)" for each in optional))
            hint = nearest(name, (*reader.sources, *optional))
            said = f"reader {spec.shown_reader!r} has no source {name!r}; its sources are {', '.join(names)}"
            more = "" if task_file(spec.reader) else f"; `mmlongbench list {spec.reader}` describes them"
            raise ManifestError(f"dataset {spec.name!r}: {said}{hint}{more}")
    if lacking := [name for name in reader.sources if name not in spec.source]:
        raise ManifestError(
            f"dataset {spec.name!r}: source.{lacking[0]} is missing; give it with --set source.{lacking[0]}=PATH"
        )
    if missing := missing_of(spec):
        raise ManifestError(f"dataset {spec.name!r}: {missing}")
    found: dict[str, OpenedSource] = {}
    for name in (*reader.sources, *(name for name in optional if name in spec.source)):
        opened = opener.open(spec.source[name], reader.hub_files, f"source.{name}")
        path, asked = opened.path, f"dataset {spec.name!r}: source.{name}"
        if not path.exists():
            raise ManifestError(f"{asked}: no such file or folder: {path}")
        if not (path.is_file() or path.is_dir()):  # reading a pipe might never end
            raise ManifestError(f"{asked}: expected a file or a folder, found a pipe or a device: {path}")
        found[name] = opened
    return found


def _drawn(spec: DatasetSpec, reader: Reader[Row], folder: Path, drawn: dict[str, dict[str, Path]]) -> dict[str, Path]:
    """Draw the sample of a reader into a folder unless `drawn` has it, and return the paths of its sources."""
    if not is_installed("sample", spec.reader):
        given = ", ".join(f"{name}: PATH" for name in reader.sources)
        raise ManifestError(
            f"dataset {spec.name!r}: source: {SAMPLE}: no sample is installed for reader {spec.shown_reader!r}; name "
            f"its sources, source: {{{given}}}, or install a function that draws one as the entry point "
            f"{spec.shown_reader!r} of the group {GROUPS['sample']!r}"
        )
    draw = sample_function(spec.reader)
    options = {"options": spec.options} if "options" in inspect.signature(draw).parameters else {}
    key = f"{spec.reader} {options}"
    if key not in drawn:
        folder.mkdir(parents=True, exist_ok=True)
        with calling("sample", spec.reader, "draw()"):
            made = draw(folder, **options)
        if fault := _fault_of_drawn(made, reader):
            raise broken("sample", spec.reader, "draw()", fault)
        drawn[key] = dict(made)
    return drawn[key]


def _fault_of_drawn(drawn: object, reader: Reader[Row]) -> str:
    """Return what is wrong with the value that a sample function returned; empty if nothing is."""
    if not isinstance(drawn, Mapping):
        return f"returned a {type(drawn).__name__}, expected the paths of the sources by name"
    names = (*reader.sources, *reader.optional_sources, CORPUS)
    if unknown := [name for name in drawn if name not in names]:
        return f"returned a source {unknown[0]!r}, but the sources of the reader are: {', '.join(names)}"
    if missing := [name for name in reader.sources if name not in drawn]:
        return f"returned no source {missing[0]!r}, which the reader needs"
    for name, path in drawn.items():
        if not isinstance(path, Path):
            return f"source {name!r} is a {type(path).__name__}, expected a Path"
        if not path.exists():
            return f"source {name!r}: no such file or folder: {path}"
    return ""


def refuse_own_output(spec: DatasetSpec, sources: Mapping[str, Path], build_dir: BuildDir) -> None:
    """Refuse to build a release inside a folder of the sources, because the files of the release would be read as
    sources.
    """
    read = {f"source.{name}": path for name, path in sources.items()}
    if spec.corpus:
        read["corpus"] = spec.corpus
    for name, path in read.items():
        if path.is_dir() and build_dir.out.resolve().is_relative_to(path.resolve()):
            raise BuildError(
                f"--out {build_dir.out}: lies inside {name} of dataset {spec.name!r} ({path}), so that its files would "
                "be read as sources; give a folder outside it"
            )


def check_errata(spec: DatasetSpec, reader: Reader[Row]) -> None:
    """Refuse errata if their file does not exist, or if they set a field of `Reader.fixed_fields`."""
    if spec.errata is None:
        return
    if not spec.errata.is_file():
        raise ManifestError(f"dataset {spec.name!r}: errata: no such file: {spec.errata}")
    for id, erratum in load_errata(spec.errata).items():
        if field := next((field for field in erratum.set if field in reader.fixed_fields), None):
            raise ManifestError(
                f"dataset {spec.name!r}: errata: {id}: {field!r} cannot be corrected, because "
                "ids, pages or pictures are read from it too; correct the source instead"
            )


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
    saved = folder.with_name(f"{folder.name}.json")
    files = {name: [[str(file), *stamp_of(file)] for file in files_of(path)] for name, path in sources.items()}
    text = json.dumps([versions(), spec.reader, files], ensure_ascii=False)
    description = text.encode("utf-8", "surrogateescape")
    if not saved.is_file() or saved.read_bytes() != description:
        saved.unlink(missing_ok=True)
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
        write_whole(saved, [description])
    found = {path.name: path for path in sorted(folder.iterdir())} if folder.is_dir() else {}
    if twice := next((name for name in found if name in sources), None):
        fault = f"wrote {twice!r}, which is the name of another source; use another name"
        raise broken("reader", spec.reader, "extract()", fault)
    return {**sources, **found}
