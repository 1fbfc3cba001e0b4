"""Summarization: the pages of a report, or of the documents of a case, as images (paper, section 3; files `summ/*`).

If the pages do not fit, the last pages of each document are left out, in proportion to the document's length. Only
examples whose full prompt is about as long as the manifest's `reference_length` (128K by default) are used, and every
length has the same examples. A report's own summary pages are removed first.
"""

import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import groupby
from typing import ClassVar, Literal

from pydantic import Field

import mmlongbench.task as mt
from builders.common import page_number, page_unit, refused, text_fields, text_unit, with_text
from builders.summarization.readers import Kind, Section, Summarised


class SummaryOptions(mt.Options):
    """The options that a manifest may set."""

    kind: Kind = "report"
    """What is summarized: one `report`, whose own summary pages are removed, or the documents of a `case`."""
    reference: Literal["short", "long", "tiny"] = "short"
    """Which summary of a case is the reference; a case without this summary is rejected."""
    share: float = Field(default=0.2, gt=0, le=1)
    """A page with more than this share of the summary's word 5-grams is a summary page; after the first pages, such a
    page is a leak, and the report is rejected."""
    first_pages: int = Field(default=6, ge=1)
    """How many pages at the beginning may be summary pages."""
    without_summary_page: Literal["reject", "keep"] = "reject"
    """What happens to a report in which no summary page is found."""
    pages_as: Literal["image", "text"] = "image"
    """Whether pages are shown as images or as the text that the PDF has."""
    text_fill: Literal["same_pages", "budget"] = "same_pages"
    """Which pages are shown if `pages_as` is `text`. `same_pages`: the pages that would fit as images; the full prompt
    is also counted with images. `budget`: as many pages as fit as text; the full prompt is also counted with texts."""


INSTRUCTIONS = {
    "report": "You are given a government report from U.S. Government Accountability Office (GAO), and you are tasked "
    "to summarize the report. Write a concise summary (around 550 words) organized in multiple paragraphs. Where "
    "applicable, the summary should contain a short description of why GAO did this study, what GAO found, and what "
    "GAO recommends.\n\nGovernment Report:\n",
    "case": "You are given the legal documents in a civil rights lawsuit, and you are tasked to summarize the case. "
    "Write a concise summary of one paragraph (200 to 250 words). The summary should contain a short description of "
    "the background, the parties involved, and the outcomes of the case.\n\nLegal documents:\n",
}
_PAPER_IMAGES = {"gov": (2.0, 6.0, 12.0, 25.0, 50.7), "lexsum": (3.0, 6.0, 12.1, 25.2, 51.3)}
"""The images per example at 8K, 16K, 32K, 64K and 128K in Table 3 of the paper."""


class Summary(mt.advanced.Builder[Summarised]):
    """Summarization of page images, or of their text."""

    row_type: ClassVar[type[mt.Row]] = Summarised
    options: SummaryOptions

    options_type: ClassVar[type[mt.Options]] = SummaryOptions
    record_fields: ClassVar[Mapping[str, str]] = {
        "id": "The id of the report or case, the same at every length.",
        "source_id": "The id of the report in its source; only for reports.",
        "url": "The address of the report, as its source gives it; only for reports.",
        "image_list": "The paths of the shown pages below `mmlb_image/`, in the order of the prompt.",
        "page_text_list": "The texts of the shown pages, in the order of image_list; only if pages are shown as text.",
        "pages_without_text": "The positions in page_text_list, from 0, of the pages without text, such as `0, 3`; "
        "only if pages are shown as text.",
        "summary": "The reference summary: sections with section_title and paragraphs for a report, a text for a case.",
        "removed_pages": "The summary pages that were removed from a report, from 0, each with the reason; empty for "
        "a case.",
        "documents": "The documents, each with doc (its name), pages (how many may be shown) and shown (how many are "
        "shown).",
    }

    @property
    def spec(self) -> mt.advanced.TaskSpec:
        is_text = self.options.pages_as == "text"
        return mt.advanced.TaskSpec(
            files=mt.readers.FilePattern("summ/{name}_K{k}.jsonl"),
            metric="rouge",
            further_metrics=("judge-fluency-f1",),
            averaged_metric="judge-fluency-f1",
            kind=self.options.kind,
            category="" if is_text else "Summ",
            reserve=520,  # 384 for the answer, the rest for a chat template
            page_texts=is_text or self.options.kind == "report",
            full_prompt=mt.advanced.FullPrompt(below=4 * 1024, above=24 * 1024),
            paper_images=_PAPER_IMAGES.get(self.dataset, ()),
        )

    def draft(self, row: Summarised, sources: mt.Sources, draws: mt.Draws) -> mt.advanced.ContextDraft:
        kind = self.options.kind
        if row.kind != kind:
            todo = f"the reader gives {row.kind}s; set options.kind to {row.kind}"
            raise mt.advanced.DraftError(f"{self.dataset}: options.kind is {kind!r}, {todo}")
        options, is_text = self.options, self.options.pages_as == "text"
        removed: dict[int, str] = {}
        packs_text = is_text and options.text_fill == "budget"
        documents = [sources.documents[id] for id in row.docs]
        summary: object = [section.model_dump(mode="json") for section in row.sections]
        if kind == "report":
            texts, must_be_found = sources.documents.page_texts(row.docs[0]), options.without_summary_page == "reject"
            removed = removed_pages(texts, row.sections, options.share, options.first_pages, must_be_found)
        else:
            written = {section.section_title: section.paragraphs[0] for section in row.sections}
            summary = written.get(options.reference)
            if summary is None:
                expected, found = f"a {options.reference} summary", ", ".join(written)
                raise refused("no-such-summary", expected, found, "summary", "set options.reference")
        as_text = partial(with_text, sources.documents)
        units: list[list[mt.Unit]] = []
        counts: dict[str, int] = {}
        for number, (id, document) in enumerate(zip(row.docs, documents, strict=True)):
            kept = [page for page in document.pages if page.index not in removed]
            pages = [_page_unit(page.path, page.index, number, document=id) for page in kept]
            units.append([*map(as_text, pages)] if packs_text else pages)
            counts[document.name] = len(pages)
        # each document is taken from its beginning; the first page of the longest one is always shown
        first, *others = mt.by_divisor(units).order
        about = {"row": row, "summary": summary, "removed": removed, "pages": counts}
        question, opening = mt.advanced.Question(row.id, _ask(kind), about), (INSTRUCTIONS[kind],)
        rendered = mt.advanced.Rendering(opening, as_text) if is_text and not packs_text else None
        return mt.advanced.ContextDraft(
            (first,),
            mt.InOrder(others),
            id=row.id,
            instruction=opening,
            questions=(question,),
            rendered_as_text=rendered,
        )

    def record(self, example: mt.PackedExample) -> mt.Record:
        data = example.question.data
        row: Summarised = data["row"]
        shown = [unit.group for unit in example.units]
        return {
            "id": row.id,
            **({"source_id": row.source_id, "url": row.url} if row.kind == "report" else {}),
            "image_list": [unit.id for unit in example.units],
            **(text_fields(example.units) if self.options.pages_as == "text" else {}),
            "summary": data["summary"],
            "removed_pages": "; ".join(f"{page}: {why}" for page, why in data["removed"].items()),
            "documents": [
                {"doc": name, "pages": pages, "shown": shown.count(name)} for name, pages in data["pages"].items()
            ],
        }

    def prompt(self, record: mt.Record) -> mt.Prompt:
        """Return the prompt of a released line: with texts if the line has `page_text_list`, otherwise with images."""
        texts = record.get("page_text_list")
        units = [_page_unit(path, page_number(path)) for path in record["image_list"]]
        if texts is not None:
            units = [text_unit(unit, text) for unit, text in zip(units, texts, strict=True)]
        return mt.advanced.assemble((INSTRUCTIONS[self.options.kind],), units, "\n\n", _ask(self.options.kind))

    def answer_of(self, record: mt.Record) -> str:
        """Return the summary as one text: that of a case, or the sections of a report after their titles."""
        summary = record["summary"]
        if isinstance(summary, str):
            return summary
        return "\n\n".join("\n".join((f"{section['section_title']}:", *section["paragraphs"])) for section in summary)

    def cluster(self, record: mt.Record) -> str:
        """Return the id of the report or the case; there is one question about each."""
        return str(record["id"])


def _ask(kind: str) -> tuple[mt.Part, ...]:
    return (f"\n\nNow please summarize the {kind}.\nSummary:",)


def _page_unit(path: str, index: int, number: int = 0, **data: object) -> mt.Unit:
    # the line before a page has its number, from 0; `number` is the place of its document
    unit = page_unit(path, index, "own", (number, index), f" (page {index})")
    return replace(unit, data={**unit.data, **data})


# --- the pages that show a report's own summary (GAO's highlights) ----------------------------------------------------
# They are found by their headings and by overlapping text. Texts are compared as words in lower case, with ligatures
# split and without hyphens, at the end of a line and elsewhere. Headings are compared as letters alone, because PDFs
# split small capitals into single letters.

HEADINGS = ("Why GAO Did This Study", "What GAO Found", "What GAO Recommends")
SIZE = 5
"""The number of words of an n-gram."""
_TRACE = 0.02
"""A summary page with a heading has at least this share of the summary; a table of contents does not."""
_BESIDE = 0.05
"""A page beside a summary page is a summary page, too, if it has at least this share of the summary. The same then
applies to the pages beside this page."""
_LINES = 3
"""The maximum number of lines over which a heading may be split."""
_HYPHEN = re.compile(r"[\u00ad\u2010-\u2015\u2212-]\s*\n?\s*")


def removed_pages(
    texts: Sequence[str], sections: Sequence[Section], share: float, first_pages: int, must_be_found: bool
) -> dict[int, str]:
    """Return the pages to remove from a report, each with the reason: its summary pages (see `find_highlights`), and
    first pages without text, which could be the summary, but do not count as a summary page that was found.
    """
    take_out = "take the document out of the source"
    without = [number for number, text in enumerate(texts) if not mt.advanced.has_words(text)]
    unchecked = dict.fromkeys((number for number in without if number < first_pages), "no text to check")
    if len(unchecked) == len(texts[:first_pages]) or len(without) * 2 > len(texts):
        found, todo = f"none on {len(without)} of {len(texts)} pages", "set pages.ocr, or take the report out"
        raise refused("document-without-text", "text to find the summary in", found, "doc", todo)
    summary_pages, leaks = find_highlights(texts, sections, share, first_pages)
    if must_be_found and not summary_pages:
        expected = f"a page with the summary among the first {first_pages}"
        raise refused("no-summary-page", expected, "none", "doc", "set options.without_summary_page to keep")
    if leaks:
        page, cover = max(leaks.items(), key=lambda item: (item[1], -item[0]))
        expected = f"at most {share:.0%} of the summary on a page"
        raise refused("summary-in-the-body", expected, f"{cover:.0%} on page {page}", "doc", take_out)
    removed = {**unchecked, **summary_pages}
    if len(removed) == len(texts):
        raise refused("document-without-pages", "pages beside the summary", "none", "doc", take_out)
    return dict(sorted(removed.items()))


def find_highlights(
    texts: Sequence[str], sections: Sequence[Section], share: float = 0.2, first_pages: int = 6
) -> tuple[dict[int, str], dict[int, float]]:
    """Return (why each summary page counts as one, the share of the summary that each later page repeats, if it is too
    much), both by the number of the page, from 0.

    Among the first pages, a page is a summary page if it has one of GAO's headings and a little of the summary
    (`_TRACE`), or if it covers more than `share` of the summary, alone or together with pages beside it. Pages that
    continue a summary page are summary pages, too.
    """
    pages = [grams(text) for text in texts]
    titled = [(section.section_title.casefold(), grams("\n".join(section.paragraphs))) for section in sections]
    whole = frozenset[str]().union(*(runs for _, runs in titled))
    # reports repeat their recommendations, so sections about them are not compared with `share`
    told = frozenset[str]().union(*(runs for title, runs in titled if "recommend" not in title)) or whole
    covers, holds = [_share(page, told) for page in pages], [_share(page, whole) for page in pages]
    removed: dict[int, str] = {}
    for number, text in enumerate(texts[:first_pages]):
        if (heading := heading_in(text)) and holds[number] >= _TRACE:
            removed[number] = f"heading {heading!r}"
        elif covers[number] > share:
            removed[number] = f"{covers[number]:.0%} of the summary"
    # first pages beside each other that cover the summary together
    for is_part, run in groupby(range(len(texts[:first_pages])), key=lambda number: covers[number] >= _BESIDE):
        numbers = list(run)
        together = _share(frozenset[str]().union(*(pages[number] for number in numbers)), told)
        for number in numbers if is_part and together > share else ():
            removed.setdefault(number, f"{covers[number]:.0%} of the summary, {together:.0%} with those beside it")
    # pages that continue a summary page, then pages that continue these
    waiting = sorted(removed)
    while waiting:
        number = waiting.pop(0)
        for beside in (number - 1, number + 1):
            if 0 <= beside < len(pages) and beside not in removed and holds[beside] >= _BESIDE:
                removed[beside] = f"{holds[beside]:.0%} of the summary, beside page {number}"
                waiting.append(beside)
    leaks = {number: cover for number, cover in enumerate(covers) if cover > share and number not in removed}
    return dict(sorted(removed.items())), leaks


def heading_in(text: str) -> str:
    r"""Return the first of GAO's headings in a text; empty if there is none. A heading is alone on its lines; or it
    begins a line with text after it, in GAO's spelling or in capitals.

    >>> heading_in("Highlights\nW HAT  GAO F OUND\nThe agency"), heading_in("what GAO found in 2009")
    ('What GAO Found', '')
    """
    lines = [line for line in text.splitlines() if line.strip()]
    plain_lines, plain_headings = [*map(letters, lines)], [(heading, letters(heading)) for heading in HEADINGS]
    for start, line in enumerate(lines):
        for heading, plain in plain_headings:
            if any("".join(plain_lines[start:end]) == plain for end in range(start + 1, start + 1 + _LINES)):
                return heading
            if re.match(rf"\s*(?:{heading}|{heading.upper()})\b(?![\s.]*\d*\s*$)", line):
                return heading
    return ""


def letters(text: str) -> str:
    """Return letters and digits alone, in lower case, with ligatures split."""
    return "".join(character for character in unicodedata.normalize("NFKC", text).casefold() if character.isalnum())


def grams(text: str) -> frozenset[str]:
    """Return the runs of five words of a text. A text of fewer words gives one run of all its words."""
    joined = _HYPHEN.sub("", unicodedata.normalize("NFKC", text).casefold())
    words = re.findall(r"\w+", joined)
    count = max(1, len(words) - SIZE + 1) if words else 0
    return frozenset(" ".join(words[start : start + SIZE]) for start in range(count))


def _share(page: frozenset[str], summary: frozenset[str]) -> float:
    return len(page & summary) / len(summary) if summary else 0.0
