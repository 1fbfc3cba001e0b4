"""The pages that hold an answer, as a judge sees them: pictures from a release, or texts."""

from dataclasses import dataclass
from pathlib import Path

from mmlongbench.io.files import file_inside
from mmlongbench.models.pictures import Picture, picture_of
from mmlongbench.task.metric import Evidence

MOST = 20
"""The maximum number of pages with the answer that a judge sees; the first of them are shown."""


@dataclass(frozen=True, slots=True)
class GoldPages:
    """The pages of a document that judges see."""

    numbers: tuple[int, ...] = ()
    """The page numbers of the pictures, from 1."""
    pictures: tuple[Picture, ...] = ()
    texts: tuple[str, ...] = ()
    """The texts of pages, if there are no pictures."""

    @property
    def caption(self) -> str:
        """The sentence of the prompt about the pictures; empty if there are none."""
        named = ", ".join(map(str, self.numbers))
        return f"The pictures are the document's pages {named}, in this order." if self.pictures else ""


def gold_pages(evidence: Evidence, images: Path | None) -> GoldPages:
    """Return the pages of the prompt that hold the answer: their pictures or, if none has a picture, their texts.

    If only some of the pages have a picture, the other pages are left out.
    """
    answers = set(evidence.pages)
    numbers = [number for number in evidence.shown if number in answers][:MOST]
    shown = {number: found for number in numbers if (found := picture_at(images, evidence.images.get(number, "")))}
    if shown:
        return GoldPages(tuple(1 + number for number in shown), tuple(shown.values()))
    return GoldPages(texts=tuple(evidence.texts[number] for number in numbers if number in evidence.texts))


def picture_at(images: Path | None, path: str) -> Picture | None:
    """Return the picture at a path below a folder; None if there is no folder or no picture that can be shown."""
    file = file_inside(images, path) if images and path else None
    return picture_of(file) if file else None
