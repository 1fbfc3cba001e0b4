"""The licences of single assets: which line of a table of licences an asset finds, and which lines find none."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from PIL import Image
from tiny import Ran, command, draw_source, lock, row, write_manifest

from builders.docvqa.m_longdoc import MLongDoc
from mmlongbench.manifest.licences import Licence
from mmlongbench.publishing.licence_files import file_name, write_licences
from mmlongbench.publishing.rights import rights_of
from mmlongbench.release.assets import Asset, read_assets

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
    return {asset.document: asset.licence for asset in images(manifest)}


def images(manifest: Path) -> list[Asset]:
    return [asset for asset in read_assets(manifest.parent / "out") if asset.kind == "image"]


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
    assert {a.inside for a in images(manifest) if a.licence != "MIT"} == {"disc/train_2.png"}


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
    found = {a.licence for a in images(manifest) if a.inside in ("disc/copy.png", "disc/train_2.png")}
    assert found == {"CC-BY-ND-4.0"}
    one = pictures(tmp_path / "one", "disc/copy.png,CC0-1.0")
    shutil.copy(tmp_path / "one/train/disc/train_2.png", tmp_path / "one/train/disc/copy.png")
    built(one)  # the licence of the source is for what nothing is said about
    found = {a.licence for a in images(one) if a.inside in ("disc/copy.png", "disc/train_2.png")}
    assert found == {"CC0-1.0"}
    pages = with_table(tmp_path / "p", "elm.pdf,CC-BY-NC-4.0\nash,CC-BY-4.0")
    shutil.copy(tmp_path / "p/documents/ash.pdf", tmp_path / "p/documents/elm.pdf")
    built(pages)
    assert licences(pages)["ash"] == "CC-BY-NC-4.0"


@pytest.fixture
def parsed(tmp_path: Path) -> Path:
    """A manifest of documents whose pages the reader extracts, from a source that may not be published."""
    licence = {"spdx": "MIT", "sources": {"documents": "CC-BY-ND-4.0"}}
    made = {"name": "mld", "builder": "docvqa", "reader": "m_longdoc", "source": "sample", "licence": licence}
    options = {"answer_form": "long"}
    made |= {"lengths": ["8K"], "admission_length": "8K", "options": options, "pages": {"dpi": 150, "quality": 90}}
    (tmp_path / "m.yaml").write_text(json.dumps({"datasets": [made]}), "utf-8")
    return tmp_path / "m.yaml"


def test_what_a_reader_extracts_has_the_licence_of_its_source(parsed: Path) -> None:
    built(parsed)
    assert {(a.source, a.licence) for a in images(parsed)} == {("documents", "CC-BY-ND-4.0")}


def test_documents_have_the_addresses_that_the_source_states(parsed: Path) -> None:
    built(parsed)
    found = {asset.document: asset.url for asset in images(parsed)}
    assert len(found) > 1
    assert found == {name: f"https://documents.example.org/{name}.pdf" for name in found}


def test_an_address_that_the_source_states_is_published_without_its_password(
    parsed: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stated = MLongDoc().addresses
    monkeypatch.setattr(
        MLongDoc, "addresses", lambda self, sources: dict.fromkeys(stated(sources), "https://u:secret@host/a?key=1")
    )
    built(parsed)
    assert {asset.url for asset in images(parsed)} == {"https://…@host/a?…"}


def test_the_strictest_licence_applies_if_the_source_is_not_known(
    parsed: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(MLongDoc, "extracted_from", {}, raising=False)
    built(parsed)
    assert {(a.source, a.licence) for a in images(parsed)} == {
        ("", "CC-BY-ND-4.0"),
        ("documents", "CC-BY-ND-4.0"),
    }


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
    assert {a.author for a in images(manifest) if a.document == "ash"} == {"Ann; Bob"}
    ran = command("build", with_columns(tmp_path / "none", same, "right"), "--out", tmp_path / "none/out")
    assert ran.code == 2
    assert "rows with the columns 'doc_id' and 'right'" in ran.err


def test_an_address_with_a_password_is_not_published(tmp_path: Path) -> None:
    manifest = with_table(tmp_path / "m", "ash.pdf,CC0-1.0")
    (tmp_path / "m/lic.csv").write_text("asset,licence,url\nash.pdf,CC0-1.0,https://u:secret@host/a\n", "utf-8")
    ran = command("build", manifest, "--out", tmp_path / "m/out")
    assert ran.code == 2
    assert "line 2" in ran.err
    assert "a url without user and password" in ran.err
    assert "secret" not in ran.err
    row_ = row("ash.pdf", "What is its wood?", "hard", "[1]", rights="CC0-1.0", at="https://u:secret@host/a")
    draw_source(tmp_path / "c", (row_,))
    columns = {"asset": "doc_id", "licence": "rights", "url": "at"}
    made = write_manifest(tmp_path / "c/m.yaml", licence={"spdx": "MIT", "columns": columns}, lengths=["1K"])
    built(made)
    assert {a.url for a in images(made) if a.document == "ash"} == {"https://…@host/a"}


def asset(dataset: str, licence: str, name: str = "a.png", source: str = "samples") -> Asset:
    return Asset(dataset, "image", name, "0" * 64, None, source, "", "", "", licence, "term", "", "", "")


def test_terms_are_looked_up_in_their_dataset_first(tmp_path: Path) -> None:
    strict = Licence("term", "terms", "Never.", conditions=("no-redistribution",))
    mild = Licence("term", "terms", "Name us.", conditions=("attribution",))
    stated = {("a", ""): strict, ("b", ""): mild, ("c", ""): Licence("spdx", "MIT")}
    assets = [asset(name, "terms") for name in ("a", "b", "c")]
    rights = rights_of(assets, stated)
    assert {each.dataset: each.conditions for each in rights.sources} == {
        "a": ("no-redistribution",),
        "b": ("attribution",),
        "c": ("no-redistribution",),
    }
    written = write_licences(tmp_path, rights, stated)
    text = (tmp_path / written["terms"]).read_text("utf-8")
    assert "In a:\n\nNever." in text
    assert "In b:\n\nName us." in text


def test_a_name_of_terms_has_one_meaning_in_a_dataset(tmp_path: Path) -> None:
    named = {"name": "terms", "conditions": ["attribution"]}
    manifest = with_table(tmp_path / "m", "", sources={"documents": named, "samples": {**named, "text": "Never."}})
    ran = command("build", manifest, "--out", tmp_path / "out")
    assert ran.code == 2
    assert "'terms' has two texts or conditions" in ran.err


def test_terms_that_are_called_unknown_have_a_file_of_their_own() -> None:
    assert len({file_name("").lower(), file_name("unknown").lower(), file_name("Unknown").lower()}) == 3
