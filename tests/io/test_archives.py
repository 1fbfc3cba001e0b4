"""Hostile and broken archives; every one is refused by name, and leaves nothing behind."""

import gzip
import hashlib
import io
import os
import stat
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from mmlongbench.errors import SourceError
from mmlongbench.io import archives
from mmlongbench.io.locations import LocalPath
from mmlongbench.io.opening import SourceOpener
from mmlongbench.io.progress import Progress

SMALL = b"a small file"


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


def special(kind: bytes, name: str = "x", target: str = "") -> tarfile.TarInfo:
    """A member that is no file."""
    info = tarfile.TarInfo(name)
    info.type, info.linkname = kind, target
    return info


def zip_of(*members: tuple[str, bytes], mode: int = 0, method: int = zipfile.ZIP_DEFLATED) -> bytes:
    """A zip with these members; `mode` is the Unix mode of each."""
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", method) as archive:
        for name, content in members:
            info = zipfile.ZipInfo(name)
            info.external_attr, info.compress_type = mode << 16, method
            archive.writestr(info, content)
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


NOISE = b"".join(hashlib.sha512(bytes([number])).digest() for number in range(64))
LONG = "a" * 300
HOSTILE: dict[str, tuple[str, Callable[[], bytes], str]] = {
    "path above": ("x.tar", lambda: tar_of(("../out.txt", SMALL)), "path-out-of-archive"),
    "path above, deep": ("x.tar", lambda: tar_of(("a/../../out.txt", SMALL)), "path-out-of-archive"),
    "absolute path": ("x.tar", lambda: tar_of(("/tmp/out.txt", SMALL)), "path-out-of-archive"),
    "path above in a zip": ("x.zip", lambda: zip_of(("../out.txt", SMALL)), "path-out-of-archive"),
    "absolute path in a zip": ("x.zip", lambda: zip_of(("/out.txt", SMALL)), "path-out-of-archive"),
    "drive": ("x.zip", lambda: zip_of(("C:out.txt", SMALL)), "path-out-of-archive"),
    "backslashes": ("x.zip", lambda: zip_of(("a\\..\\..\\out.txt", SMALL)), "path-out-of-archive"),
    "symbolic link": ("x.tar", lambda: tar_of(special(tarfile.SYMTYPE, target="/etc/passwd")), "a link"),
    "hard link": ("x.tar", lambda: tar_of(("a", SMALL), special(tarfile.LNKTYPE, target="a")), "a link"),
    "link to a folder": (
        "x.tar",
        lambda: tar_of(special(tarfile.SYMTYPE, "d", ".."), ("d/out.txt", SMALL)),
        "a link",
    ),
    "link in a zip": ("x.zip", lambda: zip_of(("x", b"/etc/passwd"), mode=stat.S_IFLNK | 0o777), "a link"),
    "pipe": ("x.tar", lambda: tar_of(special(tarfile.FIFOTYPE)), "a device"),
    "device": ("x.tar", lambda: tar_of(special(tarfile.CHRTYPE)), "a device"),
    "device in a zip": ("x.zip", lambda: zip_of(("x", b""), mode=stat.S_IFCHR | 0o666), "a device"),
    "file twice": ("x.tar", lambda: tar_of(("a", SMALL), ("./a", b"other")), "file-twice"),
    "file as a folder": ("x.tar", lambda: tar_of(("a", SMALL), ("a/b", SMALL)), "broken-archive"),
    "name too long": ("x.tar", lambda: tar_of((LONG, SMALL)), "broken-archive"),
    "gzip bomb": ("x.tar.gz", lambda: gzip.compress(tar_of(("a", bytes(2**22)))), "unpacks-to-too-much"),
    "zip bomb": ("x.zip", lambda: zip_of(("a", bytes(2**22))), "unpacks-to-too-much"),
    "zip of many bombs": ("x.zip", lambda: zip_of(*((f"{n}", bytes(2**20)) for n in range(4))), "unpacks-to-too-much"),
    "cut tar": ("x.tar", lambda: tar_of(("a", NOISE))[:1500], "broken-archive"),
    "cut gzip": ("x.tar.gz", lambda: gzip.compress(tar_of(("a", NOISE)))[:-900], "broken-archive"),
    "cut zip": ("x.zip", lambda: zip_of(("a", NOISE))[:-30], "broken-archive"),
    "wrong bytes in a zip": ("x.zip", lambda: changed(zip_of(("a", NOISE)), 200), "broken-archive"),
    "no archive": ("x.zip", lambda: b"<html>not found</html>", "broken-archive"),
    "no tar": ("x.tar.gz", lambda: gzip.compress(b"<html>not found</html>" * 100), "broken-archive"),
    "no gzip": ("x.tgz", lambda: tar_of(("a", SMALL)), "broken-archive"),
    "encrypted zip": ("x.zip", encrypted, "broken-archive"),
    "empty tar": ("x.tar", tar_of, "empty-archive"),
    "hidden files only": ("x.tar", lambda: tar_of((".a", SMALL), ("__MACOSX/b", SMALL)), "empty-archive"),
    "nothing": ("x.tar", lambda: b"", "broken-archive"),
    "huge header": ("x.tar.gz", lambda: gzip.compress(huge_header()), "broken-archive"),
    "damaged header": ("x.tar", lambda: changed(tar_of(("a", SMALL), ("b", SMALL)), 1034), "a damaged header"),
    "cut in a header": ("x.tar", lambda: tar_of(("a", SMALL), ("b", SMALL))[:1100], "a damaged header"),
    "cut between files": ("x.tar", lambda: tar_of(("a", SMALL), ("b", SMALL))[:1024], "no mark of its end"),
    "wrong bytes in a gzip": ("x.tar.gz", lambda: changed(gzip.compress(tar_of(("a", NOISE)), 0), 700), "CRC check"),
    "gzip without its end": ("x.tar.gz", lambda: gzip.compress(tar_of(("a", NOISE)))[:-6], "broken-archive"),
    "negative size": ("x.tar", lambda: tar_of(named(pax={"size": "-5"}), ("b", SMALL)), "a file of -5 bytes"),
    "path above in a header": ("x.tar", lambda: tar_of(named(pax={"path": "../b"})), "path-out-of-archive"),
    "large headers": ("x.tar.gz", lambda: gzip.compress(large_headers()), "broken-archive"),
    "hidden bomb": ("x.tar.gz", lambda: gzip.compress(tar_of((".a", bytes(2**22)))), "unpacks-to-too-much"),
    "wrong bytes in LZMA": (
        "x.zip",
        lambda: changed(zip_of(("a", NOISE), method=zipfile.ZIP_LZMA), 60),
        "broken-archive",
    ),
    "empty gzip": ("rows.jsonl.gz", lambda: b"", "empty file"),
    "empty zstd": ("rows.jsonl.zst", lambda: b"", "empty file"),
    "packed bomb": ("rows.jsonl.gz", lambda: gzip.compress(bytes(2**22)), "unpacks-to-too-much"),
    "cut packed file": ("rows.jsonl.gz", lambda: gzip.compress(NOISE)[:-100], "broken-archive"),
    "no packed file": ("rows.jsonl.gz", lambda: b"{}\n", "broken-archive"),
    "no zstd file": ("rows.jsonl.zst", lambda: b"{}\n", "broken-archive"),
}


def named(pax: dict[str, str]) -> tarfile.TarInfo:
    """A member without content whose header says more in the form of POSIX."""
    info = tarfile.TarInfo("a")
    info.pax_headers = pax
    return info


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


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_archive_is_refused_by_name_and_leaves_nothing(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(archives, "FREE_BYTES", 2**20)
    file, made, said = HOSTILE[name]
    path = tmp_path / "in" / file
    path.parent.mkdir()
    path.write_bytes(made())
    opener = SourceOpener(tmp_path / "opened", Progress(False))
    with pytest.raises(SourceError) as found:
        opener.open([LocalPath(path)], (), "source.documents")
    assert str(found.value).startswith(f"{file}, source.documents: ")
    assert said in str(found.value)
    left = [each for each in tmp_path.rglob("*") if each != path and not each.is_dir()]
    assert left == []


def test_a_full_disk_is_named_before_anything_is_unpacked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "x.zip").write_bytes(zip_of(("a", NOISE)))
    monkeypatch.setattr("shutil.disk_usage", lambda path: type("Usage", (), {"free": 100}))
    with pytest.raises(
        SourceError, match=r"x\.zip, source\.a: disk-full: expected 4,096 bytes of free space, found 100"
    ):
        SourceOpener(tmp_path / "opened", Progress(False)).open([LocalPath(tmp_path / "x.zip")], (), "source.a")
    assert not (tmp_path / "opened").exists()


def test_a_disk_that_fills_up_is_named_and_left_clean(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "x.tar.gz").write_bytes(gzip.compress(tar_of(("a", NOISE), ("b", NOISE))))
    monkeypatch.setattr(archives, "_copy", full_disk)
    with pytest.raises(SourceError, match=r"x\.tar\.gz, source\.a: disk-full: .*free some space"):
        SourceOpener(tmp_path / "opened", Progress(False)).open([LocalPath(tmp_path / "x.tar.gz")], (), "source.a")
    assert [each for each in tmp_path.rglob("*") if each.is_file()] == [tmp_path / "x.tar.gz"]


def full_disk(content: object, file: object, count: object) -> None:
    raise OSError(28, os.strerror(28))


def test_a_killed_unpacking_is_done_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "x.tar").write_bytes(tar_of(("a", NOISE), ("b", NOISE)))
    opener = SourceOpener(tmp_path / "opened", Progress(False))
    whole = archives._copy
    calls = 0

    def dies(content: object, file: object, count: object) -> None:
        nonlocal calls
        calls += 1
        if calls == 2:
            raise KeyboardInterrupt
        whole(content, file, count)  # type: ignore[arg-type]

    monkeypatch.setattr(archives, "_copy", dies)
    with pytest.raises(KeyboardInterrupt):
        opener.open([LocalPath(tmp_path / "x.tar")], (), "source.a")
    found = opener.open([LocalPath(tmp_path / "x.tar")], (), "source.a")
    assert {path.name: path.read_bytes() for path in found.path.iterdir()} == {"a": NOISE, "b": NOISE}
    assert found.bytes == 2 * len(NOISE)


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
    found = SourceOpener(tmp_path / "opened", Progress(False)).open([LocalPath(tmp_path / "x.zip")], (), "source.a")
    assert [path.name for path in found.path.iterdir()] == [name]


def test_a_packed_file_may_have_a_long_name(tmp_path: Path) -> None:
    path = tmp_path / f"{'é' * 123}.csv.gz"
    path.write_bytes(gzip.compress(SMALL))
    found = SourceOpener(tmp_path / "opened", Progress(False)).open([LocalPath(path)], (), "source.a")
    assert found.path.read_bytes() == SMALL


def test_an_archive_is_unpacked_once_until_it_changes(tmp_path: Path) -> None:
    path = tmp_path / "x.tar"
    path.write_bytes(tar_of(("a", b"1")))
    opener = SourceOpener(tmp_path / "opened", Progress(False))
    first = opener.open([LocalPath(path)], (), "source.a").path
    inode = (first / "a").stat().st_ino
    assert (opener.open([LocalPath(path)], (), "source.a").path / "a").stat().st_ino == inode
    path.write_bytes(tar_of(("a", b"22")))
    os.utime(path, ns=(1, 1))
    assert (opener.open([LocalPath(path)], (), "source.a").path / "a").read_bytes() == b"22"
