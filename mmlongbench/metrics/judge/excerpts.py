"""The part of a document that a judge without a reference sees: the pages that hold the answer, and their neighbours.

M-LongDoc shows the texts of these pages, and cut-outs of the tables and figures of the evidence page. A release has no
cut-outs, so the whole evidence page is shown as a picture. A neighbour without text is shown as a picture too.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from mmlongbench.metrics.judge.gold_pages import MOST, GoldPages, picture_at
from mmlongbench.metrics.judge.page_texts import PageTexts
from mmlongbench.models.fences import fence
from mmlongbench.models.pictures import Picture
from mmlongbench.task.metric import Evidence


@dataclass(frozen=True, slots=True)
class Excerpt:
    """The part of a document that is shown."""

    texts: Mapping[int, str]
    """The texts by page number, from 0."""
    pictures: Mapping[int, Picture]
    """The pictures by page number, from 0."""
    is_enough: bool
    """Whether every page that holds the answer is shown as text or picture."""

    @property
    def shown(self) -> str:
        """Return the words of the prompt that show the document; the pictures come before them."""
        pages = GoldPages(tuple(number + 1 for number in self.pictures), tuple(self.pictures.values()))
        texts = [f"Page {number + 1}:\n{fence('page', text)}" for number, text in self.texts.items()]
        return "\n\n".join([*([pages.caption] if pages.caption else []), *texts])


def excerpt_of(evidence: Evidence, images: Path | None, documents: PageTexts) -> Excerpt:
    """Return the pages that hold the answer and their neighbours, as far as their texts or pictures can be found."""
    answers = evidence.pages[:MOST]
    wanted = sorted({page for answer in answers for page in (answer - 1, answer, answer + 1) if page >= 0})
    texts = {page: text for page, text in _texts(evidence, wanted, documents).items() if text.strip()}
    pictured = [page for page in wanted if page in answers or page not in texts]
    pictures = {page: found for page in pictured if (found := picture_at(images, evidence.images.get(page, "")))}
    return Excerpt(texts, pictures, all(page in texts or page in pictures for page in answers))


def _texts(evidence: Evidence, wanted: list[int], documents: PageTexts) -> dict[int, str]:
    """Return the texts of pages: from the prompt if it shows them, else from the document."""
    missing = [page for page in wanted if page not in evidence.texts]
    read = documents.of(evidence.document) if missing and evidence.document is not None else ()
    found = {**evidence.texts, **{page: read[page] for page in missing if page < len(read)}}
    return {page: found[page] for page in wanted if page in found}
