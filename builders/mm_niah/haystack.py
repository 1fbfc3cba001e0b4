"""The haystack of MM-NIAH: the passages and pictures of web pages, without those that would reveal a needle,
and a second check of packed contexts: no filler picture is one that a question asks about.
"""

import unicodedata
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Literal

import mmlongbench.task as mt
from builders.mm_niah.rows import HaystackQuestion, is_made


@dataclass(frozen=True, slots=True)
class FillerCheck:
    """Checks the filler pictures of one question's contexts, independently of the haystack that chose them."""

    images: mt.Images = field(compare=False)
    own: tuple[mt.Picture, ...]
    """The needles, the options and the shown pictures of the question."""

    def check(self, id: str, units: Sequence[mt.Unit]) -> None:
        """Refuse to release a context with a wrong filler picture.

        Raises:
            DraftError: a filler picture was made by the benchmark, or has the bytes of a picture that is asked about.
                The haystack leaves out such pictures, so this is an error of the engine, and the build ends.

        """
        own = mt.PictureBytes(picture.source for picture in self.own)
        fillers = [unit.body.path for unit in units if isinstance(unit.body, mt.Image) and unit.role != "needle"]
        for path in fillers:
            if fault := self._fault(path, own):
                raise mt.DraftError(
                    f"{id}: internal error: the picture {path} fills the haystack, but it {fault}; no such "
                    "picture may be released: please report this with the row"
                )

    def _fault(self, path: str, own: mt.PictureBytes) -> str:
        name = self.images.origin(path) or path
        if is_made(name):
            return "is in a folder of pictures that the benchmark made"
        picture = self.images[name]
        if picture.source in own or self.images.is_asked(picture):
            return "has the bytes of a picture that a question asks about"
        return ""


Mode = Literal["sentences", "words"]


@dataclass(frozen=True, slots=True)
class Haystack:
    """A question's own pages, then all others in a drawn order; units that would reveal a needle are excluded."""

    row: HaystackQuestion
    sources: mt.Sources
    draws: mt.Draws
    mode: Mode
    pictures: Sequence[mt.Picture]
    """The needles, choices and shown pictures: none of them may be in the haystack as a filler."""

    def __call__(self) -> Iterator[mt.Unit]:
        """Yield units in the order in which they are taken, which is also their order in the prompt. Pictures are
        optional: a picture that does not fit may be left out.
        """
        text_fault, picture_fault = _text_faults(self.row), _picture_faults(self.pictures, self.sources.images)
        seen: set[str] = set()
        body: mt.Part
        for place, (id, part, role) in enumerate(self._parts()):
            if isinstance(part, str):
                excluded, body, key = text_fault(part), part, part
            else:
                picture, excluded = self._picture(part.path, picture_fault)
                body, key = (mt.Image(picture.path), picture.path) if picture else ("", id)
            excluded = excluded or ("repeated" if key in seen else "")
            seen.add(key)
            yield mt.Unit(id, body, (place,), role, is_optional=isinstance(part, mt.Image), excluded=excluded)

    def _parts(self) -> Iterator[tuple[str, str | mt.Image, mt.Role]]:
        """Yield (id, passage or picture, role) of each part, page after page; a picture has the name that the source
        uses.
        """
        pool, own = self.sources.web_pages.ids, frozenset(self.row.pages)
        others = (page for at in self.draws.permutation("pages", len(pool)) if (page := pool[at]) not in own)
        for page in chain(self.row.pages, others):
            role: mt.Role = "own" if page in own else "padding"
            for number, part in enumerate(self.sources.web_pages.page(page, self.mode)):
                yield f"{page}#{number}", part, role

    def _picture(self, name: str, fault: Callable[[str, mt.Picture], str]) -> tuple[mt.Picture | None, str]:
        try:
            picture = self.sources.images[name]
        except mt.Rejected as refused:
            return None, refused.fault.reason
        return picture, fault(name, picture)


def _text_faults(row: HaystackQuestion) -> Callable[[str], str]:
    """Return a function that says why a passage may not be in the haystack: the passage has a needle, an answer or a
    counted symbol. The function returns an empty text for any other passage.
    """
    holds_needle = mt.holder(needle.text for needle in row.needles if needle.text)
    holds_answer = mt.holder(() if row.counts else row.answers)
    symbols = counted_symbols(row)

    def fault(text: str) -> str:
        if holds_needle(text):
            return "holds-needle"
        if holds_answer(text):
            return "holds-answer"
        return "holds-symbol" if not symbols.isdisjoint(text) else ""

    return fault


def counted_symbols(row: HaystackQuestion) -> frozenset[str]:
    """Return the symbols that a question counts in statements, such as ★: they are in the question and in every needle.

    Statements of other questions have the same symbol, so no passage with it may be in the haystack.
    """
    texts = [row.question, *(needle.text for needle in row.needles)] if row.counts else []
    common = set.intersection(*map(set, texts)) if texts else set()
    return frozenset(each for each in common if unicodedata.category(each).startswith("S") and not each.isascii())


def _picture_faults(pictures: Sequence[mt.Picture], images: mt.Images) -> Callable[[str, mt.Picture], str]:
    """Return a function that says why a picture may not be in the haystack: a question of the source is about it, or it
    was made for a question. The function returns an empty text for any other picture.
    """
    paths, own = {picture.path for picture in pictures}, mt.PictureBytes(picture.source for picture in pictures)

    def fault(name: str, picture: mt.Picture) -> str:
        if picture.path in paths or picture.source in own:
            return "needle-image"
        if is_made(name):
            return "made-image"
        return "image-of-a-question" if images.is_asked(picture) else ""

    return fault
