"""SlideVQA (Tanaka et al. 2023, arXiv:2301.04883): questions over decks of slides, which are image files.

The authors' repository has a split of `annotations/qa` and a folder such as `images/test`, which holds the files
`<deck_name>/<slug>-<page from 1>-1024.jpg`. The hub has Parquet files, in which every row repeats the slides of its
deck (see `slide_tables`). A deck may lack slides: the others keep their numbers.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path, PurePosixPath
from typing import ClassVar

from builders.common.splits import PARQUET, split_files
from builders.docvqa.rows import DocumentQuestion, clean, format_of, strings_of
from builders.docvqa.slide_names import SLIDE, released_name, slide_number
from builders.docvqa.slide_tables import PAGES, table_questions, write_pages, written_decks
from mmlongbench.task import (
    Fault,
    Options,
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

_MAX_MISSING = 100
"""If more slides of a deck are missing, the deck is refused, because its slides are numbered wrongly."""
_NAME = 100
"""How many characters of a deck's name a message has."""
_SHOWN = 5
"""How many slides or decks a message lists."""


class SlideVQA(Reader[DocumentQuestion]):
    """SlideVQA: decks of twenty slides."""

    row_type: ClassVar[type[Row]] = DocumentQuestion
    sources: ClassVar[tuple[str, ...]] = ("questions",)
    optional_sources: ClassVar[tuple[str, ...]] = ("decks",)
    source_forms: ClassVar[Mapping[str, str]] = {
        "questions": (
            "JSON Lines, one split of `annotations/qa`, or the hub's Parquet files: a folder of them, or one file. "
            "A row has deck_name, question, answer and evidence_pages (from 1), and may have reasoning_type and "
            "image_urls; a row of Parquet has the slides, too, as page_1 to page_20. If the names of a folder's "
            "files name several splits, `test` is read."
        ),
        "decks": (
            "A folder such as `images/test`, with a folder for each deck that holds `<name>-<page from "
            "1>-1024.jpg` or `.png` files; not needed with Parquet files."
        ),
    }
    image_folder: ClassVar[str] = "slideVQA"
    extracted_from: ClassVar[Mapping[str, str]] = {PAGES: "questions"}
    hub_files: ClassVar[tuple[str, ...]] = ("data/test-*.parquet",)
    fixed_fields: ClassVar[tuple[str, ...]] = ("image_urls",)

    def raw_rows(self, sources: SourcePaths) -> Iterator[RawRow | RowFault]:
        """Yield each row of the source; its id is `slideVQA_<row>`, from 0."""
        for number, (file, place, raw) in enumerate(_questions(sources["questions"])):
            yield raw_row(f"slideVQA_{number}", raw, file, place)

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

    def extract(self, sources: SourcePaths, folder: Path) -> None:
        """Write the slides in Parquet files as files, each deck once, unless the manifest gives the decks."""
        if "decks" not in sources and _is_table(sources["questions"]):
            write_pages(sources["questions"], folder / PAGES)

    def documents(self, sources: SourcePaths) -> Mapping[str, Pages | Fault]:
        """Return the decks, each with its slides in order.

        The slides of a deck are those that the questions about it name. If these questions name no slides, they are all
        in the deck's folder, and have numbers from 1, each number once. A deck may lack slides, but not all of them.
        """
        if PAGES in sources:
            return written_decks(sources[PAGES])
        if "decks" not in sources:
            expected = "source.decks: a folder with a folder of slides for each deck"
            name = sources["questions"].name
            todo = "set it, or give the hub's Parquet files as source.questions"
            raise SourceError(Fault("missing-source", expected, "none", name, todo=todo))
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

    def notes(self, sources: SourcePaths, options: Options) -> Sequence[str]:
        """Return which split is read, and which decks lack slides."""
        questions = sources["questions"]
        notes = split_files(questions).notes if _is_table(questions) else ()
        lacking = {
            deck: found.missing
            for deck, found in self.documents(sources).items()
            if isinstance(found, PageImages) and found.missing
        }
        if not lacking:
            return notes
        listed = ", ".join(f"{deck[:_NAME]} ({_numbers(missing)})" for deck, missing in islice(lacking.items(), _SHOWN))
        more = " …" if len(lacking) > _SHOWN else ""
        return (*notes, f"slides that the source lacks are shown in no context: {listed}{more}")


def _numbers(missing: Sequence[int]) -> str:
    """Return the numbers of missing slides, from 1, such as `3, 7 …`."""
    return ", ".join(str(number + 1) for number in missing[:_SHOWN]) + (" …" if len(missing) > _SHOWN else "")


def _is_table(questions: Path) -> bool:
    return questions.is_dir() or questions.suffix.lower() == PARQUET


def _questions(path: Path) -> Iterator[tuple[str, str, dict[str, object] | Fault]]:
    """Yield (file, place, fields) of each row."""
    if _is_table(path):
        yield from table_questions(path)
    else:
        yield from ((path.name, f"line {line}", raw) for line, _, raw in json_lines(path))


def _named_slides(questions: Path) -> dict[str, tuple[str, ...]]:
    """Return the file names of each deck's slides, in order, from `image_urls` of the deck's first question that has
    them.
    """
    found: dict[str, tuple[str, ...]] = {}
    for _, _, raw in _questions(questions):
        if isinstance(raw, Fault):
            continue
        urls = raw.get("image_urls")
        if urls and isinstance(urls, list) and all(isinstance(url, str) for url in urls):
            found.setdefault(str(raw.get("deck_name")), tuple(PurePosixPath(url.split("?")[0]).name for url in urls))
    return found


def _deck(deck: Path, root: Path, named: tuple[str, ...]) -> PageImages | Fault:
    """Return the slides of a deck: the slides that the questions name (`named`) or, if `named` is empty, all slides in
    the deck's folder. Return a fault if no slide is there, or too many are missing. If `named` is empty, two slides
    must not have one number.
    """
    there = {
        path.name for path in deck.iterdir() if SLIDE.fullmatch(path.name) and file_inside(root, path.relative_to(root))
    }
    if named:
        numbered = {number: name for number, name in enumerate(named, 1) if name in there}
    else:
        numbered = {}
        for name in sorted(there):
            number = slide_number(name)
            if numbered.setdefault(number, name) != name:
                both = f"{numbered[number]}, {name}"
                return Fault("two-slides-of-one-number", "one file a slide", both, deck.name, todo="remove one")
        if 0 in numbered:
            return Fault("slide-number", "slides numbered from 1", numbered[0], deck.name, todo="number them from 1")
    count = len(named) or max(numbered, default=0)
    if not numbered or count - len(numbered) > _MAX_MISSING:
        lacking = (number for number in range(1, count + 1) if number not in numbered)
        missing = [named[number - 1] if named else f"slide {number}" for number in islice(lacking, _SHOWN)]
        found = f"no {', '.join(missing)}" if missing else "no slide"
        return Fault("missing-pages", f"slides of {deck.name}", found, deck.name, todo="fetch them")
    present = [(number, numbered[number]) for number in range(1, count + 1) if number in numbered]
    return PageImages(
        tuple(deck / name for _, name in present),
        tuple(released_name(name, deck.name, number) for number, name in present),
        missing=tuple(number - 1 for number in range(1, count + 1) if number not in numbered),
    )
