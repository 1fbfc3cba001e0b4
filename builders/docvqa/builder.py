"""DocVQA: answer a question about one document among pages of other documents (paper, section 3; files `documentQA/`).

If the document is longer than the budget, pages at its beginning and its end are left out. The pages around the answer
pages stay. If the question has no answer, the pages around one anchor page stay. If the document is shorter, other
documents are put before and after it. The prompt names a document by the first characters of its folder: 15 in the
public datasets, otherwise as many as tell it apart (`label_width`). No two documents of a context have one label.
"""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar

import builders.common
import mmlongbench.task as mt
from builders.common import text_unit, with_text
from builders.docvqa.contexts import (
    Anchor,
    Padding,
    about_images,
    choose_anchor,
    crop_fields,
    evidence_keys,
    interleaved,
    join_pages,
    joined_fields,
    labelled_by,
    page_query,
    pages_asked,
    pages_in,
    rebuilt,
    retrieved,
    span_of,
    text_fields,
)
from builders.docvqa.evidence import (
    LONG_METRICS,
    METRICS,
    NAMES_PAGE,
    blank_evidence,
    evidence_of,
    evidence_positions,
    facets_of,
    folder_of,
    page_index,
    runs_between,
)
from builders.docvqa.rows import MAX_FACET, AnswerForm, DocumentQuestion, DocVQAOptions, count_words
from builders.docvqa.suspects import find_suspects

RECORD_FIELDS: Mapping[str, str] = {
    "id": "The id of the question, the same at every length.",
    "doc_name": "The name of the document that the question is about; the folder of its page images has this name.",
    "question": "The question, without the words that name the document.",
    "answer": (
        "The answer; a list is written as JSON, and an unanswerable question has `Not answerable`. Empty if the source "
        "gives no reference answer."
    ),
    "answer_length": (
        "Whether the answer is short or long (more than five words, or no reference answer); only if the option "
        "max_answer_words does not limit answers to five words."
    ),
    "answer_form": "The value of the option answer_form; only if it is not short.",
    "answer_format": "The format of the answer: Integer, Float, String, List, or None for an unanswerable question.",
    "ans_page_list": "The numbers of the answer pages in their document, from 0; empty for an unanswerable question.",
    "page_list": "The paths of the shown pages below `mmlb_image/`, in the order of the prompt.",
    "page_text_list": (
        "The texts of the shown pages, in the order of page_list; only if pages are shown as text or interleaved. In "
        "an interleaved page, `<image>` stands for each crop."
    ),
    "crop_list": (
        "The crops of the shown pages, in the order of the prompt: the path of the image below `mmlb_image/`, the "
        "number of the page in its document from 0, the kind (table, figure, or page for a page without text), and the "
        "corners of the box in points: x0, y0, x1, y1. Only if pages are interleaved."
    ),
    "joined_page_list": (
        "The first and the last page of the document, from 0, that each image of page_list shows, such as `4-7`. Only "
        "if pages are joined; then every other number of a page counts images."
    ),
    "document_page_list": "The numbers of the answer pages in their document, from 0; only if pages are joined.",
    "pages_without_text": (
        "The positions in page_text_list, from 0, of the pages without text, such as `0, 3`; only if pages "
        "are shown as text."
    ),
    "evidence_has_text": (
        "Whether a shown answer page has text, or no answer page is shown; only if pages are shown as text."
    ),
    "answer_sources": (
        "Where the answer is found, in the words of the source, such as `Table`; empty if the source does not say."
    ),
    "doc_type": "The type of the document in the words of the source; empty if the source does not say.",
    "question_type": "The type of the question in the words of the source; only if the source gives one.",
    "span": (
        "The first and the last page of the document that may be shown, from 0, such as `41-70`; only if "
        "the source gives a window of pages."
    ),
    "span_kind": "The value of the option span; only if the source gives a window of pages.",
    "page_label": "The value of the option page_label.",
    "question_names_page": "Whether the question names a page by its position, such as `page 3` or `the last slide`.",
    "gaps": "The pages of the document, from 0, that are missing between its shown pages, such as `1-2, 7-7`.",
    "anchor": (
        "How the pages were chosen that every context shows: answer (they are the answer pages), "
        "best_match, drawn, middle, or retrieved."
    ),
    "anchor_page_list": "The numbers of the pages, from 0, that every context of the question shows.",
    "facets": "The values of the columns that the option facets names, by name.",
    "context": "The value of the option context; only if the context is retrieved.",
    "page_ranks": (
        "The rank that the retriever gave each shown page, from 1, in the order of page_list; 0 for a page that it did "
        "not find. Only if the context is retrieved."
    ),
    "gold_ranks": (
        "The ranks that the retriever gave the answer pages, from 1, in the order of ans_page_list; 0 for a page that "
        "it did not find. Only if the context is retrieved."
    ),
    "evidence_position": (
        "Where the answer pages are among the shown pages of their document: first, inner or last, or only "
        "if a single page is shown; empty for an unanswerable question."
    ),
}


_ASK = (
    "Answer the question as concisely as you can, using a single phrase or sentence if possible. If the question "
    "cannot be answered based on the information in the article, write 'Not answerable.' Write your answer in the "
    "following format:\nAnswer: [answer]\n\n"
)
INSTRUCTION = f"You are given a document with text and images, and a question. {_ASK}"
TEXT_INSTRUCTION = f"You are given a document, and a question. {_ASK}"
_EXPLAIN = (
    "Answer the question from the document alone, in at most 200 words, and say on which facts of the document your "
    "answer rests. Write your answer in the following format:\nAnswer: [answer]\n\n"
)
LONG_INSTRUCTION = f"You are given a document with text and images, and a question. {_EXPLAIN}"
LONG_TEXT_INSTRUCTION = f"You are given a document, and a question. {_EXPLAIN}"
LONG_RESERVE = 512
"""Tokens kept free for a long answer: 200 words have about 300 tokens, and figures in them more; 128 of the rest are
for a chat template."""
_LABELS = {"none": "", "index": " (page {0})", "printed": " (page {1})"}
"""The text after a document's name, by `options.page_label`: {0} is the number of the page from 0, {1} from 1."""
PAPER_WORDS = 5
"""The maximum number of words of an answer in the paper. Longer answers are in the group `answer length: long`."""
PAPER_IMAGES = {"mmlongdoc": (3.3, 6.9, 13.8, 28.0, 56.4), "slidevqa": (7.5, 16.2, 33.2, 67.2, 135.2)}
"""The images per example at 8K, 16K, 32K, 64K and 128K in Table 3 of the paper."""


class DocVQA(mt.ExaminingBuilder[DocumentQuestion]):
    """Long-document QA over page images, or over their text."""

    row_type: ClassVar[type[mt.Row]] = DocumentQuestion
    options: DocVQAOptions

    options_type: ClassVar[type[mt.Options]] = DocVQAOptions
    record_fields: ClassVar[Mapping[str, str]] = RECORD_FIELDS

    @property
    def spec(self) -> mt.TaskSpec:
        """Return the declarations of the task. If pages are shown as text, the lock counts the questions with and
        without text on their answer pages.
        """
        files, is_text = mt.FilePattern("documentQA/{name}_K{k}.jsonl"), self.options.pages_as == "text"
        balance = "evidence_has_text" if is_text else ""
        is_other = self.options.pages_as != "image"
        paper = () if self.options.pages_as in ("interleaved", "joined") else PAPER_IMAGES.get(self.dataset, ())
        is_ranked = self.options.is_retrieved
        reads = (
            is_text
            or is_ranked
            or (self.options.unanswerable_anchor == "best_match" and self.options.context != "oracle")
        )
        is_long = self.options.answer_form == "long"
        more: dict[str, Any] = {"reserve": LONG_RESERVE, "may_lack_answers": True} if is_long else {}
        return mt.TaskSpec(
            files,
            metric="judge-committee" if is_long else "doc_qa",
            further_metrics=LONG_METRICS if is_long else METRICS,
            category="" if is_other or is_long or self.options.synthetic else "DocVQA",
            page_keys=True,
            page_texts=reads,
            page_crops=self.options.pages_as == "interleaved",
            join_pages=join_pages(self.options),
            page_rankings=is_ranked,
            balance=balance,
            paper_images=paper,
            **more,
        )

    def draft(self, row: DocumentQuestion, sources: mt.Sources, draws: mt.Draws) -> mt.Draft:
        """Return a draft. It takes the pages of the document from the answer pages outwards, then other documents in a
        drawn order.
        """
        documents, options = sources.documents, self.options
        own, source = documents[row.doc], row
        check_answer(row, options)
        check_facets(row, options)
        blank = blank_evidence(row, own)
        row, called = about_images(row, own), labelled_by(row, documents, options)
        about = {
            "row": row,
            "source": source,
            "document": own.name,
            "label": called(own.name),
            "span": span_of(row, own, options),
        }
        evidence = evidence_keys(source, own)
        if options.is_retrieved:
            page_query(row, documents, options)
            ranking, unit = sources.page_ranking(row.id), partial(self._page, documents, called)
            found = retrieved(row, documents, ranking, evidence, options, draws, unit, called)
            anchor, required, take_order = found.anchor, found.required, mt.Chain((found.rest,))
            about["gold_ranks"] = found.gold_ranks
        else:
            anchor, required, take_order = self._around(row, documents, evidence, called, draws)
        about["anchor"] = anchor
        question = mt.Question(row.id, question_parts(called(own.name), row.question), about)
        is_rendered = options.pages_as == "text" and options.text_fill == "same_pages"
        told = instruction(options.answer_form, is_text=True)
        return mt.Draft(
            required,
            take_order,
            id=row.id,
            instruction=(instruction(options.answer_form, is_text=options.pages_as == "text" and not is_rendered),),
            questions=(question,),
            rendered_as_text=mt.Rendering((told,), partial(with_text, documents)) if is_rendered else None,
            noted=(f"answer read as {row.answer_format}", *anchor.noted, *blank),
        )

    def _around(
        self,
        row: DocumentQuestion,
        documents: mt.Documents,
        evidence: frozenset[str],
        called: Callable[[str], str],
        draws: mt.Draws,
    ) -> tuple[Anchor, tuple[mt.Unit, ...], mt.Chain]:
        """Return the anchor, the required pages, and the order of the others: the document's pages outwards from the
        anchor, then those of other documents.
        """
        own, options = documents[row.doc], self.options
        pages = pages_asked(row, own, options)
        anchor = choose_anchor(row, pages, options.unanswerable_anchor, documents, draws)
        kept = [number for number, page in enumerate(pages) if page.index in anchor.pages]
        required, rest = mt.inside_out([self._page(documents, called, own, page, "own") for page in pages], kept)
        others = tuple(draws.order("padding", (documents[id] for id in documents.ids), lambda d: d.id))
        others = tuple(other for other in others if other.id != own.id)
        units = partial(self._padding, documents, called)
        padding = Padding(own, evidence, others, units, called)
        return anchor, required, mt.Chain((rest, padding) if options.context == "padded" else (rest,))

    def page_query(self, row: DocumentQuestion, sources: mt.Sources) -> mt.PageQuery | None:
        """Return the search for the pages of a question, if contexts are retrieved."""
        if not self.options.is_retrieved:
            return None
        row = about_images(row, sources.documents[row.doc])
        return page_query(row, sources.documents, self.options)

    def gold_ranks(self, record: mt.Record) -> Sequence[int] | None:
        """Return the ranks of the answer pages, if the context was retrieved."""
        found = record.get("gold_ranks")
        is_ranks = isinstance(found, list) and all(type(rank) is int and rank >= 0 for rank in found)
        return tuple(found) if is_ranks and isinstance(found, list) else None

    def record(self, example: mt.PackedExample) -> mt.Record:
        """Return one line of the public file."""
        about = example.question.data
        row: DocumentQuestion = about["row"]
        answer = json.dumps(row.answer, ensure_ascii=False) if row.answer_format == "List" else row.answer[0]
        shown = sorted(unit.data["index"] for unit in example.units if unit.role == "own")
        is_unnamed = not shown and about["label"] != mt.label(about["document"])
        record = {
            "id": row.id,
            "doc_name": about["document"],
            "question": row.question,
            "answer": answer,
            "answer_format": row.answer_format,
            "ans_page_list": list(row.pages),
            "page_list": [unit.id for unit in example.units],
            **self._form_fields(example),
            "answer_sources": list(row.sources),
            "doc_type": row.doc_type,
            **({"question_type": row.question_type} if row.question_type else {}),
            **({"span": about["span"], "span_kind": self.options.span} if row.window else {}),
            "page_label": self.options.page_label,
            "question_names_page": bool(NAMES_PAGE.search(row.question)),
            "gaps": runs_between(shown),
            "anchor": about["anchor"].rule,
            "anchor_page_list": list(about["anchor"].pages),
            **more_fields(row, self.options),
            **self._retrieval_fields(example),
            **labels_field(example.units),
            **({"document_label": about["label"]} if is_unnamed else {}),
        }
        return {**record, "evidence_position": ", ".join(evidence_positions(record))}

    def prompt(self, record: mt.Record) -> mt.Prompt:
        """Return the prompt of a released line: with texts if the line has `page_text_list`, with crops between them if
        it also has `crop_list`, otherwise with images.
        """
        label, texts = record.get("page_label", "none"), record.get("page_text_list")
        paths = record["page_list"]
        called = record.get("document_labels") or [mt.label(folder_of(path)) for path in paths]
        named = dict(zip(map(folder_of, paths), called, strict=True))
        units = [page_unit(path, page_index(path), label, "own", named[folder_of(path)]) for path in paths]
        crops = record.get("crop_list")
        if texts is not None and crops is not None:
            units = list(rebuilt(units, texts, crops))
        elif texts is not None:
            units = [text_unit(unit, text) for unit, text in zip(units, texts, strict=True)]
        asked = instruction(record.get("answer_form", "short"), is_text=texts is not None and crops is None)
        document = named.get(record["doc_name"]) or record.get("document_label") or mt.label(record["doc_name"])
        return mt.assemble((asked,), units, "\n\n", question_parts(document, record["question"]))

    def evidence(self, record: mt.Record) -> mt.Evidence:
        """Return the document of the question, the answer pages, and the document's pages that the prompt shows."""
        return evidence_of(record)

    def accepted(self, record: mt.Record) -> Sequence[object]:
        """Return the other answers that the table of own questions accepts."""
        found = record.get("accepted_answers")
        return tuple(map(str, found)) if isinstance(found, list) else ()

    def facets(self, record: mt.Record) -> Mapping[str, Sequence[str]]:
        """Return the groups of the question, such as its answer format and its document type (see `facets_of`)."""
        return facets_of(record)

    def cluster(self, record: mt.Record) -> str:
        """Return the name of the document that the question is about."""
        return str(record.get("doc_name", ""))

    def suspects(self, rows: Sequence[DocumentQuestion], sources: mt.Sources) -> Iterable[mt.Suspect]:
        """Return the questions whose answer pages may be wrong."""
        if self.options.pages_as == "joined":
            return ()  # the pages of rows are not those of the documents
        return find_suspects(rows, sources)

    def examined_documents(self, rows: Sequence[DocumentQuestion]) -> Iterable[str]:
        """Return the ids of the documents that questions are about."""
        return (row.doc for row in rows)

    def _form_fields(self, example: mt.PackedExample) -> dict[str, object]:
        """Return the fields about the form of the pages; empty if they are images."""
        about, form = example.question.data, self.options.pages_as
        if form == "joined":
            return joined_fields(about["source"], example.units)
        if form == "interleaved":
            return crop_fields(example.units)
        return text_fields(about["row"], example.units) if form == "text" else {}

    def _retrieval_fields(self, example: mt.PackedExample) -> dict[str, object]:
        """Return the fields about the retriever; empty if there is none."""
        if not self.options.is_retrieved:
            return {}
        ranks = {"page_ranks": [unit.data["rank"] for unit in example.units]}
        return {"context": self.options.context, **ranks, "gold_ranks": list(example.question.data["gold_ranks"])}

    def _page(
        self,
        documents: mt.Documents,
        called: Callable[[str], str],
        document: mt.Document,
        page: mt.Page,
        role: mt.Role,
    ) -> mt.Unit:
        unit = page_unit(page.path, page.index, self.options.page_label, role, called(document.name))
        more = {"joined": pages_in(document, page.index)} if document.joined else {}
        unit = replace(unit, data={**unit.data, "document": document.id, **more})
        if role == "padding":
            unit = replace(unit, excluded=document.unfit(page))
        if self.options.pages_as == "interleaved":
            return interleaved(documents, unit)
        is_text = self.options.pages_as == "text" and self.options.text_fill == "budget"
        return with_text(documents, unit) if is_text else unit

    def _padding(self, documents: mt.Documents, called: Callable[[str], str], document: mt.Document) -> list[mt.Unit]:
        return [self._page(documents, called, document, page, "padding") for page in document.pages]


def instruction(answer_form: AnswerForm, *, is_text: bool) -> str:
    """Return the text before the pages."""
    if answer_form == "long":
        return LONG_TEXT_INSTRUCTION if is_text else LONG_INSTRUCTION
    return TEXT_INSTRUCTION if is_text else INSTRUCTION


def page_unit(path: str, index: int, label: str, role: mt.Role, document: str | None = None) -> mt.Unit:
    """Return a page as an image, after the line that names its document; `index` counts from 0. `document` is what the
    line calls the document; None: the first characters of its name.
    """
    return builders.common.page_unit(path, index, role, (0, index), _LABELS[label].format(index, index + 1), document)


def labels_field(units: Sequence[mt.Unit]) -> dict[str, list[str]]:
    """Return the field of a record that says what the prompt calls the document of each page. The result is empty if
    the prompt calls every document by the first characters of its name, as the loaders of the public datasets do.
    """
    labels = [str(unit.data["label"]) for unit in units]
    is_short = all(label == mt.label(str(unit.group)) for label, unit in zip(labels, units, strict=True))
    return {} if is_short else {"document_labels": labels}


def question_parts(document: str, question: str) -> tuple[mt.Part, ...]:
    """Return the text after the pages; `document` is what the prompt calls the document."""
    asked = f"Based on Document {document}, answer the following question. {question}"
    return (f"\n\nQuestion: {asked}\nAnswer:",)


def words_of(row: DocumentQuestion, options: DocVQAOptions) -> int:
    """Return the number of words of a string or a list answer, as `options.answer_words` counts them; 0 for any other
    answer.
    """
    return count_words(row.answer, options.answer_words) if row.answer_format in ("String", "List") else 0


def more_fields(row: DocumentQuestion, options: DocVQAOptions) -> dict[str, object]:
    """Return the fields of a record that the public datasets do not have."""
    is_limited = options.max_answer_words is not None and options.max_answer_words <= PAPER_WORDS
    is_long = not row.has_reference or words_of(row, options) > PAPER_WORDS
    length = "long" if is_long else "short"
    return {
        **({} if options.answer_form == "short" else {"answer_form": options.answer_form}),
        **({} if is_limited else {"answer_length": length}),
        **({"accepted_answers": list(row.accepted)} if row.accepted else {}),
        **({"facets": {name: row.columns.get(name, "") for name in options.facets}} if options.facets else {}),
    }


def check_facets(row: DocumentQuestion, options: DocVQAOptions) -> None:
    """Raise `Rejected` if a value by which reports break scores down is a long text."""
    for name in options.facets:
        if len(row.columns.get(name, "")) > MAX_FACET:
            expected, todo = f"at most {MAX_FACET} characters", f"shorten it, or take {name} out of options.facets"
            raise mt.Rejected(mt.Fault("long-facet", expected, "more", field=name, todo=todo))


def check_answer(row: DocumentQuestion, options: DocVQAOptions) -> None:
    """Raise `Rejected` for a long-form answer: a string or a list with more words than the options allow; and for a
    question without a reference answer, unless the prompt asks for an explanation.
    """
    if not row.has_reference and options.answer_form == "short":
        expected, todo = (
            "an answer to compare with",
            "set options.answer_form to long, so that judges score the answers",
        )
        raise mt.Rejected(mt.Fault("no-reference-answer", expected, "none", field="answer", todo=todo))
    bound, how, words = options.max_answer_words, options.answer_words, words_of(row, options)
    if bound is None or words <= bound:
        return
    if row.answer_format == "String":
        expected, found = f"at most {bound} words", f"{row.answer[0]!r}"
    elif how == "whole":
        expected, found = f"at most {bound} words in all elements together", f"{words} in {list(row.answer)!r}"
    else:
        expected = f"at most {bound} words in each element"
        found = repr(max(row.answer, key=lambda value: len(value.split())))
    todo = "shorten the answer, or set options.max_answer_words to a larger number or to null (no limit)"
    raise mt.Rejected(mt.Fault("long-form-answer", expected, found[:200], field="answer", todo=todo))
