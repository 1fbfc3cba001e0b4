"""The page that a document without an answer is cut around, and where answer pages stand among the shown ones."""

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tiny import ROWS, command, draw_source, write_manifest

import mmlongbench.task as mt
from builders.docvqa import DocVQA, DocVQAOptions
from builders.docvqa.paths import evidence_positions
from builders.docvqa.rows import DocumentQuestion
from mmlongbench.lengths import K, TokenBudget
from mmlongbench.packing.pack import PackedExample, examples
from mmlongbench.packing.pricing import Pricer
from tokenization import CrossModalCounter, PatchRule, load_tokenizer

COUNTER = CrossModalCounter(load_tokenizer("llama2"), PatchRule())
SIDE = 560
"""Pixels of a page: 400 tokens."""
TEXTS = (
    "Contents of the report on orchards",
    "The harvest of the year and its weather",
    "Apples of the north",
    "Pears of the north and of the south",
    "The harvest of apples of the north in crates",
    "Plums",
    "The harvest of apples of the north in crates",
    "Prices",
    "Index",
)


def opened(texts: tuple[str, ...] = TEXTS) -> mt.Sources:
    pages = tuple(mt.Page(n, f"d/orchard/orchard_page{n}.jpg", SIDE, SIDE) for n in range(len(texts)))
    return mt.Sources(
        documents=mt.Documents({"orchard": mt.Document("orchard", "orchard", "sha", pages)}, texts=lambda name: texts)
    )


def row(pages: tuple[int, ...] = (), **more: Any) -> DocumentQuestion:
    answer = {"answer": ("red",), "answer_format": "String"} if pages else {"answer": ("Not answerable",)}
    fields = {"id": "q", "doc": "orchard", "question": "How many crates of apples?", "answer_format": "None"}
    return DocumentQuestion.model_validate({**fields, **answer, "pages": pages, **more})


def packed(
    question: DocumentQuestion, among: mt.Sources, length: int = 2 * K, id: str = "q", **options: Any
) -> PackedExample:
    """The example of a question whose draws are those of an id, its record attached to nothing."""
    draws = mt.Draws(("tests of anchors", id))
    draft = DocVQA("mmlongdoc", DocVQAOptions(**options)).draft(question, among, draws)
    (example,) = examples(draft, TokenBudget(length, 256), (None,), Pricer(COUNTER, among.sizes), draws)
    return example


def record(example: PackedExample, **options: Any) -> mt.Record:
    found: mt.Record = json.loads(json.dumps(DocVQA("mmlongdoc", DocVQAOptions(**options)).record(example)))
    return found


def shown(example: PackedExample) -> list[int]:
    return [unit.data["index"] for unit in example.units]


def test_an_unanswerable_question_is_asked_around_the_page_that_matches_it_best_the_first_of_equal_ones() -> None:
    example = packed(row(), opened())
    assert shown(example) == [2, 3, 4, 5]
    found = record(example)
    assert (found["anchor"], found["anchor_page_list"], found["ans_page_list"]) == ("best_match", [4], [])


def test_the_middle_page_is_kept_where_the_manifest_asks_for_it() -> None:
    example = packed(row(), opened(TEXTS[:8]), unanswerable_anchor="middle")
    assert shown(example) == [2, 3, 4, 5]
    assert (record(example)["anchor"], record(example)["anchor_page_list"]) == ("middle", [3])


def test_the_best_page_is_looked_for_in_the_window_where_only_that_is_shown() -> None:
    example = packed(row(window=(5, 8)), opened(), span="window")
    assert record(example, span="window")["anchor_page_list"] == [6]
    example = packed(row(window=(0, 3)), opened(), span="window")
    assert record(example, span="window")["anchor_page_list"] == [2]
    assert record(packed(row(window=(5, 8)), opened()))["anchor_page_list"] == [4]


@pytest.mark.parametrize(
    ("texts", "question"),
    [(("",) * 9, "How many crates of apples?"), (TEXTS, "Why?")],
    ids=["no text layer", "no shared word"],
)
def test_a_page_is_drawn_where_none_shares_a_word_with_the_question(texts: tuple[str, ...], question: str) -> None:
    found = [record(packed(row(question=question), opened(texts), id=f"q{n}")) for n in range(60)]
    assert {each["anchor"] for each in found} == {"drawn"}
    assert {each["anchor_page_list"][0] for each in found} == set(range(9))
    again = record(packed(row(question=question), opened(texts), 8 * K, id="q7"))
    assert again["anchor_page_list"] == found[7]["anchor_page_list"]


def test_contexts_around_an_anchor_are_nested_and_show_it_at_every_length() -> None:
    contexts = [shown(packed(row(), opened(), k * K // 2)) for k in range(2, 10)]
    assert all(set(shorter) <= set(longer) for shorter, longer in pairwise(contexts))
    assert all(4 in context for context in contexts)
    assert contexts[0] == [4]
    assert contexts[-1] == list(range(9))


def test_an_answerable_question_is_asked_around_its_answer_whatever_the_option() -> None:
    for rule in ("best_match", "middle"):
        example = packed(row((7,)), opened(), unanswerable_anchor=rule)
        assert shown(example) == [4, 5, 6, 7]
        found = record(example, unanswerable_anchor=rule)
        assert (found["anchor"], found["anchor_page_list"]) == ("answer", [7])


@pytest.mark.parametrize(
    ("options", "reads"),
    [
        ({}, True),
        ({"unanswerable_anchor": "middle"}, False),
        ({"unanswerable_anchor": "middle", "pages_as": "text"}, True),
        ({"context": "oracle"}, False),
        ({"context": "natural"}, True),
    ],
    ids=["default", "middle", "text", "oracle", "natural"],
)
def test_texts_of_pages_are_read_only_where_they_are_needed(options: dict[str, Any], reads: bool) -> None:
    assert DocVQA("mmlongdoc", DocVQAOptions(**options)).spec.page_texts is reads


def test_the_lock_the_build_and_the_plan_say_how_unanswerable_questions_are_anchored(tmp_path: Path) -> None:
    draw_source(tmp_path / "source", ROWS)
    manifest = write_manifest(tmp_path / "source/anchors.yaml")
    ran = command("build", manifest, "--out", tmp_path / "out", "--workers", 1)
    assert ran.code == 0, ran.err
    assert "  unanswerable anchor drawn: 1\n" in ran.out  # the pages say their names and numbers alone
    lock = json.loads((tmp_path / "out/build.lock.json").read_text())
    assert lock["datasets"]["mmlongdoc"]["questions"]["noted"] == {"unanswerable anchor drawn": 1}
    middle = command("plan", manifest, "--set", "options.unanswerable_anchor=middle")
    assert "  unanswerable anchor middle: 1\n" in middle.out


# The leak: planted documents in which questions with and without an answer are made in the same way

SUBJECTS, PLANTED = 24, 60
"""Pages of a planted document, each of a subject of its own, and questions about such documents."""


def planted(number: int) -> tuple[mt.Sources, DocumentQuestion]:
    """A document of pages with words of their own, and a question in the words of one of them."""
    draws = mt.Draws(("planted", number))
    texts = tuple(" ".join(f"word{page}x{at}" for at in range(8)) for page in range(SUBJECTS))
    page = draws.integer("page", 0, SUBJECTS - 1)
    asked = " ".join(draws.order("asked", texts[page].split())[:4])
    is_answerable = number % 2 == 0
    return opened(texts), row((page,) if is_answerable else (), id=f"q{number}", question=asked)


def area(length: int, rule: str) -> float:
    """The chance that more question words stand on a page of an answerable question's context than of another's."""
    found: dict[bool, list[int]] = {True: [], False: []}
    for number in range(PLANTED):
        among, question = planted(number)
        texts, words = among.documents.page_texts("orchard"), set(question.question.split())
        pages = shown(packed(question, among, length, f"q{number}", unanswerable_anchor=rule))
        found[bool(question.pages)].append(max(len(words & set(texts[page].split())) for page in pages))
    pairs = [(a > b) + (a == b) / 2 for a in found[True] for b in found[False]]
    return sum(pairs) / len(pairs)


@pytest.mark.parametrize("length", [1, 2, 4, 8])
def test_question_words_on_the_best_page_do_not_tell_which_questions_have_an_answer(length: int) -> None:
    assert area(length * K, "best_match") == 0.5
    assert area(length * K, "middle") > 0.6


# Where answer pages stand among the shown pages of their document


def of(own: list[int], answers: list[int], name: str = "a") -> mt.Record:
    pages = [f"docs/{name}/{name}_page{page}.jpg" for page in own]
    return {
        "doc_name": name,
        "page_list": ["docs/b/b_page4.jpg", *pages, "docs/c/c_page5.jpg"],
        "ans_page_list": answers,
    }


@pytest.mark.parametrize(
    ("own", "answers", "positions"),
    [
        ([4, 5, 6], [4], ("first",)),
        ([4, 5, 6], [5], ("inner",)),
        ([4, 5, 6], [6], ("last",)),
        ([4, 6, 9, 11], [11, 4, 6, 9], ("first", "inner", "last")),
        ([4, 5], [4, 5], ("first", "last")),
        ([4], [4], ("only",)),
        ([4, 5, 6], [], ()),
        ([4, 5, 6], [0, 5], ("inner",)),
    ],
)
def test_answer_pages_are_first_inner_or_last_among_the_shown_pages_of_their_document(
    own: list[int], answers: list[int], positions: tuple[str, ...]
) -> None:
    assert evidence_positions(of(own, answers)) == positions
    facets = DocVQA("mmlongdoc", DocVQAOptions()).facets(of(own, answers))
    assert tuple(facets.get("evidence position", ())) == positions


def test_positions_are_found_in_files_of_others() -> None:
    slides = [f"slideVQA/deck/tea-market-{number}-1024.jpg" for number in (3, 4, 5)]
    assert evidence_positions({"doc_name": "deck", "page_list": slides, "ans_page_list": [2]}) == ("first",)
    assert evidence_positions({**of([2, 3, 4], [3]), "doc_name": "a.pdf"}) == ("inner",)
    assert evidence_positions({"doc_name": "a", "page_list": ["a/cover.jpg"], "ans_page_list": [0]}) == ()
    assert evidence_positions({"question": "Which?"}) == ()


@given(st.sets(st.integers(0, 30), min_size=1), st.data())
def test_positions_are_those_of_the_sorted_pages(own: set[int], data: st.DataObject) -> None:
    answers = data.draw(st.sets(st.sampled_from(sorted(own))))
    found = set(evidence_positions(of(sorted(own), sorted(answers))))
    assert ("first" in found) == (len(own) > 1 and min(own) in answers)
    assert ("last" in found) == (len(own) > 1 and max(own) in answers)
    assert ("inner" in found) == bool(answers - {min(own), max(own)})
    assert ("only" in found) == (len(own) == 1 and bool(answers))


def test_the_record_says_where_its_answer_pages_stand_at_each_length() -> None:
    assert [record(packed(row((7,)), opened(), k * K))["evidence_position"] for k in (1, 2, 8)] == [
        "only",
        "last",
        "inner",
    ]
    assert record(packed(row((2, 8)), opened()))["evidence_position"] == "first, last"
    assert record(packed(row(), opened()))["evidence_position"] == ""


def test_a_report_breaks_scores_down_by_the_rule_of_the_anchor(tmp_path: Path) -> None:
    draw_source(tmp_path / "source", ROWS)
    manifest = write_manifest(tmp_path / "source/anchors.yaml")
    assert command("build", manifest, "--out", tmp_path / "out", "--workers", 1).code == 0
    said = []
    for path in sorted((tmp_path / "out/mmlb_data").rglob("*.jsonl")):
        for line in map(json.loads, path.read_text("utf-8").splitlines()):
            file = f"documentQA/{path.name}"
            said.append({"file": file, "id": line["id"], "prediction": str(line["answer"])})
    (tmp_path / "m.jsonl").write_text("".join(json.dumps(line) + "\n" for line in said), "utf-8")
    scored = command("score", tmp_path / "out", tmp_path / "m.jsonl", "--out", tmp_path / "scores")
    assert scored.code == 0, scored.err
    facets = json.loads(command("report", tmp_path / "scores", "--json").out)["facets"]
    (cells,) = [facet["cells"] for facet in facets if facet["title"] == "anchor"]
    assert {cell["row"]: cell["examples"] for cell in cells if cell["column"] == "all"} == {"answer": 10, "drawn": 2}
    assert "mmlongdoc: drawn" in command("report", tmp_path / "scores").out
