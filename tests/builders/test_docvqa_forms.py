"""Pages as interleaved text and crops, and pages joined to larger images: units, records, prompts, options."""

import json
from dataclasses import replace
from typing import Any

import pytest
from pydantic import ValidationError

import mmlongbench.task as mt
from builders.docvqa import DocVQA, DocVQAOptions
from builders.docvqa.rows import DocumentQuestion
from mmlongbench.building.joining import joined
from mmlongbench.draft import Draft
from mmlongbench.lengths import K, TokenBudget
from mmlongbench.packing.pack import PackedExample, examples
from mmlongbench.packing.pricing import Pricer
from tokenization import CrossModalCounter, PatchRule, load_tokenizer

COUNTER = CrossModalCounter(load_tokenizer("llama2"), PatchRule())
DRAWS = mt.Draws(("tests of forms of pages",))
FOLDER = "d/alpha/alpha_page"
PARTS = {0: ("Ports.",), 1: ("", ""), 2: ("Before <image>.", "", "After."), 3: ("",)}
"""The texts around the crops of the pages of `alpha`: text alone, a scan, two crops, nothing."""
CROPS = (
    mt.Crop(1, "page", (0, 0, 595, 842), f"{FOLDER}1.jpg", 560, 560),
    mt.Crop(2, "table", (50, 60, 500, 400), f"{FOLDER}2_50-60-500-400.jpg", 280, 280),
    mt.Crop(2, "figure", (50, 410, 500, 700), f"{FOLDER}2_50-410-500-700.jpg", 280, 280),
)


def document(name: str, pages: int, missing: tuple[int, ...] = (), **more: Any) -> mt.Document:
    numbers = [number for number in range(pages) if number not in missing]
    sized = tuple(mt.Page(n, f"d/{name}/{name}_page{n}.jpg", 560, 560) for n in numbers)
    return mt.Document(name, name, f"sha of {name}", sized, tuple(f"{name} {n}" for n in numbers), missing, **more)


def asked(pages: tuple[int, ...], **more: Any) -> DocumentQuestion:
    answer = ("yes",) if pages else ("Not answerable",)
    form: Any = "String" if pages else "None"
    return DocumentQuestion(
        id="q", doc="alpha", question="Which?", pages=pages, answer=answer, answer_format=form, **more
    )


def packed(builder: DocVQA, row: DocumentQuestion, sources: mt.Sources, length: int = 16 * K) -> PackedExample:
    draft: Draft = builder.draft(row, sources, DRAWS)
    (example,) = examples(draft, TokenBudget(length, 256), (None,), Pricer(COUNTER, sources.sizes), DRAWS)
    record = json.loads(json.dumps(builder.record(example)))
    assert builder.prompt(record) == example.prompt
    assert COUNTER.count(example.prompt.text, [sources.sizes[path] for path in example.prompt.images]) == example.count
    return example


def interleaved() -> tuple[DocVQA, mt.Sources]:
    documents = {"alpha": document("alpha", 4, crops=CROPS)}
    texts = tuple(" ".join(PARTS[n]) for n in range(4))
    found = mt.Documents(documents, texts=lambda _: texts, parts=lambda _: tuple(PARTS[n] for n in range(4)))
    return DocVQA("interleaved", DocVQAOptions(pages_as="interleaved")), mt.Sources(documents=found)


def test_a_page_is_its_text_with_its_crops_in_between_and_one_unit() -> None:
    builder, sources = interleaved()
    example = packed(builder, asked((2,)), sources)
    assert [unit.data["index"] for unit in example.units] == [0, 1, 2, 3]
    shown = example.prompt.rendered().split("\n\nQuestion:")[0].partition("Document alpha (page 0)")[2]
    assert shown == (
        ": \nPorts.\n\nDocument alpha (page 1): \n<image>\n\nDocument alpha (page 2): \nBefore < image >.\n<image>\n"
        "<image>\nAfter.\n\nDocument alpha (page 3): \n"
    )
    assert list(example.prompt.images) == [crop.path for crop in CROPS]


def test_a_record_has_the_page_the_kind_and_the_box_of_each_crop() -> None:
    builder, sources = interleaved()
    record = builder.record(packed(builder, asked((2,)), sources))
    assert record["crop_list"] == [
        {"image": f"{FOLDER}1.jpg", "page": 1, "kind": "page", "box": [0, 0, 595, 842]},
        {"image": f"{FOLDER}2_50-60-500-400.jpg", "page": 2, "kind": "table", "box": [50, 60, 500, 400]},
        {"image": f"{FOLDER}2_50-410-500-700.jpg", "page": 2, "kind": "figure", "box": [50, 410, 500, 700]},
    ]
    assert record["page_text_list"] == ["Ports.", "<image>", "Before < image >.\n<image>\n<image>\nAfter.", ""]
    assert record["page_list"] == [f"{FOLDER}{n}.jpg" for n in range(4)]
    evidence = builder.evidence(record)
    assert evidence.texts[2] == "Before < image >.\n\n\nAfter."


def test_a_page_that_does_not_fit_is_left_out_with_all_its_crops() -> None:
    builder, sources = interleaved()
    example = packed(builder, asked((0,)), sources, length=650)
    assert [unit.data["index"] for unit in example.units] == [0]
    assert example.prompt.images == ()


def joined_sources(images: int, pages: int = 12, missing: tuple[int, ...] = ()) -> mt.Sources:
    join = mt.JoinPages(images)
    found = {name: joined(document(name, pages, missing), join) for name in ("alpha", "beta")}
    return mt.Sources(documents=mt.Documents(found, texts=lambda _: ("text",) * len(found["alpha"].pages)))


def builder_of(images: Any) -> DocVQA:
    return DocVQA("mmlongdoc", DocVQAOptions(pages_as="joined", joined=images))


@pytest.mark.parametrize(("images", "expected"), [(1, [0]), (5, [1, 3]), (20, [4, 5, 9])])
def test_an_image_with_an_answer_page_is_an_answer_page(images: int, expected: list[int]) -> None:
    example = packed(builder_of(images), asked((4, 5, 9)), joined_sources(images), 128 * K)
    record = builder_of(images).record(example)
    assert record["ans_page_list"] == expected
    assert record["document_page_list"] == [4, 5, 9]
    own = [unit for unit in example.units if unit.role == "own"]
    assert [unit.data["index"] for unit in own] == list(range(len(joined_sources(images).documents["alpha"].pages)))


def test_a_record_names_the_pages_of_each_image_and_the_public_loader_reads_its_number() -> None:
    sources = joined_sources(5)
    example = packed(builder_of(5), asked((4,)), sources, 128 * K)
    record = builder_of(5).record(example)
    shown = dict(zip(record["page_list"], record["joined_page_list"], strict=True))
    named = "d/alpha/alpha_joined5-12845056_page{}.jpg"
    assert [shown[named.format(n)] for n in range(4)] == ["0-2", "3-5", "6-8", "9-11"]
    assert all(path.count("page") == 1 for path in record["page_list"])
    evidence = builder_of(5).evidence(record)
    assert (evidence.images[1], evidence.pages, evidence.document_pages) == (named.format(1), (1,), (4,))
    assert evidence.joined == {0: (0, 2), 1: (3, 5), 2: (6, 8), 3: (9, 11)}
    broken = builder_of(5).evidence({**record, "joined_page_list": [7, "x", None], "document_page_list": "4"})
    assert (broken.joined, broken.document_pages) == ({}, ())


def test_a_longer_context_shows_the_images_of_a_shorter_one() -> None:
    sources, builder = joined_sources(5), builder_of(5)
    short, long = (packed(builder, asked((4,)), sources, length).prompt.images for length in (4 * K, 8 * K))
    assert 0 < len(short) < len(long)
    assert [path for path in long if path in short] == list(short)


@pytest.mark.parametrize(("pages", "missing"), [((12,), ()), ((3,), (3,))])
def test_an_answer_page_that_no_image_shows_is_rejected(pages: tuple[int, ...], missing: tuple[int, ...]) -> None:
    with pytest.raises(mt.Rejected, match="answer-page-out-of-range"):
        builder_of(5).draft(asked(pages), joined_sources(5, missing=missing), DRAWS)


def test_blank_pages_alone_give_a_joined_image_without_a_key() -> None:
    blank = mt.Document("a", "a", "sha", tuple(mt.Page(n, f"d/a/a_page{n}.jpg", 9, 9) for n in range(2)), ("", ""))
    assert joined(blank, mt.JoinPages(1)).keys == ("",)


def repeating() -> mt.Sources:
    """Documents of which `beta` has the answer page of `alpha` among other pages, and `gamma` a blank page."""
    answer = document("alpha", 12).keys[4]
    single = {name: document(name, 12) for name in ("alpha", "beta", "gamma")}
    for name, place, key in (("alpha", 5, ""), ("beta", 2, answer), ("gamma", 2, "")):
        keys = single[name].keys
        single[name] = replace(single[name], keys=(*keys[:place], key, *keys[place + 1 :]))
    found = {name: joined(each, mt.JoinPages(5)) for name, each in single.items()}
    return mt.Sources(documents=mt.Documents(found, texts=lambda _: ("text",) * 4))


def test_a_document_with_one_page_that_repeats_an_answer_page_does_not_pad_a_context_of_joined_images() -> None:
    builder, sources = builder_of(5), repeating()
    example = packed(builder, asked((4, 5)), sources, 128 * K)
    assert {unit.data["document"] for unit in example.units} == {"alpha", "gamma"}


def test_a_ranked_image_that_shows_a_page_that_repeats_an_answer_page_is_left_out() -> None:
    options: dict[str, Any] = {"context": "retrieved", "scope": "dataset", "gold_pages": "put_in"}
    builder = DocVQA("mmlongdoc", DocVQAOptions(pages_as="joined", joined=5, **options))
    documents = repeating().documents
    ranking = mt.PageRanking((("beta", 0), ("beta", 1), ("gamma", 0), ("alpha", 1)), (4,))
    sources = mt.Sources(documents=documents, page_rankings=lambda _: ranking)
    example = packed(builder, asked((4,)), sources, 128 * K)
    shown = {(unit.data["document"], unit.data["index"]) for unit in example.units}
    assert shown == {("beta", 1), ("gamma", 0), ("alpha", 1)}


@pytest.mark.parametrize(
    "options",
    [
        {"pages_as": "interleaved", "page_label": "index"},
        {"pages_as": "joined", "page_label": "printed"},
        {"pages_as": "joined", "span": "window"},
        {"pages_as": "interleaved", "joined": 5},
        {"pages_as": "image", "joined_pixels": 1_000_000},
        {"pages_as": "joined", "text_fill": "budget"},
        {"pages_as": "joined", "joined": 7},
    ],
)
def test_options_that_do_not_go_together_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        DocVQAOptions(**options)
