"""Opens what is viewed: a release of this engine, or public files that others made. Tokenizers are opened only for the
latter, because the items of a release say what its units cost.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

from pydantic import JsonValue

from mmlongbench.errors import ReleaseError
from mmlongbench.manifest.plugins import package_sha256
from mmlongbench.manifest.task_files import NO_TASK_FILES, TaskFiles
from mmlongbench.release.items import items_path
from mmlongbench.release.layout import IMAGES, LOCK, REJECTS
from mmlongbench.release.lock import DatasetCounts, UnreadableCounts, leads_out
from mmlongbench.release.release import Release
from mmlongbench.task.builder import Builder
from mmlongbench.task.file_formats import FileFormat
from mmlongbench.task.rows import Row
from tokenization import TextTokenizer
from tokenization.counting import PatchRule


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
    release: Release
    """The same, open for reading examples."""
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
    opened = Release.open(path, images=images, tasks=tasks)
    root = images or _own_images(opened.path)
    files: list[ViewedFile] = []
    for name in opened.datasets:
        dataset = opened.dataset(name)
        bundle = dataset.builder.spec.bundle
        for length in opened.lengths(name):
            known = opened.file(name, length)
            file = ViewedFile(
                number=len(files),
                name=known.name,
                aliases=(bundle.files.write(name, length),) if bundle else (),
                path=known.path,
                dataset=name,
                length=length,
                form=known.form,
                builder=dataset.builder,
                builder_name=dataset.spec.builder,
                rule=PatchRule(**dataset.spec.counter.image.model_dump()),
                reserve=dataset.reserve or 0,
                images=root,
                items=items_path(opened.path, known.name),
            )
            files.append(file)
    lock = opened.lock
    return Viewed(
        path=opened.path,
        name=path.resolve().name,
        files=tuple(files),
        release=opened,
        lock_id=opened.lock_id,
        manifest=lock.manifest,
        counts=lock.datasets,
        versions=lock.versions,
        listed=len(lock.files),
    )


def _public(path: Path, images: Path | None) -> Viewed:
    if images is None:
        images = _own_images(next((each for each in _folders_near(path) if (each / IMAGES).is_dir()), path))
    opened = Release.open(path, images=images)
    files: list[ViewedFile] = []
    known = [file for file in opened.files if file.dataset]
    lined = {(file.dataset.name, file.length) for file in known if file.dataset and not file.is_bundle}
    for each in known:
        if each.dataset is None or (each.is_bundle and (each.dataset.name, each.length) in lined):
            continue
        file = ViewedFile(
            number=0,
            name=each.name,
            aliases=(),
            path=each.path,
            dataset=each.dataset.name,
            length=each.length,
            form=each.form,
            builder=each.dataset.builder,
            builder_name=each.dataset.spec.builder,
            rule=each.dataset.counter.image,
            reserve=each.dataset.reserve or 0,
            images=images,
            items=None,
            text=each.dataset.counter.text,
        )
        files.append(file)
    files.sort(key=lambda file: (file.dataset, file.length, file.name))
    numbered = tuple(replace(file, number=number) for number, file in enumerate(files))
    unknown = tuple(each.name for each in opened.files if each.dataset is None)
    return Viewed(path, path.resolve().name, numbered, opened, unknown=unknown)


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
