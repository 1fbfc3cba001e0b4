"""Opens what is viewed: a release of this engine, or public files that others made. Tokenizers are opened only for the
latter, because the items of a release say what its units cost.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

from pydantic import JsonValue

from mmlongbench.errors import ReleaseError
from mmlongbench.manifest.binding import bind
from mmlongbench.manifest.code import package_sha256
from mmlongbench.manifest.task_files import NO_TASK_FILES, TaskFiles
from mmlongbench.release.items import items_path
from mmlongbench.release.layout import DATA, IMAGES, LOCK, REJECTS
from mmlongbench.release.loading import by_length, load_public, locked_spec, recognised
from mmlongbench.release.lock import DatasetCounts, Lock, UnreadableCounts, leads_out, lock_id, read_lock
from mmlongbench.release.opened import Release
from mmlongbench.task.builder import Builder
from mmlongbench.task.formats import FileFormat
from mmlongbench.task.rows import Row
from tokenization import TextTokenizer
from tokenization.counting import PatchRule

_NO_LOCK = Lock(format=1, manifest=[], datasets={}, files={})


@dataclass(frozen=True, slots=True)
class ViewedFile:
    """A public file with examples."""

    number: int
    """Its number in the viewer, from 0."""
    name: str
    """Its path below `mmlb_data/`, which predictions name."""
    aliases: tuple[str, ...]
    """Other names that predictions may use for its examples."""
    path: Path
    dataset: str
    length: int
    """The length in tokens."""
    form: FileFormat
    builder: Builder[Row]
    builder_name: str
    rule: PatchRule
    """Counts the tokens of an image as the release does."""
    reserve: int
    """The tokens kept free, where a record does not say."""
    images: Path
    """The folder that paths of images start from."""
    items: Path | None
    """The file of its items; None for files of other origin."""
    text: TextTokenizer | None = field(default=None, compare=False)
    """Counts texts where there are no items; None: they are not counted."""


@dataclass(frozen=True)
class Viewed:
    """What is viewed."""

    path: Path
    name: str
    files: tuple[ViewedFile, ...]
    """The public files, sorted by dataset and length."""
    lock_id: str = ""
    """The id of the lock; empty for files of other origin."""
    manifest: Sequence[Mapping[str, JsonValue]] = ()
    """The datasets as the lock describes them."""
    counts: Mapping[str, DatasetCounts | UnreadableCounts] = field(default_factory=dict)
    """The counts of the lock, by dataset."""
    versions: Mapping[str, JsonValue] = field(default_factory=dict)
    listed: int = 0
    """How many files the lock lists."""
    unknown: tuple[str, ...] = ()
    """Files with names that no dataset has."""

    @cached_property
    def datasets(self) -> tuple[str, ...]:
        """The names of datasets, in the order of the manifest."""
        named = [str(data.get("name")) for data in self.manifest]
        return tuple(dict.fromkeys([*named, *(file.dataset for file in self.files)]))

    @cached_property
    def code(self) -> str:
        """A fingerprint of the code that reads examples: of the engine and of the builders."""
        return code_of_modules(type(file.builder).__module__ for file in self.files)

    @cached_property
    def by_name(self) -> Mapping[str, ViewedFile]:
        """The files by name."""
        return {file.name: file for file in self.files}

    @cached_property
    def aliases(self) -> Mapping[str, ViewedFile]:
        """The files by every name that predictions may use."""
        return {alias: file for file in self.files for alias in (*file.aliases, file.name)}

    @property
    def rejects(self) -> Path | None:
        """The file of rejects; None if there is none."""
        path = self.path / REJECTS
        return path if self.lock_id and path.is_file() and not leads_out(self.path, REJECTS) else None

    def of(self, dataset: str) -> tuple[ViewedFile, ...]:
        """Return the files of a dataset, the shortest length first."""
        return tuple(file for file in self.files if file.dataset == dataset)

    @cached_property
    def release(self) -> Release:
        """A release for examples; its lock is empty, so it gives no digests."""
        return Release(self.path.absolute(), _NO_LOCK, {})


def code_of_modules(names: Iterable[str]) -> str:
    """Return a fingerprint of the code of the engine and of the packages of some modules."""
    packages = sorted({"mmlongbench", "tokenization", *(name.partition(".")[0] for name in names)})
    return " ".join(f"{name} {_package_sha256(name)}" for name in packages)


def _package_sha256(name: str) -> str:
    try:
        return package_sha256(name)
    except ValueError:  # a task file is no package; the name of its module has the hash of the file
        return ""


def open_viewed(path: Path, images: Path | None = None, tasks: TaskFiles = NO_TASK_FILES) -> Viewed:
    """Open a release, or public files of other origin.

    Args:
        path: the folder of a release, or of public files, or one public file.
        images: the folder of the images; by default `mmlb_image/` beside `mmlb_data/`, unless it is a link.
        tasks: the task files that the release was built with.

    Raises:
        ReleaseError: nothing can be viewed there.
        PluginError: a builder that the lock names is not installed, or is broken.

    """
    return _locked(path, images, tasks) if (path / LOCK).is_file() else _public(path, images)


def _locked(path: Path, images: Path | None, tasks: TaskFiles) -> Viewed:
    lock, root = read_lock(path), images or _own_images(path)
    names = sorted((name.removeprefix(f"{DATA}/") for name in lock.files if name.startswith(f"{DATA}/")), key=by_length)
    files: list[ViewedFile] = []
    for data in lock.manifest:
        spec, _ = locked_spec(data, tasks=tasks)
        builder = bind(spec).builder
        known = [(name, each) for name in names if (each := recognised(builder, name))]
        for name, found in known:
            if found.is_bundle:
                continue
            same = tuple(other for other, each in known if each.is_bundle and each.length == found.length)
            file = ViewedFile(
                number=len(files),
                name=name,
                aliases=same,
                path=path / DATA / name,
                dataset=spec.name,
                length=found.length,
                form=found.form,
                builder=builder,
                builder_name=spec.builder,
                rule=PatchRule(**spec.counter.image.model_dump()),
                reserve=builder.spec.reserve if spec.reserve is None else spec.reserve,
                images=root,
                items=items_path(path, name),
            )
            files.append(file)
    return Viewed(
        path=path,
        name=path.resolve().name,
        files=tuple(files),
        lock_id=lock_id(path),
        manifest=lock.manifest,
        counts=lock.datasets,
        versions=lock.versions,
        listed=len(lock.files),
    )


def _public(path: Path, images: Path | None) -> Viewed:
    if images is None:
        images = _own_images(next((each for each in _folders_near(path) if (each / IMAGES).is_dir()), path))
    opened = load_public([path], images)
    files: list[ViewedFile] = []
    known = sorted((each for each in opened.files if each.dataset), key=lambda each: by_length(each.name))
    lined = {(each.dataset.builder.dataset, each.length) for each in known if each.dataset and not each.is_bundle}
    for each in known:
        if each.dataset is None or each.form is None:
            continue
        builder = each.dataset.builder
        if each.is_bundle and (builder.dataset, each.length) in lined:
            continue
        file = ViewedFile(
            number=0,
            name=each.name,
            aliases=(),
            path=each.path,
            dataset=builder.dataset,
            length=each.length,
            form=each.form,
            builder=builder,
            builder_name=type(builder).__name__,
            rule=each.dataset.counter.image,
            reserve=each.dataset.reserve or 0,
            images=images,
            items=None,
            text=each.dataset.counter.text,
        )
        files.append(file)
    files.sort(key=lambda file: (file.dataset, file.length, file.name))
    numbered = tuple(replace(file, number=number) for number, file in enumerate(files))
    if not numbered:
        raise ReleaseError(f"{path}: no public file with a known name")
    unknown = tuple(each.name for each in opened.files if each.dataset is None)
    return Viewed(path, path.resolve().name, numbered, unknown=unknown)


def _folders_near(path: Path) -> list[Path]:
    return [path.absolute(), *path.absolute().parents]


def _own_images(folder: Path) -> Path:
    """Return the folder of images in a folder; a link that leads out of it could show any picture of this machine.

    Raises:
        ReleaseError: it is such a link.

    """
    images = folder / IMAGES
    if not images.resolve().is_relative_to(folder.resolve()):
        raise ReleaseError(f"{images}: is a link out of the release; if you trust it, give --images {images}")
    return images
