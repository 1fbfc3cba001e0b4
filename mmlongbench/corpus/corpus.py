"""A corpus: passages read directly from disk, by number, id, document, title or Wikidata id."""

from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from mmlongbench.corpus.articles import wikidata_number
from mmlongbench.corpus.cutting import Mode
from mmlongbench.corpus.index import Index, key_of
from mmlongbench.errors import MMLongBenchError
from mmlongbench.prompt import escape_markers

if TYPE_CHECKING:
    from pyarrow import RecordBatch

INFO = "corpus.json"  # the file that says what the corpus was made from; it is written last
PASSAGES = "passages.arrow"
"""The file with the table of passages, which `datasets.Dataset.from_file` can open."""
COLUMNS = {
    "passage_id": "string",
    "doc_id": "string",
    "title": "string",
    "text": "string",
    "section": "int32",
    "first_paragraph": "int32",
    "last_paragraph": "int32",
}
"""The columns of this table, in the order of `Passage`."""
PASSAGES_KEPT = 20_000
"""How many passages are kept in memory for the next question; one of a hundred words takes about 1 kB."""
INDEX = "index"
"""The folder of the index, which finds the rows of a document, a title, a passage's own id or a Wikidata id."""


class CorpusError(MMLongBenchError):
    """A corpus cannot be opened, or does not have what is looked up."""


@dataclass(frozen=True, slots=True)
class Passage:
    """About a hundred consecutive words of one article."""

    id: str
    """`<doc_id>#<n>`, or the source's own id if the source is already cut."""
    doc_id: str
    """The id of the passage's article."""
    title: str
    """The title of the passage's article."""
    text: str
    """The words of the passage."""
    section: int
    """The number of the section; 0 is the lead section. An article without sections has only the number 0."""
    first_paragraph: int = 0
    """The number of the paragraph where the passage begins. Paragraphs have the numbers of the source: in KILT,
    paragraph 0 is the title; in a PDF, each page is a paragraph, from 0."""
    last_paragraph: int = 0
    """The number of the paragraph where the passage ends, counted in the same way."""


class SourceInfo(BaseModel):
    """A source that a corpus was made from."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    name: str = ""
    format: str = ""
    sha256: str = ""
    """SHA-256 of the file, or of the names and contents of all files in the folder; for a dataset of the hub, the
    commit."""


class CorpusInfo(BaseModel):
    """What a corpus was made from, and how much it contains. It holds no time and no path."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    format: Literal[1, 2] = 2
    """The format version. A corpus of version 1 has no Wikidata ids: it can be used, but no article is found by such an
    id."""
    mode: Mode
    words: int
    """The length of a passage."""
    limit: int | None = None
    """The maximum number of articles; if it is None, all were kept."""
    source: SourceInfo
    articles: int
    sectioned: int
    """How many articles have more than a lead section; if none has, the source marks no sections."""
    passages: int
    words_in_all: int
    wikidata_ids: int = 0
    """How many articles can be found by a Wikidata id."""
    wikidata_ids_shared: int = 0
    """How many of these articles have the same Wikidata id as an earlier article."""
    rejected: dict[str, int]
    """How many articles were left out, by reason."""
    fingerprint: str
    """SHA-256 over every passage in order, field by field, and over the Wikidata ids of articles."""
    versions: dict[str, str]

    @property
    def keeps_wikidata_ids(self) -> bool:
        """Whether the Wikidata ids of the source, if it has any, were kept."""
        return self.format >= 2


def read_info(folder: Path) -> CorpusInfo:
    """Return the contents of `corpus.json`; raises CorpusError if there is none, or of an unknown format."""
    path = folder / INFO
    try:
        return CorpusInfo.model_validate_json(path.read_bytes())
    except (FileNotFoundError, NotADirectoryError) as error:
        hint = "build one with `mmlongbench corpus build SOURCE --out DIR`"
        raise CorpusError(f"{folder}: no {INFO}: this is no corpus, or its build has not finished; {hint}") from error
    except ValidationError as error:
        first = error.errors()[0]
        field = ".".join(map(str, first["loc"])) or "the file"
        raise CorpusError(f"{path}: {field}: {first['msg']}; build the corpus again into a new folder") from error


def one_title(title: str) -> str:
    """Return a title as a corpus stores it: with single spaces, and with image markers escaped."""
    return escape_markers(" ".join(title.split()))


class Corpus:
    """A corpus on disk, mapped into memory. If it is sent to another process, that process opens the same folder."""

    def __init__(self, folder: Path, info: CorpusInfo, batches: "list[RecordBatch]", index: Index) -> None:
        self.folder = folder
        self.info = info
        self._batches = batches
        self._ends = list(accumulate(batch.num_rows for batch in batches))
        self._index = index
        self.passage = lru_cache(maxsize=PASSAGES_KEPT)(self._passage)
        """Returns the passage with a number; passages are numbered from 0."""

    @classmethod
    def open(cls, folder: Path) -> "Corpus":
        """Open a finished corpus; raises CorpusError if there is none, it is broken, or its build has not ended."""
        import pyarrow as pa

        info, table = read_info(folder), folder / PASSAGES
        try:
            with pa.memory_map(str(table)) as file, pa.ipc.open_stream(file) as stream:
                batches = list(stream)
        except (OSError, pa.ArrowInvalid) as error:
            raise CorpusError(f"{table}: {error}; build the corpus again") from error
        if (rows := sum(batch.num_rows for batch in batches)) != info.passages:
            found = f"has {rows:,} passages, but its corpus has {info.passages:,}"
            raise CorpusError(f"{table}: {found}; build the corpus again")
        try:
            index = Index(folder / INDEX, rows)
        except (OSError, EOFError, ValueError) as error:
            raise CorpusError(f"{folder / INDEX}: cannot be read: {error}; build the corpus again") from error
        return cls(folder, info, batches, index)

    def __reduce__(self) -> tuple[object, tuple[Path]]:
        return Corpus.open, (self.folder,)

    @property
    def fingerprint(self) -> str:
        """SHA-256 over the passages and the Wikidata ids. It shows whether a search index belongs to this corpus."""
        return self.info.fingerprint

    def __len__(self) -> int:
        return self._ends[-1] if self._ends else 0

    def __iter__(self) -> Iterator[Passage]:
        """Yield every passage in order; they are read in batches."""
        for batch in self._batches:
            yield from map(Passage, *(column.to_pylist() for column in batch.columns))

    def _passage(self, number: int) -> Passage:
        batch, row = self._at(number)
        return Passage(*(column[row].as_py() for column in batch.columns))

    def number_of(self, id: str) -> int:
        """Return the number of a passage by its id; raises CorpusError if there is no such passage."""
        numbers = self._index.values("passages", key_of(id))  # of passages with an id of their own
        doc_id, _, place = id.rpartition("#")
        if place.isdecimal() and len(place) < 10:  # the other ids are `<doc_id>#<n>`
            for rows in self._index.runs("documents", key_of(doc_id)):
                numbers += rows[int(place) : int(place) + 1]
        for number in numbers:
            if self._value(number, "passage_id") == id:
                return number
        raise CorpusError(f"{self.folder}: no passage {id!r}")

    def of_document(self, doc_id: str) -> list[int]:
        """Return the passage numbers of a document, in order; empty if there is no such document."""
        return self._numbers("documents", "doc_id", doc_id)

    def by_title(self, title: str) -> list[int]:
        """Return the passage numbers of all articles with exactly this title, apart from whitespace; empty if there are
        none.
        """
        return self._numbers("titles", "title", one_title(title))

    def of_wikidata(self, id: str) -> list[list[int]]:
        """Return a list of passage numbers for each document with a Wikidata id such as `Q42`. The documents have the
        order of the corpus.
        """
        documents: dict[str, list[int]] = {}
        number = wikidata_number(id)
        for rows in self._index.runs("wikidata", number) if number else ():
            documents.setdefault(self._value(rows[0], "doc_id"), []).extend(rows)
        return list(documents.values())

    def _numbers(self, table: str, column: str, text: str) -> list[int]:
        runs = self._index.runs(table, key_of(text))
        return [number for rows in runs if self._value(rows[0], column) == text for number in rows]

    def _value(self, number: int, column: str) -> str:
        batch, row = self._at(number)
        return str(batch.column(list(COLUMNS).index(column))[row])

    def _at(self, number: int) -> "tuple[RecordBatch, int]":
        if not 0 <= number < len(self):
            raise IndexError(f"there is no passage {number} in a corpus of {len(self)}")
        at = bisect_right(self._ends, number)
        batch = self._batches[at]
        return batch, number - self._ends[at] + batch.num_rows
