"""A source is the same files in each of its forms."""

import gzip
import shutil
import tarfile
import zipfile
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pytest
from hub_server import Fault, hub

from mmlongbench.errors import SourceError
from mmlongbench.io.locations import LocalPath, parse_location
from mmlongbench.io.opening import OpenedSource, SourceOpener
from mmlongbench.io.progress import Progress

FILES = {"one.pdf": b"1" * 512, "deep/er/two.pdf": b"2" * 1025, "deep/empty.txt": b"", "ü 家.txt": b"3"}


@pytest.fixture(name="documents")
def _documents(tmp_path: Path) -> Path:
    folder = tmp_path / "documents"
    for name, content in {**FILES, ".hidden": b"h"}.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
    return folder


def opened(tmp_path: Path, *locations: object, patterns: Sequence[str] = ()) -> OpenedSource:
    parsed = [parse_location(str(each)) for each in locations]
    return SourceOpener(tmp_path / "opened", Progress(False)).open(parsed, patterns, "source.documents")


def content(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def tarred(folder: Path, name: str, below: str, mode: str = "w") -> Path:
    path = folder.parent / name
    with tarfile.open(path, mode) as archive:  # type: ignore[call-overload]
        archive.add(folder, below)
    return path


def zipped(folder: Path, name: str, below: str) -> Path:
    path = folder.parent / name
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for file in sorted(folder.rglob("*")):
            archive.write(file, Path(below) / file.relative_to(folder))
    return path


def test_a_folder_is_used_where_it_is(documents: Path, tmp_path: Path) -> None:
    assert opened(tmp_path, documents) == OpenedSource(documents, 0)
    assert opened(tmp_path, tmp_path / "nowhere") == OpenedSource(tmp_path / "nowhere", 0)


@pytest.mark.parametrize("below", ["documents", "."], ids=["in a folder", "flat"])
@pytest.mark.parametrize("form", ["documents.tar", "documents.tar.gz", "documents.tgz", "documents.zip"])
def test_an_archive_is_the_folder_that_it_was_made_of(documents: Path, tmp_path: Path, form: str, below: str) -> None:
    made = (
        zipped(documents, form, below)
        if form.endswith("zip")
        else tarred(documents, form, below, "w" if form.endswith("tar") else "w:gz")
    )
    found = opened(tmp_path, made)
    assert content(found.path) == FILES
    assert found.path.name == documents.name
    assert found.bytes == sum(map(len, FILES.values()))


def test_a_path_goes_on_inside_an_archive(documents: Path, tmp_path: Path) -> None:
    made = tarred(documents, "all.tar.gz", "x/y", "w:gz")
    assert content(opened(tmp_path, made / "x/y/deep").path) == {"er/two.pdf": b"2" * 1025, "empty.txt": b""}
    assert opened(tmp_path, made / "x/y/one.pdf").path.read_bytes() == b"1" * 512
    with pytest.raises(
        SourceError, match=r"all\.tar\.gz, source\.documents: missing-source: expected 'z' in it, found x"
    ):
        opened(tmp_path, made / "z")
    with pytest.raises(SourceError, match="missing-source"):
        opened(tmp_path, f"{made}/x/../../../documents")


def test_an_archive_named_after_its_only_file_is_this_file(tmp_path: Path) -> None:
    (tmp_path / "val.json").write_text("[1]")
    with tarfile.open(tmp_path / "val.json.tar.gz", "w:gz") as archive:
        archive.add(tmp_path / "val.json", "val.json")
    (tmp_path / "val.json").rename(tmp_path / "other.json")
    with tarfile.open(tmp_path / "all.tar", "w") as archive:
        archive.add(tmp_path / "other.json", "other.json")
    assert opened(tmp_path, tmp_path / "val.json.tar.gz").path.read_text() == "[1]"
    assert content(opened(tmp_path, tmp_path / "all.tar").path) == {"other.json": b"[1]"}


def test_a_packed_file_is_the_file_in_it(tmp_path: Path) -> None:
    rows = b'{"a": 1}\n' * 1000
    (tmp_path / "rows.jsonl.gz").write_bytes(gzip.compress(rows))
    with pa.CompressedOutputStream(str(tmp_path / "rows.jsonl.zst"), "zstd") as file:
        file.write(rows)
    (tmp_path / "in").mkdir()
    shutil.copy(tmp_path / "rows.jsonl.gz", tmp_path / "in" / "rows.jsonl.gz")
    inside = tarred(tmp_path / "in", "all.tar", ".")
    for form in (tmp_path / "rows.jsonl.gz", tmp_path / "rows.jsonl.zst", inside / "rows.jsonl.gz"):
        found = opened(tmp_path, form)
        assert (found.path.name, found.path.read_bytes()) == ("rows.jsonl", rows)


def test_several_locations_are_one_folder_with_the_files_of_all(documents: Path, tmp_path: Path) -> None:
    first = tarred(documents / "deep", "first.tar", "deep")
    more = tmp_path / "more"
    more.mkdir()
    (more / "three.pdf").write_bytes(b"4")
    found = opened(tmp_path, documents.parent / "documents/deep/../../documents/one.pdf", first, more)
    expected = {"one.pdf": FILES["one.pdf"], "three.pdf": b"4"}
    assert content(found.path) == expected | {name: FILES[name] for name in FILES if name.startswith("deep")}
    with pytest.raises(SourceError, match=r"three\.pdf, source\.documents: file-twice"):
        opened(tmp_path, more, more / "three.pdf")
    with pytest.raises(SourceError, match="missing-source"):
        opened(tmp_path, more, tmp_path / "nowhere")


def test_a_pattern_is_the_folder_of_the_files_that_match_it(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    for name in ("test-0.parquet", "test-1.parquet", "val-0.parquet", ".test-2.parquet"):
        (tmp_path / "data" / name).write_text(name)
    opener = SourceOpener(tmp_path / "kept", Progress(is_shown=False))
    found = opener.open([LocalPath(tmp_path / "data/test-*.parquet")], (), "source.questions").path
    assert {path.name: path.read_text() for path in found.iterdir()} == {
        "test-0.parquet": "test-0.parquet",
        "test-1.parquet": "test-1.parquet",
    }
    one = tmp_path / "data/val-*.parquet"
    assert opener.open([LocalPath(one)], (), "source.questions").path == tmp_path / "data/val-0.parquet"
    one.write_text("a file of this very name")
    assert opener.open([LocalPath(one)], (), "source.questions").path == one


@pytest.mark.parametrize(("pattern", "names"), [("a**", ["a1", "a2"]), ("**", ["a1", "a2", "b"]), ("*a**1*", ["a1"])])
def test_two_stars_of_a_pattern_are_one(pattern: str, names: list[str], tmp_path: Path) -> None:
    for name in ("a1", "a2", "b"):
        (tmp_path / name).touch()
    found = LocalPath(tmp_path / pattern).matching()
    assert [each.path.name for each in found] == names


@pytest.mark.parametrize("name", ["x.tar.zst", "x.TAR.XZ", "x.tar.bz2", "x.7z"])
def test_an_archive_of_another_kind_is_refused_by_name(name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(b"x")
    with pytest.raises(SourceError, match=r"unknown-archive: expected an archive that ends with \.tar, .*unpack it"):
        opened(tmp_path, tmp_path / name)


def test_what_several_locations_make_follows_a_change_of_one(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        (tmp_path / name / f"{name}.txt").write_text(name)
    locations = [LocalPath(tmp_path / "a"), LocalPath(tmp_path / "b")]
    opener = SourceOpener(tmp_path / "opened", Progress(False))
    opener.open(locations, (), "source.x")
    (tmp_path / "b" / "c.txt").write_text("c")
    assert content(opener.open(locations, (), "source.x").path).keys() == {"a.txt", "b.txt", "c.txt"}


def test_a_url_is_downloaded_and_unpacked(documents: Path, tmp_path: Path) -> None:
    made = tarred(documents, "documents.tar.gz", "documents", "w:gz")
    assert content(opened(tmp_path, f"file://{made}").path) == FILES
    assert content(opened(tmp_path, f"file://{made}/documents/deep/er").path) == {"two.pdf": b"2" * 1025}
    folder = content(opened(tmp_path, f"file://{documents}").path)
    assert {name: folder[name] for name in FILES} == FILES


@pytest.mark.parametrize("name", ["documents.tar.gz", "rows.jsonl.gz"])
def test_a_broken_file_is_downloaded_again_once_it_is_mended(name: str, documents: Path, tmp_path: Path) -> None:
    url = f"file://{tmp_path / name}"
    (tmp_path / name).write_bytes(b"<html>maintenance</html>")
    for _ in range(2):
        with pytest.raises(SourceError, match="broken-archive"):
            opened(tmp_path, url)
    if name == "rows.jsonl.gz":
        (tmp_path / name).write_bytes(gzip.compress(b"{}"))
        assert opened(tmp_path, url).path.read_bytes() == b"{}"
    else:
        tarred(documents, name, "documents", "w:gz")
        assert content(opened(tmp_path, url).path) == FILES


@pytest.mark.parametrize(
    "url",
    [
        "nope://user:SECRET@host/x",
        "s3://user:SECRET@bucket/x",
        "http://user:SECRET@127.0.0.1:9/x.zip?sig=SECRET#SECRET",
        "file:///nowhere/x?sig=SECRET",
    ],
)
def test_a_url_that_cannot_be_read_is_named_without_its_secrets(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mmlongbench.io.transfer.ATTEMPTS_TO_CONNECT", 0)
    with pytest.raises(SourceError, match=r"source\.documents: unreachable-source: expected a source at ") as found:
        opened(tmp_path, url)
    assert "SECRET" not in str(found.value)
    assert found.value.__cause__ is None
    assert not [path for path in tmp_path.rglob("*") if path.is_file()]


def test_a_server_that_refuses_the_connection_is_not_called_a_broken_archive(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match=r"unreachable-source: expected a source at ftp://…@127\.0\.0\.1:9/x\.zip"):
        opened(tmp_path, "ftp://user:SECRET@127.0.0.1:9/x.zip")


def test_a_dataset_of_the_hub_is_used_where_the_hubs_client_keeps_it(
    documents: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The client's cache has links to files that are elsewhere."""
    snapshot = tmp_path / "datasets--owner--name" / "snapshots" / ("0" * 40)
    blobs = snapshot.parents[1] / "blobs"
    for folder in (snapshot / "data", blobs):
        folder.mkdir(parents=True)
    tarred(documents, "all.tar", "documents").rename(blobs / "1")
    (blobs / "2").write_bytes(b"rows")
    (snapshot / "data" / "all.tar").symlink_to(blobs / "1")
    (snapshot / "data" / "rows.jsonl").symlink_to(blobs / "2")
    asked: list[dict[str, object]] = []

    def client(repository: str, **options: object) -> str:
        asked.append({"repository": repository, **options})
        return str(snapshot)

    monkeypatch.setattr("huggingface_hub.snapshot_download", client)
    assert content(opened(tmp_path, "hub:owner/name@v1/data/all.tar/documents/deep").path).keys() == {
        "er/two.pdf",
        "empty.txt",
    }
    assert opened(tmp_path, "hub:owner/name/data/rows.jsonl") == OpenedSource(snapshot / "data" / "rows.jsonl")
    assert opened(tmp_path, "hub:owner/name", patterns=["*.jsonl", "*.tar"]) == OpenedSource(snapshot)
    only = opened(tmp_path, "hub:owner/name", patterns=["*.jsonl"])  # an earlier download has left the other file there
    assert (content(only.path), only.bytes) == ({"data/rows.jsonl": b"rows"}, 4)
    assert [(each["revision"], each["allow_patterns"]) for each in asked] == [
        ("v1", ["data/all.tar", "data/all.tar/**"]),
        (None, ["data/rows.jsonl", "data/rows.jsonl/**"]),
        (None, ["*.jsonl", "*.tar"]),
        (None, ["*.jsonl"]),
    ]
    assert {(each["repository"], each["repo_type"]) for each in asked} == {("owner/name", "dataset")}
    with pytest.raises(SourceError, match=r"hub:owner/name/none: missing-source: expected 'none' in it"):
        opened(tmp_path, "hub:owner/name/none")
    with pytest.raises(SourceError, match="unknown-source: expected hub:owner/name/<path>"):
        opened(tmp_path, "hub:owner/name")


def test_a_file_over_http_is_continued_where_the_connection_broke(documents: Path, tmp_path: Path) -> None:
    data = tarred(documents, "documents.tar.gz", "documents", "w:gz").read_bytes()
    with hub() as server:
        server.files["d.tar.gz"] = data
        server.faults["d.tar.gz"] = [Fault(), Fault(cut=100)]
        found = opened(tmp_path, f"{server.url.replace('//', '//user:SECRET@')}/files/d.tar.gz?sig=SECRET")
        assert content(found.path) == FILES
        assert [headers.get("range") for _, headers in server.requests] == [None, None, "bytes=100-"]
        server.files["page"] = b"<html>"
        for name, status in (("d.tar.gz", 403), ("d.tar.gz", 404)):
            server.faults[name] = [Fault(status=status)]
            with pytest.raises(SourceError, match=f"unreachable-source: .*the server answered {status}") as refused:
                opened(tmp_path / str(status), f"{server.url}/files/{name}?sig=SECRET")
            assert "SECRET" not in str(refused.value)
