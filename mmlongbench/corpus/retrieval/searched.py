"""What a builder may ask of a corpus: an article's lead section, paragraphs, and hard negatives for a question."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from mmlongbench.corpus.corpus import Corpus
from mmlongbench.corpus.info import Passage
from mmlongbench.corpus.retrieval.negatives import Facts, NegativeFilter, Query, unfilterable_answer
from mmlongbench.corpus.wikidata import wikidata_number
from mmlongbench.draws import Draws
from mmlongbench.errors import DraftError, Rejected

FoundBy: TypeAlias = Literal["id", "wikidata id", "title", ""]


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


class SearchedCorpus:
    """A corpus with the hard negatives that were found for the declared queries; nothing is searched for here."""

    def __init__(
        self,
        corpus: Corpus,
        near: float,
        negatives_of: Callable[[str], Sequence[int] | None],
        spare: Draws | None = None,
    ) -> None:
        """`negatives_of` gives the hard negatives of a query by its id, as places in the corpus, the hardest first.

        `near` is the share of words from which a passage is a near duplicate of another. With `spare`, there are random
        negatives too.
        """
        self._corpus = corpus
        self._near = near
        self._negatives_of = negatives_of
        self._spare = spare

    def lead(self, doc_id: str, title: str) -> Lead:
        """Find an article's lead section: by the corpus's own id, by the Wikidata id, or by the title, in this order.

        `doc_id` may be either id. In a corpus that marks no sections the lead is the article's first passage.
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
        """Return the passages of an article that hold its paragraphs `first` to `last`, as the source counts them."""
        passages = map(self._corpus.passage, self._corpus.of_document(doc_id))
        return tuple(p for p in passages if p.first_paragraph <= last and p.last_paragraph >= first)

    def check(self, facts: Facts) -> None:
        """Refuse a question whose answer cannot be kept out of any passage.

        Raises:
            Rejected: the answer is a stop word, or one character.

        """
        if fault := unfilterable_answer(facts):
            raise Rejected(fault)

    def negatives(self, query: Query) -> Iterator[Passage]:
        """Yield the hard negatives of a query that `Builder.queries` declares, the hardest first.

        Raises:
            DraftError: it was not declared, or nothing has been searched for yet (see `Builder.queries`).

        """
        yield from map(self._corpus.passage, self._numbers(query))

    def random_negatives(self, query: Query) -> Iterator[Passage]:
        """Yield clean passages that are no hard negatives, in a drawn order; nothing if `random_fill` is off.

        Raises:
            DraftError: it was not declared, or nothing has been searched for yet (see `Builder.queries`).

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
                "draft may take them only in its take order, since they are searched for once the questions are chosen"
            )
        return numbers
