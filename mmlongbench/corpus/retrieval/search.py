"""Hard negatives in a corpus: the search that finds them, and the corpus in which a builder gets them.

A ranking is computed once, kept on disk, and read from there while it is valid. Vectors differ in their last bits
between devices, so the order of two passages may differ too; a build from saved rankings has the same bytes everywhere.
"""

import json
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias

from mmlongbench.corpus.articles import wikidata_number
from mmlongbench.corpus.corpus import Corpus, Passage
from mmlongbench.corpus.retrieval.bm25 import WordIndex
from mmlongbench.corpus.retrieval.dense import Reranker
from mmlongbench.corpus.retrieval.negatives import Facts, NegativeFilter, Query, unfilterable_answer
from mmlongbench.draws import Draws, digest
from mmlongbench.errors import BuildError, DraftError, Rejected
from mmlongbench.io.files import write_whole

FORMAT = 2  # the version of the files of saved rankings


class Search:
    """The search in one corpus. It keeps each ranking in a folder, one file for each query."""

    def __init__(
        self, folder: Path, corpus: Corpus, index: WordIndex, k: int, reranker: Reranker | None = None
    ) -> None:
        """Rank by words, and let the reranker, if there is one, reorder the best k by meaning."""
        self._folder = folder
        self._corpus = corpus
        self._index = index
        self._k = k
        self._reranker = reranker

    def rank(self, query: str) -> list[int]:
        """Return the numbers of the passages nearest to a query, the nearest first, from disk if they were saved.

        Raises:
            BuildError: a saved ranking has more passages than are asked for, or others than the corpus has.

        """
        # everything that decides the order
        facts = {
            "format": FORMAT,
            "corpus": self._corpus.fingerprint,
            "index": self._index.fingerprint,
            "reranker": self._reranker.fingerprint if self._reranker else None,
            "k": self._k,
            "query": query,
        }
        name = digest(json.dumps(facts, sort_keys=True)).hex()
        path = self._folder / name[:2] / f"{name}.json"
        try:
            saved = list(json.loads(path.read_bytes())["numbers"])
        except (FileNotFoundError, ValueError, KeyError, TypeError):  # not saved yet, or damaged
            numbers = [hit.number for hit in self._index.search(query, self._k)]
        else:
            known = range(len(self._corpus))
            wrong = [number for number in saved if type(number) is not int or number not in known]
            if wrong or len(saved) > self._k or len(saved) != len(set(saved)):
                found = (
                    f"{wrong[0]!r:.80} among them"
                    if wrong
                    else f"{len(saved):,}, {len(set(saved)):,} of them different"
                )
                raise BuildError(
                    f"{path}: the saved ranking does not fit: expected at most {self._k:,} different passages from 0 "
                    f"to {len(known) - 1:,}, found {found}; remove that file"
                )
            return saved
        if self._reranker:
            passages = [self._corpus.passage(number) for number in numbers]
            numbers = [numbers[place] for place, _ in self._reranker.scored(query, passages)]
        write_whole(path, [json.dumps(facts | {"numbers": numbers}, sort_keys=True).encode(), b"\n"])
        return numbers

    def find(self, text: str, chosen: NegativeFilter) -> tuple[list[int], Counter[str]]:
        """Rank passages for a query text. Return the numbers of those that a filter admits, the hardest first, and how
        many of the others, for example those that answer the question, it rejected, by reason.

        `chosen` is the filter of the question; it must not have admitted any passage yet.
        """
        numbers, rejected = [], Counter[str]()
        for number in self.rank(text):
            reason = chosen.admit(self._corpus.passage(number))
            if reason is None:
                numbers.append(number)
            else:
                rejected[reason] += 1
        return numbers, rejected


FoundBy: TypeAlias = Literal["id", "wikidata id", "title", ""]


@dataclass(frozen=True, slots=True)
class Lead:
    """The lead section of an article, and the key by which it was found."""

    passages: tuple[Passage, ...]
    """The passages of the section; empty if the corpus does not have the article."""
    found_by: FoundBy = ""
    """The key by which the article was found; empty if the corpus does not have it."""

    @property
    def noted(self) -> tuple[str, ...]:
        """The phrases about the lead section that the lock counts (`Draft.noted`)."""
        return (f"joined by {self.found_by}" if self.found_by else "not joined",)


class SearchedCorpus:
    """A corpus with the hard negatives that were found for the queries of `Builder.queries`; it does not search."""

    def __init__(
        self,
        corpus: Corpus,
        near: float,
        negatives_of: Callable[[str], Sequence[int] | None],
        spare: Draws | None = None,
    ) -> None:
        """Keep the corpus and the functions that give its negatives.

        `negatives_of` takes the id of a query and returns the passage numbers of its hard negatives, hardest first.
        `near` is the similarity from which a passage is a near-duplicate of another. `spare` draws random negatives; if
        it is None, there are no random negatives.
        """
        self._corpus = corpus
        self._near = near
        self._negatives_of = negatives_of
        self._spare = spare

    def lead(self, doc_id: str, title: str) -> Lead:
        """Find the lead section of an article. The article is looked up by its id in the corpus, then by its Wikidata
        id, then by its title. If several articles have the Wikidata id, the article with the title is taken; if none
        has the title, the first article.

        `doc_id` may be the id in the corpus or the Wikidata id. In a corpus without sections, the first passage of the
        article is returned.
        """
        found_by: FoundBy = "wikidata id"
        if numbers := self._corpus.of_document(doc_id) if doc_id else []:
            found_by = "wikidata id" if wikidata_number(doc_id) else "id"
        else:
            numbers = self._corpus.by_title(title)
            if articles := self._corpus.of_wikidata(doc_id):
                numbers = next((passages for passages in articles if passages[0] in numbers), articles[0])
            else:
                found_by = "title" if numbers else ""
        if not self._corpus.info.sectioned:
            numbers = numbers[:1]
        passages = [self._corpus.passage(number) for number in numbers]
        return Lead(tuple(p for p in passages if p.section == 0 and p.doc_id == passages[0].doc_id), found_by)

    def paragraphs(self, doc_id: str, first: int, last: int) -> tuple[Passage, ...]:
        """Return the passages of an article that hold any part of the paragraphs `first` to `last`. Paragraphs have the
        numbers of the source.
        """
        passages = map(self._corpus.passage, self._corpus.of_document(doc_id))
        return tuple(p for p in passages if p.first_paragraph <= last and p.last_paragraph >= first)

    def check(self, facts: Facts) -> None:
        """Refuse a question whose answer cannot be kept out of passages.

        Raises:
            Rejected: there is no answer, an answer is a stop word or one character, or an answer or a name has no
                letter or digit.

        """
        if fault := unfilterable_answer(facts):
            raise Rejected(fault)

    def negatives(self, query: Query) -> Iterator[Passage]:
        """Yield the hard negatives of a query that `Builder.queries` declares, the hardest first.

        Raises:
            DraftError: the query was not declared, or the search has not run yet (see `Builder.queries`).

        """
        yield from map(self._corpus.passage, self._numbers(query))

    def random_negatives(self, query: Query) -> Iterator[Passage]:
        """Yield passages that the filter of hard negatives admits and that are no hard negatives of the query, in a
        drawn order; nothing if `random_fill` is off.

        Raises:
            DraftError: the query was not declared, or the search has not run yet (see `Builder.queries`).

        """
        if self._spare is None:
            return
        chosen = NegativeFilter(query.facts, self._near)
        taken = sorted(self._numbers(query))
        for number in taken:
            chosen.admit(self._corpus.passage(number))
        known = set(taken)
        for number in self._spare.permutation(f"spare {query.id}", len(self._corpus)):
            if number not in known and chosen.admit(passage := self._corpus.passage(number)) is None:
                yield passage

    def _numbers(self, query: Query) -> Sequence[int]:
        numbers = self._negatives_of(query.id)
        if numbers is None:
            raise DraftError(
                f"no hard negatives of {query.id!r} are known: `queries(row, sources)` must declare the query, and a "
                "draft may use them only in its take order, because the search runs after the questions are chosen"
            )
        return numbers
