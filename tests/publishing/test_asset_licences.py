"""The licences of single assets, and of pages in several forms: which line of a table an asset finds."""

import csv
import json
import shutil
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from once import once
from PIL import Image
from taken_down import Row, assets
from tiny import Ran, command, draw_pdf, draw_source, lock, row, write_manifest

KINDS = ("disc", "ring", "star")


def with_table(folder: Path, lines: str, **licence: Any) -> Path:
    """A manifest of the tiny source whose documents have a table of licences."""
    draw_source(folder)
    (folder / "lic.csv").write_text(f"asset,licence\n{lines}\n", "utf-8")
    terms = {"spdx": "MIT", "sources": {"documents": {"spdx": "MIT", "assets": "lic.csv"}}, **licence}
    return write_manifest(folder / "m.yaml", licence=terms, lengths=["1K"])


def built(manifest: Path) -> Ran:
    """The build of a manifest into `out` beside it."""
    ran = command("build", manifest, "--out", manifest.parent / "out")
    assert ran.code == 0, ran.err
    return ran


def licences(manifest: Path) -> dict[str, str]:
    """The licence of each document of a release, by its id."""
    return {asset["document"]: asset["licence"] for asset in images(manifest)}


def images(manifest: Path) -> list[Row]:
    return assets(manifest.parent / "out", kind="image")


def pictures(folder: Path, lines: str, more: str = "", **licence: Any) -> Path:
    """A manifest of pictures of three classes, with a table of licences."""
    for split, count in (("train", 4), ("test", 2)):
        for number, kind in enumerate(KINDS):
            (folder / split / kind).mkdir(parents=True)
            for each in range(count):
                colour = (number * 80, each * 40, 200 if split == "test" else 90)
                Image.new("RGB", (112, 112), colour).save(folder / split / kind / f"{split}_{each}.png")
    (folder / "lic.csv").write_text(f"asset,licence\n{lines}\n", "utf-8")
    licence = {"spdx": "MIT", "assets": "lic.csv", **licence}
    made: dict[str, Any] = {"name": "shapes", "builder": "many_shot", "reader": "image_folders", "licence": licence}
    made |= {"source": {"train": "train", "test": "test"}, "lengths": ["8K"], "reserve": 64, "options": {}}
    (folder / "m.yaml").write_text(json.dumps({"datasets": [made]}), "utf-8")
    return folder / "m.yaml"


@pytest.mark.parametrize("name", ["disc/train_2.png", "train/disc/train_2.png"])
def test_a_line_names_an_asset_by_its_path_in_the_source(name: str, tmp_path: Path) -> None:
    manifest = pictures(tmp_path / "m", f"{name},CC-BY-ND-4.0")
    built(manifest)
    assert {a["inside"] for a in images(manifest) if a["licence"] != "MIT"} == {"disc/train_2.png"}


def test_the_most_specific_name_goes_first(tmp_path: Path) -> None:
    manifest = with_table(tmp_path / "m", "ash.pdf,CC0-1.0\ndocuments/ash.pdf,CC-BY-4.0")
    built(manifest)
    assert licences(manifest)["ash"] == "CC-BY-4.0"


def test_a_line_that_names_nothing_of_the_sources_is_named(tmp_path: Path) -> None:
    lines = "Ash.pdf,CC-BY-ND-4.0\n./birch.pdf,CC0-1.0\nsamples.json,CC0-1.0\ncedar.pdf,CC0-1.0"
    manifest = with_table(tmp_path / "m", lines)
    ran, out = built(manifest), tmp_path / "m/out"
    said = "no effect: './birch.pdf', 'Ash.pdf', 'samples.json'; correct them"
    assert lock(out)["unmatched_licences"] == {"mmlongdoc": ["./birch.pdf", "Ash.pdf", "samples.json"]}
    again = command("build", manifest, "--out", out)
    published = command("publish", out, "--out", tmp_path / "published")
    rights = command("rights", out)
    assert (again.code, published.code, rights.code) == (0, 0, 0)
    for text in (ran.err, again.err, published.err, " ".join(rights.out.split())):
        assert said in " ".join(text.split())


@pytest.mark.parametrize(
    ("table", "line"),
    [
        ("asset,license\na,MIT\n", 1),
        ("asset,licence\na,MIT\nb\n", 3),
        ("asset,licence\na,MIT\na,MIT\n", 3),
        ("asset,licence\n,MIT\n", 2),
        ("asset,licence,url\na,CC0-1.0,https://u:secret@host/a\n", 2),
    ],
)
def test_a_bad_line_of_a_table_is_named_without_a_password(table: str, line: int, tmp_path: Path) -> None:
    manifest = with_table(tmp_path / "m", "")
    (tmp_path / "m/lic.csv").write_text(table, "utf-8")
    ran = command("build", manifest, "--out", tmp_path / "m/out")
    assert (ran.code, f"lic.csv, line {line}" in ran.err, "secret" in ran.err) == (2, True, False), ran.err


def test_a_line_may_name_what_no_example_shows(tmp_path: Path) -> None:
    manifest = with_table(tmp_path / "m", "elm.pdf,CC0-1.0\ndocuments/elm.pdf,CC0-1.0")
    shutil.copy(tmp_path / "m/documents/ash.pdf", tmp_path / "m/documents/elm.pdf")
    text = manifest.read_text("utf-8").replace("lengths:", "exclude: [elm]\n  lengths:")
    manifest.write_text(text, "utf-8")
    built(manifest)
    assert "unmatched_licences" not in lock(tmp_path / "m/out")
    shown = pictures(tmp_path / "p", "disc/train_0.png,CC0-1.0\ntrain/ring/train_1.png,CC0-1.0\nstar/test_0.png,MIT")
    built(shown)
    assert "unmatched_licences" not in lock(tmp_path / "p/out")


def test_the_licence_of_a_source_that_does_not_exist_is_refused(tmp_path: Path) -> None:
    manifest = with_table(tmp_path / "m", "", sources={"document": "CC-BY-ND-4.0"})
    ran = command("build", manifest, "--out", tmp_path / "out")
    assert ran.code == 2
    assert "licence.sources: there is no source 'document'" in ran.err
    assert "did you mean 'documents'?" in ran.err


def test_the_strictest_of_all_names_of_the_same_bytes_applies(tmp_path: Path) -> None:
    manifest = pictures(tmp_path / "m", "disc/copy.png,CC-BY-ND-4.0\ndisc/train_2.png,CC0-1.0")
    shutil.copy(tmp_path / "m/train/disc/train_2.png", tmp_path / "m/train/disc/copy.png")
    built(manifest)
    found = {a["licence"] for a in images(manifest) if a["inside"] in ("disc/copy.png", "disc/train_2.png")}
    assert found == {"CC-BY-ND-4.0"}
    one = pictures(tmp_path / "one", "disc/copy.png,CC0-1.0")
    shutil.copy(tmp_path / "one/train/disc/train_2.png", tmp_path / "one/train/disc/copy.png")
    built(one)  # the licence of the source is for what nothing is said about
    found = {a["licence"] for a in images(one) if a["inside"] in ("disc/copy.png", "disc/train_2.png")}
    assert found == {"CC0-1.0"}
    pages = with_table(tmp_path / "p", "elm.pdf,CC-BY-NC-4.0\nash,CC-BY-4.0")
    shutil.copy(tmp_path / "p/documents/ash.pdf", tmp_path / "p/documents/elm.pdf")
    built(pages)
    assert licences(pages)["ash"] == "CC-BY-NC-4.0"


def with_columns(folder: Path, rows: tuple[dict[str, str], ...], licence: str = "rights") -> Path:
    """A manifest whose question table has the licences of documents."""
    draw_source(folder, rows)
    columns = {"asset": "doc_id", "licence": licence, "author": "by"}
    return write_manifest(folder / "m.yaml", licence={"spdx": "MIT", "columns": columns}, lengths=["1K"])


def test_rows_that_contradict_each_other_are_named(tmp_path: Path) -> None:
    rows = (
        row("ash.pdf", "What is its wood?", "hard", "[1]", rights="CC-BY-ND-4.0", by="Ann"),
        row("ash.pdf", "What is its leaf?", "green", "[2]", rights="CC0-1.0", by="Bob"),
    )
    ran = command("build", with_columns(tmp_path / "m", rows), "--out", tmp_path / "out")
    assert ran.code == 2
    assert "one licence of 'ash.pdf'" in ran.err
    assert "CC-BY-ND-4.0 and CC0-1.0" in ran.err
    same = tuple({**each, "rights": "CC-BY-4.0"} for each in rows)
    manifest = with_columns(tmp_path / "same", same)
    built(manifest)
    assert {a["author"] for a in images(manifest) if a["document"] == "ash"} == {"Ann; Bob"}
    ran = command("build", with_columns(tmp_path / "none", same, "right"), "--out", tmp_path / "none/out")
    assert ran.code == 2
    assert "rows with the columns 'doc_id' and 'right'" in ran.err


def test_an_address_of_a_column_is_published_without_its_password(tmp_path: Path) -> None:
    row_ = row("ash.pdf", "What is its wood?", "hard", "[1]", rights="CC0-1.0", at="https://u:secret@host/a")
    draw_source(tmp_path / "c", (row_,))
    columns = {"asset": "doc_id", "licence": "rights", "url": "at"}
    made = write_manifest(tmp_path / "c/m.yaml", licence={"spdx": "MIT", "columns": columns}, lengths=["1K"])
    built(made)
    assert {a["url"] for a in images(made) if a["document"] == "ash"} == {"https://…@host/a"}


def test_a_name_of_terms_has_one_meaning_in_a_dataset(tmp_path: Path) -> None:
    named = {"name": "terms", "conditions": ["attribution"]}
    manifest = with_table(tmp_path / "m", "", sources={"documents": named, "samples": {**named, "text": "Never."}})
    ran = command("build", manifest, "--out", tmp_path / "out")
    assert ran.code == 2
    assert "'terms' has two texts or conditions" in ran.err


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


def of_ash(release: Path, dataset: str) -> dict[str, Row]:
    """The images and texts of `ash`, by the end of their names."""
    return {each["name"].rpartition("_")[2]: each for each in assets(release, dataset) if each["document"] == "ash"}


def test_a_joined_image_has_the_strictest_licence_of_its_pages(tmp_path: Path) -> None:
    table = {"spdx": "MIT", "sources": {"documents": {"spdx": "CC-BY-NC-4.0", "assets": "licences.csv"}}}
    release = drawn(tmp_path, ("joined",), {"joined": table}, is_pdf=False)
    found = of_ash(release, "joined")
    assert found["page0.jpg"]["inside"] == "ash/1.png#page=1-2"
    assert {name: asset["licence"] for name, asset in found.items() if asset["licence"] != "CC-BY-NC-4.0"} == {
        "page1.jpg": "CC-BY-ND-4.0"
    }
    assert found["page0.jpg"]["licence"] == "CC-BY-NC-4.0"  # nothing is said about its second page
    assert found["page1.jpg"]["inside"] == "ash/3.png#page=3-4"


@pytest.fixture(scope="session")
def forms(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A release that shows the same PDFs in three forms; not to be changed."""
    make = lambda folder: drawn(folder, tuple(FORMS), dict.fromkeys(FORMS, "MIT"))  # noqa: E731
    return once(tmp_path_factory, "forms", make) / "release"


def test_a_joined_image_names_all_its_pages(forms: Path) -> None:
    assert of_ash(forms, "joined")["page4.jpg"]["inside"] == "ash.pdf#page=9-10"
    assert of_ash(forms, "plain")["page8.jpg"]["inside"] == "ash.pdf#page=9"


def test_a_page_that_is_taken_out_stays_in_no_other_form(forms: Path, tmp_path: Path) -> None:
    name = of_ash(forms, "plain")["page8.jpg"]["name"]
    ran = command("takedown", forms, "--image", name, "--out", tmp_path / "new")
    assert ran.code == 0, ran.err
    assert "of the images and texts equal it, or show the same page, under another name" in ran.out
    assert not of_ash(tmp_path / "new", "joined").keys() & {"page4.jpg"}
    assert not of_ash(tmp_path / "new", "text").keys() & {"page8.jpg"}
    assert command("audit", tmp_path / "new", "-q").err == ""
    (stone,) = map(json.loads, (tmp_path / "new/takedowns.jsonl").read_text("utf-8").splitlines())
    assert stone["examples"].keys() == {f"mmlb_data/documentQA/{form}_K1.jsonl" for form in FORMS}


def test_a_page_that_may_not_be_published_is_published_in_no_form(tmp_path: Path) -> None:
    forbidden = {"spdx": "MIT", "sources": {"documents": {"spdx": "MIT", "assets": "licences.csv"}}}
    licences = {"plain": forbidden, "text": "MIT"}
    release = drawn(tmp_path, ("plain", "text"), licences, table="asset,licence\nash.pdf,CC-BY-ND-4.0\n")
    done = command("publish", release, "--out", tmp_path / "published")
    assert done.code == 0, done.err
    assert (tmp_path / "published/data/plain").exists()
    assert not (tmp_path / "published/data/text").exists()  # both examples show pages of `ash`
    hidden = {asset["name"] for asset in of_ash(release, "plain").values()}
    listed = {row["name"] for row in pq.read_table(tmp_path / "published/assets.parquet").to_pylist()}
    assert not hidden & listed
    assert hidden & {asset["name"] for asset in of_ash(release, "text").values()}
    assert "own-documents/birch/birch_page1.jpg" in listed


def test_a_forbidden_source_of_which_only_free_documents_are_shown_is_published(tmp_path: Path) -> None:
    terms = {"spdx": "MIT", "sources": {"documents": {"spdx": "CC-BY-ND-4.0", "assets": "licences.csv"}}}
    release = drawn(tmp_path, ("plain",), {"plain": terms}, table="asset,licence\nash,CC0-1.0\nbirch,CC-BY-4.0\n")
    done = command("publish", release, "--out", tmp_path / "published")
    assert done.code == 0, done.err
    assert "left out" not in done.err
    assert pq.read_table(tmp_path / "published/data/plain/K1.parquet").num_rows == 2
    assert "Not published" not in (tmp_path / "published/README.md").read_text("utf-8")
