"""What was packed, checked once more: no picture that fills a haystack is one that a question asks about."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import mmlongbench as mm
from builders.mm_niah.pages import is_made


@dataclass(frozen=True, slots=True)
class FillerCheck:
    """The check of the filler pictures of one question's contexts, apart from the haystack that chose them."""

    images: mm.Images = field(compare=False)
    own: tuple[mm.Picture, ...]
    """The needles, the options and the shown pictures of the question."""

    def check(self, id: str, units: Sequence[mm.Unit]) -> None:
        """Refuse to release a context with a wrong filler picture.

        Raises:
            DraftError: a filler picture was made by the benchmark, or has the bytes of a picture that is asked about.
                The haystack leaves such pictures out, so this is an error of the engine and ends the build.

        """
        own = mm.PictureBytes(picture.source for picture in self.own)
        fillers = [unit.body.path for unit in units if isinstance(unit.body, mm.Image) and unit.role != "needle"]
        for path in fillers:
            if fault := self._fault(path, own):
                raise mm.DraftError(
                    f"{id}: internal error: the picture {path} fills the haystack, but it {fault}; no such "
                    "picture may be released: please report this with the row"
                )

    def _fault(self, path: str, own: mm.PictureBytes) -> str:
        name = self.images.origin(path) or path
        if is_made(name):
            return "stands in a folder of made pictures"
        picture = self.images[name]
        if picture.source in own or self.images.is_asked(picture):
            return "has the bytes of a picture that a question asks about"
        return ""
