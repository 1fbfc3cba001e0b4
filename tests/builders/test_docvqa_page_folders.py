"""Documents of page images: folders, names with numbers, and what a folder without documents is told."""

import shutil
from pathlib import Path

import pytest
from PIL import Image

import mmlongbench.task as mt
from builders.docvqa.options import DocVQAOptions
from builders.docvqa.own_documents import OwnDocuments
from builders.docvqa.page_folders import find_documents
from builders.samples.docvqa.others import draw_own_documents


def draw(folder: Path, *names: str) -> Path:
    for number, name in enumerate(names):
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.new("RGB", (60, 80), (number, 0, 0)).save(path)
    return folder


def pages(folder: Path, id: str) -> list[str]:
    found = find_documents(folder).documents[id]
    assert isinstance(found, mt.PageImages), found
    return [file.relative_to(folder).as_posix() for file in found.files]


def fault(folder: Path, id: str) -> mt.Fault:
    found = find_documents(folder).documents[id]
    assert isinstance(found, mt.Fault), found
    assert found.todo
    return found


def test_a_folder_is_a_document_with_its_pages_in_the_order_of_their_numbers(tmp_path: Path) -> None:
    draw(tmp_path, *(f"tide report/{number}.jpg" for number in range(1, 12)), "b/page-02.PNG", "b/page-1.png")
    assert pages(tmp_path, "tide report") == [f"tide report/{number}.jpg" for number in range(1, 12)]
    assert pages(tmp_path, "b") == ["b/page-1.png", "b/page-02.PNG"]


def test_pages_of_several_documents_may_stand_in_one_folder(tmp_path: Path) -> None:
    draw(
        tmp_path,
        "a-2019_1.jpg",
        "a-2019_2.jpg",
        "b-1.png",
        "b-2.jpeg",
        "c_page0.jpg",
        "c_page1.jpg",
        "d p 1.jpg",
        "e_page_1.jpg",
    )
    assert find_documents(tmp_path).documents.keys() == {"a-2019", "b", "c", "d", "e"}
    assert pages(tmp_path, "c") == ["c_page0.jpg", "c_page1.jpg"]


def test_pdfs_and_page_images_are_mixed_and_other_images_are_counted(tmp_path: Path) -> None:
    source = draw_own_documents(tmp_path)
    draw(source["documents"], "tide/1.jpg", "tide/2.jpg", "logo.png", "sub/cover.jpg")
    shutil.copyfile(next(source["documents"].glob("*.pdf")), source["documents"] / "sub/inner.pdf")
    found = find_documents(source["documents"])
    assert {"tide", "inner"} < found.documents.keys()
    assert [file.name for file in found.unused] == ["logo.png", "cover.jpg"]
    assert OwnDocuments().notes(source, DocVQAOptions()) == [
        "documents: documents of page images (number of pages): tide (2)",
        "documents: not used: 1 JPG, 1 PNG; their names do not say of which document they are pages (report_1.jpg, or "
        "report/1.jpg)",
    ]


@pytest.mark.parametrize(
    ("names", "said"),
    [
        (("a/1.jpg", "a/2.jpg", "a/5.jpg"), "missing-pages: expected pages 1 to 5 of a, found no 3, 4;"),
        (("a/4.jpg", "a/5.jpg"), "missing-pages: expected pages 1 to 5 of a, found no 1, 2, 3;"),
        (("a/0.jpg", "a/2.jpg"), "missing-pages: expected pages 0 to 2 of a, found no 1;"),
        (("a/999999.jpg",), "missing-pages: expected pages 1 to 999999 of a, found no 1, 2, 3, 4, 5 …;"),
        (("a/1.jpg", "a/01.png"), "two-pages-of-one-number: expected each page of a once, found a/01.png and a/1.jpg;"),
        (("a/1.jpg", "a/cover.jpg"), "page-without-number: expected a number at the end of the name of each page of a"),
        (("x/a/1.jpg", "y/a/1.jpg"), "two-documents-of-one-name: expected names that differ before the ending, found"),
    ],
)
def test_pages_that_are_no_document_are_told_by_their_cause(names: tuple[str, ...], said: str, tmp_path: Path) -> None:
    assert said in str(fault(draw(tmp_path / "docs", *names), "a"))


def test_a_pdf_and_a_folder_of_one_name_are_refused(tmp_path: Path) -> None:
    source = draw_own_documents(tmp_path)
    name = next(source["documents"].glob("*.pdf")).stem
    found = fault(draw(source["documents"], f"{name}/1.jpg"), name)
    assert (found.reason, found.found) == ("two-documents-of-one-name", f"{name}.pdf and {name}/1.jpg")


def test_a_page_that_is_a_link_out_of_the_folder_is_refused(tmp_path: Path) -> None:
    draw(tmp_path, "elsewhere/1.jpg", "docs/a/2.jpg")
    (tmp_path / "docs/a/1.jpg").symlink_to(tmp_path / "elsewhere/1.jpg")
    assert fault(tmp_path / "docs", "a").reason == "path-outside-source"


def test_a_folder_without_documents_is_told_what_it_holds(tmp_path: Path) -> None:
    draw(tmp_path, "docs/p.jpg", "docs/q.JPEG", "docs/r.png")
    (tmp_path / "docs/notes.txt").touch()
    with pytest.raises(mt.SourceError, match="found 0 PDFs, 2 JPGs, 1 PNG, 1 TXT here; name the pages so, put each"):
        find_documents(tmp_path / "docs")
    (tmp_path / "none").mkdir()
    with pytest.raises(mt.SourceError, match="found 0 PDFs, an empty folder;"):
        find_documents(tmp_path / "none")
