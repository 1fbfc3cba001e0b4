"""Makes the examples of a card: a picture of the first images of an example, its question and its answer."""

import io
import json
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from mmlongbench.documents.pixels import thumbnail, unreadable
from mmlongbench.io.files import write_whole
from mmlongbench.publishing.clearing import Cleared
from mmlongbench.release.layout import IMAGES
from mmlongbench.release.release import Example, Release

FOLDER = "pictures"
EXAMPLES = 3
TILES = 4
"""The maximum number of images of an example that its picture shows."""
SIDE = 240
"""The width and height of a tile, in pixels."""
GAP = 8
MAX_PIXELS = 100_000_000
"""Larger images are not decoded for a picture."""
MAX_WORDS = 600
"""The maximum number of characters of a question or an answer."""


@dataclass(frozen=True, slots=True)
class Shown:
    """An example in a card."""

    dataset: str
    """The name of its dataset."""
    length: int
    """The length of its file, in tokens."""
    id: str
    """Its id."""
    picture: str
    """The path of its picture below the folder of the publication."""
    images: int
    """How many images the example has."""
    question: str
    """Its question, shortened if it is long."""
    answer: str
    """Its answer, in the same way."""


def write_pictures(release: Release, out: Path, cleared: Cleared) -> tuple[Shown, ...]:
    """Write pictures of the first examples with images at the shortest length of several datasets, those of different
    builders first. If fewer datasets have images than examples are shown, their next questions follow.
    """
    found: list[Shown] = []
    for example in _examples(release, cleared):
        if len(found) == EXAMPLES:
            break
        if data := contact_sheet([release.path / IMAGES / path for path in dict.fromkeys(example.prompt.images)]):
            path = f"{FOLDER}/{len(found) + 1}.jpg"
            write_whole(out / path, [data])
            answer = example.answer if isinstance(example.answer, str) else json.dumps(example.answer)
            said = (path, len(example.prompt.images), question_of(example), _short(answer))
            found.append(Shown(example.dataset, example.length, example.id, *said))
    return tuple(found)


def _examples(release: Release, cleared: Cleared) -> Iterator[Example]:
    """Yield the first question of each dataset, then the second of each, and so on; each question once."""
    left = [_with_images(release, dataset, cleared) for dataset in _varied(release)]
    while left:
        for examples in tuple(left):
            if (example := next(examples, None)) is None:
                left.remove(examples)
            else:
                yield example


def _varied(release: Release) -> list[str]:
    """Return the datasets: one of each builder, then the others."""
    builders = {str(data.get("name")): str(data.get("builder")) for data in release.lock.manifest}
    first: dict[str, str] = {}
    for name in release.datasets:
        first.setdefault(builders[name], name)
    return [*first.values(), *(name for name in release.datasets if name not in first.values())]


def _with_images(release: Release, dataset: str, cleared: Cleared) -> Iterator[Example]:
    """Yield the first example of each question that shows images, at the shortest length."""
    known = set[str]()
    for length in release.lengths(dataset)[:1]:
        for example in release.examples(dataset, length):
            is_new = example.prompt.images and example.id not in known
            if is_new and cleared.is_published(dataset, example.file, example.id):
                known.add(example.id)
                yield example


def contact_sheet(paths: Sequence[Path]) -> bytes:
    """Return the first images side by side as a JPEG; empty if none can be read."""
    from PIL import Image

    tiles = []
    for path in paths[:TILES]:
        with suppress(*unreadable()):
            tiles.append(Image.open(io.BytesIO(thumbnail(path.read_bytes(), SIDE, MAX_PIXELS))))
    if not tiles:
        return b""
    height = max(tile.height for tile in tiles)
    sheet = Image.new("RGB", (sum(tile.width for tile in tiles) + GAP * (len(tiles) - 1), height), "white")
    left = 0
    for tile in tiles:
        sheet.paste(tile, (left, 0))
        left += tile.width + GAP
    data = io.BytesIO()
    sheet.save(data, "JPEG", quality=80)
    return data.getvalue()


def question_of(example: Example) -> str:
    """Return the question of an example: the text after its context, or the end of its prompt."""
    outline = example.prompt.outline
    last = example.prompt.turns[-1].parts
    parts = outline.after if outline else last[-1:]
    text = " ".join("".join(part if isinstance(part, str) else " [image] " for part in parts).split())
    return _short(text.removeprefix("Question:").removesuffix("Answer:"), from_end=True)


def _short(text: str, *, from_end: bool = False) -> str:
    plain = " ".join(text.split())
    if len(plain) <= MAX_WORDS:
        return plain
    return f"… {plain[-MAX_WORDS:]}" if from_end else f"{plain[:MAX_WORDS]} …"
