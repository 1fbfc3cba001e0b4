"""A world of drawn PDFs, and models that write and answer questions about it from what is on the wire alone.

Every page has a place with a table, a paragraph and sometimes a figure. A model answers a question rightly if the
pictures of all pages that hold the answer are in the request, and only then. Authors plant a defect into some drafts;
which one depends on the page and the number of the draft.
"""

import hashlib
import re
from collections.abc import Callable, Mapping, Sequence
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
        season, row, year = SEASONS[n % 2], ROWS[n // 2 % 2], self.years[n // 4 % 4]
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
        season, row, year = SEASONS[n % 2], ROWS[n // 2 % 2], self.years[n // 4 % 4]
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


Plant = Callable[["World", Doc, int, int, Fact], dict[str, Any]]
"""Changes a draft: the world, the document, the page, the number of the draft, the clean fact."""


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

    def defect_at(self, doc: str, page: int, n: int, kind: str) -> str:
        """The defect of a draft."""
        fitting = [each for each in self.defects if not each or kind in DEFECTS[each].kinds]
        if (n == 0 and self.is_first_clean) or not fitting:
            return ""
        return Draws(("defect", doc, page, kind)).choice(str(n), fitting)

    def fact(self, doc: Doc, page: int, n: int, kind: str) -> Fact:
        if kind == "cross":
            return doc.difference(min(page, doc.pages - 1), n)
        return {"table": doc.cell, "figure": doc.bar, "text": doc.office}[kind](page, n)


@dataclass(frozen=True)
class Defect:
    """A planted defect: which kinds of drafts can have it, and the reasons for which it may be caught."""

    kinds: str
    caught: tuple[str, ...]
    plant: Plant = lambda world, doc, page, n, fact: {}


def plain_words(text: str) -> str:
    return " ".join(re.findall(r"\w+", text.casefold()))


def _other_value(world: World, doc: Doc, page: int, n: int, fact: Fact) -> dict[str, Any]:
    """Another value that stands on the page, too."""
    return {"answers": [doc.office(page, (n + 1) % 4).answers[0]]}


DEFECTS: Mapping[str, Defect] = {
    "page off by one": Defect(
        "text",
        ("evidence-page-elsewhere",),
        lambda w, d, p, n, f: {"evidence_pages": [p + 1 if p < d.pages else p - 1]},
    ),
    "invented answer": Defect("text", ("ungrounded",), lambda w, d, p, n, f: {"answers": ["Zebulon Crakehall"]}),
    "known without the document": Defect("table", ("answerable-without-document",)),
    "two rows fit": Defect(
        "table",
        ("qualifier-missing",),
        lambda w, d, p, n, f: {"question": re.sub(r" in the (summer|winter) of", " in", f.question)},
    ),
    "asked twice": Defect(
        "table",
        ("duplicate",),
        lambda w, d, p, n, f: _again(w, d, p, f, lambda text: text.upper().replace("?", " ?")),
    ),
    "asked in other words": Defect(
        "text",
        ("near-duplicate",),
        lambda w, d, p, n, f: _again(w, d, p, f, lambda text: f"On the long mole of {d.place(p)}, who acts as keeper?"),
    ),
    "long answer": Defect(
        "text", ("long-form-answer",), lambda w, d, p, n, f: {"answers": ["he who has kept the long mole there"]}
    ),
    "no JSON": Defect("table figure", ("invalid-reply",)),
    "refusal": Defect("table figure", ("refusal",)),
    "page out of range": Defect(
        "table figure", ("page-out-of-range",), lambda w, d, p, n, f: {"evidence_pages": [999]}
    ),
    "page not shown": Defect(
        "table figure", ("page-not-shown",), lambda w, d, p, n, f: {"evidence_pages": [(p + 4) % d.pages + 1]}
    ),
    "answer in the question": Defect(
        "text",
        ("answer-in-question",),
        lambda w, d, p, n, f: {"question": f"Is it {f.answers[0]} who serves {d.place(p)}?"},
    ),
    "points at the page": Defect(
        "table figure",
        ("deictic",),
        lambda w, d, p, n, f: {"question": f.question.replace("?", ", according to this page?")},
    ),
    "preamble": Defect(
        "table", ("preamble",), lambda w, d, p, n, f: {"question": f"Okay, my question would be {f.question}"}
    ),
    "two questions": Defect(
        "text", ("several-questions",), lambda w, d, p, n, f: {"question": f"{f.question} And where does he live?"}
    ),
    "about the file": Defect(
        "text",
        ("document-meta",),
        lambda w, d, p, n, f: {"question": f"How many pages of the document name {d.place(p)}?"},
    ),
    "empty list": Defect("text", ("empty-answer",), lambda w, d, p, n, f: {"answers": [], "answer_format": "List"}),
    "wrong answer of the page": Defect("text", ("evidence-insufficient",), _other_value),
    "one page of two": Defect(
        "cross",
        ("evidence-insufficient", "ungrounded"),
        lambda w, d, p, n, f: {"evidence_pages": [f.pages[0]], "quote": f.quote.split()[0]},
    ),
    "one page suffices": Defect(
        "cross",
        ("shortcut",),
        lambda w, d, p, n, f: {**draft_of(d.cell(f.pages[0], 8 + n % 8)), "evidence_pages": list(f.pages)},
    ),
    "on another page, too": Defect("text", ("evidence-elsewhere",), lambda w, d, p, n, f: draft_of(d.warden(p))),
    "in another document, too": Defect("table figure", ("document-independent",)),
    "of a benchmark": Defect(
        "text",
        ("benchmark-question",),
        lambda w, d, p, n, f: {"question": benchmark_question(d, p).replace("old ", "")},
    ),
    "not of the type": Defect("table figure", ("checklist-type",)),
    "does not need it": Defect("table", ("checklist-need",)),
    "unclear": Defect("table figure", ("checklist-clear",)),
    "too easy": Defect("table figure", ("checklist-difficulty",)),
    "checklist in prose": Defect("table figure", ("invalid-reply",)),
    "list not complete": Defect("text", ("incomplete-answer",), lambda w, d, p, n, f: draft_of(d.partial(p))),
    "readers differ": Defect("table", ("ambiguous",)),
    "readers agree on another": Defect("table", ("answers-disagree",)),
    "judges contradict": Defect("table figure", ("judges-contradict",)),
    "low grades": Defect("table figure", ("low-grade",)),
}
"""All defects of drafts; those of edits are in `edit_of`."""
EDIT_DEFECTS = {
    "answered after all": "answerable-after-all",
    "two changes": "not-a-minimal-edit",
    "year of the document": "qualifier-in-document",
}


def benchmark_question(doc: Doc, page: int) -> str:
    return (
        f"Who has been the old harbour mason at {doc.place(page)} in all the years since the great autumn storm came?"
    )


def _again(world: World, doc: Doc, page: int, fact: Fact, say: Callable[[str], str]) -> dict[str, Any]:
    """The first question of the page and kind once more."""
    first = doc.cell(page, 0) if fact.sources == ("Table",) else doc.office(page, 0)
    return {**draft_of(first), "question": say(first.question)}


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
