"""A question about an entity finds its article by Wikidata id, then by title; both are counted."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from tiny import command, rejects

from builders.samples.vrag.sources import draw_infoseek
from mmlongbench.corpus.making import make_corpus

pytestmark = pytest.mark.slow

Row = dict[str, Any]
QUESTIONS = 8
_RETITLED = "{0} (renamed since)"


def lines(path: Path) -> list[Row]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


def write(path: Path, rows: list[Row]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    return path


@pytest.fixture(scope="module")
def drawn(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The drawn encyclopedia with its first questions that can be asked."""
    found = draw_infoseek(tmp_path_factory.mktemp("infoseek"))
    write(found["questions"], lines(found["questions"])[:QUESTIONS])
    return found


def manifest(drawn: dict[str, Path], corpus: Path, folder: Path, **options: str) -> Path:
    source = {name: str(path) for name, path in drawn.items() if name != "corpus"}
    dataset = {"name": "infoseek", "builder": "vrag", "reader": "infoseek", "source": source, "corpus": str(corpus)}
    path = folder / "joins.yaml"
    asked = {"lengths": ["8K"], "retrieval": {"k": 60}, "options": options}
    path.write_text(yaml.safe_dump({"datasets": [{**dataset, **asked}]}))
    return path


def built(drawn: dict[str, Path], corpus: Path, folder: Path, **options: str) -> tuple[str, dict[str, Any], list[Row]]:
    """(what the command printed, the lock of the dataset, its records)."""
    ran = command("build", manifest(drawn, corpus, folder, **options), "--out", folder / "out", "--workers", 1)
    assert ran.code == 0, ran.err
    lock = json.loads((folder / "out/build.lock.json").read_text())
    return ran.out, lock["datasets"]["infoseek"], lines(folder / "out/mmlb_data/vrag/infoseek_K8_dep3.jsonl")


def changed(drawn: dict[str, Path], folder: Path, change: Callable[[Row], Row | None]) -> Path:
    """The corpus with each article changed, or left out."""
    rows = (change(row) for row in lines(drawn["corpus"]))
    return write(folder / "kilt.json", [row for row in rows if row is not None])


def asked(drawn: dict[str, Path]) -> list[str]:
    """The titles of the articles that are asked about, in the questions' order."""
    names = {row["data_id"]: row["entity_text"] for row in lines(drawn["entities"])}
    return [names[row["data_id"]] for row in lines(drawn["questions"])]


def test_articles_are_joined_by_id_then_by_title_and_counted(drawn: dict[str, Path], tmp_path: Path) -> None:
    titles = asked(drawn)
    renamed, without_id, left_out = set(titles[:3]), set(titles[3:5]), titles[5]

    def change(row: Row) -> Row | None:
        title = row["wikipedia_title"]
        if title == left_out:
            return None
        if title in renamed:  # as a title of another year is
            name = _RETITLED.format(title)
            return {**row, "wikipedia_title": name, "text": [name, *row["text"][1:]]}
        return {key: value for key, value in row.items() if title not in without_id or key != "wikidata_info"}

    corpus = changed(drawn, tmp_path, change)
    out, lock, records = built(drawn, corpus, tmp_path)
    noted = {"joined by title": 2, "joined by wikidata id": QUESTIONS - 3, "not joined": 1}
    assert lock["questions"]["noted"] == noted
    said = "joined by title: 2, joined by wikidata id: 5, not joined: 1"
    assert f"  {said}\n" in out
    assert (lock["questions"]["kept"], lock["questions"]["rejected"]) == (QUESTIONS - 1, {"no-article": 1})
    (refused,) = rejects(tmp_path / "out")
    assert left_out in refused["field"]
    assert {title for title in titles if title not in {record["entity_text"] for record in records}} == {left_out}
    gold = {p["title"] for r in records if r["entity_text"] in renamed for p in r["positive_ctxs"]}
    assert gold == {_RETITLED.format(title) for title in renamed}
    planned = command("plan", manifest(drawn, corpus, tmp_path), "--probe", 1)
    assert f"  {said}\n" in planned.out
    assert lock["corpus"]["wikidata_ids"] == lock["corpus"]["articles"] - 2


def test_of_pages_with_one_id_the_one_of_the_title_is_taken_else_the_first(
    drawn: dict[str, Path], tmp_path: Path
) -> None:
    twice, renamed, *_ = asked(drawn)
    rows = []
    for row in lines(drawn["corpus"]):
        title = row["wikipedia_title"]
        if title == renamed:
            row = {**row, "wikipedia_title": _RETITLED.format(title)}
        copy = {**row, "_id": f"9{row['_id']}", "wikipedia_id": f"9{row['_id']}", "wikipedia_title": "Another page"}
        rows += [copy, row] if title == twice else [row, copy] if title == renamed else [row]
    _, lock, records = built(drawn, write(tmp_path / "kilt.json", rows), tmp_path)
    assert lock["questions"]["noted"] == {"joined by wikidata id": QUESTIONS}
    gold = {r["entity_text"]: {p["title"] for p in r["positive_ctxs"]} for r in records}
    assert gold[twice] == {twice}
    assert gold[renamed] == {_RETITLED.format(renamed)}


def test_a_summary_that_stands_in_for_an_article_is_counted_apart(drawn: dict[str, Path], tmp_path: Path) -> None:
    title = asked(drawn)[0]
    corpus = changed(drawn, tmp_path, lambda row: None if row["wikipedia_title"] == title else row)
    _, lock, _ = built(drawn, corpus, tmp_path, lead_fallback="summary")
    noted = {"joined by wikidata id": QUESTIONS - 1, "not joined but by its summary": 1}
    assert lock["questions"]["noted"] == noted


def test_joins_add_up_to_the_questions_that_were_examined_whatever_became_of_them(
    drawn: dict[str, Path], tmp_path: Path
) -> None:
    rows = lines(drawn["questions"])
    rows[0]["image_id"] = "oven_99999999"
    rows[1] |= {"answer": ["no such words"], "answer_eval": ["no such words"]}
    rows[2] |= {"answer": ["the"], "answer_eval": ["the"]}
    rows[3]["question"] += "\u2f9f" * 3_000
    found = {**drawn, "questions": write(tmp_path / "questions.jsonl", rows)}
    _, lock, _ = built(found, drawn["corpus"], tmp_path)
    rejected = {"missing-image": 1, "gold-without-answer": 1, "common-answer": 1, "above-admission-length": 1}
    assert lock["questions"]["rejected"] == rejected
    assert lock["questions"]["kept"] == QUESTIONS - 4
    assert lock["questions"]["noted"] == {"joined by wikidata id": QUESTIONS}


def test_a_corpus_without_any_id_is_joined_by_titles(drawn: dict[str, Path], tmp_path: Path) -> None:
    corpus = changed(drawn, tmp_path, lambda row: {key: row[key] for key in row if key != "wikidata_info"})
    out, lock, _ = built(drawn, corpus, tmp_path)
    assert lock["questions"]["noted"] == {"joined by title": QUESTIONS}
    assert lock["corpus"]["wikidata_ids"] == 0
    assert "warning" not in out


def test_wiki6m_whose_own_id_is_wikidatas_is_joined_by_it(drawn: dict[str, Path], tmp_path: Path) -> None:
    def as_wiki6m(row: Row) -> Row:
        body = "\n\n".join(text for text in row["text"][1:] if not text.startswith("Section::::"))
        return {
            "wikidata_id": row["wikidata_info"]["wikidata_id"],
            "wikipedia_title": _RETITLED.format(row["wikipedia_title"]),
            "wikipedia_content": body,
        }

    write(tmp_path / "wiki6m.jsonl", [as_wiki6m(row) for row in lines(drawn["corpus"])])
    _, lock, _ = built(drawn, tmp_path / "wiki6m.jsonl", tmp_path)
    assert set(lock["questions"]["noted"]) == {"joined by wikidata id"}
    assert "no-article" not in lock["questions"]["rejected"]


def test_an_old_corpus_is_joined_by_titles_and_the_build_says_how_to_do_better(
    drawn: dict[str, Path], tmp_path: Path
) -> None:
    make_corpus(str(drawn["corpus"]), tmp_path / "corpus")
    for table in ("keys", "values"):
        (tmp_path / f"corpus/index/wikidata.{table}.npy").unlink()
    info = json.loads((tmp_path / "corpus/corpus.json").read_text())
    kept = {key: value for key, value in info.items() if not key.startswith("wikidata")}
    (tmp_path / "corpus/corpus.json").write_text(json.dumps({**kept, "format": 1}))
    out, lock, _ = built(drawn, tmp_path / "corpus", tmp_path)
    assert lock["questions"]["noted"] == {"joined by title": QUESTIONS}
    assert lock["corpus"]["wikidata_ids"] is None
    assert "warning: the corpus was built before Wikidata ids were kept" in out
    assert "`mmlongbench corpus build`" in out
