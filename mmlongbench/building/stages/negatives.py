"""The negatives stage: finds the hard negatives of each query that a builder declares for its questions."""

from collections.abc import Container, Iterable, Iterator, Sequence, Set
from numbers import Real

from mmlongbench.building.build_dir import Shard, blocks, places_in
from mmlongbench.building.dataset import Dataset
from mmlongbench.building.lines import FoundNegatives
from mmlongbench.building.session import Session
from mmlongbench.corpus.retrieval.negatives import Facts, NegativeFilter, Query
from mmlongbench.errors import DraftError, Rejected
from mmlongbench.manifest.binding import broken, calling
from mmlongbench.task.rows import Row


def negative_shards(session: Session, name: str) -> list[Shard]:
    """Return one shard for each block of questions, if the dataset has a corpus."""
    questions = len(session.questions(name)) if session.plans[name].corpus else 0
    return [Shard("negatives", name, block, steps) for block, steps in blocks(questions).items()]


def find_negatives(session: Session, shard: Shard) -> Iterator[FoundNegatives]:
    """Yield one line for each query: the passage numbers of its hard negatives, and how many passages were rejected, by
    reason.
    """
    yield from search_for(session, shard.dataset, session.questions(shard.dataset)[places_in(shard.name)])


def search_for(session: Session, name: str, rows: Iterable[Row]) -> Iterator[FoundNegatives]:
    """Search for the hard negatives of the queries of some rows; yield one line for each query, in the order of the
    rows.
    """
    dataset, ids = session.dataset(name), {row.id for row in session.questions(name)}
    for row in rows:
        for query, chosen in _queries(dataset, row, ids):
            found = session.search(name).find(query.text, chosen)
            yield FoundNegatives(query.id, list(found.numbers), dict(sorted(found.rejected.items())))


def _queries(dataset: Dataset, row: Row, ids: Container[str]) -> list[tuple[Query, NegativeFilter]]:
    """Return the queries that a builder declares for a row, each with its filter; raise an error if a query is wrong.

    `ids` are the ids of all chosen rows. A query must have the id of its row, or that id followed by `#` and a text.
    """
    with calling("builder", dataset.spec.builder, "queries()", row):
        try:
            declared = list(dataset.builder.queries(row, dataset.sources))
        except Rejected as refused:
            raise DraftError(f"refuses a question that draft() has accepted: {refused.fault}") from refused
    known: dict[str, Query] = {}
    fault = ""
    for query in declared:
        if not isinstance(query, Query):
            fault = f"returned a {type(query).__name__}, expected Query"
        elif not (isinstance(query.id, str) and isinstance(query.text, str) and isinstance(query.facts, Facts)):
            fault = f"a query must have an id and a text that are texts, and Facts, found {query!r:.200}"
        elif wrong := _wrong_fact(query.facts):
            fault = f"Facts.{wrong}"
        elif query.id != row.id and not query.id.startswith(f"{row.id}#"):
            fault = f"the id of a query must be the row's, or that and `#…`, found {query.id!r}"
        elif other := _other_owner(query.id, row.id, ids):
            fault = f"row {other!r} may declare a query with the id {query.id!r} too; choose another id"
        elif query.id in known:
            fault = f"two queries have the id {query.id!r}"
        if fault:
            raise broken("builder", dataset.spec.builder, "queries()", fault, row)
        known[query.id] = query
    with calling("builder", dataset.spec.builder, "queries()", row):
        near = dataset.spec.retrieval.near_duplicate
        return [(known[id], NegativeFilter(known[id].facts, near)) for id in sorted(known)]


def _wrong_fact(facts: Facts) -> str:
    for name, texts in (("answers", facts.answers), ("entities", facts.entities)):
        if not isinstance(texts, tuple | list) or not all(isinstance(text, str) for text in texts):
            return f"{name} must be a tuple of texts, found {texts!r:.80}"
    if not isinstance(facts.excluded, Set):
        return f"excluded must be a set of ids, found {facts.excluded!r:.80}"
    within = facts.within
    is_span = isinstance(within, Sequence) and len(within) == 2 and all(isinstance(end, Real) for end in within)
    return "" if within is None or is_span else f"within must be two numbers or None, found {within!r:.80}"


def _other_owner(id: str, row: str, ids: Container[str]) -> str:
    """Return the id of another row that may declare a query with the id `id`; empty if there is none."""
    ends = [at for at, character in enumerate(id) if character == "#" and at > len(row)]
    return next((id[:end] for end in (*ends, len(id)) if end > len(row) and id[:end] in ids), "")
