"""Summarization: the pages of a report, or of the documents of a case, as images (paper, section 3; files `summ/*`).

Pages are cut from the end, of several documents each evenly; only examples whose full prompt is about 128K long are in,
the same at every length. A report's own summary pages are taken out first.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from pydantic import Field

import mmlongbench as mm
from builders.summ.removal import removed_pages
from builders.summ.rows import Summarised
from builders.summ.templates import INSTRUCTIONS, ask


class SummaryOptions(mm.Options):
    """What a manifest may set."""

    kind: Literal["report", "case"] = "report"
    """One report whose own summary pages are taken out, or the documents of a case."""
    reference: Literal["short", "long", "tiny"] = "short"
    """Which summary of a case is the reference; a case without it is rejected."""
    share: float = Field(default=0.2, gt=0, le=1)
    """A page that covers more of the summary's word 5-grams holds it, or, beyond the first pages, gives it away."""
    first_pages: int = Field(default=6, ge=1)
    """Where a summary page may be."""
    without_summary_page: Literal["reject", "keep"] = "reject"
    """What becomes of a report in which no summary page is found."""
    page_text: bool = False
    """Whether records hold the text of their pages, for the variant `text`."""


@dataclass(frozen=True, slots=True)
class Summary:
    """Summarization of page images."""

    dataset: str
    options: SummaryOptions

    options_type: ClassVar[type[mm.Options]] = SummaryOptions
    variants: ClassVar[tuple[str, ...]] = ("text",)

    @property
    def spec(self) -> mm.TaskSpec:
        """520 tokens are kept free: 384 to generate, the rest for a chat template."""
        files = mm.FilePattern("summ/{name}_K{k}.jsonl")
        reads = self.options.page_text or self.options.kind == "report"
        span = mm.FullPrompt(below=4 * 1024, above=24 * 1024)
        return mm.TaskSpec(files, "rouge", reserve=520, page_texts=reads, full_prompt=span)

    def draft(self, row: Summarised, world: mm.World, draws: mm.Draws) -> mm.Draft:
        """Each document from its beginning; the first page of the one that is longest is always there."""
        documents = [world.document(id) for id in row.docs]
        is_report = self.options.kind == "report"
        removed = self._removed(row, world) if is_report else {}
        summary = _sections(row) if is_report else _chosen(row, self.options.reference)
        pages = [[page for page in document.pages if page.index not in removed] for document in documents]
        texts = [world.page_texts(id) if self.options.page_text else () for id in row.docs]
        units = [
            [_page(number, page.path, page.index, _at(texts[number], page.index)) for page in kept]
            for number, kept in enumerate(pages)
        ]
        first, *others = mm.by_divisor(units).order
        counts = {document.name: len(kept) for document, kept in zip(documents, pages, strict=True)}
        about = {"row": row, "summary": summary, "removed": removed, "pages": counts}
        question = mm.Question(row.id, ask(self.options.kind), about)
        opening = (INSTRUCTIONS[self.options.kind],)
        return mm.Draft(row.id, opening, (question,), (first,), mm.InOrder(tuple(others)))

    def record(self, example: mm.Example) -> mm.Record:
        """One line of the public file."""
        data = example.question.data
        row: Summarised = data["row"]
        shown = [unit.group for unit in example.units]
        texts = {"page_text_list": [unit.data["text"] for unit in example.units]} if self.options.page_text else {}
        return {
            "id": row.id,
            **({"url": row.url} if self.options.kind == "report" else {}),
            "image_list": list(example.prompt.images),
            "summary": data["summary"],
            "removed_pages": "; ".join(f"{page}: {why}" for page, why in data["removed"].items()),
            "documents": [
                {"doc": name, "pages": pages, "shown": shown.count(name)} for name, pages in data["pages"].items()
            ],
            **texts,
        }

    def prompt(self, record: mm.Record, variant: str = "") -> mm.Prompt:
        """The prompt of a released line; as `text`, with the text of each page in place of its image."""
        texts = record["page_text_list"] if variant == "text" else [None] * len(record["image_list"])
        units = [
            _page(0, path, _number(path), text, is_text=variant == "text")
            for path, text in zip(record["image_list"], texts, strict=True)
        ]
        return mm.assemble((INSTRUCTIONS[self.options.kind],), units, "\n\n", ask(self.options.kind))

    def _removed(self, row: Summarised, world: mm.World) -> dict[int, str]:
        options, texts = self.options, world.page_texts(row.docs[0])
        must_be_found = options.without_summary_page == "reject"
        return removed_pages(texts, row.sections, options.share, options.first_pages, must_be_found=must_be_found)


def _sections(row: Summarised) -> list[dict[str, Any]]:
    return [section.model_dump(mode="json") for section in row.sections]


def _chosen(row: Summarised, length: str) -> str:
    """The summary of a case of this length."""
    written = {section.section_title: section.paragraphs[0] for section in row.sections}
    if length not in written:
        expected, todo = f"a {length} summary", "set options.reference"
        raise mm.Rejected(mm.Fault("no-such-summary", expected, ", ".join(written), field="summary", todo=todo))
    return written[length]


def _at(texts: Sequence[str], index: int) -> str | None:
    return mm.escape_markers(texts[index]).strip() if texts else None


def _page(number: int, path: str, index: int, text: str | None, *, is_text: bool = False) -> mm.Unit:
    folder = path.split("/")[-2]
    head = f"Document {mm.label(folder)} (page {index}): "
    body: mm.Part = f"\n{text}" if is_text else mm.Image(path)
    return mm.Unit(path, "own", body, (number, index), head=head, group=folder, data={"text": text})


def _number(path: str) -> int:
    """The number in a page's name, from 0, as public loaders read it."""
    return int(path.split("page")[1].split(".")[0])
