"""A corpus: passages read directly from disk, by number, id, document, title or Wikidata id."""

import hashlib
import json
import shutil
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import BinaryIO

from mmlongbench.corpus.articles import Article, Keys, fit, wikidata_number
from mmlongbench.corpus.cutting import WORDS, Mode, cut
from mmlongbench.corpus.info import (
    CLAIM,
    INDEX,
    INFO,
    PASSAGES,
    REJECTS,
    CorpusError,
    CorpusInfo,
    Passage,
    SourceInfo,
    clear,
    existing,
    leave_nothing,
    open_place,
    read_info,
)
from mmlongbench.corpus.store import Index, IndexWriter, Table, TableWriter, table_writer, writing
from mmlongbench.errors import BuildError, Fault
from mmlongbench.io.files import atomic_write, file_lock, write_whole
from mmlongbench.prompt import escape_markers

_MAKERS = ("mmlongbench", "datasets", "pyarrow", "pymupdf")


def build_corpus(
    articles: Iterable[Article | Fault],
    out: Path,
    mode: Mode = "sentences",
    words: int = WORDS,
    *,
    source: SourceInfo | None = None,
    limit: int | None = None,
) -> CorpusInfo:
    """Cut articles into passages and store them as a corpus. Unusable articles are left out, with reasons in a file.

    Args:
        articles: the articles of a source; a fault takes the place of an article that could not be read.
        out: a new or empty folder, or the folder of the same corpus, which is then not changed.
        mode: whole sentences as in KILT, or a fixed number of words as in DPR.
        words: the length of a passage in words (see `cut`).
        source: the source of the articles; without a source, an existing corpus always counts as another corpus.
        limit: the maximum number of articles; the first ones are kept.

    Raises:
        BuildError: the folder cannot be used, or no article is usable.

    """
    wanted = {"mode": mode, "words": words, "limit": limit, "source": source or SourceInfo()}
    if (found := existing(out, wanted)) is not None:
        return found
    is_new = not out.exists()
    folder = open_place(out)
    with file_lock(folder / CLAIM, f"the corpus {out}"):
        clear(out)
        try:
            written = _write(articles, folder, mode, words, limit)
        except BaseException:
            leave_nothing(out, is_new=is_new)
            raise
        for path in sorted(folder.iterdir()):
            if path.name in (PASSAGES, INDEX, REJECTS):
                path.replace(out / path.name)
        versions = {name: version(name) for name in _MAKERS}
        info = CorpusInfo.model_validate({**wanted, **written, "versions": versions})
        write_whole(out / INFO, [info.model_dump_json(indent=1).encode(), b"\n"])
        shutil.rmtree(folder)
    return info


def _write(
    articles: Iterable[Article | Fault], folder: Path, mode: Mode, words: int, limit: int | None
) -> dict[str, object]:
    """Write the files of a corpus into the working folder, and return the counts."""
    with _corpus_files(folder) as corpus:
        for article in fit(articles):
            if isinstance(article, Fault):
                corpus.reject(article)
            else:
                corpus.add(article, mode, words)
                if corpus.counts["articles"] == limit:
                    break
        if not corpus.counts["passages"]:
            raise BuildError(_nothing(corpus))
    names = ("articles", "sectioned", "passages", "words_in_all", "wikidata_ids", "wikidata_ids_shared")
    counts = {name: corpus.counts[name] for name in names}
    return {**counts, "rejected": dict(sorted(corpus.rejected.items())), "fingerprint": corpus.hash.hexdigest()}


def _nothing(corpus: "_Corpus") -> str:
    if corpus.first is None:
        return "the source has no article; nothing was written"
    number = corpus.rejected.total()
    return f"no article of the source can be used; {number:,} rejected, the first: {corpus.first}"


@contextmanager
def _corpus_files(folder: Path) -> Iterator["_Corpus"]:
    with (
        atomic_write(folder / REJECTS) as rejects,
        writing(folder / INDEX, folder / "spool") as index,
        atomic_write(folder / PASSAGES) as passages,
        table_writer(passages) as table,
    ):
        yield _Corpus(table, index, rejects)


class _Corpus:
    """A corpus that is being written."""

    def __init__(self, table: TableWriter, index: IndexWriter, rejects: BinaryIO) -> None:
        self._table, self._index, self._rejects = table, index, rejects
        self._run = ("", "")
        self._wikidata = Keys()
        self.counts: Counter[str] = Counter()
        self.rejected: Counter[str] = Counter()
        self.first: Fault | None = None
        self.hash = hashlib.sha256()

    def reject(self, fault: Fault) -> None:
        """Write why an article was left out to the file of rejects."""
        self.first = self.first or fault
        self.rejected[fault.reason] += 1
        line = json.dumps(fault.fields(), ensure_ascii=False)
        self._rejects.write(f"{line}\n".encode("utf-8", "backslashreplace"))

    def add(self, article: Article, mode: Mode, words: int) -> None:
        """Cut an article and write its passages."""
        title = escape_markers(" ".join(article.title.split()))
        cuts = cut(article, mode, words)
        self._begin(article.doc_id, title, article.wikidata)
        for number, piece in enumerate(cuts):
            id = article.passage_id or f"{article.doc_id}#{number}"
            row = (id, article.doc_id, title, piece.text, piece.section, piece.first, piece.last)
            self.hash.update(_spelled(row))
            self._table.add(row)
            self.counts["words_in_all"] += piece.text.count(" ") + 1
        if article.passage_id:
            self._index.passage(article.passage_id, self.counts["passages"])
        self.counts["passages"] += len(cuts)
        self.counts["articles"] += 1
        self.counts["sectioned"] += cuts[-1].section > 0

    def _begin(self, doc_id: str, title: str, wikidata: int) -> None:
        if (doc_id, title) == self._run:
            return
        self._index.run(doc_id, title, self.counts["passages"], wikidata)
        self._run = (doc_id, title)
        if wikidata:
            self.hash.update(f"Q{wikidata};".encode())
            self.counts["wikidata_ids"] += 1
            self.counts["wikidata_ids_shared"] += not self._wikidata.add(wikidata)


def _spelled(row: tuple[str, str, str, str, int, int, int]) -> bytes:
    """Return bytes that differ for different passages: the lengths of the texts, the numbers, then the texts."""
    texts = row[:4]
    return f"{[*map(len, texts), *row[4:]]}{''.join(texts)}".encode()


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
