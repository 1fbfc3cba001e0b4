"""Questions about the layout: captions, numbered headings, the pages on which they are, and counts over pages."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence

from mmlongbench.draws import Draws
from mmlongbench.questions.layer.candidate import Candidate, Mark
from mmlongbench.questions.layer.document import Document, Heading
from mmlongbench.questions.layer.index import normal
from mmlongbench.questions.layer.titles import Caption
from mmlongbench.questions.question import Source

FIRST_WORDS = 8
"""How many words of a caption are quoted."""
_SOURCES: dict[str, tuple[Source, ...]] = {"Table": ("Table",), "Exhibit": ("Table",)}


def caption_numbers(document: Document, draws: Draws) -> Iterator[Candidate]:
    """Yield: which table or figure has the caption that begins with these words?"""
    for caption in document.captions:
        words = first_words(caption)
        if words and len(document.index.pages_with(words)) == 1:
            name = f"{caption.kind} {caption.number}"
            yield Candidate(
                "caption-number",
                f"Which {caption.kind.lower()} has a caption that begins with “{words}”? Answer with its name and "
                "number.",
                name,
                (caption.page,),
                _SOURCES.get(caption.kind, ("Figure",)),
                (Mark(caption.page, name, caption.box, "answer"),),
                ((words,),),
                (caption.number,),
                slots=(f"caption {name}",),
            )


def caption_pages(document: Document, draws: Draws) -> Iterator[Candidate]:
    """Yield: on which page is the table or figure with this number?"""
    for caption in document.captions:
        name = f"{caption.kind} {caption.number}"
        yield _page(
            "caption-page",
            f"On which page of the document is {name} with its caption? Count the pages from 1.",
            caption.page,
            Mark(caption.page, name, caption.box, "caption"),
            (name, first_words(caption)),
            f"caption {name}",
        )


def caption_counts(document: Document, draws: Draws) -> Iterator[Candidate]:
    """Yield: how many numbered tables or figures are there on some pages? The numbers run on from 1."""
    for kind, captions in _complete(document).items():
        if len(captions) < 3:
            continue
        first = draws.integer(f"first {kind}", 0, len(captions) - 3)
        last = draws.integer(f"last {kind}", first + 1, min(len(captions) - 1, first + 4))
        pages = captions[first].page, captions[last].page
        inside = [caption for caption in captions if pages[0] <= caption.page <= pages[1]]
        if pages[0] < pages[1] and len({caption.page for caption in inside}) <= 4:
            yield Candidate(
                "caption-count",
                f"How many {kind.lower()}s with a numbered caption are there on pages {pages[0]} to {pages[1]} of the "
                "document? Count the pages from 1.",
                str(len(inside)),
                tuple(sorted({caption.page for caption in inside})),
                _SOURCES.get(kind, ("Figure",)),
                tuple(Mark(c.page, f"{c.kind} {c.number}", c.box, "operand") for c in inside),
                tuple((f"{c.kind} {c.number}", first_words(c)) for c in inside if first_words(c)),
                derived="count",
                slots=(f"captions {kind}",),
            )


def caption_headings(document: Document, draws: Draws) -> Iterator[Candidate]:
    """Yield: under which numbered heading is a table or figure? Heading and caption are on one page."""
    for caption in document.captions:
        above = [h for h in document.headings if h.page == caption.page and h.box.y1 <= caption.box.y0]
        same_column = [h for h in above if h.box.x0 <= caption.box.x1 and h.box.x1 >= caption.box.x0]
        page = document.pages[caption.page - 1]
        is_one_column = not any(
            region.box.x1 < page.raw.size[0] * 0.55 and region.kind == "text" and region.box.x1 - region.box.x0 > 100
            for region in page.regions
        )
        if not above or above != same_column or not is_one_column:
            continue
        heading = max(above, key=lambda each: each.box.y0)
        name = f"{caption.kind} {caption.number}"
        yield Candidate(
            "heading-of-caption",
            f"On the page with {name}, which is the last numbered heading above it? Answer with its number.",
            heading.number,
            (caption.page,),
            ("Layout",),
            (
                Mark(caption.page, name, caption.box, "caption"),
                Mark(heading.page, heading.number, heading.box, "answer"),
            ),
            ((name, heading.number),),
            (f"{heading.number} {heading.text}",),
            slots=(f"caption {name}",),
        )


def heading_titles(document: Document, draws: Draws) -> Iterator[Candidate]:
    """Yield: what is the title of the section with this number?"""
    for heading in runs(document):
        if len(heading.text.split()) <= 8:
            yield Candidate(
                "heading-title",
                f"What is the title of section {heading.number} of the document?",
                heading.text.strip(" ."),
                (heading.page,),
                ("Layout",),
                (Mark(heading.page, f"{heading.number} {heading.text}", heading.box, "answer"),),
                ((f"{heading.number} {heading.text}",),),
                (f"{heading.number} {heading.text.strip(' .')}",),
                slots=(f"heading {heading.number}",),
            )


def heading_numbers(document: Document, draws: Draws) -> Iterator[Candidate]:
    """Yield: which number has the section with this title?"""
    titles = Counter(normal(heading.text) for heading in document.headings)
    for heading in runs(document):
        if titles[normal(heading.text)] > 1:
            continue
        yield Candidate(
            "heading-number",
            f"What is the number of the section with the title “{heading.text.strip(' .')}”?",
            heading.number,
            (heading.page,),
            ("Layout",),
            (Mark(heading.page, f"{heading.number} {heading.text}", heading.box, "answer"),),
            ((f"{heading.number} {heading.text}",),),
            (f"Section {heading.number}",),
            slots=(f"heading {heading.number}",),
        )


def heading_pages(document: Document, draws: Draws) -> Iterator[Candidate]:
    """Yield: on which page does this section begin?"""
    for heading in runs(document):
        title = f"{heading.number} {heading.text.strip(' .')}"
        yield _page(
            "heading-page",
            f"On which page of the document does the section “{title}” begin? Count the pages from 1.",
            heading.page,
            Mark(heading.page, title, heading.box, "heading"),
            (title,),
            f"heading {heading.number}",
        )


def plain_heading_pages(document: Document, draws: Draws) -> Iterator[Candidate]:
    """Yield: on which page is this heading? It has no number, and its words are on no other page."""
    for heading in document.plain_headings:
        yield _page(
            "heading-page",
            f"On which page of the document is the heading “{heading.text}”? Count the pages from 1.",
            heading.page,
            Mark(heading.page, heading.text, heading.box, "heading"),
            (heading.text,),
            f"heading {heading.text}",
        )


def subsections(document: Document, draws: Draws) -> Iterator[Candidate]:
    """Yield: how many numbered subsections has a section? The section and the one after it have headings, too.

    A heading that is not found makes the count wrong, so the checks want 1, 2, … n without a gap, and want the lines of
    the pages to have the same numbers.
    """
    numbers = {heading.number for heading in document.headings}
    parents = defaultdict(list)
    for heading in document.headings:
        if parent := heading.number.rpartition(".")[0]:
            parents[parent].append(heading)
    for parent, children in parents.items():
        after = [*parent.split(".")[:-1], str(int(parent.split(".")[-1]) + 1)]
        pages = tuple(sorted({child.page for child in children}))
        if parent in numbers and ".".join(after) in numbers and len(children) >= 2 and len(pages) <= 4:
            yield Candidate(
                "subsection-count",
                f"How many numbered subsections ({parent}.1, {parent}.2, …) does section {parent} of the document "
                "have?",
                str(len(children)),
                pages,
                ("Layout",),
                tuple(Mark(c.page, f"{c.number} {c.text}", c.box, "operand") for c in children),
                tuple((f"{c.number} {c.text}",) for c in children),
                derived="count",
                slots=(f"subsections {parent}",),
                notes={"subsections": " ".join(sorted((c.number for c in children), key=_place))},
            )


def _place(number: str) -> list[int]:
    return [int(part) for part in number.split(".")]


def first_words(caption: Caption) -> str:
    """Return the first words of a caption; empty if there are too few to tell it apart."""
    sentence = caption.text.split(". ")[0].strip(" .:")
    words = sentence.split()[:FIRST_WORDS]
    return " ".join(words).strip(" .:,;“”\"'(") if len(words) >= 3 else ""


def runs(document: Document) -> Iterator[Heading]:
    """Yield the headings whose numbers run on: each has a predecessor (2 before 3, 4.1 before 4.2) or begins a run."""
    numbers = {heading.number for heading in document.headings}
    for heading in document.headings:
        *above, last = heading.number.split(".")
        before = ".".join([*above, str(int(last) - 1)])
        after = ".".join([*above, str(int(last) + 1)])
        if (last != "0" and before in numbers) or (last == "1" and after in numbers):
            yield heading


def complete_captions(document: Document) -> dict[str, list[Caption]]:
    """Return the captions of each kind whose numbers are 1, 2, … n in the order of pages, without a gap."""
    return _complete(document)


def _complete(document: Document) -> dict[str, list[Caption]]:
    by_kind: dict[str, list[Caption]] = defaultdict(list)
    for caption in document.captions:
        by_kind[caption.kind].append(caption)
    return {
        kind: captions
        for kind, captions in by_kind.items()
        if [caption.number for caption in captions] == [str(n) for n in range(1, len(captions) + 1)]
    }


def _page(kind: str, question: str, page: int, mark: Mark, phrases: Sequence[str], slot: str) -> Candidate:
    return Candidate(
        kind,
        question,
        str(page),
        (page,),
        ("Layout",),
        (mark,),
        (tuple(phrase for phrase in phrases if normal(phrase)),),
        slots=(slot,),
    )
