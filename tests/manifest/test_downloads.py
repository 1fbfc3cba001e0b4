"""Entries of the key `downloads`: what they may be, which files they match, and that no release depends on them."""

from pathlib import Path, PurePosixPath
from typing import Any

import pytest
import yaml
from hub_forms import write_structure
from tiny import command, hashes

from builders.samples.summarization import draw_reports
from mmlongbench.building.build_dir import BuildDir
from mmlongbench.building.build_plan import plan_datasets
from mmlongbench.errors import ManifestError
from mmlongbench.io.printable import has_secret
from mmlongbench.io.progress import Progress
from mmlongbench.manifest.builtin_manifests import find_manifest, installed_manifests
from mmlongbench.manifest.downloads import RESERVED, DownloadSpec, fault_of_path
from mmlongbench.manifest.fetching.places import Place
from mmlongbench.manifest.fetching.record import DownloadRecord, FetchedDataset, save_record
from mmlongbench.manifest.loading import load_manifest
from mmlongbench.manifest.missing import local_paths, missing_of

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
        (
            {"to": "downloads.json"},
            "downloads.to: expected a path below the data folder: it is a file of `fetch` itself",
        ),
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
        paths = [path for found in local_paths(dataset).values() for path in found]
        assert paths
        for path in paths:
            below = PurePosixPath(path.relative_to(manifest.parent))
            assert any(place.gives(below) for place in dataset.downloads), below
        for place in dataset.downloads:
            assert place.licence or dataset.licence
            assert not has_secret(place.url)
        assert "; `mmlongbench fetch " in missing_of(dataset)


def test_all_missing_sources_are_named_with_how_to_get_them(tmp_path: Path) -> None:
    folder = tmp_path / "my data"
    (dataset,) = load_manifest(find_manifest("vh_single"), data=folder).datasets
    questions = folder / "visual_haystacks/single_needle/VHs_large/visual_haystack_10.json"
    annotations = folder / "coco/annotations/instances_train2017.json"
    photographs, files = (place.steps for place in dataset.downloads if place.steps)
    by_hand = [f"{number}. {step}" for number, step in enumerate(photographs, start=1)]
    said = (
        f"source.questions: no such file or folder: {questions}; source.images: no such file or folder: {folder}/coco; "
        f"source.annotations: no such file or folder: {annotations}; `mmlongbench fetch vh_single --to '{folder}'` "
        f"downloads source.questions; source.images by hand: {' '.join(by_hand)}; "
        f"source.images by hand: 1. {files[0]}; "
        f"source.annotations by hand: 1. {files[0]}"
    )
    assert missing_of(dataset) == said
    questions.parent.mkdir(parents=True)
    questions.touch()
    annotations.parent.mkdir(parents=True)
    assert missing_of(dataset) == (
        f"source.annotations: no such file or folder: {annotations}; source.annotations by hand: 1. {files[0]}"
    )
    annotations.touch()
    assert missing_of(dataset) == ""


def test_a_source_elsewhere_is_named_without_a_command(tmp_path: Path) -> None:
    elsewhere = {"source.samples": tmp_path / "mine.json", "source.documents": tmp_path}
    (dataset,) = load_manifest(find_manifest("mmlongdoc"), elsewhere).datasets
    assert missing_of(dataset) == f"source.samples: no such file or folder: {tmp_path}/mine.json"


def test_plan_and_build_say_how_to_get_what_is_missing(tmp_path: Path) -> None:
    planned = command("plan", "mmlongdoc")
    said = "`mmlongbench fetch mmlongdoc --to data` downloads them, then add --data data\n"
    assert (planned.code, planned.out.endswith(said)) == (1, True)
    built = command("build", "mmlongdoc", "--out", tmp_path / "out")
    assert (built.code, built.err.endswith(said)) == (2, True)
    whole = command("plan", "benchmark", "--data", tmp_path)
    assert whole.code == 1
    assert whole.out.count("cannot be built: ") == 21
    assert whole.out.count(f"--to {tmp_path}` downloads ") == 21


def test_plan_and_build_note_a_download_that_ended_early(tmp_path: Path) -> None:
    data = tmp_path / "data"
    drawn = draw_reports(tmp_path)
    write_structure(drawn["reports"], data / "GovReport")
    drawn["documents"].rename(data / "GovReport/pdfs")
    (dataset,) = load_manifest(find_manifest("gov"), data=data).datasets
    files = tuple(f"GovReport/structure/{split}/0000.parquet" for split in ("test", "train", "validation"))
    listed = {Place(dataset.downloads[0], "", ()).key: FetchedDataset(commit="0" * 40, files=files)}
    save_record(data, DownloadRecord(datasets=listed))
    plan = ("plan", "gov", "--data", data, "--lengths", "8K", "--set", "reference_length=16K")
    assert "note: " not in command(*plan).out
    (data / files[1]).unlink()
    todo = f"`mmlongbench fetch gov --to {data}` downloads it"
    said = f"of the 3 files of hub:launch/gov_report, 1 is missing in {data}; {todo}"
    assert f"\n  note: {said}\n" in command(*plan).out
    assert f"note: dataset 'gov': {said}\n" in command("build", *plan[1:], "--out", tmp_path / "out").err
    (data / RESERVED).write_text("[]", "utf-8")
    assert "note: " not in command(*plan).out
