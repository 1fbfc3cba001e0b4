"""The table of assets: every image and text of a release has a source, a licence, an origin and a hash."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from once import linked
from taken_down import ASSETS, Row, assets, change_assets
from tiny import command, draw_source, hashes, lock, records, row, write_manifest

import mmlongbench as mm


def test_every_image_and_text_has_a_row(trees: Path) -> None:
    assert command("audit", trees, "-q").code == 0
    shown = {path for name in ("1K", "2K") for record in records(trees, name) for path in record["page_list"]}
    images = {each["name"]: each for each in assets(trees, kind="image")}
    assert images.keys() == shown
    assert {each["dataset"] for each in assets(trees, kind="text")} == {"text_mmlongdoc"}
    ash = images["mmlongbench-doc/ash/ash_page0.jpg"]
    fields = ("source", "document", "inside", "licence", "licence_kind", "author", "url", "origin")
    assert [ash[field] for field in fields] == [
        *("documents", "ash", "ash.pdf#page=1", "CC0-1.0", "spdx", "Ann", "https://example.org/ash", "")
    ]
    cedar = next(each for each in images.values() if each["document"] == "cedar")
    assert [cedar[field] for field in ("licence", "licence_kind", "url", "author")] == ["CC-BY-4.0", "spdx", "", ""]
    for name, each in images.items():
        assert each["sha256"].hex() == hashes(trees)[f"mmlb_image/{name}"]


def test_the_lock_has_no_path_of_this_machine(trees: Path) -> None:
    (data, _) = lock(trees)["manifest"]
    terms = data["licence"]["sources"]["documents"]
    assert terms["assets"] == "licences.csv"
    assert len(terms["assets_sha256"]) == 64
    assert str(trees.parent) not in (trees / "build.lock.json").read_text("utf-8")


def first(rows: list[Row], kind: str) -> Row:
    return next(row for row in rows if row["kind"] == kind and (kind != "text" or row["chars"]))


def with_change(kind: str, **fields: object) -> Callable[[list[Row]], list[Row]]:
    """A change of the first row of a kind; the rows stay sorted."""

    def change(rows: list[Row]) -> list[Row]:
        first(rows, kind).update(fields)
        return sorted(rows, key=lambda row: (row["dataset"], row["kind"], row["name"], row["sha256"]))

    return change


CHANGES: dict[str, tuple[Callable[[list[Row]], list[Row]], set[str]]] = {
    "another name of an image": (
        with_change("image", name="mmlongbench-doc/zebra/zebra_page0.jpg"),
        {"an image is not among the assets", "no example shows an asset"},
    ),
    "another hash of a text": (
        with_change("text", sha256=b"0" * 32),
        {"a text is not among the assets", "no example shows an asset"},
    ),
    "another licence of a source": (
        with_change("source", licence="CC0-1.0"),
        {"the licence of a source is not that of the lock"},
    ),
    "another hash of a source": (
        with_change("source", sha256=b"0" * 32),
        {"the hash of a source is not that of the lock"},
    ),
    "another hash of an image": (
        with_change("image", sha256=b"f" * 32),
        {"the hash of an image is not that of the lock"},
    ),
    "an asset twice": (
        lambda rows: sorted([*rows, rows[0]], key=lambda row: (row["dataset"], row["kind"], row["name"])),
        {"the assets are not sorted, or have an asset twice"},
    ),
    "an asset of no dataset": (
        with_change("image", dataset="zoo"),
        {"an asset belongs to no dataset of the lock", "an image is not among the assets"},
    ),
}


@pytest.mark.parametrize("name", CHANGES)
def test_an_audit_finds_assets_that_are_missing_superfluous_or_wrong(name: str, trees: Path, tmp_path: Path) -> None:
    change, kinds = CHANGES[name]
    release = linked(trees, tmp_path / "release")
    change_assets(release, change)
    audited = map(json.loads, command("audit", release, "--json").out.splitlines())
    assert {problem["problem"] for file in audited for problem in file["problems"]} == kinds


def test_rights_say_which_part_asks_for_what(trees: Path) -> None:
    ran = command("rights", trees, "--json")
    assert ran.code == 0
    found = json.loads(ran.out)
    assert not found["may_be_shared"]
    assert [demand["condition"] for demand in found["demands"]] == ["ask-first", "attribution"]
    rows = [each for each in assets(trees) if each["kind"] != "source"]
    licensed, addressed = ([each for each in rows if each[field]] for field in ("licence", "url"))
    assert (found["with_licence"], found["with_origin"]) == (len(licensed), len(addressed))
    assert 0 < len(addressed) < len(licensed) < len(rows) == found["images"] + found["texts"]
    assert found["demands"][0]["sources"] == [
        "mmlongdoc/documents: no licence is known",
        "text_mmlongdoc/documents: no licence is known",
    ]
    assert command("rights", trees, "--check").code == 1
    shown = command("rights", trees).out
    assert "mmlongdoc/documents" in shown
    assert "advice: Find out the licence of mmlongdoc/documents" in shown


def test_a_release_of_an_older_version_has_no_assets_and_no_problem(trees: Path, tmp_path: Path) -> None:
    linked(trees, tmp_path / "release")
    (tmp_path / "release" / ASSETS).unlink()
    data = lock(tmp_path / "release")
    del data["files"][ASSETS]
    (tmp_path / "release" / "build.lock.json").write_text(json.dumps(data), "utf-8")
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
    found = {(a["document"], a["licence"], a["author"]) for a in assets(tmp_path / "out", kind="image")}
    assert {("ash", "CC0-1.0", "Ann"), ("birch", "MIT", "")} <= found


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
    release = mm.open_release(tmp_path / "b")
    sent = [json.dumps(example.messages()) for example in release.examples("mmlongdoc", "2K")]
    assert sent
    assert not [message for message in sent if canary in message]
    assert command("audit", tmp_path / "b", "-q").code == 0
    (tmp_path / "a.yaml").write_text((tmp_path / "b.yaml").read_text("utf-8"), "utf-8")
    assert command("build", tmp_path / "a.yaml", "--out", tmp_path / "a").code == 0
    assert hashes(tmp_path / "a") == hashes(tmp_path / "b")  # an extension is the release as built at once
