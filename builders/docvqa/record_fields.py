"""What each field of a record of document questions means."""

from collections.abc import Mapping

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
