"""Slots are drawn before any call: shares, minima, places, and what another document changes."""

from collections import Counter
from pathlib import Path

import pytest

from mmlongbench.documents.page_facts import PageFacts
from mmlongbench.questions.writing.documents import ReadDocument
from mmlongbench.questions.writing.lines import DocumentLine, PageLine
from mmlongbench.questions.writing.quotas import FORMATS, minima_of
from mmlongbench.questions.writing.settings import WritingSettings
from mmlongbench.questions.writing.slots import quotas, slots

SETTINGS = WritingSettings(authors=("gpt-4o", "claude-3", "gemini-2"))


def document(name: str, pages: int, doc_type: str = "") -> ReadDocument:
    line = DocumentLine(doc=name, sha256=name * 8, pages=pages, doc_type=doc_type)
    return ReadDocument(line, Path(f"{name}.pdf"), (PageFacts("", "", 1.0, 1.0, 0.0, 0, []),) * pages)


def lines(doc: ReadDocument, *kinds: str) -> list[PageLine]:
    return [
        PageLine(doc=doc.name, page=n, key=f"{n}", kinds=kinds, worth=0.0 if n == 1 else 0.7, why=())
        for n in range(1, len(doc.pages) + 1)
    ]


@pytest.mark.parametrize(
    "doc_type", ["Financial report", "Academic paper", "Brochure", "Guidebook", "Tutorial/Workshop", ""]
)
def test_minima_of_the_type_are_wanted(doc_type: str) -> None:
    doc = document("a", 30, doc_type)
    pages = lines(doc, "text", "table", "figure")
    found = {quota.kind: quota for quota in quotas(doc, pages, SETTINGS)}
    least = minima_of(doc_type)
    assert sum(quota.wanted for quota in found.values()) >= least.all
    assert found["cross"].wanted >= least.cross
    assert least.unanswerable <= found["unanswerable"].wanted
    assert least.table <= (found["table"].wanted if "table" in found else 0)
    assert least.figure <= (found["figure"].wanted if "figure" in found else 0)
    assert all(quota.slots >= 2 * quota.wanted and not quota.why_fewer for quota in found.values())


def test_what_a_document_does_not_have_is_said() -> None:
    doc = document("a", 3, "Financial report")
    found = {quota.kind: quota for quota in quotas(doc, lines(doc, "text"), SETTINGS)}
    assert (found["table"].slots, found["table"].why_fewer) == (0, "0 pages with this content")
    assert found["text"].slots > 0


def test_formats_authors_and_fifths_have_their_shares() -> None:
    settings = SETTINGS.model_copy(update={"per_document": 60})
    drawn = []
    for number in range(6):
        doc = document(f"d{number}", 40)
        pages = lines(doc, "text", "table", "figure")
        drawn += list(slots(doc, pages, quotas(doc, pages, settings), settings))
    answerable = [slot for slot in drawn if slot.kind != "unanswerable"]
    formats = Counter(slot.format for slot in answerable)
    for format, share in FORMATS.items():
        assert abs(formats[format] / len(answerable) - share) < 0.02
    authors = Counter(slot.author for slot in drawn)
    assert min(authors.values()) > 0.25 * len(drawn)
    fifths = Counter((slot.pages[0] - 1) // 8 for slot in answerable)
    assert all(0.12 <= fifths[fifth] / len(answerable) <= 0.30 for fifth in range(5))
    assert len({(slot.doc, slot.kind, slot.pages, slot.number) for slot in answerable}) == len(answerable)
    assert len({slot.id for slot in drawn}) == len(drawn)


def test_a_window_stays_inside_the_document() -> None:
    doc = document("a", 5)
    pages = lines(doc, "text")
    found = [slot for slot in slots(doc, pages, quotas(doc, pages, SETTINGS), SETTINGS) if slot.kind == "cross"]
    assert found
    assert all(len(slot.pages) == 2 and slot.pages[-1] <= 5 for slot in found)
