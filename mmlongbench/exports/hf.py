"""The target `hf`: a folder that `datasets.load_dataset` opens: one configuration a dataset, one split a length.

The folder is an image folder: a table for each dataset and length names the images by their paths below the folder, so
each image is there once, as a link, for all datasets and lengths. The tables are Parquet, because in JSON Lines a field
has no type where every value is empty.
"""

import json
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, ClassVar

from mmlongbench.errors import ReleaseError
from mmlongbench.exports.target import Export, Exported, Target, answer_type
from mmlongbench.lengths import K
from mmlongbench.release.layout import IMAGES
from mmlongbench.release.release import Example
from mmlongbench.release.selection import Cell

if TYPE_CHECKING:
    import pyarrow as pa

NAMES = "images_file_names"
"""The column of paths that the loader of image folders replaces by the images."""
UNOPENED = ("[", "::")
"""What the path of a folder must not contain, because `datasets` reads it as a pattern or as a chain of URLs."""
ROWS = 100
"""The rows of a row group; so many examples are in memory at a time."""


@dataclass(frozen=True, slots=True)
class _Table:
    """A table that was written."""

    dataset: str
    split: str
    file: str
    rows: int
    images: tuple[str, ...]


class HuggingFace(Target):
    """A folder for `datasets.load_dataset`."""

    summary: ClassVar[str] = "a folder that datasets.load_dataset opens: a configuration a dataset, a split a length"
    image_forms: ClassVar[str] = ""
    image_advice: ClassVar[str] = "the images of this target are links; leave it out"
    without_model: ClassVar[str] = "a dataset holds no requests"

    def write(self, export: Export) -> Exported:
        """Write a table for each dataset and length, the links to the images, and the card."""
        import yaml

        if mark := next((mark for mark in UNOPENED if mark in str(export.out)), ""):
            raise ReleaseError(f"--out: datasets opens no folder with {mark!r} in its path; give another one")
        schema = _schema(has_images=any(example.prompt.images for example in export.examples()))
        tables = [table for cell in export.cells if (table := _write_table(export, cell, schema)).rows]
        images = dict.fromkeys(image for table in tables for image in table.images)
        source, folder = (export.release.path / IMAGES).resolve(), export.out.resolve() / IMAGES
        for image in images:
            link = folder / image
            link.parent.mkdir(parents=True, exist_ok=True)
            link.symlink_to(os.path.relpath(source / image, link.parent))
        by_dataset: dict[str, list[_Table]] = {}
        for table in sorted(tables, key=lambda table: not table.images):  # the first one tells how the folder is read
            by_dataset.setdefault(table.dataset, []).append(table)
        configs = [_config(name, found, has_images=bool(images)) for name, found in by_dataset.items()]
        title, first = export.release.path.name, tables[0]
        head = yaml.safe_dump({"pretty_name": title, "configs": configs}, sort_keys=False, allow_unicode=True)
        export.write_page("hf.md", head=f"---\n{head}---\n", title=title, dataset=first.dataset, split=first.split)
        return Exported(sum(table.rows for table in tables))


def _write_table(export: Export, cell: Cell, schema: "pa.Schema") -> _Table:
    """Write the table of a cell; a cell without examples gets no file."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    split = f"K{cell.length // K}"
    name = f"{cell.dataset}-{split}.parquet"
    images, rows, examples = dict[str, None](), 0, cell.examples()
    group = list(islice(examples, ROWS))
    if not group:
        return _Table(cell.dataset, split, name, 0, ())
    with pq.ParquetWriter(export.out / name, schema, compression="zstd") as writer:
        while group:
            writer.write_table(pa.Table.from_pylist([_row(example, export) for example in group], schema))
            images.update(dict.fromkeys(image for example in group for image in example.prompt.images))
            rows += len(group)
            group = list(islice(examples, ROWS))
    return _Table(cell.dataset, split, name, rows, tuple(images))


def _schema(*, has_images: bool) -> "pa.Schema":
    """Return the columns of every table. When an image folder is loaded, `images_file_names` becomes `images`; a folder
    without images is loaded as it is.
    """
    import pyarrow as pa

    texts = ("id", "prompt", "parts", "answer", "answer_type", "metric", "file", "digest")
    numbers = ("permutation", "length", "text_tokens", "image_tokens")
    return pa.schema(
        [
            *((name, pa.string()) for name in texts[:2]),
            (NAMES if has_images else "images", pa.list_(pa.string())),
            *((name, pa.string()) for name in texts[2:]),
            ("depth", pa.float64()),
            *((name, pa.int64()) for name in numbers),
        ]
    )


def _row(example: Example, export: Export) -> dict[str, object]:
    numbers = iter(range(len(example.prompt.images)))
    turns: Iterable[Mapping[str, object]] = [
        {
            "role": turn.role,
            "content": [part if isinstance(part, str) else {"image": next(numbers)} for part in turn.parts],
        }
        for turn in example.prompt.turns
    ]
    return {
        "id": example.id,
        "prompt": example.prompt.rendered(),
        NAMES: [f"{IMAGES}/{image}" for image in example.prompt.images],
        "images": [],  # the column of a folder without images
        "parts": json.dumps(turns),
        "answer": json.dumps(example.answer),
        "answer_type": answer_type(example.answer),
        "metric": export.metric(example.dataset),
        "file": example.file,
        "digest": example.digest,
        "depth": example.record.get("depth"),
        "permutation": example.record.get("permutation"),
        "length": example.length,
        "text_tokens": example.tokens.text,
        "image_tokens": example.tokens.image,
    }


def _config(dataset: str, tables: Sequence[_Table], *, has_images: bool) -> dict[str, object]:
    images = {image for table in tables for image in table.images}
    paths = {f"{image.split('/')[0]}/**" if "/" in image else image for image in images}
    patterns = [f"{IMAGES}/{_literal(path)}" for path in sorted(paths)]
    if len(images) == 1:
        # The loader takes a folder for an image folder if most of the listed files are images, so the pattern of a
        # single image is listed twice, beside the table.
        patterns *= 2
    files = [{"split": table.split, "path": [table.file, *patterns]} for table in tables]
    names = {"drop_labels": True, "metadata_filenames": [table.file for table in tables]} if has_images else {}
    return {"config_name": dataset, **names, "data_files": files}


def _literal(path: str) -> str:
    """Return a pattern for a path, in which characters that mean something in patterns stand for any character.

    >>> _literal("a[1]*/**")
    'a?1]?/**'
    """
    return re.sub(r"[?[{]|\*(?!\*?$)", "?", path)
