"""Search by words: BM25 over a corpus of any size, with an index on disk that tantivy keeps, or in memory.

Tantivy gets tokens, so a query is never read as query syntax. With a single writer thread, and with merges completed
after every block, the same corpus always gives the same index. Scores follow Robertson & Zaragoza 2009 with Lucene's
idf, ln(1 + (N − n + ½) / (n + ½)), and lengths rounded to one byte. The index in memory is rank-bm25's, whose scores
are exact: it is for small corpora, for the texts of one document, and to check the other.
"""

import json
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from contextlib import nullcontext
from functools import lru_cache
from importlib.metadata import version
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from mmlongbench.corpus.corpus import Corpus
from mmlongbench.corpus.retrieval.text import UNSPACED, tokens
from mmlongbench.draws import digest
from mmlongbench.errors import Fault, MMLongBenchError, SourceError
from mmlongbench.io.archives import whole_folder
from mmlongbench.io.files import file_lock, write_whole
from mmlongbench.io.progress import Progress

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

FOLDER = "bm25"
"""The name of the folder of the index, below the folder of the corpus or `CorpusPlan.cache`."""
ABOUT = "bm25.json"  # the file that says what the index was made from; it is written last
RANKS = "ranks.npy"  # the file with the order of the passage ids
K1, B = 1.2, 0.75  # the parameters of BM25, the same as in tantivy
TOKENS = "title and text; letters and digits, lower case, accents folded; 1"
"""How passages become words; the number at the end changes when the code of `tokens` changes."""
HEAP = 128_000_000  # how many bytes the writer may use in memory
BLOCK = 50_000
"""How many passages are written between two commits. They fit into the writer's memory; otherwise it would write
segments at moments that depend on timing."""
SPARE = 64  # how many more hits than k are fetched at first, to see where a tie ends
ROUNDING = 2.0**-23
"""The relative difference that one addition in single precision can make between two sums that are compared."""
TOLERANCE = 2.0**-40
"""The relative difference below which scores of rank-bm25 are equal; its sums are in double precision."""
MOST = 100_000
"""The maximum number of passages of an index in memory; a hundred thousand take a gigabyte."""
_DOCUMENTS = 8
"""How many documents' scorers are kept for the next question; the scorer of 50 pages takes about a megabyte."""
_TEXT, _NUMBER = "text", "number"


class Hit(NamedTuple):
    """A passage that a search found."""

    number: int
    """The number of the passage in the corpus, from 0."""
    score: float
    """The score; higher is better. Hits with the same score are ordered by passage id."""


class WordIndex(ABC):
    """An index by words. Its hits do not depend on threads or on the machine."""

    fingerprint: str
    """A hash; with equal fingerprints, equal queries give equal hits."""

    @abstractmethod
    def search(self, query: str, k: int) -> list[Hit]:
        """Return the best k passages that share a word with the query, ordered by (-score, passage id)."""


class TantivyIndex(WordIndex):
    """An index on disk."""

    def __init__(self, folder: Path, about: dict[str, object]) -> None:
        """Open an index; `find_index` checks that it belongs to the corpus."""
        import numpy as np
        import tantivy

        index = tantivy.Index.open(str(folder))
        self._schema, self._searcher = index.schema, index.searcher()
        self._ranks: NDArray[np.uint32] = np.load(folder / RANKS, mmap_mode="r")
        self.passages = min(self._searcher.num_docs, len(self._ranks))
        """How many passages are indexed."""
        self.fingerprint = digest(json.dumps(about | {"searched by": _engine()}, sort_keys=True)).hex()

    def search(self, query: str, k: int) -> list[Hit]:
        words, most = tokens(query), len(self._ranks)
        limit = min(most, k + SPARE)
        while words and limit > 0:
            scores, numbers = self._fetch(words, limit)
            is_all = len(scores) < limit or limit == most
            hits = _settled(scores, numbers, self._ranks, k, len(words) * ROUNDING, is_all=is_all)
            if hits is not None:
                return hits
            limit = min(most, 2 * limit)
        return []

    def _fetch(self, words: list[str], limit: int) -> "tuple[NDArray[np.float64], NDArray[np.int64]]":
        """Return the scores and numbers of the best `limit` passages; those with equal scores may be in any order."""
        import numpy as np
        from tantivy import Occur, Query

        if all(map(UNSPACED.fullmatch, words)):  # the index has pairs: characters alone are parts of its words
            queries = [Query.regex_query(self._schema, _TEXT, f".?{word}.?") for word in words]
        else:
            queries = [Query.term_query(self._schema, _TEXT, word, "freq") for word in words]
        either = Query.boolean_query([(Occur.Should, query) for query in queries])
        hits = self._searcher.search(either, limit=limit, count=False).hits
        numbers = self._searcher.fast_field_values(_NUMBER, [address for _, address in hits])
        return np.array([score for score, _ in hits], np.float64), np.array(numbers, np.int64)


def find_index(corpus: Corpus, folder: Path, progress: Progress | None = None) -> TantivyIndex:
    """Open the index of a corpus in a folder; if the folder does not exist, build the index first.

    Raises:
        SourceError: the folder has no valid index, or the index of another corpus.

    """

    def fault(reason: str, expected: str, found: str) -> SourceError:
        todo = f"remove the folder {folder}, and the next search builds it again"
        return SourceError(Fault(reason, expected, found, folder.name, todo=todo))

    wanted = {
        "format": 1,
        "corpus": corpus.fingerprint,
        "passages": len(corpus),
        "engine": _engine(),
        "k1": K1,
        "b": B,
        "tokens": TOKENS,
    }
    if not folder.exists():
        with file_lock(folder.with_name(f".{folder.name}.lock"), f"the index {folder.name} of the corpus"):
            if not folder.exists():
                _build_index(corpus, folder, wanted, progress)
    try:
        about: object = json.loads((folder / ABOUT).read_bytes())
    except (OSError, ValueError) as error:
        raise fault("no-index", f"an index with its {ABOUT}", f"none ({type(error).__name__})") from error
    about = about if isinstance(about, dict) else {}
    for name, value in wanted.items():
        if about.get(name) != value and name != "engine":
            raise fault("foreign-index", f"one whose {name} is {value!r}", f"{about.get(name)!r}")
    try:
        index = TantivyIndex(folder, about)
    except (OSError, ValueError, EOFError) as error:
        raise fault("broken-index", "files that belong together", str(error)) from error
    if (found := index.passages) != len(corpus):
        raise fault("broken-index", f"{len(corpus):,} passages", f"{found:,}")
    return index


def _engine() -> str:
    return f"tantivy {version('tantivy')}"


def _build_index(corpus: Corpus, folder: Path, about: dict[str, object], progress: Progress | None) -> None:
    import numpy as np

    with whole_folder(folder) as temporary:
        np.save(temporary / RANKS, _ranks_of(_indexed(corpus, temporary, progress)))
        write_whole(temporary / ABOUT, [json.dumps(about, indent=1, sort_keys=True).encode(), b"\n"])


def _indexed(corpus: Corpus, folder: Path, progress: Progress | None) -> Iterator[list[str]]:
    import tantivy

    fields = tantivy.SchemaBuilder().add_text_field(_TEXT, tokenizer_name="whitespace", index_option="freq")
    index = tantivy.Index(fields.add_integer_field(_NUMBER, fast=True).build(), path=str(folder))
    blocks = range(0, len(corpus), BLOCK)
    passages = iter(corpus)
    with progress.bar("index", len(blocks)) if progress else nullcontext(lambda: None) as advance:
        for start in blocks:
            ids = []
            writer = index.writer(HEAP, num_threads=1)
            for number, passage in enumerate(islice(passages, BLOCK), start):
                ids.append(passage.id)
                words = " ".join(tokens(f"{passage.title}\n{passage.text}"))
                writer.add_document(tantivy.Document(**{_TEXT: words, _NUMBER: number}))
            writer.commit()
            writer.wait_merging_threads()
            yield ids
            advance()


class RankBm25Index(WordIndex):
    """An index in memory."""

    def __init__(self, corpus: Corpus) -> None:
        """Read the whole corpus; raises MMLongBenchError if it is too large for memory."""
        if not 0 < len(corpus) <= MOST:
            raise MMLongBenchError(f"rank-bm25 can hold 1 to {MOST:,} passages, not {len(corpus):,}; use tantivy")
        passages = list(corpus)
        self._scorer = _Scorer([tokens(f"{p.title}\n{p.text}") for p in passages])
        self._ranks = _ranks_of([[p.id for p in passages]])
        made_by = f"rank-bm25 {version('rank-bm25')}"
        self.fingerprint = digest(corpus.fingerprint, len(corpus), made_by, K1, B, TOKENS).hex()

    def search(self, query: str, k: int) -> list[Hit]:
        return self._scorer.best(query, k, self._ranks)


def rank_texts(query: str, texts: Sequence[str]) -> tuple[int, ...]:
    """Return the indices of the texts that share a word with a query, the best by BM25 first. Of texts with equal
    scores, the earlier comes first.

    >>> rank_texts("red roof", ["a blue roof", "nothing", "red tiles on a red roof"])
    (2, 0)
    """
    import numpy as np

    scorer = _scorer_of(tuple(texts))
    hits = scorer.best(query, len(texts), np.arange(len(texts), dtype=np.uint32)) if scorer else []
    return tuple(hit.number for hit in hits)


@lru_cache(maxsize=_DOCUMENTS)
def _scorer_of(texts: tuple[str, ...]) -> "_Scorer | None":
    """Return the scorer of some texts; None if no text has a word."""
    words = list(map(tokens, texts))
    return _Scorer(words) if any(words) else None


class _Scorer:
    """BM25 over texts that are given as words; at least one text has a word."""

    def __init__(self, texts: Sequence[Sequence[str]]) -> None:
        from rank_bm25 import BM25Plus

        self._engine = BM25Plus(texts, k1=K1, b=B, delta=0)

    def best(self, query: str, k: int, ranks: "NDArray[np.uint32]") -> list[Hit]:
        import numpy as np

        scores = np.asarray(self._engine.get_scores(tokens(query)), np.float64)
        numbers = np.argsort(-scores, kind="stable")
        numbers = numbers[: np.count_nonzero(scores > 0)]
        return _settled(scores[numbers], numbers, ranks, k, TOLERANCE, is_all=True) or []


def _ranks_of(blocks: Iterable[list[str]]) -> "NDArray[np.uint32]":
    """Return for each passage the place of its id among all sorted ids; shape (passages,).

    The ids come in blocks, and are kept as bytes: about 25 bytes a passage.
    """
    import numpy as np
    import pyarrow
    import pyarrow.compute

    text = pyarrow.large_string()
    ids = pyarrow.chunked_array([pyarrow.array(block, text) for block in blocks], text)
    order = pyarrow.compute.sort_indices(ids).to_numpy()
    ranks = np.empty(len(order), np.uint32)
    ranks[order] = np.arange(len(order), dtype=np.uint32)
    return ranks


def _settled(
    scores: "NDArray[np.float64]",
    numbers: "NDArray[np.int64]",
    ranks: "NDArray[np.uint32]",
    k: int,
    tolerance: float,
    *,
    is_all: bool,
) -> list[Hit] | None:
    """Return the best k passages; None if a passage that is not given may have the same score as the last of these.

    Args:
        scores: highest first, up to rounding.
        numbers: the passage of each score.
        ranks: the ranks of all passages of the corpus, see `_ranks_of`.
        k: how many passages to return.
        tolerance: the relative difference that rounding can make; scores that differ by less count as equal.
        is_all: whether these are the scores of all passages.

    """
    import numpy as np

    falls = scores[:-1] - scores[1:] > tolerance * np.abs(scores[:-1])
    group = np.concatenate(([0], np.cumsum(falls)))[: len(scores)]
    if not is_all and (len(scores) <= k or int(group[k - 1]) == int(group[-1])):
        return None
    best = np.lexsort((ranks[numbers], group))[:k]
    tied = scores[np.searchsorted(group, group[best])]  # of equal scores, each hit has the highest
    return list(map(Hit._make, zip(numbers[best].tolist(), tied.tolist(), strict=True)))
