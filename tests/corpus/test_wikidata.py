"""The Wikidata id of an article: read from every form that has one, kept as a second key, absent without harm."""

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from click.testing import CliRunner
from pyarrow import parquet

from mmlongbench.cli.corpus import corpus
from mmlongbench.corpus import Article, Corpus, build_corpus
from mmlongbench.corpus.making import make_corpus
from mmlongbench.corpus.wikidata import wikidata_number

KILT: dict[str, Any] = {
    "_id": "290",
    "wikipedia_id": "290",
    "wikipedia_title": "Example Tower",
    "text": ["Example Tower\n", "It is 61 m high.\n", "Section::::History.\n", "It is old.\n"],
    "anchors": [],
    "categories": "Towers",
    "wikidata_info": {"wikidata_id": "Q900001", "wikidata_label": "Example Tower", "aliases": ["The Tower"]},
}
HUB = {
    **{key: value for key, value in KILT.items() if key != "_id"},
    "kilt_id": "290",
    "text": {"paragraph": KILT["text"]},
    "wikidata_info": {"wikidata_id": "Q900001", "description": "", "aliases": {"alias": ["The Tower"]}},
}
WIKI6M = {
    "wikidata_id": "Q900001",
    "wikipedia_title": "Example Tower",
    "wikipedia_content": "It is 61 m high.",
    "wikipedia_image_url": None,
    "wikipedia_summary": "It is 61 m high.",
}


def opened(source: Path, out: Path) -> Corpus:
    make_corpus(str(source), out)
    return Corpus.open(out)


@pytest.mark.parametrize("row", [KILT, HUB, WIKI6M], ids=["KILT", "KILT of the hub", "Wiki6M"])
def test_an_article_is_found_by_the_wikidata_id_of_its_row(lines: Any, tmp_path: Path, row: dict[str, Any]) -> None:
    found = opened(lines({**row, "wikidata_info": row.get("wikidata_info")}), tmp_path / "out")
    assert found.of_wikidata("Q900001") == [list(range(len(found)))]
    assert found.of_wikidata("q900001 ") == found.of_wikidata("Q900001")
    assert (found.info.format, found.info.wikidata_ids, found.info.wikidata_ids_shared) == (2, 1, 0)


def test_parquet_keeps_the_id_too(tmp_path: Path) -> None:
    rows = [HUB, {**HUB, "wikipedia_id": "7", "wikidata_info": None}]
    parquet.write_table(pa.Table.from_pylist(rows), tmp_path / "k.parquet")
    found = opened(tmp_path / "k.parquet", tmp_path / "out")
    assert found.info.articles == 2
    assert found.of_wikidata("Q900001") == [found.of_document("290")]


ABSENT = {
    "no object": None,
    "an empty object": {},
    "an empty id": {"wikidata_id": ""},
    "null": {"wikidata_id": None},
    "a number": {"wikidata_id": 900001},
    "a property": {"wikidata_id": "P31"},
    "a text": "Q900001",
    "a list": ["Q900001"],
    "many digits": {"wikidata_id": f"Q{'9' * 40}"},
}


@pytest.mark.parametrize("info", ABSENT.values(), ids=ABSENT)
def test_what_is_no_wikidata_id_is_no_key_and_no_fault(lines: Any, tmp_path: Path, info: Any) -> None:
    without = {key: value for key, value in KILT.items() if key != "wikidata_info"}
    rows = [without, {**without, "_id": "291", "wikidata_info": info}]
    found = opened(lines(*rows, name="kilt.json"), tmp_path / "out")
    assert (found.info.articles, found.info.rejected, found.info.wikidata_ids) == (2, {}, 0)
    assert found.of_wikidata("Q900001") == found.of_wikidata("") == found.of_wikidata("290") == []


@pytest.mark.parametrize("id", ["", "Q", "Q0", "Q01", "42", "Q4 2", "Q٤٢", f"Q{'9' * 19}", "🂡", "Q-1"])
def test_what_is_no_id_has_no_number(id: str) -> None:
    assert wikidata_number(id) == 0


def test_pages_that_share_an_id_are_all_found_in_their_order_and_counted(tmp_path: Path) -> None:
    articles = [
        Article("1", "Ash", ("An ash.",), wikidata=7),
        Article("2", "Oak", ("An oak.",), wikidata=8),
        Article("3", "Ash tree", ("An ash is a tree.", "Section::::Wood.", "It is hard."), wikidata=7),
        Article("4", "Elm", ("An elm.",)),
    ]
    info = build_corpus(articles, tmp_path / "out")
    found = Corpus.open(tmp_path / "out")
    assert (info.wikidata_ids, info.wikidata_ids_shared) == (3, 1)
    assert found.of_wikidata("Q7") == [[0], [2, 3]]
    assert found.of_wikidata("Q8") == [[1]]
    assert found.of_wikidata("Q9") == []


def test_the_fingerprint_tells_corpora_of_other_ids_apart_and_is_the_old_one_without_any(tmp_path: Path) -> None:
    prints = {}
    for number in (0, 7, 8):
        build_corpus([Article("1", "Ash", ("An ash.",), wikidata=number)], tmp_path / str(number))
        prints[number] = Corpus.open(tmp_path / str(number)).fingerprint
    assert len(set(prints.values())) == 3
    assert prints[0] == "ae2ff7a656822894b0a66f3825e7f1d60b1d16d28906c5d96a920702c91278c7"


def test_a_corpus_that_was_built_before_ids_were_kept_is_read_and_says_so(lines: Any, tmp_path: Path) -> None:
    source, out = lines(KILT, name="kilt.json"), tmp_path / "out"
    make_corpus(str(source), out)
    made_old(out)
    found = Corpus.open(out)
    assert not found.info.keeps_wikidata_ids
    assert found.of_wikidata("Q900001") == []
    assert len(found.by_title("Example Tower")) == len(found.of_document("290")) == 2
    ran = CliRunner().invoke(corpus, ["build", str(source), "--out", str(out)])
    assert ran.exit_code == 0
    assert "built before Wikidata ids were kept" in ran.output
    assert "build the corpus again into a new folder" in ran.output


def made_old(folder: Path) -> None:
    """Turn a corpus into one of format 1, which had no key by Wikidata id."""
    for name in ("wikidata.keys.npy", "wikidata.values.npy"):
        (folder / "index" / name).unlink()
    info = json.loads((folder / "corpus.json").read_text())
    kept = {key: value for key, value in info.items() if not key.startswith("wikidata")}
    (folder / "corpus.json").write_text(json.dumps({**kept, "format": 1}))


def test_the_command_says_how_many_articles_have_an_id(lines: Any, tmp_path: Path) -> None:
    without = {key: value for key, value in KILT.items() if key != "wikidata_info"}
    rows = [KILT, {**KILT, "_id": "7", "wikipedia_title": "Tower"}, {**without, "_id": "8"}]
    ran = CliRunner().invoke(corpus, ["build", str(lines(*rows, name="k.json")), "--out", str(tmp_path / "out")])
    assert "articles with a Wikidata id: 2, 1 of them with the id of an earlier article\n" in ran.output
