"""The texts of pages. Where a dataset shows pages as images, another dataset of the release may show the same pages as
texts: two units with the same id are the same page.
"""

from collections.abc import Iterator
from pathlib import PurePosixPath

from mmlongbench.release.release import Release
from mmlongbench.shortcuts.reading import ShownUnit, asked_questions

_IMAGES = frozenset({".jpg", ".jpeg", ".png", ".webp", ".gif", ".tif", ".tiff", ".bmp"})


class PageTexts:
    """The texts of the units of a release. Those of images are read when the first one is requested."""

    def __init__(self, release: Release) -> None:
        """Nothing is read yet."""
        self._release = release
        self._texts: dict[str, str] | None = None

    def of(self, unit: ShownUnit) -> str:
        """Return the text of a unit, without its title; of an image, the text of this page in another dataset. Empty if
        it is unknown.

        Raises:
            ReleaseError: a file cannot be read.

        """
        if not unit.image:
            return unit.body
        if self._texts is None:
            self._texts = {page.id: page.body for name in self._release.datasets for page in self._pages(name)}
        return self._texts.get(unit.id or unit.image, "")

    def _pages(self, dataset: str) -> Iterator[ShownUnit]:
        """Yield the pages of a dataset that shows them as texts; another one is left after its first question."""
        for asked in asked_questions(self._release, dataset):
            texts = (unit for unit in asked.units if not unit.image)
            pages = [unit for unit in texts if PurePosixPath(unit.id).suffix.lower() in _IMAGES]
            if not pages:
                return
            yield from pages
