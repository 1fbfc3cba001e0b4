"""Opening what is to be audited: a release of this engine with its lock, or public files that others made."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from mmlongbench.errors import ManifestError, NotHereError, ReleaseError
from mmlongbench.manifest.builtin_manifests import installed_manifests
from mmlongbench.manifest.model import DatasetSpec, load_manifest
from mmlongbench.manifest.resolve import bind_builder
from mmlongbench.manifest.validation import explain
from mmlongbench.prompt import Prompt
from mmlongbench.release.images import ImageSizes
from mmlongbench.release.inventory import files_below
from mmlongbench.release.layout import CLAIMS, DATA, IMAGES, LOCK
from mmlongbench.release.lock import Lock, read_lock
from mmlongbench.release.positions import Prices
from mmlongbench.task.builder import Builder
from mmlongbench.task.formats import FileFormat
from mmlongbench.task.rows import Record, Row
from tokenization import CrossModalCounter
from tokenization.text import LLAMA2


@dataclass(frozen=True)
class AuditedDataset:
    """What an audit needs to know of a dataset."""

    builder: Builder[Row]
    counter: CrossModalCounter
    reserve: int | None = None
    """What is kept free, in tokens; None where that is not known."""
    variant: str = ""
    """Another rendering of the records, that is counted in place of the released one."""
    is_locked: bool = True
    """Whether a lock says what the records must hold; records that others made hold no counts of ours."""
    spec: DatasetSpec | None = None
    """As the lock has it."""

    @cached_property
    def prices(self) -> Prices:
        """The prices of lines that all files of the dataset share."""
        return Prices(self.counter)

    def prompt(self, record: Record) -> Prompt:
        """The prompt of a record, or the variant of it."""
        return self.builder.render_variant(record, self.variant) if self.variant else self.builder.prompt(record)


@dataclass(frozen=True, slots=True)
class PublicFile:
    """One public file, and how it is read."""

    name: str
    """Below `mmlb_data/`."""
    path: Path
    dataset: AuditedDataset | None
    """None where nothing is known that makes such a file."""
    length: int
    form: FileFormat | None
    sizes: ImageSizes
    """Of the images that its records name."""
    sha256: str | None = None
    """As the lock has it."""
    is_bundle: bool = False
    """Whether it is the second file that a task makes of its records (`TaskSpec.bundle`)."""


@dataclass(frozen=True, slots=True)
class LoadedRelease:
    """What is to be audited."""

    files: tuple[PublicFile, ...]
    """By name, in the order of lengths."""
    lock: Lock | None
    """None of files that others made."""
    missing: tuple[str, ...] = ()
    """Files that the lock names and that are not there."""
    root: Path | None = None
    """The release; None of files that others made."""
    datasets: tuple[AuditedDataset, ...] = ()
    """Those of the lock, in its order."""


def open_release(release: Path, tokenizer: str | None = None, variant: str = "") -> LoadedRelease:
    """A release of this engine.

    Raises:
        ReleaseError: it cannot be read, was counted with another tokenizer, or has no such variant.

    """
    lock = read_lock(release)
    datasets = [locked_dataset(data, tokenizer) for data in lock.manifest]
    if tokenizer and all(dataset.counter.text.name != tokenizer for dataset in datasets):
        raise ReleaseError(f"--tokenizer {tokenizer}: nothing in {release} was counted with it; leave it out")
    files = {
        path.removeprefix(f"{DATA}/"): found.sha256 for path, found in lock.files.items() if path.startswith(f"{DATA}/")
    }
    root = release / DATA
    public = (path for path in files_below(root) if not path.name.endswith(CLAIMS))
    there = {path.relative_to(root).as_posix(): path for path in public}
    varied = _varied(datasets, variant)
    sizes = ImageSizes(release / IMAGES)
    opened = [_recognised(name, path, varied, sizes, files.get(name)) for name, path in there.items()]
    missing = tuple(sorted(files.keys() - there.keys(), key=by_length))
    return LoadedRelease(_ordered(opened), lock, missing, release, tuple(datasets))


def open_public(paths: Sequence[Path], images: Path | None = None, variant: str = "") -> LoadedRelease:
    """Public files that others made, known by where they stand and what they are called.

    Args:
        paths: files such as `mmlb_data/NIAH/vh_single_test_1000_K64_dep6.jsonl`, or folders of them.
        images: the folder that the records' image paths start from; `mmlb_image` beside `mmlb_data` by default.
        variant: a rendering that builders offer.

    Raises:
        ReleaseError: no file is there, none is known, or the folder of images cannot be told.

    """
    listed = [file for path in paths for file in ([path] if path.is_file() else sorted(path.rglob("*_K*.json*")))]
    found = dict.fromkeys(file.resolve() for file in listed)
    datasets = _varied(_installed(), variant)
    roots: dict[Path, ImageSizes] = {}
    opened: dict[str, PublicFile] = {}
    for file in found:
        name = "/".join(file.parts[-2:])
        root = images or _images_beside(file)
        sizes = roots.setdefault(root, ImageSizes(root))
        read = _recognised(name, file, datasets, sizes)
        unique = name if name not in opened else file.as_posix()
        opened[unique] = replace(read, name=unique)
    if not any(file.dataset for file in opened.values()):
        names = ", ".join(sorted({f"{d.builder.spec.files.template} ({d.builder.dataset})" for d in datasets})[:6])
        raise ReleaseError(
            f"{', '.join(map(str, paths))}: no public file whose name is known, such as {names}, …; "
            "keep the folder it stands in (documentQA/, NIAH/, …)"
        )
    return LoadedRelease(_ordered(opened.values()), None)


def _images_beside(path: Path) -> Path:
    for folder in path.resolve().parents:
        if folder.name == DATA and (folder.parent / IMAGES).is_dir():
            return folder.parent / IMAGES
    raise ReleaseError(f"{path}: no {IMAGES}/ beside {DATA}/; --images says where the images are")


def _installed() -> Iterable[AuditedDataset]:
    """Every dataset of the installed manifests, each name once, counted as the benchmark counts."""
    known: dict[str, DatasetSpec] = {}
    for name, path in installed_manifests().items():
        if not name.startswith("quickstart"):
            for spec in load_manifest(path).datasets:
                known.setdefault(spec.name, spec)
    for spec in known.values():
        builder = bind_builder(spec)
        yield AuditedDataset(builder, spec.counter.open(), builder.spec.reserve, is_locked=False)


def _varied(datasets: Iterable[AuditedDataset], variant: str) -> list[AuditedDataset]:
    """The datasets with a variant, those that offer it."""
    listed = list(datasets)
    if not variant:
        return listed
    offered = [dataset.builder.variants for dataset in listed]
    if not any(variant in names for names in offered):
        names = sorted({name for found in offered for name in found})
        raise ReleaseError(f"--variant {variant}: no builder of this release offers it; offered: {', '.join(names)}")
    pairs = zip(listed, offered, strict=True)
    return [replace(dataset, variant=variant) if variant in names else dataset for dataset, names in pairs]


def _recognised(
    name: str, path: Path, datasets: Iterable[AuditedDataset], sizes: ImageSizes, sha256: str | None = None
) -> PublicFile:
    """What a file's name says: the dataset, the length and the format, that of the records or of their bundle."""
    for dataset in datasets:
        spec = dataset.builder.spec
        patterns = [(spec.bundle.files, spec.bundle.format, True)] if spec.bundle else []
        for pattern, form, is_bundle in (*patterns, (spec.files, spec.format, False)):
            read = pattern.recognise(name)
            if read and read.name == dataset.builder.dataset:
                return PublicFile(name, path, dataset, read.length, form, sizes, sha256, is_bundle)
    return PublicFile(name, path, None, 0, None, sizes, sha256)


def _ordered(files: Iterable[PublicFile]) -> tuple[PublicFile, ...]:
    return tuple(sorted(files, key=lambda file: by_length(file.name)))


def by_length(path: str) -> list[tuple[int, str]]:
    """Names in the order of the numbers in them: K8 before K16."""
    return [(int(part), "") if part.isdecimal() else (0, part) for part in re.split(r"(\d+)", path)]


def locked_dataset(data: Mapping[str, Any], tokenizer: str | None) -> AuditedDataset:
    """The builder of a dataset of the lock, and the counter it was counted with."""
    try:
        recorded = {key: str(data["counter"]["tokenizer"][key]) for key in ("name", "sha256")}
        name = tokenizer or recorded["name"]
        resolved = {key: value for key, value in data.items() if not key.endswith("_sha256") and key != "errata"}
        counted = {**data["counter"], "tokenizer": name}
        pages = {key: value for key, value in data["pages"].items() if key != "ocr"}
        spec = DatasetSpec.model_validate({**resolved, "source": "sample", "counter": counted, "pages": pages})
    except ValidationError as error:
        raise ReleaseError(f"{explain(error, f'{LOCK}: manifest: cannot be read', DatasetSpec, [])}") from error
    except (KeyError, TypeError, AttributeError) as error:
        raise ReleaseError(f"{LOCK}: manifest: cannot be read: {' '.join(str(error).split())}") from error
    try:
        counter = spec.counter.open()
    except ManifestError as error:
        raise NotHereError(f"{error}; `audit --tokenizer` gives the one this release was counted with") from error
    if counter.text.sha256 != recorded["sha256"]:
        if tokenizer and recorded["name"] == LLAMA2:  # the one that is given is another dataset's
            return locked_dataset(data, None)
        raise ReleaseError(
            f"tokenizer {counter.text.name!r} has sha256 {counter.text.sha256[:12]}…, the release was counted with "
            f"{recorded['name']!r}, {recorded['sha256'][:12]}…; --tokenizer gives it"
        )
    builder = bind_builder(spec)
    reserve = builder.spec.reserve if spec.reserve is None else spec.reserve
    return AuditedDataset(builder, counter, reserve, spec=spec)
