"""Fetching from a hub and from URLs on this machine: files whole and checked, faults of servers and of the disk."""

import errno
import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from hub_server import Fault, HubServer, hub

from mmlongbench.errors import BuildError, DiskFullError, FetchError, ManifestError
from mmlongbench.io.atomic import file_lock, sha256_of
from mmlongbench.io.partial_files import part_of
from mmlongbench.manifest.downloads import FETCH_LOCK
from mmlongbench.manifest.fetching.fetch import fetch
from mmlongbench.manifest.fetching.results import Fetched
from mmlongbench.manifest.loading import load_manifest
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


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return tmp_path / "data"


def manifest(tmp_path: Path, *downloads: dict[str, Any], **more: list[dict[str, Any]]) -> Manifest:
    """Return a manifest whose dataset `a` has these downloads; `more` are other datasets."""
    common = {"builder": "docvqa", "reader": "own_documents", "source": "sample", "licence": "CC0"}
    datasets = [{"name": name, **common, "downloads": each} for name, each in {"a": list(downloads), **more}.items()]
    (tmp_path / "own.yaml").write_text(yaml.safe_dump({"datasets": datasets}), "utf-8")
    return load_manifest(tmp_path / "own.yaml")


def run(loaded: Manifest, data: Path, waits: list[float] | None = None, **options: Any) -> Fetched:
    """Fetch without waiting."""
    return fetch(loaded, data, wait=(waits if waits is not None else []).append, **options)


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


def test_files_of_a_dataset_are_downloaded_once_at_a_commit_that_is_written_down(
    server: HubServer, data: Path, tmp_path: Path
) -> None:
    loaded = manifest(tmp_path, HERE)
    (place,) = run(loaded, data).places
    assert place.is_complete
    assert (place.files, place.there, place.downloaded, place.commit) == (
        2,
        2,
        2,
        server.datasets[NAME].branches["main"],
    )
    assert files_in(data) == {f"Set/{name}": FILES[name] for name in ("data/a.jsonl", "data/pictures.tar")}
    entry = record(data)["files"]["Set/data/pictures.tar"]
    assert entry == {
        "origin": f"hub:{NAME}@{place.commit}/data/pictures.tar",
        "size": len(BIG),
        "sha256": sha256_of(data / "Set/data/pictures.tar"),
        "version": "",
    }
    before = len(server.requests)
    (again,) = run(loaded, data).places
    assert (again.is_complete, again.downloaded, again.there) == (True, 0, 2)
    assert [address for address, _ in server.requests[before:]] == [f"/api/datasets/{NAME}/revision/main"]


def test_a_cut_connection_is_continued_where_it_ended(server: HubServer, data: Path, tmp_path: Path) -> None:
    server.fail("pictures.tar", Fault(cut=5000), Fault(cut=3000))
    waits: list[float] = []
    (place,) = run(manifest(tmp_path, HERE), data, waits).places
    assert (place.is_complete, (data / "Set/data/pictures.tar").read_bytes()) == (True, BIG)
    assert server.other
    asked = [headers.get("range") for headers in server.other.asked("/files/")]
    assert asked == [None, "bytes=5000-", "bytes=8000-"]
    assert waits == [1.0, 1.0]  # each attempt brought something


def test_a_stopped_download_is_continued_by_the_next_run(
    server: HubServer, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Stopped(BaseException):
        """Ends a process as Ctrl-C does."""

    def stop(seconds: float) -> None:
        raise Stopped

    loaded = manifest(tmp_path, HERE)
    server.fail("pictures.tar", Fault(cut=6000))
    with pytest.raises(Stopped):
        fetch(loaded, data, wait=stop)
    target = data / "Set/data/pictures.tar"
    assert (target.exists(), part_of(target).stat().st_size) == (False, 6000)
    assert run(loaded, data).is_complete
    assert server.other
    assert [headers.get("range") for headers in server.other.asked("/files/")] == [None, "bytes=6000-"]
    assert (target.read_bytes(), part_of(target).exists(), record(data)["unfinished"]) == (BIG, False, {})


def test_a_file_of_a_url_is_continued_only_if_it_is_the_same(server: HubServer, data: Path, tmp_path: Path) -> None:
    server.files["big.tar"] = BIG
    loaded = manifest(tmp_path, {"url": f"{server.url}/files/big.tar", "to": "x/big.tar"})
    server.fail("big.tar", Fault(), Fault(cut=4000), *[Fault(status=503)] * 6)
    assert "the server answered 503, 6 times in a row" in problem(run(loaded, data))
    assert part_of(data / "x/big.tar").stat().st_size == 4000
    server.files["big.tar"] = BIG[::-1]
    assert run(loaded, data).is_complete
    assert "if-range" in server.asked("big.tar")[-1]
    assert (data / "x/big.tar").read_bytes() == BIG[::-1]


def test_a_server_without_ranges_sends_the_whole_file_again(server: HubServer, data: Path, tmp_path: Path) -> None:
    server.fail("pictures.tar", Fault(cut=5000), Fault(has_range=False))
    assert run(manifest(tmp_path, HERE), data).is_complete
    assert (data / "Set/data/pictures.tar").read_bytes() == BIG


def test_a_part_that_was_not_asked_for_is_not_written(server: HubServer, data: Path, tmp_path: Path) -> None:
    server.files["big.tar"] = BIG
    loaded = manifest(tmp_path, {"url": f"{server.url}/files/big.tar", "to": "x/big.tar"})
    other = Fault(status=206, body=BIG[9000:], headers={"content-range": f"bytes 9000-10239/{len(BIG)}"})
    server.fail("big.tar", Fault(), Fault(cut=5000), other, other)
    assert run(loaded, data).is_complete
    assert (data / "x/big.tar").read_bytes() == BIG


def test_a_server_that_cannot_be_reached_ends_its_place_alone(server: HubServer, data: Path, tmp_path: Path) -> None:
    waits: list[float] = []
    done = run(manifest(tmp_path, {"url": "http://127.0.0.1:9/x.jsonl", "to": "x.jsonl"}, HERE), data, waits)
    assert [place.is_complete for place in done.places] == [False, True]
    assert "x.jsonl: the server cannot be reached (ConnectError" in done.places[0].problems[0]
    assert waits == [1.0, 2.0, 4.0]


def test_attempts_are_bounded_and_waits_grow(server: HubServer, data: Path, tmp_path: Path) -> None:
    server.fail("pictures.tar", *[Fault(status=500)] * 6)
    waits: list[float] = []
    said = problem(run(manifest(tmp_path, HERE), data, waits))
    assert said.endswith("the server answered 500, 6 times in a row; run the same command again to continue")
    assert waits == [1.0, 2.0, 4.0, 8.0, 16.0]
    assert set(files_in(data)) == {"Set/data/a.jsonl"}


@pytest.mark.parametrize("part", ["/api/", "pictures.tar"])
def test_a_wait_that_a_server_asks_for_is_kept(part: str, server: HubServer, data: Path, tmp_path: Path) -> None:
    asked = {"Retry-After": "7"}, {"RateLimit": '"resolvers";r=0;t=55'}
    server.fail(part, *[Fault(status=429, headers=headers) for headers in asked])
    waits: list[float] = []
    assert run(manifest(tmp_path, HERE), data, waits).is_complete
    assert waits == [7.0, 55.0]


def test_too_long_a_wait_ends_the_place(server: HubServer, data: Path, tmp_path: Path) -> None:
    server.fail("pictures.tar", Fault(status=429, headers={"Retry-After": "3600"}))
    assert "the server asks to wait 3,600 s: run the same command then" in problem(run(manifest(tmp_path, HERE), data))


def test_wrong_bytes_are_named_and_not_kept(server: HubServer, data: Path, tmp_path: Path) -> None:
    wrong = b"x" * len(BIG)
    server.fail("pictures.tar", Fault(body=wrong))
    said = problem(run(manifest(tmp_path, HERE), data))
    assert said.startswith(f"{data}/Set/data/pictures.tar: expected SHA-256 ")
    assert said.endswith("the hub sends other bytes than it lists: run the same command again later")
    assert set(files_in(data)) == {"Set/data/a.jsonl"}
    server.fail("a.jsonl", Fault(body=b'{"a": 2}\n'))
    shutil.rmtree(data)
    assert "expected the git id " in problem(run(manifest(tmp_path, HERE), data))
    shutil.rmtree(data)
    server.fail("pictures.tar", Fault(body=wrong + b"more"))
    assert "expected 10,240 bytes, found 10,244" in problem(run(manifest(tmp_path, HERE), data))


def test_a_part_that_does_not_fit_is_downloaded_anew(server: HubServer, data: Path, tmp_path: Path) -> None:
    target = data / "Set/data/pictures.tar"
    target.parent.mkdir(parents=True)
    part_of(target).write_bytes(b"other bytes")
    assert run(manifest(tmp_path, HERE), data).is_complete
    assert target.read_bytes() == BIG


def test_a_file_that_was_changed_is_downloaded_again(server: HubServer, data: Path, tmp_path: Path) -> None:
    loaded = manifest(tmp_path, HERE)
    run(loaded, data)
    (data / "Set/data/a.jsonl").write_bytes(b"broken")
    (place,) = run(loaded, data).places
    assert (place.is_complete, place.downloaded) == (True, 1)
    assert place.notes == (f"{data}/Set/data/a.jsonl: expected 9 bytes, found 6; it is downloaded again",)
    assert (data / "Set/data/a.jsonl").read_bytes() == FILES["data/a.jsonl"]


def test_a_file_that_someone_else_put_there_is_checked_and_never_replaced(
    server: HubServer, data: Path, tmp_path: Path
) -> None:
    (data / "Set/data").mkdir(parents=True)
    (data / "Set/data/pictures.tar").write_bytes(BIG)
    (data / "Set/data/a.jsonl").write_bytes(b"mine")
    done = run(manifest(tmp_path, HERE), data)
    assert problem(done).endswith("(expected 9 bytes, found 4); move it away")
    assert (done.places[0].there, done.places[0].downloaded) == (1, 0)
    assert (data / "Set/data/a.jsonl").read_bytes() == b"mine"


def test_a_moved_revision_is_said_and_replaces_nothing_unless_asked(
    server: HubServer, data: Path, tmp_path: Path
) -> None:
    loaded = manifest(tmp_path, HERE)
    before = run(loaded, data).places[0].commit
    newer = {**FILES, "data/a.jsonl": b'{"a": 2}\n', "data/b.jsonl": b"{}\n"}
    now = server.put(NAME, newer)
    (data / "Set/data/pictures.tar").unlink()
    (place,) = run(loaded, data).places
    moved = f"hub:{NAME}: main is now {now[:12]}, the files here are of {before[:12]}"
    assert place.notes == (f"{moved}, which stays; --update downloads the newer files",)
    assert (place.is_complete, place.commit, place.files, place.downloaded) == (True, before, 2, 1)
    (place,) = run(loaded, data, update=True).places
    assert place.notes == (f"{moved}; they are replaced",)
    assert (place.is_complete, place.commit, place.files, place.downloaded) == (True, now, 3, 2)
    assert files_in(data)["Set/data/a.jsonl"] == newer["data/a.jsonl"]
    del server.datasets[NAME].commits[now]
    server.put(NAME, FILES)
    assert "which the hub no longer has; --update downloads" in problem(run(loaded, data))


def test_an_update_removes_what_the_dataset_no_longer_has(server: HubServer, data: Path, tmp_path: Path) -> None:
    loaded = manifest(tmp_path, HERE)
    run(loaded, data)
    (data / "Set/data/mine.jsonl").write_bytes(b"mine")
    now = server.put(NAME, {"data/a-00000-of-00002.jsonl": b"{}\n"})
    assert set(files_in(data)) == {"Set/data/a.jsonl", "Set/data/pictures.tar", "Set/data/mine.jsonl"}
    server.fail("a-00000", *[Fault(status=404)])
    assert not run(loaded, data, update=True).is_complete
    assert set(files_in(data)) == {"Set/data/a.jsonl", "Set/data/pictures.tar", "Set/data/mine.jsonl"}
    (place,) = run(loaded, data).places
    assert (place.is_complete, place.commit) == (True, now)
    assert place.notes[0] == f"{data}/Set/data/a.jsonl: removed, because {now[:12]} no longer has it"
    assert set(files_in(data)) == {"Set/data/a-00000-of-00002.jsonl", "Set/data/mine.jsonl"}
    assert set(record(data)["files"]) == {"Set/data/a-00000-of-00002.jsonl"}


def test_a_url_with_other_bytes_than_at_first_is_named_and_replaced_only_if_asked(
    server: HubServer, data: Path, tmp_path: Path
) -> None:
    server.files["x.jsonl"] = b"first"
    loaded = manifest(tmp_path, {"url": f"{server.url}/files/x.jsonl", "to": "x.jsonl"})
    assert run(loaded, data).is_complete
    server.files["x.jsonl"] = b"other"
    assert run(loaded, data).is_complete  # what is there is what was recorded
    (data / "x.jsonl").unlink()
    said = problem(run(loaded, data))
    assert "x.jsonl: expected SHA-256 " in said
    assert said.endswith("has other bytes than at the first download (downloads.json): --update takes the new file")
    assert run(loaded, data, update=True).is_complete
    assert (data / "x.jsonl").read_bytes() == b"other"
    before = len(server.asked("x.jsonl"))
    (place,) = run(loaded, data, update=True).places
    assert (place.is_complete, place.downloaded, len(server.asked("x.jsonl"))) == (True, 0, before + 1)


@pytest.mark.parametrize("agree", ["", "the licence of Owner"])
def test_a_gated_dataset_says_what_to_agree_to_and_how_to_log_in(
    agree: str, server: HubServer, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.datasets[NAME].needs = "hf_OTHER"
    loaded = manifest(tmp_path, {**HERE, "agree": agree})
    said = problem(run(loaded, data))
    asked = f"agree to {agree} at" if agree else "check the name, or ask for access at"
    assert said == (
        f"hub:{NAME}: the hub refuses access (403); {asked} {server.url}/datasets/{NAME}, log in with `hf auth login` "
        "or set HF_TOKEN, and run the same command"
    )
    assert "SECRET" not in said
    assert len(server.asked("/resolve/")) == 1  # the other file is not asked for
    monkeypatch.setenv("HF_TOKEN", "hf_OTHER")
    assert run(loaded, data).is_complete


def test_a_token_goes_to_the_hub_alone(server: HubServer, data: Path, tmp_path: Path) -> None:
    server.files["x.jsonl"] = b"x"
    loaded = manifest(tmp_path, HERE, {"url": f"{server.url}/files/x.jsonl", "to": "x.jsonl"})
    assert run(loaded, data).is_complete
    assert server.other
    assert {headers.get("authorization") for headers in server.asked("/resolve/")} == {"Bearer hf_SECRET"}
    assert {headers.get("authorization") for _, headers in server.other.requests} == {None}
    assert {headers.get("authorization") for headers in server.asked("x.jsonl")} == {None}
    assert "SECRET" not in (data / "downloads.json").read_text("utf-8")


def test_credentials_of_a_url_are_in_no_message_and_no_file(server: HubServer, data: Path, tmp_path: Path) -> None:
    server.files["x.jsonl"] = b"x"
    address = server.url.replace("http://", "http://user:PASSWORD@")
    loaded = manifest(tmp_path, {"url": f"{address}/files/x.jsonl?sig=TOKEN", "to": "x.jsonl"})
    server.fail("x.jsonl", Fault(status=403))
    said = problem(run(loaded, data))
    assert run(loaded, data).is_complete
    written = (data / "downloads.json").read_text("utf-8")
    assert not [
        secret
        for secret in ("PASSWORD", "TOKEN")
        if secret in said + written + repr(loaded.datasets[0].downloads[0].name)
    ]


def test_a_redirect_to_another_host_takes_no_credentials_along(server: HubServer, data: Path, tmp_path: Path) -> None:
    assert server.other
    server.other.files["x.jsonl"] = b"x"
    address = server.url.replace("http://", "http://user:PASSWORD@")
    elsewhere = server.other.url.replace("http://", "http://other:SECRET@")
    loaded = manifest(tmp_path, {"url": f"{address}/files/x.jsonl", "to": "x.jsonl"})
    server.fail("x.jsonl", Fault(status=302, headers={"location": f"{elsewhere}/files/none?sig=SECRET"}))
    said = problem(run(loaded, data))
    assert "the server answered 404" in said
    assert "PASSWORD" not in said
    assert "SECRET" not in said
    server.fail("x.jsonl", *[Fault(status=302, headers={"location": f"{server.other.url}/files/x.jsonl"})] * 2)
    assert run(loaded, data).is_complete
    assert {headers["authorization"] for headers in server.asked("x.jsonl")} == {"Basic dXNlcjpQQVNTV09SRA=="}
    assert [headers.get("authorization") for headers in server.other.asked("x.jsonl")] == [None, None]


def test_a_redirect_that_never_ends_is_an_error(server: HubServer, data: Path, tmp_path: Path) -> None:
    loaded = manifest(tmp_path, {"url": f"{server.url}/files/x.jsonl", "to": "x.jsonl"})
    server.fail("x.jsonl", *[Fault(status=302, headers={"location": f"{server.url}/files/x.jsonl"})] * 50)
    assert "cannot be requested (TooManyRedirects" in problem(run(loaded, data))


def test_two_processes_do_not_write_one_folder(server: HubServer, data: Path, tmp_path: Path) -> None:
    data.mkdir()
    with file_lock(data / FETCH_LOCK, "data"), pytest.raises(BuildError, match="is being written by another process"):
        run(manifest(tmp_path, HERE), data)
    assert run(manifest(tmp_path, HERE), data).is_complete


@pytest.mark.parametrize(
    "path",
    [
        "data/../../out.jsonl",
        "/data/out.jsonl",
        "data/..\\out.jsonl",
        "./data/out.jsonl",
        "data//out.jsonl",
        "data/\x1b[2J",
        "data/.part-x",
    ],
)
def test_a_hostile_name_of_a_file_downloads_nothing(path: str, server: HubServer, data: Path, tmp_path: Path) -> None:
    server.put(NAME, {**FILES, path: b"x"})
    said = problem(run(manifest(tmp_path, HERE), data))
    assert "whose path cannot be used" in said
    assert not server.asked("/resolve/")
    assert sorted(each.name for each in tmp_path.iterdir()) == ["data", "own.yaml"]


def test_nothing_is_written_through_a_link(server: HubServer, data: Path, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    data.mkdir()
    (data / "Set").symlink_to(tmp_path / "elsewhere")
    said = run(manifest(tmp_path, HERE), data).places[0].problems[0]
    assert said == (f"{data}/Set: is a link; downloads are not written through links: replace it by a folder or a file")
    assert not list((tmp_path / "elsewhere").iterdir())
    (data / "Set").unlink()
    (data / "Set/data").mkdir(parents=True)
    part_of(data / "Set/data/a.jsonl").symlink_to(tmp_path / "elsewhere/x")
    assert run(manifest(tmp_path, HERE), data).is_complete
    assert not list((tmp_path / "elsewhere").iterdir())


def test_too_small_a_disk_is_said_before_anything_is_downloaded(
    server: HubServer, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("shutil.disk_usage", lambda path: shutil._ntuple_diskusage(10_000, 5_000, 5_000))
    with pytest.raises(DiskFullError, match=r"data: 2 files need 10\.2 kB, and 5\.0 kB are free; make room"):
        run(manifest(tmp_path, HERE), data)
    assert not server.asked("/resolve/")


def test_a_full_disk_keeps_what_is_done_and_is_continued(
    server: HubServer, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    loaded = manifest(tmp_path, HERE)
    limit = 4096

    class Full:
        """A file on a disk that is full after `limit` bytes."""

        def __init__(self, file: Any) -> None:
            self.file, self.room = file, limit

        def write(self, data: memoryview) -> int:
            if not self.room:
                raise OSError(errno.ENOSPC, "No space left on device")
            written = self.file.write(data[: self.room])
            self.room -= written
            return int(written)

        def __enter__(self) -> "Full":
            return self

        def __exit__(self, *error: object) -> None:
            self.file.close()

    real = __import__("os").fdopen
    with monkeypatch.context() as patch:
        patch.setattr("mmlongbench.io.partial_files.os.fdopen", lambda *args, **more: Full(real(*args, **more)))
        with pytest.raises(DiskFullError, match=r"pictures\.tar: No space left on device; what was downloaded is kept"):
            run(loaded, data)
    assert set(record(data)["files"]) == {"Set/data/a.jsonl"}
    assert part_of(data / "Set/data/pictures.tar").stat().st_size == limit
    assert run(loaded, data).is_complete
    assert server.other
    assert server.other.asked("/files/")[-1]["range"] == f"bytes={limit}-"


def test_a_revision_may_be_a_branch_with_slashes(server: HubServer, data: Path, tmp_path: Path) -> None:
    commit = server.put(NAME, {"structure/test/0000.parquet": b"PAR1"}, branch="refs/convert/parquet")
    entry = {**HERE, "revision": "refs/convert/parquet", "files": ["structure/*/*.parquet"]}
    (place,) = run(manifest(tmp_path, entry), data).places
    assert (place.is_complete, place.commit, [*files_in(data)]) == (True, commit, ["Set/structure/test/0000.parquet"])
    assert "no such revision" in problem(run(manifest(tmp_path, {**entry, "revision": "v9"}), data))


def test_one_place_that_fails_does_not_stop_the_others(server: HubServer, data: Path, tmp_path: Path) -> None:
    wrong = {"hub": "owner/none", "files": ["x"], "to": "none"}
    done = run(manifest(tmp_path, wrong, HERE), data)
    assert [place.is_complete for place in done.places] == [False, True]
    assert "hub:owner/none: the hub has no such dataset for you (404); check the name" in done.places[0].problems[0]


def test_a_pattern_without_a_file_is_named(server: HubServer, data: Path, tmp_path: Path) -> None:
    said = problem(run(manifest(tmp_path, {**HERE, "files": ["data/*", "*.parquet"]}), data))
    assert said == f"hub:{NAME}: has no file '*.parquet' at this revision; see its page on the hub"


def test_a_hub_that_does_not_answer_is_asked_once(data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    waits: list[float] = []
    done = run(manifest(tmp_path, HERE, {**HERE, "hub": "owner/two"}), data, waits)
    assert [len(place.problems) for place in done.places] == [1, 1]
    assert "the hub cannot be reached (ConnectError), 4 times in a row" in done.places[0].problems[0]
    assert waits == [1.0, 2.0, 4.0]
    assert not (data / "downloads.json").exists()


def test_offline_mode_checks_files_against_the_record_and_says_what_to_unset(
    server: HubServer, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    loaded = manifest(tmp_path, HERE)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    assert problem(run(loaded, data)) == (f"hub:{NAME}: HF_HUB_OFFLINE forbids to ask the hub; unset it to download")
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", False)
    run(loaded, data)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    done = run(loaded, data)
    assert done.is_complete
    assert "checked against the record of downloads alone" in done.places[0].notes[0]


def test_a_file_of_a_server_that_does_not_say_its_size_is_noted(server: HubServer, data: Path, tmp_path: Path) -> None:
    server.files["a.bin"] = BIG
    server.fail("a.bin", *[Fault(200, {"content-length": "", "connection": "close"}, body=BIG[:900], cut=900)] * 2)
    (place,) = run(manifest(tmp_path, {"url": f"{server.url}/files/a.bin", "to": "a.bin"}), data).places
    said = f"{server.url}/files/a.bin does not say its size; check that 900 bytes are all"
    assert place.notes == (f"{data / 'a.bin'}: {said}",)


def test_without_the_hub_files_are_checked_against_the_record(
    server: HubServer, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    loaded = manifest(tmp_path, HERE)
    commit = run(loaded, data).places[0].commit
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    (place,) = run(loaded, data).places
    assert (place.is_complete, place.there, place.commit) == (True, 2, commit)
    assert "cannot be reached" in place.notes[0]
    (data / "Set/data/a.jsonl").write_bytes(b"broken")
    done = run(loaded, data)
    assert "ConnectError" in problem(done)
    assert (done.places[0].there, record(data)["files"].keys()) == (1, {"Set/data/a.jsonl", "Set/data/pictures.tar"})
    monkeypatch.setenv("HF_ENDPOINT", server.url)
    assert run(loaded, data).is_complete


def test_a_hub_that_answers_nonsense_is_named(server: HubServer, data: Path, tmp_path: Path) -> None:
    loaded = manifest(tmp_path, HERE)
    for body, said in (
        (b"<html>", "the hub's answer cannot be used (JSONDecodeError"),
        (b'{"id": "x", "sha": "../..", "siblings": []}', "the hub names no commit for 'main'"),
        (b'{"id": "x", "siblings": [3]}', "the hub's answer cannot be used ("),
    ):
        server.fail("/api/", Fault(status=200, body=body))
        assert said in problem(run(loaded, data))
    server.fail("/api/", Fault(status=418))
    assert problem(run(loaded, data)) == f"hub:{NAME}: the hub answered 418"


def test_a_web_page_in_place_of_a_file_is_refused(server: HubServer, data: Path, tmp_path: Path) -> None:
    server.fail("x.zip", Fault(status=200, body=b"<html>", headers={"content-type": "text/html"}))
    said = problem(run(manifest(tmp_path, {"url": f"{server.url}/files/x.zip", "to": "x.zip"}), data))
    assert said.endswith("expected a file, found a web page; download it by hand")


def test_places_that_datasets_share_are_fetched_once(server: HubServer, data: Path, tmp_path: Path) -> None:
    steps = {"steps": ["Ask the owner."], "to": "by_hand"}
    loaded = manifest(tmp_path, HERE, steps, b=[HERE], c=[steps])
    done = run(loaded, data)
    assert [place.datasets for place in done.places] == [("a", "b")]
    assert [(left.datasets, left.licence, left.is_there) for left in done.left] == [(("a", "c"), "CC0", False)]
    (data / "by_hand").mkdir()
    (data / "by_hand/x").touch()
    only = run(loaded, data, only=["c"])
    assert (only.places, only.left[0].is_there, only.is_complete) == ((), True, True)
    with pytest.raises(ManifestError, match="--only 'd': no such dataset; there are a, b, c"):
        run(loaded, data, only=["d"])


def test_two_places_that_want_the_same_file_are_refused(server: HubServer, data: Path, tmp_path: Path) -> None:
    server.put("owner/two", FILES)
    done = run(manifest(tmp_path, HERE, {**HERE, "hub": "owner/two"}), data)
    assert [place.is_complete for place in done.places] == [True, False]
    assert "would be the same file" in done.places[1].problems[0]


@pytest.mark.parametrize(
    "text", ["{", "[]", '{"version": 2}', '{"files": {"../x": {"origin": "", "size": 1, "sha256": ""}}}']
)
def test_a_damaged_record_is_named(text: str, server: HubServer, data: Path, tmp_path: Path) -> None:
    data.mkdir()
    (data / "downloads.json").write_text(text, "utf-8")
    with pytest.raises(FetchError, match=r"downloads\.json: expected a record of downloads"):
        run(manifest(tmp_path, HERE), data)
