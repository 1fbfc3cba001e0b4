"""Licences of a manifest: the forms that are accepted, and what becomes of them."""

from pathlib import Path

import pytest
from tiny import command, write_manifest

from mmlongbench.building.licence_tables import read_table
from mmlongbench.errors import SourceError
from mmlongbench.manifest.conditions import conditions_of
from mmlongbench.manifest.licences import Licence, spdx_expression, terms_of
from mmlongbench.manifest.loading import load_manifest
from mmlongbench.publishing.rights import contradicts


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
    ("table", "said"),
    [
        ("asset,license\na,MIT\n", "line 1"),
        ("asset,licence\na,MIT\nb\n", "line 3"),
        ("asset,licence\na,MIT\na,MIT\n", "line 3"),
        ("asset,licence\n,MIT\n", "line 2"),
    ],
)
def test_a_bad_line_of_a_table_of_licences_is_named(table: str, said: str, tmp_path: Path) -> None:
    (tmp_path / "licences.csv").write_text(table, "utf-8")
    with pytest.raises(SourceError, match=f"licences.csv, {said}"):
        read_table(tmp_path / "licences.csv")


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
