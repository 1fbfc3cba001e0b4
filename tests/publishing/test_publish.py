"""Publications: what is in the folder, what is read back by others, what is refused, what is uploaded."""

import hashlib
import io
import json
import re
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
import yaml
from exported import check_rows, croissant_rows, every_example, read_images, tree
from hub_server import hub
from needs import library
from once import once
from tiny import command, write_manifest

import mmlongbench as mm

CHOSEN = ("mmlongdoc", "viquae", "vh_multi", "food101")
"""Datasets whose records are read by mlcroissant."""
REQUIRED = (
    *("name", "description", "license", "url", "creator", "datePublished", "distribution"),
    *("rai:dataLimitations", "rai:dataBiases", "rai:personalSensitiveInformation", "rai:dataUseCases"),
    *("rai:dataSocialImpact", "rai:hasSyntheticData", "prov:wasDerivedFrom", "prov:wasGeneratedBy"),
)
"""What Croissant 1.1 and conferences require of a dataset."""
ABOUT = {
    "title": "Harbours",
    "description": "Questions about drawn harbours.",
    "authors": ["A. Author"],
    "contact": "https://example.org/ask",
    "url": "https://example.org/harbours",
    "date": "2026-11-25",
    "citation": "@misc{harbours, title={Harbours}}",
    "use_cases": ["Tests of this package."],
    "biases": ["All harbours are drawn."],
    "sensitive": ["None."],
    "social_impact": "None is known.",
    "synthetic": True,
    "limitations": ["Few | questions <b>."],
}


@pytest.fixture(scope="session")
def published(families: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The publication `out` of the release of all families, and the file `about.yaml`; not to be changed."""

    def make(folder: Path) -> None:
        (folder / "about.yaml").write_text(yaml.safe_dump(ABOUT), "utf-8")
        done = command("publish", families, "--out", folder / "out", "--about", folder / "about.yaml")
        assert (done.code, done.err) == (0, "")

    return once(tmp_path_factory, "published", make)


@pytest.fixture
def release(families: Path) -> Path:
    return families


@pytest.fixture
def folder(published: Path) -> Path:
    return published / "out"


def test_every_configuration_opens_with_datasets_and_equals_the_release(
    release: Path, folder: Path, tmp_path: Path
) -> None:
    from datasets import Image, disable_progress_bars, load_dataset

    disable_progress_bars()
    options = {"cache_dir": str(tmp_path)}
    plain = load_dataset(str(folder), "images", split="images", **options)
    assert plain[0]["image"].size > (0, 0)
    raw = plain.cast_column("image", Image(decode=False))
    images = {row["sha256"]: row["image"]["bytes"] for row in raw}
    rows = [
        row
        for name in mm.open_release(release).datasets
        for split in load_dataset(str(folder), name, **options).values()
        for row in split
    ]
    check_rows(release, rows, images)
    assert {hashlib.sha256(data).hexdigest() for data in images.values()} == images.keys()


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")  # of the packages that it is made of
def test_croissant_is_valid_and_its_records_equal_the_release(release: Path, folder: Path) -> None:
    library("mlcroissant", "test")
    import mlcroissant
    from PIL import Image

    data = mlcroissant.Dataset(jsonld=str(folder / "croissant.json"))
    issues = data.metadata.ctx.issues
    assert (issues.errors, issues.warnings) == (set(), set())
    stored, seen = read_images(folder), dict[str, Any]()
    for record in islice(data.records("images"), 40):
        digest = record["images/sha256"].decode()
        expected = Image.open(io.BytesIO(stored[digest]))
        assert record["images/image"].tobytes() == expected.tobytes()
        seen[digest] = record
    assert len(seen) == 40
    rows, opened = list[dict[str, Any]](), mm.open_release(release)
    for name in CHOSEN:
        for length in opened.lengths(name):
            rows += croissant_rows(data, f"{name}/K{length // 1024}")
    check_rows(release, rows, stored, CHOSEN)


def test_metadata_have_every_required_key_and_lead_from_files_to_sources(folder: Path, release: Path) -> None:
    said = json.loads((folder / "croissant.json").read_text("utf-8"))
    assert not [key for key in REQUIRED if key not in said]
    sources = {each["@id"] for each in said["prov:wasDerivedFrom"]}
    tables = [each for each in said["distribution"] if each["@id"].startswith("data/")]
    assert len(tables) == 2 * len(mm.open_release(release).datasets)
    assert all({each["@id"] for each in table["prov:wasDerivedFrom"]} < sources for table in tables)
    stages = [each["@id"] for each in said["prov:wasGeneratedBy"]]
    assert stages[0] == "stage/documents"
    assert stages[-1] == "stage/publish" == tables[0]["prov:wasGeneratedBy"]["@id"]
    for file in said["distribution"]:
        if file["@type"] == "cr:FileObject":
            assert hashlib.sha256((folder / file["contentUrl"]).read_bytes()).hexdigest() == file["sha256"]


def test_the_folder_has_every_part_and_its_checksums(release: Path, folder: Path) -> None:
    top = {path.name for path in folder.iterdir()}
    metadata = {"README.md", "LICENSES", "croissant.json", "CITATION.cff", "manifest.resolved.yaml", "checksums.txt"}
    assert top == {*metadata, "build.lock.json", "assets.parquet", "data", "images", "pictures"}
    lines = [line.split("  ") for line in (folder / "checksums.txt").read_text("utf-8").splitlines()]
    assert {name: digest for digest, name in lines} == {
        name: digest for name, digest in tree(folder).items() if name != "checksums.txt"
    }
    assert (folder / "build.lock.json").read_bytes() == (release / "build.lock.json").read_bytes()
    resolved = yaml.safe_load((folder / "manifest.resolved.yaml").read_text("utf-8"))
    assert [data["name"] for data in resolved["datasets"]] == [*mm.open_release(release).datasets]
    assert yaml.safe_load((folder / "CITATION.cff").read_text("utf-8"))["authors"] == [{"name": "A. Author"}]
    assert "Licence: CC0-1.0" in (folder / "LICENSES/CC0-1.0.txt").read_text("utf-8")


def test_images_stand_once_in_bounded_row_groups(release: Path, folder: Path) -> None:
    images = read_images(folder)
    assert all(hashlib.sha256(data).hexdigest() == digest for digest, data in images.items())
    size = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
    assert sum(path.stat().st_size for path in (folder / "images").iterdir()) <= 1.02 * sum(map(len, images.values()))
    assert size <= 1.1 * sum(map(len, images.values()))
    for path in folder.rglob("*.parquet"):
        meta = pq.ParquetFile(path).metadata
        groups = [meta.row_group(number) for number in range(meta.num_row_groups)]
        assert all(group.num_rows <= 100 or "assets" in path.name for group in groups)


def test_the_card_says_what_is_in_the_folder(release: Path, folder: Path) -> None:
    card = (folder / "README.md").read_text("utf-8")
    _, head, body = card.split("---\n", 2)
    configs = yaml.safe_load(head)["configs"]
    assert [config["config_name"] for config in configs] == [*mm.open_release(release).datasets, "images"]
    assert "Few \\| questions &lt;b&gt;." in body
    assert "canary: mmlongbench" not in body
    assert "mmlongbench benchmark data, not for training: canary" in body
    assert body.count("](pictures/") == 3
    assert all((folder / "pictures" / f"{number}.jpg").is_file() for number in (1, 2, 3))
    practices = re.findall(r"^\| [a-z]+ \| .* \| (met|not met|not ours) \| ", body, re.MULTILINE)
    assert len(practices) == 36
    assert "| documentation | It can be cited | met | yes |" in body
    assert "| design | Shortcuts to answers were looked for | not met | yes |" in body


def table_of(card: str, head: str) -> tuple[str, list[list[str]]]:
    """The rule and the rows of the table of a card whose first line begins with `head`."""
    lines = card[card.index(head) :].partition("\n\n")[0].splitlines()
    return lines[1], [line.strip("| ").split(" | ") for line in lines[2:]]


def test_every_column_is_described(folder: Path) -> None:
    said = json.loads((folder / "croissant.json").read_text("utf-8"))
    assert all(field["description"] for record_set in said["recordSet"] for field in record_set["field"])
    card = (folder / "README.md").read_text("utf-8")
    _, rows = table_of(card, "| configuration | column |")
    described: dict[str, set[str]] = {}
    for where, column, _ in rows:
        described.setdefault(where, set()).add(column.strip("`"))
    for path in (*(folder / "data").rglob("*.parquet"), *(folder / "images").iterdir()):
        where = "`images`" if path.parent.name == "images" else "of a dataset"
        assert set(pq.read_schema(path).names) == described[where]
    assert "# DIR is the path of this folder" in card


def test_the_rows_that_are_left_out_are_all_of_those_that_are_not_kept(release: Path, folder: Path) -> None:
    card = (folder / "README.md").read_text("utf-8")
    _, rows = table_of(card, "| dataset | rows read |")
    assert len(rows) == len(mm.open_release(release).datasets)
    for _, read, kept, not_chosen, reasons, _ in rows:
        others = sum(int(each.rpartition(" ")[2]) for each in reasons.split(", ") if each != "–")
        assert int(read) == int(kept) + int(not_chosen) + others


def test_a_release_of_one_dataset_shows_three_questions(licensed: Any, tmp_path: Path) -> None:
    done = command("publish", licensed("MIT"), "--out", tmp_path / "out")
    assert done.code == 0, done.err
    card = (tmp_path / "out/README.md").read_text("utf-8")
    assert len(set(re.findall(r"First images of (\S+)\]\(pictures/", card))) == 3


def test_the_same_release_gives_the_same_bytes(release: Path, published: Path, tmp_path: Path) -> None:
    assert command("publish", release, "--out", tmp_path / "again", "--about", published / "about.yaml").code == 0
    assert tree(tmp_path / "again") == tree(published / "out")


def test_audits_are_told_in_the_card(trees: Path, tmp_path: Path) -> None:
    audit = command("audit", trees, "--json")
    (tmp_path / "audit.json").write_text(audit.out, "utf-8")
    finding = {
        "dataset": "mmlongdoc", "file": "x.jsonl", "kind": "answer from places", "verdict": "leak", "questions": 9,
        "clusters": 9, "measure": "answers guessed right", "found": 0.8, "chance": 0.5, "low": 0.1, "high": 0.5,
        "p": 0.001, "smallest": 0.1, "needed": 9, "evidence": "the first place", "examples": ["a"],
    }  # fmt: skip
    (tmp_path / "shortcuts.json").write_text(json.dumps(finding), "utf-8")
    given = ("--audit", tmp_path / "audit.json", "--shortcuts", tmp_path / "shortcuts.json")
    done = command("publish", trees, "--allow-unknown-licence", "--out", tmp_path / "out", *given)
    assert done.code == 0, done.err
    card = (tmp_path / "out/README.md").read_text("utf-8")
    assert "| mmlongdoc | answer from places | answers guessed right | 80.0% | 50.0% | +10.0% to +50.0% |" in card
    assert "| implementation | Figures were counted a second time | met | yes |" in card
    assert "were not counted again" not in card
    about = yaml.safe_load(card.split("---\n", 2)[1])
    assert (about["license"], about["license_name"], about["license_link"]) == ("other", "several-see-card", "LICENSES")
    finding["dataset"] = "other"
    (tmp_path / "shortcuts.json").write_text(json.dumps(finding), "utf-8")
    refused = command("publish", trees, "--allow-unknown-licence", "--out", tmp_path / "more", *given)
    assert (refused.code, "is about 'other', which the release does not have" in refused.err) == (2, True)
    assert not (tmp_path / "more").exists()


def test_an_unknown_licence_is_refused_unless_allowed(finished: Path, tmp_path: Path) -> None:
    refused = command("publish", finished, "--out", tmp_path / "out")
    assert refused.code == 2
    assert "no licence is known of mmlongdoc/documents" in refused.err
    assert not (tmp_path / "out").exists()
    assert command("publish", finished, "--out", tmp_path / "out", "--allow-unknown-licence").code == 0
    assert "No licence is known of" in (tmp_path / "out/README.md").read_text("utf-8")


@pytest.fixture
def licensed(source: Path, tmp_path: Path) -> Any:
    def build(licence: object) -> Path:
        places = {name: str(source / name) for name in ("samples.json", "documents")}
        sources = {"samples": places["samples.json"], "documents": places["documents"]}
        manifest = write_manifest(tmp_path / "licensed.yaml", licence=licence, source=sources)
        done = command("build", manifest, "--out", tmp_path / "release")
        assert done.code == 0, done.err
        return tmp_path / "release"

    return build


def test_what_a_licence_forbids_is_never_in_the_folder(licensed: Any, tmp_path: Path) -> None:
    table = "asset,licence,author,url\ncedar.pdf,CC-BY-ND-4.0,,\n"
    (tmp_path / "licences.csv").write_text(table, "utf-8")
    release = licensed({"spdx": "CC-BY-4.0", "assets": "licences.csv"})
    done = command("publish", release, "--out", tmp_path / "out")
    assert done.code == 0, done.err
    pages = (release / "mmlb_image").rglob("*cedar*.jpg")
    forbidden = {hashlib.sha256(path.read_bytes()).hexdigest() for path in pages}
    assert forbidden
    assert not forbidden & read_images(tmp_path / "out").keys()
    rows = [row for path in (tmp_path / "out/data").rglob("*.parquet") for row in pq.read_table(path).to_pylist()]
    assert rows
    assert not [row for row in rows if forbidden & set(row["images"])]
    left = len(list(every_example(release))) - len(rows)
    assert f"{left:,} examples are left out, because a licence forbids to publish them" in done.err


def test_terms_that_must_be_read_first_are_refused_until_they_are_cleared(licensed: Any, tmp_path: Path) -> None:
    release = licensed({"name": "Terms of the archive", "text": "Ask the archive."})
    refused = command("publish", release, "--out", tmp_path / "out")
    assert (refused.code, "--cleared 'Terms of the archive'" in refused.err) == (2, True)
    assert command("publish", release, "--out", tmp_path / "out", "--cleared", "Terms of the archive").code == 0
    (path,) = (tmp_path / "out/LICENSES").iterdir()
    assert path.read_text("utf-8").endswith("Ask the archive.\n")


def test_nothing_that_may_be_published_is_an_error(licensed: Any, tmp_path: Path) -> None:
    release = licensed("CC-BY-NC-ND-4.0")
    refused = command("publish", release, "--out", tmp_path / "out")
    assert (refused.code, "no example may be published" in refused.err) == (2, True)
    assert not (tmp_path / "out").exists()


@pytest.fixture
def uploads(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """A hub that takes uploads; the client's own storage protocol is not spoken here."""
    from huggingface_hub import constants

    monkeypatch.setattr(constants, "HF_HUB_DISABLE_XET", True)
    monkeypatch.setenv("HF_TOKEN", "SECRET")
    with hub() as server:
        monkeypatch.setenv("HF_ENDPOINT", server.url)
        yield server


@pytest.mark.filterwarnings("ignore:Use 'content=:DeprecationWarning")  # of the hub's client
def test_an_upload_has_the_files_and_an_extension_sends_only_what_is_new(
    uploads: Any, source: Path, tmp_path: Path
) -> None:
    paths = {"samples": str(source / "samples.json"), "documents": str(source / "documents")}

    def built(*lengths: str) -> Path:
        path = write_manifest(tmp_path / "m.yaml", source=paths, licence="MIT", lengths=[*lengths])
        assert command("build", path, "--out", tmp_path / "harbours").code == 0
        return tmp_path / "harbours"

    release = built("1K")
    assert command("publish", release, "--out", tmp_path / "one").code == 0
    assert uploads.requests == []
    done = command("publish", release, "--out", tmp_path / "first", "--to", "hub:me/harbours")
    assert done.code == 0, done.err
    assert uploads.made == [{"name": "harbours", "organization": "me", "type": "dataset", "visibility": "private"}]
    first, received = on_hub(uploads), uploads.received
    assert first == files_of(tmp_path / "first")
    built("1K", "2K")
    done = command("publish", release, "--out", tmp_path / "second", "--to", "hub:me/harbours", "--public")
    assert done.code == 0, done.err
    second = on_hub(uploads)
    assert second == files_of(tmp_path / "second")
    same = {name for name in first if second.get(name) == first[name]}
    assert {name for name in first if name.startswith(("data/", "images/"))} <= same
    new = sum(len(data) for name, data in second.items() if first.get(name) != data)
    assert uploads.received - received <= 1.02 * new + 40_000  # names, hashes and samples in requests


def on_hub(server: Any) -> dict[str, bytes]:
    found = server.datasets["me/harbours"]
    return dict(found.commits[found.branches["main"]])


def files_of(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("to", ["owner/name", "hub:name", "hub:a/b/c", "s3:a/b"])
def test_other_places_are_refused_before_anything_is_made(to: str, release: Path, tmp_path: Path) -> None:
    done = command("publish", release, "--out", tmp_path / "out", "--to", to)
    assert (done.code, "expected hub:owner/name" in done.err) == (2, True)
    assert not (tmp_path / "out").exists()


def test_the_configuration_of_images_has_a_name_of_its_own(source: Path, tmp_path: Path) -> None:
    paths = {"samples": str(source / "samples.json"), "documents": str(source / "documents")}
    made: dict[str, Any] = {"datasets": []}
    for name in ("images", "image-table"):
        path = write_manifest(tmp_path / "m.yaml", name=name, source=paths, lengths=["1K"], licence="MIT")
        made["datasets"] += yaml.safe_load(path.read_text("utf-8"))["datasets"]
    (tmp_path / "m.yaml").write_text(yaml.safe_dump(made), "utf-8")
    assert command("build", tmp_path / "m.yaml", "--out", tmp_path / "release").code == 0
    done = command("publish", tmp_path / "release", "--out", tmp_path / "out")
    assert done.code == 0, done.err
    head = yaml.safe_load((tmp_path / "out/README.md").read_text("utf-8").split("---\n")[1])
    names = [each["config_name"] for each in head["configs"]]
    assert sorted(names) == ["image-table", "image-table-2", "images"]
