"""Fetching the whole benchmark from a hub and a host on this machine, whose files have the names of the real ones."""

from pathlib import Path

import pytest
from hub_server import HubServer, hub

from mmlongbench.manifest.builtin_manifests import installed_manifests
from mmlongbench.manifest.downloads import DownloadSpec
from mmlongbench.manifest.fetching.fetch import fetch
from mmlongbench.manifest.fetching.places import places_of
from mmlongbench.manifest.missing import local_paths, missing_of
from mmlongbench.manifest.model import Manifest, load_manifest

HANDMADE = {"InfoSeek/oven_images", "coco/train2017", "GovReport/pdfs", "Multi-LexSum/pdfs"}
ANNOTATIONS = "coco/annotations/instances_train2017.json"


def served(spec: DownloadSpec, server: HubServer) -> str:
    """Serve files for a place, and return the address that stands for its URL."""
    if spec.hub:
        found = server.datasets.get(spec.hub)
        before = found.commits[found.branches[spec.revision or "main"]] if found else {}
        files = {pattern.replace("*", "x1"): pattern.encode() for pattern in spec.files}
        server.put(spec.hub, {**before, **files, "other/file.bin": b"not needed"}, spec.revision or "main")
        return ""
    server.files[spec.to] = spec.url.encode()
    return f"{server.url}/files/{spec.to}"


def copied(folder: Path, server: HubServer) -> Manifest:
    """Copy the shipped manifests with addresses of the server in place of the real ones; read the whole benchmark."""
    addresses = {
        place.spec.url: served(place.spec, server)
        for place in places_of(load_manifest(installed_manifests()["benchmark"]))
        if not place.spec.steps
    }
    for name, path in installed_manifests().items():
        text = path.read_text("utf-8")
        for real, here in addresses.items():
            text = text.replace(f"url: {real}", f"url: {here}") if real else text
        (folder / f"{name}.yaml").write_text(text, "utf-8")
    return load_manifest(folder / "benchmark.yaml", data=folder / "data")


def test_the_whole_benchmark_is_fetched_to_where_its_manifests_look(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = tmp_path / "data"
    waits: list[float] = []
    with hub() as server:
        monkeypatch.setenv("HF_ENDPOINT", server.url)
        loaded = copied(tmp_path, server)
        done = fetch(loaded, data, wait=waits.append)
        assert [place.problems for place in done.places if not place.is_complete] == []
        assert {str(left.folder.relative_to(data)) for left in done.left} == {*HANDMADE, ANNOTATIONS}
    assert not list(data.rglob("file.bin"))
    missing = {spec.name: missing_of(spec) for spec in loaded.datasets}
    assert not [said for said in missing.values() if "mmlongbench fetch" in said]
    assert {name for name, said in missing.items() if said} == {"infoseek", "vh_single", "vh_multi", "gov", "lexsum"}
    for name in HANDMADE:
        (data / name).mkdir(parents=True)
    (data / ANNOTATIONS).parent.mkdir()
    (data / ANNOTATIONS).touch()
    assert [missing_of(spec) for spec in loaded.datasets] == [""] * 21
    assert all(local_paths(spec) for spec in loaded.datasets)


def test_the_benchmark_has_every_shipped_dataset_once() -> None:
    whole = load_manifest(installed_manifests()["benchmark"])
    others = [name for name in installed_manifests() if not name.startswith(("quickstart", "benchmark"))]
    single = [load_manifest(installed_manifests()[name]).datasets[0] for name in others]
    assert sorted(spec.name for spec in whole.datasets) == sorted(spec.name for spec in single)
    assert {spec.name: spec for spec in whole.datasets} == {spec.name: spec for spec in single}
