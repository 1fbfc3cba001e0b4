"""DocVQA: answer a question about one document, among pages of others (paper, section 3; public files `documentQA/`).

Longer than the budget: the document is cut from the outside in, around its answer pages, or around one anchor page
where the question has no answer. Shorter: other documents are laid left and right of it. The prompt names a document by
the first 15 characters of its folder, so no two in one context may agree in these.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import ClassVar

import mmlongbench as mm
from builders.common.pages import text_unit, with_text
from builders.docvqa.anchors import choose_anchor
from builders.docvqa.checks import check_answer, evidence_keys, pages_asked, span_of
from builders.docvqa.evidence import evidence_of
from builders.docvqa.facets import METRICS, facets_of
from builders.docvqa.options import DocVQAOptions
from builders.docvqa.padding import Padding
from builders.docvqa.paths import NAMES_PAGE, evidence_positions, page_index, runs_between
from builders.docvqa.rows import DocumentQuestion
from builders.docvqa.suspects import find_suspects
from builders.docvqa.template import INSTRUCTION, TEXT_INSTRUCTION, page_unit, question_parts
from builders.docvqa.texts import text_fields

PAPER_IMAGES = {"mmlongdoc": (3.3, 6.9, 13.8, 28.0, 56.4), "slidevqa": (7.5, 16.2, 33.2, 67.2, 135.2)}
"""Table 3."""


class DocVQA(mm.ExaminingBuilder[DocumentQuestion]):
    """Long-document QA over page images, or over their text."""

    row_type: ClassVar[type[mm.Row]] = DocumentQuestion
    options: DocVQAOptions

    options_type: ClassVar[type[mm.Options]] = DocVQAOptions

    @property
    def spec(self) -> mm.TaskSpec:
        """Of pages as text, the lock counts the questions whose answer pages hold any."""
        files, is_text = mm.FilePattern("documentQA/{name}_K{k}.jsonl"), self.options.pages_as == "text"
        balance = "evidence_has_text" if is_text else ""
        paper = PAPER_IMAGES.get(self.dataset, ())
        reads = is_text or (self.options.unanswerable_anchor == "best_match" and self.options.context != "oracle")
        return mm.TaskSpec(
            files,
            metric="doc_qa",
            further_metrics=METRICS,
            category="" if is_text else "DocVQA",
            page_keys=True,
            page_texts=reads,
            balance=balance,
            paper_images=paper,
        )

    def draft(self, row: DocumentQuestion, sources: mm.Sources, draws: mm.Draws) -> mm.Draft:
        """The document inside out, then other documents in a drawn order."""
        documents, options = sources.documents, self.options
        own = documents[row.doc]
        check_answer(row, options)
        pages = pages_asked(row, own, options)
        anchor = choose_anchor(row, pages, options.unanswerable_anchor, documents, draws)
        kept = [number for number, page in enumerate(pages) if page.index in anchor.pages]
        required, rest = mm.inside_out([self._page(documents, own, page, "own") for page in pages], kept)
        others = tuple(draws.order("padding", (documents[id] for id in documents.ids), lambda d: d.id))
        others = tuple(other for other in others if other.id != own.id)
        padding = Padding(own, evidence_keys(row, own), others, partial(self._padding, documents))
        take_order = mm.Chain((rest, padding) if options.context == "padded" else (rest,))
        about = {"row": row, "document": own.name, "span": span_of(row, own, options), "anchor": anchor}
        question = mm.Question(row.id, question_parts(own.name, row.question), about)
        is_rendered = options.pages_as == "text" and options.text_fill == "same_pages"
        return mm.Draft(
            row.id,
            (INSTRUCTION if options.pages_as == "image" or is_rendered else TEXT_INSTRUCTION,),
            (question,),
            required,
            take_order,
            rendered_as_text=mm.Rendering((TEXT_INSTRUCTION,), partial(with_text, documents)) if is_rendered else None,
            noted=anchor.noted,
        )

    def record(self, example: mm.Example) -> mm.Record:
        """One line of the public file."""
        about = example.question.data
        row: DocumentQuestion = about["row"]
        answer = json.dumps(row.answer, ensure_ascii=False) if row.answer_format == "List" else row.answer[0]
        shown = [unit.data["index"] for unit in example.units if unit.role == "own"]
        record = {
            "id": row.id,
            "doc_name": about["document"],
            "question": row.question,
            "answer": answer,
            "answer_format": row.answer_format,
            "ans_page_list": list(row.pages),
            "page_list": [unit.id for unit in example.units],
            **(text_fields(row, example.units) if self.options.pages_as == "text" else {}),
            "answer_sources": list(row.sources),
            "doc_type": row.doc_type,
            **({"question_type": row.question_type} if row.question_type else {}),
            **({"span": about["span"], "span_kind": self.options.span} if row.window else {}),
            "page_label": self.options.page_label,
            "question_names_page": bool(NAMES_PAGE.search(row.question)),
            "gaps": runs_between(shown),
            "anchor": about["anchor"].rule,
            "anchor_page_list": list(about["anchor"].pages),
        }
        return {**record, "evidence_position": ", ".join(evidence_positions(record))}

    def prompt(self, record: mm.Record) -> mm.Prompt:
        """The prompt of a released line: with `page_text_list` of texts, else of images."""
        label, texts = record.get("page_label", "none"), record.get("page_text_list")
        units = [page_unit(path, page_index(path), label, "own") for path in record["page_list"]]
        if texts is not None:
            units = [text_unit(unit, text) for unit, text in zip(units, texts, strict=True)]
        instruction = INSTRUCTION if texts is None else TEXT_INSTRUCTION
        return mm.assemble((instruction,), units, "\n\n", question_parts(record["doc_name"], record["question"]))

    def evidence(self, record: mm.Record) -> mm.Evidence:
        """Return the answer pages, and the pages of their document that the prompt shows."""
        return evidence_of(record)

    def facets(self, record: mm.Record) -> Mapping[str, Sequence[str]]:
        """Format, evidence, pages and types."""
        return facets_of(record)

    def cluster(self, record: mm.Record) -> str:
        """Return the document that the question is about."""
        return str(record.get("doc_name", ""))

    def suspects(self, rows: Sequence[DocumentQuestion], sources: mm.Sources) -> Iterable[mm.Suspect]:
        """Questions whose answer pages may be wrong."""
        return find_suspects(rows, sources)

    def examined_documents(self, rows: Sequence[DocumentQuestion]) -> Iterable[str]:
        """The documents that are asked about."""
        return (row.doc for row in rows)

    def _page(self, documents: mm.Documents, document: mm.Document, page: mm.Page, role: mm.Role) -> mm.Unit:
        unit = page_unit(page.path, page.index, self.options.page_label, role)
        unit = replace(unit, data={**unit.data, "document": document.id})
        is_text = self.options.pages_as == "text" and self.options.text_fill == "budget"
        return with_text(documents, unit) if is_text else unit

    def _padding(self, documents: mm.Documents, document: mm.Document) -> list[mm.Unit]:
        return [self._page(documents, document, page, "padding") for page in document.pages]
