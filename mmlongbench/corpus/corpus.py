"""A corpus: passages read directly from disk, by number, id, document, title or Wikidata id."""

from collections.abc import Iterable, Iterator
from pathlib import Path

from mmlongbench.corpus.index import Index
from mmlongbench.corpus.info import INDEX, PASSAGES, CorpusError, CorpusInfo, Passage, read_info
from mmlongbench.corpus.table import Table
from mmlongbench.corpus.wikidata import wikidata_number
from mmlongbench.corpus.writing import build_corpus
from mmlongbench.prompt import escape_markers

__all__ = ["Corpus", "CorpusError", "CorpusInfo", "Passage", "build_corpus"]


class Corpus:
    """A corpus on disk, mapped into memory. If it is sent to another process, that process opens the same folder."""

    def __init__(self, folder: Path, info: CorpusInfo, table: Table, index: Index) -> None:
        self.folder = folder
        self.info = info
        self._table = table
        self._index = index

    @classmethod
    def open(cls, folder: Path) -> "Corpus":
        """Open a finished corpus.

        Raises:
            CorpusError: there is no corpus, it is broken, or its build has not finished.

        """
        info = read_info(folder)
        table = Table(folder / PASSAGES, info.passages)
        try:
            index = Index(folder / INDEX)
        except (OSError, EOFError, ValueError) as error:
            raise CorpusError(f"{folder / INDEX}: cannot be read: {error}; build the corpus again") from error
        return cls(folder, info, table, index)

    def __reduce__(self) -> tuple[object, tuple[Path]]:
        return Corpus.open, (self.folder,)

    @property
    def fingerprint(self) -> str:
        """SHA-256 over the passages and the Wikidata ids. It shows whether a search index belongs to this corpus."""
        return self.info.fingerprint

    def __len__(self) -> int:
        return len(self._table)

    def __iter__(self) -> Iterator[Passage]:
        """Yield every passage in order; they are read in batches."""
        return iter(self._table)

    def passage(self, number: int) -> Passage:
        """Return the passage with a number; passages are numbered from 0."""
        return self._table[number]

    def by_id(self, id: str) -> Passage:
        """Return the passage with an id.

        Raises:
            CorpusError: there is no such passage.

        """
        return self.passage(self.number_of(id))

    def number_of(self, id: str) -> int:
        """Return the number of a passage by its id.

        Raises:
            CorpusError: there is no such passage.

        """
        for row in self._candidates(id):
            if self._table.value(row, "passage_id") == id:
                return row
        raise CorpusError(f"{self.folder}: no passage {id!r}")

    def of_document(self, doc_id: str) -> list[int]:
        """Return the passage numbers of a document, in order; empty if there is no such document."""
        return list(self._rows("documents", "doc_id", doc_id))

    def by_title(self, title: str) -> list[int]:
        """Return the passage numbers of all articles with exactly this title, apart from whitespace; empty if there are
        none.
        """
        return list(self._rows("titles", "title", escape_markers(" ".join(title.split()))))

    def of_wikidata(self, id: str) -> list[list[int]]:
        """Return a list of passage numbers for each document with a Wikidata id such as `Q42`. The documents have the
        order of the corpus.
        """
        found: dict[str, list[int]] = {}
        number = wikidata_number(id)
        for rows in self._index.runs_of_wikidata(number, len(self)) if number else ():
            found.setdefault(self._table.value(rows[0], "doc_id"), []).extend(rows)
        return list(found.values())

    def _rows(self, table: str, column: str, text: str) -> Iterable[int]:
        for rows in self._index.runs(table, text, len(self)):
            if self._table.value(rows[0], column) == text:
                yield from rows

    def _candidates(self, id: str) -> Iterator[int]:
        """Yield the numbers that the passage with an id may have: the numbers stored under the id and, for an id
        `<doc_id>#<n>`, the number of passage n of that document.
        """
        yield from self._index.values("passages", id)
        doc_id, _, number = id.rpartition("#")
        if number.isdecimal() and len(number) < 10:
            for rows in self._index.runs("documents", doc_id, len(self)):
                yield from rows[int(number) : int(number) + 1]
