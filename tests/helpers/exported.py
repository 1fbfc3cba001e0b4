"""Reads exports back: what a model is shown, in texts and the bytes of images, and the tree of a folder."""

import base64
import hashlib
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from urllib.request import url2pathname

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
