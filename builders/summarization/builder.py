"""Summarization: the pages of a report, or of the documents of a case, as images (paper, section 3; files `summ/*`).

If the pages do not fit, the last pages of each document are left out, in proportion to the document's length. Only
examples whose full prompt is about as long as the manifest's `reference_length` (128K by default) are used, and every
length has the same examples. A report's own summary pages are removed first.
"""

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import ClassVar, Literal

from pydantic import Field

import mmlongbench.task as mt
from builders.common import page_number, page_unit, text_fields, text_unit, with_text
from builders.summarization.highlights import removed_pages
from builders.summarization.readers import Kind, Summarised


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

    @property
    def packs_text(self) -> bool:
        """Whether pages are chosen by the length of their text."""
        return self.pages_as == "text" and self.text_fill == "budget"


INSTRUCTIONS = {
    "report": (
        "You are given a government report from U.S. Government Accountability Office (GAO), and you are tasked to "
        "summarize the report. Write a concise summary (around 550 words) organized in multiple paragraphs. Where "
        "applicable, the summary should contain a short description of why GAO did this study, what GAO found, and "
        "what GAO recommends.\n\nGovernment Report:\n"
    ),
    "case": (
        "You are given the legal documents in a civil rights lawsuit, and you are tasked to summarize the case. Write "
        "a concise summary of one paragraph (200 to 250 words). The summary should contain a short description of the "
        "background, the parties involved, and the outcomes of the case.\n\nLegal documents:\n"
    ),
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
        "pages_without_text": (
            "The positions in page_text_list, from 0, of the pages without text, such as `0, 3`; only if pages "
            "are shown as text."
        ),
        "summary": "The reference summary: sections with section_title and paragraphs for a report, a text for a case.",
        "removed_pages": (
            "The summary pages that were removed from a report, from 0, each with the reason; empty for a case."
        ),
        "documents": (
            "The documents, each with doc (its name), pages (how many may be shown) and shown (how many are shown)."
        ),
    }

    @property
    def spec(self) -> mt.advanced.TaskSpec:
        """Return the declarations; 520 tokens are kept free: 384 for the answer, the rest for a chat template."""
        is_text = self.options.pages_as == "text"
        return mt.advanced.TaskSpec(
            files=mt.readers.FilePattern("summ/{name}_K{k}.jsonl"),
            metric="rouge",
            further_metrics=("judge-fluency-f1",),
            averaged_metric="judge-fluency-f1",
            kind=self.options.kind,
            category="" if is_text else "Summ",
            reserve=520,
            page_texts=is_text or self.options.kind == "report",
            full_prompt=mt.advanced.FullPrompt(below=4 * 1024, above=24 * 1024),
            paper_images=_PAPER_IMAGES.get(self.dataset, ()),
        )

    def draft(self, row: Summarised, sources: mt.Sources, draws: mt.Draws) -> mt.advanced.ContextDraft:
        """Return a draft. It takes each document from its beginning, and always includes the first page of the longest
        document.
        """
        kind = self.options.kind
        if row.kind != kind:
            todo = f"the reader gives {row.kind}s; set options.kind to {row.kind}"
            raise mt.advanced.DraftError(f"{self.dataset}: options.kind is {kind!r}, {todo}")
        options, removed = self.options, dict[int, str]()
        documents = [sources.documents[id] for id in row.docs]
        summary: object = [section.model_dump(mode="json") for section in row.sections]
        if kind == "report":
            texts, must_be_found = sources.documents.page_texts(row.docs[0]), options.without_summary_page == "reject"
            removed = removed_pages(texts, row.sections, options.share, options.first_pages, must_be_found)
        else:
            written = {section.section_title: section.paragraphs[0] for section in row.sections}
            summary = written.get(options.reference)
            if summary is None:
                expected, found, todo = f"a {options.reference} summary", ", ".join(written), "set options.reference"
                raise mt.Rejected(mt.Fault("no-such-summary", expected, found, field="summary", todo=todo))
        pages = [[page for page in document.pages if page.index not in removed] for document in documents]
        units = [
            [_page_unit(page.path, page.index, number, document=row.docs[number]) for page in kept]
            for number, kept in enumerate(pages)
        ]
        counts = {document.name: len(kept) for document, kept in zip(documents, pages, strict=True)}
        as_text = partial(with_text, sources.documents)
        if options.packs_text:
            units = [[*map(as_text, kept)] for kept in units]
        first, *others = mt.by_divisor(units).order
        about = {"row": row, "summary": summary, "removed": removed, "pages": counts}
        question, opening = mt.advanced.Question(row.id, _ask(kind), about), (INSTRUCTIONS[kind],)
        is_rendered = options.pages_as == "text" and not options.packs_text
        rendered = mt.advanced.Rendering(opening, as_text) if is_rendered else None
        return mt.advanced.ContextDraft(
            (first,),
            mt.InOrder(others),
            id=row.id,
            instruction=opening,
            questions=(question,),
            rendered_as_text=rendered,
        )

    def record(self, example: mt.PackedExample) -> mt.Record:
        """Return one line of the public file."""
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
    """Return a page as an image, after a line that names its document and has the page's number, from 0; `number` is
    the place of the document, and `data` is added to the unit's.
    """
    unit = page_unit(path, index, "own", (number, index), f" (page {index})")
    return replace(unit, data={**unit.data, **data})
