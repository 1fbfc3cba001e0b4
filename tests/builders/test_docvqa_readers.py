"""LongDocURL, SlideVQA and documents of one's own: pages counted as each source counts them, bad input named."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from PIL import Image
from rows import cleaned_row

import mmlongbench.task as mt
from builders.docvqa import LongDocURL, OwnDocuments, SlideVQA
from builders.docvqa.rows import DocumentQuestion, format_of, normalise
from builders.samples.docvqa.others import draw_longdocurl, draw_own_documents, draw_slidevqa
from mmlongbench.building.build import build
from mmlongbench.building.executors.local import LocalExecutor
from mmlongbench.building.stages.rows import read_rows
from mmlongbench.errors import ManifestError, MMLongBenchError
from mmlongbench.io.progress import Progress
from mmlongbench.lengths import K
from mmlongbench.manifest.model import DatasetSpec, Manifest

pytestmark = pytest.mark.slow

QUIET = Progress(is_shown=False)
SHARED = Path(__file__).parents[2].parent / "shared/real"
ROWS = Path(__file__).with_name("longdocurl_rows.jsonl")
real = pytest.mark.skipif(not (SHARED / "longdocurl").is_dir(), reason="the real document is not there")

LONG: dict[str, Any] = {
    "question_id": "a",
    "doc_no": "4055915",
    "total_pages": 84,
    "start_end_idx": [42, 71],
    "question_type": "calculate",
    "question": "How many criteria are there?",
    "answer": 5,
    "evidence_pages": [54],
    "evidence_sources": ["Table"],
    "answer_format": "Integer",
    "task_tag": "Reasoning",
}
SLIDE: dict[str, Any] = {"deck_name": "a_deck", "question": "How many?", "answer": "1,066", "evidence_pages": [4]}
OWN: dict[str, Any] = {"doc": "a.pdf", "question": "Who?", "answer": "Tern Rock", "pages": "3"}


def built(out: Path, reader: str, source: Any, **more: Any) -> dict[str, Any]:
    """The lock's account of a dataset."""
    name = {"longdocurl": "longdocurl", "slidevqa": "slidevqa"}.get(reader, "mmlongdoc")
    about = {"name": name, "builder": "docvqa", "reader": reader, "source": source, "lengths": (8 * K,)}
    spec = DatasetSpec.model_validate({**about, **more})
    lock = build(Manifest(datasets=(spec,)), out, LocalExecutor(1, QUIET)).lock.public()
    found: dict[str, Any] = lock["datasets"][name]
    return found


def records(out: Path) -> list[dict[str, Any]]:
    (path,) = sorted(out.glob("mmlb_data/documentQA/*_K8.jsonl"))
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


def rejects(out: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (out / "rejects.jsonl").read_text("utf-8").splitlines()]


def row_of(reader: Any, raw: dict[str, Any]) -> DocumentQuestion:
    found = cleaned_row(reader, "id", raw)
    assert isinstance(found, DocumentQuestion), found
    return found


@pytest.fixture(scope="module")
def drawn_slides(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The sample's decks; not to be changed."""
    return draw_slidevqa(tmp_path_factory.mktemp("slides") / "drawn")


@pytest.fixture
def slides(drawn_slides: dict[str, Path], tmp_path: Path) -> dict[str, Path]:
    """The sample's decks, to be changed."""
    (drawn,) = {path.parent for path in drawn_slides.values()}
    shutil.copytree(drawn, tmp_path / "drawn")
    return {name: tmp_path / "drawn" / path.name for name, path in drawn_slides.items()}


# --- counting pages ---------------------------------------------------------------------------------------------------


def test_pages_and_windows_of_longdocurl_count_from_one() -> None:
    found = row_of(LongDocURL(), LONG)
    assert (found.pages, found.window, found.answer, found.answer_format) == ((53,), (41, 70), ("5",), "Integer")
    assert found.question_type == "Reasoning: calculate"


@real
def test_the_published_row_of_the_real_document_is_about_the_page_with_the_table(tmp_path: Path) -> None:
    """Page 42 from 1 is file 41 from 0, which shows Table 4.16; the answer is long-form, so it is rejected as that."""
    lines = (SHARED / "longdocurl/LongDocURL.jsonl").read_text("utf-8").splitlines()
    found = row_of(LongDocURL(), json.loads(lines[2]))
    assert (found.doc, found.pages, found.window, found.answer_format) == ("4151603", (41,), (23, 52), "List")
    source = {
        "questions": SHARED / "longdocurl/LongDocURL.jsonl",
        "page_images": SHARED / "longdocurl/pdf_pngs",
    }
    lock = built(tmp_path / "out", "longdocurl", source, pages={"dpi": 72}, options={"max_answer_words": 5})
    assert lock["questions"]["rejected"] == {"missing-document": 2, "long-form-answer": 1}
    assert lock["documents"]["images_by_dpi"] == {"72": 1}
    (path,) = source["page_images"].rglob("4151603_41.png")
    document = LongDocURL().documents(source)["4151603"]
    assert isinstance(document, mt.PageImages)
    assert (document.files[found.pages[0]], len(document.files), document.dpi) == (path, 84, 72)


@real
def test_short_answers_about_the_real_document_are_released_with_their_pages(tmp_path: Path) -> None:
    source = {"questions": ROWS, "page_images": SHARED / "longdocurl/pdf_pngs"}
    lock = built(tmp_path / "out", "longdocurl", source, pages={"dpi": 72})
    assert (lock["questions"]["kept"], lock["questions"]["rejected"]) == (13, {})
    for record in records(tmp_path / "out"):
        shown = [int(path.split("page")[1][:-4]) for path in record["page_list"]]
        assert set(record["ans_page_list"]) <= set(shown)
        first, last = map(int, record["span"].split("-"))
        assert first <= shown[0] <= shown[-1] <= last
    page = tmp_path / "out/mmlb_image/longdocurl/4151603/4151603_page41.jpg"
    with Image.open(page) as image:
        assert (image.format, image.size) == ("JPEG", (596, 842))


def test_released_slides_keep_their_names_and_answer_pages_count_from_zero(
    drawn_slides: dict[str, Path], tmp_path: Path
) -> None:
    built(tmp_path / "out", "slidevqa", drawn_slides)
    for record in records(tmp_path / "out"):
        numbers = [int(path.rsplit("-", 2)[1]) for path in record["page_list"]]
        own = [n for n, path in zip(numbers, record["page_list"], strict=True) if record["doc_name"] in path]
        assert set(record["ans_page_list"]) <= {number - 1 for number in own}
        for path in record["page_list"]:
            folder, deck, slide = path.split("/")
            assert folder == "slideVQA"
            assert (tmp_path / "out/mmlb_image" / path).read_bytes() == (
                drawn_slides["decks"] / deck / slide
            ).read_bytes()
    assert {record["id"].split("_")[0] for record in records(tmp_path / "out")} == {"slideVQA"}


def test_a_table_of_ones_own_is_read_in_three_formats_alike(tmp_path: Path) -> None:
    source = draw_own_documents(tmp_path)
    first = list(read_rows(OwnDocuments(), source))
    assert len(first) > 8
    import csv

    with source["questions"].open(encoding="utf-8", newline="") as file:
        table = list(csv.DictReader(file))
    (tmp_path / "q.json").write_text(json.dumps(table))
    (tmp_path / "q.jsonl").write_text("".join(json.dumps(row) + "\n" for row in table))
    for name in ("q.json", "q.jsonl"):
        again = list(read_rows(OwnDocuments(), {**source, "questions": tmp_path / name}))
        assert [row.model_copy(update={"file": "", "place": ""}) for row in again if isinstance(row, mt.Row)] == [
            row.model_copy(update={"file": "", "place": ""}) for row in first if isinstance(row, mt.Row)
        ]


@pytest.mark.parametrize(
    ("pages", "expected"),
    [("4", (3,)), ("3; 5", (2, 4)), ("5, 3", (2, 4)), ("[3, 5]", (2, 4)), (4, (3,)), ([1], (0,))],
)
def test_pages_of_ones_own_questions(pages: object, expected: tuple[int, ...]) -> None:
    assert row_of(OwnDocuments(), {**OWN, "pages": pages}).pages == expected


# --- answers ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "declared", "expected"),
    [
        ("$1,200", "Integer", ("String", ("$1,200",), ("integer-to-string",))),
        ("1,200", "Integer", ("Integer", ("1,200",), ())),
        ("12.5%", "Float", ("Float", ("12.5%",), ())),
        (5.0, "Integer", ("Integer", ("5",), ())),
        (0.5, "Float", ("Float", ("0.5",), ())),
        (["a", 2], "List", ("List", ("a", "2"), ())),
        (["a"], "String", ("List", ("a",), ("string-to-list",))),
        ("Not answerable.", "String", ("None", ("Not answerable",), ("string-to-none",))),
    ],
)
def test_native_answers_are_brought_together_with_their_format(value: object, declared: str, expected: object) -> None:
    found = normalise(value, declared)
    assert not isinstance(found, mt.Fault)
    assert (found.format, found.values, found.repairs) == expected


@pytest.mark.parametrize("value", [None, float("nan"), True, {"a": 1}, [], [""], [["a"], "b"], [None]])
def test_answers_that_are_none_are_refused(value: object) -> None:
    for reader, raw in ((LongDocURL(), LONG), (SlideVQA(), SLIDE), (OwnDocuments(), OWN)):
        found = cleaned_row(reader, "id", {**raw, "answer": value})
        assert isinstance(found, mt.Fault), (reader, found)
        assert found.field == "answer"


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        ("1066", "Integer"),
        ("1,066", "Integer"),
        ("12.5", "Float"),
        ("$3.2 million", "Float"),
        ("45%", "Float"),
        ("Tern Rock", "String"),
        ("2019-04-01", "String"),
        ('["a", "b"]', "List"),
        ("Not answerable", "None"),
    ],
)
def test_the_format_of_an_answer_is_derived_where_the_source_has_none(answer: str, kind: str) -> None:
    assert format_of(answer) == kind


# --- bad input --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"evidence_pages": []}, "no-answer-pages"),
        ({"evidence_pages": None}, "answer-pages-not-a-list"),
        ({"evidence_pages": [0]}, "answer-page-out-of-range"),
        ({"evidence_pages": ["four"]}, "answer-pages-not-a-list"),
        ({"evidence_pages": [4.5]}, "answer-pages-not-a-list"),
        ({"answer_format": "Bool"}, "unknown-answer-format"),
        ({"question": "  "}, "empty-question"),
        ({"question": None}, "missing-or-mistyped-field"),
        ({"doc_no": 4055915}, "missing-or-mistyped-field"),
        ({"start_end_idx": [0, 3]}, "window-out-of-range"),
        ({"start_end_idx": "42-71"}, "window-out-of-range"),
        ({"start_end_idx": [9, 3]}, "window-out-of-range"),
        ({"question": "\ud800"}, "invalid-unicode"),
    ],
)
def test_a_row_of_longdocurl_that_cannot_be_asked_says_why(changed: dict[str, Any], reason: str) -> None:
    found = cleaned_row(LongDocURL(), "id", {**LONG, **changed})
    assert isinstance(found, mt.Fault)
    assert found.reason == reason


def test_pages_as_text_are_taken_as_numbers_and_counted() -> None:
    found = row_of(LongDocURL(), {**LONG, "evidence_pages": ["54"]})
    assert (found.pages, found.repairs) == ((53,), ("answer-pages-as-text",))


@pytest.fixture
def images(tmp_path: Path) -> dict[str, Path]:
    """A document of five page images, and a question about it."""
    folder = tmp_path / "pdf_pngs/4000-4999/4055"
    folder.mkdir(parents=True)
    for number in range(5):
        Image.new("RGB", (612, 792), (200, 40 * number, 90)).save(folder / f"4055915_{number}.png")
    row = {**LONG, "total_pages": 5, "start_end_idx": [1, 5], "evidence_pages": [3]}
    (tmp_path / "q.jsonl").write_text(json.dumps(row) + "\n")
    return {"questions": tmp_path / "q.jsonl", "page_images": tmp_path / "pdf_pngs"}


@pytest.mark.parametrize(("gone", "missing"), [(2, "no 2"), (4, "no 4"), (0, "no 0")])
def test_a_document_that_lacks_a_page_image_is_refused(
    images: dict[str, Path], tmp_path: Path, gone: int, missing: str
) -> None:
    next(images["page_images"].rglob(f"*_{gone}.png")).unlink()
    lock = built(tmp_path / "out", "longdocurl", images, pages={"dpi": 72})
    assert lock["questions"]["rejected"] == {"missing-pages": 1}
    assert missing in rejects(tmp_path / "out")[0]["found"]


def test_page_images_are_not_mixed_with_pages_of_another_dpi(images: dict[str, Path], tmp_path: Path) -> None:
    with pytest.raises(ManifestError, match=r"images of 72 DPI, pages\.dpi is 144; set pages\.dpi to 72"):
        built(tmp_path / "out", "longdocurl", images)


def test_a_document_that_is_a_pdf_and_images_is_taken_from_its_pdf(images: dict[str, Path], tmp_path: Path) -> None:
    drawn = draw_longdocurl(tmp_path / "drawn")
    pdf = next(drawn["documents"].glob("*.pdf"))
    (tmp_path / "pdfs").mkdir()
    shutil.copy(pdf, tmp_path / "pdfs/4055915.pdf")
    found = LongDocURL().documents({**images, "documents": tmp_path / "pdfs"})
    assert found == {"4055915": tmp_path / "pdfs/4055915.pdf"}


def test_neither_pdfs_nor_images_is_an_error(images: dict[str, Path]) -> None:
    with pytest.raises(MMLongBenchError, match=r"source\.documents"):
        LongDocURL().documents({"questions": images["questions"]})


def test_a_broken_page_image_refuses_its_document(images: dict[str, Path], tmp_path: Path) -> None:
    next(images["page_images"].rglob("*_2.png")).write_bytes(b"no picture")
    lock = built(tmp_path / "out", "longdocurl", images, pages={"dpi": 72})
    assert lock["questions"]["rejected"] == {"broken-page": 1}


def test_a_deck_that_is_not_there_and_slides_that_are_not_there_are_named(
    slides: dict[str, Path], tmp_path: Path
) -> None:
    rows = [json.loads(line) for line in slides["questions"].read_text().splitlines()]
    gone, lacking, _ = decks = sorted(slides["decks"].iterdir())
    lost = next(row["evidence_pages"][0] for row in rows if row["deck_name"] == lacking.name)
    shutil.rmtree(gone)
    next(lacking.glob(f"*-{lost}-1024.jpg")).unlink()
    lock = built(tmp_path / "out", "slidevqa", slides)
    of_lost = [row for row in rows if row["deck_name"] == lacking.name and lost in row["evidence_pages"]]
    of_gone = [row for row in rows if row["deck_name"] == gone.name]
    rejected = {"missing-document": len(of_gone), "missing-answer-page": len(of_lost)}
    assert lock["questions"]["rejected"] == rejected
    assert lock["questions"]["kept"] == len(rows) - sum(rejected.values())
    assert len(decks) == 3


@pytest.mark.parametrize("are_named", [True, False])
def test_slides_keep_their_numbers_and_names_beside_a_gap(
    are_named: bool, slides: dict[str, Path], tmp_path: Path
) -> None:
    deck = sorted(slides["decks"].iterdir())[0]
    before = SlideVQA().documents(slides)[deck.name]
    assert isinstance(before, mt.PageImages)
    next(deck.glob("*-2-1024.jpg")).unlink()
    if not are_named:
        rows = [json.loads(line) | {"image_urls": None} for line in slides["questions"].read_text().splitlines()]
        slides["questions"].write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    after = SlideVQA().documents(slides)[deck.name]
    assert isinstance(after, mt.PageImages)
    assert after.missing == (1,)
    assert after.numbers == (0, *before.numbers[2:])
    assert after.names == (before.names[0], *before.names[2:])
    notes = SlideVQA().notes(slides, mt.Options())
    assert notes == (f"slides that the source lacks are shown in no context: {deck.name} (2)",)


def test_a_deck_whose_slides_count_from_0_is_refused(tmp_path: Path) -> None:
    deck = tmp_path / "decks/a_deck"
    deck.mkdir(parents=True)
    for number in (0, 1):
        Image.new("RGB", (64, 48)).save(deck / f"a-{number}-1024.jpg")
    (tmp_path / "q.jsonl").write_text(json.dumps(SLIDE) + "\n")
    found = SlideVQA().documents({"questions": tmp_path / "q.jsonl", "decks": tmp_path / "decks"})["a_deck"]
    assert str(found) == "a_deck: slide-number: expected slides numbered from 1, found a-0-1024.jpg; number them from 1"


def test_slides_with_names_that_loaders_cannot_take_get_another(tmp_path: Path) -> None:
    deck = tmp_path / "decks/a_deck"
    deck.mkdir(parents=True)
    for number in (1, 2, 3):
        Image.new("RGB", (64, 48)).save(deck / f'a "deck"-{number}-1024.jpg')
    (tmp_path / "q.jsonl").write_text(json.dumps({**SLIDE, "evidence_pages": [2]}) + "\n")
    found = SlideVQA().documents({"questions": tmp_path / "q.jsonl", "decks": tmp_path / "decks"})["a_deck"]
    assert isinstance(found, mt.PageImages)
    assert found.names == ("a-deck-1-1024.jpg", "a-deck-2-1024.jpg", "a-deck-3-1024.jpg")


@pytest.mark.parametrize(
    "text", ["doc,question,answer\na.pdf,Who?,I\n", "", "doc,question,answer,pages\n\xff".encode("latin-1")]
)
def test_a_table_without_its_columns_is_an_error(tmp_path: Path, text: str | bytes) -> None:
    path = tmp_path / "q.csv"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(MMLongBenchError, match=r"q\.csv"):
        list(read_rows(OwnDocuments(), {"questions": path, "documents": tmp_path}))


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (
            b"document;question;answer;page\na;Who?;I;1\n",
            "found no doc, pages; rename 'document' to 'doc', 'page' to 'pages'",
        ),
        (
            b"doc,question,answer,pages,doc\na,Who?,I,1,b\n",
            "line 1: wrong-columns: expected each column once, found 'doc'",
        ),
        (
            "doc,question,answer,pages\n".encode("utf-16-le"),
            "expected CSV in UTF-8, found UTF-16; save it as CSV UTF-8",
        ),
        (
            "doc,question,answer,pages\na,Who?,Café,1\n".encode("latin-1"),
            "line 2: unreadable-source: expected CSV in UTF-8, found the byte 0xe9, as Latin-1 or Windows-1252 have it",
        ),
        (b"doc,question\na,Who?\n", "expected a header with doc, question, answer, pages, found no answer, pages"),
    ],
    ids=["other-names", "twice", "utf-16-without-mark", "latin-1", "missing"],
)
def test_a_table_of_another_form_is_told_by_its_cause(data: bytes, said: str, tmp_path: Path) -> None:
    path = tmp_path / "q.csv"
    path.write_bytes(data)
    with pytest.raises(mt.SourceError) as refused:
        list(read_rows(OwnDocuments(), {"questions": path, "documents": tmp_path}))
    assert str(refused.value).startswith("q.csv")
    assert said in str(refused.value)


def test_a_nul_in_a_cell_is_named_and_the_other_rows_are_read(tmp_path: Path) -> None:
    path = tmp_path / "q.csv"
    path.write_bytes(b"doc,question,answer,pages\na,Who?,I\0,1\na,Who?,I,1\n")
    first, second = read_rows(OwnDocuments(), {"questions": path, "documents": tmp_path})
    assert isinstance(first, mt.RowFault)
    assert (
        str(first.fault)
        == "q.csv, line 2, answer: invalid-text: expected a cell of text, found a NUL character; remove the character"
    )
    assert not isinstance(second, mt.RowFault)


@pytest.mark.parametrize(
    ("pages", "todo"),
    [
        ("3-6", "write 3; 4; 5; 6"),
        ("3 – 4", "write 3; 4"),
        ("3 and 6", "write 3; 6"),
        ("6-3", "write 6; 3"),
        ("1-99999", "write 1; 99999"),
    ],
)
def test_pages_in_words_or_as_a_range_are_answered_with_how_to_write_them(pages: str, todo: str) -> None:
    found = cleaned_row(OwnDocuments(), "own_0", {**OWN, "pages": pages})
    assert isinstance(found, mt.Fault)
    assert (found.reason, found.field, found.todo) == ("answer-pages-not-a-list", "pages", todo)


def test_a_row_of_too_few_or_too_many_cells_is_named_and_the_others_are_read(tmp_path: Path) -> None:
    path = tmp_path / "q.csv"
    path.write_text("doc,question,answer,pages\na.pdf,Who?,I,1\na.pdf,Who?\na.pdf,Who?,I,1,2\n")
    found = list(read_rows(OwnDocuments(), {"questions": path, "documents": tmp_path}))
    assert [type(row).__name__ for row in found] == ["DocumentQuestion", "RowFault", "RowFault"]
    assert [row.fault.place for row in found if isinstance(row, mt.RowFault)] == ["line 3", "line 4"]


# --- hostile page images ----------------------------------------------------------------------------------------------


def test_a_number_of_pages_that_no_document_has_costs_no_memory(images: dict[str, Path], tmp_path: Path) -> None:
    row = json.loads(images["questions"].read_text())
    images["questions"].write_text(json.dumps({**row, "total_pages": 10_000_000_000}) + "\n")
    assert built(tmp_path / "out", "longdocurl", images, pages={"dpi": 72})["questions"]["rejected"] == {
        "missing-pages": 1
    }
    deck = tmp_path / "decks/a_deck"
    deck.mkdir(parents=True)
    Image.new("RGB", (64, 48)).save(deck / "a-99999999-1024.jpg")
    (tmp_path / "q.jsonl").write_text(json.dumps(SLIDE) + "\n")
    found = SlideVQA().documents({"questions": tmp_path / "q.jsonl", "decks": tmp_path / "decks"})["a_deck"]
    assert isinstance(found, mt.Fault)
    assert found.reason == "missing-pages"


def test_a_slide_cut_short_refuses_its_deck_before_anything_is_packed(slides: dict[str, Path], tmp_path: Path) -> None:
    deck = sorted(slides["decks"].iterdir())[0]
    slide = sorted(deck.iterdir())[5]
    slide.write_bytes(slide.read_bytes()[:-4000])
    lock = built(tmp_path / "out", "slidevqa", slides)
    assert lock["questions"]["rejected"].keys() == {"broken-page"}
    assert not [path for record in records(tmp_path / "out") for path in record["page_list"] if deck.name in path]


def test_a_deck_in_two_resolutions_is_shown_in_the_one_its_questions_name(
    slides: dict[str, Path], tmp_path: Path
) -> None:
    for slide in sorted(slides["decks"].rglob("*-1024.jpg")):
        Image.new("RGB", (638, 479)).save(slide.with_name(slide.name.replace("-1024", "-638")))
    assert built(tmp_path / "out", "slidevqa", slides)["questions"]["rejected"] == {}
    text = "".join(
        json.dumps({key: value for key, value in json.loads(line).items() if key != "image_urls"}) + "\n"
        for line in slides["questions"].read_text().splitlines()
    )
    slides["questions"].write_text(text)
    found = SlideVQA().documents(slides)
    assert {fault.reason for fault in found.values() if isinstance(fault, mt.Fault)} == {"two-slides-of-one-number"}


def test_what_is_transparent_is_white_and_a_jpeg_stays_what_it_is(images: dict[str, Path], tmp_path: Path) -> None:
    page = next(images["page_images"].rglob("*_2.png"))
    Image.new("RGBA", (612, 792), (0, 0, 0, 0)).save(page)
    built(tmp_path / "out", "longdocurl", images, pages={"dpi": 72})
    with Image.open(tmp_path / "out/mmlb_image/longdocurl/4055915/4055915_page2.jpg") as released:
        assert released.convert("RGB").getpixel((300, 300)) == (255, 255, 255)
    deck = tmp_path / "decks/a_deck"
    deck.mkdir(parents=True)
    for number in (1, 2):
        Image.effect_noise((640, 480), 30).save(deck / f"a-{number}-1024.JPEG")
    (tmp_path / "slides.jsonl").write_text(json.dumps({**SLIDE, "evidence_pages": [2]}) + "\n")
    built(tmp_path / "slides", "slidevqa", {"questions": tmp_path / "slides.jsonl", "decks": tmp_path / "decks"})
    released_slide = tmp_path / "slides/mmlb_image/slideVQA/a_deck/a-2-1024.JPEG"
    assert released_slide.read_bytes() == (deck / "a-2-1024.JPEG").read_bytes()


def test_lone_surrogates_in_a_table_of_ones_own_are_named(tmp_path: Path) -> None:
    (tmp_path / "q.json").write_text(json.dumps([{**OWN, "id": "\ud83d"}, {**OWN, "answer": "a \ud800"}, OWN]))
    found = list(read_rows(OwnDocuments(), {"questions": tmp_path / "q.json", "documents": tmp_path}))
    assert [row.fault.reason for row in found if isinstance(row, mt.RowFault)] == ["invalid-unicode"] * 2


@pytest.mark.parametrize("text", ["€5", "¥ 1,200", "-$5", "--5", "+$5", "$£5"])
def test_what_the_public_scorer_cannot_read_as_a_number_is_released_as_text(text: str) -> None:
    """It strips one unit from each end and calls `float`, which would end the whole evaluation."""
    found = normalise(text, "Float")
    assert not isinstance(found, mt.Fault)
    assert found.format == format_of(text) == "String"
