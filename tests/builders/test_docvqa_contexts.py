"""Contexts of document questions: anchors, windows, retrieved pages, text, crops and joined images, and evidence."""

import json
from collections.abc import Mapping
from dataclasses import replace
from itertools import pairwise
from pathlib import PurePosixPath
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

import mmlongbench.task as mt
from builders.common import page_number
from builders.docvqa import DocVQA, DocVQAOptions
from builders.docvqa.evidence import evidence_positions, folder_of, path_of_page
from builders.docvqa.rows import DocumentQuestion
from mmlongbench.building.dataset import joined
from mmlongbench.lengths import K, TokenBudget
from mmlongbench.packing.pack import DoesNotFitError, PackedExample, examples
from mmlongbench.packing.pricing import Pricer
from tokenization import CrossModalCounter, PatchRule, load_tokenizer

COUNTER = CrossModalCounter(load_tokenizer("llama2"), PatchRule())
DRAWS = mt.Draws(("tests of contexts",))
SIDE = 560
"""Pixels of a page: 400 tokens."""


def document(
    name: str, pages: int, keys: tuple[str, ...] = (), missing: tuple[int, ...] = (), **more: Any
) -> mt.Document:
    """A document whose pages each have a key of their own unless told otherwise."""
    numbers = [number for number in range(pages) if number not in missing]
    sized = tuple(mt.Page(n, f"d/{name}/{name}_page{n}.jpg", SIDE, SIDE) for n in numbers)
    keyed = keys or tuple(f"{name} {n}" for n in numbers)
    return mt.Document(name, name, f"sha of {name}", sized, keyed, missing, **more)


def opened(texts: Mapping[str, tuple[str, ...]], **more: Any) -> mt.Sources:
    """Documents with texts, which are their keys too."""
    documents = {name: document(name, len(pages), pages) for name, pages in texts.items()}
    return mt.Sources(documents=mt.advanced.Documents(documents, texts=lambda name: texts[name]), **more)


def asked(pages: tuple[int, ...] = (4,), doc: str = "alpha", **more: Any) -> DocumentQuestion:
    answer = {"answer": ("yes",), "answer_format": "String"}
    fields = {"id": "q", "doc": doc, "question": "Which?", "pages": pages, **(answer if pages else {})}
    none = {} if pages else {"answer": ("Not answerable",), "answer_format": "None"}
    return DocumentQuestion.model_validate({**fields, **none, **more})


def packed(
    row: DocumentQuestion, sources: mt.Sources, length: int = 16 * K, draws: mt.Draws = DRAWS, **options: Any
) -> tuple[PackedExample, mt.Record]:
    """The example of a question, counted again, and its record, of which the prompt is made again."""
    builder = DocVQA("mmlongdoc", DocVQAOptions(**options))
    draft = builder.draft(row, sources, draws)
    (example,) = examples(draft, TokenBudget(length, 256), (None,), Pricer(COUNTER, sources.sizes), draws)
    record: mt.Record = json.loads(json.dumps(builder.record(example)))
    assert builder.prompt(record) == example.prompt
    assert COUNTER.count(example.prompt.text, [sources.sizes[path] for path in example.prompt.images]) == example.count
    return example, record


def shown(example: PackedExample, document: str = "") -> list[int]:
    """The pages of a context, or those of one document."""
    return [unit.data["index"] for unit in example.units if document in ("", unit.group)]


# --- the page that a document is cut around ---------------------------------------------------------------------------

ORCHARD = (
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
CRATES = "How many crates of apples?"


def around(
    pages: tuple[int, ...] = (), texts: tuple[str, ...] = ORCHARD, length: int = 2 * K, *, id: str = "q", **more: Any
) -> tuple[list[int], mt.Record]:
    """(shown pages, record) of a question about the orchard; `more` are fields of the row, and options."""
    fields = {name: more.pop(name) for name in ("window", "question") if name in more}
    row = asked(pages, "orchard", **{"question": CRATES, **fields})
    documents = {"orchard": document("orchard", len(texts))}
    sources = mt.Sources(documents=mt.advanced.Documents(documents, texts=lambda _: texts))
    example, record = packed(row, sources, length, mt.Draws(("tests of anchors", id)), **more)
    return shown(example), record


@pytest.mark.parametrize(
    ("more", "pages", "rule", "anchor"),
    [
        ({}, [2, 3, 4, 5], "best_match", [4]),  # the first of equal ones
        ({"texts": ORCHARD[:8], "unanswerable_anchor": "middle"}, [2, 3, 4, 5], "middle", [3]),
        ({"pages": (7,)}, [4, 5, 6, 7], "answer", [7]),
        ({"pages": (7,), "unanswerable_anchor": "middle"}, [4, 5, 6, 7], "answer", [7]),
        ({"window": (5, 8), "span": "window"}, [5, 6, 7, 8], "best_match", [6]),
        ({"window": (0, 3), "span": "window"}, [0, 1, 2, 3], "best_match", [2]),
        ({"window": (5, 8)}, [2, 3, 4, 5], "best_match", [4]),
    ],
)
def test_a_document_is_cut_around_its_answer_or_the_page_that_matches_the_question_best(
    more: dict[str, Any], pages: list[int], rule: str, anchor: list[int]
) -> None:
    found, record = around(**more)
    assert found == pages
    assert (record["anchor"], record["anchor_page_list"]) == (rule, anchor)
    assert record["ans_page_list"] == list(more.get("pages", ()))


@pytest.mark.parametrize(
    ("texts", "question"), [(("",) * 9, CRATES), (ORCHARD, "Why?")], ids=["no text layer", "no shared word"]
)
def test_a_page_is_drawn_where_none_shares_a_word_with_the_question(texts: tuple[str, ...], question: str) -> None:
    found = [around((), texts, question=question, id=f"q{n}")[1] for n in range(60)]
    assert {each["anchor"] for each in found} == {"drawn"}
    assert {each["anchor_page_list"][0] for each in found} == set(range(9))
    again = around((), texts, 8 * K, question=question, id="q7")[1]
    assert again["anchor_page_list"] == found[7]["anchor_page_list"]


def test_contexts_around_an_anchor_are_nested_and_show_it_at_every_length() -> None:
    contexts = [around(length=k * K // 2)[0] for k in range(2, 10)]
    assert all(set(shorter) <= set(longer) for shorter, longer in pairwise(contexts))
    assert all(4 in context for context in contexts)
    assert (contexts[0], contexts[-1]) == ([4], list(range(9)))


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


SUBJECTS, PLANTED = 24, 60
"""Pages of a planted document, each with words of its own, and questions in the words of one of its pages."""


def area(length: int, rule: str) -> float:
    """The chance that more question words stand on a page of an answerable question's context than of another's."""
    texts = tuple(" ".join(f"word{page}x{at}" for at in range(8)) for page in range(SUBJECTS))
    found: dict[bool, list[int]] = {True: [], False: []}
    for number in range(PLANTED):
        draws, is_answerable = mt.Draws(("planted", number)), number % 2 == 0
        page = draws.integer("page", 0, SUBJECTS - 1)
        words = draws.order("asked", texts[page].split())[:4]
        more = {"question": " ".join(words), "id": f"q{number}", "unanswerable_anchor": rule}
        pages, _ = around((page,) if is_answerable else (), texts, length, **more)
        found[is_answerable].append(max(len(set(words) & set(texts[page].split())) for page in pages))
    pairs = [(a > b) + (a == b) / 2 for a in found[True] for b in found[False]]
    return sum(pairs) / len(pairs)


@pytest.mark.parametrize("length", [1, 2, 4, 8])
def test_question_words_on_the_best_page_do_not_tell_which_questions_have_an_answer(length: int) -> None:
    assert area(length * K, "best_match") == 0.5
    assert area(length * K, "middle") > 0.6


# --- where answer pages stand among the shown pages of their document -------------------------------------------------


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
    found = [around((7,), length=k * K)[1]["evidence_position"] for k in (1, 2, 8)]
    assert found == ["only", "last", "inner"]
    assert around((2, 8))[1]["evidence_position"] == "first, last"
    assert around()[1]["evidence_position"] == ""


# --- windows, padding and labels --------------------------------------------------------------------------------------

TEXTS = {
    name: tuple(f"{name} says {number} of it all" for number in range(count))
    for name, count in (("alpha", 12), ("beta", 5), ("gamma", 6), ("delta", 7))
}
ALL = list(range(12))


@pytest.mark.parametrize(
    ("options", "more", "pages", "span"),
    [
        ({"span": "window"}, {"window": (3, 8)}, [3, 4, 5, 6, 7, 8], ("3-8", "window")),
        ({}, {"window": (3, 8)}, ALL, ("0-11", "document")),
        ({}, {"window": (3, 5), "pages": (8,)}, ALL, ("0-11", "document")),
        ({"context": "oracle"}, {"pages": (2, 7)}, [2, 7], None),
        ({"context": "oracle", "span": "window"}, {"window": (3, 8)}, [4], ("3-8", "window")),
        ({"context": "natural"}, {}, ALL, None),
    ],
)
def test_what_is_shown_of_the_document_of_a_question(
    options: dict[str, Any], more: dict[str, Any], pages: list[int], span: tuple[str, str] | None
) -> None:
    example, record = packed(asked(**more), opened(TEXTS), **options)
    assert shown(example, "alpha") == pages
    assert (len(example.units) > len(pages)) == (options.get("context", "padded") == "padded")
    assert (record.get("span"), record.get("span_kind")) == (span or (None, None))


@pytest.mark.parametrize(
    ("options", "more", "reason"),
    [
        ({"span": "window"}, {"window": (3, 40)}, "window-out-of-range"),
        ({"span": "window"}, {"window": (6, 9)}, "answer-page-outside-window"),
        ({"context": "oracle"}, {"pages": ()}, "no-answer-pages"),
    ],
)
def test_a_context_that_cannot_show_the_answer_is_refused(
    options: dict[str, Any], more: dict[str, Any], reason: str
) -> None:
    with pytest.raises(mt.Rejected) as refused:
        packed(asked(**more), opened(TEXTS), **options)
    assert refused.value.fault.reason == reason


def test_a_padding_document_that_repeats_an_answer_page_is_left_out_and_counted() -> None:
    repeated = opened({**TEXTS, "beta": (*TEXTS["beta"][:2], TEXTS["alpha"][4])})
    example, _ = packed(asked(), repeated)
    assert "beta" not in {unit.group for unit in example.units}
    assert example.left_out == {"page of a document that repeats an answer page": 3}
    assert "beta" in {unit.group for unit in packed(asked((5,)), repeated)[0].units}
    blank = {name: (*pages[:2], "", *pages[3:]) for name, pages in TEXTS.items()}  # a blank page is like no other
    example, _ = packed(asked((2,)), opened(blank))
    assert {*example.left_out} == {"page of one colour"}


DAMAGED = {1: "padding truncated image"}


@pytest.mark.parametrize("more", [{}, {"context": "oracle"}, {"pages_as": "text"}, {"pages_as": "joined", "joined": 5}])
def test_a_question_about_a_damaged_page_is_rejected_by_document_page_and_cause(more: dict[str, Any]) -> None:
    documents = mt.advanced.Documents({"alpha": document("alpha", 9, damaged=DAMAGED)}, texts=lambda _: ("text",) * 9)
    with pytest.raises(mt.Rejected) as refused:
        packed(asked((1, 4)), mt.Sources(documents=documents), **more)
    fault = refused.value.fault
    assert (fault.reason, fault.found) == ("damaged-answer-page", DAMAGED[1])
    assert "page 2 of alpha" in fault.expected
    assert "print it to a new PDF" in fault.todo
    assert packed(asked((4,)), mt.Sources(documents=documents))[0].units


@pytest.mark.parametrize("reason", ["damaged page", "page of one colour"])
def test_damaged_and_blank_pages_are_no_padding_but_stay_in_their_own_document(reason: str) -> None:
    documents = {}
    for name in TEXTS:
        keys = (f"{name} 0", "" if "colour" in reason else f"{name} 1", f"{name} 2", f"{name} 3", f"{name} 4")
        documents[name] = document(name, 5, keys, damaged=DAMAGED if "damaged" in reason else {})
    example, _ = packed(asked(), mt.Sources(documents=mt.advanced.Documents(documents)))
    assert shown(example, "alpha") == [0, 1, 2, 3, 4]
    assert [unit.data["index"] for unit in example.units if unit.group == "beta"] == [0, 2, 3, 4]
    assert example.left_out == {reason: 3}
    images = {name: joined(each, mt.advanced.JoinPages(1)) for name, each in documents.items()}
    shows = {images["beta"].unfit(page) for page in images["beta"].pages}
    assert (reason in shows) == ("damaged" in reason)  # an image that shows other pages, too, is not blank


def test_an_answer_page_of_one_colour_is_noted_by_document_and_page() -> None:
    sources = mt.Sources(documents=mt.advanced.Documents({"alpha": document("alpha", 3, ("a", "", "c"))}))
    draft = DocVQA("mmlongdoc", DocVQAOptions()).draft(asked((0, 1)), sources, DRAWS)
    assert draft.noted[1:] == ("answer page of one colour (alpha, page 2)",)


YEARS = {
    name: tuple(f"{name}: {page}" for page in range(12))
    for name in (f"annual-report-acme-{year}" for year in range(2015, 2020))
}
OWN = "annual-report-acme-2017"


def test_documents_with_one_beginning_pad_each_other_if_labels_tell_them_apart() -> None:
    example, record = packed(asked(doc=OWN), opened(YEARS))
    assert {unit.group for unit in example.units} == {OWN}
    assert example.left_out == {"page of a document with another one's label": 48}
    assert "document_labels" not in record
    distinct: dict[str, Any] = {"label_width": "distinct"}
    for fields, options in (({}, distinct), (distinct, {})):
        example, record = packed(asked(doc=OWN, **fields), opened(YEARS), **options)
        assert len({unit.group for unit in example.units}) > 2
        assert not example.left_out
        assert f"Based on Document {OWN}, answer" in example.prompt.text
        assert all(f"Document {unit.group}: " in example.prompt.text for unit in example.units)
        assert record["document_labels"] == [path.split("/")[1] for path in record["page_list"]]
    assert packed(asked(doc=OWN, label_width="distinct"), opened(YEARS), label_width=15)[0].left_out
    builder, record = DocVQA("reports", DocVQAOptions()), packed(asked(label_width="distinct"), opened(TEXTS))[1]
    assert "document_labels" not in record  # none of them is longer
    loaded = {**record, "document_labels": None}  # as a loader fills a column that other records have
    assert builder.prompt(loaded) == builder.prompt(record)


# --- pages as text ----------------------------------------------------------------------------------------------------

TEXT: dict[str, Any] = {"pages_as": "text"}


def test_as_text_the_very_pages_are_shown_that_images_would_have_room_for() -> None:
    for length in (4 * K, 8 * K, 16 * K):
        images, text = (packed(asked(), opened(TEXTS), length, **options)[0] for options in ({}, TEXT))
        assert [unit.id for unit in images.units] == [unit.id for unit in text.units]
        assert not text.prompt.images
        assert text.count.image == 0
        assert text.prompt.text.startswith("You are given a document, and a question. Answer")
        assert "Document alpha (page 4): \nalpha says 4 of it all\n\n" in text.prompt.text
    filled, _ = packed(asked(), opened(TEXTS), 4 * K, **TEXT, text_fill="budget")
    assert len(filled.units) == 30 > len(packed(asked(), opened(TEXTS), 4 * K)[0].units)
    with pytest.raises(DoesNotFitError, match="retold"):  # text that is longer than its images is not cut
        packed(asked(), opened({**TEXTS, "alpha": ("word " * 900,) * 12}), 4 * K, **TEXT)
    for fill in ("same_pages", "budget"):
        options = {**TEXT, "text_fill": fill}
        example, _ = packed(asked(doc=OWN, label_width="distinct"), opened(YEARS), **options)
        assert f"Document {OWN} (page 4): \n{OWN}: 4\n\n" in example.prompt.text


def test_pages_without_text_are_flagged_and_questions_whose_evidence_is_only_there() -> None:
    without = opened({**TEXTS, "alpha": (*TEXTS["alpha"][:4], "", *TEXTS["alpha"][5:])})
    _, record = packed(asked(), without, 4 * K, **TEXT)
    place = record["page_list"].index("d/alpha/alpha_page4.jpg")
    assert (record["pages_without_text"], record["evidence_has_text"]) == (str(place), False)
    assert record["page_text_list"][place] == ""
    assert packed(asked((4, 6)), without, 4 * K, **TEXT)[1]["evidence_has_text"]


# --- pages as interleaved text and crops ------------------------------------------------------------------------------

FOLDER = "d/alpha/alpha_page"
PARTS = {0: ("Ports.",), 1: ("", ""), 2: ("Before <image>.", "", "After."), 3: ("",)}
"""The texts around the crops of the pages of `alpha`: text alone, a scan, two crops, nothing."""
CROPS = (
    mt.advanced.Crop(1, "page", (0, 0, 595, 842), f"{FOLDER}1.jpg", 560, 560),
    mt.advanced.Crop(2, "table", (50, 60, 500, 400), f"{FOLDER}2_50-60-500-400.jpg", 280, 280),
    mt.advanced.Crop(2, "figure", (50, 410, 500, 700), f"{FOLDER}2_50-410-500-700.jpg", 280, 280),
)
INTERLEAVED: dict[str, Any] = {"pages_as": "interleaved"}


def interleaved() -> mt.Sources:
    documents = {"alpha": document("alpha", 4, crops=CROPS)}
    texts = tuple(" ".join(PARTS[n]) for n in range(4))
    found = mt.advanced.Documents(documents, texts=lambda _: texts, parts=lambda _: tuple(PARTS[n] for n in range(4)))
    return mt.Sources(documents=found)


def test_a_page_is_its_text_with_its_crops_in_between_and_one_unit() -> None:
    example, record = packed(asked((2,)), interleaved(), **INTERLEAVED)
    assert shown(example) == [0, 1, 2, 3]
    assert example.prompt.rendered().split("\n\nQuestion:")[0].partition("Document alpha (page 0)")[2] == (
        ": \nPorts.\n\nDocument alpha (page 1): \n<image>\n\nDocument alpha (page 2): \nBefore < image >.\n<image>\n"
        "<image>\nAfter.\n\nDocument alpha (page 3): \n"
    )
    assert list(example.prompt.images) == [crop.path for crop in CROPS]
    assert record["crop_list"] == [
        {"image": f"{FOLDER}1.jpg", "page": 1, "kind": "page", "box": [0, 0, 595, 842]},
        {"image": f"{FOLDER}2_50-60-500-400.jpg", "page": 2, "kind": "table", "box": [50, 60, 500, 400]},
        {"image": f"{FOLDER}2_50-410-500-700.jpg", "page": 2, "kind": "figure", "box": [50, 410, 500, 700]},
    ]
    assert record["page_text_list"] == ["Ports.", "<image>", "Before < image >.\n<image>\n<image>\nAfter.", ""]
    assert record["page_list"] == [f"{FOLDER}{n}.jpg" for n in range(4)]
    builder = DocVQA("interleaved", DocVQAOptions(**INTERLEAVED))
    assert builder.evidence(record).texts[2] == "Before < image >.\n\n\nAfter."
    short, _ = packed(asked((0,)), interleaved(), 650, **INTERLEAVED)  # page 1 does not fit
    assert (shown(short), short.prompt.images) == ([0], ())


# --- pages joined to larger images ------------------------------------------------------------------------------------


def joined_sources(images: int, *documents: mt.Document, **more: Any) -> mt.Sources:
    single = documents or (document("alpha", 12), document("beta", 12))
    found = {each.id: joined(each, mt.advanced.JoinPages(images)) for each in single}
    return mt.Sources(documents=mt.advanced.Documents(found, texts=lambda id: ("text",) * len(found[id].pages)), **more)


def joining(images: int) -> dict[str, Any]:
    return {"pages_as": "joined", "joined": images}


@pytest.mark.parametrize(("images", "expected"), [(1, [0]), (5, [1, 3]), (20, [4, 5, 9])])
def test_an_image_with_an_answer_page_is_an_answer_page(images: int, expected: list[int]) -> None:
    sources = joined_sources(images)
    example, record = packed(asked((4, 5, 9)), sources, 128 * K, **joining(images))
    assert (record["ans_page_list"], record["document_page_list"]) == (expected, [4, 5, 9])
    assert shown(example, "alpha") == list(range(len(sources.documents["alpha"].pages)))


def test_a_record_names_the_pages_of_each_image_and_the_public_loader_reads_its_number() -> None:
    _, record = packed(asked(), joined_sources(5), 128 * K, **joining(5))
    pages = dict(zip(record["page_list"], record["joined_page_list"], strict=True))
    named = "d/alpha/alpha_joined5-12845056_page{}.jpg"
    assert [pages[named.format(n)] for n in range(4)] == ["0-2", "3-5", "6-8", "9-11"]
    assert all(path.count("page") == 1 for path in record["page_list"])
    builder = DocVQA("mmlongdoc", DocVQAOptions(**joining(5)))
    evidence = builder.evidence(record)
    assert (evidence.images[1], evidence.pages, evidence.document_pages) == (named.format(1), (1,), (4,))
    assert evidence.joined == {0: (0, 2), 1: (3, 5), 2: (6, 8), 3: (9, 11)}
    broken = builder.evidence({**record, "joined_page_list": [7, "x", None], "document_page_list": "4"})
    assert (broken.joined, broken.document_pages) == ({}, ())
    short, long = (packed(asked(), joined_sources(5), k * K, **joining(5))[0].prompt.images for k in (4, 8))
    assert 0 < len(short) < len(long)
    assert [path for path in long if path in short] == list(short)


@pytest.mark.parametrize(("pages", "missing"), [((12,), ()), ((3,), (3,))])
def test_an_answer_page_that_no_image_shows_is_rejected(pages: tuple[int, ...], missing: tuple[int, ...]) -> None:
    sources = joined_sources(5, document("alpha", 12, missing=missing))
    with pytest.raises(mt.Rejected, match="answer-page-out-of-range"):
        packed(asked(pages), sources, **joining(5))


def repeating(**more: Any) -> mt.Sources:
    """Documents of which `beta` has the answer page of `alpha` among other pages, and `gamma` a blank page."""
    answer = document("alpha", 12).keys[4]
    single = {name: document(name, 12) for name in ("alpha", "beta", "gamma")}
    for name, place, key in (("alpha", 5, ""), ("beta", 2, answer), ("gamma", 2, "")):
        keys = single[name].keys
        single[name] = replace(single[name], keys=(*keys[:place], key, *keys[place + 1 :]))
    return joined_sources(5, *single.values(), **more)


def test_an_image_with_one_page_that_repeats_an_answer_page_is_not_shown_beside_it() -> None:
    example, _ = packed(asked((4, 5)), repeating(), 128 * K, **joining(5))
    assert {unit.data["document"] for unit in example.units} == {"alpha", "gamma"}
    ranking = mt.advanced.PageRanking((("beta", 0), ("beta", 1), ("gamma", 0), ("alpha", 1)), (4,))
    options: dict[str, Any] = {"context": "retrieved", "scope": "dataset", "gold_pages": "put_in", **joining(5)}
    example, _ = packed(asked(), repeating(page_rankings=lambda _: ranking), 128 * K, **options)
    found = {(unit.data["document"], unit.data["index"]) for unit in example.units}
    assert found == {("beta", 1), ("gamma", 0), ("alpha", 1)}
    blank = mt.Document("a", "a", "sha", tuple(mt.Page(n, f"d/a/a_page{n}.jpg", 9, 9) for n in range(2)), ("", ""))
    assert joined(blank, mt.advanced.JoinPages(1)).keys == ("",)


# --- retrieved pages --------------------------------------------------------------------------------------------------

BY_RANK: dict[str, Any] = {"scope": "dataset", "page_order": "rank", "gold_pages": "as_found"}
RANKED: tuple[mt.advanced.PageId, ...] = (
    ("alpha", 7),
    ("beta", 1),
    ("alpha", 2),
    ("alpha", 4),
    ("beta", 0),
    ("alpha", 0),
)
"""Pages of `alpha`, which the question is about, and of `beta`; the answer page is page 4 of `alpha`."""


def retrieved(
    pages: tuple[int, ...] = (4,),
    ranked: tuple[mt.advanced.PageId, ...] = RANKED,
    length: int = 16 * K,
    keys: Mapping[tuple[str, int], str] | None = None,
    **options: Any,
) -> tuple[PackedExample, mt.Record]:
    documents = {}
    for name, count in (("alpha", 9), ("beta", 3)):
        keyed = tuple((keys or {}).get((name, n), f"{name} {n}") for n in range(count))
        documents[name] = document(name, count, keyed)
    ranks = {page: rank for rank, page in enumerate(ranked, 1)}
    ranking = mt.advanced.PageRanking(ranked, tuple(ranks.get(("alpha", page), 0) for page in pages))
    found = mt.advanced.Documents(documents, texts=lambda id: ("text",) * len(documents[id].pages))
    sources = mt.Sources(documents=found, page_rankings=lambda _: ranking)
    example, record = packed(asked(pages), sources, length, **{"context": "retrieved", **options})
    assert record["page_ranks"] == [ranks.get((unit.group or "", unit.data["index"]), 0) for unit in example.units]
    assert record["gold_ranks"] == list(ranking.gold_ranks)
    assert DocVQA("d", DocVQAOptions()).gold_ranks(record) == ranking.gold_ranks
    return example, record


def names(example: PackedExample) -> list[str]:
    return [f"{unit.group}{unit.data['index']}" for unit in example.units]


OWN_RANKED = tuple(page for page in RANKED if page[0] == "alpha")
REPEATED = {("beta", 1): "alpha 4"}


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        ({"ranked": OWN_RANKED}, "alpha0 alpha2 alpha4 alpha7"),
        ({"scope": "dataset"}, "beta0 beta1 alpha0 alpha2 alpha4 alpha7"),  # documents stand in a drawn order
        (BY_RANK, "alpha7 beta1 alpha2 alpha4 beta0 alpha0"),
        ({**BY_RANK, "top_k": 2}, "alpha7 beta1"),
        ({**BY_RANK, "top_k": 4}, "alpha7 beta1 alpha2 alpha4"),
        ({**BY_RANK, "length": 2 * K}, "alpha7 beta1 alpha2 alpha4"),
        ({**BY_RANK, "ranked": RANKED[:1], "top_k": 1}, "alpha7"),
        ({**BY_RANK, "pages": (), "top_k": 3}, "alpha7 beta1 alpha2"),
        ({**BY_RANK, "keys": REPEATED}, "alpha7 alpha2 alpha4 beta0 alpha0"),
        ({**BY_RANK, "keys": REPEATED, "top_k": 3}, "alpha7 alpha2 alpha4"),  # an excluded page counts for none
        ({"scope": "dataset", "top_k": 2}, "alpha4 alpha7"),  # the answer page is put in
        ({"scope": "dataset", "top_k": 1}, "alpha4"),
        ({"pages": (5,), "top_k": 3}, "beta1 alpha5 alpha7"),
    ],
)
def test_the_pages_of_a_retrieved_context_in_their_order(more: dict[str, Any], expected: str) -> None:
    example, record = retrieved(**more)
    assert sorted(names(example)) == sorted(expected.split())
    if more.get("page_order") == "rank" or "scope" not in more:
        assert names(example) == expected.split()
    else:
        found, wanted = (
            [each for each in all_ if each.startswith("alpha")] for all_ in (names(example), expected.split())
        )
        assert found == wanted
    assert record["anchor"] == ("retrieved" if more.get("gold_pages") == "as_found" else "answer")
    left_out = {"page that repeats an answer page": 1} if "keys" in more else {}
    assert dict(example.left_out) == left_out


def test_a_fixed_number_of_hard_negatives_stands_beside_the_answer_page() -> None:
    hard = ["alpha7", "beta1", "alpha2", "beta0", "alpha0"]
    options: dict[str, Any] = {"context": "gold_and_distractors", "scope": "dataset"}
    for number in range(6):
        example, _ = retrieved(distractors=(number, number), **options)
        assert set(names(example)) == {"alpha4", *hard[:number]}
    drawn = {len(retrieved(length=k * K // 2, distractors=(1, 4), **options)[0].units) for k in range(12, 20)}
    assert len(drawn) == 1  # the number has no length in its key
    assert 2 <= drawn.pop() <= 5


def test_a_prompt_names_the_document_of_the_question_although_none_of_its_pages_is_shown() -> None:
    example, _ = retrieved(ranked=(("beta", 1),), label_width="distinct", **BY_RANK)
    assert names(example) == ["beta1"]
    assert "Based on Document alpha" in example.prompt.text


def test_evidence_shown_is_a_facet_of_retrieved_contexts_alone() -> None:
    builder = DocVQA("d", DocVQAOptions(context="retrieved", scope="dataset"))
    for top_k, expected in ((2, "none"), (4, "some"), (6, "all")):
        assert builder.facets(retrieved((0, 4), top_k=top_k, **BY_RANK)[1])["evidence shown"] == [expected]
    assert "evidence shown" not in builder.facets({"ans_page_list": [4], "page_list": []})


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"ranked": ()}, r"no-ranked-pages: .* no page of alpha .*pages\.ocr to all"),
        ({**BY_RANK, "ranked": (("beta", 1),), "keys": REPEATED}, "no-ranked-pages"),
        ({"pages": (), "context": "gold_and_distractors"}, "no-answer-pages"),
        (
            {"context": "gold_and_distractors", "scope": "dataset", "distractors": (6, 6)},
            r"too-few-distractors: .* at least 6 pages .* 5 ranked pages",
        ),
    ],
)
def test_a_question_for_which_too_little_is_ranked_is_refused(more: dict[str, Any], said: str) -> None:
    with pytest.raises(mt.Rejected, match=said):
        retrieved(**more)
    with pytest.raises(mt.advanced.DraftError, match=r"no ranked pages.*TaskSpec\.page_rankings"):
        opened(TEXTS, page_rankings=lambda _: None).page_ranking("q")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"top_k": 3}, "top_k: context padded"),
        ({"context": "retrieved", "distractors": [1, 2]}, "distractors: context retrieved"),
        ({"context": "gold_and_distractors", "gold_pages": "as_found"}, "gold_pages: context gold_and"),
        ({"context": "gold_and_distractors", "distractors": [3, 2]}, "the smaller first"),
        ({"context": "retrieved", "span": "window"}, "span: context retrieved"),
        ({"context": "retrieved", "top_k": 0}, "greater than or equal to 1"),
        ({"context": "retrieved", "page_order": "rank"}, "its place would tell it"),
        ({"context": "gold_and_distractors", "page_order": "rank"}, "its place would tell it"),
        ({"pages_as": "interleaved", "page_label": "index"}, "page_label"),
        ({"pages_as": "joined", "page_label": "printed"}, "page_label"),
        ({"pages_as": "joined", "span": "window"}, "span"),
        ({"pages_as": "interleaved", "joined": 5}, "joined"),
        ({"pages_as": "image", "joined_pixels": 1_000_000}, "joined_pixels"),
        ({"pages_as": "joined", "text_fill": "budget"}, "text_fill"),
        ({"pages_as": "joined", "joined": 7}, "joined"),
    ],
)
def test_options_without_an_effect_or_that_do_not_go_together_are_refused(options: dict[str, Any], said: str) -> None:
    with pytest.raises(ValidationError, match=said):
        DocVQAOptions(**options)


# --- evidence, read from records of anyone ----------------------------------------------------------------------------

PAGES = ["docs/fern/fern_page3.png", "docs/rose/rose_page2.png", "docs/rose/rose_page1.png", "docs/ros/ros_page4.png"]


def evidence(**record: Any) -> mt.Evidence:
    found = DocVQA("roses", DocVQAOptions()).evidence({"doc_name": "rose", "page_list": PAGES, **record})
    assert found is not None
    return found


def test_pages_are_those_of_the_answers_document_by_folder_and_number() -> None:
    found = evidence(ans_page_list=[4, 2, 2], page_text_list=["ferns", "two", "one", "others"])
    assert (found.document, found.pages, found.shown) == ("rose", (2, 4), (2, 1))
    assert found.images == {number: f"docs/rose/rose_page{number}.png" for number in (1, 2, 3, 4, 5)}
    assert found.texts == {2: "two", 1: "one"}
    none = evidence(ans_page_list=[])
    assert (none.pages, none.shown, none.texts) == ((), (2, 1), {})
    deck = evidence(doc_name="deck", page_list=["s/deck/a-deck-4-1024.jpg"], ans_page_list=[0])  # counted from 0
    assert (deck.shown, deck.images) == ((3,), {n: f"s/deck/a-deck-{n + 1}-1024.jpg" for n in (0, 1, 3)})
    twice = evidence(page_list=[*PAGES[1:3], "copy/rose/rose_page2.png"], page_text_list=["two", "one", "again"])
    assert (twice.shown, twice.images[2], twice.texts[2]) == ((2, 1), "docs/rose/rose_page2.png", "two")
    assert evidence(doc_name=None, ans_page_list=[1]) == mt.Evidence(None, (1,))


@pytest.mark.parametrize("value", [None, 7, "rose", {"a": 1}, [None, {}, ["x"], -1, "x.png"], []])
def test_fields_of_another_type_tell_nothing(value: object) -> None:
    assert evidence(ans_page_list=value).pages == ()
    assert evidence(page_list=value).shown == ()
    assert evidence(page_text_list=value).texts in ({}, {1: "x.png"} if isinstance(value, list) else {})
    assert evidence(doc_name=value).document == (value if isinstance(value, str) else None)


def test_numbers_of_pages_are_bounded() -> None:
    assert evidence(page_list=[f"docs/rose/rose_page{'1' * 5000}.png"]).shown == ()
    with pytest.raises(ValueError, match="expected a name that ends in page<N>"):
        page_number(f"docs/rose/rose_page{'1' * 5000}.png")
    assert path_of_page("docs/rose/cover.png", 1) == ""
    far = evidence(ans_page_list=[999_999, 10**4300 - 1])
    assert (len(far.pages), sorted(far.images)) == (2, [1, 2, 999_998, 999_999])


@given(st.text(alphabet="/.ab\0", max_size=12))
def test_the_folder_of_a_page_is_that_of_its_path(path: str) -> None:
    assert folder_of(path) == PurePosixPath(path).parent.name


def test_a_task_that_does_not_say_has_no_evidence() -> None:
    record = {"id": 7, "question": ["no text"], "answer": "red"}
    builder = DocVQA("roses", DocVQAOptions())
    assert mt.advanced.Builder.evidence(builder, record) is None
    assert (builder.question_of(record), builder.answer_format(record), builder.source_id(record)) == ("", None, "")
