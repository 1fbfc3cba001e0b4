"""A source is the same files in each of its forms: a path, an archive, a packed file, a URL, a dataset of the hub."""

import gzip
import hashlib
import io
import os
import pickle
import shutil
import stat
import tarfile
import zipfile
from collections.abc import Callable, Sequence
from pathlib import Path

import pyarrow as pa
import pytest
from hub_server import Fault, hub

from mmlongbench.errors import SourceError
from mmlongbench.io import archives
from mmlongbench.io.locations import HubFiles, LocalPath, Url, parse_location
from mmlongbench.io.progress import Progress
from mmlongbench.io.sources import OpenedSource, SourceOpener

FILES = {"one.pdf": b"1" * 512, "deep/er/two.pdf": b"2" * 1025, "deep/empty.txt": b"", "ü 家.txt": b"3"}
SMALL = b"a small file"
NOISE = b"".join(hashlib.sha512(bytes([number])).digest() for number in range(64))


@pytest.fixture
def documents(tmp_path: Path) -> Path:
    folder = tmp_path / "documents"
    for name, data in {**FILES, ".hidden": b"h"}.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(data)
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


# Locations


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("data/x", LocalPath(Path("data/x"))),
        ("/data/images.tar.gz/val", LocalPath(Path("/data/images.tar.gz/val"))),
        ("hub:owner/name", HubFiles("owner/name", "", "")),
        ("hub:owner/name@v1.0", HubFiles("owner/name", "v1.0", "")),
        ("hub:owner/name/data/train.parquet", HubFiles("owner/name", "", "data/train.parquet")),
        ("hub:owner/name@v1/data/", HubFiles("owner/name", "v1", "data")),
        ("hub:owner/name@refs/convert/parquet", HubFiles("owner/name", "refs/convert/parquet", "")),
        ("hub:owner/name@refs/convert/parquet/a/b", HubFiles("owner/name", "refs/convert/parquet", "a/b")),
        ("s3://bucket/x", Url("s3://bucket/x")),
        ("simplecache::s3://bucket/my x", Url("simplecache::s3://bucket/my x")),
        ("a::b/c", LocalPath(Path("a::b/c"))),
    ],
)
def test_a_text_names_a_location(text: str, expected: object) -> None:
    found = parse_location(text)
    assert found == expected
    assert parse_location(str(found)) == expected


@pytest.mark.parametrize("text", ["", "  ", "hub:", "hub:name", "hub:owner/name@", "hub:o/n/../../x", "hub:o/n@v1/.."])
def test_a_text_that_names_no_location_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="expected"):
        parse_location(text)


@pytest.mark.parametrize(
    "url",
    [
        "https://user:SECRET@host/x.zip",
        "https://SECRET@host/x.zip",
        "https://host/x.zip?sig=SECRET",
        "https://host/x.zip#SECRET",
        "s3://key:a/SECRET@bucket/x",
        "https://host/my file.zip?sig=SECRET",
        "https://user:my SECRET@host/x",
        "https://user:SECRET#SECRET@host/x",
        "simplecache::https://user:SECRET@host/x",
        "zip://a.pdf::https://user:SECRET@host/x.zip?sig=SECRET",
    ],
)
def test_a_url_is_shown_without_its_secrets(url: str) -> None:
    found = parse_location(url)
    assert isinstance(found, Url)
    assert "SECRET" not in f"{found} {found!r} {found.name}"
    assert pickle.loads(pickle.dumps(found)).address == url


def test_each_part_of_a_url_that_may_be_a_secret_is_known() -> None:
    found = parse_location("ftp://me:PASS%40WORD@host/x?part=1&sig=TOKEN#KEY")
    assert isinstance(found, Url)
    assert {"PASS%40WORD", "PASS@WORD", "me", "TOKEN", "KEY"} <= set(found.secrets)
    assert "1" not in found.secrets


# Paths and patterns


def test_a_folder_is_used_where_it_is(documents: Path, tmp_path: Path) -> None:
    assert opened(tmp_path, documents) == OpenedSource(documents, 0)
    assert opened(tmp_path, tmp_path / "nowhere") == OpenedSource(tmp_path / "nowhere", 0)


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
    both = (documents / "deep", more)
    assert content(opened(tmp_path, *both).path).keys() == {"er/two.pdf", "empty.txt", "three.pdf"}
    (more / "four.pdf").write_text("c")
    assert content(opened(tmp_path, *both).path).keys() == {"er/two.pdf", "empty.txt", "three.pdf", "four.pdf"}


def test_a_pattern_is_the_folder_of_the_files_that_match_it(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    for name in ("test-0.parquet", "test-1.parquet", "val-0.parquet", ".test-2.parquet"):
        (tmp_path / "data" / name).write_text(name)
    found = content(opened(tmp_path, tmp_path / "data/test-*.parquet").path)
    assert found == {name: name.encode() for name in ("test-0.parquet", "test-1.parquet")}
    one = tmp_path / "data/val-*.parquet"
    assert opened(tmp_path, one).path == tmp_path / "data/val-0.parquet"
    one.write_text("a file of this very name")
    assert opened(tmp_path, one).path == one


@pytest.mark.parametrize(("pattern", "names"), [("a**", ["a1", "a2"]), ("**", ["a1", "a2", "b"]), ("*a**1*", ["a1"])])
def test_two_stars_of_a_pattern_are_one(pattern: str, names: list[str], tmp_path: Path) -> None:
    for name in ("a1", "a2", "b"):
        (tmp_path / name).touch()
    assert [each.path.name for each in LocalPath(tmp_path / pattern).matching()] == names


# Archives and packed files


@pytest.mark.parametrize("below", ["documents", "."], ids=["in a folder", "flat"])
@pytest.mark.parametrize("form", ["documents.tar", "documents.tar.gz", "documents.tgz", "documents.zip"])
def test_an_archive_is_the_folder_that_it_was_made_of(documents: Path, tmp_path: Path, form: str, below: str) -> None:
    mode = "w" if form.endswith("tar") else "w:gz"
    made = zipped(documents, form, below) if form.endswith("zip") else tarred(documents, form, below, mode)
    found = opened(tmp_path, made)
    assert content(found.path) == FILES
    assert found.path.name == documents.name
    assert found.bytes == sum(map(len, FILES.values()))


def test_a_path_goes_on_inside_an_archive(documents: Path, tmp_path: Path) -> None:
    made = tarred(documents, "all.tar.gz", "x/y", "w:gz")
    assert content(opened(tmp_path, made / "x/y/deep").path) == {"er/two.pdf": b"2" * 1025, "empty.txt": b""}
    assert opened(tmp_path, made / "x/y/one.pdf").path.read_bytes() == b"1" * 512
    with pytest.raises(SourceError, match=r"all\.tar\.gz, source\.documents: missing-source: expected 'z' in it"):
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
    (tmp_path / f"{'é' * 123}.csv.gz").write_bytes(gzip.compress(SMALL))  # as long as a name may be
    assert opened(tmp_path, tmp_path / f"{'é' * 123}.csv.gz").path.read_bytes() == SMALL


def test_an_archive_is_unpacked_once_until_it_changes(documents: Path, tmp_path: Path) -> None:
    made = tarred(documents, "x.tar", "x")
    inode = (opened(tmp_path, made).path / "one.pdf").stat().st_ino
    assert (opened(tmp_path, made).path / "one.pdf").stat().st_ino == inode
    (documents / "one.pdf").write_bytes(b"22")
    os.utime(tarred(documents, "x.tar", "x"), ns=(1, 1))
    assert (opened(tmp_path, made).path / "one.pdf").read_bytes() == b"22"


@pytest.mark.parametrize("name", ["x.tar.zst", "x.TAR.XZ", "x.tar.bz2", "x.7z"])
def test_an_archive_of_another_kind_is_refused_by_name(name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(b"x")
    with pytest.raises(SourceError, match=r"unknown-archive: expected an archive that ends with \.tar, .*unpack it"):
        opened(tmp_path, tmp_path / name)


@pytest.mark.parametrize(
    ("flags", "system", "written", "name"),
    [
        (0x800, 3, "Straße 家.pdf".encode(), "Straße 家.pdf"),  # Python
        (0, 3, "Straße 家.pdf".encode(), "Straße 家.pdf"),  # `zip` on Linux, the Finder
        (0, 0, "Straße 家.pdf".encode(), "Straße 家.pdf"),
        (0, 0, "Straße.pdf".encode("cp437"), "Straße.pdf"),  # DOS
        (0, 3, b"Stra\xdfe.pdf", "Stra\udcdfe.pdf"),  # the bytes of a file's name that is not UTF-8
    ],
)
def test_a_zip_gives_the_names_that_its_files_had(
    flags: int, system: int, written: bytes, name: str, tmp_path: Path
) -> None:
    stand_in = "x" * len(written)
    made = bytearray(zip_of((stand_in, SMALL)).replace(stand_in.encode(), written))
    entry = made.index(b"PK\x01\x02")
    made[entry + 5] = system
    for place in (6, entry + 8):
        made[place : place + 2] = flags.to_bytes(2, "little")
    (tmp_path / "x.zip").write_bytes(made)
    assert [path.name for path in opened(tmp_path, tmp_path / "x.zip").path.iterdir()] == [name]


# Hostile and broken archives


def tar_of(*members: tarfile.TarInfo | tuple[str, bytes]) -> bytes:
    """A tar with these members, in this order."""
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w") as archive:
        for member in members:
            if isinstance(member, tarfile.TarInfo):
                archive.addfile(member)
            else:
                info = tarfile.TarInfo(member[0])
                info.size = len(member[1])
                archive.addfile(info, io.BytesIO(member[1]))
    return made.getvalue()


def special(kind: bytes = tarfile.REGTYPE, name: str = "x", target: str = "", **pax: str) -> tarfile.TarInfo:
    """A member without content; its header may say more in the form of POSIX."""
    info = tarfile.TarInfo(name)
    info.type, info.linkname, info.pax_headers = kind, target, pax
    return info


def zip_of(*members: tuple[str, bytes], mode: int = 0, method: int = zipfile.ZIP_DEFLATED) -> bytes:
    """A zip with these members; `mode` is the Unix mode of each."""
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", method) as archive:
        for name, data in members:
            info = zipfile.ZipInfo(name)
            info.external_attr, info.compress_type = mode << 16, method
            archive.writestr(info, data)
    return made.getvalue()


def encrypted() -> bytes:
    """A zip that says that its file is encrypted."""
    made = bytearray(zip_of(("a.txt", SMALL)))
    for signature, place in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        made[made.index(signature) + place] |= 1
    return bytes(made)


def changed(data: bytes, place: int) -> bytes:
    """The bytes with one of them changed."""
    return data[:place] + bytes([data[place] ^ 0xFF]) + data[place + 1 :]


def large_headers() -> bytes:
    """A tar with headers for all files that together fill the memory; they are packed to little."""
    info = tarfile.TarInfo("headers")
    info.type, info.size = tarfile.XGLTYPE, 2**21
    return info.tobuf(tarfile.USTAR_FORMAT) + b"2097152 k=".ljust(2**21 - 1, b"v") + b"\n" + tar_of(("a", SMALL))


def huge_header() -> bytes:
    """A tar whose first header says that a name of a gigabyte follows."""
    info = tarfile.TarInfo("././@LongLink")
    info.type, info.size = tarfile.GNUTYPE_LONGNAME, 2**30
    return info.tobuf(tarfile.GNU_FORMAT) + bytes(4096)


Made = Callable[[], bytes]
# fmt: off
TARS: dict[str, tuple[Made, str]] = {
    "path above": (lambda: tar_of(("../out.txt", SMALL)), "path-out-of-archive"),
    "path above, deep": (lambda: tar_of(("a/../../out.txt", SMALL)), "path-out-of-archive"),
    "path above in a header": (lambda: tar_of(special(path="../b")), "path-out-of-archive"),
    "absolute path": (lambda: tar_of(("/tmp/out.txt", SMALL)), "path-out-of-archive"),
    "symbolic link": (lambda: tar_of(special(tarfile.SYMTYPE, target="/etc/passwd")), "a link"),
    "hard link": (lambda: tar_of(("a", SMALL), special(tarfile.LNKTYPE, target="a")), "a link"),
    "link to a folder": (lambda: tar_of(special(tarfile.SYMTYPE, "d", ".."), ("d/out.txt", SMALL)), "a link"),
    "pipe": (lambda: tar_of(special(tarfile.FIFOTYPE)), "a device"),
    "device": (lambda: tar_of(special(tarfile.CHRTYPE)), "a device"),
    "file twice": (lambda: tar_of(("a", SMALL), ("./a", b"other")), "file-twice"),
    "file as a folder": (lambda: tar_of(("a", SMALL), ("a/b", SMALL)), "broken-archive"),
    "folder as a file": (lambda: tar_of(("a/b", SMALL), ("a", SMALL)), "broken-archive"),
    "name too long": (lambda: tar_of(("a" * 300, SMALL)), "broken-archive"),
    "cut tar": (lambda: tar_of(("a", NOISE))[:1500], "broken-archive"),
    "empty tar": (tar_of, "empty-archive"),
    "hidden files only": (lambda: tar_of((".a", SMALL), ("__MACOSX/b", SMALL)), "empty-archive"),
    "nothing": (lambda: b"", "broken-archive"),
    "damaged header": (lambda: changed(tar_of(("a", SMALL), ("b", SMALL)), 1034), "a damaged header"),
    "cut in a header": (lambda: tar_of(("a", SMALL), ("b", SMALL))[:1100], "a damaged header"),
    "cut between files": (lambda: tar_of(("a", SMALL), ("b", SMALL))[:1024], "no mark of its end"),
    "negative size": (lambda: tar_of(special(size="-5"), ("b", SMALL)), "broken-archive"),
}
ZIPS: dict[str, tuple[Made, str]] = {
    "path above": (lambda: zip_of(("../out.txt", SMALL)), "path-out-of-archive"),
    "absolute path": (lambda: zip_of(("/out.txt", SMALL)), "path-out-of-archive"),
    "drive": (lambda: zip_of(("C:out.txt", SMALL)), "path-out-of-archive"),
    "backslashes": (lambda: zip_of(("a\\..\\..\\out.txt", SMALL)), "path-out-of-archive"),
    "link": (lambda: zip_of(("x", b"/etc/passwd"), mode=stat.S_IFLNK | 0o777), "a link"),
    "device": (lambda: zip_of(("x", b""), mode=stat.S_IFCHR | 0o666), "a device"),
    "bomb": (lambda: zip_of(("a", bytes(2**22))), "unpacks-to-too-much"),
    "many bombs": (lambda: zip_of(*((f"{n}", bytes(2**20)) for n in range(4))), "unpacks-to-too-much"),
    "cut zip": (lambda: zip_of(("a", NOISE))[:-30], "broken-archive"),
    "wrong bytes": (lambda: changed(zip_of(("a", NOISE)), 200), "broken-archive"),
    "wrong bytes in LZMA": (lambda: changed(zip_of(("a", NOISE), method=zipfile.ZIP_LZMA), 60), "broken-archive"),
    "no archive": (lambda: b"<html>not found</html>", "broken-archive"),
    "encrypted": (encrypted, "broken-archive"),
}
PACKED_TARS: dict[str, tuple[Made, str]] = {
    "bomb": (lambda: gzip.compress(tar_of(("a", bytes(2**22)))), "unpacks-to-too-much"),
    "hidden bomb": (lambda: gzip.compress(tar_of((".a", bytes(2**22)))), "unpacks-to-too-much"),
    "cut gzip": (lambda: gzip.compress(tar_of(("a", NOISE)))[:-900], "broken-archive"),
    "without its end": (lambda: gzip.compress(tar_of(("a", NOISE)))[:-6], "broken-archive"),
    "wrong bytes": (lambda: changed(gzip.compress(tar_of(("a", NOISE)), 0), 700), "CRC check"),
    "no tar": (lambda: gzip.compress(b"<html>not found</html>" * 100), "broken-archive"),
    "no gzip": (lambda: tar_of(("a", SMALL)), "broken-archive"),
    "huge header": (lambda: gzip.compress(huge_header()), "broken-archive"),
    "large headers": (lambda: gzip.compress(large_headers()), "broken-archive"),
}
PACKED: dict[str, tuple[Made, str]] = {
    "nothing": (lambda: b"", "empty file"),
    "bomb": (lambda: gzip.compress(bytes(2**22)), "unpacks-to-too-much"),
    "cut": (lambda: gzip.compress(NOISE)[:-100], "broken-archive"),
    "not packed": (lambda: b"{}\n", "broken-archive"),
}
# fmt: on
ENDINGS = {"x.tar": TARS, "x.zip": ZIPS, "x.tgz": PACKED_TARS, "x.jsonl.gz": PACKED}
HOSTILE = [(file, name) for file, made in ENDINGS.items() for name in made]
UNPACKED = [("x.jsonl.zst", "nothing"), ("x.jsonl.zst", "not packed")]


@pytest.mark.parametrize(("file", "name"), [*HOSTILE, *UNPACKED])
def test_a_hostile_archive_is_refused_by_name_and_leaves_nothing(
    file: str, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(archives, "FREE_BYTES", 2**20)
    made, said = ENDINGS.get(file, PACKED)[name]
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / file).write_bytes(made())
    with pytest.raises(SourceError) as found:
        opened(tmp_path, tmp_path / "in" / file)
    assert str(found.value).startswith(f"{file}, source.documents: ")
    assert said in str(found.value)
    assert [path.name for path in tmp_path.rglob("*") if not path.is_dir()] == [file]


@pytest.mark.parametrize("form", ["x.tar", "x.zip"])
def test_files_that_a_disk_takes_for_one_are_refused_by_name(
    form: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = zip_of if form == "x.zip" else tar_of
    (tmp_path / form).write_bytes(made(("deep/a.txt", SMALL), ("deep/A.txt", b"other")))
    found = opened(tmp_path, tmp_path / form)
    assert content(found.path) == {"a.txt": SMALL, "A.txt": b"other"}

    def lexists(path: Path) -> bool:
        """As on a disk without case."""
        return path.parent.is_dir() and path.name.lower() in (other.name.lower() for other in path.parent.iterdir())

    monkeypatch.setattr("os.path.lexists", lexists)
    os.utime(tmp_path / form, ns=(1, 1))
    with pytest.raises(SourceError, match=rf"^{form}, .*file-twice: expected each file once, found deep/A\.txt"):
        opened(tmp_path, tmp_path / form)


def test_an_archive_and_a_folder_with_a_file_of_one_name_are_refused_by_name(tmp_path: Path) -> None:
    (tmp_path / "more").mkdir()
    (tmp_path / "more" / "a").write_bytes(b"1")
    (tmp_path / "x.tar").write_bytes(tar_of(("a", SMALL)))
    for locations in ((tmp_path / "x.tar", tmp_path / "more"), (tmp_path / "more", tmp_path / "x.tar")):
        with pytest.raises(SourceError, match="file-twice"):
            opened(tmp_path, *locations)


def test_a_full_disk_is_named_before_anything_is_unpacked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "x.zip").write_bytes(zip_of(("a", NOISE)))
    monkeypatch.setattr("shutil.disk_usage", lambda path: type("Usage", (), {"free": 100}))
    with pytest.raises(SourceError, match=r"x\.zip, .*: disk-full: expected 4,096 bytes of free space, found 100"):
        opened(tmp_path, tmp_path / "x.zip")
    assert not (tmp_path / "opened").exists()


@pytest.mark.parametrize("error", [OSError(28, os.strerror(28)), KeyboardInterrupt()], ids=["full disk", "kill"])
def test_an_unpacking_that_ends_early_is_done_again(
    error: BaseException, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "x.tar").write_bytes(tar_of(("a", NOISE), ("b", NOISE)))
    whole, calls = tarfile.TarFile.makefile, 0

    def dies(archive: tarfile.TarFile, member: tarfile.TarInfo, path: str) -> None:
        nonlocal calls
        calls += 1
        if calls == 2:
            raise error
        whole(archive, member, path)

    monkeypatch.setattr(tarfile.TarFile, "makefile", dies)
    if isinstance(error, OSError):
        with pytest.raises(SourceError, match=r"x\.tar, source\.documents: disk-full: .*free some space"):
            opened(tmp_path, tmp_path / "x.tar")
        assert [path.name for path in tmp_path.rglob("*") if path.is_file()] == ["x.tar"]
    else:
        with pytest.raises(KeyboardInterrupt):
            opened(tmp_path, tmp_path / "x.tar")
    found = opened(tmp_path, tmp_path / "x.tar")
    assert content(found.path) == {"a": NOISE, "b": NOISE}
    assert found.bytes == 2 * len(NOISE)


# URLs and the hub


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
    ("url", "said"),
    [
        ("nope://user:SECRET@host/x", ""),
        ("s3://user:SECRET@bucket/x", ""),
        ("http://user:SECRET@127.0.0.1:9/x.zip?sig=SECRET#SECRET", ""),
        ("file:///nowhere/x?sig=SECRET", ""),
        ("ftp://user:SECRET@127.0.0.1:9/x.zip", "ftp://…@127.0.0.1:9/x.zip"),
    ],
)
def test_a_url_that_cannot_be_read_is_named_without_its_secrets(
    url: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("time.sleep", lambda seconds: None)
    with pytest.raises(SourceError, match=r"source\.documents: unreachable-source: expected a source at ") as found:
        opened(tmp_path, url)
    assert said in str(found.value)
    assert "SECRET" not in str(found.value)
    assert found.value.__cause__ is None
    assert not [path for path in tmp_path.rglob("*") if path.is_file()]


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
    deep = opened(tmp_path, "hub:owner/name@v1/data/all.tar/documents/deep")
    assert content(deep.path).keys() == {"er/two.pdf", "empty.txt"}
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


class Replaced(dict[str, bytes]):
    """Files of a server, of which another version is there from the third request on."""

    def __init__(self, name: str, before: bytes, after: bytes) -> None:
        super().__init__({name: after})
        self._before = [before, before]

    def __getitem__(self, name: str) -> bytes:
        return self._before.pop() if self._before else super().__getitem__(name)


@pytest.mark.parametrize("names_versions", [True, False])
def test_a_file_that_is_replaced_while_it_is_downloaded_is_no_mixture(
    names_versions: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server has another file of the same size when the rest is asked for."""
    monkeypatch.setattr("huggingface_hub.constants.DOWNLOAD_CHUNK_SIZE", 100)
    if not names_versions:
        monkeypatch.setattr("mmlongbench.io.sources.url_facts", lambda address: (1_000, ""))
    with hub() as server:
        server.files = Replaced("rows.jsonl", b"a" * 1_000, b"b" * 1_000)
        server.faults["rows.jsonl"] = [*([Fault()] if names_versions else []), Fault(cut=500)]
        if not names_versions:
            assert server.files["rows.jsonl"] == b"a" * 1_000  # in place of the look at the facts
        found = opened(tmp_path, f"{server.url}/files/rows.jsonl")
        assert found.path.read_bytes() == b"b" * 1_000
        assert server.requests[-1][1]["range"] == "bytes=500-"


def test_a_file_over_http_is_continued_where_the_connection_broke(
    documents: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("huggingface_hub.constants.DOWNLOAD_CHUNK_SIZE", 100)
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
