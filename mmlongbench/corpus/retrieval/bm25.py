"""Search by words: BM25 over a corpus of any size, with an index on disk that tantivy keeps.

Tantivy gets tokens, so a query is never read as query syntax. With a single writer thread, and with merges completed
after every block, the same corpus always gives the same index. Scores follow Robertson & Zaragoza 2009 with Lucene's
idf, ln(1 + (N − n + ½) / (n + ½)), and lengths rounded to one byte.
"""

import json
import shutil
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from functools import lru_cache
from importlib.metadata import version
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from mmlongbench.corpus.retrieval.passages import ROUNDING, Hit, Passages, ranks_of, settle
from mmlongbench.corpus.retrieval.text import UNSPACED, tokens
from mmlongbench.draws import digest
from mmlongbench.errors import Fault, MMLongBenchError, SourceError
from mmlongbench.io.files import TEMPORARY, file_lock, write_whole
from mmlongbench.io.progress import Progress

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

FOLDER = "bm25"
"""The name of the folder of the index, below the folder of the corpus or `CorpusPlan.cache`."""
ABOUT = "bm25.json"
"""The file that says what the index was made from; it is written last."""
RANKS = "ranks.npy"
"""The file with the order of the passage ids."""
K1, B = 1.2, 0.75
"""The parameters of BM25, the same as in tantivy."""
TOKENS = "title and text; letters and digits, lower case, accents folded; 1"
"""How passages become words; the number at the end changes when the code of `tokens` changes."""
HEAP = 128_000_000
"""How many bytes the writer may use in memory."""
BLOCK = 50_000
"""Passages between two commits; they fit into the writer's memory, so that segments do not depend on timing."""
SPARE = 64
"""How many more hits than k are fetched at first, to see where a tie ends."""

_TEXT, _NUMBER = "text", "number"


class TantivyIndex:
    """An open BM25 index. Its hits do not depend on threads or on the machine."""

    def __init__(self, folder: Path, about: dict[str, object]) -> None:
        """Open the index that `build_index` wrote; `find_index` checks that it belongs to the corpus."""
        import numpy as np
        import tantivy

        index = tantivy.Index.open(str(folder))
        self._schema, self._searcher = index.schema, index.searcher()
        self._ranks: NDArray[np.uint32] = np.load(folder / RANKS, mmap_mode="r")
        self.fingerprint = digest(json.dumps(about | {"searched by": _engine()}, sort_keys=True)).hex()

    def __len__(self) -> int:
        """How many passages are indexed."""
        return min(self._searcher.num_docs, len(self._ranks))

    def search(self, query: str, k: int) -> list[Hit]:
        """Return the best k passages that share a word with the query, ordered by (-score, passage id)."""
        words = tokens(query)
        most = len(self)
        limit = min(most, k + SPARE)
        while words and limit > 0:
            scores, numbers = self._fetch(words, limit)
            is_all = len(scores) < limit or limit == most
            hits = settle(scores, numbers, self._ranks, k, len(words) * ROUNDING, is_all)
            if hits is not None:
                return hits
            limit = min(most, 2 * limit)
        return []

    def _fetch(self, words: list[str], limit: int) -> "tuple[NDArray[np.float64], NDArray[np.int64]]":
        """Return the scores and numbers of the best `limit` passages; passages with equal scores may be in
        any order.
        """
        import numpy as np
        from tantivy import Occur, Query

        if all(map(UNSPACED.fullmatch, words)):  # the index has pairs: characters alone are parts of its words
            queries = [Query.regex_query(self._schema, _TEXT, f".?{word}.?") for word in words]
        else:
            queries = [Query.term_query(self._schema, _TEXT, word, "freq") for word in words]
        asked = [(Occur.Should, query) for query in queries]
        found = self._searcher.search(Query.boolean_query(asked), limit=limit, count=False).hits
        numbers = self._searcher.fast_field_values(_NUMBER, [address for _, address in found])
        return np.array([score for score, _ in found], np.float64), np.array(numbers, np.int64)


def find_index(corpus: Passages, folder: Path, progress: Progress | None = None) -> TantivyIndex:
    """Open the index of a corpus in a folder; if the folder does not exist, build the index first.

    Raises:
        SourceError: the folder has no valid index, or the index of another corpus.

    """
    if not folder.exists():
        with file_lock(folder.with_name(f".{folder.name}.lock"), f"the index {folder.name} of the corpus"):
            if not folder.exists():
                build_index(corpus, folder, progress)
    about = _checked(corpus, folder)
    try:
        index = TantivyIndex(folder, about)
    except (OSError, ValueError, EOFError) as error:
        raise _fault(folder, "broken-index", "files that belong together", str(error)) from error
    if len(index) != len(corpus):
        raise _fault(folder, "broken-index", f"{len(corpus):,} passages", f"{len(index):,}")
    return index


def build_index(corpus: Passages, folder: Path, progress: Progress | None = None) -> None:
    """Write the index of a corpus into a new folder, which appears complete or not at all."""
    import numpy as np

    temporary = folder.with_name(f"{TEMPORARY}{folder.name}")
    shutil.rmtree(temporary, ignore_errors=True)
    temporary.mkdir(parents=True)
    np.save(temporary / RANKS, ranks_of(_written(corpus, temporary, progress)))
    write_whole(temporary / ABOUT, [json.dumps(_about(corpus), indent=1, sort_keys=True).encode(), b"\n"])
    temporary.rename(folder)


def _written(corpus: Passages, folder: Path, progress: Progress | None) -> Iterator[list[str]]:
    """Index the passages in blocks; yield the ids of each block."""
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


def _about(corpus: Passages) -> dict[str, object]:
    return {
        "format": 1,
        "corpus": corpus.fingerprint,
        "passages": len(corpus),
        "engine": _engine(),
        "k1": K1,
        "b": B,
        "tokens": TOKENS,
    }


def _engine() -> str:
    from importlib.metadata import version

    return f"tantivy {version('tantivy')}"


def _checked(corpus: Passages, folder: Path) -> dict[str, object]:
    """Return the description of the index; an index of another corpus raises an error."""
    try:
        about: object = json.loads((folder / ABOUT).read_bytes())
    except (OSError, ValueError) as error:
        raise _fault(folder, "no-index", f"an index with its {ABOUT}", f"none ({type(error).__name__})") from error
    for name, expected in _about(corpus).items():
        found = about.get(name) if isinstance(about, dict) else about
        if found != expected and name != "engine":
            raise _fault(folder, "foreign-index", f"one whose {name} is {expected!r}", f"{found!r}")
    return about if isinstance(about, dict) else {}


def _fault(folder: Path, reason: str, expected: str, found: str) -> SourceError:
    todo = f"remove the folder {folder}, and the next search builds it again"
    return SourceError(Fault(reason, expected, found, folder.name, todo=todo))


MOST = 100_000
"""The maximum number of passages; a hundred thousand take a gigabyte."""
TOLERANCE = 2.0**-40
"""The relative difference below which scores are equal; sums here are in double precision."""
_DOCUMENTS = 8
"""How many documents' scorers are kept for the next question; the scorer of 50 pages takes about a megabyte."""


class RankBm25Index:
    """The index of a corpus in memory."""

    def __init__(self, corpus: Passages) -> None:
        """Read the whole corpus.

        Raises:
            MMLongBenchError: the corpus is too large for memory.

        """
        if not 0 < len(corpus) <= MOST:
            raise MMLongBenchError(f"rank-bm25 can hold 1 to {MOST:,} passages, not {len(corpus):,}; use tantivy")
        passages = list(corpus)
        self._scorer = _Scorer([tokens(f"{p.title}\n{p.text}") for p in passages])
        self._ranks = ranks_of([[p.id for p in passages]])
        made_by = f"rank-bm25 {version('rank-bm25')}"
        self.fingerprint = digest(corpus.fingerprint, len(corpus), made_by, K1, B, TOKENS).hex()

    def search(self, query: str, k: int) -> list[Hit]:
        """Return the best k passages that share a word with the query, ordered by (-score, passage id)."""
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
        """Return the best k texts that share a word with the query, ordered by (-score, rank)."""
        import numpy as np

        scores = np.asarray(self._engine.get_scores(tokens(query)), np.float64)
        numbers = np.argsort(-scores, kind="stable")
        numbers = numbers[: np.count_nonzero(scores > 0)]
        return settle(scores[numbers], numbers, ranks, k, TOLERANCE, is_all=True) or []
