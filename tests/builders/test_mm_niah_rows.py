"""MM-NIAH's annotation rows one by one: every form that real rows have, and what is named where none fits."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import mmlongbench.task as mt
from builders.mm_niah import MMNIAHRows
from builders.mm_niah.annotations import asked_by, asked_by_refused, own_page, read_annotation
from builders.mm_niah.checks import check_row
from builders.mm_niah.fields import find_sentences
from builders.mm_niah.rows import HaystackQuestion, HiddenNeedle

STAR = "\u2605"


def meta(category: str, **fields: Any) -> dict[str, Any]:
    common = {"placed_depth": [0.5], "needles": [], "choices": None, "choices_image_path": None}
    return {**common, "category": category, **fields}


def retrieval_image(**changes: Any) -> dict[str, Any]:
    options = [f"abnormal_pic_val/{thing}.jpg" for thing in ("owl", "drum", "kite", "bus")]
    row = {
        "id": 7,
        "images_list": ["obelics/a1.jpg", "obelics_paste/find-image/b2.jpg", "obelics/c3.jpg"],
        "context": "One. <image> Two. <image> Three. <image>",
        "question": "Which of these is in the document?",
        "answer": 2,
        "meta": meta("find-image", needles=[options[2]], choices_image_path=options),
    }
    return {**row, **changes}


def counting_image(**changes: Any) -> dict[str, Any]:
    row = {
        "id": 3,
        "images_list": [
            "obelics/a1.jpg",
            "obelics_paste/count-image/b2.jpg",
            "obelics/c3.jpg",
            "abnormal_pic_val/kite.jpg",
        ],
        "context": "One. <image> Two. <image> Three. <image>",
        "question": "Count this: \n<image>\n in each image",
        "answer": "[0, 2, 0]",
        "meta": meta("count-image", needles=[2]),
    }
    return {**row, **changes}


def jigsaw(**changes: Any) -> dict[str, Any]:
    options = [f"reasoning/val_Jigsaw_9_image_{n}.jpeg" for n in (2, 3)]
    row = {
        "id": 5,
        "images_list": ["obelics/a1.jpg", "reasoning/val_Jigsaw_9_image_1.jpeg"],
        "context": "One. <image> Two. <image>",
        "question": "Given the second image, whose corner is missing, which of these is the missing part?",
        "answer": 1,
        "meta": meta("visual-reasoning", needles=["val_Jigsaw_9_image_1.jpeg"], choices_image_path=options),
    }
    return {**row, **changes}


def counting_text(counts: list[int], answer: object, **changes: Any) -> dict[str, Any]:
    needles = [f"The little owl counted {count} {STAR} ." for count in counts]
    row = {
        "id": 0,
        "images_list": ["obelics/a1.jpg"],
        "context": f"It began. {' It went on. '.join(needles)} It ended. <image>",
        "question": f"Collect the numbers of {STAR}.",
        "answer": answer,
        "meta": meta("count-text", needles=needles),
    }
    return {**row, **changes}


def row_of(raw: dict[str, Any]) -> HaystackQuestion:
    found = read_annotation(raw)
    assert not isinstance(found, mt.Fault), found
    return found.question


def fault_of(raw: dict[str, Any]) -> mt.Fault:
    found = read_annotation(raw)
    assert isinstance(found, mt.Fault), found
    return found


def page_of(raw: dict[str, Any], folder: Path) -> list[str | mt.Image]:
    (folder / "q.jsonl").write_text(json.dumps(raw), "utf-8")
    pages = MMNIAHRows().web_pages({"questions": folder / "q.jsonl", "images": folder})
    return list(pages[f"row-{raw['id']}"])


def words_of(page: list[str | mt.Image]) -> str:
    return " ".join(" ".join(part.split()) for part in page if isinstance(part, str)).strip()


@pytest.mark.parametrize(
    "answer",
    [[1, 2], "[1, 2]", ["1", "2"], '["1", " 2 "]', [1.0, 2], "[1.0, 2]", ["1.0", 2]],
    ids=["list", "text", "texts in a list", "texts in a text", "zero fraction", "zero fraction in a text", "mixed"],
)
def test_a_counting_answer_is_a_list_or_a_text_that_spells_one(answer: object) -> None:
    assert row_of(counting_text([1, 2], answer)).counts == (1, 2)


@pytest.mark.parametrize(
    "answer",
    ["[1, 2", "[1.5, 2]", "[true, 2]", "[-1, 2]", '{"1": 2}', [], None, 3, "one and two", [1, "2.5"], "[1, 2e9]"],
    ids=[
        "cut",
        "a fraction",
        "a truth",
        "below 0",
        "an object",
        "empty",
        "null",
        "a number",
        "words",
        "a fraction as text",
        "too large",
    ],
)
def test_a_counting_answer_of_another_form_is_named(answer: object) -> None:
    found = fault_of(counting_text([1, 2], answer))
    assert (found.reason, found.field) == ("missing-or-mistyped-field", "answer")
    assert found.expected == "a list of whole numbers, or a text that spells one"


def test_equal_statements_are_both_needles_and_both_leave_the_page(tmp_path: Path) -> None:
    raw = counting_text([4, 4, 1], "[4, 4, 1]")
    found = row_of(raw)
    assert [needle.text for needle in found.needles] == raw["meta"]["needles"]
    assert [needle.id for needle in found.needles] == ["needle-0", "needle-1", "needle-2"]
    assert found.counts == (4, 4, 1)
    assert words_of(page_of(raw, tmp_path)) == "It began. It went on. It went on. It ended."


def test_statements_are_taken_in_the_order_of_the_document() -> None:
    raw = counting_text([1, 5, 3], "[1, 5, 3]")
    raw["meta"]["needles"].reverse()
    found = row_of(raw)
    numbers = [int(needle.text.split()[4]) for needle in found.needles]
    assert (numbers, found.counts) == ([1, 5, 3], (1, 5, 3))


def test_an_answer_in_the_order_of_the_needles_is_read_by_the_numbers_of_the_statements() -> None:
    raw = counting_text([1, 5, 3], "[3, 5, 1]")
    raw["meta"]["needles"].reverse()
    found = row_of(raw)
    numbers = [int(needle.text.split()[4]) for needle in found.needles]
    assert (numbers, found.counts) == ([1, 5, 3], (1, 5, 3))


@pytest.mark.parametrize(
    ("answer", "more"),
    [("[1]", ""), ("[1, 2, 3]", ""), ("[7, 8]", ""), ("[1, 2]", f"The little owl counted 2 {STAR} . ")],
    ids=["too few numbers", "too many", "other numbers", "a statement that is not listed"],
)
def test_numbers_that_are_not_those_of_the_statements_are_named(answer: str, more: str) -> None:
    raw = counting_text([1, 2], answer)
    raw["context"] = more + raw["context"]
    assert fault_of(raw).reason == "counts-and-needles"


def test_a_statement_listed_twice_that_stands_once_is_named() -> None:
    raw = counting_text([4], "[4, 4]")
    raw["meta"]["needles"] *= 2
    found = fault_of(raw)
    assert (found.reason, found.found) == ("needle-unknown", "1")


def test_a_needle_inside_a_longer_one_is_not_found_there() -> None:
    long, short = "So the owl counted 4.", "the owl counted 4."
    assert find_sentences(f"{long} And {short}", [short, long]) == {short: [(26, 44)], long: [(0, 21)]}


@pytest.mark.parametrize("answer", ["[0, 2, 0]", [0, 2, 0]], ids=["a text", "a list"])
@pytest.mark.parametrize("needles", [[2], ["obelics_paste/count-image/b2.jpg"], [0, "b2.jpg"], None], ids=str)
def test_counted_pictures_are_those_above_0_whatever_the_needles_say(answer: object, needles: object) -> None:
    found = row_of(counting_image(answer=answer, meta=meta("count-image", needles=needles)))
    assert [needle.image for needle in found.needles] == ["obelics_paste/count-image/b2.jpg"]
    assert found.counts == (2,)
    assert found.shown == ("abnormal_pic_val/kite.jpg",)


@pytest.mark.parametrize(
    ("images", "pattern"),
    [
        (["abnormal_pic_val/kite.jpg", "obelics/a.jpg", "obelics/b.jpg", "obelics/c.jpg"], "abnormal_pic_val/kite.jpg"),
        (["obelics/a.jpg", "obelics/b.jpg", "obelics/c.jpg", "things/kite.jpg"], "things/kite.jpg"),
        (
            ["obelics/a.jpg", "abnormal_pic_val/b.jpg", "obelics/c.jpg", "abnormal_pic_val/kite.jpg"],
            "abnormal_pic_val/kite.jpg",
        ),
    ],
    ids=["first, told by its folder", "without the folder the last", "of several in the folder the last"],
)
def test_the_pattern_is_told_by_its_folder_else_it_is_the_last(images: list[str], pattern: str, tmp_path: Path) -> None:
    raw = counting_image(images_list=images)
    found = row_of(raw)
    assert found.shown == (pattern,)
    assert [needle.image for needle in found.needles] == [[name for name in images if name != pattern][1]]
    shown = [part.path for part in page_of(raw, tmp_path) if isinstance(part, mt.Image)]
    assert shown == [name for name in images if name not in (pattern, found.needles[0].image)]


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"answer": "[0, 2]"}, "counts-and-pictures"),
        ({"answer": "[2]"}, "counts-and-pictures"),
        ({"answer": "[0, 0, 0]"}, "no-needles"),
        (
            {"images_list": ["abnormal_pic_val/a.jpg", "obelics/b.jpg", "abnormal_pic_val/c.jpg", "obelics/d.jpg"]},
            "pattern-unknown",
        ),
    ],
    ids=["too few", "one for each needle", "zeros alone", "two in the folder, none of them last"],
)
def test_a_count_that_fits_no_picture_is_named(change: dict[str, Any], reason: str) -> None:
    assert fault_of(counting_image(**change)).reason == reason


@pytest.mark.parametrize(
    "name",
    ["obelics_paste/find-image/b2.jpg", "abnormal_pic_page/b2.jpg", "Pasted/b2.jpg", "composed/b2.jpg", "b2.jpg"],
)
def test_the_needle_is_the_picture_that_no_web_page_has(name: str, tmp_path: Path) -> None:
    raw = retrieval_image(images_list=["obelics/a1.jpg", name, "obelics/c3.jpg"])
    found = row_of(raw)
    assert [needle.image for needle in found.needles] == [name]
    assert found.choices[found.right] == "abnormal_pic_val/kite.jpg"
    shown = [part.path for part in page_of(raw, tmp_path) if isinstance(part, mt.Image)]
    assert shown == ["obelics/a1.jpg", "obelics/c3.jpg"]


def test_a_pasted_picture_goes_before_others_outside_the_web_pages() -> None:
    raw = retrieval_image(images_list=["logos/a1.jpg", "obelics_paste/b2.jpg", "obelics/c3.jpg"])
    assert [needle.image for needle in row_of(raw).needles] == ["obelics_paste/b2.jpg"]


@pytest.mark.parametrize(
    "images",
    [
        ["obelics/a1.jpg", "obelics/b2.jpg", "obelics/c3.jpg"],
        ["obelics_paste/a1.jpg", "obelics_paste/b2.jpg", "obelics/c3.jpg"],
        ["x/a1.jpg", "y/b2.jpg", "obelics/c3.jpg"],
    ],
    ids=["none", "two pasted", "two outside"],
)
def test_a_needle_that_cannot_be_told_is_named_and_never_taken_from_meta_needles(images: list[str]) -> None:
    options = ["abnormal_pic_val/owl.jpg", "abnormal_pic_val/kite.jpg"]
    told = meta("find-image", needles=["obelics/a1.jpg"], choices_image_path=options)
    assert fault_of(retrieval_image(images_list=images, answer=1, meta=told)).reason == "needle-unknown"


@pytest.mark.parametrize("needles", [["reasoning/val_Jigsaw_9_image_1.jpeg"], ["val_Jigsaw_9_image_1.jpeg"], [], None])
def test_a_jigsaw_needle_is_told_by_its_name_else_by_its_folder(needles: object) -> None:
    raw = jigsaw()
    raw["meta"]["needles"] = needles
    found = row_of(raw)
    assert [needle.image for needle in found.needles] == ["reasoning/val_Jigsaw_9_image_1.jpeg"]
    assert found.repairs == ()


def test_an_ordinal_of_another_picture_is_counted() -> None:
    raw = jigsaw(question="Given the first image, whose corner is missing, which of these is the missing part?")
    assert row_of(raw).is_ordinal_stale
    assert not row_of(jigsaw()).is_ordinal_stale
    assert row_of(raw).repairs == ()


def test_multi_view_rows_are_an_expected_skip() -> None:
    raw = jigsaw(
        images_list=["reasoning/val_Multi-view_1.jpeg", "reasoning/val_Multi-view_2.jpeg"],
        question="The first and second image are frames of a video. Left or right?",
        answer=0,
        meta=meta("visual-reasoning", needles=["val_Multi-view_1.jpeg"], choices=["left", "right"]),
    )
    found = fault_of(raw)
    assert (found.reason, found.is_expected) == ("multi-view", True)
    assert "the benchmark leaves Multi-view rows out" in str(found)
    raw["meta"]["category"] = None
    assert fault_of(raw).reason == "multi-view"


@pytest.mark.parametrize("choices", [None, []], ids=str)
@pytest.mark.parametrize(
    ("question", "needles"),
    [
        ("The first and second image are frames of a video. Left or right?", []),
        ("These are frames of a video. Left or right?", ["val_Multi-view_1.jpeg", "val_Multi-view_2.jpeg"]),
    ],
    ids=["told by the question", "told by the needles"],
)
def test_multi_view_rows_without_options_are_an_expected_skip_too(
    question: str, needles: list[str], choices: object
) -> None:
    raw = jigsaw(
        images_list=["reasoning/val_Multi-view_1.jpeg", "reasoning/val_Multi-view_2.jpeg"],
        question=question,
        answer=0,
        meta=meta("visual-reasoning", needles=needles, choices=choices, choices_image_path=choices),
    )
    assert (fault_of(raw).reason, fault_of(raw).is_expected) == ("multi-view", True)


def test_a_jigsaw_row_without_options_is_no_expected_skip() -> None:
    raw = jigsaw()
    raw["meta"]["choices_image_path"] = None
    assert row_of(raw).choices == ()  # the builder refuses it by name


def test_the_page_of_a_multi_view_row_fills_haystacks_without_its_frames(tmp_path: Path) -> None:
    raw = jigsaw(
        images_list=["reasoning/val_Multi-view_1.jpeg", "obelics/a1.jpg", "reasoning/val_Multi-view_2.jpeg"],
        context="One. <image> Two.</s> <image> Three. <image> Four.",
        question="The first and third image are frames of a video. Left or right?",
        answer=0,
        meta=meta("visual-reasoning", needles=["val_Multi-view_1.jpeg"], choices=["left", "right"]),
    )
    page = page_of(raw, tmp_path)
    assert [part.path for part in page if isinstance(part, mt.Image)] == ["obelics/a1.jpg"]
    assert words_of(page) == "One. Two. Three. Four."
    unreadable = {**raw, "answer": None, "meta": meta("visual-reasoning", choices_image_path=["a.png", "b.png"])}
    assert page_of(unreadable, tmp_path) == []


def test_options_of_two_kinds_are_named() -> None:
    raw = jigsaw()
    raw["meta"]["choices"] = ["the second image", "the third image"]
    assert fault_of(raw).reason == "two-kinds-of-options"
    assert not fault_of(raw).is_expected


@pytest.mark.parametrize("answer", ["1", True, None, 1.0, [1]], ids=str)
def test_an_index_of_another_type_is_named(answer: object) -> None:
    for raw in (jigsaw(answer=answer), retrieval_image(answer=answer)):
        assert (fault_of(raw).reason, fault_of(raw).field) == ("missing-or-mistyped-field", "answer")


@pytest.mark.parametrize("depth", [0.41, [0.41], [0.1, 0.9], None], ids=str)
def test_the_placed_depth_may_have_any_form(depth: object) -> None:
    raw = retrieval_image()
    raw["meta"]["placed_depth"] = depth
    assert row_of(raw) == row_of(retrieval_image())


@pytest.mark.parametrize("kind", ["retrieval_image", "counting_image", "jigsaw", "counting_text"])
def test_a_row_without_a_category_is_told_by_its_fields(kind: str) -> None:
    raws = {
        "retrieval_image": retrieval_image(),
        "counting_image": counting_image(),
        "jigsaw": jigsaw(),
        "counting_text": counting_text([2, 2], "[2, 2]"),
    }
    told = row_of(raws[kind])
    raws[kind]["meta"]["category"] = ["of", "an early version"]
    assert row_of(raws[kind]) == told


def test_marks_between_pages_part_them_and_are_no_text(tmp_path: Path) -> None:
    raw = counting_text([3], "[3]")
    raw["context"] = f"One ends here</s>Two begins. {raw['meta']['needles'][0]}</s> <image></s>"
    page = page_of(raw, tmp_path)
    assert "</s>" not in "".join(part for part in page if isinstance(part, str))
    pages = mt.WebPages({"p": page})
    assert [part for part in pages.page("p") if isinstance(part, str)] == ["One ends here Two begins."]
    assert mt.sentences(str(page[0])) == ["One ends here", "Two begins."]


odd = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-3, 5)
    | st.floats()
    | st.sampled_from(["", "x.jpg", "[1]", "<image>", "</s>"]),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(["a", "path"]), inner, max_size=2),
    max_leaves=6,
)


@given(kind=st.integers(0, 3), data=st.data())
def test_whatever_a_field_holds_a_row_is_read_or_named(kind: int, data: st.DataObject) -> None:
    raw = (retrieval_image, counting_image, jigsaw, lambda: counting_text([2, 2], "[2, 2]"))[kind]()
    for _ in range(data.draw(st.integers(1, 3))):
        changed = data.draw(
            st.sampled_from([raw, facts] if isinstance(facts := raw.get("meta"), dict) and facts else [raw])
        )
        changed[data.draw(st.sampled_from(sorted(changed)))] = data.draw(odd)
    found = read_annotation(raw)
    asked = asked_by_refused(raw) if isinstance(found, mt.Fault) else [*asked_by(found)]
    assert all(isinstance(name, str) and name for name in asked)
    if not isinstance(found, mt.Fault):
        pictures = [part for part in own_page(found) if isinstance(part, mt.Image)]
        assert not {picture.path for picture in pictures} & set(asked)


def test_asked_pictures_are_those_of_all_rows_also_of_refused_ones(tmp_path: Path) -> None:
    refused = jigsaw(id=8, answer=None)
    multi = jigsaw(id=9, images_list=["obelics/a.jpg", "reasoning/f1.jpeg", "reasoning/f2.jpeg"])
    multi |= {"context": "<image> <image> <image>", "meta": meta("visual-reasoning", choices=["left", "right"])}
    lines = [retrieval_image(), counting_image(), counting_text([1], "[1]"), refused, multi, {"id": None}, 5]
    (tmp_path / "q.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in lines), "utf-8")
    found = list(MMNIAHRows().asked_pictures({"questions": tmp_path / "q.jsonl", "images": tmp_path}))
    expected = {"obelics_paste/find-image/b2.jpg", "obelics_paste/count-image/b2.jpg"}
    expected |= {f"abnormal_pic_val/{thing}.jpg" for thing in ("owl", "drum", "kite", "bus")}
    expected |= {f"reasoning/val_Jigsaw_9_image_{n}.jpeg" for n in (1, 2, 3)}
    assert set(found) == expected | {"reasoning/f1.jpeg", "reasoning/f2.jpeg"}


CHECKED: tuple[tuple[str, str, str, dict[str, Any]], ...] = (
    ("pictures-in-the-question", "retrieval", "text", {"shown": ("a.png",)}),
    ("markers-and-images", "retrieval", "text", {"question": "Who is <image>?"}),
    ("counts-and-needles", "counting", "text", {"counts": (1, 2)}),
    ("empty-answer", "retrieval", "text", {"answers": ("?!",)}),
    ("no-needles", "retrieval", "text", {"needles": ()}),
    ("needles-of-another-kind", "retrieval", "text", {"needles": (HiddenNeedle(id="n", image="a.png"),)}),
    (
        "needle-twice",
        "retrieval",
        "text",
        {"needles": (HiddenNeedle(id="n", text="It rained."), HiddenNeedle(id="m", text="it rained"))},
    ),
    ("needle-with-marker", "retrieval", "text", {"needles": (HiddenNeedle(id="n", text="It\nrained."),)}),
    ("needle-with-marker", "retrieval", "text", {"needles": (HiddenNeedle(id="n", text="It rained on <image>."),)}),
    ("empty-needle", "retrieval", "text", {"needles": (HiddenNeedle(id="n", text="?!"),)}),
    ("text-options", "retrieval", "image", {"needles": (HiddenNeedle(id="n", image="a.png"),)}),
    (
        "identical-choices",
        "retrieval",
        "image",
        {"needles": (HiddenNeedle(id="n", image="a.png"),), "choices": ("b", "b")},
    ),
    (
        "answer-out-of-range",
        "retrieval",
        "image",
        {"needles": (HiddenNeedle(id="n", image="a.png"),), "choices": ("b", "c"), "right": 2},
    ),
)
"""Rows of a stranger's reader that the builder refuses: reason, task, kind of needle, fields."""


@pytest.mark.parametrize(("reason", "task", "kind", "fields"), CHECKED)
def test_a_row_of_any_reader_is_checked_by_the_builder(
    reason: str, task: str, kind: str, fields: dict[str, Any]
) -> None:
    good = {
        "id": "mm-niah-1",
        "question": "What fell?",
        "answers": ("rain",),
        "needles": (HiddenNeedle(id="n", text="It rained."),),
    }
    check_row(HaystackQuestion.model_validate(good), "retrieval", "text")
    with pytest.raises(mt.Rejected) as refused:
        check_row(HaystackQuestion.model_validate({**good, **fields}), task, kind)
    assert refused.value.fault.reason == reason
