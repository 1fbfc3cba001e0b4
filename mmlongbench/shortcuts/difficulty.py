"""How hard gold is to find by plain search: its rank among the units of its context, by BM25 or by an embedding model.

This is no finding: a question whose words stand in its gold is easy to search for, and may be as hard to answer.
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from math import ceil
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Literal

from pydantic import BaseModel, ConfigDict

from mmlongbench.corpus.corpus import Passage
from mmlongbench.corpus.retrieval.bm25 import rank_texts
from mmlongbench.corpus.retrieval.dense import ModelSpec, Reranker
from mmlongbench.lengths import format_length
from mmlongbench.shortcuts.reading import AskedQuestion, PageTexts
from mmlongbench.table import Table, Value

MAX_QUESTIONS = 100
"""How many questions of a dataset are searched for at each length at most; they are drawn, the same at each length."""
BM25 = "BM25"
"""The name of the search by words."""


class Difficulty(BaseModel):
    """How far down a search finds gold, in one dataset at one length."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    kind: Literal["difficulty"] = "difficulty"
    """Tells this line from those of findings."""
    dataset: str
    file: str
    """The public file whose contexts were searched, below `mmlb_data/`."""
    length: int
    """The length of the contexts, in tokens."""
    search: str
    """How was searched: `BM25`, or the name of an embedding model."""
    questions: int
    """The number of questions that were searched for."""
    golds: int
    """The number of gold units in their contexts."""
    units: float
    """The median number of units with text in a context, among which gold is ranked."""
    found: float
    """The share of golds that share a word with their question; the others rank last. 1 for an embedding model."""
    median_rank: float
    """The median rank of gold, from 1."""
    k_50: int
    """How many units, the best first, a reader needs to have half of all golds."""
    k_90: int
    """How many units, the best first, a reader needs to have 90 % of all golds."""


class Search:
    """Searches contexts by words or, with a model, by meaning."""

    def __init__(self, reranker: Reranker | None = None, name: str = "") -> None:
        """Search by `reranker`, whose model is called `name`; None: by BM25."""
        self._reranker = reranker
        self.name = name if reranker else BM25

    def order(self, question: str, texts: Sequence[str]) -> Sequence[int]:
        """Return the places of the texts that are found, the best first."""
        if self._reranker is None:
            return rank_texts(question, texts)
        units = [Passage(f"{at:09}", "", "", text, 0) for at, text in enumerate(texts)]
        return [place for place, _ in self._reranker.scored(question, units)]


@contextmanager
def searches_of(model: str | None) -> Iterator[tuple[Search, ...]]:
    """Open the search by words and, with the name of a model, the search by meaning. The vectors of units are kept in a
    temporary folder.
    """
    if model is None:
        yield (Search(),)
        return
    with TemporaryDirectory() as folder:
        reranker = Reranker.open(ModelSpec(name=model), Path(folder))
        try:
            yield Search(), Search(reranker, model)
        finally:
            reranker.close()


class Difficulties:
    """Ranks the golds of one dataset at one length."""

    def __init__(self, dataset: str, length: int, searches: Sequence[Search], texts: PageTexts | None = None) -> None:
        """`texts` has the texts of pages that are shown as images."""
        self._dataset, self.length, self._texts = dataset, length, texts
        self._searches = searches
        self._ranks: dict[str, list[tuple[int, int, bool]]] = {search.name: [] for search in searches}
        """By search: the rank of each gold, the number of units with text in its context, and whether it was found."""
        self._file, self._questions = "", 0

    def add(self, asked: AskedQuestion) -> None:
        """Rank the golds of one context. One without a question in words, or whose gold has no text, is left out."""
        golds = [place for place, unit in enumerate(asked.units) if unit.is_gold]
        if not golds or not asked.question.strip():
            return
        has_pages = self._texts if asked.pages else None
        texts = [
            (unit.text if not unit.image else has_pages.of(unit) if has_pages else "").strip() for unit in asked.units
        ]
        known = [place for place, text in enumerate(texts) if text]
        if any(not texts[place] for place in golds) or len(known) == len(golds):
            return
        self._file = asked.file
        self._questions += 1
        for search in self._searches:
            order = [known[at] for at in search.order(asked.question, [texts[place] for place in known])]
            for gold in golds:
                rank = order.index(gold) + 1 if gold in order else len(known)
                self._ranks[search.name].append((rank, len(known), gold in order))

    def lines(self) -> Iterator[Difficulty]:
        """Yield a line for each search; nothing if no gold could be ranked."""
        for name, golds in self._ranks.items():
            if not golds:
                continue
            ranks = sorted(rank for rank, _, _ in golds)
            yield Difficulty(
                dataset=self._dataset,
                file=self._file,
                length=self.length,
                search=name,
                questions=self._questions,
                golds=len(golds),
                units=median(units for _, units, _ in golds),
                found=sum(is_found for _, _, is_found in golds) / len(golds),
                median_rank=median(ranks),
                k_50=enough(ranks, 50),
                k_90=enough(ranks, 90),
            )


def enough(ranks: Sequence[int], per_cent: int) -> int:
    """Return the smallest k so that a share of ascending ranks is at most k.

    >>> enough([1, 1, 2, 7], 50), enough([1, 1, 2, 7], 90)
    (1, 7)
    """
    return ranks[ceil(per_cent * len(ranks) / 100) - 1]


def difficulty_table(lines: Iterable[Difficulty]) -> Table:
    """Return how far one must read to find gold."""
    rows: list[tuple[Value, ...]] = []
    for line in lines:
        share, rank = f"{100 * line.found:.1f}", f"{line.median_rank:g}"
        units = (line.questions, f"{line.units:g}", share, rank, line.k_50, line.k_90)
        rows.append((line.dataset, format_length(line.length), line.search, *units))
    columns = ("dataset", "length", "search", "n", "units", "found", "median rank", "half", "90 %")
    return Table(columns, rows, "difficulty: units to read to have half, or 90 %, of golds", align="lll")
