"""Web pages of a dataset, whose texts are cut into passages on demand."""

from collections.abc import Mapping, Sequence

from mmlongbench.corpus.cutting import Mode, cut_text
from mmlongbench.prompt import Image


class WebPages:
    """The web pages of a dataset: texts and pictures in reading order. A picture's path is its name in the source."""

    def __init__(self, pages: Mapping[str, Sequence[str | Image]]) -> None:
        """`pages` has the pages by id, in the source's order."""
        self._pages = pages
        self._ids = tuple(pages)
        self._cut: dict[tuple[str, Mode], tuple[str | Image, ...]] = {}

    @property
    def ids(self) -> tuple[str, ...]:
        """The ids of all pages, in the source's order."""
        return self._ids

    def page(self, id: str, mode: Mode = "sentences") -> tuple[str | Image, ...]:
        """Return a page with its texts cut into passages."""
        if (id, mode) not in self._cut:
            pieces = (cut_text(part, mode) if isinstance(part, str) else [part] for part in self._pages[id])
            self._cut[id, mode] = tuple(part for piece in pieces for part in piece)
        return self._cut[id, mode]
