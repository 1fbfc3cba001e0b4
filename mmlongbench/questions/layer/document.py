"""A document as questions see it: its facts, captions and headings, and an index of its pages."""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

from mmlongbench.questions.layer.facts import Fact, PageFacts, TableName, facts_of, is_contents
from mmlongbench.questions.layer.index import PageIndex, normal, searched_texts
from mmlongbench.questions.layer.page import Box, Page, Region
from mmlongbench.questions.layer.titles import CAPTION, Caption, captions_of, parts_on
from mmlongbench.questions.layer.unread import OtherTexts

_NUMBERED = re.compile(r"(?P<number>\d{1,2}(\.\d{1,2}){0,3})\.?\s+(?P<text>[A-Z].{2,90})")
_PLAIN_CAPTIONS = ("Table", "Figure")
"""Words before the numbers of captions; others, such as `Exhibit`, are captions only if there is a number 1."""
_KINDS = ("section-header", "title")
_NO_OTHERS = OtherTexts({}, frozenset())


@dataclass(frozen=True)
class Heading:
    """A numbered heading that the layout and the fonts agree on."""

    page: int
    """The number of the page, from 1."""
    number: str
    """Its number, such as `5.2`."""
    text: str
    """The words after the number."""
    box: Box
    """Where it is."""


@dataclass(frozen=True)
class Document:
    """A document."""

    name: str
    """The name of the file without `.pdf`."""
    sha256: str
    """The SHA-256 of its bytes."""
    pages: tuple[Page, ...]
    """Its pages."""
    found: Mapping[int, PageFacts]
    """What the tables of each page give, by the number of the page."""
    captions: tuple[Caption, ...]
    """The captions that the layout and the lines agree on, without those of lists of tables and figures."""
    headings: tuple[Heading, ...]
    """The numbered headings."""
    plain_headings: tuple[Heading, ...]
    """Headings without a number that are on one page of the document alone; their `number` is empty."""
    losses: Mapping[str, int]
    """Why captions and headings were left out, with how many there were."""
    contents: frozenset[int]
    """The numbers of the pages that are tables of contents."""
    texts: tuple[str, ...]
    """The text of each page; that of a page whose layer is not read is from elsewhere (`unread.py`)."""
    searched: tuple[str, ...]
    """The text of each page in which phrases are searched."""
    unread: frozenset[int]
    """The numbers of the pages that show something that nobody can read; nothing can be claimed about them."""
    index: PageIndex
    """The texts of the pages."""

    @cached_property
    def facts(self) -> tuple[Fact, ...]:
        """The facts of all pages, in their order."""
        return tuple(fact for number in sorted(self.found) for fact in self.found[number].facts)

    @cached_property
    def tables_by_title(self) -> Mapping[str, frozenset[tuple[int, int]]]:
        """By the normal form of a title, the keys of all tables that have it, also of those without facts."""
        found: dict[str, set[tuple[int, int]]] = {}
        for each in self._names:
            found.setdefault(normal(each.title.words), set()).add(each.key)
        return {title: frozenset(keys) for title, keys in found.items()}

    @cached_property
    def _names(self) -> tuple[TableName, ...]:
        return tuple(each for number in sorted(self.found) for each in self.found[number].names)

    @cached_property
    def _pages_by_name(self) -> Mapping[str, frozenset[int]]:
        """By a name such as `table 3`, the pages on which a line begins a part of it; without tables of contents."""
        found: dict[str, set[int]] = {}
        for page in self.pages:
            if page.number not in self.contents:
                for name, _ in parts_on(page):
                    found.setdefault(normal(name), set()).add(page.number)
        return {name: frozenset(pages) for name, pages in found.items()}

    @cached_property
    def _runs_on(self) -> frozenset[int]:
        """The pages that end with a table where the next page begins with one: it may be a part of the same table."""
        return frozenset(
            one.number
            for one, two in pairwise(self.pages)
            if (last := _body(one)[-1:]) and (first := _body(two)[:1]) and last[0].kind == first[0].kind == "table"
        )

    def parts_of(self, table: TableName) -> frozenset[int]:
        """Return the pages that a table may be on: its own, those with the same name, and those it may run on to."""
        title = normal(table.title.words)
        found = {table.page}
        if title:
            found |= {page for page, _ in self.tables_by_title.get(title, ())}
        if table.title.by == "number":
            found |= self._pages_by_name.get(title, frozenset())
        for page in sorted(found):
            while page in self._runs_on:
                page += 1
                found.add(page)
        for page in sorted(found):
            while page - 1 in self._runs_on:
                page -= 1
                found.add(page)
        return frozenset(found)


def _body(page: Page) -> list[Region]:
    """Return the boxes of the layout from top to bottom, without headers, footers and footnotes of the page."""
    return [region for region in page.regions if region.kind not in ("page-header", "page-footer", "footnote")]


def document_of(name: str, sha256: str, pages: Sequence[Page], others: OtherTexts = _NO_OTHERS) -> Document:
    """Return the document with these pages; `others` has the texts of those whose layer is not read."""
    losses: Counter[str] = Counter()
    contents = frozenset(page.number for page in pages if is_contents(page))
    plain = [page for page in pages if page.number not in contents]
    captions = tuple(_captions(plain, losses))
    headings = tuple(_headings(plain, losses))
    found = {page.number: facts_of(page) for page in pages}
    texts = tuple(page.text or others.texts.get(page.number, "") for page in pages)
    searched = searched_texts(pages, others.texts)
    index = PageIndex(list(enumerate(searched, 1)))
    more = tuple(_plain_headings(plain, index, contents))
    of_layout = captions, headings, more, losses, contents
    return Document(name, sha256, tuple(pages), found, *of_layout, texts, searched, others.unread, index)


def _plain_headings(pages: Sequence[Page], index: PageIndex, contents: frozenset[int]) -> Iterator[Heading]:
    """Yield headings without a number: one line of 2 to 10 words, larger than running text, on one page alone."""
    body = _body_size(pages)
    for page in pages:
        for region in page.regions:
            text = page.text_in(region.box).strip(" :.")
            lines = [line for line in page.lines if region.box.holds(line.box.x, line.box.y, 1.0)]
            is_one = len(lines) == 1 and 2 <= len(text.split()) <= 10 and sum(map(str.isalpha, text)) >= 10
            if region.kind not in _KINDS or not is_one or _NUMBERED.fullmatch(text):
                continue
            is_large = lines[0].size > 1.15 * body
            if is_large and set(index.pages_with(text)) - contents == {page.number} and not any(map(str.isdigit, text)):
                yield Heading(page.number, "", text, region.box)


def _body_size(pages: Sequence[Page]) -> float:
    """Return the size of the font that most letters have."""
    sizes = Counter[float]()
    for page in pages:
        for line in page.lines:
            sizes[line.size] += len(line.text)
    return sizes.most_common(1)[0][0] if sizes else 0.0


def _captions(pages: Sequence[Page], losses: Counter[str]) -> Iterator[Caption]:
    """Yield captions whose number the layout finds once, and which the lines have on the same page and on no other."""
    of_layout = [caption for page in pages for caption in captions_of(page)]
    by_lines: dict[tuple[str, str], set[int]] = {}
    for page in pages:
        for line in page.lines:
            if found := CAPTION.match(line.text):
                kind = "Figure" if found["kind"] == "Fig." else found["kind"]
                by_lines.setdefault((kind, found["number"]), set()).add(page.number)
        for name, is_continued in parts_on(page):
            if is_continued:
                kind, _, number = name.partition(" ")
                by_lines.setdefault((kind, number), set()).add(page.number)
    counts = Counter((caption.kind, caption.number) for caption in of_layout)
    rare = {caption.kind for caption in of_layout} - set(_PLAIN_CAPTIONS)
    of_layout = [caption for caption in of_layout if caption.kind not in rare or (caption.kind, "1") in counts]
    for caption in of_layout:
        key = caption.kind, caption.number
        if counts[key] > 1:
            losses["caption-number-twice"] += 1
        elif by_lines.get(key) != {caption.page}:
            losses["caption-readers-disagree"] += 1
        else:
            yield caption


def _headings(pages: Sequence[Page], losses: Counter[str]) -> Iterator[Heading]:
    """Yield numbered headings: the layout calls the box one, and the line is bold or larger than running text."""
    body = _body_size(pages)
    found = []
    for page in pages:
        for region in page.regions:
            heading = _NUMBERED.fullmatch(page.text_in(region.box)) if region.kind in _KINDS else None
            if heading is None:
                continue
            lines = [line for line in page.lines if region.box.holds(line.box.x, line.box.y, 1.0)]
            is_capital = "".join(line.text for line in lines).isupper()
            if not is_capital and not all(line.is_bold or line.size > body + 0.4 for line in lines):
                losses["heading-readers-disagree"] += 1
                continue
            text = heading["text"].strip()
            found.append(Heading(page.number, heading["number"], text, region.box))
    counts = Counter(each.number for each in found)
    for each in found:
        if counts[each.number] > 1:
            losses["heading-twice"] += 1
        elif "." in each.text.strip(".") and each.text.rstrip(".").count(".") > 1:
            losses["heading-of-sentences"] += 1
        else:
            yield each
