"""Opens what is audited: a release of this engine with its lock, or public files of other origin."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from mmlongbench.errors import ManifestError, NotHereError, ReleaseError
from mmlongbench.manifest.binding import bind
from mmlongbench.manifest.loading import installed_manifests, load_manifest
from mmlongbench.manifest.model import SAMPLE, DatasetSpec
from mmlongbench.manifest.task_files import NO_TASK_FILES, TaskFiles, recorded_code
from mmlongbench.manifest.validation import explain
from mmlongbench.prompt import Prompt
from mmlongbench.release.layout import CLAIMS, DATA, IMAGES, LOCK, TOKENIZERS
from mmlongbench.release.lock import Lock, files_below, read_lock
from mmlongbench.release.measuring import ImageSizes
from mmlongbench.release.positions import Prices
from mmlongbench.task.builder import Builder
from mmlongbench.task.formats import FileFormat, FilePattern
from mmlongbench.task.rows import Record, Row
from tokenization import CrossModalCounter
from tokenization.text import LLAMA2


@dataclass(frozen=True)
class AuditedDataset:
    """What an audit needs to know about a dataset."""

    builder: Builder[Row]
    counter: CrossModalCounter
    reserve: int | None = None
    """The tokens that are kept free; None if not known."""
    variant: str = ""
    """The form of the prompts that is counted, such as `oracle`; empty: the released form."""
    is_locked: bool = True
    """Whether a lock says what the records must contain; False for files of other origin."""
    spec: DatasetSpec | None = None
    """The dataset as the lock describes it."""

    @cached_property
    def prices(self) -> Prices:
        """The tokens of lines, kept for all files of the dataset."""
        return Prices(self.counter)

    def prompt(self, record: Record) -> Prompt:
        """Return the prompt of a record, or the chosen variant of it."""
        return self.builder.render_variant(record, self.variant) if self.variant else self.builder.prompt(record)


@dataclass(frozen=True, slots=True)
class PublicFile:
    """One public file, and how to read it."""

    name: str
    """The path below `mmlb_data/`."""
    path: Path
    dataset: AuditedDataset | None
    """The dataset; None if no known dataset has such a file."""
    length: int
    form: FileFormat | None
    sizes: ImageSizes
    """The sizes of the images that its records name."""
    sha256: str | None = None
    """The SHA-256 in the lock; None if the lock does not have the file."""
    is_bundle: bool = False
    """Whether it is the second file that a task makes of its records (`TaskSpec.bundle`)."""


@dataclass(frozen=True, slots=True)
class LoadedRelease:
    """The files to audit."""

    files: tuple[PublicFile, ...]
    """The files, sorted by name; numbers in names, such as lengths, are compared as numbers."""
    lock: Lock | None
    """The lock; None for files of other origin."""
    missing: tuple[str, ...] = ()
    """The files that the lock names but that do not exist."""
    root: Path | None = None
    """The folder of the release; None for files of other origin."""
    datasets: tuple[AuditedDataset, ...] = ()
    """The datasets of the lock, in its order."""


def load_release(
    release: Path, tokenizer: str | None = None, variant: str = "", tasks: TaskFiles = NO_TASK_FILES
) -> LoadedRelease:
    """Load a release of this engine. Its task files are used only if `tasks` has them.

    Raises:
        ReleaseError: the release cannot be read, was counted with another tokenizer, or none of its builders offers
            the variant.

    """
    lock = read_lock(release)
    datasets = [locked_dataset(data, tokenizer, tasks, release) for data in lock.manifest]
    if tokenizer and all(dataset.counter.text.name != tokenizer for dataset in datasets):
        raise ReleaseError(f"--tokenizer {tokenizer}: no dataset of {release} was counted with it; leave it out")
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


def load_public(
    paths: Sequence[Path], images: Path | None = None, variant: str = "", builder: str = ""
) -> LoadedRelease:
    """Load public files of other origin; they are recognised by their folders and names.

    Args:
        paths: files such as `mmlb_data/NIAH/vh_single_test_1000_K64_dep6.jsonl`, or folders of them.
        images: the folder that the records' image paths start from; `mmlb_image` beside `mmlb_data` by default.
        variant: another form of the prompts that builders offer.
        builder: the name of the builder of files with unknown names, with its default options; empty: they have none.

    Raises:
        ReleaseError: no file has a known name, no builder offers the variant, no folder of images is found, or the name
            of a file for `builder` has no length.

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
        if read.dataset is None and builder:
            read = _of_builder(builder, name, file, sizes, variant)
        unique = name if name not in opened else file.as_posix()
        opened[unique] = replace(read, name=unique)
    if not any(file.dataset for file in opened.values()):
        names = ", ".join(sorted({f"{d.builder.spec.files.template} ({d.builder.dataset})" for d in datasets})[:6])
        raise ReleaseError(
            f"{', '.join(map(str, paths))}: no public file with a known name, such as {names}, …; "
            "keep the files in their folders (documentQA/, NIAH/, …), or name their builder with --builder"
        )
    return LoadedRelease(_ordered(opened.values()), None)


def _images_beside(path: Path) -> Path:
    for folder in path.resolve().parents:
        if folder.name == DATA and (folder.parent / IMAGES).is_dir():
            return folder.parent / IMAGES
    raise ReleaseError(f"{path}: no {IMAGES}/ beside {DATA}/; give the folder of images with --images")


def _installed() -> Iterable[AuditedDataset]:
    """Yield the datasets of the installed manifests without the quickstarts; of several with one name, the first."""
    known: dict[str, DatasetSpec] = {}
    for name, path in installed_manifests().items():
        if not name.startswith("quickstart"):
            for spec in load_manifest(path).datasets:
                known.setdefault(spec.name, spec)
    for spec in known.values():
        bound = bind(spec)
        yield AuditedDataset(bound.builder, bound.counter, bound.task.reserve, is_locked=False)


def _varied(datasets: Iterable[AuditedDataset], variant: str) -> list[AuditedDataset]:
    """Return all datasets; those that offer the variant are set to give prompts in this form."""
    listed = list(datasets)
    if not variant:
        return listed
    offered = [dataset.builder.variants for dataset in listed]
    if not any(variant in names for names in offered):
        names = sorted({name for found in offered for name in found})
        there = f"offered: {', '.join(names)}" if names else "none is offered"
        raise ReleaseError(f"--variant {variant}: no builder of this release offers it; {there}")
    pairs = zip(listed, offered, strict=True)
    return [replace(dataset, variant=variant) if variant in names else dataset for dataset, names in pairs]


def _recognised(
    name: str, path: Path, datasets: Iterable[AuditedDataset], sizes: ImageSizes, sha256: str | None = None
) -> PublicFile:
    """Return a public file with the facts that its name gives: the dataset, the length, the format, and whether it is
    the second file of a task (`TaskSpec.bundle`). A file with an unknown name belongs to no dataset.
    """
    for dataset in datasets:
        if found := recognised(dataset.builder, name):
            return PublicFile(name, path, dataset, found.length, found.form, sizes, sha256, found.is_bundle)
    return PublicFile(name, path, None, 0, None, sizes, sha256)


def _of_builder(builder: str, name: str, path: Path, sizes: ImageSizes, variant: str) -> PublicFile:
    """Return a public file with an unknown name, in any folder, as a file of the builder that the user names.

    Raises:
        ReleaseError: the name has no length.

    """
    about = {"builder": builder, "reader": "", "source": SAMPLE}
    spec = bind(DatasetSpec.model_validate({"name": "any", **about})).task
    known = [(spec.bundle.files, spec.bundle.format, True)] if spec.bundle else []
    patterns = [(each.template.rpartition("/")[2], form, second) for each, form, second in known]
    patterns += [
        (spec.files.template.rpartition("/")[2], spec.format, False),
        ("{name}_K{k}.jsonl", spec.format, False),
    ]
    reads = ((FilePattern(each).recognise(path.name), form, second) for each, form, second in patterns)
    read, form, is_bundle = next((found for found in reads if found[0]), (None, spec.format, False))
    if read is None:
        raise ReleaseError(f"{path}: --builder needs a name with a length, such as {path.stem}_K8.jsonl")
    named = DatasetSpec.model_validate({"name": re.sub(r"^[^A-Za-z0-9]+", "", read.name) or "any", **about})
    bound = bind(named)
    dataset = AuditedDataset(bound.builder, bound.counter, bound.task.reserve, is_locked=False)
    (varied,) = _varied([dataset], variant)
    return PublicFile(name, path, varied, read.length, form, sizes, is_bundle=is_bundle)


@dataclass(frozen=True, slots=True)
class Recognised:
    """The meaning of a public file's name."""

    length: int
    form: FileFormat
    is_bundle: bool
    """Whether it is the second file that a task makes of its records (`TaskSpec.bundle`)."""


def recognised(builder: Builder[Row], name: str) -> Recognised | None:
    """Return the meaning of a file's name below `mmlb_data/`; None if it is not a file of the builder's dataset."""
    spec = builder.spec
    patterns = [(spec.bundle.files, spec.bundle.format, True)] if spec.bundle else []
    for pattern, form, is_bundle in (*patterns, (spec.files, spec.format, False)):
        read = pattern.recognise(name)
        if read and read.name == builder.dataset:
            return Recognised(read.length, form, is_bundle)
    return None


def _ordered(files: Iterable[PublicFile]) -> tuple[PublicFile, ...]:
    return tuple(sorted(files, key=lambda file: by_length(file.name)))


def by_length(path: str) -> list[tuple[int, str]]:
    """Return a key to sort names by, which compares the numbers in them: K8 is before K16."""
    return [(int(part), "") if part.isdecimal() else (0, part) for part in re.split(r"(\d+)", path)]


def locked_dataset(
    data: Mapping[str, Any], tokenizer: str | None, tasks: TaskFiles = NO_TASK_FILES, release: Path | None = None
) -> AuditedDataset:
    """Return a dataset of the lock with its builder, and the counter that it was counted with: of the tokenizer that is
    given, of the one that the release keeps, or of the one that is found by its name.
    """
    spec, recorded = locked_spec(data, tokenizer, tasks)
    if tokenizer is None and release and (kept := release / TOKENIZERS / f"{recorded['sha256']}.json").is_file():
        spec = spec.model_copy(update={"counter": spec.counter.model_copy(update={"tokenizer": str(kept)})})
    try:
        counter = spec.counter.open()
    except ManifestError as error:
        raise NotHereError(f"{error}; give the tokenizer of this release with `audit --tokenizer`") from error
    if counter.text.sha256 != recorded["sha256"]:
        if tokenizer and recorded["name"] == LLAMA2:  # the given tokenizer belongs to another dataset
            return locked_dataset(data, None, tasks, release)
        raise ReleaseError(
            f"tokenizer {counter.text.name!r} has sha256 {counter.text.sha256[:12]}…, the release was counted with "
            f"{recorded['name']!r}, {recorded['sha256'][:12]}…; give it with --tokenizer"
        )
    bound = bind(spec)
    return AuditedDataset(bound.builder, counter, bound.reserve, spec=spec)


def locked_spec(
    data: Mapping[str, Any], tokenizer: str | None = None, tasks: TaskFiles = NO_TASK_FILES
) -> tuple[DatasetSpec, Mapping[str, str]]:
    """Return a dataset of the lock in the form of a manifest, and the `name` and the `sha256` of its tokenizer.

    Args:
        data: the dataset in the form of the lock.
        tokenizer: the path of that tokenizer; None: it is found by its name.
        tasks: the task files that the user gives.

    Raises:
        ReleaseError: `data` is not a valid dataset, or a task file differs from the one that it was built with.
        PluginError: the dataset needs a task file that the user has not given.

    """
    try:
        recorded = {key: str(data["counter"]["tokenizer"][key]) for key in ("name", "sha256")}
        name = tokenizer or recorded["name"]
        resolved = {
            key: value for key, value in data.items() if not key.endswith("_sha256") and key not in ("errata", "code")
        }
        counted = {**data["counter"], "tokenizer": name}
        pages = {key: value for key, value in data["pages"].items() if key not in ("ocr", "crops")}
        spec = DatasetSpec.model_validate({**resolved, "source": "sample", "counter": counted, "pages": pages})
    except ValidationError as error:
        raise ReleaseError(f"{explain(error, f'{LOCK}: manifest: cannot be read', DatasetSpec, [])}") from error
    except (KeyError, TypeError, AttributeError) as error:
        raise ReleaseError(f"{LOCK}: manifest: cannot be read: {' '.join(str(error).split())}") from error
    named = {kind: tasks.named(kind, getattr(spec, kind), recorded_code(data, kind)) for kind in ("builder", "reader")}
    return spec.model_copy(update=named), recorded
