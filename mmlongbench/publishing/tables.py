"""Writes the tables of a publication: examples by dataset and length, and every image once, by its content.

An example names its images by their SHA-256. An image is in the table of the shortest length, and there of the first
dataset, that shows it, in the order in which it is first shown. So tables of longer lengths, or of later datasets, can
be added, and the files of the others stay as they are.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING

from mmlongbench.errors import ReleaseError
from mmlongbench.exports.row_groups import picture_of, picture_schema, write_rows
from mmlongbench.exports.writing import answer_type
from mmlongbench.io.progress import Progress
from mmlongbench.lengths import K
from mmlongbench.prompt import MARKER, Turn
from mmlongbench.publishing.clearing import Cleared
from mmlongbench.release.layout import IMAGES
from mmlongbench.release.opened import Example, Release

if TYPE_CHECKING:
    import pyarrow as pa

FILE_BYTES = 400 * 1024 * 1024
"""A file of images ends when it has so many bytes."""
DATA_FOLDER, IMAGE_FOLDER = "data", "images"
TEXTS = ("id", "answer", "answer_type", "metric", "file", "digest")
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

    path: str
    """The path below the folder of the publication."""
    dataset: str
    """The name of the dataset."""
    length: int
    """In tokens."""
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
    """The files of images, in the order in which images are first shown."""
    shown: dict[str, str] = field(default_factory=dict)
    """The path of each image in the release, by its SHA-256, in the order of the tables."""
    left_out: dict[tuple[str, int], int] = field(default_factory=dict)
    """How many examples are not published, by dataset and length."""


def write_tables(release: Release, out: Path, cleared: Cleared, progress: Progress) -> Tables:
    """Write all tables, the shortest length first.

    Raises:
        ReleaseError: an image is missing or is not the one of the lock, or nothing may be published.

    """
    written, canary = Tables(), release.lock.canary
    cells = [(length, dataset) for dataset in release.datasets for length in release.lengths(dataset)]
    with progress.bar("publish: tables", len(cells)) as advance:
        for length, dataset in sorted(cells, key=lambda cell: cell[0]):
            before = len(written.shown)
            table = _write_examples(release, dataset, length, out, cleared, written, canary)
            if table.rows:
                written.examples.append(table)
            new = dict(list(written.shown.items())[before:])
            written.images += _write_images(release, f"{table.split}-{dataset}", new, out)
            advance()
    if not written.examples:
        raise ReleaseError(f"{release.path.name}: no example may be published; `mmlongbench rights` says why")
    written.examples.sort(key=lambda table: (release.datasets.index(table.dataset), table.length))
    return written


def _write_examples(
    release: Release, dataset: str, length: int, out: Path, cleared: Cleared, written: Tables, canary: str
) -> Table:
    """Write the examples of a dataset at a length, and note the images that no table has yet."""
    table = Table(f"{DATA_FOLDER}/{dataset}/K{length // K}.parquet", dataset, length, canary=bool(canary))
    metric, files = release.builder(dataset).spec.metric, release.lock.files

    def rows() -> Iterator[tuple[Mapping[str, object], int]]:
        for example in release.examples(dataset, length):
            if not cleared.is_published(dataset, example.file, example.id):
                written.left_out[dataset, length] = written.left_out.get((dataset, length), 0) + 1
                continue
            hashes = []
            for image in example.prompt.images:
                if (locked := files.get(f"{IMAGES}/{image}")) is None:
                    raise ReleaseError(f"{example.name}: image {image!r:.200} is not in the lock; see verify")
                hashes.append(locked.sha256)
                written.shown.setdefault(locked.sha256, image)
            row = {**example_row(example, hashes), "metric": metric}
            row |= {"canary": example.record.get("canary", "")} if canary else {}
            table.rows += 1
            table.images += len(hashes)
            table.fills.append((example.tokens.text + example.tokens.image + example.reserve) / length)
            yield row, sum(len(turn) for turn in _turns(example))

    write_rows(out / table.path, example_schema(canary=bool(canary)), rows())
    return table


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
    left, files = list(images.items()), list[ImageFile]()
    while left:
        size, count = 0, 0
        while count < len(left) and size < FILE_BYTES:
            size += release.lock.files[f"{IMAGES}/{left[count][1]}"].bytes
            count += 1
        part, left = left[:count], left[count:]
        file = ImageFile(f"{IMAGE_FOLDER}/{name}-{len(files):05}.parquet", len(part), size)
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
