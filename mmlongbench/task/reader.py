"""What a reader is: it turns the raw files of one dataset into rows. The engine knows every source through this class.

A reader yields rows as they stand in the source. The engine applies the errata of the manifest, then asks the reader to
make a row of each.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import ClassVar, Generic, TypeAlias, TypeVar

from mmlongbench.documents.page_store import Pages
from mmlongbench.documents.pixels import PictureFile
from mmlongbench.errors import Fault
from mmlongbench.prompt import Image
from mmlongbench.task.rows import RawRow, Row, RowFault, SourcePaths
from mmlongbench.task.sources import ImageClasses

ReadRow = TypeVar("ReadRow", bound=Row, covariant=True)
SampleFunction: TypeAlias = Callable[[Path], dict[str, Path]]
"""Draws a miniature of a reader's sources into a folder, in their raw format, and returns their paths by name.

It writes the same bytes every time. It is no part of the reader: it is found as the entry point of the group
`mmlongbench.samples` that has the reader's name, and a manifest asks for it by `source: sample`. Besides the reader's
sources it may return a `corpus` of articles, for a builder that searches one.
"""


class Reader(ABC, Generic[ReadRow]):
    """The raw files of one dataset. Write `row_type`, `sources`, `image_folder`, `raw_rows` and `row`.

    The other methods say what else a source has. A method may be called again, and `row` without `raw_rows` before it.
    """

    row_type: ClassVar[type[Row]]
    """The class of the rows that `row` gives. They are kept as JSON between the stages of a build, field by field."""
    sources: ClassVar[tuple[str, ...]]
    """The names that a manifest must give paths for."""
    optional_sources: ClassVar[tuple[str, ...]] = ()
    """Names that a manifest may leave out."""
    image_folder: ClassVar[str]
    """Where its images go below `mmlb_image/`."""
    hub_files: ClassVar[tuple[str, ...]] = ()
    """Patterns of the files of a hub's dataset that may stand in for a source's path; none: it cannot be one."""
    fixed_fields: ClassVar[tuple[str, ...]] = ()
    """Fields that errata cannot correct, since pages or pictures are read from them too."""
    names_images_by_content: ClassVar[bool] = False
    """Whether pictures are named by their bytes in a release, because their own names would tell the answer."""

    @abstractmethod
    def raw_rows(self, sources: SourcePaths) -> Iterator[RawRow | RowFault]:
        """Return every row as the source has it, in its order; or what is wrong with one that cannot be read at all."""

    @abstractmethod
    def row(self, raw: RawRow, sources: SourcePaths) -> ReadRow | Fault:
        """Return a raw row cleaned, or what is wrong with it. It may raise `Rejected` instead of returning a fault."""

    def documents(self, sources: SourcePaths) -> Mapping[str, Pages | Fault]:
        """Return all documents for rows and padding by id: a PDF or page images; a fault refuses the document.

        A builder has `sources.documents` only where the reader writes this method. It is the same with
        `sources.images` and `image`, with `sources.web_pages` and `web_pages`, and with `sources.image_classes` where
        `image_classes` does not return None.
        """
        return {}

    def image(self, sources: SourcePaths, name: str) -> PictureFile | None:
        """Return the picture that a row calls by a name, a path or a cell of a table; None if there is none."""
        return None

    def asked_pictures(self, sources: SourcePaths) -> Iterable[str]:
        """Return the pictures that any row, also a refused one, asks about or shows beside its question.

        Only a reader that writes `image` is asked for them, and for the pool of `shows`.
        """
        return ()

    def shows(self, sources: SourcePaths) -> Mapping[str, frozenset[str]]:
        """Return a pool of pictures by name, with the objects that each shows."""
        return {}

    def web_pages(self, sources: SourcePaths) -> Mapping[str, Sequence[str | Image]]:
        """Return interleaved pages by id, in the source's order, with pictures by name."""
        return {}

    def image_classes(self, sources: SourcePaths) -> ImageClasses | None:
        """Return the classes of pictures with their exemplars; None if it has no classes."""
        return None
