"""Reads exports back: what a model is shown, in texts and the bytes of images, and the tree of a folder."""

import base64
import hashlib
import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from urllib.request import url2pathname

import pyarrow.parquet as pq

import mmlongbench as mm

Shown = list[str | bytes]
"""Texts, and the bytes of images, in reading order."""


MIXED = ("mmlongdoc", "text_mmlongdoc", "viquae", "vh_multi", "food101")
"""Of the families: pages, texts alone, six depths, three permutations, and a task with two public files."""


def every_example(release: Path, datasets: Sequence[str] = ()) -> Iterator[mm.Example]:
    """All examples of a release or of some of its datasets, in its order."""
    opened = mm.open_release(release)
    for dataset in opened.datasets:
        if not datasets or dataset in datasets:
            for length in opened.lengths(dataset):
                yield from opened.examples(dataset, length)


def sequence_of(example: mm.Example) -> list[tuple[str, str]]:
    """The parts of a prompt: ("text", the text) or ("image", its path below `mmlb_image/`)."""
    return [("text", part) if isinstance(part, str) else ("image", part.path) for part in example.prompt.parts]


def shown(release: Path, example: mm.Example) -> Shown:
    """What an example shows a model."""
    parts = example.prompt.parts
    return [part if isinstance(part, str) else (release / "mmlb_image" / part.path).read_bytes() for part in parts]


def read_back(messages: Iterable[Mapping[str, Any]]) -> Shown:
    """What messages show a model; images are fetched as a server would."""
    parts = [part for message in messages for part in message["content"]]
    return [part["text"] if part["type"] == "text" else fetched(part["image_url"]["url"]) for part in parts]


def fetched(url: str) -> bytes:
    """The bytes behind a URL of a file, or in a data URI."""
    if url.startswith("data:"):
        return base64.b64decode(url.partition(",")[2], validate=True)
    parts = urlsplit(url)
    assert (parts.scheme, parts.netloc, parts.query, parts.fragment) == ("file", "", "", "")
    return Path(url2pathname(parts.path)).read_bytes()


def tree(folder: Path) -> dict[str, str]:
    """Every file below a folder: the hash of its bytes, or where it leads if it is a link."""
    paths = (Path(root, name) for root, _, names in os.walk(folder) for name in names)
    return {
        str(path.relative_to(folder)): str(path.readlink())
        if path.is_symlink()
        else hashlib.sha256(path.read_bytes()).hexdigest()
        for path in paths
    }


def renamed(release: Path, to: Path, old: str, new: str) -> Path:
    """A copy of a release in which a part of every image's path is another."""
    for path in (path for path in release.rglob("*") if path.is_file()):
        target = to / str(path.relative_to(release)).replace(old, new)
        target.parent.mkdir(parents=True, exist_ok=True)
        data = path.read_bytes()
        target.write_bytes(data.replace(old.encode(), new.encode()) if path.suffix in (".json", ".jsonl") else data)
    return to


def read_images(folder: Path) -> dict[str, bytes]:
    """The images of a publication by their SHA-256; each is there once."""
    rows = [row for path in sorted((folder / "images").iterdir()) for row in pq.read_table(path).to_pylist()]
    assert len({row["sha256"] for row in rows}) == len(rows)
    return {row["sha256"]: row["image"]["bytes"] for row in rows}


def check_rows(
    release: Path, rows: list[dict[str, Any]], images: Mapping[str, bytes], datasets: Sequence[str] = ()
) -> None:
    """Compare all rows of a publication, in any order, with the examples of a release."""
    examples = {(each.file, each.id, each.digest): each for each in every_example(release, datasets)}
    assert len(rows) == len(examples)
    for row in rows:
        example, left, found = examples.pop((row["file"], row["id"], row["digest"])), iter(row["images"]), Shown()
        for turn in row["turns"]:
            head, *others = turn.split("<image>")
            found += [head, *(part for text in others for part in (images[next(left)], text))]
        assert [part for part in found if part] == shown(release, example)
        assert row["roles"] == [turn.role for turn in example.prompt.turns]
        assert json.loads(row["answer"]) == example.answer
        key = {name: row[name] for name in ("file", "id", "depth", "permutation") if row[name] is not None}
        assert key == example.key
        assert (row["length"], row["reserve"]) == (example.length, example.reserve)


def croissant_rows(data: Any, name: str) -> list[dict[str, Any]]:
    """The records of mlcroissant, in which texts are bytes, as rows."""

    def text(value: Any) -> Any:
        if isinstance(value, list):
            return [text(each) for each in value]
        return value.decode() if isinstance(value, bytes) else value

    records = data.records(name)
    return [{key.removeprefix(f"{name}/"): text(value) for key, value in record.items()} for record in records]
