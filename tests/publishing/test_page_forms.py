"""Rights and takedown of pages that a release shows in several forms: alone, joined, as text."""

import csv
import hashlib
import json
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from PIL import Image
from tiny import command, draw_pdf

from mmlongbench.publishing.withdrawn import Withdrawal, Withdrawn, add_same, find_withdrawn
from mmlongbench.release.assets import ASSETS, Asset, read_assets, write_assets
from mmlongbench.release.layout import TOMBSTONES

PAGES = {"ash": 10, "birch": 6}
FORMS: dict[str, dict[str, Any]] = {
    "plain": {},
    "joined": {"pages_as": "joined", "joined": 5},
    "text": {"pages_as": "text", "text_fill": "budget"},
}


TABLE = "asset,licence\nash/1.png,CC0-1.0\nash/4.png,CC-BY-ND-4.0\n"


def drawn(
    folder: Path, forms: tuple[str, ...], licences: dict[str, Any], *, is_pdf: bool = True, table: str = TABLE
) -> Path:
    """The release of two documents in several forms, two pages in each joined image of `ash` and of `birch`."""
    for name, count in PAGES.items():
        if is_pdf:
            (folder / "documents").mkdir(parents=True, exist_ok=True)
            draw_pdf(folder / f"documents/{name}.pdf", count)
        for number in range(0 if is_pdf else count):
            path = folder / f"documents/{name}/{number + 1}.png"
            path.parent.mkdir(parents=True, exist_ok=True)
            Image.new("RGB", (200, 200), (number * 20, 90, len(name) * 20)).save(path)
    with (folder / "questions.csv").open("w", encoding="utf-8", newline="") as file:
        rows = [("doc", "question", "answer", "pages")]
        csv.writer(file).writerows([*rows, ("ash", "Which wood?", "hard", "9"), ("birch", "Which bark?", "white", "2")])
    (folder / "licences.csv").write_text(table, "utf-8")
    shared = {"builder": "docvqa", "reader": "own_documents", "reserve": 64, "lengths": ["1K"]}
    shared |= {"source": {"questions": "questions.csv", "documents": "documents"}, "admission_length": "1K"}
    made = [
        {"name": name, **shared, "licence": licences[name], "options": {"max_answer_words": 5, **FORMS[name]}}
        | ({"drawn_as": forms[0]} if name != forms[0] else {})
        for name in forms
    ]
    (folder / "m.yaml").write_text(json.dumps({"datasets": made}), "utf-8")
    ran = command("build", folder / "m.yaml", "--out", folder / "release")
    assert ran.code == 0, ran.err
    return folder / "release"


def of_ash(release: Path, dataset: str) -> dict[str, Asset]:
    """The images and texts of `ash`, by the end of their names."""
    found = (a for a in read_assets(release, dataset) if a.document == "ash")
    return {asset.name.rpartition("_")[2]: asset for asset in found}


def test_a_joined_image_has_the_strictest_licence_of_its_pages(tmp_path: Path) -> None:
    table = {"spdx": "MIT", "sources": {"documents": {"spdx": "CC-BY-NC-4.0", "assets": "licences.csv"}}}
    release = drawn(tmp_path, ("joined",), {"joined": table}, is_pdf=False)
    found = of_ash(release, "joined")
    assert found["page0.jpg"].inside == "ash/1.png#page=1-2"
    assert {name: asset.licence for name, asset in found.items() if asset.licence != "CC-BY-NC-4.0"} == {
        "page1.jpg": "CC-BY-ND-4.0"
    }
    assert found["page0.jpg"].licence == "CC-BY-NC-4.0"  # nothing is said about its second page
    assert found["page1.jpg"].inside == "ash/3.png#page=3-4"


@pytest.fixture(scope="module", name="forms")
def _forms(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A release that shows the same PDFs in three forms."""
    return drawn(tmp_path_factory.mktemp("forms"), tuple(FORMS), dict.fromkeys(FORMS, "MIT"))


def test_a_joined_image_names_all_its_pages(forms: Path) -> None:
    assert of_ash(forms, "joined")["page4.jpg"].inside == "ash.pdf#page=9-10"
    assert of_ash(forms, "plain")["page8.jpg"].inside == "ash.pdf#page=9"


def test_a_page_that_is_taken_out_stays_in_no_other_form(forms: Path, tmp_path: Path) -> None:
    name = of_ash(forms, "plain")["page8.jpg"].name
    ran = command("takedown", forms, "--image", name, "--out", tmp_path / "new")
    assert ran.code == 0, ran.err
    assert "of the images and texts equal it, or show the same page, under another name" in ran.out
    assert not of_ash(tmp_path / "new", "joined").keys() & {"page4.jpg"}
    assert not of_ash(tmp_path / "new", "text").keys() & {"page8.jpg"}
    assert command("audit", tmp_path / "new", "-q").err == ""
    (stone,) = map(json.loads, (tmp_path / "new" / TOMBSTONES).read_text("utf-8").splitlines())
    assert stone["examples"].keys() == {f"mmlb_data/documentQA/{form}_K1.jsonl" for form in FORMS}


def test_a_page_that_may_not_be_published_is_published_in_no_form(tmp_path: Path) -> None:
    forbidden = {"spdx": "MIT", "sources": {"documents": {"spdx": "MIT", "assets": "licences.csv"}}}
    licences = {"plain": forbidden, "text": "MIT"}
    release = drawn(tmp_path, ("plain", "text"), licences, table="asset,licence\nash.pdf,CC-BY-ND-4.0\n")
    done = command("publish", release, "--out", tmp_path / "published")
    assert done.code == 0, done.err
    assert (tmp_path / "published/data/plain").exists()
    assert not (tmp_path / "published/data/text").exists()  # both examples show pages of `ash`
    hidden = {asset.name for asset in of_ash(release, "plain").values()}
    listed = {row["name"] for row in pq.read_table(tmp_path / "published/assets.parquet").to_pylist()}
    assert not hidden & listed
    assert hidden & {asset.name for asset in of_ash(release, "text").values()}
    assert "own-documents/birch/birch_page1.jpg" in listed


def test_a_forbidden_source_of_which_only_free_documents_are_shown_is_published(tmp_path: Path) -> None:
    terms = {"spdx": "MIT", "sources": {"documents": {"spdx": "CC-BY-ND-4.0", "assets": "licences.csv"}}}
    release = drawn(tmp_path, ("plain",), {"plain": terms}, table="asset,licence\nash,CC0-1.0\nbirch,CC-BY-4.0\n")
    done = command("publish", release, "--out", tmp_path / "published")
    assert done.code == 0, done.err
    assert "left out" not in done.err
    assert pq.read_table(tmp_path / "published/data/plain/K1.parquet").num_rows == 2
    assert "Not published" not in (tmp_path / "published/README.md").read_text("utf-8")


def web_page(dataset: str, name: str, words: str) -> Asset:
    """The text of a part of a web page, of which the id is a path."""
    digest = hashlib.sha256(words.encode()).hexdigest()
    place = ("corpus", name.partition("#")[0], "", f"#{name}")
    return Asset(dataset, "text", name, digest, len(words), *place, "MIT", "spdx", "", "", "")


def test_the_folder_of_a_web_page_is_no_document(tmp_path: Path) -> None:
    pages = [web_page("a", "pages/ash.html#1", "hard"), web_page("b", "pages/ash.html#1", "grey")]
    write_assets(tmp_path / ASSETS, [*pages, web_page("a", "pages/birch.html#1", "white")])
    found = find_withdrawn(tmp_path, Withdrawal("document", "pages/ash.html"))
    assert found.folders == {"pages/ash.html"}
    assert found.texts == {("a", "pages/ash.html#1"), ("b", "pages/ash.html#1")}
    of_one_dataset = Withdrawn(texts={("a", "pages/ash.html#1")})
    add_same(of_one_dataset, {pages[0].sha256}, tmp_path)
    assert of_one_dataset.texts == {("a", "pages/ash.html#1")}
