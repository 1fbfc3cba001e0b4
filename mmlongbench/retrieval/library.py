"""What a builder may ask of a corpus: an article's lead section, paragraphs, and hard negatives for a question."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from mmlongbench.draws import Draws
from mmlongbench.errors import Fault
from mmlongbench.passages.corpus import Corpus
from mmlongbench.passages.info import Passage
from mmlongbench.retrieval.negatives import Facts, NegativeFilter, unkeepable
from mmlongbench.retrieval.rankings import Rankings


@dataclass(frozen=True, slots=True)
class Query:
    """One question to a corpus."""

    id: str
    """The question's."""
    text: str
    """What is searched for; for a visual question, with the entity's name in place of the picture."""
    facts: Facts
    """What must not stand in a negative."""


@dataclass(frozen=True, slots=True)
class Found:
    """The hard negatives of a query, as places in the corpus, and what was turned away."""

    numbers: tuple[int, ...]
    rejected: Counter[str]


class Library:
    """A corpus with its ranking; what was prepared for a query is never searched for again."""

    def __init__(
        self,
        corpus: Corpus,
        rankings: Rankings,
        near: float,
        prepared: Callable[[str], Sequence[int] | None],
        spare: Draws | None = None,
    ) -> None:
        """`prepared` gives the negatives found before for a query id; after them, with `spare`, random clean ones."""
        self._corpus = corpus
        self._rankings = rankings
        self._near = near
        self._prepared = prepared
        self._spare = spare
        self._found: dict[str, Found] = {}

    def lead(self, doc_id: str, title: str) -> tuple[Passage, ...]:
        """The passages of an article's lead section, by its id or else its title; none if it is not there."""
        rows = self._corpus.of_document(doc_id) if doc_id else []
        passages = [self._corpus.passage(row) for row in rows or self._corpus.by_title(title)]
        first = passages[0].doc_id if passages else ""
        return tuple(passage for passage in passages if passage.section == 0 and passage.doc_id == first)

    def paragraphs(self, doc_id: str, first: int, last: int) -> tuple[Passage, ...]:
        """The passages of an article that hold some of its paragraphs `first` to `last`."""
        passages = map(self._corpus.passage, self._corpus.of_document(doc_id))
        return tuple(p for p in passages if p.first_paragraph <= last and p.last_paragraph >= first)

    @staticmethod
    def unkeepable(query: Query) -> Fault | None:
        """What is wrong with a question whose answer cannot be kept out of any passage."""
        return unkeepable(query.facts)

    def newly_found(self) -> dict[str, Found]:
        """What was searched for since this was last asked, by query id."""
        found, self._found = self._found, {}
        return found

    def find(self, query: Query) -> Found:
        """Rank, then turn away what answers the question or names its entity, counted by reason."""
        chosen, rejected = NegativeFilter(query.facts, self._near), Counter[str]()
        numbers = []
        for number in self._rankings.rank(query.text).numbers:
            reason = chosen.reason(self._corpus.passage(number))
            if reason is None:
                numbers.append(number)
            else:
                rejected[reason] += 1
        return Found(tuple(numbers), rejected)

    def negatives(self, query: Query) -> Iterator[Passage]:
        """Hard negatives, hardest first; random clean passages after them where these are allowed."""
        numbers = self._prepared(query.id)
        if numbers is None:
            self._found[query.id] = self.find(query)
            numbers = self._found[query.id].numbers
        for number in numbers:
            yield self._corpus.passage(number)
        if self._spare is not None:
            yield from self._random(query, set(numbers), self._spare)

    def _random(self, query: Query, taken: set[int], draws: Draws) -> Iterator[Passage]:
        """Clean passages in a drawn order, each once."""
        chosen = NegativeFilter(query.facts, self._near)
        for number in sorted(taken):
            chosen.reason(self._corpus.passage(number))
        order = draws.order(f"spare {query.id}", (n for n in range(len(self._corpus)) if n not in taken))
        for passage in map(self._corpus.passage, order):
            if chosen.reason(passage) is None:
                yield passage
