"""What the layer of a PDF tells about pages: rows of cells, drawings, pictures."""

from pathlib import Path

from question_world import Doc

from mmlongbench.documents.limits import Limits
from mmlongbench.documents.page_facts import PageFacts
from mmlongbench.documents.pdf_reader import page_facts, page_keys
from mmlongbench.questions.writing.kinds import grid_rows, kind_of


def test_tables_and_figures_are_seen_without_a_network(tmp_path: Path) -> None:
    doc, path = Doc("harbours-a", 2), tmp_path / "harbours-a.pdf"
    doc.draw(path)
    pages = [PageFacts(**each) for each in page_facts(path, Limits())]
    assert [page.key for page in pages] == list(page_keys(path, Limits()))
    value = str(doc.value(2, "Winter", "Barges", doc.years[0]))
    assert ["Winter"] in pages[1].rows
    assert ["Barges", value] == next(row for row in reversed(pages[1].rows) if row[0] == "Barges")[:2]
    assert grid_rows(pages[1].rows) >= 4
    assert (pages[0].width, pages[0].height, pages[0].raster) == (420, 595, 0)
    assert pages[0].drawings < 100 <= pages[1].drawings
    assert {*kind_of(pages[1], 2).kinds} == {"table", "figure", "text"}


def test_a_page_under_a_picture_is_a_scan(tmp_path: Path) -> None:
    import pymupdf
    from PIL import Image

    Image.new("RGB", (60, 80), "white").save(tmp_path / "page.png")
    with pymupdf.open() as document:
        page = document.new_page(width=300, height=400)
        page.insert_image(pymupdf.Rect(-50, -50, 350, 450), filename=str(tmp_path / "page.png"))
        document.save(tmp_path / "scan.pdf")
    facts = [PageFacts(**each) for each in page_facts(tmp_path / "scan.pdf", Limits())]
    assert facts[0].raster == 1
    assert kind_of(facts[0], 2).kinds == ("scan",)
