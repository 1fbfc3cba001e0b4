"""Builds a corpus: cuts the articles of a source, and writes passages, index and rejects into a folder."""

import hashlib
import json
import shutil
from collections import Counter
from collections.abc import Iterable
from contextlib import suppress
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, cast

from mmlongbench.corpus.articles import Article, fit
from mmlongbench.corpus.corpus import COLUMNS, INDEX, INFO, PASSAGES, CorpusInfo, SourceInfo, one_title, read_info
from mmlongbench.corpus.cutting import WORDS, Mode, cut
from mmlongbench.corpus.index import IndexWriter, Keys, index_writer
from mmlongbench.corpus.sources import Source, find_source
from mmlongbench.errors import BuildError, Fault
from mmlongbench.io.files import atomic_write, file_lock, write_whole
from mmlongbench.io.progress import Progress

if TYPE_CHECKING:
    from io import IOBase

    from pyarrow import RecordBatchStreamWriter, Schema

REJECTS = "rejects.jsonl"  # the file of the articles that were left out, with the reasons
_WORK = ".build"  # the working folder inside the folder of a corpus
_CLAIM = "claim"  # the file in the working folder that a writer locks
_MAKERS = ("mmlongbench", "datasets", "pyarrow", "pymupdf")
_ROWS, _CHARACTERS = 1_000, 16_000_000
"""A batch of the table has at most so many rows, and is written early if it has more characters."""


def make_corpus(
    source: str | Source,
    out: Path,
    mode: Mode = "sentences",
    format: str | None = None,
    limit: int | None = None,
    progress: Progress | None = None,
) -> tuple[CorpusInfo, bool]:
    """Build the corpus of a source. Return its description, and whether the folder held it already.

    Raises:
        SourceError: the source does not exist, or part of it cannot be read.
        BuildError: the folder cannot be used, or no article is usable.

    """
    _check_place(out)
    found, was_complete = source if isinstance(source, Source) else find_source(source, format), (out / INFO).is_file()
    with (progress or Progress(False)).bar("cutting", 0 if was_complete else found.steps) as advance:
        return build_corpus(found.articles(advance), out, mode, source=found.info, limit=limit), was_complete


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
    source = source or SourceInfo()
    if (found := _existing(out, mode, words, limit, source)) is not None:
        return found
    _check_place(out)
    is_new, work = not out.exists(), out / _WORK
    try:
        work.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise BuildError(f"--out {out}: cannot be written: {error.strerror}") from error
    with file_lock(work / _CLAIM, f"the corpus {out}"):
        # what an interrupted build left
        left = [out / PASSAGES, out / INDEX, out / REJECTS, *(path for path in work.iterdir() if path.name != _CLAIM)]
        for path in left:
            if path.is_dir():
                shutil.rmtree(path)
            else:
                path.unlink(missing_ok=True)
        try:
            counts = _write(articles, work, mode, words, limit)
        except BaseException:
            shutil.rmtree(work, ignore_errors=True)
            if is_new:
                with suppress(OSError):
                    out.rmdir()
            raise
        for name in (INDEX, PASSAGES, REJECTS):
            (work / name).replace(out / name)
        about = {"mode": mode, "words": words, "limit": limit, "source": source, **counts}
        info = CorpusInfo.model_validate({**about, "versions": {name: version(name) for name in _MAKERS}})
        write_whole(out / INFO, [info.model_dump_json(indent=1).encode(), b"\n"])
        shutil.rmtree(work)
    return info


def _check_place(out: Path) -> None:
    """Refuse a folder whose content is neither a corpus nor an interrupted build of one."""
    if out.exists() and not out.is_dir():
        raise BuildError(f"--out {out}: is a file; give a folder instead")
    if out.is_dir() and not ((out / INFO).is_file() or (out / _WORK).is_dir()) and any(out.iterdir()):
        raise BuildError(f"--out {out}: is not empty and holds no corpus; give an empty or a new folder")


def _existing(out: Path, mode: Mode, words: int, limit: int | None, source: SourceInfo) -> CorpusInfo | None:
    if not (out / INFO).is_file():
        return None
    info = read_info(out)
    pairs: dict[str, tuple[object, object]] = {
        "mode": (info.mode, mode),
        "words": (info.words, words),
        "limit": (info.limit, limit),
    }
    different = {name: pair for name, pair in pairs.items() if pair[0] != pair[1]}
    # sources are the same if they have the same bytes, whatever their names; without a hash they count as different
    if not info.source.sha256 or (info.source.format, info.source.sha256) != (source.format, source.sha256):
        different["source"] = (_shown(info.source), _shown(source))
    for name, (found, wanted) in different.items():
        message = f"holds a corpus whose {name} is {found}, not {wanted}"
        raise BuildError(f"--out {out}: {message}; give another folder, or remove this one")
    return info


def _shown(source: SourceInfo) -> str:
    return f"{source.name} ({source.format}, sha256 {source.sha256[:12]}…)" if source.sha256 else "one without a hash"


def _write(
    articles: Iterable[Article | Fault], folder: Path, mode: Mode, words: int, limit: int | None
) -> dict[str, object]:
    """Write the files of a corpus into the working folder, and return its counts and its fingerprint."""
    import pyarrow as pa

    # the form in which `datasets` describes the columns, so that `Dataset.from_file` reads the table
    features = {name: {"dtype": kind, "_type": "Value"} for name, kind in COLUMNS.items()}
    about = json.dumps({"info": {"features": features}})
    schema = pa.schema([(name, getattr(pa, kind)()) for name, kind in COLUMNS.items()], {"huggingface": about})
    with (
        atomic_write(folder / REJECTS) as rejects,
        index_writer(folder / INDEX, folder / "spool") as index,
        atomic_write(folder / PASSAGES) as file,
        pa.ipc.new_stream(cast("IOBase", file), schema) as table,
    ):
        corpus = _Writer(table, schema, index, rejects)
        for article in fit(articles):
            if isinstance(article, Fault):
                corpus.reject(article)
            else:
                corpus.add(article, mode, words)
                if corpus.counts["articles"] == limit:
                    break
        corpus.flush()
        if corpus.first_fault and not corpus.counts["articles"]:
            found = f"{corpus.rejected.total():,} rejected, the first: {corpus.first_fault}"
            raise BuildError(f"no article of the source can be used; {found}")
        if not corpus.counts["articles"]:
            raise BuildError("the source has no article; nothing was written")
    names = ("articles", "sectioned", "passages", "words_in_all", "wikidata_ids", "wikidata_ids_shared")
    counts = {name: corpus.counts[name] for name in names}
    return {**counts, "rejected": dict(sorted(corpus.rejected.items())), "fingerprint": corpus.hash.hexdigest()}


class _Writer:
    def __init__(
        self, table: "RecordBatchStreamWriter", schema: "Schema", index: IndexWriter, rejects: BinaryIO
    ) -> None:
        self._table, self._schema, self._index, self._rejects = table, schema, index, rejects
        self._rows: list[tuple[str, str, str, str, int, int, int]] = []
        self._characters = 0
        self._run = ("", "")
        self._wikidata = Keys()
        self.counts: Counter[str] = Counter()
        self.rejected: Counter[str] = Counter()
        self.first_fault: Fault | None = None
        self.hash = hashlib.sha256()

    def reject(self, fault: Fault) -> None:
        self.first_fault = self.first_fault or fault
        self.rejected[fault.reason] += 1
        line = json.dumps(fault.fields(), ensure_ascii=False)
        self._rejects.write(f"{line}\n".encode("utf-8", "backslashreplace"))

    def add(self, article: Article, mode: Mode, words: int) -> None:
        title = one_title(article.title)
        if (article.doc_id, title) != self._run:
            # in a source that is already cut, the passages of one document are neighbouring articles
            self._run = (article.doc_id, title)
            self._index.run(article.doc_id, title, self.counts["passages"], article.wikidata)
            if article.wikidata:
                self.hash.update(f"Q{article.wikidata};".encode())
                self.counts["wikidata_ids"] += 1
                self.counts["wikidata_ids_shared"] += not self._wikidata.add(article.wikidata)
        cuts = cut(article, mode, words)
        for number, passage in enumerate(cuts):
            id = article.passage_id or f"{article.doc_id}#{number}"
            row = (id, article.doc_id, title, passage.text, passage.section, passage.first, passage.last)
            texts = row[:4]
            # bytes that differ for different passages: the lengths of the texts, the numbers, then the texts
            self.hash.update(f"{[*map(len, texts), *row[4:]]}{''.join(texts)}".encode())
            self._rows.append(row)
            self._characters += len(row[3])
            if len(self._rows) == _ROWS or self._characters > _CHARACTERS:
                self.flush()
            self.counts["words_in_all"] += len(passage.words)
        if article.passage_id:
            self._index.passage(article.passage_id, self.counts["passages"])
        self.counts["passages"] += len(cuts)
        self.counts["articles"] += 1
        self.counts["sectioned"] += cuts[-1].section > 0

    def flush(self) -> None:
        import pyarrow as pa

        if self._rows:
            columns = zip(*self._rows, strict=True)
            arrays = [pa.array(values, type) for values, type in zip(columns, self._schema.types, strict=True)]
            self._table.write_batch(pa.record_batch(arrays, schema=self._schema))
            self._rows, self._characters = [], 0
