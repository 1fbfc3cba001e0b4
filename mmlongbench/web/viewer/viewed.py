"""What is viewed: a release of this engine, or public files that others made; its records as examples, and its images.

Tokenizers are opened only for files of other origin, because the items of a release say what its units cost. What the
viewer keeps is in the user's cache folder, never in a release.
"""

import json
import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property, partial
from hashlib import sha256
from pathlib import Path, PurePosixPath

from mmlongbench.documents.pixels import thumbnail, unreadable
from mmlongbench.errors import DraftError, ReleaseError
from mmlongbench.io.files import read_regular, write_whole
from mmlongbench.manifest.binding import calling
from mmlongbench.manifest.plugins import package_sha256
from mmlongbench.manifest.task_files import NO_TASK_FILES, TaskFiles
from mmlongbench.prompt import Prompt
from mmlongbench.release.example_cost import ImageSizes, counted
from mmlongbench.release.items import items_path
from mmlongbench.release.layout import IMAGES, LOCK, REJECTS
from mmlongbench.release.lock import leads_out
from mmlongbench.release.published_folder import user_cache
from mmlongbench.release.release import Example, Release
from mmlongbench.task.builder import Builder
from mmlongbench.task.file_formats import FileFormat
from mmlongbench.task.metric import Evidence
from mmlongbench.task.rows import Record, Row
from tokenization import PatchRule, TextTokenizer, TokenCount, VisionRule

_FORMAT = "3"
"""The version of the files in the cache; files of another version are made again."""


def cache_folder() -> Path:
    """Return the folder of everything that the viewer keeps."""
    return user_cache() / "view"


def key_of(files: Iterable[Path], *more: str) -> str:
    """Return a name for what is made of files: it changes if a path, a size or a time of change does.

    A file that does not exist counts, too. `more` are other texts on which the result depends.
    """
    parts = [_FORMAT, *more]
    for file in files:
        path = file.absolute()
        try:
            stat = path.stat()
            parts.append(f"{path} {stat.st_size} {stat.st_mtime_ns}")
        except OSError:
            parts.append(f"{path} is missing")
    return sha256("\n".join(parts).encode("utf-8", "surrogateescape")).hexdigest()[:32]


def code_of(modules: Iterable[str]) -> str:
    """Return a fingerprint of the code of the engine and of the packages of some modules."""
    parts = []
    for name in sorted({"mmlongbench", "tokenization", *(module.partition(".")[0] for module in modules)}):
        try:
            parts.append(f"{name} {package_sha256(name)}")
        except ValueError:  # a task file is no package; the name of its module has the hash of the file
            parts.append(name)
    return " ".join(parts)


@dataclass(frozen=True, slots=True)
class ViewedFile:
    """A public file with examples."""

    number: int
    name: str
    """Its path below `mmlb_data/`, which predictions name."""
    path: Path
    dataset: str
    length: int
    form: FileFormat
    builder: Builder[Row]
    builder_name: str
    rule: PatchRule | VisionRule
    """Counts the tokens of an image as the release does."""
    reserve: int
    """The tokens kept free, where a record does not say."""
    images: Path
    """The folder that paths of images start from."""
    bundle: str = ""
    """The name of the second file of the same records, which predictions may name, too; empty: there is none."""
    items: Path | None = None
    """The file of its items; None for files of other origin."""
    text: TextTokenizer | None = field(default=None, compare=False)
    """Counts texts where there are no items; None: they are not counted."""

    variant: str = ""
    """The form of the prompts; empty: the released form."""
    counted: Callable[[Prompt], TokenCount] | None = field(default=None, compare=False)
    """Counts prompts whose tokens the records do not say."""

    @property
    def names(self) -> tuple[str, ...]:
        """All names that predictions may use."""
        return (self.name, self.bundle) if self.bundle not in ("", self.name) else (self.name,)


@dataclass(frozen=True)
class Viewed:
    """What is viewed."""

    path: Path
    release: Release
    files: tuple[ViewedFile, ...]
    """The public files, sorted by dataset and length."""
    lock_id: str = ""
    """The id of the lock; empty for files of other origin."""
    unknown: tuple[str, ...] = ()
    """Files with names that no dataset has."""

    @property
    def name(self) -> str:
        """The name of the folder."""
        return self.path.resolve().name

    @cached_property
    def datasets(self) -> tuple[str, ...]:
        """The names of datasets, in the order of the manifest."""
        manifest = (str(data.get("name")) for data in self.release.lock.manifest)
        return tuple(dict.fromkeys([*manifest, *(file.dataset for file in self.files)]))

    @cached_property
    def code(self) -> str:
        """A fingerprint of the code that reads examples: of the engine and of the builders."""
        return code_of(type(file.builder).__module__ for file in self.files)

    @cached_property
    def by_name(self) -> Mapping[str, ViewedFile]:
        """The files by every name that predictions may use."""
        return {name: file for file in self.files for name in reversed(file.names)}

    @property
    def rejects(self) -> Path | None:
        """The file of rejects; None if there is none."""
        path = self.path / REJECTS
        return path if self.lock_id and path.is_file() and not leads_out(self.path, REJECTS) else None

    def of(self, dataset: str) -> tuple[ViewedFile, ...]:
        """Return the files of a dataset, the shortest length first."""
        return tuple(file for file in self.files if file.dataset == dataset)


def open_viewed(path: Path, images: Path | None = None, tasks: TaskFiles = NO_TASK_FILES, variant: str = "") -> Viewed:
    """Open a release, or public files of other origin, by a folder or one file. Images are by default in `mmlb_image/`
    beside `mmlb_data/`, unless it is a link. Files of datasets that do not offer a `variant` are left out.
    """
    is_locked = (path / LOCK).is_file()
    if is_locked:
        release = Release.open(path, images=images, tasks=tasks, variant=variant)
        path, images = release.path, images or _own_images(release.path)
        public = [release.file(name, length) for name in release.datasets for length in release.lengths(name)]
    else:
        folders = (path.absolute(), *path.absolute().parents)
        images = images or _own_images(next((folder for folder in folders if (folder / IMAGES).is_dir()), path))
        release = Release.open(path, images=images, variant=variant)
        known = [(file.dataset.name, file.length, file) for file in release.files if file.dataset]
        lined = {(name, length) for name, length, file in known if not file.is_bundle}
        known = [each for each in known if not each[2].is_bundle or each[:2] not in lined]
        public = [file for _, _, file in sorted(known, key=lambda each: (*each[:2], each[2].name))]
    files: list[ViewedFile] = []
    for file in public:
        dataset = file.dataset
        if dataset is None or dataset.variant != variant:
            continue
        bundle = dataset.builder.spec.bundle if is_locked else None
        counter = None if is_locked and not variant else dataset.counter
        viewed = ViewedFile(
            number=len(files),
            name=file.name,
            path=file.path,
            dataset=dataset.name,
            length=file.length,
            form=file.form,
            builder=dataset.builder,
            builder_name=dataset.spec.builder,
            rule=counter.image if counter else dataset.rule,
            reserve=dataset.reserve or 0,
            images=images,
            bundle=bundle.files.write(dataset.name, file.length) if bundle else "",
            items=items_path(path, file.name) if is_locked and not variant else None,
            text=counter.text if counter else None,
            variant=variant,
            counted=partial(counted, counter=counter, sizes=ImageSizes(images)) if counter and variant else None,
        )
        files.append(viewed)
    unknown = () if is_locked else tuple(file.name for file in release.files if file.dataset is None)
    return Viewed(path, release, tuple(files), release.lock_id if is_locked else "", unknown)


def _own_images(folder: Path) -> Path:
    """Return the folder of images in a folder; a link that leads out of it could show any picture of this machine."""
    images = folder / IMAGES
    if not images.resolve().is_relative_to(folder.resolve()):
        raise ReleaseError(f"{images}: is a link out of the release; if you trust it, give --images {images}")
    return images


def example_of(viewed: Viewed, file: ViewedFile, record: Record, where: str) -> Example:
    """Return the example of a record, whoever wrote it: what the record does not say is left out, not refused."""
    tokens = record.get("tokens")
    stated = dict(tokens) if isinstance(tokens, dict) else {}
    reserve = stated.get("reserve")
    stated["reserve"] = reserve if type(reserve) is int and reserve >= 0 else file.reserve
    text, image = (n if type(n) is int and 0 <= n < 2**53 else 0 for n in (stated.get("text"), stated.get("image")))
    with calling("builder", file.builder_name, "a method that reads records", about=where):
        evidence = file.builder.evidence(record)
        prompt = file.builder.render_variant(record, file.variant) if file.variant else file.builder.prompt(record)
        if not isinstance(evidence, Evidence | None):
            raise DraftError(f"evidence() returned a {type(evidence).__name__}, expected mt.Evidence or None")
        return Example(
            id=str(record.get("id", "")),
            file=file.name,
            record={**record, "tokens": stated},
            prompt=prompt,
            answer=file.builder.answer_of(record),
            evidence=evidence,
            tokens=file.counted(prompt) if file.counted else TokenCount(text, image),
            facets=file.builder.facets(record),
            dataset=file.dataset,
            length=file.length,
            _release=viewed.release,
            variant=file.variant,
        )


def plain(value: object) -> str:
    """Return a value as JSON in ASCII, so that also what UTF-8 cannot hold can be sent."""
    return json.dumps(value, separators=(",", ":"))


def as_text(value: object) -> str:
    """Return a text as it is, and any other value as JSON.

    >>> as_text("528"), as_text(["red", 2])
    ('528', '["red", 2]')
    """
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)


SIDE = 256
"""The longer side of a small copy, in pixels."""
LARGE_SIDE = 1400
"""The longer side of a copy that can be read, as the files of a site have them."""
_MAX_PIXELS = 36_000_000
"""The most pixels of a picture that is decoded."""
_MAX_BYTES = 64 * 1024 * 1024
"""The most bytes of a file that is decoded or sent."""
_KINDS = {
    b"\xff\xd8\xff": "image/jpeg",
    b"\x89PNG\r\n\x1a\n": "image/png",
    b"GIF87a": "image/gif",
    b"GIF89a": "image/gif",
}
_AT_ONCE = threading.Semaphore(2)
"""At most two pictures are decoded at a time, which bounds memory."""


def image_file(root: Path, path: str) -> Path:
    """Return the file of an image."""
    pure, file = PurePosixPath(path), root / path
    try:
        is_inside = not pure.is_absolute() and ".." not in pure.parts and file.resolve().is_relative_to(root.resolve())
        is_there = is_inside and file.is_file()
    except (OSError, ValueError) as error:  # a name that no file can have
        raise ReleaseError(f"image {path!r:.120}: is missing") from error
    if not is_there:
        why = "is missing" if is_inside else "the path leaves the folder of images"
        raise ReleaseError(f"image {path!r:.120}: {why}")
    return file


def small_copy(root: Path, path: str, side: int = SIDE) -> bytes:
    """Return a small copy of an image as JPEG; it is made once and kept in the cache."""
    file = image_file(root, path)
    key = key_of([file], str(side))
    kept = cache_folder() / "images" / key[:2] / f"{key}.jpg"
    try:
        return read_regular(kept, _MAX_BYTES)
    except (OSError, ValueError):
        with _AT_ONCE:
            try:
                data = thumbnail(read_regular(file, _MAX_BYTES), side, _MAX_PIXELS)
            except unreadable() as error:
                raise ReleaseError(f"image {file.name!r:.120}: cannot be shown: {str(error)[:120]}") from error
        write_whole(kept, [data])
        return data


def whole_file(root: Path, path: str) -> tuple[Path, str]:
    """Return the file and the media type of an image: JPEG, PNG, GIF or WebP by its first bytes."""
    file = image_file(root, path)
    with file.open("rb") as opened:
        head = opened.read(16)
    kind = next((kind for start, kind in _KINDS.items() if head.startswith(start)), "")
    if head[:4] == b"RIFF" and head[8:12] == b"WEBP":
        kind = "image/webp"
    if not kind:
        raise ReleaseError(f"image {path!r:.120}: no JPEG, PNG, GIF or WebP by its first bytes")
    if file.stat().st_size > _MAX_BYTES:
        raise ReleaseError(f"image {path!r:.120}: more than {_MAX_BYTES:,} bytes")
    return file, kind


def fitted(size: tuple[int, int]) -> tuple[int, int]:
    """Return the size of an image that is made to fit a square.

    >>> fitted((1224, 1584)), fitted((100, 50))
    ((198, 256), (100, 50))
    """
    width, height = size
    scale = min(1.0, SIDE / max(width, height, 1))
    return max(1, round(width * scale)), max(1, round(height * scale))
