"""What a judge without a reference sees of a document: the pages that hold the answer, and those beside them.

M-LongDoc shows the texts of these pages, and the tables and figures of the evidence page as cut-outs. A release has no
cut-outs: the evidence page is shown as a whole picture. A neighbour without text is shown as a picture too.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from mmlongbench.io.folders import file_inside
from mmlongbench.metrics.judge.calls import fence
from mmlongbench.metrics.judge.gold_pages import MOST, GoldPages, answer_pages, own_pages, own_texts, page_path
from mmlongbench.metrics.judge.page_texts import PageTexts
from mmlongbench.metrics.judge.pictures import Picture, picture_of
from mmlongbench.task.rows import Record


@dataclass(frozen=True, slots=True)
class Evidence:
    """What is shown of a document."""

    texts: Mapping[int, str]
    """By page, from 0."""
    pictures: Mapping[int, Picture]
    """By page, from 0."""
    is_enough: bool
    """Whether every page that holds the answer is shown as text or picture."""

    @property
    def shown(self) -> str:
        """Return the document as a prompt shows it, after the pictures."""
        pages = GoldPages(tuple(number + 1 for number in self.pictures), tuple(self.pictures.values()))
        texts = [f"Page {number + 1}:\n{fence('page', text)}" for number, text in self.texts.items()]
        return "\n\n".join([*([pages.caption] if pages.caption else []), *texts])


def evidence_of(record: Record, images: Path | None, documents: PageTexts) -> Evidence:
    """Return the answer pages of a record and their neighbours, as far as they are there."""
    answers = answer_pages(record)[:MOST]
    wanted = sorted({page for answer in answers for page in (answer - 1, answer, answer + 1) if page >= 0})
    texts = {page: text for page, text in _texts(record, wanted, documents).items() if text.strip()}
    paths = own_pages(record)
    pictured = [page for page in wanted if page in answers or page not in texts]
    pictures = {page: found for page in pictured if (found := _picture(images, paths, page))}
    return Evidence(texts, pictures, all(page in texts or page in pictures for page in answers))


def _texts(record: Record, wanted: list[int], documents: PageTexts) -> dict[int, str]:
    """Return the texts of pages: the record's own, or else the document's."""
    own, name = own_texts(record), record.get("doc_name")
    missing = [page for page in wanted if page not in own]
    read = documents.of(name) if missing and isinstance(name, str) else ()
    found = {**own, **{page: read[page] for page in missing if page < len(read)}}
    return {page: found[page] for page in wanted if page in found}


def _picture(images: Path | None, paths: Mapping[int, str], page: int) -> Picture | None:
    """Return the picture of a page; one that the record does not show has the name of another with its own number."""
    path = paths.get(page) or next((page_path(other, page) for other in paths.values()), "")
    file = file_inside(images, path) if images and path else None
    return picture_of(file) if file else None
