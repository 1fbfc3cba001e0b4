"""The text on the pages of the sample's reports: declared facts, and filler from a small grammar.

This module does not know questions or positions on a page. Filler never looks like a fact: its numbers have at most two
digits before one decimal, and its names are the report's own nouns.
"""

from collections import Counter
from collections.abc import Iterator
from itertools import count
from typing import Literal, NamedTuple

from pydantic import BaseModel, ConfigDict

from mmlongbench.task import Draws

Form = Literal["text", "table", "bars", "line", "flow", "list", "box"]
Colour = tuple[float, float, float]

# a list of words is easier to read with several words on each line
# fmt: off
CHAPTERS = (
    "Background and scope", "Approach and method", "Findings by area", "Costs and staffing", "Risks and controls",
    "Consultation", "Quality of the data", "Partners and contracts", "Training and safety", "Equipment and stores",
    "Work in progress", "Lessons from earlier years", "Environment and neighbours",
)
ACTORS = (
    "the steering group", "field staff", "the review panel", "local partners", "the finance team",
    "visiting auditors", "the advisory board", "the technical office", "two working groups", "the project manager",
)
ACTS = (
    "reviewed", "revised the plan for", "reported on", "set priorities for", "compared notes on",
    "published guidance on", "raised questions about", "kept close records of", "agreed new targets for",
    "visited sites to check", "held a hearing on",
)
LINKS = (
    "followed", "depended on", "helped to explain", "went hand in hand with", "kept pace with", "set limits on",
    "drew attention to", "gained from", "called for changes in", "bore on", "made room for", "came second to",
)
OPENERS = (
    "In the first half of the period", "By the end of the season", "As in earlier years", "On the whole",
    "In practice", "At most sites", "After the mid-term review", "For the second year running",
    "Under the revised plan", "In the wider programme", "Where records allow a comparison", "With few exceptions",
)
TAILS = (
    "over the reporting period", "in most of the areas studied", "as the panel had expected",
    "although the effect was small", "within the agreed margin", "once the summer checks were complete",
    "with no change in cost", "for reasons given below", "before the new rules came into force",
    "at little extra expense", "despite a late start", "in all but two cases",
)
ORDERS = (
    "Review", "Publish", "Simplify", "Share", "Set a yearly target for", "Name one person in charge of", "Recheck",
    "Budget for",
)
# fmt: on


class Fact(BaseModel):
    """Something on one page: a sentence, or an exhibit with a caption."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    page: int
    form: Form
    text: str
    """For a sentence, its words, with {0} and {1} for the cells of the row. For a box, the words in it; its row has the
    title. For any other exhibit, the caption."""
    rows: tuple[tuple[str, ...], ...]
    columns: tuple[str, ...] = ()
    """The header of a table."""


class Report(BaseModel):
    """One document: its subject, its look, and the facts it must contain."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    name: str
    title: str
    subtitle: str
    publisher: str
    kind: str
    paper: Literal["letter", "a4", "slide"]
    pages: int
    accent: Colour
    nouns: tuple[str, ...]
    """The nouns of its prose, each with its article if it needs one."""
    facts: dict[str, Fact]
    """The facts, at most one on a page, none before the first body page."""
    columns: int = 1
    serif: bool = False


class Leaf(NamedTuple):
    """The content of a body page before it is drawn."""

    number: int
    heading: str
    opens: bool
    """Whether a chapter begins here."""
    exhibit: Fact | None
    label: str
    sentence: str | None


def upper(text: str) -> str:
    """Return the text with a capital first letter."""
    return text[:1].upper() + text[1:]


def write_sentence(nouns: tuple[str, ...], draws: Draws) -> str:
    """Return one plausible sentence about the report's nouns; each template of `varied` is drawn twice as often as a
    template of `fixed`.
    """
    one, two, three = draws.order("nouns", nouns)[:3]
    opener, tail = draws.choice("opener", OPENERS), draws.choice("tail", TAILS)
    actor, act, link = draws.choice("actor", ACTORS), draws.choice("act", ACTS), draws.choice("link", LINKS)
    share, before = draws.integer("share", 31, 60), draws.integer("before", 11, 30)
    varied = (
        f"{opener}, {actor} {act} {one}, {tail}.",
        f"{upper(one)} {link} {two}, {tail}.",
        f"{upper(actor)} {act} {one} and found that {two} {link} {three}.",
        f"{opener}, {one} {link} {two}; {actor} {act} both.",
        f"{opener}, {actor} {act} {one}; no change to {two} is foreseen.",
    )
    fixed = (
        f"About {share} per cent of the effort went into {one}, against {before} per cent for {two}.",
        f"A fuller account of {one} is kept by {actor}.",
        f"The aim for the next period is to bring {one} into line with {two}.",
    )
    return draws.choice("shape", (*varied, *varied, *fixed))


def write_paragraphs(nouns: tuple[str, ...], sentence: str | None, draws: Draws) -> Iterator[list[str]]:
    """Yield paragraphs without end, as lists of sentences; the given sentence is the second one in the first
    paragraph.
    """
    for index in count():
        here = draws.at("paragraph", index)
        length = here.integer("length", 3, 6)
        sentences = [write_sentence(nouns, here.at("sentence", place)) for place in range(length)]
        yield [sentences[0], sentence, *sentences[1:]] if index == 0 and sentence else sentences


def fill_exhibit(report: Report, page: int, draws: Draws) -> Fact | None:
    """Return a table, chart or list that no question asks about; None for about half of the pages."""
    form: Form | None = draws.choice("form", ("table", "bars", "line", "list", None, None, None, None))
    one, *others = (upper(noun.removeprefix("the ")) for noun in draws.order("exhibit nouns", report.nouns))
    if form is None:
        return None
    if form == "list":
        items = zip(draws.order("orders", ORDERS), draws.order("list nouns", report.nouns), strict=False)
        rows = tuple((f"{order} {noun}",) for order, noun in items)[:4]
        return Fact(page=page, form=form, text=f"Recommendations on {one.lower()}", rows=rows)
    labels = ("Spring", "Summer", "Autumn", "Winter") if form == "line" else tuple(others[:4])
    numbers = [f"{draws.integer(f'whole {i}', 11, 95)}.{draws.integer(f'tenth {i}', 1, 9)}" for i in range(8)]
    caption = f"{one}, index by {'season' if form == 'line' else 'area'}"
    if form != "table":
        return Fact(page=page, form=form, text=caption, rows=tuple(zip(labels, numbers[:4], strict=True)))
    pairs = tuple(zip(labels, numbers[:4], numbers[4:], strict=True))
    return Fact(page=page, form=form, text=caption, rows=pairs, columns=("Area", "Plan", "Actual"))


def plan_leaves(report: Report, draws: Draws) -> list[Leaf]:
    """Return the content of every page after the title page and the contents, in order."""
    facts = {fact.page: fact for fact in report.facts.values()}
    chapters = ["Summary", *draws.order("chapters", CHAPTERS)]
    leaves: list[Leaf] = []
    chapter, section, exhibits = 0, 0, Counter[str]()
    for number in range(first_body_page(report), report.pages + 1):
        here = draws.at("page", number)
        fact = facts.get(number)
        opens = not leaves or section >= here.integer("chapter length", 1, 3)
        chapter, section = (chapter + 1, 0) if opens else (chapter, section + 1)
        noun = draws.at("chapter", chapter).order("section nouns", report.nouns)[section]
        heading = f"{chapter}  {chapters[(chapter - 1) % len(chapters)]}"
        heading = heading if opens else f"{chapter}.{section}  {upper(noun.removeprefix('the '))}"
        exhibit = fact if fact and fact.form != "text" else fill_exhibit(report, number, here)
        word = {"table": "Table", "bars": "Figure", "line": "Figure", "flow": "Figure"}.get(
            exhibit.form if exhibit else ""
        )
        exhibits[word or ""] += 1
        label = f"{word} {exhibits[word]}. " if word else ""
        sentence = fact.text.format(*fact.rows[0]) if fact and fact.form == "text" else None
        leaves.append(Leaf(number, heading, opens, exhibit, label, sentence))
    return leaves


def first_body_page(report: Report) -> int:
    """Return the number of the first page after the title page and, in a longer report, after the contents."""
    return 3 if report.pages >= 10 and report.paper != "slide" else 2
