"""The drawn encyclopedia: the form of its files, and that its questions can be answered from the right page alone."""

import json
import os
import subprocess
import sys
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from PIL import Image, ImageOps

from builders.samples.vrag.articles import MOST, Article, write_articles
from builders.samples.vrag.sources import (
    answers,
    draw_infoseek,
    draw_viquae,
    infoseek_question,
    is_number,
    viquae_question,
)
from builders.samples.vrag.world import read_encyclopedia
from mmlongbench.building.stages.rows import read_rows
from mmlongbench.corpus.articles import Article as KiltArticle
from mmlongbench.corpus.cutting import Cut, cut
from mmlongbench.corpus.retrieval.negatives import Facts, negatives, unfilterable_answer
from mmlongbench.corpus.retrieval.text import contains
from mmlongbench.corpus.rows import article_of
from mmlongbench.task import Row

pytestmark = pytest.mark.slow

BOOK = read_encyclopedia()
ARTICLES = write_articles(BOOK)
ENTITIES = [article for article in ARTICLES if article.subject.is_entity]


@dataclass(frozen=True)
class Piece:
    id: str
    title: str
    text: str


def cuts(article: Article) -> list[Cut]:
    read = article_of(article.row(), "kilt.json", "line", is_kilt=True)
    assert isinstance(read, KiltArticle)
    return cut(read)


PIECES = {
    article.subject.name: [
        (piece.section, Piece(f"{article.subject.page}#{at}", article.subject.name, piece.text))
        for at, piece in enumerate(cuts(article))
    ]
    for article in ARTICLES
}


@pytest.fixture(scope="module")
def infoseek(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    return draw_infoseek(tmp_path_factory.mktemp("infoseek"))


@pytest.fixture(scope="module")
def viquae(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    return draw_viquae(tmp_path_factory.mktemp("viquae"))


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def bytes_below(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_another_process_with_another_hash_seed_draws_the_same_bytes(
    infoseek: dict[str, Path], viquae: dict[str, Path], tmp_path: Path
) -> None:
    command = (
        "import sys, pathlib, builders.samples.vrag.sources as s; p = pathlib.Path(sys.argv[1]);"
        "s.draw_infoseek(p / 'i'); s.draw_viquae(p / 'v')"
    )
    environment = {**os.environ, "PYTHONHASHSEED": "7", "PYTHONPATH": os.pathsep.join(sys.path)}
    subprocess.run([sys.executable, "-c", command, str(tmp_path)], check=True, env=environment)
    assert bytes_below(tmp_path / "i") == bytes_below(infoseek["questions"].parent)
    assert bytes_below(tmp_path / "v") == bytes_below(viquae["questions"].parent)


def test_the_corpus_is_in_the_form_of_kilt(infoseek: dict[str, Path], viquae: dict[str, Path]) -> None:
    assert infoseek["corpus"].read_bytes() == viquae["corpus"].read_bytes()
    rows = lines(infoseek["corpus"])
    assert len(rows) == len({row["_id"] for row in rows}) == 300
    for row in rows:
        title, *text = row["text"]
        assert row["_id"] == row["wikipedia_id"]
        assert title == row["wikipedia_title"] + "\n"
        assert not text[0].startswith(("Section::::", "BULLET::::"))
        assert all(paragraph.endswith("\n") and len(paragraph) > 10 for paragraph in text)
    assert any(paragraph.startswith("BULLET::::- ") for row in rows for paragraph in row["text"])
    assert sum(len(paragraph.split()) for row in rows for paragraph in row["text"]) > 60_000


def test_no_template_is_left_over_and_no_sentence_stands_twice_in_an_article() -> None:
    for article in ARTICLES:
        assert not any(mark in paragraph for paragraph in article.text for mark in "{}<>|")
        sentences = [s for paragraph in article.text for s in paragraph.split(". ") if "::::" not in paragraph]
        assert len(set(sentences)) == len(sentences), article.subject.name


def test_passages_are_long_enough_and_many() -> None:
    sizes = [len(piece.text.split()) for pieces in PIECES.values() for _, piece in pieces]
    assert len(sizes) >= 550
    assert sum(sizes) / len(sizes) > 70
    assert max(sizes) <= MOST < 100


def test_lead_sections_have_one_to_three_passages() -> None:
    leads = Counter(sum(section == 0 for section, _ in PIECES[article.subject.name]) for article in ENTITIES)
    assert set(leads) == {1, 2, 3}
    assert min(leads.values()) >= 10


def test_names_are_unique_and_no_entity_is_named_in_another_title() -> None:
    names = [subject.name for subject in BOOK.subjects]
    assert len({name.lower() for name in names}) == len(names) == 300
    assert len(ENTITIES) == 40
    for article in ENTITIES:
        assert [name for name in names if contains(name, article.subject.name)] == [article.subject.name]


def test_every_infoseek_answer_is_in_the_lead_of_its_article() -> None:
    for article in ENTITIES:
        answer = article.subject.facts[infoseek_question(article.subject).of]
        assert any(contains(paragraph, answer) for paragraph in article.lead)
        assert any(contains(piece.text, answer) for section, piece in PIECES[article.subject.name] if section == 0)


def test_answers_differ_between_the_entities_of_a_kind_and_are_not_in_the_name() -> None:
    asked = [(subject.kind_name, fact, subject.facts[fact]) for subject in BOOK.entities for fact in subject.kind.facts]
    assert len(set(asked)) == len(asked)
    for subject in BOOK.entities:
        for question in subject.kind.questions:
            assert not contains(subject.name, subject.facts[question.of])


@pytest.mark.parametrize("article", ENTITIES, ids=lambda article: article.subject.name)
def test_a_question_keeps_enough_clean_passages_for_64k(article: Article) -> None:
    subject = article.subject
    own = {piece.id for _, piece in PIECES[subject.name]}
    gold = tuple(piece for section, piece in PIECES[subject.name] if section == 0)
    for question in {infoseek_question(subject), viquae_question(subject)}:
        spelled = answers(subject, question)
        value = float(spelled[0]) if is_number(subject, question) else 0
        within = (value * 0.9, value * 1.1) if value else None
        facts = Facts(tuple(spelled), (subject.name,), gold, within=within)
        assert unfilterable_answer(facts) is None
        ranked = [piece for pieces in PIECES.values() for _, piece in pieces if piece.id not in own]
        found = negatives(facts, ranked, near=0.3)
        assert len(found.passages) >= 600
        assert found.rejected["near-duplicate"] <= 2


def test_infoseek_rows_are_as_published(infoseek: dict[str, Path]) -> None:
    rows = lines(infoseek["questions"])
    assert len(rows) == len({row["data_id"] for row in rows}) == len({row["image_id"] for row in rows}) == 40
    measured = [row["answer_eval"] for row in rows if not isinstance(row["answer_eval"], list)]
    listed = [row["answer_eval"][0] for row in rows if isinstance(row["answer_eval"], list)]
    numbers = [value for value in (*measured, *listed) if isinstance(value, dict)]
    assert len(measured) == 1
    assert len(numbers) == 10
    assert all(value["range"][0] < value["wikidata"] < value["range"][1] for value in numbers)
    endings = Counter(path.suffix for path in infoseek["images"].rglob("*.*"))
    assert endings == {".jpg": 39, ".JPEG": 1}
    assert all(path.parent.name == path.stem[-8:-6] for path in infoseek["images"].rglob("*.*"))
    assert [row["data_id"] for row in lines(infoseek["entities"])] == [row["data_id"] for row in rows]


def test_viquae_provenance_points_to_paragraphs_with_the_answer(viquae: dict[str, Path]) -> None:
    pages = {row["_id"]: row for row in lines(viquae["corpus"])}
    rows = lines(viquae["questions"])
    assert len(rows) == len({row["id"] for row in rows}) == 36
    for row in rows:
        output = row["output"]
        assert output["original_answer"] == output["answer"][0]
        assert output["provenance"]
        for entry in output["provenance"]:
            assert all(isinstance(values, list) and len(values) == 1 for values in entry.values())
            page = pages[entry["wikipedia_id"][0]]
            assert page["wikipedia_title"] == entry["title"][0]
            assert page["wikidata_info"]["wikidata_id"] == row["wikidata_id"]
            assert entry["title"][0] in row["original_question"]
            assert entry["title"][0] not in row["input"]
            paragraph = page["text"][entry["start_paragraph_id"][0]]
            assert paragraph[entry["start_character"][0] : entry["end_character"][0]] == output["original_answer"]
    assert sum(len(row["output"]["provenance"]) > 1 for row in rows) >= 5
    sections = {entry["section"][0] for row in rows for entry in row["output"]["provenance"]}
    assert "Section::::Abstract" in sections
    assert len(sections) > 3


def test_some_picture_names_are_odd(viquae: dict[str, Path]) -> None:
    names = [path.name for path in viquae["images"].iterdir()]
    assert sorted(row["image"] for row in lines(viquae["questions"])) == sorted(names)
    assert sum('"' in name for name in names) == 1
    assert sum(" " in name and not name.isascii() for name in names) == 1


def test_pictures_are_small_of_several_sizes_and_one_lies_on_its_side(infoseek: dict[str, Path]) -> None:
    paths = sorted(infoseek["images"].rglob("*.*"))
    assert sum(path.stat().st_size for path in paths) < 1_500_000
    sizes, turned = set(), 0
    for path in paths:
        with Image.open(path) as picture:
            assert (picture.format, picture.mode) == ("JPEG", "RGB")
            turned += picture.getexif().get(0x0112) == 6
            sizes.add(ImageOps.exif_transpose(picture).size)
    assert turned == 1
    assert sizes == {(512, 384), (480, 640), (640, 427), (500, 500), (600, 400)}


def test_no_two_pictures_are_alike(infoseek: dict[str, Path]) -> None:
    paths = sorted(infoseek["images"].rglob("*.*"))
    assert len({path.read_bytes() for path in paths}) == len(paths) == 40


def test_the_readers_accept_every_row(infoseek: dict[str, Path], viquae: dict[str, Path]) -> None:
    from builders.vrag.infoseek import InfoSeek
    from builders.vrag.rows import EntityQuestion
    from builders.vrag.viquae import ViQuAE

    for reader, sources, many in ((InfoSeek(), infoseek, 40), (ViQuAE(), viquae, 36)):
        rows = list(read_rows(reader, sources))
        assert len(rows) == many
        assert all(isinstance(row, Row) for row in rows)
        for row in rows:
            assert isinstance(row, EntityQuestion)
            assert reader.image(sources, row.image) is not None
            assert row.entity in PIECES


def test_known_rows(infoseek: dict[str, Path], viquae: dict[str, Path]) -> None:
    assert lines(infoseek["questions"])[0] == {
        "data_id": "infoseek_val_00000000",
        "image_id": "oven_01468700",
        "question": "Which range of hills is this insect endemic to?",
        "answer": ["Ossery Ridge"],
        "answer_eval": ["Ossery Ridge", "Ossery Ridge range"],
        "data_split": "val_unseen_entity",
    }
    assert lines(infoseek["questions"])[12]["answer_eval"] == [{"wikidata": 19.0, "range": [17.1, 20.9]}]
    row = lines(viquae["questions"])[0]
    assert row["image"] == "512px-Marrow_grasshopper.jpg"
    assert row["input"] == "who was the first to describe this insect?"
    assert row["original_question"] == "Who was the first to describe the Marrow grasshopper?"
    assert row["output"]["answer"] == ["Alban Cressey", "Cressey"]
    assert [entry["start_paragraph_id"] for entry in row["output"]["provenance"]] == [[1], [5]]
