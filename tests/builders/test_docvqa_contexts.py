"""Contexts of document questions: windows, oracle and natural contexts, text for images, no repeated answer page."""

import json
from pathlib import Path
from typing import Any

import pytest

import mmlongbench.task as mt
from builders.docvqa import DocVQA, DocVQAOptions
from builders.docvqa.rows import DocumentQuestion
from builders.samples.docvqa.others import draw_longdocurl
from mmlongbench.building.build import build
from mmlongbench.building.executors.local import LocalExecutor
from mmlongbench.io.progress import Progress
from mmlongbench.lengths import K, TokenBudget
from mmlongbench.manifest.model import DatasetSpec, Manifest
from mmlongbench.packing.pack import DoesNotFitError, PackedExample, examples
from mmlongbench.packing.pricing import Pricer
from tokenization import CrossModalCounter, PatchRule, load_tokenizer

COUNTER = CrossModalCounter(load_tokenizer("llama2"), PatchRule())
DRAWS = mt.Draws(("tests of contexts",))


def opened(texts: dict[str, tuple[str, ...]], keys: dict[str, tuple[str, ...]] | None = None) -> mt.Sources:
    """Documents of pages of 400 tokens, with texts, and keys that are their texts unless said otherwise."""
    documents = {}
    for name, pages in texts.items():
        sized = (mt.Page(n, f"d/{name}/{name}_page{n}.jpg", 560, 560) for n in range(len(pages)))
        documents[name] = mt.Document(name, name, f"sha of {name}", tuple(sized), (keys or texts)[name])
    return mt.Sources(documents=mt.Documents(documents, texts=lambda name: texts[name]))


TEXTS = {
    name: tuple(f"{name} says {number} of it all" for number in range(count))
    for name, count in (("alpha", 12), ("beta", 5), ("gamma", 6), ("delta", 7))
}


def packed(
    length: int, texts: dict[str, tuple[str, ...]] | None = None, pages: tuple[int, ...] = (4,), **more: Any
) -> PackedExample:
    """The example of a question about `alpha`; `more` are options, and a window."""
    row = DocumentQuestion(
        id="q",
        doc=more.pop("doc", "alpha"),
        question="Which?",
        pages=pages,
        answer=("yes",) if pages else ("Not answerable",),
        answer_format="String" if pages else "None",
        window=more.pop("window", None),
        label_width=more.pop("row_width", 15),
    )
    found = opened(texts or TEXTS)
    builder = DocVQA("mmlongdoc", DocVQAOptions(**more))
    draft = builder.draft(row, found, DRAWS)
    (example,) = examples(draft, TokenBudget(length, 256), (None,), Pricer(COUNTER, found.sizes), DRAWS)
    record = builder.record(example)
    assert builder.prompt(record) == example.prompt
    assert COUNTER.count(example.prompt.text, [found.sizes[path] for path in example.prompt.images]) == example.count
    return example


def own(example: PackedExample) -> list[int]:
    return [unit.data["index"] for unit in example.units if unit.role == "own"]


def test_a_window_is_all_of_its_document_that_is_shown() -> None:
    assert own(packed(16 * K, window=(3, 8), span="window")) == [3, 4, 5, 6, 7, 8]


def test_the_whole_document_is_shown_unless_the_window_is_asked_for() -> None:
    assert own(packed(16 * K, window=(3, 8))) == list(range(12))
    assert own(packed(16 * K, window=(3, 5), pages=(8,))) == list(range(12))


@pytest.mark.parametrize(
    ("window", "reason"), [((3, 40), "window-out-of-range"), ((6, 9), "answer-page-outside-window")]
)
def test_a_window_that_does_not_hold_the_answer_is_refused(window: tuple[int, int], reason: str) -> None:
    with pytest.raises(mt.Rejected) as refused:
        packed(16 * K, window=window, span="window")
    assert refused.value.fault.reason == reason


def test_oracle_shows_the_answer_pages_and_natural_the_document_alone() -> None:
    assert own(packed(16 * K, context="oracle", pages=(2, 7))) == [2, 7]
    natural = packed(16 * K, context="natural")
    assert own(natural) == list(range(12))
    assert len(natural.units) == 12
    with pytest.raises(mt.Rejected, match="no-answer-pages"):
        packed(16 * K, context="oracle", pages=())


def test_a_padding_document_that_repeats_an_answer_page_is_left_out_and_counted() -> None:
    repeated = {**TEXTS, "beta": (*TEXTS["beta"][:2], TEXTS["alpha"][4])}
    example = packed(16 * K, repeated)
    assert "beta" not in {unit.group for unit in example.units}
    assert example.left_out == {"page of a document that repeats an answer page": 3}
    assert "beta" in {unit.group for unit in packed(16 * K, repeated, pages=(5,)).units}


def test_a_blank_answer_page_is_like_no_other() -> None:
    blank = {name: (*pages[:2], "", *pages[3:]) for name, pages in TEXTS.items()}
    assert not packed(16 * K, blank, pages=(2,)).left_out


def test_as_text_the_very_pages_are_shown_that_images_would_have_room_for() -> None:
    for length in (4 * K, 8 * K, 16 * K):
        images, text = packed(length), packed(length, pages_as="text")
        assert [unit.id for unit in images.units] == [unit.id for unit in text.units]
        assert not text.prompt.images
        assert text.count.image == 0
        assert text.prompt.text.startswith("You are given a document, and a question. Answer")
        assert "Document alpha (page 4): \nalpha says 4 of it all\n\n" in text.prompt.text


def test_as_text_by_budget_as_many_pages_are_shown_as_the_text_has_room_for() -> None:
    images, text = packed(4 * K), packed(4 * K, pages_as="text", text_fill="budget")
    assert len(text.units) == 30 > len(images.units)


def test_text_that_is_longer_than_its_images_is_not_cut_but_refused() -> None:
    with pytest.raises(DoesNotFitError, match="retold"):
        packed(4 * K, {**TEXTS, "alpha": ("word " * 900,) * 12}, pages_as="text")


def test_pages_without_text_are_flagged_and_questions_whose_evidence_is_only_there() -> None:
    without = {**TEXTS, "alpha": (*TEXTS["alpha"][:4], "", *TEXTS["alpha"][5:])}
    builder = DocVQA("text_mmlongdoc", DocVQAOptions(pages_as="text"))
    record = builder.record(packed(4 * K, without, pages_as="text"))
    place = record["page_list"].index("d/alpha/alpha_page4.jpg")
    assert (record["pages_without_text"], record["evidence_has_text"]) == (str(place), False)
    assert record["page_text_list"][place] == ""
    assert builder.record(packed(4 * K, without, pages=(4, 6), pages_as="text"))["evidence_has_text"]


def test_a_text_dataset_is_asked_the_same_questions_over_the_same_pages(tmp_path: Path) -> None:
    source = draw_longdocurl(tmp_path / "drawn")
    common = {"builder": "docvqa", "reader": "longdocurl", "source": source, "lengths": (8 * K,), "sample": {"n": 6}}
    specs = (
        {"name": "longdocurl", **common},
        {"name": "text_longdocurl", "drawn_as": "longdocurl", "options": {"pages_as": "text"}, **common},
    )
    manifest = Manifest(datasets=tuple(DatasetSpec.model_validate(spec) for spec in specs))
    build(manifest, tmp_path / "out", LocalExecutor(1, Progress(is_shown=False)))
    images, texts = (
        [json.loads(line) for line in (tmp_path / f"out/mmlb_data/documentQA/{name}_K8.jsonl").read_text().splitlines()]
        for name in ("longdocurl", "text_longdocurl")
    )
    assert [(record["id"], record["page_list"]) for record in images] == [
        (record["id"], record["page_list"]) for record in texts
    ]
    assert len(images) == 6


def test_oracle_and_the_whole_document_say_which_pages_the_question_is_about() -> None:
    def said(**options: Any) -> tuple[str, str]:
        record = DocVQA("longdocurl", DocVQAOptions(**options)).record(packed(4 * K, window=(3, 8), **options))
        return record["span"], record["span_kind"]

    assert said(context="oracle", span="window") == ("3-8", "window")
    assert said(span="window") == ("3-8", "window")
    assert said() == ("0-11", "document")
    assert "span" not in DocVQA("mmlongdoc", DocVQAOptions()).record(packed(4 * K))


YEARS = {f"annual-report-acme-{year}": TEXTS["alpha"] for year in range(2015, 2020)}
YEARS = {name: tuple(f"{name}: {page}" for page in range(len(pages))) for name, pages in YEARS.items()}
OWN = "annual-report-acme-2017"


def test_documents_with_one_beginning_pad_each_other_if_labels_tell_them_apart() -> None:
    short = packed(16 * K, YEARS, doc=OWN)
    assert {unit.group for unit in short.units} == {OWN}
    assert short.left_out == {"page of a document with another one's label": 48}
    ways: tuple[dict[str, Any], ...] = ({"label_width": "distinct"}, {"row_width": "distinct"})
    for more in ways:
        example = packed(16 * K, YEARS, doc=OWN, **more)  # its prompt is rebuilt from its record
        assert len({unit.group for unit in example.units}) > 2
        assert not example.left_out
        text = example.prompt.text
        assert f"Based on Document {OWN}, answer" in text
        assert all(f"Document {unit.group}: " in text for unit in example.units)
    assert packed(16 * K, YEARS, doc=OWN, row_width="distinct", label_width=15).left_out


def test_a_record_has_labels_only_if_one_of_them_is_longer() -> None:
    builder = DocVQA("reports", DocVQAOptions())
    longer = builder.record(packed(16 * K, YEARS, doc=OWN, row_width="distinct"))
    assert longer["document_labels"] == [path.split("/")[1] for path in longer["page_list"]]
    short = builder.record(packed(16 * K, row_width="distinct"))
    assert "document_labels" not in short
    loaded = {**short, "document_labels": None}  # as a loader fills a column that other records have
    assert builder.prompt(loaded) == builder.prompt(short)


@pytest.mark.parametrize("options", [{"pages_as": "text"}, {"pages_as": "text", "text_fill": "budget"}])
def test_pages_of_text_have_the_longer_labels_too(options: dict[str, Any]) -> None:
    example = packed(16 * K, YEARS, doc=OWN, row_width="distinct", **options)
    assert f"Document {OWN} (page 4): \n{OWN}: 4\n\n" in example.prompt.text
