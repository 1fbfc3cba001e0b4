"""The negatives stage: finds the hard negatives of each query that a builder declares for its questions."""

from collections.abc import Container, Iterable, Iterator, Sequence, Set
from numbers import Real

from mmlongbench.building.build_dir import Shard, block_shards, places_in
from mmlongbench.building.dataset import Dataset
from mmlongbench.building.session import Session
from mmlongbench.building.shard_results import FoundNegatives
from mmlongbench.corpus.retrieval.negatives import Facts, NegativeFilter, Query
from mmlongbench.errors import DraftError, Rejected
from mmlongbench.manifest.binding import broken, calling
from mmlongbench.task.rows import Row


def negative_shards(session: Session, name: str) -> list[Shard]:
    """Return one shard for each block of questions, if the dataset has a corpus."""
    return block_shards("negatives", name, len(session.questions(name)) if session.plans[name].corpus else 0)


def find_negatives(session: Session, shard: Shard) -> Iterator[FoundNegatives]:
    """Find the hard negatives of a block of questions."""
    yield from search_for(session, shard.dataset, session.questions(shard.dataset)[places_in(shard.name)])


def search_for(session: Session, name: str, rows: Iterable[Row]) -> Iterator[FoundNegatives]:
    """Yield one line for each query of some rows, in the order of the rows: the passage numbers of its hard negatives,
    and how many passages were rejected, by reason.
    """
    dataset, ids = session.dataset(name), session.hashed_ids(name)
    for row in rows:
        for query, chosen in _queries(dataset, row, ids):
            numbers, rejected = session.search(name).find(query.text, chosen)
            yield FoundNegatives(query.id, numbers, dict(sorted(rejected.items())))


def _queries(dataset: Dataset, row: Row, ids: Container[str]) -> list[tuple[Query, NegativeFilter]]:
    """Return the queries that a builder declares for a row, each with its filter; raise an error if a query is wrong.

    `ids` are those ids of chosen rows that hold `#`.
    """
    with calling("builder", dataset.spec.builder, "queries()", row):
        try:
            declared = list(dataset.builder.queries(row, dataset.sources))
        except Rejected as refused:
            raise DraftError(f"refuses a question that draft() has accepted: {refused.fault}") from refused
    known: dict[str, Query] = {}
    for query in declared:
        fault = _query_fault(query, row.id, ids)
        if not fault and query.id in known:
            fault = f"two queries have the id {query.id!r}"
        if fault:
            raise broken("builder", dataset.spec.builder, "queries()", fault, row)
        known[query.id] = query
    with calling("builder", dataset.spec.builder, "queries()", row):
        near = dataset.spec.retrieval.near_duplicate
        return [(known[id], NegativeFilter(known[id].facts, near)) for id in sorted(known)]


def _query_fault(query: object, row: str, ids: Container[str]) -> str:
    if not isinstance(query, Query):
        return f"returned a {type(query).__name__}, expected Query"
    if not (isinstance(query.id, str) and isinstance(query.text, str) and isinstance(query.facts, Facts)):
        return f"a query must have an id and a text that are texts, and Facts, found {query!r:.200}"
    facts, within = query.facts, query.facts.within
    for name, texts in (("answers", facts.answers), ("entities", facts.entities)):
        if not isinstance(texts, tuple | list) or not all(isinstance(text, str) for text in texts):
            return f"Facts.{name} must be a tuple of texts, found {texts!r:.80}"
    if not isinstance(facts.excluded, Set):
        return f"Facts.excluded must be a set of ids, found {facts.excluded!r:.80}"
    is_span = isinstance(within, Sequence) and len(within) == 2 and all(isinstance(end, Real) for end in within)
    if within is not None and not is_span:
        return f"Facts.within must be two numbers or None, found {within!r:.80}"
    if query.id != row and not query.id.startswith(f"{row}#"):
        return f"the id of a query must be the row's, or that and `#…`, found {query.id!r}"
    # the id of another row may begin with the id of this row and `#`
    ends = [*(at for at, character in enumerate(query.id) if character == "#"), len(query.id)]
    if other := next((query.id[:end] for end in ends if end > len(row) and query.id[:end] in ids), ""):
        return f"row {other!r} may declare a query with the id {query.id!r} too; choose another id"
    return ""
