"""What the checks of exports by other loaders share: the examples of a release, right and wrong predictions, counts."""

import hashlib
import json
import sys
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import mmlongbench as mm

Sequence = list[tuple[str, str]]
"""The parts of a prompt: ("text", the text) or ("image", the path below `mmlb_image/`)."""


@dataclass
class Truth:
    """The examples of a release by key, and what was compared with them."""

    release: Path
    tasks: list[Path] = field(default_factory=lambda: [Path(task).resolve() for task in sys.argv[3:]])
    """The task files of the release: every check is given them after RELEASE and OUT."""
    examples: dict[str, mm.Example] = field(default_factory=dict)
    counts: Counter[str] = field(default_factory=Counter)
    faults: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        opened = mm.open_release(self.release, tasks=self.tasks)
        self.files = opened.lock.files
        for dataset in opened.datasets:
            for length in opened.lengths(dataset):
                self.examples |= {named(each.key): each for each in opened.examples(dataset, length)}

    def of(self, key: Mapping[str, object]) -> mm.Example:
        """The example with a key; each is read back once."""
        name = named(key)
        self.counts["examples read back"] += 1
        self.counts[f"of {name}"] += 1
        if self.counts[f"of {name}"] > 1:
            self.faults.append(f"{name}: read back twice")
        return self.examples[name]

    def image(self, path: str) -> str:
        """The hash of an image of the release."""
        return self.files[f"mmlb_image/{path}"].sha256

    def same(self, what: str, where: str, found: object, expected: object) -> None:
        """Count a comparison, and keep what differs."""
        self.counts[what] += found == expected
        if found != expected:
            self.faults.append(f"{where}: {what}: expected {expected!r:.300}, found {found!r:.300}")

    def end(self, loader: str, out: Path, seconds: float) -> None:
        """Print one line of figures, and end the process with an error if something differed."""
        figures = {name: count for name, count in self.counts.items() if not name.startswith("of ")}
        written = [path for path in out.rglob("*") if path.is_file() and not path.is_symlink()]
        images = sum(path.stat().st_size for path in written if path.suffix in (".jpg", ".jpeg", ".png", ".webp"))
        figures |= {"of the release": len(self.examples), "bytes of images copied": images}
        print(f"{loader}: {', '.join(f'{name} {count}' for name, count in figures.items())}, {seconds:.0f} s")  # noqa: T201
        for fault in self.faults[:20]:
            print(fault)  # noqa: T201
        raise SystemExit(1 if self.faults else 0)


def named(key: Mapping[str, object]) -> str:
    """The key of an example as one text."""
    return json.dumps({name: key[name] for name in ("file", "id", "depth", "permutation") if name in key})


def sequence_of(example: mm.Example) -> Sequence:
    """The parts of an example's prompt."""
    parts = example.prompt.parts
    return [("text", part) if isinstance(part, str) else ("image", part.path) for part in parts]


def turns_of(
    example: mm.Example, image: Callable[[str], str], text: Callable[[str], str] = str
) -> list[tuple[str, list[str]]]:
    """The turns of an example's prompt: the speaker, the texts and what `image` says of each image."""
    return [
        (turn.role, [text(part) if isinstance(part, str) else image(part.path) for part in turn.parts])
        for turn in example.prompt.turns
    ]


def gold_of(example: mm.Example) -> str:
    """A prediction that gives the answer."""
    gold: object = example.answer
    while isinstance(gold, list):
        gold = gold[0]
    return "ABCDEFGH"[gold] if isinstance(gold, int) and "image" in example.dataset else str(gold)


def pixels_of(release: Path) -> Callable[[str], str]:
    """A function that returns the digest of the pixels of an image of the release."""
    from PIL import Image

    @cache
    def pixels(path: str) -> str:
        with Image.open(release / "mmlb_image" / path) as picture:
            return digest_of(picture.convert("RGB"))

    return pixels


def digest_of(picture: Any) -> str:
    """The size of a picture and a hash of its pixels."""
    return f"{picture.size} {hashlib.blake2b(picture.tobytes(), digest_size=16).hexdigest()}"
