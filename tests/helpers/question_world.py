"""A world of drawn PDFs, and models that write and answer questions about it from what is on the wire alone.

Every page has a place with a table, a paragraph and sometimes a figure. A model answers a question rightly if the
pictures of all pages that hold the answer are in the request, and only then. Authors plant a defect into some drafts;
which one depends on the page and the number of the draft.
"""

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from mmlongbench.draws import Draws

ROWS = ("Barges", "Ferries")
SEASONS = ("Summer", "Winter")
OFFICES = ("keeper", "pilot", "mason", "clerk")
COLOURS = (
    *("ochre", "teal", "maroon", "violet", "amber", "cobalt", "olive"),
    *("coral", "ivory", "umber", "cerise", "indigo", "russet", "lilac"),
)
FILLER = (
    "The harbour lies behind a long mole of rough stone, and small boats wait there for the turn of the tide. Fishers "
    "mend their nets in the lee of the sheds, while carters bring salt, rope and timber from the inland road. In the "
    "evening the lamps along the quay are lit one after the other, and the bell of the watch house tells the hours. "
    "Nobody remembers who laid the first stones, but every spring the gaps are closed before the herring come."
)
_SYLLABLES = (
    "bar",
    "cel",
    "dun",
    "fir",
    "gol",
    "hem",
    "jor",
    "kel",
    "lum",
    "mor",
    "nev",
    "pol",
    "quin",
    "ros",
    "sul",
    "tam",
)


def name(*key: str | int) -> str:
    """A drawn name that is the same for the same key."""
    draws = Draws(("world", *key))
    return "".join(draws.choice(f"{n}", _SYLLABLES) for n in range(4)).capitalize()


def number(low: int, high: int, *key: str | int) -> int:
    return Draws(("world", *key)).integer("number", low, high)


@dataclass(frozen=True)
class Fact:
    """A question that the world can answer."""

    question: str
    answers: tuple[str, ...]
    format: str
    pages: tuple[int, ...]
    sources: tuple[str, ...]
    quote: str = ""
    is_computed: bool = False
    echo: int = 0
    """Another page that alone gives the answer."""


@dataclass(frozen=True)
class Doc:
    """A document of the world."""

    name: str
    pages: int
    has_tables: bool = True

    @property
    def years(self) -> tuple[int, ...]:
        """The years of its tables; other documents have others."""
        first = 1950 + 6 * number(0, 9, "years", self.name)
        return tuple(range(first, first + 4))

    def echoed(self, page: int) -> int:
        """The page whose warden is named on a page, too."""
        return (page + self.pages - 3) % self.pages + 1

    def place(self, page: int) -> str:
        return f"{name(self.name, page)} {name('bay', self.name, page)}"

    def value(self, page: int, season: str, row: str, year: int) -> int:
        return number(1100, 9899, self.name, page, season, row, year)

    def person(self, page: int, office: str) -> str:
        return f"{name(self.name, page, office)} {name('family', self.name, page, office)}"

    def depth(self, page: int, colour: str) -> int:
        return number(100, 999, "depth", self.name, page, colour)

    def has_figure(self, page: int) -> bool:
        return page % 2 == 0

    def cell(self, page: int, n: int) -> Fact:
        season, row, year = SEASONS[n % 2], ROWS[n // 2 % 2], self.years[(n // 4 + page) % 4]
        value = str(self.value(page, season, row, year))
        question = f"How many {row.lower()} called at {self.place(page)} in the {season.lower()} of {year}?"
        return Fact(question, (value,), "Integer", (page,), ("Table",), f"{row} {value}")

    def office(self, page: int, n: int) -> Fact:
        if n % 6 == 4:
            tide = f"{number(101, 989, self.name, page, 'tide') / 100:.2f}"
            return Fact(
                f"What is the mean tide of {self.place(page)} in fathoms?", (tide,), "Float", (page,), ("Text",), tide
            )
        if n % 6 == 5:
            signals = tuple(name(self.name, page, "signal", k) for k in range(3))
            question = f"Which three signals are flown at {self.place(page)} in a storm?"
            return Fact(question, signals, "List", (page,), ("Text",), ", ".join(signals))
        office = OFFICES[n % 6]
        person = self.person(page, office)
        return Fact(
            f"Who is the {office} of {self.place(page)} on the long mole?",
            (person,),
            "String",
            (page,),
            ("Text",),
            person,
        )

    def warden(self, page: int) -> Fact:
        """A fact that stands on two pages."""
        person = self.person(page, "warden")
        echo = (page + 1) % self.pages + 1
        return Fact(
            f"Who is the warden of {self.place(page)} since the flood?",
            (person,),
            "String",
            (page,),
            ("Text",),
            person,
            echo=echo,
        )

    def partial(self, page: int) -> Fact:
        """A list of which the next page has one element more, as only models see."""
        whole = self.office(page, 5)
        question = f"Which signals are flown for {self.place(page)} in all of its harbours?"
        return Fact(question, whole.answers[:2], "List", (page,), ("Text",), whole.quote)

    def bar(self, page: int, n: int) -> Fact:
        colour = COLOURS[n % 14]
        question = f"What depth does the {colour} bar of the figure about {self.place(page)} have?"
        return Fact(question, (str(self.depth(page, colour)),), "Integer", (page,), ("Chart",))

    def difference(self, page: int, n: int) -> Fact:
        season, row, year = SEASONS[n % 2], ROWS[n // 2 % 2], self.years[(n // 4 + page) % 4]
        values = [self.value(each, season, row, year) for each in (page, page + 1)]
        question = (
            f"By how much do the {row.lower()} at {self.place(page)} and at {self.place(page + 1)} differ in the "
            f"{season.lower()} of {year}?"
        )
        answer = str(abs(values[0] - values[1]))
        return Fact(
            question, (answer,), "Integer", (page, page + 1), ("Table",), f"{values[0]} {values[1]}", is_computed=True
        )

    def draw(self, path: Path) -> None:
        """Write the PDF; the bytes are the same every time."""
        import pymupdf

        with pymupdf.open() as document:
            for page in range(1, self.pages + 1):
                self._draw(document.new_page(width=420, height=595), page)
            document.save(path, no_new_id=True)

    def _draw(self, sheet: Any, page: int) -> None:
        sheet.insert_text((40, 40), f"{self.place(page)} and its harbour", fontsize=14)
        people = [
            f"The {office} of {self.place(page)} is {self.person(page, office)}." for office in (*OFFICES, "warden")
        ]
        other = self.echoed(page)
        echo = [f"Since the flood the warden of {self.place(other)} is {self.person(other, 'warden')}."]
        tide, signals = self.office(page, 4).answers[0], self.office(page, 5).answers
        facts = [*people, *echo, f"Its mean tide is {tide} fathoms.", f"In a storm it flies {', '.join(signals)}."]
        text = " ".join([FILLER, *facts])
        sheet.insert_textbox((40, 60, 380, 260), text, fontsize=8)
        if self.has_tables:
            self._table(sheet, page)
        if self.has_figure(page):
            sheet.insert_text((40, 430), f"Figure {page}: depths at {self.place(page)}", fontsize=8)
            for n, colour in enumerate(COLOURS):
                for part in range(8):
                    sheet.draw_rect(
                        (40 + 25 * n, 440 + part * 2, 46 + 25 * n + self.depth(page, colour) % 15, 442 + part * 2)
                    )
        sheet.insert_text((200, 580), str(page), fontsize=8)

    def _table(self, sheet: Any, page: int) -> None:
        sheet.insert_text((40, 280), f"Table {page}: calls at {self.place(page)}", fontsize=8)
        for at, year in enumerate(self.years):
            sheet.insert_text((140 + 60 * at, 295), str(year), fontsize=8)
        y = 310
        for season in SEASONS:
            sheet.insert_text((40, y), season, fontsize=8)
            for row in ROWS:
                y += 14
                sheet.insert_text((50, y), row, fontsize=8)
                for at, year in enumerate(self.years):
                    sheet.insert_text((140 + 60 * at, y), str(self.value(page, season, row, year)), fontsize=8)
            y += 16


@dataclass
class Asked:
    """A question that an author wrote, and how models behave about it."""

    fact: Fact
    doc: str
    defect: str = ""


@dataclass
class World:
    """The documents, and what was asked about them."""

    docs: Sequence[Doc]
    folder: Path
    pictures: Path
    """The folder of pictures of pages that the command keeps."""
    defects: Sequence[str] = ()
    """The names of defects in the order in which drafts have them; empty strings are clean drafts."""
    is_first_clean: bool = True
    """Whether the first draft of each page and kind is clean, so that others can repeat it."""
    noise: float = 0.0
    """How often a model misreads a page."""
    asked: dict[str, Asked] = field(default_factory=dict)
    """What was asked, by the words of the question."""
    drafts: dict[tuple[str, int, str, int], str] = field(default_factory=dict)
    """The defects of drafts, by document, page, kind and number."""
    _seen: dict[str, tuple[str, int]] = field(default_factory=dict)

    @classmethod
    def drawn(cls, folder: Path, docs: Sequence[Doc], out: Path, **more: Any) -> "World":
        folder.mkdir(parents=True, exist_ok=True)
        for doc in docs:
            doc.draw(folder / f"{doc.name}.pdf")
        return cls(docs, folder, out / ".kept" / "pictures", **more)

    @cached_property
    def by_name(self) -> Mapping[str, Doc]:
        return {doc.name: doc for doc in self.docs}

    @cached_property
    def by_hash(self) -> Mapping[str, str]:
        return {
            hashlib.sha256((self.folder / f"{doc.name}.pdf").read_bytes()).hexdigest()[:16]: doc.name
            for doc in self.docs
        }

    def page_of(self, picture: str) -> tuple[str, int]:
        """The document and page of a picture, by its bytes."""
        if picture not in self._seen:
            for path in sorted(self.pictures.rglob("[0-9]*.jpg")):
                doc = self.by_hash[path.parent.name.partition("-")[0]]
                self._seen.setdefault(hashlib.sha256(path.read_bytes()).hexdigest(), (doc, int(path.stem)))
        return self._seen[picture]

    def fact(self, doc: Doc, page: int, n: int, kind: str) -> Fact:
        if kind == "cross":
            return doc.difference(min(page, doc.pages - 1), n)
        return {"table": doc.cell, "figure": doc.bar, "text": doc.office}[kind](page, n)


def plain_words(text: str) -> str:
    return " ".join(re.findall(r"\w+", text.casefold()))


def draft_of(fact: Fact) -> dict[str, Any]:
    return {
        "reason": "because",
        "question": fact.question,
        "answers": list(fact.answers),
        "answer_format": fact.format,
        "evidence_pages": list(fact.pages),
        "sources": list(fact.sources),
        "quote": fact.quote,
        "is_computed": fact.is_computed,
    }
