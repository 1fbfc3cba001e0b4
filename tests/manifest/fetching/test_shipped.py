"""Fetching the whole benchmark from a hub and a host on this machine that have small files under the real names."""

from pathlib import Path

import pytest
from drawn_downloads import draw_data
from hub_server import HubServer, hub

from mmlongbench.manifest.builtin_manifests import installed_manifests
from mmlongbench.manifest.downloads import DownloadSpec
from mmlongbench.manifest.fetching.fetch import fetch
from mmlongbench.manifest.fetching.places import places_of
from mmlongbench.manifest.loading import load_manifest
from mmlongbench.manifest.missing import missing_of
from mmlongbench.manifest.model import Manifest

pytestmark = pytest.mark.slow

BY_HAND = {
    "InfoSeek/oven_images",
    "coco/train2017",
    "coco/annotations/instances_train2017.json",
    "GovReport/pdfs",
    "Multi-LexSum/pdfs",
}


@pytest.fixture(scope="module")
def drawn(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The files of all datasets as `fetch` and a person leave them; not to be changed."""
    folder = tmp_path_factory.mktemp("drawn") / "data"
    folder.mkdir()
    draw_data(folder)
    return folder


def served(spec: DownloadSpec, drawn: Path, server: HubServer) -> str:
    """Serve the drawn files of a place among others, and return the address that stands for its URL."""
    if spec.url:
        server.files[spec.to] = (drawn / spec.to).read_bytes()
        return f"{server.url}/files/{spec.to}"
    found, branch = server.datasets.get(spec.hub), spec.revision or "main"
    before = found.commits[found.branches[branch]] if found else {}
    named = {str(path.relative_to(drawn / spec.to)): path for path in (drawn / spec.to).rglob("*") if path.is_file()}
    files = {name: path.read_bytes() for name, path in named.items() if spec.matches(name)}
    server.put(spec.hub, {**before, **files, "other/file.bin": b"not needed"}, branch)
    return ""


def copied(folder: Path, drawn: Path, server: HubServer) -> Manifest:
    """Copy the shipped manifests with addresses of the server in place of the real ones; read the whole benchmark."""
    addresses = {
        place.spec.url: served(place.spec, drawn, server)
        for place in places_of(load_manifest(installed_manifests()["benchmark"]))
        if not place.spec.steps
    }
    for name, path in installed_manifests().items():
        text = path.read_text("utf-8")
        for real, here in addresses.items():
            text = text.replace(f"url: {real}", f"url: {here}") if real else text
        (folder / f"{name}.yaml").write_text(text, "utf-8")
    return load_manifest(folder / "benchmark.yaml", data=folder / "data")


def content(folder: Path) -> dict[str, bytes]:
    paths = {str(path.relative_to(folder)): path for path in folder.rglob("*") if path.is_file()}
    return {name: path.read_bytes() for name, path in paths.items() if name not in ("downloads.json", ".fetch.lock")}


def is_by_hand(name: str) -> bool:
    return any(Path(name).is_relative_to(each) for each in BY_HAND)


def test_the_whole_benchmark_is_fetched_to_where_its_manifests_look(
    drawn: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data, expected = tmp_path / "data", content(drawn)
    with hub() as server:
        monkeypatch.setenv("HF_ENDPOINT", server.url)
        loaded = copied(tmp_path, drawn, server)
        done = fetch(loaded, data)
    assert [place.problems for place in done.places if not place.is_complete] == []
    assert {str(left.folder.relative_to(data)) for left in done.left if not left.is_there} == BY_HAND
    assert content(data) == {name: data for name, data in expected.items() if not is_by_hand(name)}
    missing = {spec.name: missing_of(spec) for spec in loaded.datasets}
    assert not [said for said in missing.values() if "mmlongbench fetch" in said]
    assert {name for name, said in missing.items() if said} == {"infoseek", "vh_single", "vh_multi", "gov", "lexsum"}
    for name in filter(is_by_hand, expected):
        (data / name).parent.mkdir(parents=True, exist_ok=True)
        (data / name).write_bytes(expected[name])
    assert [missing_of(spec) for spec in loaded.datasets] == [""] * 21


def test_the_benchmark_has_every_shipped_dataset_once() -> None:
    whole = load_manifest(installed_manifests()["benchmark"])
    own = ("quickstart", "benchmark", "m_longdoc")  # M-LongDoc is a benchmark of its own
    others = [name for name in installed_manifests() if not name.startswith(own)]
    single = [load_manifest(installed_manifests()[name]).datasets[0] for name in others]
    assert {spec.name: spec for spec in whole.datasets} == {spec.name: spec for spec in single}
    assert len(whole.datasets) == len(single) == 21
