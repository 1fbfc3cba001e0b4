"""Licences: the forms that a manifest may have, what they ask for, and which asset finds which of them."""

import hashlib
import json
from collections.abc import Callable
from pathlib import Path

import pymupdf
import pytest
from once import once
from PIL import Image
from samples import Sources
from taken_down import assets
from tiny import command, write_manifest

from builders.docvqa import MLongDoc
from mmlongbench.documents.limits import Limits
from mmlongbench.documents.rights_hints import pdf_hint, picture_hint
from mmlongbench.manifest.licences import Licence, conditions_of, spdx_expression, terms_of
from mmlongbench.manifest.loading import load_manifest
from mmlongbench.publishing.metadata import file_name, write_licences
from mmlongbench.publishing.rights import contradicts, rights_of
from mmlongbench.publishing.takedown import Withdrawal, Withdrawn, add_same, find_withdrawn
from mmlongbench.release.assets import ASSETS, Asset, write_assets


@pytest.mark.parametrize(
    ("text", "name", "kind"),
    [
        ("CC BY-NC 4.0", "CC-BY-NC-4.0", "spdx"),
        ("mit or apache-2.0", "MIT OR Apache-2.0", "spdx"),
        ("COCO's terms for the photographs", "COCO's terms for the photographs", "term"),
        ("none", "", "unknown"),
        ("", "", "unknown"),
    ],
)
def test_a_licence_may_still_be_a_text(text: str, name: str, kind: str) -> None:
    found = terms_of(text).licence
    assert (found.name, found.kind) == (name, kind)


def test_an_unknown_identifier_is_refused_with_the_nearest_one() -> None:
    with pytest.raises(ValueError, match=r"CC-BY-5.0; did you mean 'CC-BY-4.0'"):
        spdx_expression("CC-BY-5.0")


def test_licences_of_a_manifest_are_of_the_dataset_and_of_its_sources(source: Path, tmp_path: Path) -> None:
    (tmp_path / "terms.txt").write_text("Ask the club.", "utf-8")
    licence = {
        "spdx": "CC-BY-4.0",
        "url": "https://example.org/card",
        "sources": {"documents": {"name": "the club's terms", "file": "terms.txt", "conditions": "ask-first"}},
    }
    path = write_manifest(tmp_path / "m.yaml", licence=licence, source={"samples": "x", "documents": "y"})
    found = load_manifest(path).datasets[0].licences
    assert found.of("samples").licence == Licence("spdx", "CC-BY-4.0", url="https://example.org/card")
    assert found.of("documents").licence == Licence("term", "the club's terms", "Ask the club.", "", ("ask-first",))


@pytest.mark.parametrize(
    ("licence", "said"),
    [
        ({"spdx": "CC-BY"}, "licence.spdx: expected an SPDX expression"),
        ({"spdx": "MIT", "name": "other"}, "expected one of spdx, name and unknown, found spdx and name"),
        ({"text": "words"}, "text, file and conditions describe named terms: give their name"),
        ({"name": "x", "file": "gone.txt"}, "gone.txt cannot be read"),
        ({"spdxx": "MIT"}, "unknown key 'licence.spdxx'"),
        ({"assets": "gone.csv"}, "licence.assets: no such file: "),
    ],
)
def test_a_wrong_licence_is_named(licence: dict[str, str], said: str, source: Path, tmp_path: Path) -> None:
    paths = {"samples": str(source / "samples.json"), "documents": str(source / "documents")}
    path = write_manifest(tmp_path / "m.yaml", licence=licence, source=paths)
    ran = command("build", path, "--out", tmp_path / "out")
    assert ran.code == 2
    assert said in ran.err


@pytest.mark.parametrize(
    ("expression", "conditions"),
    [
        ("CC0-1.0", set()),
        ("CC-BY-SA-3.0", {"attribution", "share-alike"}),
        ("CC-BY-NC-ND-4.0", {"attribution", "non-commercial", "no-derivatives"}),
        ("MIT OR CC-BY-NC-4.0", {"attribution"}),
        ("MIT AND CC-BY-NC-4.0", {"attribution", "non-commercial"}),
        ("LicenseRef-scancode-unknown", {"ask-first"}),
    ],
)
def test_the_conditions_of_an_expression(expression: str, conditions: set[str]) -> None:
    assert conditions_of(Licence("spdx", expression)) == conditions


@pytest.mark.parametrize(
    ("hint", "licence", "is_against"),
    [
        ("EXIF copyright: (c) Ann, all rights reserved", "CC-BY-4.0", True),
        ("XMP cc:license: https://creativecommons.org/licenses/by-nc/4.0/", "CC-BY-4.0", True),
        ("XMP cc:license: https://creativecommons.org/licenses/by/4.0/", "CC-BY-4.0", False),
        ("EXIF artist: Ann", "CC-BY-4.0", False),
        ("EXIF copyright: all rights reserved", "", False),
    ],
)
def test_which_hints_contradict_a_licence(hint: str, licence: str, is_against: bool) -> None:
    assert contradicts(hint, terms_of(licence).licence) is is_against


def test_metadata_of_pictures_and_pdfs_are_hints(tmp_path: Path) -> None:
    exif = Image.Exif()
    exif[315], exif[33432] = "Ann", "(c) Ann\x07, all rights reserved"
    Image.new("RGB", (9, 9)).save(tmp_path / "a.jpg", exif=exif)
    assert picture_hint(tmp_path / "a.jpg") == "EXIF artist: Ann; EXIF copyright: (c) Ann , all rights reserved"
    xmp = b'<x:xmpmeta><rdf:Description cc:license="https://creativecommons.org/licenses/by/4.0/"/></x:xmpmeta>'
    Image.new("RGB", (9, 9)).save(tmp_path / "b.jpg", xmp=xmp)
    assert picture_hint(tmp_path / "b.jpg") == "XMP cc:license: https://creativecommons.org/licenses/by/4.0/"
    (tmp_path / "c.jpg").write_bytes(b"none")
    assert picture_hint(tmp_path / "c.jpg") == pdf_hint(tmp_path / "c.jpg", Limits()) == ""
    with pymupdf.open() as document:
        document.new_page()
        document.set_metadata({"author": "The Club"})
        document.save(tmp_path / "d.pdf")
    assert pdf_hint(tmp_path / "d.pdf", Limits()) == "PDF author: The Club"


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


def test_terms_that_are_called_unknown_have_a_file_of_their_own() -> None:
    assert len({file_name("").lower(), file_name("unknown").lower(), file_name("Unknown").lower()}) == 3


@pytest.fixture(scope="session")
def parsed(sample: Callable[[str], Sources], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A manifest of documents whose pages the reader extracts, from a source that may not be published; its release."""

    def make(folder: Path) -> None:
        licence = {"spdx": "MIT", "sources": {"documents": "CC-BY-ND-4.0"}}
        source = {name: str(path) for name, path in sample("m_longdoc").items()}
        made = {"name": "mld", "builder": "docvqa", "reader": "m_longdoc", "source": source, "licence": licence}
        made |= {"lengths": ["8K"], "admission_length": "8K", "options": {"answer_form": "long"}}
        made["pages"] = {"dpi": 150, "quality": 90}
        (folder / "m.yaml").write_text(json.dumps({"datasets": [made]}), "utf-8")
        ran = command("build", folder / "m.yaml", "--out", folder / "out")
        assert ran.code == 0, ran.err

    return once(tmp_path_factory, "m-longdoc", make)


def test_what_a_reader_extracts_has_the_licence_of_its_source_and_the_address_that_it_states(parsed: Path) -> None:
    found = assets(parsed / "out", kind="image")
    assert {(each["source"], each["licence"]) for each in found} == {("documents", "CC-BY-ND-4.0")}
    urls = {each["document"]: each["url"] for each in found}
    assert len(urls) > 1
    assert urls == {name: f"https://documents.example.org/{name}.pdf" for name in urls}


def test_the_strictest_licence_applies_if_the_source_is_not_known_and_no_password_is_published(
    parsed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stated, address = MLongDoc().addresses, "https://u:secret@host/a?key=1"
    monkeypatch.setattr(MLongDoc, "addresses", lambda self, sources: dict.fromkeys(stated(sources), address))
    monkeypatch.setattr(MLongDoc, "extracted_from", {}, raising=False)
    ran = command("build", parsed / "m.yaml", "--out", tmp_path / "out")
    assert ran.code == 0, ran.err
    found = assets(tmp_path / "out", kind="image")
    assert {each["url"] for each in found} == {"https://…@host/a?…"}
    assert {(each["source"], each["licence"]) for each in found} <= {
        ("", "CC-BY-ND-4.0"),
        ("documents", "CC-BY-ND-4.0"),
    }
    assert "" in {each["source"] for each in found}


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
