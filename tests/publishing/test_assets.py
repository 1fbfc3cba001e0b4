"""The table of assets: every image and text of a release has a source, a licence, an origin and a hash."""

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pymupdf
import pytest
import yaml
from PIL import Image
from tiny import command, draw_source, hashes, lock, records, row, write_manifest

from mmlongbench.documents.rights_hints import pdf_hint, picture_hint
from mmlongbench.release.assets import ASSETS, Asset, read_assets, write_assets
from mmlongbench.release.layout import LOCK
from mmlongbench.release.opened import open_release

pytestmark = pytest.mark.slow


def relock(release: Path) -> None:
    """Give the lock the hash of the changed table, so that only its content is wrong."""
    data = lock(release)
    data["files"][ASSETS] = {"bytes": (release / ASSETS).stat().st_size, "sha256": hashes(release)[ASSETS]}
    (release / LOCK).write_text(json.dumps(data), "utf-8")


@pytest.fixture(scope="module", name="built")
def _built(source: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A release that shows pages as images and as texts, with licences by source and by document."""
    folder = tmp_path_factory.mktemp("assets")
    (folder / "licences.csv").write_text(
        "asset,licence,author,url\nash.pdf,CC0-1.0,Ann,https://example.org/ash\nbirch,none,,\n", "utf-8"
    )
    paths = {"samples": str(source / "samples.json"), "documents": str(source / "documents")}
    table = str(folder / "licences.csv")
    licence = {"spdx": "MIT", "sources": {"documents": {"spdx": "CC-BY-4.0", "assets": table}}}
    made = yaml.safe_load(write_manifest(folder / "m.yaml", licence=licence, source=paths).read_text("utf-8"))
    texts = {**made["datasets"][0], "name": "text_mmlongdoc", "drawn_as": "mmlongdoc"}
    texts["options"] = {"max_answer_words": 5, "pages_as": "text", "text_fill": "budget"}
    made["datasets"].append(texts)
    (folder / "m.yaml").write_text(yaml.safe_dump(made), "utf-8")
    ran = command("build", folder / "m.yaml", "--out", folder / "release")
    assert ran.code == 0, ran.err
    return folder / "release"


def changed(built: Path, tmp_path: Path, assets: list[Asset]) -> list[str]:
    """The problems that an audit finds if the table has other rows."""
    shutil.copytree(built, tmp_path / "release")
    write_assets(tmp_path / "release" / ASSETS, assets)
    relock(tmp_path / "release")
    ran = command("audit", tmp_path / "release", "-q")
    assert ran.code == 1
    return ran.err.splitlines()


def test_every_image_and_text_has_a_row(built: Path) -> None:
    assert command("audit", built, "-q").code == 0
    assets = list(read_assets(built))
    shown = {path for name in ("1K", "2K") for record in records(built, name) for path in record["page_list"]}
    assert {a.name for a in assets if a.kind == "image"} == shown
    texts = [a for a in assets if a.kind == "text"]
    assert {a.dataset for a in texts} == {"text_mmlongdoc"}
    ash = next(a for a in assets if a.kind == "image" and a.document == "ash")
    assert (ash.source, ash.inside, ash.licence, ash.author) == ("documents", "ash.pdf#page=1", "CC0-1.0", "Ann")
    cedar = next(a for a in assets if a.document == "cedar")
    assert (cedar.licence, cedar.licence_kind, cedar.has_origin) == ("CC-BY-4.0", "spdx", False)
    assert {a.licence_kind for a in assets if a.document == "birch"} == {"unknown"}
    assert {(a.name, a.licence) for a in assets if a.kind == "source"} == {
        ("documents", "CC-BY-4.0"),
        ("samples", "MIT"),
    }


def test_the_lock_has_no_path_of_this_machine(built: Path) -> None:
    (data, _) = lock(built)["manifest"]
    terms = data["licence"]["sources"]["documents"]
    assert terms["assets"] == "licences.csv"
    assert len(terms["assets_sha256"]) == 64
    assert str(built.parent) not in (built / LOCK).read_text("utf-8")


def test_an_audit_finds_what_is_missing_superfluous_or_wrong(built: Path, tmp_path: Path) -> None:
    assets = list(read_assets(built))
    image = next(a for a in assets if a.kind == "image")
    text = next(a for a in assets if a.kind == "text" and a.chars)
    source = next(a for a in assets if a.kind == "source")
    wrong = {
        image.key: replace(image, name="mmlongbench-doc/zebra/zebra_page0.jpg"),
        text.key: replace(text, sha256="0" * 64),
        source.key: replace(source, licence="CC0-1.0"),
    }
    found = changed(built, tmp_path, sorted((wrong.get(a.key, a) for a in assets), key=lambda a: a.key))
    said = "\n".join(found)
    assert "an image is not among the assets" in said
    assert "a text is not among the assets" in said
    assert "no example shows an asset" in said
    assert "the licence of a source is not that of the lock" in said


def test_a_hash_of_an_image_is_that_of_its_file(built: Path, tmp_path: Path) -> None:
    assets = list(read_assets(built))
    image = next(a for a in assets if a.kind == "image")
    other = [replace(a, sha256="f" * 64) if a.key == image.key else a for a in assets]
    (line,) = changed(built, tmp_path, sorted(other, key=lambda a: a.key))
    assert "the hash of an image is not that of the lock" in line


def test_rights_say_which_part_asks_for_what(built: Path) -> None:
    ran = command("rights", built, "--json")
    assert ran.code == 0
    found = json.loads(ran.out)
    assert not found["may_be_shared"]
    assert [demand["condition"] for demand in found["demands"]] == ["ask-first", "attribution"]
    assert found["demands"][0]["sources"] == [
        "mmlongdoc/documents: no licence is known",
        "text_mmlongdoc/documents: no licence is known",
    ]
    assert command("rights", built, "--check").code == 1
    shown = command("rights", built).out
    assert "mmlongdoc/documents" in shown
    assert "advice: Find out the licence of mmlongdoc/documents" in shown


def test_a_release_of_an_older_version_has_no_assets_and_no_problem(built: Path, tmp_path: Path) -> None:
    shutil.copytree(built, tmp_path / "release")
    (tmp_path / "release" / ASSETS).unlink()
    data = lock(tmp_path / "release")
    del data["files"][ASSETS]
    (tmp_path / "release" / LOCK).write_text(json.dumps(data), "utf-8")
    assert command("audit", tmp_path / "release", "-q").code == 0
    ran = command("rights", tmp_path / "release")
    assert ran.code == 2
    assert "built by an older version" in ran.err


def test_columns_of_the_question_table_state_licences(tmp_path: Path) -> None:
    rows = (
        row("ash.pdf", "What is its wood?", "hard", "[1]", rights="CC0-1.0", by="Ann"),
        row("birch.pdf", "What is its bark?", "white", "[2]"),
    )
    draw_source(tmp_path / "source", rows)
    licence = {"spdx": "MIT", "columns": {"asset": "doc_id", "licence": "rights", "author": "by"}}
    write_manifest(tmp_path / "source" / "m.yaml", licence=licence, lengths=["1K"])
    ran = command("build", tmp_path / "source" / "m.yaml", "--out", tmp_path / "out")
    assert ran.code == 0, ran.err
    found = {(a.document, a.licence, a.author) for a in read_assets(tmp_path / "out") if a.kind == "image"}
    assert {("ash", "CC0-1.0", "Ann"), ("birch", "MIT", "")} <= found


def test_metadata_of_pictures_and_pdfs_are_hints(tmp_path: Path) -> None:
    exif = Image.Exif()
    exif[315], exif[33432] = "Ann", "(c) Ann\x07, all rights reserved"
    Image.new("RGB", (9, 9)).save(tmp_path / "a.jpg", exif=exif)
    assert picture_hint(tmp_path / "a.jpg") == "EXIF artist: Ann; EXIF copyright: (c) Ann , all rights reserved"
    xmp = b'<x:xmpmeta><rdf:Description cc:license="https://creativecommons.org/licenses/by/4.0/"/></x:xmpmeta>'
    Image.new("RGB", (9, 9)).save(tmp_path / "b.jpg", xmp=xmp)
    assert picture_hint(tmp_path / "b.jpg") == "XMP cc:license: https://creativecommons.org/licenses/by/4.0/"
    (tmp_path / "c.jpg").write_bytes(b"none")
    assert picture_hint(tmp_path / "c.jpg") == pdf_hint(tmp_path / "c.jpg") == ""
    with pymupdf.open() as document:
        document.new_page()
        document.set_metadata({"author": "The Club"})
        document.save(tmp_path / "d.pdf")
    assert pdf_hint(tmp_path / "d.pdf") == "PDF author: The Club"


def test_records_have_the_canary_only_if_it_is_asked_for(source: Path, tmp_path: Path) -> None:
    paths = {"samples": str(source / "samples.json"), "documents": str(source / "documents")}
    canaries = set()
    for name, lengths in (("a", ["1K"]), ("b", ["1K", "2K"])):
        path = write_manifest(tmp_path / f"{name}.yaml", canary=True, source=paths, lengths=lengths)
        assert command("build", path, "--out", tmp_path / name).code == 0
        canaries |= {record["canary"] for record in records(tmp_path / name, "1K")}
        canaries.add(lock(tmp_path / name)["canary"])
    (canary,) = canaries
    assert canary.startswith("mmlongbench benchmark data, not for training: canary ")
    release = open_release(tmp_path / "b")
    sent = [json.dumps(example.messages()) for example in release.examples("mmlongdoc", "2K")]
    assert sent
    assert not [message for message in sent if canary in message]
    assert command("audit", tmp_path / "b", "-q").code == 0


def test_an_extension_with_a_canary_is_the_release_as_built_at_once(source: Path, tmp_path: Path) -> None:
    paths = {"samples": str(source / "samples.json"), "documents": str(source / "documents")}
    short = write_manifest(tmp_path / "short.yaml", canary=True, source=paths, lengths=["1K"])
    both = write_manifest(tmp_path / "both.yaml", canary=True, source=paths, lengths=["1K", "2K"])
    for manifest, out in ((short, "grown"), (both, "grown"), (both, "whole")):
        assert command("build", manifest, "--out", tmp_path / out).code == 0
    assert hashes(tmp_path / "grown") == hashes(tmp_path / "whole")
