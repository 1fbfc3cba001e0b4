"""DocVQA: answer a question about one document among pages of other documents (paper, section 3; files `documentQA/`).

Pages of a document that is too long are left out at both ends, and other documents are put around one that is too short
(see `contexts`). The prompt names a document by the first characters of its folder: 15 in the public datasets,
otherwise as many as tell it apart (`label_width`). No two documents of a context have one label.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import ClassVar

import mmlongbench.task as mt
from builders.common import page_number, parted_unit, refused, text_unit, with_text
from builders.docvqa import evidence
from builders.docvqa.contexts import CONTEXTS, FORMS, Asked, Chosen, page_unit
from builders.docvqa.rows import MAX_FACET, DocumentQuestion, DocVQAOptions

RECORD_FIELDS: Mapping[str, str] = {
    "id": "The id of the question, the same at every length.",
    "doc_name": "The name of the document that the question is about; the folder of its page images has this name.",
    "question": "The question, without the words that name the document.",
    "answer": "The answer: a list as JSON, or `Not answerable`; empty if the source gives no reference answer.",
    "answer_length": "`short`, or `long` (over five words, or no reference); only if max_answer_words allows both.",
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
    "pages_without_text": "The places of pages without text in page_text_list, from 0 (`0, 3`); only if text is shown.",
    "evidence_has_text": "Whether a shown answer page has text, or none is shown; only if pages are shown as text.",
    "answer_sources": "Where the answer is, in the words of the source, such as `Table`; empty if it does not say.",
    "doc_type": "The type of the document in the words of the source; empty if the source does not say.",
    "question_type": "The type of the question in the words of the source; only if the source gives one.",
    "span": "The first and the last page that may be shown, from 0 (`41-70`); only if the source gives a window.",
    "span_kind": "The value of the option span; only if the source gives a window of pages.",
    "page_label": "The value of the option page_label.",
    "question_names_page": "Whether the question names a page by its position, such as `page 3` or `the last slide`.",
    "gaps": "The pages of the document, from 0, that are missing between its shown pages, such as `1-2, 7-7`.",
    "anchor": "How the pages of anchor_page_list were chosen: answer (pages), best_match, drawn, middle, retrieved.",
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
    "cannot be answered based on the information in the article, write 'Not answerable.'"
)
_EXPLAIN = (
    "Answer the question from the document alone, in at most 200 words, and say on which facts of the document your "
    "answer rests."
)
RESERVE = {"short": 256, "long": 512}
"""Tokens kept free for an answer, by `options.answer_form`: the 200 words of a long one have about 300 tokens, and
figures in them more; 128 of the rest are for a chat template."""
PAPER_WORDS = 5
"""The maximum number of words of an answer in the paper. Longer answers are in the group `answer length: long`."""
PAPER_IMAGES = {"mmlongdoc": (3.3, 6.9, 13.8, 28.0, 56.4), "slidevqa": (7.5, 16.2, 33.2, 67.2, 135.2)}
"""The images per example at 8K, 16K, 32K, 64K and 128K in Table 3 of the paper."""
METRICS = ("mmlongbench-doc", "mmlongbench-doc-lenient", "anls", "smudge", "judge-mmlongbench-doc", "judge-answers")
"""The metrics that can score answers about documents, besides the benchmark's own metric `doc_qa` and the committee."""


def instruction(answer_form: str, *, is_text: bool) -> str:
    """Return the text before the pages."""
    given = f"You are given a document{'' if is_text else ' with text and images'}, and a question."
    ask = _EXPLAIN if answer_form == "long" else _ASK
    return f"{given} {ask} Write your answer in the following format:\nAnswer: [answer]\n\n"


def question_parts(document: str, question: str) -> tuple[mt.Part, ...]:
    """Return the text after the pages; `document` is what the prompt calls the document."""
    asked = f"Based on Document {document}, answer the following question. {question}"
    return (f"\n\nQuestion: {asked}\nAnswer:",)


class DocVQA(mt.advanced.ExaminingBuilder[DocumentQuestion]):
    """Long-document QA over page images, or over their text."""

    row_type: ClassVar[type[mt.Row]] = DocumentQuestion
    options: DocVQAOptions

    options_type: ClassVar[type[mt.Options]] = DocVQAOptions
    record_fields: ClassVar[Mapping[str, str]] = RECORD_FIELDS

    @property
    def spec(self) -> mt.advanced.TaskSpec:
        options, form = self.options, self.options.pages_as
        is_long, is_text = options.answer_form == "long", form == "text"
        finds_anchor = options.unanswerable_anchor == "best_match" and options.context != "oracle"
        return mt.advanced.TaskSpec(
            mt.readers.FilePattern("documentQA/{name}_K{k}.jsonl"),
            metric="judge-committee" if is_long else "doc_qa",
            # `judge-answers` needs reference answers, the committee does not.
            further_metrics=("judge-committee", "judge-answers") if is_long else (*METRICS, "judge-committee"),
            category="" if form != "image" or is_long or options.synthetic else "DocVQA",
            page_keys=True,
            page_texts=is_text or options.is_retrieved or finds_anchor,
            page_crops=form == "interleaved",
            join_pages=mt.advanced.JoinPages(options.joined, options.joined_pixels) if form == "joined" else None,
            page_rankings=options.is_retrieved,
            balance="evidence_has_text" if is_text else "",  # the lock counts questions with and without such text
            paper_images=PAPER_IMAGES.get(self.dataset, ()) if form in ("image", "text") else (),
            reserve=RESERVE[options.answer_form],
            may_lack_answers=is_long,
        )

    def draft(self, row: DocumentQuestion, sources: mt.Sources, draws: mt.Draws) -> mt.advanced.ContextDraft:
        documents, options = sources.documents, self.options
        own = documents[row.doc]
        check(row, options)
        asked = Asked.of(row, documents, options)
        blank = asked.blank_answer_pages()
        chosen = CONTEXTS[options.context](asked, sources, draws)
        noted = [f"answer read as {row.answer_format}"]
        if chosen.rule not in ("answer", "retrieved"):
            noted.append(f"unanswerable anchor {chosen.rule}")
        as_images = instruction(options.answer_form, is_text=False)
        as_text = instruction(options.answer_form, is_text=True)
        rendering = mt.advanced.Rendering((as_text,), partial(with_text, documents)) if options.renders_text else None
        parts = question_parts(asked.label(own), row.question)
        return mt.advanced.ContextDraft(
            chosen.required,
            mt.Chain(chosen.rest),
            id=row.id,
            instruction=(as_text if options.pages_as == "text" and not rendering else as_images,),
            questions=(mt.advanced.Question(row.id, parts, {"asked": asked, "chosen": chosen}),),
            rendered_as_text=rendering,
            noted=(*noted, *blank),
        )

    def page_query(self, row: DocumentQuestion, sources: mt.Sources) -> mt.advanced.PageQuery | None:
        return Asked.of(row, sources.documents, self.options).query() if self.options.is_retrieved else None

    def gold_ranks(self, record: mt.Record) -> Sequence[int] | None:
        ranks = record.get("gold_ranks")
        if isinstance(ranks, list) and all(type(rank) is int and rank >= 0 for rank in ranks):
            return tuple(ranks)
        return None

    def record(self, example: mt.PackedExample) -> mt.Record:
        asked: Asked = example.question.data["asked"]
        chosen: Chosen = example.question.data["chosen"]
        row, own, options, units = asked.row, asked.own, self.options, example.units
        shown = sorted(unit.data["index"] for unit in units if unit.role == "own")
        first, last = (options.span == "window" and row.window) or (0, own.page_count - 1)
        has_long_answers = options.max_answer_words is None or options.max_answer_words > PAPER_WORDS
        is_long = not row.has_reference or words_of(row, options) > PAPER_WORDS
        # The loaders of the public datasets call every document by the first characters of its name.
        labels, own_label = [str(unit.data["label"]) for unit in units], asked.label(own)
        is_usual = labels == [mt.advanced.label(str(unit.group)) for unit in units]
        fields: dict[str, object] = {
            "id": row.id,
            "doc_name": own.name,
            "question": row.question,
            "answer": json.dumps(row.answer, ensure_ascii=False) if row.answer_format == "List" else row.answer[0],
            "answer_format": row.answer_format,
            "ans_page_list": list(row.pages),
            "page_list": [unit.id for unit in units],
            **FORMS[options.pages_as].fields(asked, units),
            "answer_sources": list(row.sources),
            "doc_type": row.doc_type,
            "question_type": row.question_type or None,
            "span": f"{first}-{last}" if row.window else None,
            "span_kind": options.span if row.window else None,
            "page_label": options.page_label,
            "question_names_page": bool(evidence.NAMES_PAGE.search(row.question)),
            "gaps": evidence.runs_between(shown),
            "anchor": chosen.rule,
            "anchor_page_list": list(chosen.anchor),
            "answer_form": options.answer_form if options.answer_form != "short" else None,
            "answer_length": ("long" if is_long else "short") if has_long_answers else None,
            "accepted_answers": list(row.accepted) or None,
            "facets": {name: row.columns.get(name, "") for name in options.facets} or None,
            "context": options.context if options.is_retrieved else None,
            "page_ranks": [unit.data["rank"] for unit in units] if options.is_retrieved else None,
            "gold_ranks": list(chosen.gold_ranks) if options.is_retrieved else None,
            "document_labels": None if is_usual else labels,
            "document_label": own_label if not shown and own_label != mt.advanced.label(own.name) else None,
        }
        record = {field: value for field, value in fields.items() if value is not None}
        return {**record, "evidence_position": ", ".join(evidence.evidence_positions(record))}

    def prompt(self, record: mt.Record) -> mt.Prompt:
        """Return the prompt of a released line: with texts if the line has `page_text_list`, with crops between them if
        it also has `crop_list`, otherwise with images.
        """
        label, paths = record.get("page_label", "none"), record["page_list"]
        texts, crops = record.get("page_text_list"), record.get("crop_list")
        folders = [evidence.folder_of(path) for path in paths]
        labels = record.get("document_labels") or list(map(mt.advanced.label, folders))
        named = dict(zip(folders, labels, strict=True))
        units = [
            page_unit(path, page_number(path), label, "own", named[folder])
            for path, folder in zip(paths, folders, strict=True)
        ]
        if texts is not None and crops is None:
            units = [text_unit(unit, text) for unit, text in zip(units, texts, strict=True)]
        elif texts is not None:
            images = (str(crop["image"]) for crop in crops or ())
            units = [
                parted_unit(unit, text, [next(images) for _ in range(text.count(mt.advanced.MARKER))])
                for unit, text in zip(units, texts, strict=True)
            ]
        told = instruction(record.get("answer_form", "short"), is_text=texts is not None and crops is None)
        own = named.get(record["doc_name"]) or record.get("document_label") or mt.advanced.label(record["doc_name"])
        return mt.advanced.assemble((told,), units, "\n\n", question_parts(own, record["question"]))

    def evidence(self, record: mt.Record) -> mt.Evidence:
        return evidence.evidence_of(record)

    def accepted(self, record: mt.Record) -> Sequence[object]:
        """Return the other answers that the table of own questions accepts."""
        accepted = record.get("accepted_answers")
        return tuple(map(str, accepted)) if isinstance(accepted, list) else ()

    def facets(self, record: mt.Record) -> Mapping[str, Sequence[str]]:
        return evidence.facets_of(record)

    def cluster(self, record: mt.Record) -> str:
        return str(record.get("doc_name", ""))

    def suspects(self, rows: Sequence[DocumentQuestion], sources: mt.Sources) -> Iterable[mt.advanced.Suspect]:
        # The pages of rows are not those of joined documents.
        return () if self.options.pages_as == "joined" else evidence.find_suspects(rows, sources)

    def examined_documents(self, rows: Sequence[DocumentQuestion]) -> Iterable[str]:
        return (row.doc for row in rows)


def words_of(row: DocumentQuestion, options: DocVQAOptions) -> int:
    """Return the number of words (parts between blanks) of a string or a list answer, as `options.answer_words` counts
    them; 0 for any other answer.
    """
    counts = [len(value.split()) for value in row.answer] if row.answer_format in ("String", "List") else [0]
    return sum(counts) if options.answer_words == "whole" else max(counts)


def check(row: DocumentQuestion, options: DocVQAOptions) -> None:
    """Raise `Rejected` for a long-form answer: a string or a list with more words than the options allow; for a
    question without a reference answer, unless the prompt asks for an explanation; and for a long text by which reports
    would break scores down.
    """
    if not row.has_reference and options.answer_form == "short":
        todo = "set options.answer_form to long, so that judges score the answers"
        raise refused("no-reference-answer", "an answer to compare with", "none", "answer", todo)
    bound, words = options.max_answer_words, words_of(row, options)
    if bound is not None and words > bound:
        expected, found = f"at most {bound} words", repr(row.answer[0])
        if row.answer_format == "List" and options.answer_words == "whole":
            expected, found = f"{expected} in all elements together", f"{words} in {list(row.answer)!r}"
        elif row.answer_format == "List":
            longest = max(row.answer, key=lambda value: len(value.split()))
            expected, found = f"{expected} in each element", repr(longest)
        todo = "shorten the answer, or set options.max_answer_words to a larger number or to null (no limit)"
        raise refused("long-form-answer", expected, found[:200], "answer", todo)
    for name in options.facets:
        if len(row.columns.get(name, "")) > MAX_FACET:
            todo = f"shorten it, or take {name} out of options.facets"
            raise refused("long-facet", f"at most {MAX_FACET} characters", "more", name, todo)
