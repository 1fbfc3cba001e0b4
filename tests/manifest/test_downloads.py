"""Downloads of a manifest: entries, files whole and checked from a hub on this machine, faults, what is missing."""

import errno
import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from shlex import quote
from typing import Any

import httpx2
import huggingface_hub
import pytest
import yaml
from drawn_downloads import draw_data
from hub_server import Fault, HubServer, hub
from huggingface_hub.utils._http import default_client_factory
from tiny import PAGES, command, hashes, write_manifest

from mmlongbench.errors import BuildError, DiskFullError, FetchError, ManifestError
from mmlongbench.io.files import file_lock, sha256_of
from mmlongbench.io.printable import has_secret
from mmlongbench.manifest.downloads import FETCH_LOCK, RESERVED, DownloadSpec, fault_of_path
from mmlongbench.manifest.fetch import Fetched, fetch, places_of
from mmlongbench.manifest.loading import find_manifest, installed_manifests, load_manifest
from mmlongbench.manifest.missing import local_paths, missing_of
from mmlongbench.manifest.model import Manifest

NAME = "owner/set"
BIG = bytes(range(256)) * 40
"""Larger than what the hub keeps itself."""
FILES = {"data/a.jsonl": b'{"a": 1}\n', "data/pictures.tar": BIG, "README.md": b"# Set\n"}
HERE: dict[str, Any] = {"hub": NAME, "files": ["data/*"], "to": "Set"}


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[HubServer]:
    with hub() as found:
        found.put(NAME, FILES)
        monkeypatch.setenv("HF_ENDPOINT", found.url)
        monkeypatch.setenv("HF_TOKEN", "hf_SECRET")
        yield found


@pytest.fixture(autouse=True)
def waits(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Every wait that was asked for; nobody waits."""
    found: list[float] = []
    monkeypatch.setattr("time.sleep", found.append)
    return found


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return tmp_path / "data"


def manifest(tmp_path: Path, *downloads: dict[str, Any], **more: list[dict[str, Any]]) -> Manifest:
    """Return a manifest whose dataset `a` has these downloads; `more` are other datasets."""
    common = {"builder": "docvqa", "reader": "own_documents", "source": "sample", "licence": "CC0"}
    datasets = [{"name": name, **common, "downloads": each} for name, each in {"a": list(downloads), **more}.items()]
    (tmp_path / "own.yaml").write_text(yaml.safe_dump({"datasets": datasets}), "utf-8")
    return load_manifest(tmp_path / "own.yaml")


def problem(done: Fetched) -> str:
    """The only problem of the only place."""
    (place,) = done.places
    (found,) = place.problems
    assert not done.is_complete
    return found


def record(data: Path) -> dict[str, Any]:
    read: dict[str, Any] = json.loads((data / "downloads.json").read_text("utf-8"))
    return read


def files_in(data: Path) -> dict[str, bytes]:
    """Every file of a data folder but the record and the lock."""
    found = {str(path.relative_to(data)): path.read_bytes() for path in sorted(data.rglob("*")) if path.is_file()}
    return {name: content for name, content in found.items() if name not in ("downloads.json", ".fetch.lock")}


def url_of(server: HubServer, tmp_path: Path, name: str, content: bytes | None = BIG) -> Manifest:
    """A manifest with one file at a URL of the server."""
    if content is not None:
        server.files[name] = content
    return manifest(tmp_path, {"url": f"{server.url}/files/{name}", "to": name})


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"hub": ""}, "downloads: expected one of hub, url and steps, found none"),
        ({"url": "https://host/x"}, "downloads: expected one of hub, url and steps, found hub and url"),
        ({"files": []}, "downloads: expected `files` with `hub`"),
        ({"hub": "owner"}, "downloads.hub: "),
        ({"hub": "", "files": [], "url": "ftp://host/x"}, "downloads: url: expected http:// or https://"),
        ({"hub": "", "files": [], "url": "https://host/x", "revision": "v1"}, "downloads: expected `files` with `hub`"),
        ({"to": "../x"}, "downloads.to: expected a path below the data folder: it has a part '..'"),
        ({"to": "/x"}, "downloads.to: expected a path below the data folder: it has a part ''"),
        ({"to": "downloads.json"}, "downloads.to: expected a path below the data folder: it is a file of `fetch`"),
        ({"license": "x"}, "unknown key 'downloads.license'; did you mean 'licence'?"),
        ({"size": 3}, "unknown key 'downloads.size'"),
    ],
)
def test_a_wrong_entry_is_named(changes: dict[str, Any], said: str, tmp_path: Path) -> None:
    with pytest.raises(ManifestError) as refused:
        manifest(tmp_path, {"hub": "owner/set", "files": ["a/*.pdf"], "to": "Set", **changes})
    assert str(refused.value).partition("dataset 'a': ")[2].startswith(said)


def test_a_path_that_may_lead_elsewhere_or_mislead_is_refused() -> None:
    for path in ("C:/x", "a/./b", "a/../b", "a\\b", "a\nb", "a/\u202eb", "a" * 300, " a", "a/b ", ".part-0"):
        assert fault_of_path(path), path


def test_a_pattern_matches_files_of_its_folder() -> None:
    for pattern, file, matches in (
        ("documents/*.pdf", "documents/a.pdf", True),
        ("documents/*.pdf", "documents/b/a.pdf", False),
        ("**/*.parquet", "a/b/c.parquet", True),
        ("**/*.parquet", "c.parquet", True),
        ("data/test-*.parquet", "data/train-0.parquet", False),
        ("a?.b", "axb", False),
        ("a?.b", "ax.b", True),
    ):
        assert DownloadSpec(hub="a/b", files=(pattern,), to="x").matches(file) == matches, pattern


def test_downloads_change_neither_the_lock_nor_the_release(source: Path, finished: Path, tmp_path: Path) -> None:
    loaded = yaml.safe_load((source / "tiny.yaml").read_text("utf-8"))
    for each in ("documents", "samples.json"):
        (tmp_path / each).symlink_to(source / each)
    secret = {"url": "https://user:password@host/x?sig=token", "to": "x"}
    loaded["datasets"][0]["downloads"] = [{"hub": "owner/set", "files": ["a/*.pdf"], "to": "Set"}, secret]
    (tmp_path / "tiny.yaml").write_text(yaml.safe_dump(loaded), "utf-8")
    built = command("build", tmp_path / "tiny.yaml", "--out", tmp_path / "out")
    assert built.code == 0, built.err
    assert hashes(tmp_path / "out") == hashes(finished)
    assert "password" not in built.out + built.err


SHIPPED = sorted(name for name in installed_manifests() if not name.startswith("quickstart"))


@pytest.mark.parametrize("name", SHIPPED)
def test_every_source_of_a_shipped_manifest_has_a_download(name: str) -> None:
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


def test_the_benchmark_has_every_shipped_dataset_once() -> None:
    whole = load_manifest(installed_manifests()["benchmark"])
    own = ("quickstart", "benchmark", "m_longdoc")  # M-LongDoc is a benchmark of its own
    others = [name for name in installed_manifests() if not name.startswith(own)]
    single = [load_manifest(installed_manifests()[name]).datasets[0] for name in others]
    assert {spec.name: spec for spec in whole.datasets} == {spec.name: spec for spec in single}
    assert len(whole.datasets) == len(single) == 21


def test_all_missing_sources_are_named_with_how_to_get_them(tmp_path: Path) -> None:
    folder = tmp_path / "my data"
    (dataset,) = load_manifest(find_manifest("vh_single"), data=folder).datasets
    questions = folder / "visual_haystacks/single_needle/VHs_large/visual_haystack_10.json"
    annotations = folder / "coco/annotations/instances_train2017.json"
    photographs, files = (place.steps for place in dataset.downloads if place.steps)
    by_hand = [f"{number}. {step}" for number, step in enumerate(photographs, start=1)]
    said = missing_of(dataset).split("; ")
    assert said[:3] == [
        f"source.questions: no such file or folder: {questions}",
        f"source.images: no such file or folder: {folder}/coco",
        f"source.annotations: no such file or folder: {annotations}",
    ]
    assert said[3] == f"`mmlongbench fetch vh_single --to '{folder}'` downloads source.questions"
    assert "; ".join(said[4:]) == (
        f"source.images by hand: {' '.join(by_hand)}; source.images by hand: 1. {files[0]}; "
        f"source.annotations by hand: 1. {files[0]}"
    )
    questions.parent.mkdir(parents=True)
    questions.touch()
    annotations.parent.mkdir(parents=True)
    assert missing_of(dataset) == (
        f"source.annotations: no such file or folder: {annotations}; source.annotations by hand: 1. {files[0]}"
    )
    annotations.touch()
    assert missing_of(dataset) == ""
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
    assert whole.out.count(f"--to {quote(str(tmp_path))}` downloads ") == 21


def test_plan_and_build_note_a_download_that_ended_early(source: Path, server: HubServer, tmp_path: Path) -> None:
    names = ["samples.json", *(f"documents/{name}.pdf" for name in PAGES)]
    server.put(NAME, {name: (source / name).read_bytes() for name in names})
    entry = {"hub": NAME, "files": ["samples.json", "documents/*"], "to": "Set"}
    places = {"samples": "Set/samples.json", "documents": "Set/documents"}
    own = write_manifest(tmp_path / "own.yaml", source=places, downloads=[entry])
    assert fetch(load_manifest(own), tmp_path).is_complete
    assert "note: " not in command("plan", own).out
    (tmp_path / "Set/documents/ash.pdf").unlink()
    said = f"of the 5 files of hub:{NAME}, 1 is missing in {tmp_path}; `mmlongbench fetch "
    assert f"\n  note: {said}" in command("plan", own).out
    assert f"note: dataset 'mmlongdoc': {said}" in command("build", own, "--out", tmp_path / "out").err
    (tmp_path / RESERVED).write_text("[]", "utf-8")
    assert "note: " not in command("plan", own).out


def test_files_of_a_dataset_are_downloaded_once_at_a_commit_that_is_written_down(
    server: HubServer, data: Path, tmp_path: Path
) -> None:
    loaded = manifest(tmp_path, HERE)
    (place,) = fetch(loaded, data).places
    assert place.is_complete
    assert (place.files, place.there, place.downloaded) == (2, 2, 2)
    assert place.commit == server.datasets[NAME].branches["main"]
    assert files_in(data) == {f"Set/{name}": FILES[name] for name in ("data/a.jsonl", "data/pictures.tar")}
    assert record(data)["files"]["Set/data/pictures.tar"] == {
        "origin": f"hub:{NAME}@{place.commit}/data/pictures.tar",
        "size": len(BIG),
        "sha256": sha256_of(data / "Set/data/pictures.tar"),
        "version": "",
    }
    before = len(server.requests)
    (again,) = fetch(loaded, data).places
    assert (again.is_complete, again.downloaded, again.there) == (True, 0, 2)
    assert [address for address, _ in server.requests[before:]] == [f"/api/datasets/{NAME}/revision/main"]


def test_every_downloaded_file_is_on_the_disk_before_it_gets_its_name(
    server: HubServer, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[int] = []
    monkeypatch.setattr("os.fsync", lambda file: synced.append(os.fstat(file).st_ino))
    assert fetch(manifest(tmp_path, HERE), data).is_complete
    files = [path for path in data.rglob("*") if path.is_file() and path.name != FETCH_LOCK]
    assert len(files) == 3  # with the record
    assert {path.stat().st_ino for path in files} <= {*synced}


def test_a_cut_connection_is_continued_where_it_ended(
    server: HubServer,
    data: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr("huggingface_hub.constants.DOWNLOAD_CHUNK_SIZE", 1000)
    server.fail("pictures.tar", Fault(cut=5000), Fault(cut=3000))
    (place,) = fetch(manifest(tmp_path, HERE), data).places
    assert (place.is_complete, (data / "Set/data/pictures.tar").read_bytes()) == (True, BIG)
    assert server.other
    asked = [headers.get("range") for headers in server.other.asked("/files/")]
    assert [each for each in asked if each] == ["bytes=5000-", "bytes=8000-"]
    assert "Error while downloading from http://127.0.0.1" in caplog.text
    assert "SECRET" not in caplog.text


def test_a_record_of_an_earlier_version_is_read(server: HubServer, data: Path, tmp_path: Path) -> None:
    loaded = manifest(tmp_path, HERE)
    fetch(loaded, data)
    (data / RESERVED).write_text(json.dumps({**record(data), "unfinished": {"Set/x": "tag"}}), "utf-8")
    assert fetch(loaded, data).places[0].downloaded == 0


def test_a_server_that_cannot_be_reached_ends_its_place_alone(
    server: HubServer, data: Path, tmp_path: Path, waits: list[float]
) -> None:
    done = fetch(manifest(tmp_path, {"url": "http://127.0.0.1:9/x.jsonl", "to": "x.jsonl"}, HERE), data)
    assert [place.is_complete for place in done.places] == [False, True]
    assert "x.jsonl: the server cannot be reached (ConnectError" in done.places[0].problems[0]
    assert waits == [1.0, 2.0, 4.0, 8.0]


def test_attempts_are_bounded_and_waits_grow_or_are_as_the_server_asks(
    server: HubServer, data: Path, tmp_path: Path, waits: list[float]
) -> None:
    server.fail("pictures.tar", *[Fault(status=500)] * 50)
    said = problem(fetch(manifest(tmp_path, HERE), data))
    assert "the server answered 500, also when it was asked again; run the same command again to continue" in said
    assert len(waits) < 10
    assert set(files_in(data)) == {"Set/data/a.jsonl"}
    shutil.rmtree(data)
    server.faults.clear()
    server.fail("/api/", Fault(status=429, headers={"Retry-After": "3600"}))
    said = problem(fetch(manifest(tmp_path, HERE), data))
    assert "the server asks to wait 3,600 s: run the same command then" in said
    waits.clear()
    asked: tuple[dict[str, str], ...] = ({"Retry-After": "7"}, {"RateLimit": '"resolvers";r=0;t=55'})
    server.fail("/api/", *[Fault(status=429, headers=headers) for headers in asked])
    assert fetch(manifest(tmp_path, HERE), data).is_complete
    assert waits == [7.0, 55.0]


def test_wrong_bytes_are_named_and_not_kept(server: HubServer, data: Path, tmp_path: Path) -> None:
    wrong = b"x" * len(BIG)
    server.fail("pictures.tar", Fault(body=wrong))
    said = problem(fetch(manifest(tmp_path, HERE), data))
    assert said.startswith(f"{data}/Set/data/pictures.tar: expected SHA-256 ")
    assert said.endswith("the hub sends other bytes than it lists: run the same command again later")
    assert set(files_in(data)) == {"Set/data/a.jsonl"}
    server.fail("a.jsonl", Fault(body=b'{"a": 2}\n'))
    shutil.rmtree(data)
    assert "expected the git id " in problem(fetch(manifest(tmp_path, HERE), data))
    shutil.rmtree(data)
    server.fail("pictures.tar", Fault(body=wrong + b"more"))
    assert "file should be of size 10240 but has size 10244" in problem(fetch(manifest(tmp_path, HERE), data))


def test_a_changed_file_is_downloaded_again_and_one_of_someone_else_never_replaced(
    server: HubServer, data: Path, tmp_path: Path
) -> None:
    loaded, file = manifest(tmp_path, HERE), data / "Set/data/a.jsonl"
    fetch(loaded, data)
    file.write_bytes(b"broken")
    (place,) = fetch(loaded, data).places
    assert (place.is_complete, place.downloaded) == (True, 1)
    assert place.notes == (f"{file}: expected 9 bytes, found 6; it is downloaded again",)
    assert file.read_bytes() == FILES["data/a.jsonl"]
    (data / "downloads.json").unlink()
    file.write_bytes(b"mine")
    done = fetch(loaded, data)
    assert problem(done).endswith("(expected 9 bytes, found 4); move it away")
    assert (done.places[0].there, done.places[0].downloaded, file.read_bytes()) == (1, 0, b"mine")


def test_a_moved_revision_is_said_and_replaces_nothing_unless_asked(
    server: HubServer, data: Path, tmp_path: Path
) -> None:
    loaded = manifest(tmp_path, HERE)
    before = fetch(loaded, data).places[0].commit
    newer = {**FILES, "data/a.jsonl": b'{"a": 2}\n', "data/b.jsonl": b"{}\n"}
    now = server.put(NAME, newer)
    (data / "Set/data/pictures.tar").unlink()
    (place,) = fetch(loaded, data).places
    moved = f"hub:{NAME}: main is now {now[:12]}, the files here are of {before[:12]}"
    assert place.notes == (f"{moved}, which stays; --update downloads the newer files",)
    assert (place.is_complete, place.commit, place.files, place.downloaded) == (True, before, 2, 1)
    (place,) = fetch(loaded, data, update=True).places
    assert place.notes == (f"{moved}; they are replaced",)
    assert (place.is_complete, place.commit, place.files, place.downloaded) == (True, now, 3, 2)
    assert files_in(data)["Set/data/a.jsonl"] == newer["data/a.jsonl"]
    del server.datasets[NAME].commits[now]
    server.put(NAME, FILES)
    assert "which the hub no longer has; --update downloads" in problem(fetch(loaded, data))


def test_an_update_removes_what_the_dataset_no_longer_has(server: HubServer, data: Path, tmp_path: Path) -> None:
    loaded = manifest(tmp_path, HERE)
    fetch(loaded, data)
    (data / "Set/data/mine.jsonl").write_bytes(b"mine")
    now = server.put(NAME, {"data/a-00000-of-00002.jsonl": b"{}\n"})
    assert set(files_in(data)) == {"Set/data/a.jsonl", "Set/data/pictures.tar", "Set/data/mine.jsonl"}
    server.fail("a-00000", *[Fault(status=404)])
    assert not fetch(loaded, data, update=True).is_complete
    assert set(files_in(data)) == {"Set/data/a.jsonl", "Set/data/pictures.tar", "Set/data/mine.jsonl"}
    (place,) = fetch(loaded, data).places
    assert (place.is_complete, place.commit) == (True, now)
    assert place.notes[0] == f"{data}/Set/data/a.jsonl: removed, because {now[:12]} no longer has it"
    assert set(files_in(data)) == {"Set/data/a-00000-of-00002.jsonl", "Set/data/mine.jsonl"}
    assert set(record(data)["files"]) == {"Set/data/a-00000-of-00002.jsonl"}


def test_a_url_with_other_bytes_than_at_first_is_named_and_replaced_only_if_asked(
    server: HubServer, data: Path, tmp_path: Path
) -> None:
    loaded = url_of(server, tmp_path, "x.jsonl", b"first")
    assert fetch(loaded, data).is_complete
    server.files["x.jsonl"] = b"other"
    assert fetch(loaded, data).is_complete  # what is there is what was recorded
    (data / "x.jsonl").unlink()
    said = problem(fetch(loaded, data))
    assert "x.jsonl: expected SHA-256 " in said
    assert "downloads.json" in said
    assert "--update" in said
    assert fetch(loaded, data, update=True).is_complete
    assert (data / "x.jsonl").read_bytes() == b"other"
    before = len(server.asked("x.jsonl"))
    (place,) = fetch(loaded, data, update=True).places
    assert (place.is_complete, place.downloaded, len(server.asked("x.jsonl"))) == (True, 0, before + 1)


@pytest.mark.parametrize("agree", ["", "the licence of Owner"])
def test_a_gated_dataset_says_what_to_agree_to_and_how_to_log_in(
    agree: str, server: HubServer, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.datasets[NAME].needs = "hf_OTHER"
    loaded = manifest(tmp_path, {**HERE, "agree": agree})
    said = problem(fetch(loaded, data))
    asked = f"agree to {agree} at" if agree else "check the name, or ask for access at"
    assert said == (
        f"hub:{NAME}: the hub refuses access (403); {asked} {server.url}/datasets/{NAME}, log in with `hf auth login` "
        "or set HF_TOKEN, and run the same command"
    )
    assert "SECRET" not in said
    assert len(server.asked("/resolve/")) == 1  # the other file is not asked for
    monkeypatch.setenv("HF_TOKEN", "hf_OTHER")
    assert fetch(loaded, data).is_complete


def test_a_token_goes_to_the_hub_alone_and_credentials_into_no_message_and_no_file(
    server: HubServer, data: Path, tmp_path: Path
) -> None:
    server.files["x.jsonl"] = b"x"
    address = server.url.replace("http://", "http://user:PASSWORD@")
    loaded = manifest(tmp_path, HERE, {"url": f"{address}/files/x.jsonl?sig=TOKEN", "to": "x.jsonl"})
    server.fail("x.jsonl", Fault(status=403))
    (said,) = fetch(loaded, data).places[1].problems
    assert fetch(loaded, data).is_complete
    assert server.other
    assert {headers.get("authorization") for headers in server.asked("/resolve/")} == {"Bearer hf_SECRET"}
    assert {headers.get("authorization") for _, headers in server.other.requests} == {None}
    assert {headers.get("authorization") for headers in server.asked("x.jsonl")} == {"Basic dXNlcjpQQVNTV09SRA=="}
    shown = said + (data / "downloads.json").read_text("utf-8") + repr(loaded.datasets[0].downloads[1].name)
    assert not [secret for secret in ("PASSWORD", "TOKEN", "SECRET") if secret in shown]


def test_a_redirect_to_another_host_takes_no_credentials_along(server: HubServer, data: Path, tmp_path: Path) -> None:
    assert server.other
    server.other.files["x.jsonl"] = b"x"
    address = server.url.replace("http://", "http://user:PASSWORD@")
    elsewhere = server.other.url.replace("http://", "http://other:SECRET@")
    loaded = manifest(tmp_path, {"url": f"{address}/files/x.jsonl", "to": "x.jsonl"})
    server.fail("x.jsonl", Fault(status=302, headers={"location": f"{elsewhere}/files/none?sig=SECRET"}))
    said = problem(fetch(loaded, data))
    assert "the server answered 404" in said
    assert "PASSWORD" not in said
    assert "SECRET" not in said
    server.fail("x.jsonl", *[Fault(status=302, headers={"location": f"{server.other.url}/files/x.jsonl"})] * 2)
    assert fetch(loaded, data).is_complete
    assert {headers["authorization"] for headers in server.asked("x.jsonl")} == {"Basic dXNlcjpQQVNTV09SRA=="}
    assert [headers.get("authorization") for headers in server.other.asked("x.jsonl")] == [None, None]


@pytest.mark.parametrize("first_redirected", [0, 1])
def test_a_redirect_away_from_https_is_refused_in_each_request(
    first_redirected: int, data: Path, tmp_path: Path
) -> None:
    """The file is looked at in one request, and stored in another one."""
    asked: list[httpx2.Request] = []

    def answer(request: httpx2.Request) -> httpx2.Response:
        asked.append(request)
        if len(asked) <= first_redirected:
            return httpx2.Response(200, content=b"x")
        return httpx2.Response(302, headers={"location": "http://host/x.jsonl"})

    with httpx2.Client(transport=httpx2.MockTransport(answer), follow_redirects=True) as client:
        huggingface_hub.set_client_factory(lambda: client)
        try:
            done = fetch(manifest(tmp_path, {"url": "https://host/x.jsonl", "to": "x.jsonl"}), data)
        finally:
            huggingface_hub.set_client_factory(default_client_factory)
    assert problem(done) == "https://host/x.jsonl: leads to an address without https; download it by hand"
    assert [request.url.scheme for request in asked] == ["https"] * (first_redirected + 1)
    assert files_in(data) == {}


def test_what_is_no_file_is_refused(server: HubServer, data: Path, tmp_path: Path) -> None:
    loaded = url_of(server, tmp_path, "x.zip", None)
    server.fail("x.zip", Fault(status=200, body=b"<html>", headers={"content-type": "text/html"}))
    assert problem(fetch(loaded, data)).endswith("expected a file, found a web page; download it by hand")
    server.fail("x.zip", *[Fault(status=302, headers={"location": f"{server.url}/files/x.zip"})] * 50)
    assert "the answer cannot be used (TooManyRedirects" in problem(fetch(loaded, data))


def test_a_damaged_record_and_another_process_are_named(server: HubServer, data: Path, tmp_path: Path) -> None:
    data.mkdir()
    loaded = manifest(tmp_path, HERE)
    with file_lock(data / FETCH_LOCK, "data"), pytest.raises(BuildError, match="is being written by another process"):
        fetch(loaded, data)
    for text in ("{", "[]", '{"version": 2}', '{"files": {"../x": {"origin": "", "size": 1, "sha256": ""}}}'):
        (data / "downloads.json").write_text(text, "utf-8")
        with pytest.raises(FetchError, match=r"downloads\.json: expected a record of downloads"):
            fetch(loaded, data)
    (data / "downloads.json").unlink()
    assert fetch(loaded, data).is_complete


def test_a_hostile_name_of_a_file_downloads_nothing(server: HubServer, data: Path, tmp_path: Path) -> None:
    hostile = ("data/../../out.jsonl", "/data/out.jsonl", "data/..\\out.jsonl", "./data/out.jsonl", "data//out.jsonl")
    for path in (*hostile, "data/\x1b[2J", "data/.part-x"):
        server.put(NAME, {**FILES, path: b"x"})
        assert "whose path cannot be used" in problem(fetch(manifest(tmp_path, HERE), data))
    assert not server.asked("/resolve/")
    assert sorted(each.name for each in tmp_path.iterdir()) == ["data", "own.yaml"]


def test_nothing_is_written_through_a_link(server: HubServer, data: Path, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    data.mkdir()
    (data / "Set").symlink_to(tmp_path / "elsewhere")
    said = fetch(manifest(tmp_path, HERE), data).places[0].problems[0]
    assert said == (f"{data}/Set: is a link; downloads are not written through links: replace it by a folder or a file")
    assert not list((tmp_path / "elsewhere").iterdir())
    (data / "Set").unlink()


def test_too_small_a_disk_is_said_before_anything_is_downloaded(
    server: HubServer, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("shutil.disk_usage", lambda path: shutil._ntuple_diskusage(10_000, 5_000, 5_000))
    with pytest.raises(DiskFullError, match=r"data: 2 files need 10\.2 kB, and 5\.0 kB are free; make room"):
        fetch(manifest(tmp_path, HERE), data)
    assert not server.asked("/resolve/")


def test_a_full_disk_keeps_what_is_done_and_is_continued(
    server: HubServer, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    loaded = manifest(tmp_path, HERE)
    real = huggingface_hub.file_download.http_get

    def full(url: str, file: Any, **options: Any) -> None:
        if options["expected_size"] == len(BIG):
            raise OSError(errno.ENOSPC, "No space left on device")
        real(url, file, **options)

    with monkeypatch.context() as patch:
        patch.setattr("huggingface_hub.file_download.http_get", full)
        with pytest.raises(DiskFullError, match=r"pictures\.tar: No space left on device; what was downloaded is kept"):
            fetch(loaded, data)
    assert set(record(data)["files"]) == {"Set/data/a.jsonl"}
    assert set(files_in(data)) == {"Set/data/a.jsonl"}
    assert fetch(loaded, data).is_complete


def test_a_revision_may_be_a_branch_with_slashes(server: HubServer, data: Path, tmp_path: Path) -> None:
    commit = server.put(NAME, {"structure/test/0000.parquet": b"PAR1"}, branch="refs/convert/parquet")
    entry = {**HERE, "revision": "refs/convert/parquet", "files": ["structure/*/*.parquet"]}
    (place,) = fetch(manifest(tmp_path, entry), data).places
    assert (place.is_complete, place.commit, [*files_in(data)]) == (True, commit, ["Set/structure/test/0000.parquet"])
    assert "no such revision" in problem(fetch(manifest(tmp_path, {**entry, "revision": "v9"}), data))


def test_a_place_that_fails_is_named_and_does_not_stop_the_others(
    server: HubServer, data: Path, tmp_path: Path
) -> None:
    wrong = {"hub": "owner/none", "files": ["x"], "to": "none"}
    server.put("owner/two", FILES)
    done = fetch(manifest(tmp_path, wrong, HERE, {**HERE, "hub": "owner/two"}), data)
    assert [place.is_complete for place in done.places] == [False, True, False]
    assert "hub:owner/none: the hub has no such dataset for you (404); check the name" in done.places[0].problems[0]
    assert "would be the same file" in done.places[2].problems[0]
    said = problem(fetch(manifest(tmp_path, {**HERE, "files": ["data/*", "*.parquet"]}), data))
    assert said.startswith(f"hub:{NAME}: has no file '*.parquet' at this revision")


def test_without_the_hub_files_are_checked_against_the_record(
    server: HubServer, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, waits: list[float]
) -> None:
    loaded = manifest(tmp_path, HERE, {**HERE, "hub": "owner/two", "to": "Two"})
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    done = fetch(loaded, data)
    assert [len(place.problems) for place in done.places] == [1, 1]
    assert "the server cannot be reached (ConnectError" in done.places[0].problems[0]
    assert waits == [1.0, 2.0, 4.0, 8.0]  # it is asked once
    assert not (data / "downloads.json").exists()
    loaded = manifest(tmp_path, HERE)
    monkeypatch.setenv("HF_ENDPOINT", server.url)
    commit = fetch(loaded, data).places[0].commit
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    (place,) = fetch(loaded, data).places
    assert (place.is_complete, place.there, place.commit) == (True, 2, commit)
    assert "cannot be reached" in place.notes[0]
    (data / "Set/data/a.jsonl").write_bytes(b"broken")
    done = fetch(loaded, data)
    assert "ConnectError" in problem(done)
    assert (done.places[0].there, record(data)["files"].keys()) == (1, {"Set/data/a.jsonl", "Set/data/pictures.tar"})
    monkeypatch.setenv("HF_ENDPOINT", server.url)
    assert fetch(loaded, data).is_complete


def test_offline_mode_checks_files_against_the_record_and_says_what_to_unset(
    server: HubServer, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    loaded = manifest(tmp_path, HERE)
    with monkeypatch.context() as patch:
        patch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
        assert problem(fetch(loaded, data)).startswith(f"hub:{NAME}: HF_HUB_OFFLINE forbids to ask a server; unset it")
    fetch(loaded, data)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    done = fetch(loaded, data)
    assert done.is_complete
    assert "checked against the record of downloads alone" in done.places[0].notes[0]


def test_a_file_of_another_size_than_its_server_says_is_not_kept(server: HubServer, data: Path, tmp_path: Path) -> None:
    server.fail("a.bin", Fault(), Fault(body=BIG[:900]))
    said = problem(fetch(url_of(server, tmp_path, "a.bin"), data))
    assert said.endswith("a.bin: expected 10,240 bytes, found 900; run the same command again later")
    assert files_in(data) == {}


def test_a_file_of_a_server_that_does_not_say_its_size_is_noted(server: HubServer, data: Path, tmp_path: Path) -> None:
    server.fail("a.bin", *[Fault(200, {"content-length": "", "connection": "close"}, body=BIG[:900], cut=900)] * 2)
    (place,) = fetch(url_of(server, tmp_path, "a.bin"), data).places
    said = f"{server.url}/files/a.bin does not say its size; check that 900 bytes are all"
    assert place.notes == (f"{data / 'a.bin'}: {said}",)


def test_a_hub_that_answers_nonsense_is_named(server: HubServer, data: Path, tmp_path: Path) -> None:
    loaded = manifest(tmp_path, HERE)
    for body, said in (
        (b"<html>", "the answer cannot be used (JSONDecodeError"),
        (b'{"id": "x", "sha": "../..", "siblings": []}', "the hub names no commit for 'main'"),
        (b'{"id": "x", "siblings": [3]}', "the answer cannot be used ("),
    ):
        server.fail("/api/", Fault(status=200, body=body))
        assert said in problem(fetch(loaded, data))
    server.fail("/api/", Fault(status=418))
    assert problem(fetch(loaded, data)) == f"hub:{NAME}: the server answered 418"


def test_places_that_datasets_share_are_fetched_once(server: HubServer, data: Path, tmp_path: Path) -> None:
    steps = {"steps": ["Ask the owner."], "to": "by_hand"}
    loaded = manifest(tmp_path, HERE, steps, b=[HERE], c=[steps])
    done = fetch(loaded, data)
    assert [place.datasets for place in done.places] == [("a", "b")]
    assert [(left.datasets, left.licence, left.is_there) for left in done.left] == [(("a", "c"), "CC0", False)]
    (data / "by_hand").mkdir()
    (data / "by_hand/x").touch()
    only = fetch(loaded, data, only=["c"])
    assert (only.places, only.left[0].is_there, only.is_complete) == ((), True, True)
    with pytest.raises(ManifestError, match="--only 'd': no such dataset; there are a, b, c"):
        fetch(loaded, data, only=["d"])


BY_HAND = {
    *("InfoSeek/oven_images", "coco/train2017", "coco/annotations/instances_train2017.json", "GovReport/pdfs"),
    "Multi-LexSum/pdfs",
}


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


@pytest.mark.rare
def test_the_whole_benchmark_is_fetched_to_where_its_manifests_look(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn, data = tmp_path / "drawn/data", tmp_path / "data"
    drawn.mkdir(parents=True)
    draw_data(drawn)
    expected = content(drawn)
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
