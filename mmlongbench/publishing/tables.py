"""Writes the tables of a publication: examples by dataset and length, and every image once, by its content.

An example names its images by their SHA-256. An image is in the table of the shortest length, and there of the first
dataset, that shows it, in the order in which it is first shown. So tables of longer lengths, or of later datasets with
other images, can be added, and the files of the others stay as they are. With an earlier publication, its tables stay
too if every row of them is wanted, and further files have the rest.
"""

import json
import shutil
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from hashlib import sha256
from itertools import chain, count
from pathlib import Path
from typing import TYPE_CHECKING

from mmlongbench.errors import ReleaseError
from mmlongbench.exports.row_groups import picture_of, picture_schema, write_rows
from mmlongbench.exports.target import answer_type
from mmlongbench.io.progress import Progress
from mmlongbench.lengths import K
from mmlongbench.prompt import MARKER
from mmlongbench.publishing.rights import Cleared
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
    """A table of examples that was written."""

    dataset: str
    length: int
    """In tokens."""
    paths: list[str] = field(default_factory=list)
    """The paths of its files below the folder of the publication; one, unless some are of an earlier publication."""
    rows: int = 0
    images: int = 0
    """How many images the examples show, each counted as often as it is shown."""
    fills: list[float] = field(default_factory=list)
    """(prompt + reserve) / length of each example."""

    @property
    def split(self) -> str:
        """The name of the split, such as `K8`."""
        return f"K{self.length // K}"

    @property
    def mean_fill(self) -> float:
        """The mean fill; 0 without examples."""
        return sum(self.fills) / len(self.fills) if self.fills else 0.0


@dataclass(slots=True)
class Tables:
    """All tables of a publication."""

    examples: list[Table] = field(default_factory=list)
    """Those of examples, in the order of the manifest, the shortest length first."""
    image_files: int = 0
    image_bytes: int = 0
    """The bytes of all images."""
    shown: dict[str, str] = field(default_factory=dict)
    """The path of each image in the release, by its SHA-256, in the order of the tables."""
    left_out: dict[tuple[str, int], int] = field(default_factory=dict)
    """How many examples are not published, by dataset and length."""


def write_tables(
    release: Release, out: Path, cleared: Cleared, progress: Progress, after: Path | None = None
) -> Tables:
    """Write all tables, the shortest length first; keep those of the publication `after` of which every row is wanted.

    Raises:
        ReleaseError: an image is missing or is not the one of the lock, a table of `after` cannot be read, or nothing
            may be published.

    """
    tables = Tables()
    cells = [(length, dataset) for dataset in release.datasets for length in release.lengths(dataset)]
    new_images: list[tuple[str, list[str]]] = []
    with progress.bar("publish: tables", 2 * len(cells)) as advance:
        for length, dataset in sorted(cells, key=lambda cell: cell[0]):
            before, table = len(tables.shown), Table(dataset, length)
            _write_examples(release, table, out, cleared, tables, after)
            if table.rows:
                tables.examples.append(table)
            new_images.append((f"{table.split}-{dataset}", list(tables.shown)[before:]))
            advance()
        kept = set[str]()
        for file, sizes in keep_images(after, tables.shown) if after else ():
            _copy(file, out / PUBLISHED_IMAGES, out)
            tables.image_files += 1
            tables.image_bytes += sum(sizes.values())
            kept |= sizes.keys()
        for name, digests in new_images:
            _write_images(release, name, [digest for digest in digests if digest not in kept], out, tables)
            advance()
    if not tables.examples:
        raise ReleaseError(f"{release.path.name}: no example may be published; `mmlongbench rights` says why")
    tables.examples.sort(key=lambda table: (release.datasets.index(table.dataset), table.length))
    return tables


def _copy(file: Path, folder: Path, out: Path) -> str:
    folder.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(file, folder / file.name)
    return (folder / file.name).relative_to(out).as_posix()


def _write_examples(
    release: Release, table: Table, out: Path, cleared: Cleared, tables: Tables, after: Path | None
) -> None:
    """Write the examples of a dataset at a length, and note the images that no table has yet."""
    schema, known = example_schema(canary=bool(release.lock.canary)), set[str]()
    folder = f"{PUBLISHED_EXAMPLES}/{table.dataset}"
    if after:
        earlier = (
            after / folder / f"{table.split}.parquet",
            *sorted((after / folder).glob(f"{table.split}-*.parquet")),
        )
        if files := list(filter(Path.is_file, earlier)):
            wanted = {row_digest(row) for _, _, row in _rows(release, table, cleared) if row}
            for file, digests in keep_examples(files, schema, wanted):
                table.paths.append(_copy(file, out / folder, out))
                known |= digests

    def new_rows() -> Iterator[tuple[Mapping[str, object], int]]:
        for example, images, row in _rows(release, table, cleared):
            if not row:
                cell = table.dataset, table.length
                tables.left_out[cell] = tables.left_out.get(cell, 0) + 1
                continue
            for digest, image in images:
                tables.shown.setdefault(digest, image)
            table.rows += 1
            table.images += len(images)
            table.fills.append((example.tokens.text + example.tokens.image + example.reserve) / table.length)
            if not known or row_digest(row) not in known:
                yield row, sum(len(turn) for turn in _turns(example)) + len(str(row["record"]))

    names = chain((f"{table.split}.parquet",), (f"{table.split}-{number:05}.parquet" for number in count(1)))
    path = next(path for path in (f"{folder}/{name}" for name in names) if not (out / path).exists())
    write_rows(out / path, schema, new_rows())
    if (out / path).exists():
        table.paths.append(path)


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
        row = {
            "id": example.id,
            "roles": [turn.role for turn in example.prompt.turns],
            "turns": _turns(example),
            "images": [digest for digest, _ in images],
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
            "metric": metric,
            **({"canary": example.record.get("canary", "")} if release.lock.canary else {}),
        }
        yield example, images, row


def _turns(example: Example) -> list[str]:
    turns = example.prompt.turns
    return ["".join(part if isinstance(part, str) else MARKER for part in turn.parts) for turn in turns]


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


def _write_images(release: Release, name: str, digests: Sequence[str], out: Path, tables: Tables) -> None:
    def rows(part: Sequence[str]) -> Iterator[tuple[Mapping[str, object], int]]:
        for digest in part:
            path = tables.shown[digest]
            try:
                data = (release.path / IMAGES / path).read_bytes()
            except OSError as error:
                raise ReleaseError(f"{IMAGES}/{path}: cannot be read: {error.strerror}; see verify") from error
            if sha256(data).hexdigest() != digest:
                raise ReleaseError(f"{IMAGES}/{path}: is not the file of the lock; see `mmlongbench verify`")
            yield {"sha256": digest, "image": picture_of(data, digest, path), "path": path}, len(data)

    numbers = count()
    while digests:
        size, end = 0, 0
        while end < len(digests) and size < FILE_BYTES:
            size += release.lock.files[f"{IMAGES}/{tables.shown[digests[end]]}"].bytes
            end += 1
        part, digests = digests[:end], digests[end:]
        paths = (out / PUBLISHED_IMAGES / f"{name}-{number:05}.parquet" for number in numbers)
        path = next(path for path in paths if not path.exists())
        write_rows(path, picture_schema("sha256", "path"), rows(part), is_packed=True)
        tables.image_files += 1
        tables.image_bytes += size


def keep_images(after: Path, wanted: Mapping[str, str]) -> Iterator[tuple[Path, dict[str, int]]]:
    """Yield the tables of images of an earlier publication of which every image is wanted, with the bytes of each image
    by its SHA-256. `wanted` has the path of each by its SHA-256.

    Raises:
        ReleaseError: a table cannot be read, or an image is not the one of its SHA-256.

    """
    known, schema = set[str](), picture_schema("sha256", "path")
    for file in sorted(filter(Path.is_file, (after / PUBLISHED_IMAGES).glob("*.parquet"))):
        sizes = dict[str, int]()
        for row in _stored_rows(file, schema):
            digest, path, image = str(row["sha256"]), str(row["path"]), row["image"]
            data = image.get("bytes") if isinstance(image, dict) else None
            data = data if isinstance(data, bytes) else b""
            is_wanted = wanted.get(digest) == path and image == picture_of(data, digest, path)
            if not is_wanted or digest in known or digest in sizes:
                break
            if sha256(data).hexdigest() != digest:
                raise ReleaseError(f"--after: {file}: image {digest} is damaged; give another publication")
            sizes[digest] = len(data)
        else:
            if sizes:
                known |= sizes.keys()
                yield file, sizes


def keep_examples(files: Sequence[Path], schema: "pa.Schema", wanted: Set[str]) -> Iterator[tuple[Path, Set[str]]]:
    """Yield the tables of which every row is wanted, with the digests of its rows (`row_digest`)."""
    known = set[str]()
    for file in files:
        rows = [row_digest(row) for row in _stored_rows(file, schema)]
        digests = set(rows)
        if digests and len(digests) == len(rows) and digests <= wanted and digests.isdisjoint(known):
            known |= digests
            yield file, digests


def row_digest(row: Mapping[str, object]) -> str:
    """Return a digest of all values of a row.

    >>> row_digest({"id": "a", "depth": 0}) == row_digest({"depth": 0.0, "id": "a"})
    True
    """
    values = {name: float(value) if type(value) is int else value for name, value in row.items()}
    return sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()


def _stored_rows(file: Path, schema: "pa.Schema") -> Iterator[dict[str, object]]:
    """Yield the rows of a table of an earlier publication; none if its schema is another one."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with pq.ParquetFile(file) as table:
            stored = table.schema_arrow
            # compared apart: with metadata, also the names of list elements, which Parquet changes, would have to agree
            if stored.equals(schema) and (stored.metadata or {}) == (schema.metadata or {}):
                for batch in table.iter_batches(32):
                    yield from batch.to_pylist()
    except (OSError, UnicodeDecodeError, pa.ArrowException) as error:
        raise ReleaseError(f"--after: {file}: cannot be read as Parquet: {error}; give another publication") from error
