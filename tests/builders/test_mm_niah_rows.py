"""MM-NIAH's rows one by one: every form that real rows have, what is named where none fits, and ordinals."""

import json
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from one_dataset import write_lines

import mmlongbench.task as mt
from builders.common import picture_below
from builders.mm_niah import MMNIAH, MMNIAHRows, OwnPages
from builders.mm_niah.annotations import find_sentences, own_page, pictures_asked, read_fields, read_question
from builders.mm_niah.builder import MMNIAHOptions
from builders.mm_niah.rows import (
    MAX_PLACE,
    HaystackQuestion,
    HiddenNeedle,
    all_ordinals,
    check_row,
    pictures_named,
    renamed,
    without_ordinal,
    worded,
)
from mmlongbench.building.stages.rows import read_rows

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
    return read_question(read_fields(raw))


def fault_of(raw: dict[str, Any]) -> mt.Fault:
    with pytest.raises(mt.Rejected) as refused:
        row_of(raw)
    return refused.value.fault


def words_of(raw: dict[str, Any]) -> str:
    """The words of a row's own page."""
    return " ".join(" ".join(part.split()) for part in own_page(raw) if isinstance(part, str)).strip()


def images_of(raw: dict[str, Any]) -> list[str]:
    """The pictures of a row's own page."""
    return [part.path for part in own_page(raw) if isinstance(part, mt.Image)]


MISTYPED = "missing-or-mistyped-field"


# --- counting statements ----------------------------------------------------------------------------------------------


def test_a_counting_answer_is_a_list_or_a_text_that_spells_one() -> None:
    answers: list[Any] = [[1, 2], "[1, 2]", ["1", "2"], '["1", " 2 "]', [1.0, 2], "[1.0, 2]", ["1.0", 2]]
    assert [row_of(counting_text([1, 2], answer)).counts for answer in answers] == [(1, 2)] * len(answers)
    wrong: list[Any] = ["[1, 2", "[1.5, 2]", "[true, 2]", "[-1, 2]", '{"1": 2}', [], None, 3, "one and two", [1, "2.5"]]
    for answer in (*wrong, "[1, 2e9]"):
        found = fault_of(counting_text([1, 2], answer))
        assert (found.reason, found.field) == (MISTYPED, "answer")
        assert found.expected == "a list of whole numbers, or a text that spells one"


def test_equal_statements_are_both_needles_and_both_leave_the_page() -> None:
    raw = counting_text([4, 4, 1], "[4, 4, 1]")
    found = row_of(raw)
    assert [needle.text for needle in found.needles] == raw["meta"]["needles"]
    assert [needle.id for needle in found.needles] == ["needle-0", "needle-1", "needle-2"]
    assert found.counts == (4, 4, 1)
    assert words_of(raw) == "It began. It went on. It went on. It ended."


@pytest.mark.parametrize("answer", ["[1, 5, 3]", "[3, 5, 1]"], ids=["of the document", "of the needles"])
def test_statements_are_taken_in_the_order_of_the_document_in_whichever_order_the_answer_is(answer: str) -> None:
    raw = counting_text([1, 5, 3], answer)
    raw["meta"]["needles"].reverse()
    found = row_of(raw)
    assert [int(needle.text.split()[4]) for needle in found.needles] == [1, 5, 3]
    assert found.counts == (1, 5, 3)


def test_numbers_that_are_not_those_of_the_statements_are_named() -> None:
    unlisted = f"The little owl counted 2 {STAR} . "
    for answer, more in (("[1]", ""), ("[1, 2, 3]", ""), ("[7, 8]", ""), ("[1, 2]", unlisted)):
        raw = counting_text([1, 2], answer)
        raw["context"] = more + raw["context"]
        assert fault_of(raw).reason == "counts-and-needles"
    twice = counting_text([4], "[4, 4]")
    twice["meta"]["needles"] *= 2
    assert (fault_of(twice).reason, fault_of(twice).found) == ("needle-unknown", "1")
    marked = counting_text([4], "[4]")
    marked["meta"]["needles"] = ["The little owl <image> counted 4."]
    marked["context"] = "It began. The little owl <image> counted 4. It ended."
    assert fault_of(marked).reason == "needle-with-marker"
    assert own_page(marked) == []
    long, short = "So the owl counted 4.", "the owl counted 4."
    assert find_sentences(f"{long} And {short}", [short, long]) == [((0, 21), long), ((26, 44), short)]


# --- counting pictures ------------------------------------------------------------------------------------------------


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
def test_the_pattern_is_told_by_its_folder_else_it_is_the_last(images: list[str], pattern: str) -> None:
    raw = counting_image(images_list=images)
    found = row_of(raw)
    assert found.shown == (pattern,)
    assert [needle.image for needle in found.needles] == [[name for name in images if name != pattern][1]]
    assert images_of(raw) == [name for name in images if name not in (pattern, found.needles[0].image)]


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


# --- retrieval and reasoning ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name",
    ["obelics_paste/find-image/b2.jpg", "abnormal_pic_page/b2.jpg", "Pasted/b2.jpg", "composed/b2.jpg", "b2.jpg"],
)
def test_the_needle_is_the_picture_that_no_web_page_has(name: str) -> None:
    raw = retrieval_image(images_list=["obelics/a1.jpg", name, "obelics/c3.jpg"])
    found = row_of(raw)
    assert [needle.image for needle in found.needles] == [name]
    assert found.choices[found.right] == "abnormal_pic_val/kite.jpg"
    assert images_of(raw) == ["obelics/a1.jpg", "obelics/c3.jpg"]
    pasted = retrieval_image(images_list=["logos/a1.jpg", "obelics_paste/b2.jpg", "obelics/c3.jpg"])
    assert [needle.image for needle in row_of(pasted).needles] == ["obelics_paste/b2.jpg"]


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


def test_an_ordinal_of_another_picture_is_told_and_is_no_repair() -> None:
    raw = jigsaw(question="Given the first image, whose corner is missing, which of these is the missing part?")
    assert (row_of(raw).is_ordinal_stale, row_of(raw).repairs) == (True, ())
    assert not row_of(jigsaw()).is_ordinal_stale
    for depth in (0.41, [0.41], [0.1, 0.9], None):
        retrieved = retrieval_image()
        retrieved["meta"]["placed_depth"] = depth
        assert row_of(retrieved) == row_of(retrieval_image())


FRAMES = ["reasoning/val_Multi-view_1.jpeg", "reasoning/val_Multi-view_2.jpeg"]
NAMING = "The first and second image are frames of a video. Left or right?"
NOT_NAMING = "These are frames of a video. Left or right?"
NAMES = [Path(name).name for name in FRAMES]


@pytest.mark.parametrize(
    ("question", "needles", "choices", "category"),
    [
        (NAMING, NAMES[:1], ["left", "right"], "visual-reasoning"),
        (NAMING, NAMES[:1], ["left", "right"], None),
        (NAMING, [], None, "visual-reasoning"),
        (NAMING, [], [], "visual-reasoning"),
        (NOT_NAMING, NAMES, None, "visual-reasoning"),
        (NOT_NAMING, NAMES, [], "visual-reasoning"),
    ],
)
def test_multi_view_rows_are_an_expected_skip_with_and_without_options(
    question: str, needles: list[str], choices: Any, category: Any
) -> None:
    paths = None if choices else choices
    about = meta(category, needles=needles, choices=choices, choices_image_path=paths)
    found = fault_of(jigsaw(images_list=FRAMES, question=question, answer=0, meta=about))
    assert (found.reason, found.is_expected) == ("multi-view", True)
    assert "the benchmark leaves Multi-view rows out" in str(found)


def test_the_page_of_a_multi_view_row_fills_haystacks_without_its_frames() -> None:
    raw = jigsaw(
        images_list=["reasoning/val_Multi-view_1.jpeg", "obelics/a1.jpg", "reasoning/val_Multi-view_2.jpeg"],
        context="One. <image> Two.</s> <image> Three. <image> Four.",
        question="The first and third image are frames of a video. Left or right?",
        answer=0,
        meta=meta("visual-reasoning", needles=["val_Multi-view_1.jpeg"], choices=["left", "right"]),
    )
    assert images_of(raw) == ["obelics/a1.jpg"]
    assert words_of(raw) == "One. Two. Three. Four."
    unreadable = {**raw, "answer": None, "meta": meta("visual-reasoning", choices_image_path=["a.png", "b.png"])}
    assert own_page(unreadable) == []


def test_options_of_no_or_two_kinds_and_an_index_of_another_type_are_named() -> None:
    raw = jigsaw()
    raw["meta"]["choices"] = ["the second image", "the third image"]
    assert (fault_of(raw).reason, fault_of(raw).is_expected) == ("two-kinds-of-options", False)
    raw["meta"] |= {"choices": None, "choices_image_path": None}
    assert row_of(raw).choices == ()  # no Multi-view row: the builder refuses it by name
    wrong: tuple[Any, ...] = ("1", True, None, 1.0, [1])
    for row in (jigsaw, retrieval_image):
        assert [(fault_of(row(answer=each)).reason, fault_of(row(answer=each)).field) for each in wrong] == [
            (MISTYPED, "answer")
        ] * len(wrong)


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


def test_marks_between_pages_part_them_and_are_no_text() -> None:
    raw = counting_text([3], "[3]")
    raw["context"] = f"One ends here</s>Two begins. {raw['meta']['needles'][0]}</s> <image></s>"
    page = own_page(raw)
    assert "</s>" not in "".join(part for part in page if isinstance(part, str))
    pages = mt.advanced.WebPages({"p": page})
    assert [part for part in pages.page("p") if isinstance(part, str)] == ["One ends here Two begins."]
    assert mt.advanced.sentences(str(page[0])) == ["One ends here", "Two begins."]


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
    asked = pictures_asked(raw)
    assert all(isinstance(name, str) and name for name in asked)
    with suppress(mt.Rejected):
        row_of(raw)
        assert not {*images_of(raw)} & {*asked}


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


# --- rows of any reader -----------------------------------------------------------------------------------------------

PICTURE = {"needles": (HiddenNeedle(id="n", image="a.png"),)}


def texts(*needles: str) -> dict[str, Any]:
    return {"needles": tuple(HiddenNeedle(id=f"n{number}", text=text) for number, text in enumerate(needles))}


CHECKED: tuple[tuple[str, str, str, dict[str, Any]], ...] = (
    ("pictures-in-the-question", "retrieval", "text", {"shown": ("a.png",)}),
    ("markers-and-images", "retrieval", "text", {"question": "Who is <image>?"}),
    ("counts-and-needles", "counting", "text", {"counts": (1, 2)}),
    ("choices-and-counts", "counting", "text", {"counts": (1,), "choices": ("b.png", "c.png")}),
    ("empty-answer", "retrieval", "text", {"answers": ("?!",)}),
    ("no-needles", "retrieval", "text", {"needles": ()}),
    ("needles-of-another-kind", "retrieval", "text", PICTURE),
    ("needle-twice", "retrieval", "text", texts("It rained.", "it rained")),
    ("needle-with-marker", "retrieval", "text", texts("It\nrained.")),
    ("needle-with-marker", "retrieval", "text", texts("It rained on <image>.")),
    ("empty-needle", "retrieval", "text", texts("?!")),
    ("text-options", "retrieval", "image", PICTURE),
    ("identical-choices", "retrieval", "image", {**PICTURE, "choices": ("b", "b")}),
    ("answer-out-of-range", "retrieval", "image", {**PICTURE, "choices": ("b", "c"), "right": 2}),
)
"""Rows of a stranger's reader that the builder refuses: reason, task, kind of needle, fields."""


@pytest.mark.parametrize(("reason", "task", "kind", "fields"), CHECKED)
def test_a_row_of_any_reader_is_checked_by_the_builder(
    reason: str, task: str, kind: str, fields: dict[str, Any]
) -> None:
    good = {"id": "mm-niah-1", "question": "What fell?", "answers": ("rain",), **texts("It rained.")}
    check_row(HaystackQuestion.model_validate(good), "retrieval", "text")
    with pytest.raises(mt.Rejected) as refused:
        check_row(HaystackQuestion.model_validate({**good, **fields}), task, kind)
    assert refused.value.fault.reason == reason


# --- your own pages ---------------------------------------------------------------------------------------------------


def test_own_markdown_holds_text_and_pictures_in_order(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "a.md").write_text("One.\n\n![x](../p.png)\n\nTwo.", "utf-8")
    (tmp_path / "b.txt").write_text("![x](p.png) stays", "utf-8")
    (tmp_path / "c.txt").write_bytes(b"\xff\xfe\x00")
    wrong: list[dict[str, Any]] = [
        {"answer": None},
        {"answer": 1},
        {"needles": "x"},
        {"needles": ["a\nb"]},
        {"needles": ["<image>"]},
        {"question": ""},
    ]
    good = {"question": "Q?", "answer": "A", "needles": ["A b."]}
    questions = write_lines(tmp_path / "q.jsonl", [good, *({**good, **change} for change in wrong)])
    sources = {"questions": questions, "documents": tmp_path}
    pages = OwnPages().web_pages(sources)
    assert list(pages) == ["b.txt", "c.txt", "sub/a.md"]
    assert list(pages["sub/a.md"]) == ["One.\n\n", mt.Image("p.png"), "\n\nTwo."]
    assert list(pages["b.txt"]) == ["![x](p.png) stays"]
    first, *faults = read_rows(OwnPages(), sources)
    assert first.id == "mm-niah-0"
    found = [(each.fault.place, each.fault.field) for each in faults[:-1] if isinstance(each, mt.readers.RowFault)]
    assert found == [(f"line {line}", next(iter(change))) for line, change in enumerate(wrong, 2)]
    unreadable = faults[-1]
    assert isinstance(unreadable, mt.readers.RowFault)
    assert (unreadable.id, unreadable.fault.reason) == ("c.txt", "unreadable-page")


def test_own_pictures_of_questions_are_told_also_where_a_question_is_refused(tmp_path: Path) -> None:
    lines = [
        {"question": "Q?", "answer": 0, "needles": ["a.png"], "choices": ["a.png", "b.JPG"]},
        {"question": "", "needles": ["c.png", 5, "A sentence."], "shown": "d.png"},
        ["no row"],
    ]
    questions = write_lines(tmp_path / "q.jsonl", lines)
    found = OwnPages().asked_pictures({"questions": questions, "documents": tmp_path})
    assert list(found) == ["a.png", "a.png", "b.JPG", "c.png"]


def test_a_picture_is_found_by_a_relative_and_an_absolute_name_and_never_outside_its_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    inside, outside = tmp_path / "pages" / "a" / "p.png", tmp_path / "p.png"
    inside.parent.mkdir(parents=True)
    for path in (inside, outside):
        path.write_bytes(b"a picture")
    for folder in (tmp_path / "pages", Path("pages")):
        for name in ("a/p.png", "images/a/p.png", str(inside)):
            found = picture_below(folder, name)
            assert found is not None
            assert found.resolve() == inside
        for name in ("../p.png", str(outside), "a", "a/q.png", "/", "a/../../p.png", "x" * 5000):
            assert picture_below(folder, name) is None
            assert OwnPages().image({"documents": folder}, name) is None
            assert MMNIAHRows().image({"images": folder}, name) is None
        assert picture_below(folder, "p.png", folder / "a") == folder / "a/p.png"
        assert picture_below(folder / "a", "p.png", folder / "a") == folder / "a/p.png"


# --- ordinals ---------------------------------------------------------------------------------------------------------

QUESTION = "Given the second image, whose lower right corner is missing, tell which of these is the missing part."
STALE = "naming another picture than the needle"


def ordinal_row(question: str = QUESTION, needles: int = 1) -> HaystackQuestion:
    hidden = tuple(HiddenNeedle(id=f"needle-{n}", image=f"{n}.png") for n in range(needles))
    return HaystackQuestion(id="q", question=question, needles=hidden, choices=("a.png", "b.png"), right=0)


def asked(row: HaystackQuestion, ordinal: Any) -> tuple[str, mt.Wording | None]:
    return worded(row, pictures_named(row.question), ordinal, row.choices)


def wording() -> mt.Wording:
    _, found = asked(ordinal_row(), "rewrite")
    assert found is not None
    return found


@pytest.mark.parametrize("pictures", [1, 2, 7, 60, 600])
def test_the_ordinal_names_the_needle_among_any_number_of_pictures(pictures: int) -> None:
    builder, how = MMNIAH("reasoning-image", MMNIAHOptions(task="reasoning", needle="image")), wording()
    for place in {1, (pictures + 1) // 2, pictures}:
        ids = ["needle-0" if number == place else f"u{number}" for number in range(1, pictures + 1)]
        units = [unit for id in ids for unit in (mt.Unit(f"t {id}", "Words."), mt.Unit(id, mt.Image(f"{id}.png")))]
        question = renamed(QUESTION, pictures_named(QUESTION)[0], how.texts[how.choose(units)])
        assert question == QUESTION.replace("second", mt.advanced.ordinal_words(place))
        record = {
            "question": question,
            "choices_image": ["a.png", "b.png"],
            "image_list": [f"{id}.png" for id in ids],
            "ctxs": [{"text": text, "has_ans": id == "needle-0"} for id in ids for text in (".", "<image>")],
        }
        assert {remark.fault for remark in builder.remarks(record)} == {""}
        stale = {**record, "question": QUESTION.replace("second", mt.advanced.ordinal_words(place + 1))}
        assert next(iter(builder.remarks(stale))).fault == STALE


def test_every_ordinal_is_found_again() -> None:
    for place in [*range(1, 1300), *range(1300, MAX_PLACE, 131), MAX_PLACE]:
        words = all_ordinals()[place - 1]
        assert [named.place for named in pictures_named(f"Is it the {words} picture?")] == [place]


NAMED: dict[str, list[int]] = {
    "Given the 3rd image, which is it?": [3],
    "Given the 22th photo, which is it?": [22],
    "Given the fourth photograph, which is it?": [4],
    "Given the 0th image, which is it?": [],
    "Given THE Third Image, which is it?": [3],
    "The first and second image are frames.": [1, 2],
    "the first, the second and the one hundred and third images": [103],
    "Is the one hundred first image it?": [101],
    "Which of the following images appears first?": [],
    "Is it the last image, or the missing image?": [],
    "In the twenty images there is one.": [],
    "a second image": [],
    "the " + "first " * 5_000 + "picture": [],
}


def test_pictures_are_named_by_ordinals_and_by_nothing_else() -> None:
    assert {question: [named.place for named in pictures_named(question)] for question in NAMED} == NAMED
    question = "The Second image, whose corner is missing: which is it?"
    (named,) = pictures_named(question)
    assert renamed(question, named, "one hundred and first") == question.replace("Second", "One hundred and first")


TOLD: dict[str, str | None] = {
    "the second image, whose corner is missing, which": "the image whose corner is missing, which",
    "the second image with the corner missing, tell": "the image with the corner missing, tell",
    "the twenty-first picture which has no corner": "the picture which has no corner",
    "the second photo, which has its corner cut out, can you say which of these fits?": (
        "the photo which has its corner cut out, can you say which of these fits?"
    ),
    "the second image, where a corner is missing, tell": "the image where a corner is missing, tell",
    "the second image, in which a corner is cut, tell": "the image in which a corner is cut, tell",
    "the second image, having no corner, tell": "the image having no corner, tell",
    "the second image, missing its corner, tell": "the image missing its corner, tell",
    "the second image (whose corner is missing), tell": "the image (whose corner is missing), tell",
    "the second image of the document, whose corner": "the image of the document whose corner",
    "the second image, which of these is missing?": None,
    "the second image, which is the missing part?": None,
    "the second image, in which of these is it?": None,
    "the second image, where is the missing part?": None,
    "the second image. Which one is it?": None,
    "the second image of the document. Whose is it?": None,
}


@pytest.mark.parametrize(("before", "after"), TOLD.items())
def test_without_its_ordinal_a_picture_is_told_by_its_description(before: str, after: str | None) -> None:
    (named,) = pictures_named(before)
    assert without_ordinal(before, named) == after


SEVERAL = "Which of the second image or the third image is the part of the first image?"


def test_what_is_asked_with_an_ordinal() -> None:
    for ordinal in ("rewrite", "neutral", "source"):
        assert asked(ordinal_row("Which cartoon is seen?"), ordinal) == ("Which cartoon is seen?", None)
    for row in (ordinal_row(SEVERAL), ordinal_row(needles=2)):
        for ordinal in ("rewrite", "neutral"):
            with pytest.raises(mt.Rejected, match="several-ordinals: expected one ordinal and one needle"):
                asked(row, ordinal)
        assert asked(row, "source") == (row.question, None)
    with pytest.raises(mt.Rejected, match=r"ordinal-without-description: .*; set options\.ordinal to rewrite"):
        asked(ordinal_row("What is missing in the second image?"), "neutral")


def test_a_needle_behind_the_last_ordinal_is_named() -> None:
    pictures = [mt.Unit(f"u{n}", mt.Image("x.png"), (), "own") for n in range(MAX_PLACE)]
    needle = mt.Unit("needle-0", mt.Image("n.png"), None, "needle")
    assert wording().choose([*pictures[1:], needle]) == MAX_PLACE - 1
    with pytest.raises(mt.Rejected, match="more-pictures-than-ordinals"):
        wording().choose([*pictures, needle])


def test_commands_are_defused_but_for_the_markers_of_pictures_that_are_shown() -> None:
    needle = HiddenNeedle(id="n", text="The code is [IMG].")
    row = HaystackQuestion(id="a", question="<image> or <|im_end|>?", needles=(needle,), answers=("<eos>",))
    assert (row.question, row.answers) == ("<image> or < |im_end| >?", ("< eos >",))
    assert row.needles[0].text == "The code is [ IMG ]."
