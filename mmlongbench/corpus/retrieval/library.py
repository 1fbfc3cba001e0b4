"""What a builder may ask of a corpus: an article's lead section, paragraphs, and hard negatives for a question."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from mmlongbench.corpus.corpus import Corpus
from mmlongbench.corpus.info import Passage
from mmlongbench.corpus.retrieval.negatives import Facts, NegativeFilter, unfilterable_answer
from mmlongbench.corpus.retrieval.rankings import Rankings
from mmlongbench.corpus.wikidata import wikidata_number
from mmlongbench.draws import Draws
from mmlongbench.errors import Fault

FoundBy: TypeAlias = Literal["id", "wikidata id", "title", ""]


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


@dataclass(frozen=True, slots=True)
class Lead:
    """The lead section of an article, and what it was found by."""

    passages: tuple[Passage, ...]
    """None where the corpus does not have the article."""
    found_by: FoundBy = ""
    """Empty where the corpus does not have the article."""

    @property
    def noted(self) -> tuple[str, ...]:
        """What the lock counts of it (`Draft.noted`)."""
        return (f"joined by {self.found_by}" if self.found_by else "not joined",)


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
        """`prepared` gives the negatives found before for a query id; with `spare`, there are random ones too."""
        self._corpus = corpus
        self._rankings = rankings
        self._near = near
        self._prepared = prepared
        self._spare = spare
        self._found: dict[str, Found] = {}

    def lead(self, doc_id: str, title: str) -> Lead:
        """Find an article's lead section: by the corpus's own id, by the Wikidata id, or by the title, in this order.

        In a corpus that marks no sections it is the article's first passage.
        """
        rows, found_by = self._article(doc_id, title)
        passages = [self._corpus.passage(row) for row in (rows if self._corpus.info.sectioned else rows[:1])]
        first = passages[0].doc_id if passages else ""
        return Lead(tuple(p for p in passages if p.section == 0 and p.doc_id == first), found_by)

    def _article(self, doc_id: str, title: str) -> tuple[Sequence[int], FoundBy]:
        """The rows of an article; of several with one Wikidata id, that of the title, else the corpus's first."""
        if rows := self._corpus.of_document(doc_id) if doc_id else []:
            return rows, "wikidata id" if wikidata_number(doc_id) else "id"
        titled = self._corpus.by_title(title)
        if articles := self._corpus.of_wikidata(doc_id):
            return next((rows for rows in articles if rows[0] in titled), articles[0]), "wikidata id"
        return titled, "title" if titled else ""

    def paragraphs(self, doc_id: str, first: int, last: int) -> tuple[Passage, ...]:
        """The passages of an article that hold some of its paragraphs `first` to `last`."""
        passages = map(self._corpus.passage, self._corpus.of_document(doc_id))
        return tuple(p for p in passages if p.first_paragraph <= last and p.last_paragraph >= first)

    @staticmethod
    def unfilterable_answer(query: Query) -> Fault | None:
        """What is wrong with a question whose answer cannot be kept out of any passage."""
        return unfilterable_answer(query.facts)

    def newly_found(self) -> dict[str, Found]:
        """What was searched for since this was last asked, by query id."""
        found, self._found = self._found, {}
        return found

    def find(self, query: Query) -> Found:
        """Rank, then turn away what answers the question or names its entity, counted by reason."""
        chosen, rejected = NegativeFilter(query.facts, self._near), Counter[str]()
        numbers = []
        for number in self._rankings.rank(query.text).numbers:
            reason = chosen.admit(self._corpus.passage(number))
            if reason is None:
                numbers.append(number)
            else:
                rejected[reason] += 1
        return Found(tuple(numbers), rejected)

    def negatives(self, query: Query) -> Iterator[Passage]:
        """Hard negatives, hardest first."""
        yield from map(self._corpus.passage, self._numbers(query))

    def random_negatives(self, query: Query) -> Iterator[Passage]:
        """Yield clean passages that are no hard negatives, in a drawn order; nothing if `random_fill` is off."""
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
        numbers = self._prepared(query.id)
        if numbers is None:
            self._found[query.id] = self.find(query)
            numbers = self._found[query.id].numbers
        return numbers
