"""A reader turns the raw files of one dataset into rows. The engine uses every source through this class.

A reader yields rows as they are in the source. The engine applies the errata of the manifest to each, then lets the
reader turn it into a `Row`.
"""

import tarfile
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from io import BytesIO
from pathlib import Path
from typing import IO, ClassVar, Generic, TypeAlias, TypeVar, cast

from mmlongbench.documents.pages import Pages
from mmlongbench.documents.pixels import PictureFile
from mmlongbench.errors import Fault
from mmlongbench.prompt import Image
from mmlongbench.task.rows import RawRow, Row, RowFault, SourcePaths
from mmlongbench.task.sources import ImageClasses
from mmlongbench.task.spec import Options

RowT = TypeVar("RowT", bound=Row, covariant=True)
SampleFunction: TypeAlias = Callable[..., dict[str, Path]]
"""Writes a miniature of a reader's sources into a folder, in their raw format, and returns their paths by name.

It writes the same bytes every time. It is not a method of the reader: it is the entry point in the group
`mmlongbench.samples` that has the reader's name, and a manifest uses it with `source: sample`. It is a function that
draws the files, or the `SampleFiles` of an archive. Besides the reader's sources it may return a `corpus` of articles,
for a builder that searches one. A function that gives other questions for other tasks has a parameter `options`, and
gets the options of the dataset.
"""


@dataclass(frozen=True)
class SampleFiles:
    """A sample that lies in an archive as files, so that a user can open it. Calling it unpacks the sample."""

    about: str
    """What the sample shows, in one sentence; `mmlongbench list` prints it."""
    archive: Path
    """A tar archive, compressed or not."""
    folder: str
    """The folder of the sample in the archive."""
    sources: Mapping[str, str]
    """The path of each source below this folder, by the name of the source."""

    def __call__(self, folder: Path) -> dict[str, Path]:
        """Unpack the sample into a folder, and return the paths of its sources there."""
        with tarfile.open(fileobj=BytesIO(_unpacked(self.archive))) as archive:
            for member in archive:
                inside, _, name = member.name.partition("/")
                if inside == self.folder:
                    archive.extract(member.replace(name=name), folder, set_attrs=False, filter="data")
        return {name: folder / path for name, path in self.sources.items()}

    def __str__(self) -> str:
        """Return the place of the sample."""
        return f"{self.folder}/ in {self.archive}"


@lru_cache(maxsize=1)  # unpacking takes longest, and datasets that follow each other often have one archive
def _unpacked(archive: Path) -> bytes:
    with tarfile.open(archive) as packed:
        cast(IO[bytes], packed.fileobj).seek(0)
        return cast(IO[bytes], packed.fileobj).read()


class Reader(ABC, Generic[RowT]):
    """Reads the raw files of one dataset. Subclasses define `row_type`, `sources`, `image_folder`, `raw_rows` and
    `row`.

    The other methods give what else a source has. Each method may be called more than once, and `row` may be called
    without `raw_rows` before it.
    """

    row_type: ClassVar[type[Row]]
    """The class of the rows that `row` returns. Between the stages of a build they are stored as JSON, field by
    field."""
    sources: ClassVar[tuple[str, ...]]
    """The names of the sources that a manifest must give. A reader always gets a file or a folder of this machine:
    archives and packed files are unpacked, and URLs downloaded, before it is called."""
    optional_sources: ClassVar[tuple[str, ...]] = ()
    """The names of the sources that a manifest may leave out."""
    source_forms: ClassVar[Mapping[str, str]] = {}
    """What the file or folder of each source must look like, by the name of the source: one sentence each, which
    `mmlongbench list` shows."""
    extracted_from: ClassVar[Mapping[str, str]] = {}
    """The name of the source that each file or folder of `extract` comes from, by its name. What is not here may come
    from any source, so the strictest of their licences applies to it."""
    image_folder: ClassVar[str]
    """The folder of its images below `mmlb_image/`."""
    hub_files: ClassVar[tuple[str, ...]] = ()
    """Patterns of the files of a Hugging Face dataset that can be used as a source; empty: such a dataset cannot be
    used."""
    fixed_fields: ClassVar[tuple[str, ...]] = ()
    """Fields that errata cannot correct, because the reader also uses them outside `row`, for example to find pages or
    pictures."""
    names_images_by_content: ClassVar[bool] = False
    """Whether a release names pictures by their bytes, because the pictures' own names would reveal the answer."""

    @abstractmethod
    def raw_rows(self, sources: SourcePaths) -> Iterator[RawRow | RowFault]:
        """Yield every row as the source has it, in the source's order. For a row that cannot be read at all, yield a
        `RowFault`.
        """

    @abstractmethod
    def row(self, raw: RawRow, sources: SourcePaths) -> RowT | Fault:
        """Return the cleaned row of a raw row, or the fault in it. It may raise `Rejected` instead of returning a
        fault.
        """

    def extract(self, sources: SourcePaths, folder: Path) -> None:
        """Write parts of the sources that must be files, such as page images in a table, into an empty folder.

        It is called when a build is planned, before any other method. If it writes a file or folder `folder / name`,
        the other methods find its path in their `sources`, by this name. Later plans of the same build use these files
        again, unless the sources or this software changed, so the same sources must always give the same files.
        """

    def documents(self, sources: SourcePaths) -> Mapping[str, Pages | Fault]:
        """Return all documents that the rows or the padding need, by id. Each value is a PDF, page images, or the fault
        for which the document is refused.

        A builder has `sources.documents` only if the reader overrides this method. In the same way `sources.images`
        needs `image`, `sources.web_pages` needs `web_pages`, and `sources.image_classes` needs an `image_classes` that
        does not return None.
        """
        return {}

    def addresses(self, sources: SourcePaths) -> Mapping[str, str]:
        """Return the URLs at which single documents were published, by the id of the document, if the sources say so.
        The table of assets of a release has them.
        """
        return {}

    def notes(self, sources: SourcePaths, options: Options) -> Sequence[str]:
        """Return what a user must know about the sources, one sentence each, such as columns that are not used. A build
        prints it. `options` are those of the dataset's builder.

        Raises:
            SourceError: the options ask for something that the sources do not have.

        """
        return ()

    def image(self, sources: SourcePaths, name: str) -> PictureFile | None:
        """Return the picture that a row calls `name`: the path of a file, or a cell of a table; None if there is no
        such picture.
        """
        return None

    def asked_pictures(self, sources: SourcePaths) -> Iterable[str]:
        """Return the names of the pictures that any row, even a refused one, asks about or shows beside its question.

        This method and `shows` are called only for a reader that overrides `image`.
        """
        return ()

    def shows(self, sources: SourcePaths) -> Mapping[str, frozenset[str]]:
        """Return the pool: the names of the pictures that a builder may choose from, each with the objects that the
        picture shows.
        """
        return {}

    def web_pages(self, sources: SourcePaths) -> Mapping[str, Sequence[str | Image]]:
        """Return web pages by id, in the source's order. A page has its texts and pictures in reading order; the path
        of an `Image` is the picture's name in the source.
        """
        return {}

    def image_classes(self, sources: SourcePaths) -> ImageClasses | None:
        """Return the classes of pictures with their exemplars; None if the source has no classes."""
        return None
