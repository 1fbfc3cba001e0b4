"""Entries of the key `downloads`: what they may be, which files they match, and that no release depends on them."""

from pathlib import Path, PurePosixPath
from typing import Any

import pytest
import yaml
from tiny import command, hashes

from mmlongbench.building.build_dir import BuildDir
from mmlongbench.building.build_plan import plan_datasets
from mmlongbench.errors import ManifestError
from mmlongbench.io.printable import has_secret
from mmlongbench.io.progress import Progress
from mmlongbench.manifest.builtin_manifests import find_manifest, installed_manifests
from mmlongbench.manifest.downloads import DownloadSpec, fault_of_path
from mmlongbench.manifest.missing import how_to_get, missing_sources
from mmlongbench.manifest.model import load_manifest

HUB: dict[str, Any] = {"hub": "owner/set", "files": ["a/*.pdf"], "to": "Set"}
SHIPPED = sorted(name for name in installed_manifests() if not name.startswith("quickstart"))


def refusal(tmp_path: Path, entry: object) -> str:
    dataset = {"name": "a", "builder": "docvqa", "reader": "own_documents", "source": "sample", "downloads": [entry]}
    (tmp_path / "own.yaml").write_text(yaml.safe_dump({"datasets": [dataset]}), "utf-8")
    with pytest.raises(ManifestError) as refused:
        load_manifest(tmp_path / "own.yaml")
    return str(refused.value).partition("dataset 'a': ")[2]


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"hub": ""}, "downloads: expected one of hub, url and steps, found none"),
        ({"url": "https://host/x"}, "downloads: expected one of hub, url and steps, found hub and url"),
        ({"files": []}, "downloads: expected `files` with `hub`"),
        ({"hub": "owner"}, "downloads.hub: String should match pattern"),
        ({"hub": "", "files": [], "url": "ftp://host/x"}, "downloads: url: expected http:// or https://"),
        ({"hub": "", "files": [], "url": "https://host/x", "revision": "v1"}, "downloads: expected `files` with `hub`"),
        ({"to": "../x"}, "downloads.to: expected a path below the data folder: it has a part '..'"),
        ({"to": "/x"}, "downloads.to: expected a path below the data folder: it has a part ''"),
        ({"to": "downloads.json"}, "downloads.to: expected a path below the data folder: downloads.json lists"),
        ({"license": "x"}, "unknown key 'downloads.license'; did you mean 'licence'?"),
        ({"size": 3}, "unknown key 'downloads.size'"),
    ],
)
def test_a_wrong_entry_is_named(changes: dict[str, Any], said: str, tmp_path: Path) -> None:
    assert refusal(tmp_path, {**HUB, **changes}).startswith(said)


@pytest.mark.parametrize(
    "path", ["C:/x", "a/./b", "a/../b", "a\\b", "a\nb", "a/\u202eb", "a" * 300, " a", "a/b ", ".part-0"]
)
def test_a_path_that_may_lead_elsewhere_or_mislead_is_refused(path: str) -> None:
    assert fault_of_path(path)


@pytest.mark.parametrize(
    ("pattern", "file", "matches"),
    [
        ("documents/*.pdf", "documents/a.pdf", True),
        ("documents/*.pdf", "documents/b/a.pdf", False),
        ("**/*.parquet", "a/b/c.parquet", True),
        ("**/*.parquet", "c.parquet", True),
        ("data/test-*.parquet", "data/train-0.parquet", False),
        ("a?.b", "axb", False),
        ("a?.b", "ax.b", True),
    ],
)
def test_a_pattern_matches_files_of_its_folder(pattern: str, file: str, matches: bool) -> None:
    assert DownloadSpec(hub="a/b", files=(pattern,), to="x").matches(file) == matches


def test_downloads_change_neither_the_lock_nor_the_release(source: Path, tmp_path: Path) -> None:
    loaded = yaml.safe_load((source / "tiny.yaml").read_text("utf-8"))
    for each in ("documents", "samples.json", "tiny.yaml"):
        (tmp_path / each).symlink_to(source / each)
    loaded["datasets"][0]["downloads"] = [HUB, {"url": "https://user:password@host/x?sig=token", "to": "x"}]
    (tmp_path / "more.yaml").write_text(yaml.safe_dump(loaded), "utf-8")
    for name in ("tiny", "more"):
        built = command("build", tmp_path / f"{name}.yaml", "--out", tmp_path / name)
        assert built.code == 0, built.err
    assert hashes(tmp_path / "tiny") == hashes(tmp_path / "more")
    assert command("build", tmp_path / "more.yaml", "--out", tmp_path / "tiny").out.count("complete") == 1
    plans = plan_datasets(load_manifest(tmp_path / "more.yaml"), BuildDir(tmp_path / "new"), Progress(False))
    assert "downloads" not in plans[0].public()


@pytest.mark.parametrize("name", SHIPPED)
def test_every_source_of_a_shipped_manifest_has_a_download(name: str, tmp_path: Path) -> None:
    """Each source lies where an entry puts files; no entry is without a licence; no address has a secret."""
    manifest = find_manifest(name)
    for dataset in load_manifest(manifest).datasets:
        assert isinstance(dataset.source, dict)
        for path in (*dataset.source.values(), *([dataset.corpus] if dataset.corpus else [])):
            below = PurePosixPath(path.relative_to(manifest.parent))
            assert any(place.gives(below) for place in dataset.downloads), below
        for place in dataset.downloads:
            assert place.licence or dataset.licence
            assert not has_secret(place.url)
    for line in missing_sources(load_manifest(manifest), manifest.parent):
        assert (
            f"`mmlongbench fetch {name} --to data` downloads it, then add --data data" in line
            or "; by hand: 1. " in line
        )


def test_a_missing_source_says_how_to_get_it(tmp_path: Path) -> None:
    folder = tmp_path / "my data"
    dataset = load_manifest(
        find_manifest("vh_single"),
        {"source.images": folder / "coco", "source.questions": folder / "visual_haystacks/single_needle"},
    ).datasets[0]
    assert isinstance(dataset.source, dict)
    said = how_to_get(dataset, dataset.source["questions"])
    assert said == f"; `mmlongbench fetch vh_single --to '{folder}'` downloads it"
    said = how_to_get(dataset, dataset.source["images"], "own.yaml")
    assert said.startswith("; by hand: 1. Read COCO's terms of use")
    assert how_to_get(dataset, tmp_path / "elsewhere") == ""


def test_plan_and_build_say_how_to_get_what_is_missing(tmp_path: Path) -> None:
    planned = command("plan", "mmlongdoc")
    assert (planned.code, planned.out.endswith("then add --data data\n")) == (1, True)
    built = command("build", "mmlongdoc", "--out", tmp_path / "out")
    assert "`mmlongbench fetch mmlongdoc --to data` downloads it, then add --data data" in built.err
    assert built.code == 2
