"""A hostile release: nothing outside it is served, nothing of it is markup, what is no picture is not sent as one."""

import json
import os
import shutil
import struct
import zlib
from pathlib import Path

import pytest
from tiny import command
from viewing import client, site_of

from mmlongbench.web.viewer.static_site import write_site

EVIL = "\"'><img src=x onerror=\"document.title='run'\"></script><script>document.title='run'</script>{{ 7 * 7 }}\u2028"
SVG = b'<svg xmlns="http://www.w3.org/2000/svg" onload="alert(1)"><script>alert(1)</script></svg>'
SECRET = "the content of a file outside"


def bomb() -> bytes:
    """The beginning of a picture of 900 million pixels."""
    head = b"IHDR" + struct.pack(">IIBBBBB", 30_000, 30_000, 8, 2, 0, 0, 0)
    data = b"IDAT" + zlib.compress(bytes(90_001))
    chunks = (struct.pack(">I", len(each) - 4) + each + struct.pack(">I", zlib.crc32(each)) for each in (head, data))
    return b"\x89PNG\r\n\x1a\n" + b"".join(chunks)


@pytest.fixture
def hostile(tiles: Path, tmp_path: Path) -> Path:
    """A release with markup in every field of the first record, and with images that lead out or are none."""
    release = Path(shutil.copytree(tiles, tmp_path / "release"))
    (tmp_path / "secret.png").write_text(SECRET, "utf-8")
    images = release / "mmlb_image/tiles"
    (images / "svg.png").write_bytes(SVG)
    (images / "page.jpg").write_bytes(b"<!doctype html><script>alert(1)</script>")
    (images / "link.png").symlink_to(tmp_path / "secret.png")
    (images / "folder.png").symlink_to(tmp_path, target_is_directory=True)
    os.mkfifo(images / "pipe.png")
    (images / "polyglot.png").write_bytes(b"\x89PNG\r\n\x1a\n" + SVG)
    (images / "bomb.png").write_bytes(bomb())
    shutil.copy(images / "0.png", images / "\"><img src=x onerror=alert(1)>'.png")
    path = release / "mmlb_data/tiles/headed_K1.jsonl"
    first, *others = path.read_text("utf-8").splitlines()
    names = [
        *("tiles/svg.png", "tiles/page.jpg", "tiles/link.png", "tiles/folder.png/secret.png", "tiles/pipe.png"),
        *("tiles/polyglot.png", "tiles/bomb.png", "tiles/\"><img src=x onerror=alert(1)>'.png", "../../secret.png"),
        *("tiles/../../../secret.png", str(tmp_path / "secret.png"), "tiles/\x00.png", "tiles/\ud800.png", "x" * 5000),
    ]
    units = [[EVIL, f"image: {name}", EVIL] for name in names]
    record = json.loads(first) | {"id": EVIL, "answer": [EVIL], "units": units, "tile": EVIL}
    path.write_text("\n".join([json.dumps(record), *others]), "utf-8")
    (release / "items/tiles/headed_K1.parquet").unlink()
    return release


def test_only_pictures_inside_the_release_are_sent(hostile: Path) -> None:
    site = site_of(hostile)
    asked = client(site)
    file = next(file for file in site.viewed.files if file.dataset == "headed")
    sent = {}
    for number, path in enumerate(site.index.images(file.number)):
        for kind in ("image", "small"):
            answer = asked.get(f"/{kind}/{file.number}/{number}")
            assert SECRET not in answer.text
            assert "Traceback" not in answer.text
            if answer.status_code == 200:
                sent[kind, path] = answer.headers["content-type"]
                assert answer.headers["x-content-type-options"] == "nosniff"
            else:
                assert answer.status_code == 404
                assert answer.headers["content-type"].startswith("text/plain")
    quoted = "tiles/\"><img src=x onerror=alert(1)>'.png"
    bare = {key: kind for key, kind in sent.items() if not key[1].removeprefix("tiles/").split(".")[0].isdecimal()}
    assert bare == {
        ("image", quoted): "image/png",
        ("small", quoted): "image/jpeg",
        ("image", "tiles/polyglot.png"): "image/png",  # with `nosniff` it is only a broken picture
        ("image", "tiles/bomb.png"): "image/png",
    }


def test_nothing_of_data_is_markup(hostile: Path, tmp_path: Path) -> None:
    site = site_of(hostile)
    asked = client(site)
    file = next(file for file in site.viewed.files if file.dataset == "headed")
    number = site.viewed.datasets.index("headed")
    for path in ("/", f"/dataset/{number}", "/rejects", f"/example/{file.name}/1"):
        answer = asked.get(path)
        assert answer.status_code == 200
        assert "<img src=x" not in answer.text
        assert "<script>" not in answer.text
    for path in (f"dataset/{number}/rows", f"example/{file.number}/0/rows/0", f"example/{file.number}/0/messages"):
        answer = asked.get(f"/data/{path}")
        assert answer.headers["content-type"] == "application/json"
        assert "onerror" in answer.text
    opened = site.open(file, 0)
    assert len(opened.missing) >= 10
    write_site(site, tmp_path / "site")
    for page in (tmp_path / "site").glob("*.html"):
        assert "<img src=x" not in page.read_text("utf-8")
        assert "<script>" not in page.read_text("utf-8")
    for data in (tmp_path / "site/data").iterdir():
        assert data.read_text("utf-8").isascii()


@pytest.mark.parametrize(
    "path",
    [
        *("/image/0/../../secret.png", "/image/..%2f..%2fsecret.png/0", "/image/0/%2e%2e%2f%2e%2e%2fsecret.png"),
        *("/example/../../secret.png/0", "/example/..%2f..%2fbuild.lock.json/0", "/example/%2e%2e/build.lock.json/0"),
        *("/example//etc/passwd/0", "/example/%2fetc%2fpasswd/0", "/assets/../kit.py", "/assets/%2e%2e%2fkit.py"),
        *("/assets/..%5ckit.py", "/assets/%252e%252e%252fkit.py", "/mmlb_image/tiles/0.png", "/build.lock.json"),
        *(
            "/image/-1/0",
            "/image/0/-1",
            "/image/0/1e3",
            "/image/0x0/0",
            "/image/٠/0",
            "/small/0/99999999999999999999999",
        ),
        *("/data/example/0/0/rows/-1", "/data/example/0/0/text/-1/-1", "/data/example/0/0/model/-1", "/dataset/-1"),
        *(
            "/example/%00/0",
            "/example/%ff%fe/0",
            "/%",
            "/example/tiles/headed_K1.jsonl/0",
            "/example/tiles/headed_K1.jsonl/1/..;/x",
            "/\\..\\..\\secret.png",
        ),
    ],
)
def test_no_address_leads_out(tiles: Path, path: str) -> None:
    answer = client(site_of(tiles)).get(path)
    assert answer.status_code in (404, 405)
    assert "Traceback" not in answer.text
    assert "root:" not in answer.text


@pytest.mark.parametrize("has_lock", [True, False])
def test_a_folder_of_images_that_is_a_link_out_is_refused_unless_it_is_given(
    finished: Path, tmp_path: Path, has_lock: bool
) -> None:
    release = Path(shutil.copytree(finished, tmp_path / "release"))
    outside = (release / "mmlb_image").rename(tmp_path / "outside")
    (release / "mmlb_image").symlink_to(outside)
    if not has_lock:
        (release / "build.lock.json").unlink()
    ran = command("view", release, "--static", tmp_path / "site")
    assert ran.code == 2
    assert "mmlb_image: is a link out of the release" in ran.err
    assert not (tmp_path / "site").exists()
    assert site_of(release, images=outside).viewed.files[0].images == outside


def test_a_data_file_that_is_a_link_out_is_refused(tiles: Path, tmp_path: Path) -> None:
    release = Path(shutil.copytree(tiles, tmp_path / "release"))
    path = release / "mmlb_data/tiles/headed_K1.jsonl"
    outside = path.rename(tmp_path / "outside.jsonl")
    path.symlink_to(outside)
    ran = command("view", release, "--static", tmp_path / "site")
    assert ran.code == 2
    assert "is no file of the release" in ran.err
