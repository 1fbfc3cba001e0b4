"""The lines of an index: what is kept of each example of a public file. Values only."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from urllib.parse import quote, unquote

from pydantic import TypeAdapter

from mmlongbench.release.layout import as_utf8

MAX_TEXT = 400
"""The characters of a question or an answer that an index keeps."""


@dataclass(frozen=True, slots=True)
class IndexRow:
    """One example of a public file, as tables show it."""

    row: int
    """Its number in the file, from 0."""
    offset: int
    """The byte at which its record begins."""
    size: int
    """The bytes of its record."""
    units_at: int
    """The byte at which its units begin in the file of units."""
    units_size: int
    """The bytes of its units; 0: none are kept."""
    id: str = ""
    kind: str = ""
    """The kind of its placement: `depth`, `permutation` or empty."""
    placement: float | None = None
    question: str = ""
    answer: str = ""
    document: str = ""
    facets: Mapping[str, Sequence[str]] = field(default_factory=dict)
    text: int = 0
    """The text tokens that the record states."""
    image: int = 0
    """The image tokens that the record states."""
    reserve: int = 0
    images: int = 0
    """The number of its images."""
    units: int = 0
    """The number of its units; 0 if its builder does not name them."""
    fault: str = ""
    """Why the record cannot be read; empty if it can."""

    @property
    def number(self) -> int:
        """Its number as people count, from 1: what pages and addresses show."""
        return self.row + 1

    @property
    def name(self) -> str:
        """Its id or, without one, its number."""
        return self.id or f"example {self.number}"

    @property
    def tokens(self) -> int:
        """The tokens of the prompt."""
        return self.text + self.image

    @property
    def placed(self) -> str:
        """The placement with its name, such as `depth 0.2`; empty if there is none."""
        return "" if self.placement is None else f"{self.kind or 'placement'} {self.placement:g}"


@dataclass(frozen=True, slots=True)
class Units:
    """The units of one example in columns, because an example may have many thousands."""

    names: Sequence[str] = ()
    """The different roles."""
    role: Sequence[int] = ()
    """The role of each unit, as a place in `names`."""
    id: Sequence[str] = ()
    inside: Mapping[int, str] = field(default_factory=dict)
    """The ids of the needles in a unit, by the number of the unit."""
    image: Sequence[str | None] = ()
    position: Sequence[int] = ()
    start: Sequence[int] = ()
    text: Sequence[int] = ()
    """The text tokens of each unit, or of each block of the prompt where there are no items."""
    pictures: Sequence[int] = ()
    """The image tokens of each unit."""
    is_counted_here: bool = False
    """Whether only the texts of blocks were counted, because there are no items."""
    note: str = ""
    """Why there are no items, if that is a fault."""


@dataclass(frozen=True, slots=True)
class IndexHead:
    """The head of an index: what it is made of."""

    file: str
    """The public file."""
    rows: int
    """The number of its examples."""
    is_copied: bool
    """Whether records are kept beside the index, because the public file has no record on a line of its own."""
    images: Sequence[str] = ()
    """The different images of the file, in the order in which prompts show them first; written as in a URL, because
    names of files may be no valid Unicode."""
    image_sum: int = 0
    """The images of all prompts together."""
    fill_sum: float = 0.0
    """The sum of the fills of all examples."""
    faults: int = 0
    """The records that cannot be read."""


ROW = TypeAdapter(IndexRow)
UNITS = TypeAdapter(Units)
HEAD = TypeAdapter(IndexHead)


def written(path: str) -> str:
    r"""Return the path of an image as an index has it.

    >>> written("a/é 1.jpg"), read_back(written("\udcff"))
    ('a/%C3%A9%201.jpg', '\udcff')
    """
    return quote(path, errors="surrogatepass")


def read_back(path: str) -> str:
    """Return the path of an image of an index."""
    return unquote(path, errors="surrogatepass")


def shortened(text: str, most: int = MAX_TEXT) -> str:
    """Return a text in one line, cut if it is long.

    >>> shortened("a  b", 9), shortened("abcdef", 4)
    ('a b', 'abc…')
    """
    line = " ".join(as_utf8(text[: 4 * most]).split())
    return line if len(line) <= most else f"{line[: most - 1]}…"
