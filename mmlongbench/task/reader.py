"""What a reader is: it turns the raw files of one dataset into rows. None is known here by name."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import ClassVar, Protocol

from mmlongbench.documents.page_store import Pages
from mmlongbench.errors import Fault
from mmlongbench.task.rows import Row, RowFault, SourcePaths


class Reader(Protocol):
    """The raw files of one dataset; one whose rows can be corrected is a `CorrectableReader` too.

    It may have more: `image(sources, name) -> PictureFile | None`, the picture that a row calls by a name, a path or a
    cell of a table;
    `shows(sources) -> Mapping[str, frozenset[str]]`, a pool of pictures by name, with the objects each shows;
    `web_pages(sources) -> Mapping[str, Sequence[str | Image]]`, interleaved pages by id, in the source's order, with
    pictures by name; `asked_pictures(sources) -> Iterable[str]`, the pictures that any row, also a refused one, asks
    about or shows beside its question (see `World.is_asked_picture`); `image_classes(sources) -> ImageClasses`, classes
    with their exemplars; `optional_sources`, names that a manifest may leave out; `hub_files`, which files of a dataset
    of the hub stand in for a source's path; `names_images_by_content`, where the names of pictures would tell their
    class.
    """

    row_type: ClassVar[type[Row]]
    sources: ClassVar[tuple[str, ...]]
    """The names a manifest gives paths for."""
    image_folder: ClassVar[str]
    """Where its images go below `mmlb_image/`."""

    def __init__(self) -> None:
        """A reader has no state."""

    def rows(self, sources: SourcePaths) -> Iterator[Row | RowFault]:
        """Every row of the source in its order, or what is wrong with it."""
        ...

    def documents(self, sources: SourcePaths) -> Mapping[str, Pages | Fault]:
        """Document id → PDF or page images, of all documents for rows and padding; a fault refuses the document."""
        ...

    def draw_sample(self, folder: Path) -> dict[str, Path]:
        """Draw a miniature of this source in its raw format, the same bytes every time; returns its sources."""
        ...
