"""Writes the tables of a publication: examples by dataset and length, and every image once, by its content.

An example names its images by their SHA-256. An image is in the table of the shortest length, and there of the first
dataset, that shows it, in the order in which it is first shown. So tables of longer lengths, or of later datasets with
other images, can be added, and the files of the others stay as they are. With an earlier publication, its tables stay
too if every row of them is wanted (`Earlier`), and further files have the rest.
"""

import json
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from itertools import chain, count
from pathlib import Path
from typing import TYPE_CHECKING

from mmlongbench.errors import ReleaseError
from mmlongbench.exports.row_groups import picture_of, picture_schema, write_rows
from mmlongbench.exports.writing import answer_type
from mmlongbench.io.progress import Progress
from mmlongbench.lengths import K
from mmlongbench.prompt import MARKER, Turn
from mmlongbench.publishing.clearing import Cleared
from mmlongbench.publishing.earlier import Earlier, keep_examples, row_digest
from mmlongbench.release.layout import IMAGES, PUBLISHED_EXAMPLES, PUBLISHED_IMAGES
from mmlongbench.release.release import Example, Release
from mmlongbench.task.file_formats import to_json

if TYPE_CHECKING:
    import pyarrow as pa

FILE_BYTES = 400 * 1024 * 1024
"""A file of images ends when it has so many bytes."""
TEXTS = ("id", "answer", "answer_type", "metric", "file", "digest", "record")
NUMBERS = ("permutation", "length", "text_tokens", "image_tokens", "reserve")
LISTS = ("roles", "turns", "images")
COLUMNS = {
    "id": "the id of the question, the same at every length and placement",
    "roles": "who speaks in each turn of the prompt: `user` or `assistant`",
    "turns": "the text of each turn; `<image>` stands for an image",
    "images": "the SHA-256 of the images, in the order of their places in the turns",
    "answer": "the answer that metrics compare with, as JSON",
    "answer_type": "the type of `answer`: `text`, `number`, `list`, `object`, `boolean` or `none`",
    "metric": "the metric of the dataset",
    "file": "the public file of the example, which its predictions name",
    "digest": "the SHA-256 of the prompt, the bytes of its images, and the answer",
    "record": "the public record of the example, as JSON: what scoring reads, such as all accepted answers",
    "canary": "a text with an identifier, by which training data can be searched; it is in no prompt",
    "depth": "where the answer is in the context, from 0 (its start) to 1 (its end); empty if the task has no depths",
    "permutation": "the number of the order of the context; empty if the task has no permutations",
    "length": "the length of the file, in tokens",
    "text_tokens": "the tokens of the texts of the prompt",
    "image_tokens": "the tokens of its images",
    "reserve": "the tokens that are kept free for the answer and a chat template",
}
"""What each column of a table of examples has."""
IMAGE_COLUMNS = {
    "sha256": "the SHA-256 of the file",
    "image": "the image",
    "path": "the path of the file in the release, below `mmlb_image/`",
}
"""What each column of a table of images has."""


@dataclass(slots=True)
class Table:
    """A table that was written."""

    dataset: str
    """The name of the dataset."""
    length: int
    """In tokens."""
    paths: list[str] = field(default_factory=list)
    """The paths of its files below the folder of the publication; one, unless some are of an earlier publication."""
    rows: int = 0
    """The number of examples."""
    images: int = 0
    """How many images the examples show, each counted as often as it is shown."""
    fills: list[float] = field(default_factory=list)
    """(prompt + reserve) / length of each example."""
    canary: bool = False
    """Whether it has the column `canary`."""

    @property
    def split(self) -> str:
        """The name of the split, such as `K8`."""
        return f"K{self.length // K}"


@dataclass(slots=True)
class ImageFile:
    """A file of images that was written."""

    path: str
    """The path below the folder of the publication."""
    rows: int = 0
    """The number of images."""
    bytes: int = 0
    """The bytes of its images."""


@dataclass(slots=True)
class Tables:
    """All tables of a publication."""

    examples: list[Table] = field(default_factory=list)
    """Those of examples, in the order of the manifest, the shortest length first."""
    images: list[ImageFile] = field(default_factory=list)
    """The files of images, those of an earlier publication first; then in the order in which images are shown."""
    shown: dict[str, str] = field(default_factory=dict)
    """The path of each image in the release, by its SHA-256, in the order of the tables."""
    left_out: dict[tuple[str, int], int] = field(default_factory=dict)
    """How many examples are not published, by dataset and length."""


def write_tables(
    release: Release, out: Path, cleared: Cleared, progress: Progress, earlier: Earlier | None = None
) -> Tables:
    """Write all tables, the shortest length first.

    Args:
        release: the release.
        out: the folder of the publication.
        cleared: what may be published.
        progress: shows the bar.
        earlier: an earlier publication, whose tables are kept where every row of them is wanted.

    Raises:
        ReleaseError: an image is missing or is not the one of the lock, a table of `earlier` cannot be read, or nothing
            may be published.

    """
    written = Tables()
    cells = [(length, dataset) for dataset in release.datasets for length in release.lengths(dataset)]
    first_shown: list[tuple[str, dict[str, str]]] = []
    with progress.bar("publish: tables", 2 * len(cells)) as advance:
        for length, dataset in sorted(cells, key=lambda cell: cell[0]):
            before = len(written.shown)
            table = _write_examples(release, Table(dataset, length), out, cleared, written, earlier)
            if table.rows:
                written.examples.append(table)
            first_shown.append((f"{table.split}-{dataset}", dict(list(written.shown.items())[before:])))
            advance()
        kept = frozenset[str]()
        for each in earlier.keep_images(written.shown) if earlier else ():
            path = _copy(each.file, out / PUBLISHED_IMAGES, out)
            written.images.append(ImageFile(path, len(each.keys), each.bytes))
            kept |= each.keys
        for name, images in first_shown:
            new = {digest: path for digest, path in images.items() if digest not in kept}
            written.images += _write_images(release, name, new, out)
            advance()
    if not written.examples:
        raise ReleaseError(f"{release.path.name}: no example may be published; `mmlongbench rights` says why")
    written.examples.sort(key=lambda table: (release.datasets.index(table.dataset), table.length))
    return written


def _copy(file: Path, folder: Path, out: Path) -> str:
    """Copy a table of an earlier publication, and return its path below the new one."""
    folder.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(file, folder / file.name)
    return (folder / file.name).relative_to(out).as_posix()


def _new_path(out: Path, stem: str) -> str:
    """Return a path that no file has: `stem.parquet`, or one with a number."""
    names = chain((f"{stem}.parquet",), (f"{stem}-{number:05}.parquet" for number in count(1)))
    return next(name for name in names if not (out / name).exists())


def _write_examples(
    release: Release, table: Table, out: Path, cleared: Cleared, written: Tables, earlier: Earlier | None
) -> Table:
    """Write the examples of a dataset at a length, and note the images that no table has yet."""
    table.canary = bool(release.lock.canary)
    schema, known = example_schema(canary=table.canary), frozenset[str]()
    if earlier and (files := earlier.examples(table.dataset, table.split)):
        wanted = {row_digest(row) for _, _, row in _rows(release, table, cleared) if row}
        for each in keep_examples(files, schema, wanted):
            table.paths.append(_copy(each.file, out / PUBLISHED_EXAMPLES / table.dataset, out))
            known |= each.keys

    def new_rows() -> Iterator[tuple[Mapping[str, object], int]]:
        for example, images, row in _rows(release, table, cleared):
            if not row:
                cell = table.dataset, table.length
                written.left_out[cell] = written.left_out.get(cell, 0) + 1
                continue
            for digest, image in images:
                written.shown.setdefault(digest, image)
            table.rows += 1
            table.images += len(images)
            table.fills.append((example.tokens.text + example.tokens.image + example.reserve) / table.length)
            if not known or row_digest(row) not in known:
                yield row, sum(len(turn) for turn in _turns(example)) + len(str(row["record"]))

    path = _new_path(out, f"{PUBLISHED_EXAMPLES}/{table.dataset}/{table.split}")
    write_rows(out / path, schema, new_rows())
    if (out / path).exists():
        table.paths.append(path)
    return table


def _rows(
    release: Release, table: Table, cleared: Cleared
) -> Iterator[tuple[Example, list[tuple[str, str]], dict[str, object]]]:
    """Yield each example of a table, the (SHA-256, path) of its images, and its row, which is empty if the example may
    not be published.
    """
    metric, files = release.builder(table.dataset).spec.metric, release.lock.files
    for example in release.examples(table.dataset, table.length):
        if not cleared.is_published(table.dataset, example.file, example.id):
            yield example, [], {}
            continue
        images = []
        for image in example.prompt.images:
            if (locked := files.get(f"{IMAGES}/{image}")) is None:
                raise ReleaseError(f"{example.name}: image {image!r:.200} is not in the lock; see verify")
            images.append((locked.sha256, image))
        row = {**example_row(example, [digest for digest, _ in images]), "metric": metric}
        yield example, images, row | ({"canary": example.record.get("canary", "")} if table.canary else {})


def _turns(example: Example) -> list[str]:
    return [_text(turn) for turn in example.prompt.turns]


def _text(turn: Turn) -> str:
    return "".join(part if isinstance(part, str) else MARKER for part in turn.parts)


def example_row(example: Example, hashes: Sequence[str]) -> dict[str, object]:
    """Return an example as a row, without its metric; `hashes` are those of its images, in order."""
    return {
        "id": example.id,
        "roles": [turn.role for turn in example.prompt.turns],
        "turns": _turns(example),
        "images": list(hashes),
        "answer": json.dumps(example.answer, ensure_ascii=False),
        "answer_type": answer_type(example.answer),
        "file": example.file,
        "digest": example.digest,
        "record": to_json(example.record).decode().removesuffix("\n"),
        "depth": example.record.get("depth"),
        "permutation": example.record.get("permutation"),
        "length": example.length,
        "text_tokens": example.tokens.text,
        "image_tokens": example.tokens.image,
        "reserve": example.reserve,
    }


def described_columns(*, has_canary: bool) -> dict[str, str]:
    """Return what each column of a table of examples has, with or without a canary."""
    return {name: said for name, said in COLUMNS.items() if has_canary or name != "canary"}


def example_schema(*, canary: bool) -> "pa.Schema":
    """Return the columns of a table of examples."""
    import pyarrow as pa

    texts = (*TEXTS, *(("canary",) if canary else ()))
    return pa.schema(
        [
            ("id", pa.string()),
            *((name, pa.list_(pa.string())) for name in LISTS),
            *((name, pa.string()) for name in texts[1:]),
            ("depth", pa.float64()),
            *((name, pa.int64()) for name in NUMBERS),
        ]
    )


def _write_images(release: Release, name: str, images: Mapping[str, str], out: Path) -> list[ImageFile]:
    """Write images to as many files as they need."""
    left, files, numbers = list(images.items()), list[ImageFile](), count()
    while left:
        size, end = 0, 0
        while end < len(left) and size < FILE_BYTES:
            size += release.lock.files[f"{IMAGES}/{left[end][1]}"].bytes
            end += 1
        part, left = left[:end], left[end:]
        paths = (f"{PUBLISHED_IMAGES}/{name}-{number:05}.parquet" for number in numbers)
        file = ImageFile(next(path for path in paths if not (out / path).exists()), len(part), size)
        write_rows(out / file.path, picture_schema("sha256", "path"), _image_rows(release, part), is_packed=True)
        files.append(file)
    return files


def _image_rows(release: Release, images: Sequence[tuple[str, str]]) -> Iterator[tuple[Mapping[str, object], int]]:
    for digest, path in images:
        try:
            data = (release.path / IMAGES / path).read_bytes()
        except OSError as error:
            raise ReleaseError(f"{IMAGES}/{path}: cannot be read: {error.strerror}; see verify") from error
        if sha256(data).hexdigest() != digest:
            raise ReleaseError(f"{IMAGES}/{path}: is not the file of the lock; see `mmlongbench verify`")
        yield {"sha256": digest, "image": picture_of(data, digest, path), "path": path}, len(data)
