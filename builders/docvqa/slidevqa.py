"""SlideVQA (Tanaka et al. 2023, arXiv:2301.04883): questions over decks of slides, which are image files.

`questions` is a split of `annotations/qa`. `decks` is a folder such as `images/test`, which holds the files
`<deck_name>/<slug>-<page from 1>-1024.jpg`. Released images keep these names, because public loaders expect them.
"""

import re
from collections.abc import Iterator, Mapping
from itertools import islice
from pathlib import Path, PurePosixPath
from typing import ClassVar

from builders.docvqa.rows import DocumentQuestion, clean, format_of, strings_of
from mmlongbench.task import (
    Fault,
    PageImages,
    Pages,
    RawRow,
    Reader,
    Row,
    RowFault,
    SourceError,
    SourcePaths,
    file_inside,
    json_lines,
    raw_row,
)

_SLIDE = re.compile(r"(.+)-(\d+)-\d+\.(?:jpe?g|png)", re.IGNORECASE)
_SAFE = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,150}")


class SlideVQA(Reader[DocumentQuestion]):
    """SlideVQA: decks of twenty slides."""

    row_type: ClassVar[type[Row]] = DocumentQuestion
    sources: ClassVar[tuple[str, ...]] = ("questions", "decks")
    source_forms: ClassVar[Mapping[str, str]] = {
        "questions": (
            "JSON Lines, one split of `annotations/qa`; a line has deck_name, question, answer and "
            "evidence_pages (from 1), and may have reasoning_type and image_urls."
        ),
        "decks": (
            "A folder such as `images/test`, with a folder for each deck that holds `<name>-<page from "
            "1>-1024.jpg` or `.png` files."
        ),
    }
    image_folder: ClassVar[str] = "slideVQA"
    fixed_fields: ClassVar[tuple[str, ...]] = ("image_urls",)

    def raw_rows(self, sources: SourcePaths) -> Iterator[RawRow | RowFault]:
        """Yield each row of the source; its id is `slideVQA_<row>`, from 0."""
        path = sources["questions"]
        for number, (line, _, raw) in enumerate(json_lines(path)):
            yield raw_row(f"slideVQA_{number}", raw, path.name, f"line {line}")

    def row(self, raw: RawRow, sources: SourcePaths) -> DocumentQuestion | Fault:
        """Return one row cleaned; the answer's format is derived from the answer."""
        fields = raw.fields
        strings = strings_of(fields, ("deck_name", "question"))
        if isinstance(strings, Fault):
            return strings
        answer = fields.get("answer")
        return clean(
            raw.id,
            strings["deck_name"],
            strings["question"],
            answer,
            format_of(answer),
            fields.get("evidence_pages"),
            question_type=str(fields.get("reasoning_type") or ""),
        )

    def documents(self, sources: SourcePaths) -> Mapping[str, Pages | Fault]:
        """Return the decks, each with its slides in order. A deck is refused if it lacks a slide that the questions
        about it name. If these questions name no slides, the slides must have all numbers from 1, each number once.
        """
        folder = sources["decks"]
        if not folder.is_dir():
            raise SourceError(
                Fault(
                    "unreadable-source",
                    "a folder of decks",
                    "a file",
                    folder.name,
                    todo="give the folder that holds the decks",
                )
            )
        named = _named_slides(sources["questions"])
        decks = sorted(path for path in folder.iterdir() if path.is_dir() and not path.name.startswith("."))
        return {deck.name: _deck(deck, folder, named.get(deck.name, ())) for deck in decks}


def _named_slides(questions: Path) -> dict[str, tuple[str, ...]]:
    """Return the file names of each deck's slides, in order, from `image_urls` of the deck's first question that has
    them.
    """
    found: dict[str, tuple[str, ...]] = {}
    for _, _, raw in json_lines(questions):
        if isinstance(raw, Fault):
            continue
        urls = raw.get("image_urls")
        if urls and isinstance(urls, list) and all(isinstance(url, str) for url in urls):
            found.setdefault(str(raw.get("deck_name")), tuple(PurePosixPath(url.split("?")[0]).name for url in urls))
    return found


def _deck(deck: Path, root: Path, named: tuple[str, ...]) -> PageImages | Fault:
    """Return the slides of a deck: the slides that the questions name (`named`) or, if `named` is empty, all slides in
    the deck's folder. Return a fault if a slide is missing. If `named` is empty, two slides must not have one number.
    """
    there = {
        path.name
        for path in deck.iterdir()
        if _SLIDE.fullmatch(path.name) and file_inside(root, path.relative_to(root))
    }
    if not named:
        numbered: dict[int, str] = {}
        for name in sorted(there):
            number = _number(name)
            if numbered.setdefault(number, name) != name:
                both = f"{numbered[number]}, {name}"
                return Fault("two-slides-of-one-number", "one file a slide", both, deck.name, todo="remove one")
        count = max(numbered, default=0)
        lacking = (f"slide {number}" for number in range(1, count + 1) if number not in numbered)
        named = () if (missing := list(islice(lacking, 5))) else tuple(numbered[n] for n in sorted(numbered))
    else:
        missing = [name for name in named if name not in there][:5]
    if missing or not named:
        found = f"no {', '.join(missing)}" if missing else "no slide"
        return Fault("missing-pages", f"all slides of {deck.name}", found, deck.name, todo="fetch them")
    released = tuple(_released(name, deck.name, number) for number, name in enumerate(named, 1))
    return PageImages(tuple(deck / name for name in named), released)


def _number(name: str) -> int:
    """Return a slide's number, from 1, from its file's name; 0 for any other name."""
    match = _SLIDE.fullmatch(name)
    return int(match[2]) if match and len(match[2]) < 9 else 0


def _released(name: str, deck: str, number: int) -> str:
    """Return a slide's name in the release: `name`, the name of its file, if loaders accept this name and the name has
    the slide's number; otherwise a name made from the deck and the number.
    """
    if _number(name) == number and _SAFE.fullmatch(name):
        return name
    slug = re.sub(r"[^A-Za-z0-9]+", "-", deck).strip("-").lower()[:100] or "deck"
    return f"{slug}-{number}-1024.jpg"
