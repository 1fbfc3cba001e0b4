"""Finds the groups by which reports break down scores of document questions, from a released record alone."""

from collections.abc import Mapping, Sequence

import mmlongbench.task as mt
from builders.docvqa.paths import evidence_positions, find_index, folder_of

METRICS = (
    "mmlongbench-doc",
    "mmlongbench-doc-lenient",
    "anls",
    "smudge",
    "judge-mmlongbench-doc",
    "judge-answers",
    "judge-committee",
)
"""The metrics that can score answers about documents, besides the benchmark's own metric `doc_qa`."""
LONG_METRICS = ("judge-committee", "judge-answers")
"""The metrics that can score explanations; `judge-answers` needs reference answers."""
_TEXT_SOURCES = ("Text", "Pure-text (Plain-text)")
"""The kinds of evidence that are running text; all others, even layout, are visual."""
_PAGES = ((1, 4), (5, 8), (9, 16), (17, 32), (33, 64), (65, 128))


def facets_of(record: mt.Record) -> Mapping[str, Sequence[str]]:
    """Return the groups of a question, by facet. A facet is left out if the record has no value for it."""
    sources = record.get("answer_sources") or []
    needs = [] if not sources else ["text only" if set(sources) <= set(_TEXT_SOURCES) else "vision needed"]
    found = {
        "answer format": [record.get("answer_format", "")],
        "answer length": [record.get("answer_length", "")],
        "evidence source": sources,
        "evidence": needs,
        "evidence pages": [_evidence_pages(record)],
        "evidence position": evidence_positions(record),
        "evidence shown": [_evidence_shown(record)],
        "anchor": [record.get("anchor", "")],
        "pages shown": [_pages_shown(len(record.get("page_list", ())))],
        "document type": [record.get("doc_type", "")],
        "question type": [record.get("question_type", "")],
    }
    columns = record.get("facets")
    for column, value in columns.items() if isinstance(columns, dict) else ():
        found[column if column not in found else f"{column} (column)"] = [str(value)]
    kept = {name: [group for group in groups if group] for name, groups in found.items()}
    return {name: groups for name, groups in kept.items() if groups}


def _evidence_pages(record: mt.Record) -> str:
    """Return the group of a question by its number of answer pages. As in MMLongBench-Doc, an answerable question for
    which the source names no page counts as cross-page.
    """
    if record.get("answer") == mt.NOT_ANSWERABLE:
        return "unanswerable"
    return "single-page" if len(record.get("ans_page_list", ())) == 1 else "cross-page"


def _evidence_shown(record: mt.Record) -> str:
    """Return whether a retrieved context shows all answer pages, some, or none; empty for any other context."""
    answers = set(record.get("ans_page_list", ()))
    if "gold_ranks" not in record or not answers:
        return ""
    shown = {find_index(path) for path in record.get("page_list", ()) if folder_of(path) == record.get("doc_name")}
    return "all" if answers <= shown else "some" if answers & shown else "none"


def _pages_shown(count: int) -> str:
    return next((f"{first}-{last}" for first, last in _PAGES if count <= last), f"{_PAGES[-1][1] + 1} and more")
