"""A second check of packed contexts: no filler picture of a haystack is one that a question asks about."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import mmlongbench.task as mt
from builders.mm_niah.pages import is_made


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
