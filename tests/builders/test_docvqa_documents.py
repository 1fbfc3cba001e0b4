"""Documents of document questions: page images in folders, decks in folders and tables, parsed pages."""

import base64
import json
import shutil
import tracemalloc
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pymupdf
import pytest
from hub_forms import json_lines_of, slide_rows, write_slides
from one_dataset import built, ran, write_lines
from PIL import Image
from samples import Sources
from tiny import draw_pdf

import mmlongbench as mm
import mmlongbench.task as mt
from builders.docvqa import DocVQAOptions, LongDocURL, MLongDoc, OwnDocuments, SlideVQA
from mmlongbench.building.build_dir import BuildDir
from mmlongbench.building.planning import plan_datasets
from mmlongbench.building.stages.rows import read_rows
from mmlongbench.io.progress import Progress
from mmlongbench.lengths import K
from mmlongbench.manifest.binding import bind
from mmlongbench.manifest.model import DatasetSpec

Rows = list[dict[str, Any]]


def draw(folder: Path, *names: str) -> Path:
    """Write images, each of another colour."""
    for number, name in enumerate(names):
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.new("RGB", (60, 80), (number, 0, 0)).save(path)
    return folder


def pages(found: object) -> mt.readers.PageImages:
    assert isinstance(found, mt.readers.PageImages), found
    return found


def fault(found: object) -> mt.Fault:
    assert isinstance(found, mt.Fault), found
    assert found.todo
    return found


# --- documents of one's own -------------------------------------------------------------------------------------------


def own(folder: Path) -> dict[str, list[str] | mt.Fault]:
    """The files of each document, or what is wrong with it."""
    found = OwnDocuments().documents({"documents": folder})
    return {
        id: [file.relative_to(folder).as_posix() for file in each.files]
        if isinstance(each, mt.readers.PageImages)
        else fault(each)
        for id, each in found.items()
        if not isinstance(each, Path)
    }


def test_pages_of_a_document_are_a_folder_or_files_with_its_name_in_the_order_of_their_numbers(tmp_path: Path) -> None:
    several = ("a-2019_1.jpg", "a-2019_2.jpg", "c-1.png", "c-2.jpeg", "d_page0.jpg", "d_page1.jpg", "e p 1.jpg")
    draw(tmp_path, *(f"tide report/{number}.jpg" for number in range(1, 12)), "b/page-02.PNG", "b/page-1.png")
    draw(tmp_path, *several, "f_page_1.jpg")
    assert own(tmp_path) == {
        "tide report": [f"tide report/{number}.jpg" for number in range(1, 12)],
        "b": ["b/page-1.png", "b/page-02.PNG"],
        "a-2019": ["a-2019_1.jpg", "a-2019_2.jpg"],
        "c": ["c-1.png", "c-2.jpeg"],
        "d": ["d_page0.jpg", "d_page1.jpg"],
        "e": ["e p 1.jpg"],
        "f": ["f_page_1.jpg"],
    }


@pytest.mark.parametrize(
    ("names", "reason", "facts"),
    [
        (("a/1.jpg", "a/2.jpg", "a/5.jpg"), "missing-pages", "pages 1 to 5 of a, found no 3, 4;"),
        (("a/4.jpg", "a/5.jpg"), "missing-pages", "pages 1 to 5 of a, found no 1, 2, 3;"),
        (("a/0.jpg", "a/2.jpg"), "missing-pages", "pages 0 to 2 of a, found no 1;"),
        (("a/999999.jpg",), "missing-pages", "pages 1 to 999999 of a, found no 1, 2, 3, 4, 5 …;"),
        (("a/1.jpg", "a/01.png"), "two-pages-of-one-number", "found a/01.png and a/1.jpg;"),
        (("a/1.jpg", "a/cover.jpg"), "page-without-number", "of a, found a/cover.jpg"),
        (("x/a/1.jpg", "y/a/1.jpg"), "two-documents-of-one-name", "found x/a/1.jpg, y/a/1.jpg"),
    ],
)
def test_pages_that_are_no_document_are_told_by_their_cause(
    names: tuple[str, ...], reason: str, facts: str, tmp_path: Path
) -> None:
    found = fault(own(draw(tmp_path / "docs", *names))["a"])
    assert found.reason == reason
    assert facts in str(found)


def test_pdfs_and_page_images_are_mixed_and_what_is_not_used_is_counted(
    sample: Callable[[str], Sources], tmp_path: Path
) -> None:
    source = {**sample("own_documents"), "documents": tmp_path / "docs"}
    shutil.copytree(sample("own_documents")["documents"], tmp_path / "docs")
    first, second, *_ = sorted(source["documents"].glob("*.pdf"))
    draw(source["documents"], "tide/1.jpg", "tide/2.jpg", "logo.png", "sub/cover.jpg", f"{first.stem}/1.jpg")
    shutil.copyfile(second, source["documents"] / "sub/inner.pdf")
    draw(tmp_path, "elsewhere/1.jpg", "docs/linked/2.jpg")
    (tmp_path / "docs/linked/1.jpg").symlink_to(tmp_path / "elsewhere/1.jpg")
    found = OwnDocuments().documents(source)
    assert (found["inner"], found[second.stem]) == (source["documents"] / "sub/inner.pdf", second)
    assert [file.name for file in pages(found["tide"]).files] == ["1.jpg", "2.jpg"]
    twice = fault(found[first.stem])
    assert (twice.reason, twice.found) == ("two-documents-of-one-name", f"{first.name} and {first.stem}/1.jpg")
    assert fault(found["linked"]).reason == "path-outside-source"
    documents, unused = OwnDocuments().notes(source, DocVQAOptions())
    assert documents == "docs: documents of page images (number of pages): tide (2)"
    assert unused.startswith("docs: not used: 1 JPG, 1 PNG;")


def test_a_folder_without_documents_is_told_what_it_holds(tmp_path: Path) -> None:
    draw(tmp_path, "docs/p.jpg", "docs/q.JPEG", "docs/r.png")
    (tmp_path / "docs/notes.txt").touch()
    (tmp_path / "none").mkdir()
    for name, held in (("docs", "0 PDFs, 2 JPGs, 1 PNG, 1 TXT here"), ("none", "0 PDFs, an empty folder")):
        with pytest.raises(mt.readers.SourceError, match=rf"^{name}: no-documents: .*found {held};"):
            OwnDocuments().documents({"documents": tmp_path / name})


# --- page images of LongDocURL ----------------------------------------------------------------------------------------


def test_damaged_blank_and_hidden_pages_are_named_and_no_padding(tmp_path: Path) -> None:
    line = "The dues of the harbour of Port Ellery are in the book of the year, on line"
    Image.linear_gradient("L").save(tmp_path / "photo.jpg")
    (tmp_path / "documents").mkdir()
    with pymupdf.open() as harbour, pymupdf.open() as minutes:
        for number in range(3):
            harbour.new_page().insert_text((60, 100), f"{line} {number}")
        broken = harbour[1].insert_image((60, 200, 300, 400), filename=tmp_path / "photo.jpg")
        harbour.xref_set_key(broken, "Filter", "/FooDecode")
        harbour.save(tmp_path / "documents" / "harbour.pdf")
        minutes.new_page()
        minutes.new_page().insert_text((60, 100), f"{line} 7")
        minutes[1].insert_text((60, 200), "WHITE", color=(1, 1, 1))
        minutes.save(tmp_path / "documents" / "minutes.pdf")
    places = (("harbour", 1), ("harbour", 2), ("minutes", 1), ("minutes", 2))
    rows = [
        {"id": f"{doc}{page}", "doc": doc, "question": "Which?", "answer": "7", "pages": [page]} for doc, page in places
    ]
    source = {"questions": write_lines(tmp_path / "rows.jsonl", rows), "documents": tmp_path / "documents"}
    options = {"pages_as": "text", "text_fill": "budget"}
    dataset = {"name": "own", "builder": "docvqa", "reader": "own_documents", "source": source, "options": options}
    release = built(tmp_path / "out", dataset)
    counts = release.lock["documents"]
    assert (counts["damaged"].keys(), counts["hidden_text"]) == ({"harbour"}, {"minutes": 1})
    assert counts["damaged"]["harbour"].keys() == {"2"}
    assert "harbour, page 2: not drawn whole" in release.out
    assert "minutes: 1 (pages by document)" in release.out
    assert release.questions["rejected"] == {"damaged-answer-page": 1}
    assert release.questions["noted"]["answer page of one colour (minutes, page 1)"] == 1
    (reject,) = release.rejects()
    assert (reject["id"], reject["expected"]) == ("harbour2", "page 2 of harbour to be drawn whole")
    shown = {record["id"]: [path[-17:] for path in record["page_list"]] for record in release.records()}
    own, other = [f"harbour_page{n}.jpg" for n in range(3)], [f"minutes_page{n}.jpg" for n in range(2)]
    assert {*shown["harbour1"]} == {*own, other[1]}
    assert {*shown["minutes1"]} == {*shown["minutes2"]} == {*other, own[0], own[2]}
    assert not any("WHITE" in text for record in release.records() for text in record["page_text_list"])
    assert release.lock["cells"]["8K"]["left_out"] == {"damaged page": 2, "page of one colour": 1}


def longdocurl(source: Any, **more: Any) -> dict[str, Any]:
    common = {"name": "longdocurl", "builder": "docvqa", "reader": "longdocurl", "source": source}
    return {**common, "pages": {"dpi": 72}, **more}


@pytest.fixture
def published(tmp_path: Path) -> dict[str, Path]:
    """A document of five page images, and a question about it."""
    folder = tmp_path / "pdf_pngs/4000-4999/4055"
    folder.mkdir(parents=True)
    for number in range(5):
        Image.new("RGB", (612, 792), (200, 40 * number, 90)).save(folder / f"4055915_{number}.png")
    about = {"doc_no": "4055915", "total_pages": 5, "start_end_idx": [1, 5], "evidence_pages": [3]}
    asked = {"question": "How many?", "answer": 5, "answer_format": "Integer", "evidence_sources": ["Table"]}
    write_lines(tmp_path / "q.jsonl", [{**about, **asked}])
    return {"questions": tmp_path / "q.jsonl", "page_images": tmp_path / "pdf_pngs"}


def test_published_pages_are_in_order_at_72_dpi_and_a_pdf_goes_before_them(
    published: dict[str, Path], tmp_path: Path
) -> None:
    document = pages(LongDocURL().documents(published)["4055915"])
    assert [file.name for file in document.files] == [f"4055915_{number}.png" for number in range(5)]
    assert document.dpi == 72
    pdf = tmp_path / "pdfs/4055915.pdf"
    pdf.parent.mkdir()
    pdf.touch()
    assert LongDocURL().documents({**published, "documents": pdf.parent}) == {"4055915": pdf}


def test_a_document_that_lacks_a_page_or_has_one_twice_is_refused(published: dict[str, Path]) -> None:
    files = sorted(published["page_images"].rglob("*.png"))
    copy = published["page_images"] / "copy" / files[1].name
    copy.parent.mkdir()
    copy.write_bytes(files[1].read_bytes())
    pages(LongDocURL().documents(published)["4055915"])
    copy.write_bytes(files[2].read_bytes())
    assert fault(LongDocURL().documents(published)["4055915"]).reason == "two-documents-of-one-name"
    copy.unlink()
    for number in (2, 4, 0):
        data = files[number].read_bytes()
        files[number].unlink()
        found = fault(LongDocURL().documents(published)["4055915"])
        assert (found.reason, found.expected, found.found) == (
            "missing-pages",
            "pages 0 to 4 of 4055915",
            f"no {number}",
        )
        files[number].write_bytes(data)
    row = json_lines_of(published["questions"])[0]
    write_lines(published["questions"], [{**row, "total_pages": 10_000_000_000}])  # costs no memory
    assert fault(LongDocURL().documents(published)["4055915"]).found.startswith("no 5, 6, 7")
    with pytest.raises(mm.MMLongBenchError, match=r"source\.documents"):
        LongDocURL().documents({"questions": published["questions"]})


def test_published_pages_are_released_as_they_look_and_not_at_another_dpi(
    published: dict[str, Path], tmp_path: Path
) -> None:
    refused = ran(tmp_path / "none", longdocurl(published, pages={"dpi": 144}))
    assert refused.code == 2
    assert all(fact in refused.err for fact in ("images of 72 DPI", "pages.dpi is 144", "set pages.dpi to 72"))
    page = next(published["page_images"].rglob("*_2.png"))
    Image.new("RGBA", (612, 792), (0, 0, 0, 0)).save(page)
    release = built(tmp_path / "out", longdocurl(published))
    with Image.open(release.folder / "mmlb_image/longdocurl/4055915/4055915_page2.jpg") as released:
        assert released.convert("RGB").getpixel((300, 300)) == (255, 255, 255)  # what is transparent is white
    assert release.lock["documents"]["images_by_dpi"] == {"72": 1}


# --- decks in folders -------------------------------------------------------------------------------------------------


def slidevqa(source: Any, **more: Any) -> dict[str, Any]:
    return {"name": "slidevqa", "builder": "docvqa", "reader": "slidevqa", "source": source, **more}


@pytest.fixture
def slides(sample: Callable[[str], Sources], tmp_path: Path) -> dict[str, Path]:
    """The sample's decks and questions in the form of the authors' repository, to be changed."""
    folder = sample("slidevqa")["decks"].parent
    shutil.copytree(folder, tmp_path / "drawn")
    return {name: tmp_path / "drawn" / path.name for name, path in sample("slidevqa").items()}


def without_names(slides: dict[str, Path]) -> None:
    """Take the names of slides out of the questions."""
    write_lines(slides["questions"], [{**row, "image_urls": None} for row in json_lines_of(slides["questions"])])


def decks(folder: Path, *names: str) -> dict[str, Path]:
    """One deck of small slides, and a question about its second one."""
    draw(folder / "decks/a_deck", *names)
    asked = {"deck_name": "a_deck", "question": "How many?", "answer": "1,066", "evidence_pages": [2]}
    return {"questions": write_lines(folder / "q.jsonl", [asked]), "decks": folder / "decks"}


def test_released_slides_keep_their_names_and_bytes_and_answer_pages_count_from_zero(
    sample: Callable[[str], Sources], families: Path
) -> None:
    for record in (example.record for example in mm.open_release(families).examples("slidevqa", "16K")):
        shown = [path.split("/") for path in record["page_list"]]
        own_pages = {int(slide.rsplit("-", 2)[1]) - 1 for _, deck, slide in shown if deck == record["doc_name"]}
        assert record["ans_page_list"]
        assert set(record["ans_page_list"]) <= own_pages
        assert record["id"].startswith("slideVQA_")
        for folder, deck, slide in shown:
            assert folder == "slideVQA"
            released = families / "mmlb_image" / folder / deck / slide
            assert released.read_bytes() == (sample("slidevqa")["decks"] / deck / slide).read_bytes()


@pytest.mark.parametrize("are_named", [True, False])
def test_slides_keep_their_numbers_and_names_beside_a_gap(are_named: bool, slides: dict[str, Path]) -> None:
    deck = sorted(slides["decks"].iterdir())[0]
    before = pages(SlideVQA().documents(slides)[deck.name])
    next(deck.glob("*-2-1024.jpg")).unlink()
    if not are_named:
        without_names(slides)
    after = pages(SlideVQA().documents(slides)[deck.name])
    assert after.missing == (1,)
    assert after.numbers == (0, *before.numbers[2:])
    assert after.names == (before.names[0], *before.names[2:])
    notes = SlideVQA().notes(slides, mt.Options())
    assert notes == [f"slides that the source lacks are shown in no context: {deck.name} (2)"]


@pytest.mark.parametrize(
    ("names", "reason", "found"),
    [
        (("a-0-1024.jpg", "a-1-1024.jpg"), "slide-number", "a-0-1024.jpg"),
        (("a-1-1024.jpg", "a-1-638.jpg"), "two-slides-of-one-number", "a-1-1024.jpg, a-1-638.jpg"),
        (("a-99999999-1024.jpg",), "missing-pages", "no slide 1, slide 2, slide 3, slide 4, slide 5"),
        (("cover.jpg",), "missing-pages", "no slide"),
    ],
)
def test_a_deck_that_cannot_be_numbered_is_refused(
    names: tuple[str, ...], reason: str, found: str, tmp_path: Path
) -> None:
    refused = fault(SlideVQA().documents(decks(tmp_path, *names))["a_deck"])
    assert (refused.reason, refused.found) == (reason, found)


def test_slides_with_names_that_loaders_cannot_take_get_another_and_jpegs_stay_what_they_are(tmp_path: Path) -> None:
    found = SlideVQA().documents(decks(tmp_path, *(f'a "deck"-{number}-1024.jpg' for number in (1, 2, 3))))["a_deck"]
    assert pages(found).names == tuple(f"a-deck-{number}-1024.jpg" for number in (1, 2, 3))
    source = decks(tmp_path / "b", "a-1-1024.jpg", "a-2-1024.jpg")
    for slide in source["decks"].rglob("*.jpg"):
        Image.effect_noise((640, 480), 30).save(slide.with_suffix(".JPEG"))
        slide.unlink()
    images = built(tmp_path / "out", slidevqa(source)).images()
    assert images["slideVQA/a_deck/a-2-1024.JPEG"] == (source["decks"] / "a_deck/a-2-1024.JPEG").read_bytes()


def test_a_deck_in_two_resolutions_is_shown_in_the_one_its_questions_name(slides: dict[str, Path]) -> None:
    before = SlideVQA().documents(slides)
    for slide in sorted(slides["decks"].rglob("*-1024.jpg")):
        slide.with_name(slide.name.replace("-1024", "-638")).touch()
    assert SlideVQA().documents(slides) == before
    without_names(slides)
    assert {fault(found).reason for found in SlideVQA().documents(slides).values()} == {"two-slides-of-one-number"}


def test_only_questions_about_what_is_not_there_are_rejected(slides: dict[str, Path], tmp_path: Path) -> None:
    rows = json_lines_of(slides["questions"])
    gone, lacking, cut = sorted(slides["decks"].iterdir())
    lost = next(row["evidence_pages"][0] for row in rows if row["deck_name"] == lacking.name)
    shutil.rmtree(gone)
    next(lacking.glob(f"*-{lost}-1024.jpg")).unlink()
    slide = sorted(cut.iterdir())[5]
    slide.write_bytes(slide.read_bytes()[:-4000])
    release = built(tmp_path / "out", slidevqa(slides))
    about = {deck: [row for row in rows if row["deck_name"] == deck.name] for deck in (gone, lacking, cut)}
    of_lost = [row for row in about[lacking] if lost in row["evidence_pages"]]
    rejected = {"missing-document": len(about[gone]), "broken-page": len(about[cut])}
    assert release.questions["rejected"] == {**rejected, "missing-answer-page": len(of_lost)}
    assert release.questions["kept"] == len(about[lacking]) - len(of_lost) > 0
    shown = {path.split("/")[1] for record in release.records() for path in record["page_list"]}
    assert shown == {lacking.name}


# --- decks in the hub's tables ----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def drawn(sample: Callable[[str], Sources]) -> Rows:
    """The sample's rows in the hub's form; not to be changed."""
    return slide_rows(sample("slidevqa"))


@pytest.fixture
def rows(drawn: Rows) -> Rows:
    return [dict(row) for row in drawn]


def in_files(rows: Sequence[dict[str, Any]], folder: Path, split: str = "test", count: int = 3) -> Path:
    """Write a split as the hub does, as several files."""
    size = -(-len(rows) // count)
    for number in range(count):
        part = rows[number * size : (number + 1) * size]
        write_slides(part, folder / f"data/{split}-{number:05d}-of-{count:05d}.parquet")
    return folder / "data"


def extracted(source: Path, folder: Path) -> dict[str, mt.readers.Pages | mt.Fault]:
    """The decks of Parquet files, as a build finds them."""
    reader = SlideVQA()
    folder.mkdir()
    reader.extract({"questions": source}, folder)
    return dict(reader.documents({"questions": source, **{path.name: path for path in folder.iterdir()}}))


def without_type(records: Rows) -> Rows:
    """Records without what the hub's rows do not have."""
    return [{key: value for key, value in record.items() if key != "question_type"} for record in records]


def test_both_forms_give_the_same_examples_images_and_rejects_beside_gaps(
    slides: dict[str, Path], tmp_path: Path
) -> None:
    """A deck lacks one page that is asked about and one that is not."""
    asked = json_lines_of(slides["questions"])
    deck, lost = asked[0]["deck_name"], asked[0]["evidence_pages"][0]
    needed = {number for row in asked if row["deck_name"] == deck for number in row["evidence_pages"]}
    gap = next(number for number in range(2, 10) if number not in needed and abs(number - lost) > 1)
    for number in (lost, gap):
        next((slides["decks"] / deck).glob(f"*-{number}-1024.jpg")).unlink()
    hub = built(tmp_path / "hub", slidevqa({"questions": in_files(slide_rows(slides), tmp_path)}))
    github = built(tmp_path / "github", slidevqa(slides))
    assert {record["question_type"] for record in github.records()} == {"Single-Hop"}
    assert hub.records() == without_type(github.records())
    assert hub.images() == github.images()
    assert [row["reason"] for row in hub.rejects()] == [row["reason"] for row in github.rejects()]
    about = [row for row in asked if row["deck_name"] == deck and lost in row["evidence_pages"]]
    assert hub.questions["rejected"] == {"missing-answer-page": len(about)}
    assert hub.questions["kept"] == len(asked) - len(about)
    first = hub.rejects()[0]
    assert (first["id"], first["expected"]) == ("slideVQA_0", f"page {lost} of {deck}")
    (dataset,) = json.loads((hub.folder / "build.lock.json").read_bytes())["manifest"]
    assert dataset["source"]["questions"]["files"] == 3
    for record in hub.records():
        numbers = [int(path.split("-")[-2]) for path in record["page_list"] if path.split("/")[1] == deck]
        assert not {gap, lost} & set(numbers)
        assert numbers == sorted(numbers)
        if record["doc_name"] == deck:
            assert {number + 1 for number in record["ans_page_list"]} <= set(numbers)
            spans = gap - 1 in numbers and gap + 1 in numbers
            assert (f"{gap - 1}-{gap - 1}" in record["gaps"].split(", ")) == spans
    assert not [path for path in hub.images() if f"/{deck}/" in path and f"-{gap}-" in path]


def test_a_question_without_an_answer_is_asked_around_a_page_that_is_there(rows: Rows, tmp_path: Path) -> None:
    for row in rows:
        row |= {"answer": "Not answerable", "evidence_pages": [], "page_1": None, "page_3": None}
    few = [
        next(row for row in rows if row["deck_name"] == deck) for deck in sorted({row["deck_name"] for row in rows})[:2]
    ]
    source = {"questions": write_slides(few, tmp_path / "test.parquet")}
    for number, options in enumerate(({}, {"unanswerable_anchor": "middle"}, {"context": "natural"})):
        release = built(tmp_path / f"out{number}", slidevqa(source, options=options, lengths=["2K"]))
        assert release.questions["rejected"] == {}
        for record in release.records(2):
            shown = {(path.split("/")[1], int(path.split("-")[-2])) for path in record["page_list"]}
            assert {(record["doc_name"], page + 1) for page in record["anchor_page_list"]} <= shown
            assert not {number for _, number in shown} & {1, 3}


def test_each_deck_is_written_once_however_often_rows_repeat_it(
    rows: Rows, sample: Callable[[str], Sources], tmp_path: Path
) -> None:
    found = extracted(in_files([*rows, *rows], tmp_path), tmp_path / "out")
    counts = {row["deck_name"]: sum(1 for n in range(1, 21) if row[f"page_{n}"]) for row in rows}
    assert {deck: len(pages(each).files) for deck, each in found.items()} == counts
    assert len([*(tmp_path / "out").rglob("*.jpg")]) == sum(counts.values())
    given = {**sample("slidevqa"), "questions": write_slides(rows, tmp_path / "test.parquet")}
    (tmp_path / "none").mkdir()
    SlideVQA().extract(given, tmp_path / "none")  # the decks of the manifest are read instead
    assert [*(tmp_path / "none").iterdir()] == []
    assert SlideVQA().documents(given) == SlideVQA().documents(sample("slidevqa"))


def test_a_second_plan_uses_written_pages_again_unless_a_source_changed(rows: Rows, tmp_path: Path) -> None:
    source, build_dir = in_files(rows, tmp_path), BuildDir(tmp_path / "out")
    spec = {**slidevqa({"questions": source}), "lengths": (8 * K,)}
    datasets = [bind(DatasetSpec.model_validate(spec))]

    def planned() -> dict[Path, int]:
        plan_datasets(datasets, build_dir, Progress(is_shown=False))
        return {file: file.stat().st_mtime_ns for file in sorted(build_dir.extracted("slidevqa").rglob("*.jpg"))}

    first = planned()
    assert first
    assert planned() == first
    build_dir.extracted("slidevqa.json").unlink()  # as after a killed process
    assert planned() != first
    shutil.rmtree(source)
    in_files(rows[-1:], tmp_path, count=1)
    assert {file.parent for file in planned()} == {build_dir.extracted("slidevqa") / "pages/00000"}


def test_a_page_without_a_name_is_named_by_its_deck_number_and_format(
    sample: Callable[[str], Sources], tmp_path: Path
) -> None:
    slide = sorted(sample("slidevqa")["decks"].rglob("*.jpg"))[0].read_bytes()
    names = {1: None, 2: "x.jpg", 3: "tea-9-1024.jpg", 4: 'te"a-4-1024.jpg', 5: "tea-5-638.jpg"}
    row: dict[str, Any] = {"deck_name": "Tea / 茶", "question": "Who?", "answer": "x", "evidence_pages": [1]}
    row |= {f"page_{number}": {"bytes": slide, "path": name} for number, name in names.items()}
    row["page_6"] = {"bytes": b"\x89PNG\r\n\x1a\n", "path": None}
    (deck,) = extracted(write_slides([row], tmp_path / "x.parquet"), tmp_path / "out").values()
    slugs = ["tea-1-1024.jpg", "tea-2-1024.jpg", "tea-3-1024.jpg", "tea-4-1024.jpg", "tea-5-638.jpg"]
    assert pages(deck).names == (*slugs, "tea-6-1024.png")


def test_pages_may_be_plain_bytes_and_their_numbers_may_have_leading_zeros(rows: Rows, tmp_path: Path) -> None:
    usual = extracted(write_slides(rows, tmp_path / "a/test.parquet"), tmp_path / "usual")
    bytes_alone = [
        {**row, **{f"page_{n}": row[f"page_{n}"] and row[f"page_{n}"]["bytes"] for n in range(1, 21)}} for row in rows
    ]
    kinds: dict[str, pa.DataType] = {f"page_{number}": pa.large_binary() for number in range(1, 21)}
    plain = extracted(write_slides(bytes_alone, tmp_path / "b/test.parquet", kinds), tmp_path / "plain")
    padded = renamed(
        write_slides(rows, tmp_path / "c/test.parquet"), {f"page_{n}": f"page_{n:02}" for n in range(1, 10)}
    )
    for found in (plain, extracted(padded, tmp_path / "padded")):
        assert {
            deck: (pages(each).missing, [file.read_bytes() for file in pages(each).files])
            for deck, each in found.items()
        } == {
            deck: (pages(each).missing, [file.read_bytes() for file in pages(each).files])
            for deck, each in usual.items()
        }
    first = next(iter(SlideVQA().raw_rows({"questions": padded})))
    assert isinstance(first, mt.readers.RawRow)
    assert not [name for name in first.fields if name.startswith("page_")]


def test_of_several_splits_test_is_read_and_notes_say_what_is_read_and_lacking(rows: Rows, tmp_path: Path) -> None:
    def notes(folder: Path, **more: Path) -> Sequence[str]:
        extracted(more["questions"], folder)
        return SlideVQA().notes({**more, "pages": folder / "pages"}, mt.Options())

    source = in_files(rows, tmp_path)
    in_files(rows[:3], tmp_path, "val", 1)
    in_files(rows[:6], tmp_path, "train", 2)
    assert len([*SlideVQA().raw_rows({"questions": source})]) == len(rows)
    splits, gaps = notes(tmp_path / "all", questions=source)
    assert all(fact in splits for fact in ("test, train, validation", "only test is read", "data/train-*.parquet"))
    assert gaps.endswith(
        ": harbour_dredging_2019 (13, 14, 15, 16, 17 …), lighthouse_walks (7, 8, 9, 10, 11 …), "
        "solar_workshop (15, 16, 17, 18, 19 …)"  # the drawn decks have fewer slides than the table has columns
    )
    one = source / "test-00001-of-00003.parquet"
    ids = [raw.id for raw in SlideVQA().raw_rows({"questions": one})]
    assert ids == [f"slideVQA_{number}" for number in range(-(-len(rows) // 3))]
    assert notes(tmp_path / "one", questions=one)[0].startswith("only 1 of the 3 files of the split test")


@pytest.mark.parametrize(
    ("names", "said"),
    [
        (("train-00000-of-00001", "val-00000-of-00001"), "several-splits: .*found files of train, validation"),
        (("a/test-0", "b/test-0"), "several-splits: .*found a/test-0.parquet and b/test-0.parquet"),
        ((), "missing-split: .*found none"),
    ],
)
def test_a_folder_without_a_clear_split_is_named(names: Sequence[str], said: str, rows: Rows, tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    for name in names:
        write_slides(rows[:1], tmp_path / f"data/{name}.parquet")
    with pytest.raises(mm.SourceError, match=said):
        [*SlideVQA().raw_rows({"questions": tmp_path / "data"})]


@pytest.mark.parametrize(
    ("kind", "value", "expected"),
    [
        (pa.list_(pa.int64()), [4, 5], (3, 4)),
        (pa.list_(pa.int32(), 2), [5, 4], (3, 4)),
        (pa.string(), "[4, 5]", (3, 4)),
        (pa.list_(pa.string()), ["4"], (3,)),
        (pa.list_(pa.int64()), None, "answer-pages-not-a-list"),
        (pa.list_(pa.int64()), [], "no-answer-pages"),
        (pa.list_(pa.int64()), [0], "answer-page-out-of-range"),
        (pa.string(), "4", "answer-pages-not-a-list"),
        (pa.list_(pa.float64()), [4.5], "answer-pages-not-a-list"),
    ],
)
def test_evidence_pages_are_a_list_an_array_or_a_text(
    kind: pa.DataType, value: object, expected: object, tmp_path: Path
) -> None:
    row = {"deck_name": "tea", "question": "Who?", "answer": "x", "evidence_pages": value, "page_1": None}
    source = write_slides([row], tmp_path / "x.parquet", {"evidence_pages": kind})
    (found,) = read_rows(SlideVQA(), {"questions": source})
    assert (found.fault.reason if isinstance(found, mt.readers.RowFault) else found.pages) == expected  # type: ignore[attr-defined]


@pytest.mark.parametrize(("kind", "value"), [(pa.string(), None), (pa.float64(), float("nan"))])
def test_a_question_without_an_answer_is_rejected_by_name(kind: pa.DataType, value: object, tmp_path: Path) -> None:
    row = {"deck_name": "tea", "question": "Who?", "answer": value, "evidence_pages": [1], "page_1": None}
    source = write_slides([row], tmp_path / "x.parquet", {"answer": kind})
    (found,) = read_rows(SlideVQA(), {"questions": source})
    assert isinstance(found, mt.readers.RowFault)
    assert (found.id, found.fault.reason, found.fault.file, found.fault.place) == (
        "slideVQA_0",
        "empty-answer",
        "x.parquet",
        "row 0",
    )


def test_a_deck_with_a_cell_that_is_no_picture_or_too_large_is_refused_by_name(rows: Rows, tmp_path: Path) -> None:
    names = sorted({row["deck_name"] for row in rows})
    wrong = dict(zip(names, (b"no picture", b"\xff\xd8\xff\xe0 cut", b"x" * 3_000_000), strict=True))
    for row in rows:
        row["page_2"] = {"bytes": wrong[row["deck_name"]], "path": None}
    good = {**rows[0], "deck_name": "good", "page_2": rows[0]["page_1"]}
    source = write_slides([*rows, good], tmp_path / "test.parquet")
    release = built(tmp_path / "out", slidevqa({"questions": source}, limits={"bytes": 2_000_000}))
    reasons = {deck: "size-of-a-page" if len(data) > 2_000_000 else "broken-page" for deck, data in wrong.items()}
    assert {(row["file"], row["reason"]) for row in release.rejects()} == {
        (f"{deck.replace('_', '-')}-2-1024.jpg", reason) for deck, reason in reasons.items()
    }
    assert (len(release.rejects()), release.questions["kept"]) == (len(rows), 1)


def test_an_empty_cell_is_a_missing_page_and_a_deck_needs_one_page(rows: Rows, tmp_path: Path) -> None:
    cells = ({"bytes": b"", "path": "x"}, {"bytes": None, "path": "x"})
    named = [{**rows[0], "deck_name": f"deck {n}", "page_2": cell} for n, cell in enumerate(cells)]
    empty = {**rows[0], "deck_name": "none", **{f"page_{number}": None for number in range(1, 21)}}
    first, second, none = extracted(write_slides([*named, empty], tmp_path / "x.parquet"), tmp_path / "out").values()
    assert (pages(first).missing[0], pages(second).missing[0]) == (1, 1)
    assert str(fault(none)).startswith("none: missing-pages: expected at least one page, found none")


def renamed(file: Path, names: dict[str, str]) -> Path:
    """Give columns of a Parquet file other names, and return its folder."""
    table = pq.read_table(file)
    pq.write_table(table.rename_columns([names.get(name, name) for name in table.column_names]), file)
    return file.parent


@pytest.mark.parametrize(
    ("types", "lost", "names", "said"),
    [
        ({"page_3": pa.string()}, "", {}, "page_3: wrong-columns: expected pictures: bytes.*found string"),
        ({"page_3": pa.list_(pa.binary())}, "", {}, "page_3: wrong-columns: .*found list"),
        ({"page_3": pa.struct([("path", pa.string())])}, "", {}, "page_3: wrong-columns: .*found struct"),
        ({}, "deck_name", {}, "wrong-columns: .*Parquet files of SlideVQA"),
        ({}, "page_3", {}, "wrong-columns: .*Parquet files of SlideVQA"),
        ({}, "", {"deck_url": "page_03"}, "page_0?3: wrong-columns: expected one column for each page"),
    ],
)
def test_columns_that_are_not_those_of_slidevqa_are_named(
    types: dict[str, pa.DataType], lost: str, names: dict[str, str], said: str, tmp_path: Path
) -> None:
    row = {"deck_name": "tea", "deck_url": None, "question": "Who?", "answer": "x", "page_3": None}
    row = {name: value for name, value in row.items() if name != lost}
    source = renamed(write_slides([row], tmp_path / "in/test.parquet", types), names)
    with pytest.raises(mm.SourceError, match=rf"^test\.parquet.*{said}"):
        extracted(source, tmp_path / "out")


def test_a_file_that_is_cut_short_and_decks_without_a_folder_are_named(
    rows: Rows, sample: Callable[[str], Sources], tmp_path: Path
) -> None:
    source = write_slides(rows, tmp_path / "test.parquet")
    source.write_bytes(source.read_bytes()[:-100])
    with pytest.raises(mm.SourceError, match=r"test.parquet: broken-parquet"):
        extracted(source, tmp_path / "out")
    with pytest.raises(mm.MMLongBenchError, match=r"missing-source: expected source.decks"):
        SlideVQA().documents({"questions": sample("slidevqa")["questions"]})


def test_names_of_decks_cannot_lead_out_of_the_folder(sample: Callable[[str], Sources], tmp_path: Path) -> None:
    slide = sorted(sample("slidevqa")["decks"].rglob("*.jpg"))[0].read_bytes()
    names = ["../../up", "/etc/x", "a\nb", "x" * 300, ""]
    rows = [{"deck_name": deck, "page_1": {"bytes": slide, "path": "../../y-1-1024.jpg"}} for deck in names]
    found = extracted(write_slides(rows, tmp_path / "x.parquet"), tmp_path / "out")
    assert list(found) == names
    for deck in found.values():
        assert all(file.resolve().is_relative_to(tmp_path / "out/pages") for file in pages(deck).files)
    assert {path.name for path in tmp_path.iterdir()} == {"x.parquet", "out"}


def test_only_a_few_pages_are_in_memory_at_a_time(tmp_path: Path) -> None:
    page = bytes(1_000_000)
    rows = [{"deck_name": f"d{n}", **{f"page_{p}": {"bytes": page, "path": None} for p in (1, 2)}} for n in range(60)]
    source = write_slides(rows, tmp_path / "x.parquet", groups=60)
    tracemalloc.start()
    try:
        extracted(source, tmp_path / "out")
        most = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert most < 20_000_000


def test_a_list_of_decks_that_is_damaged_leaves_decks_out(tmp_path: Path) -> None:
    lines = [{"doc": "a", "pages": ["x-1-1024.jpg", None]}, {"doc": 3}, "x"]
    found = SlideVQA().documents({"pages": write_lines(tmp_path / "documents.jsonl", lines).parent})
    assert found == {"a": mt.readers.PageImages((tmp_path / "x-1-1024.jpg",), ("x-1-1024.jpg",), missing=(1,))}


# --- parsed documents of M-LongDoc ------------------------------------------------------------------------------------

PIXEL = base64.b64decode("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR4nGP4DwABAQEAHPQ5QAAAAABJRU5ErkJggg==")


def parsed(folder: Path) -> dict[str, mt.readers.Pages | mt.Fault]:
    """The documents of a folder, as a build finds them."""
    (folder / "out").mkdir()
    MLongDoc().extract({"documents": folder / "in"}, folder / "out")
    return dict(MLongDoc().documents({"documents": folder / "in", "pages": folder / "out/pages"}))


def line(number: object, data: object = PIXEL) -> str:
    text = base64.b64encode(data).decode() if isinstance(data, bytes) else data
    return json.dumps({"number": number, "objects": [], "text": "", "image_string": text, "source": ""})


@pytest.mark.parametrize(
    ("lines", "reason"),
    [
        ([], "missing-pages"),
        ([line(1), line(3)], "missing-pages"),
        ([line(1), line(1)], "two-pages-of-one-number"),
        ([line("1")], "page-without-number"),
        ([line(10**9)], "page-without-number"),
        ([line(1, "@@")], "broken-page"),
        ([line(1, b"GIF89a")], "broken-page"),
        ([line(1, None)], "broken-page"),
        (["{"], "invalid-json"),
    ],
)
def test_a_parsed_document_that_lacks_a_page_is_refused(lines: list[str], reason: str, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    write_lines(tmp_path / "in/a.json", lines)
    found = fault(parsed(tmp_path)["a"])
    assert (found.reason, found.file) == (reason, "a.json")


def test_pages_of_a_parsed_document_stand_in_the_order_of_their_numbers(tmp_path: Path) -> None:
    for folder in ("x", "y"):
        (tmp_path / "in" / folder).mkdir(parents=True)
        write_lines(tmp_path / "in" / folder / "twice.json", [line(1)])
    write_lines(tmp_path / "in/a.json", [line(2), line(1)])
    write_lines(tmp_path / "in/known.json", ["never read"])
    draw_pdf(tmp_path / "in/known.pdf", 1)
    found = parsed(tmp_path)
    assert found.keys() == {"a", "twice", "known"}
    assert found["known"] == tmp_path / "in/known.pdf"
    assert fault(found["twice"]).reason == "two-documents-of-one-name"
    assert [file.name for file in pages(found["a"]).files] == ["page_1.png", "page_2.png"]
