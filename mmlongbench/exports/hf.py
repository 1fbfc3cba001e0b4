"""The target `hf`: a folder that `datasets.load_dataset` opens: one configuration a dataset, one split a length.

The folder is an image folder: a table for each dataset and length names the images by their paths below the folder, so
each image is there once, as a link, for all datasets and lengths. The tables are Parquet, because in JSON Lines a field
has no type where every value is empty.
"""

import json
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from mmlongbench.errors import ReleaseError
from mmlongbench.exports.target import Export, Exported, Target
from mmlongbench.exports.writing import Describing, answer_type, refuse_model, write_text
from mmlongbench.lengths import K
from mmlongbench.prompt import Prompt
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
PAGE = """
# {title}

```python
from datasets import load_dataset

data = load_dataset("DIR", "{dataset}", split="{split}")  # the path of this folder
data[0]["prompt"], data[0]["images"]
```

There is one configuration a dataset and one split a length (K = 1,024 tokens). Images are links to the release, each
once for all configurations and splits. To move the folder, copy it with `cp -rL`, which makes files of the links.

| column | meaning |
|---|---|
| `prompt` | the prompt; `<image>` stands for an image |
| `images` | the images, in the order of the prompt |
| `parts` | the prompt as JSON: turns with `role` and `content`; `{{"image": n}}` in it is `images[n]` |
| `answer`, `answer_type` | the answer as JSON, and its type: `text`, `number`, `list`, `object`, `boolean` or `none` |
| `metric` | the metric of `mmlongbench score` for this dataset |
| `file`, `id`, `depth`, `permutation` | the fields that name the example in a line of predictions |
| `digest` | the hash of prompt, images and answer, for a line of predictions |
| `length`, `text_tokens`, `image_tokens` | the length of the file, and the tokens of the prompt |
"""


class HuggingFace(Target):
    """A folder for `datasets.load_dataset`."""

    summary: ClassVar[str] = "a folder that datasets.load_dataset opens: a configuration a dataset, a split a length"

    def write(self, export: Export) -> Exported:
        """Write a table for each dataset and length, the links to the images, and the card."""
        refuse_model(export, "a dataset holds no requests")
        if export.images:
            raise ReleaseError(f"--images {export.images}: the images of this target are links; leave it out")
        if found := next((mark for mark in UNOPENED if mark in str(export.out)), ""):
            raise ReleaseError(f"--out: datasets opens no folder with {found!r} in its path; give another one")
        describe, written, images, total = Describing(export), list[_Table](), dict[str, None](), 0
        schema = _schema(has_images=any(example.prompt.images for example in export.examples()))
        for cell in export.cells:
            table = _write_table(export.out, cell, describe, schema)
            if table.rows:
                written.append(table)
                images.update(dict.fromkeys(table.images))
                total += table.rows
        _link(export, images)
        write_text(export.out / "README.md", _card(export, written))
        return Exported(total)


@dataclass(frozen=True, slots=True)
class _Table:
    """A table that was written."""

    dataset: str
    split: str
    file: str
    rows: int
    images: tuple[str, ...]


def _write_table(folder: Path, cell: Cell, describe: Describing, schema: "pa.Schema") -> _Table:
    """Write the table of a cell; a cell without examples gets no file."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    split = f"K{cell.length // K}"
    name = f"{cell.dataset}-{split}.parquet"
    images, rows, examples = dict[str, None](), 0, cell.examples()
    if not (first := list(islice(examples, ROWS))):
        return _Table(cell.dataset, split, name, 0, ())
    with pq.ParquetWriter(folder / name, schema, compression="zstd") as writer:
        while first:
            writer.write_table(pa.Table.from_pylist([_row(each, describe) for each in first], schema))
            images.update(dict.fromkeys(image for each in first for image in each.prompt.images))
            rows += len(first)
            first = list(islice(examples, ROWS))
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


def _row(example: Example, describe: Describing) -> dict[str, object]:
    described = describe(example)
    return {
        "id": example.id,
        "prompt": example.prompt.rendered(),
        NAMES: [f"{IMAGES}/{image}" for image in example.prompt.images],
        "images": [],  # the column of a folder without images
        "parts": json.dumps(_parts(example.prompt)),
        "answer": json.dumps(example.answer),
        "answer_type": answer_type(example.answer),
        "metric": described["metric"],
        "file": example.file,
        "digest": described["digest"],
        "depth": described.get("depth"),
        "permutation": described.get("permutation"),
        "length": example.length,
        "text_tokens": example.tokens.text,
        "image_tokens": example.tokens.image,
    }


def _parts(prompt: Prompt) -> Sequence[Mapping[str, object]]:
    """Return the turns of a prompt, in which images are numbers of the row's images."""
    number = iter(range(len(prompt.images)))
    return [
        {
            "role": turn.role,
            "content": [part if isinstance(part, str) else {"image": next(number)} for part in turn.parts],
        }
        for turn in prompt.turns
    ]


def _link(export: Export, images: Mapping[str, None]) -> None:
    """Make a link to each image, relative to the folder of the link."""
    source = (export.release.path / IMAGES).resolve()
    folder = export.out.resolve() / IMAGES
    for image in images:
        link = folder / image
        link.parent.mkdir(parents=True, exist_ok=True)
        link.symlink_to(os.path.relpath(source / image, link.parent))


def _card(export: Export, tables: Sequence[_Table]) -> str:
    """Return the card of the folder; its head says which files are a configuration and its splits."""
    import yaml

    by_dataset: dict[str, list[_Table]] = {}
    for table in sorted(tables, key=lambda table: not table.images):  # the first one tells how the folder is read
        by_dataset.setdefault(table.dataset, []).append(table)
    has_images = any(table.images for table in tables)
    configs = [_config(dataset, found, has_images=has_images) for dataset, found in by_dataset.items()]
    head = {"pretty_name": export.release.path.name, "configs": configs}
    first = tables[0]
    return f"---\n{yaml.safe_dump(head, sort_keys=False, allow_unicode=True)}---\n" + PAGE.format(
        title=export.release.path.name, dataset=first.dataset, split=first.split
    )


def _config(dataset: str, tables: Sequence[_Table], *, has_images: bool) -> dict[str, object]:
    files = [{"split": table.split, "path": [table.file, *_patterns(tables)]} for table in tables]
    names = {"drop_labels": True, "metadata_filenames": [table.file for table in tables]} if has_images else {}
    return {"config_name": dataset, **names, "data_files": files}


def _patterns(tables: Sequence[_Table]) -> list[str]:
    """Return patterns of the images of a dataset. The loader takes a folder for an image folder if most of the listed
    files are images, so the pattern of a single image is listed twice, beside the table.
    """
    images = {image for table in tables for image in table.images}
    paths = {f"{image.split('/')[0]}/**" if "/" in image else image for image in images}
    patterns = [f"{IMAGES}/{_literal(path)}" for path in sorted(paths)]
    return patterns * 2 if len(images) == 1 else patterns


def _literal(path: str) -> str:
    """Return a pattern for a path, in which characters that mean something in patterns stand for any character.

    >>> _literal("a[1]*/**")
    'a?1]?/**'
    """
    return re.sub(r"[?[{]|\*(?!\*?$)", "?", path)
