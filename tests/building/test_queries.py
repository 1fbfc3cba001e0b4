"""The negatives stage searches for what builders declare, and for nothing else."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any, NoReturn

import pytest
import yaml
from built import prepared
from samples import Sources, from_samples

import mmlongbench.task as mt
from builders.vrag import VRAG
from mmlongbench.building.session import Session
from mmlongbench.building.stages.negatives import search_for
from mmlongbench.corpus.retrieval.search import Search
from mmlongbench.manifest.binding import PluginCallError
from mmlongbench.manifest.loading import load_manifest


@pytest.fixture(scope="module")
def session(sample: Callable[[str], Sources], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    folder = tmp_path_factory.mktemp("declared")
    about = {"name": "viquae", "builder": "vrag", "reader": "viquae", "options": {"gold": "span"}, "sample": {"n": 2}}
    manifest = from_samples({"datasets": [{**about, "licence": "none", "lengths": ["8K"]}]}, sample)
    (folder / "viquae.yaml").write_text(yaml.safe_dump(manifest))
    with prepared(load_manifest(folder / "viquae.yaml"), folder / "out") as session:
        yield session


def test_each_query_has_a_line_by_its_id(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    own = VRAG.queries
    rows = session.questions("viquae")
    (line,) = search_for(session, "viquae", rows[:1])
    assert line.id == rows[0].id
    assert line.numbers

    def two(self: VRAG, row: Any, sources: mt.Sources) -> Sequence[mt.advanced.Query]:
        (query,) = own(self, row, sources)
        return [replace(query, id=f"{row.id}#other", text="harbour"), query]

    monkeypatch.setattr(VRAG, "queries", two)
    first, second = search_for(session, "viquae", rows[:1])
    assert first == line
    assert second.id == f"{rows[0].id}#other"
    assert second.numbers != line.numbers


def test_a_draft_that_takes_before_anything_is_searched_for_is_told_so(session: Session) -> None:
    dataset, row = session.dataset("viquae"), session.questions("viquae")[0]
    draft = dataset.builder.draft(row, dataset.sources, dataset.draws(row.id))
    with pytest.raises(mt.advanced.DraftError, match=rf"no hard negatives of '{row.id}' are known: `queries"):
        next(iter(draft.take_order.units(8192)))


def test_a_query_that_nobody_declares_is_named_where_others_are_found(session: Session) -> None:
    row = session.questions("viquae")[1]
    corpus = session.dataset("viquae").sources.corpus
    session.dataset("viquae").negatives.add(search_for(session, "viquae", [row]))
    facts = mt.advanced.Facts(("x",))
    assert next(iter(corpus.negatives(mt.advanced.Query(row.id, "harbour", facts))))
    with pytest.raises(mt.advanced.DraftError, match=rf"no hard negatives of '{row.id}#else' are known: `queries"):
        next(iter(corpus.negatives(mt.advanced.Query(f"{row.id}#else", "harbour", facts))))


@pytest.mark.parametrize("own", ["a#1", "a#1#2"])
def test_an_id_of_two_rows_is_refused(own: str, session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    declared, (row, *_) = VRAG.queries, session.questions("viquae")
    first, second = (row.model_copy(update={"id": id}) for id in ("a", "a#1"))
    monkeypatch.setattr(session, "hashed_ids", lambda name: frozenset({"a#1"}))
    monkeypatch.setattr(VRAG, "queries", lambda self, row, sources: [replace(*declared(self, row, sources), id=own)])
    with pytest.raises(PluginCallError, match=rf"row 'a#1' may declare a query with the id '{own}' too; choose"):
        list(search_for(session, "viquae", [first]))
    assert [line.id for line in search_for(session, "viquae", [second])] == [own]


def test_a_search_that_fails_is_not_the_builders_fault(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> NoReturn:
        raise RuntimeError("out of memory")

    monkeypatch.setattr(Search, "find", fail)
    with pytest.raises(RuntimeError, match=r"^out of memory$"):
        list(search_for(session, "viquae", session.questions("viquae")[:1]))


def _of(change: Callable[[mt.advanced.Query], list[object]]) -> Callable[..., list[object]]:
    own = VRAG.queries
    return lambda self, row, sources: change(own(self, row, sources)[0])


def changed(value: Any, **fields: object) -> Any:
    """Replace fields by values of any type, as code without types may."""
    return replace(value, **fields)


def _facts(**fields: object) -> Callable[..., list[object]]:
    return _of(lambda query: [changed(query, facts=changed(query.facts, **fields))])


def _refuse() -> NoReturn:
    raise mt.Rejected(mt.Fault("no-article", "an article", "none"))


@pytest.mark.parametrize(
    ("queries", "fault"),
    [
        (_of(lambda query: [replace(query, id="other")]), "the id of a query must be the row's, or that and `#…`, fou"),
        (_of(lambda query: [query, query]), "two queries have the id"),
        (_of(lambda query: [query.text]), "returned a str, expected Query"),
        (_of(lambda query: [changed(query, id=7)]), "must have an id and a text that are texts, and Facts, found"),
        (_of(lambda query: [changed(query, text=None)]), "must have an id and a text that are texts, and Facts, found"),
        (_of(lambda query: [changed(query, facts=None)]), "must have an id and a text that are texts, and Facts, fou"),
        (_facts(answers=(1889,)), "Facts.answers must be a tuple of texts, found (1889,)"),
        (_facts(answers="harbour"), "Facts.answers must be a tuple of texts, found 'harbour'"),
        (_facts(entities=None), "Facts.entities must be a tuple of texts, found None"),
        (_facts(within=(None, 3)), "Facts.within must be two numbers or None, found (None, 3)"),
        (_facts(excluded=None), "Facts.excluded must be a set of ids, found None"),
        (_facts(gold=(7,)), "AttributeError: 'int' object has no attribute"),
        (_of(lambda query: _refuse()), "refuses a question that draft() has accepted: no-article"),
        (_of(lambda query: [{"a": 1}["boo"]]), "KeyError: 'boo'"),
    ],
    ids=[
        *("another id", "one id twice", "a text", "no id", "no text", "no facts"),
        *("a number", "letters", "no entities", "no number", "no set", "no passage", "refused", "an exception"),
    ],
)
def test_queries_that_nobody_can_declare_are_the_builders_fault(
    queries: Any, fault: str, session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(VRAG, "queries", queries)
    row = session.questions("viquae")[0]
    with pytest.raises(PluginCallError) as caught:
        list(search_for(session, "viquae", [row]))
    assert fault in str(caught.value)
    assert "builder 'vrag'" in str(caught.value)
    assert f"queries(), row {row.id!r}" in str(caught.value)
