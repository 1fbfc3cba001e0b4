"""The haystack of MM-NIAH: passages and pictures of web pages, page after page, none of which gives a needle away."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain
from typing import Literal

import mmlongbench as mm
from builders.mm_niah.rows import HaystackQuestion

Mode = Literal["sentences", "words"]


@dataclass(frozen=True, slots=True)
class Haystack:
    """A question's own pages, then all others in a drawn order; what may not stand in it is barred with a reason."""

    row: HaystackQuestion
    world: mm.World
    draws: mm.Draws
    mode: Mode
    pictures: Sequence[mm.Picture]
    """The needles, choices and shown ones: none of them may stand in the haystack by itself."""

    def __call__(self) -> Iterator[mm.Unit]:
        """Units in the order of being taken, which is that of standing; pictures may be passed over."""
        text_fault, picture_fault = _text_faults(self.row), _picture_faults(self.pictures)
        seen: set[str] = set()
        body: mm.Part
        for place, (id, part, role) in enumerate(self._parts()):
            if isinstance(part, str):
                barred, body, key = text_fault(part), part, part
            else:
                picture, barred = self._picture(part.path, picture_fault)
                body, key = (mm.Image(picture.path), picture.path) if picture else ("", id)
            barred = barred or ("repeated" if key in seen else "")
            seen.add(key)
            yield mm.Unit(id, role, body, (place,), is_optional=isinstance(part, mm.Image), barred=barred)

    def _parts(self) -> Iterator[tuple[str, str | mm.Image, mm.Role]]:
        """(id, passage or picture by the source's name, role) of every page in turn."""
        pool, own = self.world.pool("web_pages"), frozenset(self.row.pages)
        others = (page for at in self.draws.permutation("pages", len(pool)) if (page := pool[at]) not in own)
        for page in chain(self.row.pages, others):
            role: mm.Role = "own" if page in own else "padding"
            for number, part in enumerate(self.world.web_page(page, self.mode)):
                yield f"{page}#{number}", part, role

    def _picture(self, name: str, fault: Callable[[mm.Picture], str]) -> tuple[mm.Picture | None, str]:
        try:
            picture = self.world.image(name)
        except mm.Rejected as refused:
            return None, refused.fault.reason
        return picture, fault(picture)


def _text_faults(row: HaystackQuestion) -> Callable[[str], str]:
    """Why a passage may not stand among the haystack: it holds a needle, or an answer."""
    holds_needle = mm.holder(needle.text for needle in row.needles if needle.text)
    holds_answer = mm.holder(() if row.counts else row.answers)
    return lambda text: "holds-needle" if holds_needle(text) else "holds-answer" if holds_answer(text) else ""


def _picture_faults(pictures: Sequence[mm.Picture]) -> Callable[[mm.Picture], str]:
    """Why a picture may not stand among the haystack: it is one of the question's."""
    paths, hashes = {picture.path for picture in pictures}, {sha256_of(picture) for picture in pictures}
    return lambda found: "needle-image" if found.path in paths or (hashes and sha256_of(found) in hashes) else ""


@lru_cache(maxsize=1 << 16)
def sha256_of(picture: mm.Picture) -> str:
    """The bytes of a picture, told apart."""
    return picture.sha256
