"""The haystack of MM-NIAH: passages and pictures of web pages, page after page, none of which gives a needle away."""

import unicodedata
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Literal

import mmlongbench as mm
from builders.mm_niah.pages import is_made
from builders.mm_niah.rows import HaystackQuestion

Mode = Literal["sentences", "words"]


@dataclass(frozen=True, slots=True)
class Haystack:
    """A question's own pages, then all others in a drawn order; what may not stand in it is excluded with a reason."""

    row: HaystackQuestion
    sources: mm.Sources
    draws: mm.Draws
    mode: Mode
    pictures: Sequence[mm.Picture]
    """The needles, choices and shown ones: none of them may stand in the haystack by itself."""

    def __call__(self) -> Iterator[mm.Unit]:
        """Units in the order of being taken, which is that of standing; pictures may be passed over."""
        text_fault, picture_fault = _text_faults(self.row), _picture_faults(self.pictures, self.sources.images)
        seen: set[str] = set()
        body: mm.Part
        for place, (id, part, role) in enumerate(self._parts()):
            if isinstance(part, str):
                excluded, body, key = text_fault(part), part, part
            else:
                picture, excluded = self._picture(part.path, picture_fault)
                body, key = (mm.Image(picture.path), picture.path) if picture else ("", id)
            excluded = excluded or ("repeated" if key in seen else "")
            seen.add(key)
            yield mm.Unit(id, role, body, (place,), is_optional=isinstance(part, mm.Image), excluded=excluded)

    def _parts(self) -> Iterator[tuple[str, str | mm.Image, mm.Role]]:
        """(id, passage or picture by the source's name, role) of every page in turn."""
        pool, own = self.sources.web_pages.ids, frozenset(self.row.pages)
        others = (page for at in self.draws.permutation("pages", len(pool)) if (page := pool[at]) not in own)
        for page in chain(self.row.pages, others):
            role: mm.Role = "own" if page in own else "padding"
            for number, part in enumerate(self.sources.web_pages.page(page, self.mode)):
                yield f"{page}#{number}", part, role

    def _picture(self, name: str, fault: Callable[[str, mm.Picture], str]) -> tuple[mm.Picture | None, str]:
        try:
            picture = self.sources.images[name]
        except mm.Rejected as refused:
            return None, refused.fault.reason
        return picture, fault(name, picture)


def _text_faults(row: HaystackQuestion) -> Callable[[str], str]:
    """Why a passage may not stand among the haystack: it holds a needle, an answer, or the symbol that is counted."""
    holds_needle = mm.holder(needle.text for needle in row.needles if needle.text)
    holds_answer = mm.holder(() if row.counts else row.answers)
    symbols = counted_symbols(row)

    def fault(text: str) -> str:
        if holds_needle(text):
            return "holds-needle"
        if holds_answer(text):
            return "holds-answer"
        return "holds-symbol" if not symbols.isdisjoint(text) else ""

    return fault


def counted_symbols(row: HaystackQuestion) -> frozenset[str]:
    """Return the symbols that a question counts in statements, such as ★: those of the question and of every needle.

    Statements of other questions hold the same symbol, so no passage with it may stand in the haystack.
    """
    texts = [row.question, *(needle.text for needle in row.needles)] if row.counts else []
    common = set.intersection(*map(set, texts)) if texts else set()
    return frozenset(each for each in common if unicodedata.category(each).startswith("S") and not each.isascii())


def _picture_faults(pictures: Sequence[mm.Picture], images: mm.Images) -> Callable[[str, mm.Picture], str]:
    """Why a picture may not stand among the haystack: this question, or another of the source, is about it."""
    paths, own = {picture.path for picture in pictures}, mm.PictureBytes(picture.source for picture in pictures)

    def fault(name: str, picture: mm.Picture) -> str:
        if picture.path in paths or picture.source in own:
            return "needle-image"
        if is_made(name):
            return "made-image"
        return "image-of-a-question" if images.is_asked(picture) else ""

    return fault
