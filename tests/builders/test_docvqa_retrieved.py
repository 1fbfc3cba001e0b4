"""Contexts of retrieved pages: which pages stand there, in which order, and recall of the answer pages."""

import json
from pathlib import Path
from typing import Any

import pymupdf
import pytest
from pydantic import ValidationError
from tiny import command

import mmlongbench.task as mt
from builders.docvqa import DocVQA, DocVQAOptions
from builders.docvqa.rows import DocumentQuestion
from mmlongbench.lengths import K, TokenBudget
from mmlongbench.packing.pack import PackedExample, examples
from mmlongbench.packing.pricing import Pricer
from tokenization import CrossModalCounter, PatchRule, load_tokenizer

COUNTER = CrossModalCounter(load_tokenizer("llama2"), PatchRule())
DRAWS = mt.Draws(("tests of retrieved contexts",))
BY_RANK: dict[str, Any] = {"scope": "dataset", "page_order": "rank", "gold_pages": "as_found"}
RANKED: tuple[mt.PageId, ...] = (("alpha", 7), ("beta", 1), ("alpha", 2), ("alpha", 4), ("beta", 0), ("alpha", 0))
"""Pages of `alpha`, which the question is about, and of `beta`; the answer page is page 4 of `alpha`."""


def opened(ranking: mt.PageRanking | None, keys: dict[tuple[str, int], str] | None = None) -> mt.Sources:
    """Two documents of pages of 400 tokens."""
    documents = {}
    for name, count in (("alpha", 9), ("beta", 3)):
        sized = (mt.Page(n, f"d/{name}/{name}_page{n}.jpg", 560, 560) for n in range(count))
        keyed = tuple((keys or {}).get((name, n), f"{name} {n}") for n in range(count))
        documents[name] = mt.Document(name, name, f"sha of {name}", tuple(sized), keyed)
    texts = {name: tuple("text" for _ in document.pages) for name, document in documents.items()}
    return mt.Sources(documents=mt.Documents(documents, texts=texts.__getitem__), page_rankings=lambda id: ranking)


def packed(
    pages: tuple[int, ...] = (4,),
    ranked: tuple[mt.PageId, ...] = RANKED,
    length: int = 16 * K,
    keys: dict[tuple[str, int], str] | None = None,
    **options: Any,
) -> PackedExample:
    row = DocumentQuestion(
        id="q",
        doc="alpha",
        question="Which?",
        pages=pages,
        answer=("yes",) if pages else ("Not answerable",),
        answer_format="String" if pages else "None",
    )
    ranks = {page: rank for rank, page in enumerate(ranked, 1)}
    ranking = mt.PageRanking(ranked, tuple(ranks.get(("alpha", page), 0) for page in pages))
    sources = opened(ranking, keys)
    builder = DocVQA("mmlongdoc", DocVQAOptions(**{"context": "retrieved", **options}))
    draft = builder.draft(row, sources, DRAWS)
    (example,) = examples(draft, TokenBudget(length, 256), (None,), Pricer(COUNTER, sources.sizes), DRAWS)
    record = json.loads(json.dumps(builder.record(example)))
    assert builder.prompt(record) == example.prompt
    assert COUNTER.count(example.prompt.text, [sources.sizes[path] for path in example.prompt.images]) == example.count
    assert record["page_ranks"] == [ranks.get((unit.group or "", unit.data["index"]), 0) for unit in example.units]
    assert builder.gold_ranks(record) == ranking.gold_ranks
    return example


def shown(example: PackedExample) -> list[str]:
    return [f"{unit.group}{unit.data['index']}" for unit in example.units]


def test_pages_stand_in_the_order_of_their_numbers_or_of_their_ranks() -> None:
    own = tuple(page for page in RANKED if page[0] == "alpha")
    assert shown(packed(ranked=own)) == ["alpha0", "alpha2", "alpha4", "alpha7"]
    by_rank = packed(**BY_RANK)
    assert shown(by_rank) == ["alpha7", "beta1", "alpha2", "alpha4", "beta0", "alpha0"]
    by_page = shown(packed(scope="dataset"))
    assert by_page in (
        ["beta0", "beta1", "alpha0", "alpha2", "alpha4", "alpha7"],
        ["alpha0", "alpha2", "alpha4", "alpha7", "beta0", "beta1"],
    )


@pytest.mark.parametrize(
    ("top_k", "gold_pages", "expected"),
    [
        (2, "as_found", {"alpha7", "beta1"}),
        (4, "as_found", {"alpha7", "beta1", "alpha2", "alpha4"}),
        (2, "put_in", {"alpha7", "alpha4"}),
        (1, "put_in", {"alpha4"}),
        (6, "put_in", {"alpha7", "beta1", "alpha2", "alpha4", "beta0", "alpha0"}),
    ],
)
def test_the_top_pages_with_the_answer_page_as_found_or_put_in(top_k: int, gold_pages: str, expected: set[str]) -> None:
    assert set(shown(packed(scope="dataset", top_k=top_k, gold_pages=gold_pages))) == expected


def test_an_answer_page_that_was_not_found_stands_among_the_others_and_counts_as_not_found() -> None:
    found = packed(pages=(5,), top_k=3)
    assert shown(found) == ["beta1", "alpha5", "alpha7"]
    record = DocVQA("d", DocVQAOptions(context="retrieved")).record(found)
    assert (record["gold_ranks"], record["anchor"]) == ([0], "answer")


def test_a_longer_context_shows_what_a_shorter_one_shows() -> None:
    short, long = (shown(packed(length=length, **BY_RANK)) for length in (2 * K, 4 * K))
    assert len(short) == 4
    assert short == [page for page in long if page in short]


def test_a_question_without_an_answer_shows_what_was_found() -> None:
    found = packed(pages=(), top_k=3, **BY_RANK)
    assert shown(found) == ["alpha7", "beta1", "alpha2"]
    record = DocVQA("d", DocVQAOptions(context="retrieved", scope="dataset")).record(found)
    assert (record["anchor"], record["anchor_page_list"], record["gold_ranks"]) == ("retrieved", [], [])


def test_a_drawn_number_of_hard_negatives_stands_beside_the_answer_page() -> None:
    options: dict[str, Any] = {"context": "gold_and_distractors", "scope": "dataset"}
    numbers = set()
    for number in range(5):
        pages = shown(packed(distractors=(number, number), **options))
        assert set(pages) == {"alpha4", *["alpha7", "beta1", "alpha2", "beta0", "alpha0"][:number]}
        drawn = mt.Draws(("seed", number)).integer("distractors", 1, 4)
        numbers.add(drawn)
        assert 1 <= drawn <= 4
    assert len(numbers) > 1


def test_pages_that_repeat_the_answer_page_or_have_a_label_that_is_taken_are_excluded() -> None:
    repeated = packed(keys={("beta", 1): "alpha 4"}, **BY_RANK)
    assert shown(repeated) == ["alpha7", "alpha2", "alpha4", "beta0", "alpha0"]
    assert dict(repeated.left_out) == {"page that repeats an answer page": 1}
    three = packed(keys={("beta", 1): "alpha 4"}, top_k=3, **BY_RANK)
    assert shown(three) == ["alpha7", "alpha2", "alpha4"]  # an excluded page counts for none
    with pytest.raises(mt.Rejected, match=r"too-few-distractors: .* at least 6 pages .* 5 ranked pages"):
        packed(context="gold_and_distractors", scope="dataset", distractors=(6, 6))


def test_a_page_that_was_ranked_first_must_fit_and_no_context_is_without_pages() -> None:
    with pytest.raises(mt.Rejected, match="no-ranked-pages"):
        packed(ranked=(("beta", 1),), keys={("beta", 1): "alpha 4"}, **BY_RANK)
    assert shown(packed(ranked=RANKED[:1], top_k=1, **BY_RANK)) == ["alpha7"]


def test_a_prompt_names_the_document_of_the_question_although_none_of_its_pages_is_shown() -> None:
    found = packed(ranked=(("beta", 1),), label_width="distinct", **BY_RANK)
    assert shown(found) == ["beta1"]
    assert "Based on Document alpha" in found.prompt.text


def test_evidence_shown_is_a_facet_of_retrieved_contexts_alone() -> None:
    builder = DocVQA("d", DocVQAOptions(context="retrieved", scope="dataset"))
    for top_k, expected in ((2, "none"), (4, "some"), (6, "all")):
        record = builder.record(packed(pages=(0, 4), top_k=top_k, **BY_RANK))
        assert builder.facets(record)["evidence shown"] == [expected]
    assert "evidence shown" not in builder.facets({"ans_page_list": [4], "page_list": []})


def test_a_question_for_which_nothing_is_ranked_is_named_with_what_to_do() -> None:
    with pytest.raises(mt.Rejected, match=r"no-ranked-pages: .* no page of alpha .*pages\.ocr to all"):
        packed(ranked=())
    with pytest.raises(mt.Rejected, match="no-answer-pages"):
        packed(pages=(), context="gold_and_distractors")
    with pytest.raises(mt.DraftError, match=r"no ranked pages.*TaskSpec\.page_rankings"):
        opened(None).page_ranking("q")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"top_k": 3}, "top_k: context padded does not use it"),
        ({"context": "retrieved", "distractors": [1, 2]}, "distractors: context retrieved does not use it"),
        ({"context": "gold_and_distractors", "gold_pages": "as_found"}, "gold_pages: context gold_and"),
        ({"context": "gold_and_distractors", "distractors": [3, 2]}, "the smaller first"),
        ({"context": "retrieved", "span": "window"}, "span: context retrieved ranks the pages of whole documents"),
        ({"context": "retrieved", "top_k": 0}, "greater than or equal to 1"),
        (
            {"context": "retrieved", "page_order": "rank"},
            "its place would tell it",
        ),
        ({"context": "gold_and_distractors", "page_order": "rank"}, "its place would tell it"),
    ],
)
def test_an_option_without_an_effect_is_refused(options: dict[str, Any], said: str) -> None:
    with pytest.raises(ValidationError, match=said):
        DocVQAOptions(**options)


@pytest.mark.slow
def test_a_release_says_how_many_answer_pages_were_found(tmp_path: Path) -> None:
    documents = tmp_path / "documents"
    documents.mkdir()
    for name, words in {"alder": ["bark", "wood of the marsh", "leaf"], "birch": ["root", "marsh"]}.items():
        with pymupdf.open() as pdf:
            for each in words:
                pdf.new_page(width=200, height=200).insert_text((20, 40), each)
            pdf.save(documents / f"{name}.pdf", no_new_id=True)
    with pymupdf.open() as scan:  # without any text
        scan.new_page(width=200, height=200).draw_rect((20, 20, 90, 90), fill=(0, 0, 0))
        scan.save(documents / "scan.pdf", no_new_id=True)
    asked = [
        ("alder", "Which wood?", "marsh wood", "2"),
        ("birch", "Which root?", "long", "2"),
        ("scan", "What?", "a", "1"),
    ]
    table = "".join(f"{','.join(row)}\n" for row in [("doc", "question", "answer", "pages"), *asked])
    (tmp_path / "questions.csv").write_text(table, "utf-8")
    options = "options: {context: retrieved, top_k: 1, gold_pages: as_found}"
    about = f"lengths: [1K], admission_length: 1K, reserve: 64, {options}"
    source = "source: {questions: questions.csv, documents: documents}"
    dataset = f"{{name: trees, builder: docvqa, reader: own_documents, {source}, {about}}}"
    (tmp_path / "trees.yaml").write_text(f"datasets: [{dataset}]\n", "utf-8")
    planned = command("plan", tmp_path / "trees.yaml")
    built = command("build", tmp_path / "trees.yaml", "--out", tmp_path / "out")
    assert built.code == 0, built.err
    lock = json.loads((tmp_path / "out/build.lock.json").read_text("utf-8"))
    questions = lock["datasets"]["trees"]["questions"]
    assert questions["rejected"] == {"no-ranked-pages": 1}
    assert questions["retrieval"] == {
        "by": "bm25",
        "questions": 2,
        "gold_pages": 2,
        "ranked_gold_pages": 1,
        "recall": {"1": 0.5, "5": 0.5, "10": 0.5},
    }
    said = (
        "pages with the answer, ranked by bm25: recall@1 0.500, @5 0.500, @10 0.500 over 2 questions; 1 of 2 not ranked"
    )
    assert said in planned.out
    assert said in built.out
    audited = command("audit", tmp_path / "out", "--json")
    assert audited.code == 0
    assert json.loads(audited.out)["recall"] == questions["retrieval"]["recall"]
    assert "page_retrieval" not in lock["manifest"][0]
