"""Who may enter and what leads out: nothing outside the release is served, and nothing of it is markup."""

import json
import os
import shutil
import struct
import zlib
from pathlib import Path

import pytest
from once import linked
from starlette.testclient import TestClient
from viewing import HOST, static, viewer

TOKEN = "a token of sufficient length"
POLICY = {
    *("default-src 'none'", "script-src 'self'", "style-src 'self'", "img-src 'self'", "connect-src 'self'"),
    *("base-uri 'none'", "form-action 'none'", "frame-ancestors 'none'"),
}


@pytest.fixture(scope="module")
def asked(tiles: Path) -> TestClient:
    return viewer(tiles)


# Requests.


@pytest.mark.parametrize(
    ("host", "status"),
    [
        *((host, 200) for host in ("127.0.0.1:7870", "localhost:7870", "LOCALHOST", "[::1]:7870")),
        *((f"{host}evil.example", 421) for host in ("", "127.0.0.1.", "localhost.")),
        *((host, 421) for host in ("evil.example:7870", "10.0.0.1", "0.0.0.0", "evil@127.0.0.1", "127.0.0.1/evil")),
        *((host, 421) for host in ("127.0.0.1#evil", "", "[::1", "::1:7870", "127.1", "localhost%00.evil")),
    ],
)
def test_only_the_names_of_this_machine_are_answered(asked: TestClient, host: str, status: int) -> None:
    answer = asked.get("/", headers={"host": host})
    assert answer.status_code == status
    assert ("headed" in answer.text) == (status == 200)


@pytest.mark.parametrize(
    ("origins", "status"),
    [
        ([HOST], 200),
        (["http://evil.example"], 403),
        (["null"], 403),
        (["http://127.0.0.1:9999"], 403),
        (["file://"], 403),
        (["http://localhost:7870"], 403),
        (["http://["], 403),
        (["http://[::1"], 403),
        ([HOST, "http://evil.example"], 403),
    ],
)
def test_a_request_of_another_origin_is_refused(asked: TestClient, origins: list[str], status: int) -> None:
    headers = [("origin", origin) for origin in origins]
    assert asked.get("/data/dataset/0/rows", headers=headers).status_code == status


@pytest.mark.parametrize(
    ("site", "mode", "dest", "status"),
    [
        ("cross-site", "no-cors", "image", 403),
        ("cross-site", "cors", "empty", 403),
        ("same-site", "no-cors", "script", 403),
        ("cross-site", "navigate", "iframe", 403),
        ("cross-site", "navigate", "document", 200),
        ("same-origin", "cors", "empty", 200),
        ("none", "navigate", "document", 200),
    ],
)
def test_other_sites_may_lead_here_but_embed_nothing(
    asked: TestClient, site: str, mode: str, dest: str, status: int
) -> None:
    headers = {"sec-fetch-site": site, "sec-fetch-mode": mode, "sec-fetch-dest": dest}
    assert asked.get("/", headers=headers).status_code == status


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE"])
def test_nothing_is_written(asked: TestClient, method: str) -> None:
    assert asked.request(method, "/").status_code == 405


@pytest.mark.parametrize(
    "path",
    [
        *("/", "/nothing", "/data/dataset/0/rows", "/small/0/0", "/assets/view.js"),
        *(path.format("9" * 5000) for path in ("/dataset/{0}", "/example/x/{0}", "/data/example/{0}/{0}/rows/{0}")),
        *(path.format("9" * 5000) for path in ("/small/0/{0}", "/image/{0}/0")),
    ],
    ids=lambda path: path[:30],
)
def test_every_answer_has_the_headers_of_safety(asked: TestClient, path: str) -> None:
    answer = asked.get(path)
    headers = answer.headers
    assert {each.strip() for each in headers["content-security-policy"].split(";")} == POLICY
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["cross-origin-resource-policy"] == "same-origin"
    assert headers["x-frame-options"] == "DENY"
    assert "access-control-allow-origin" not in headers
    if len(path) > 100:
        assert answer.status_code == 404, "Python reads no number of 5,000 digits"


def test_a_fault_of_the_viewer_is_one_line_with_the_headers_of_safety(
    asked: TestClient, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(*_: object) -> str:
        raise ValueError("secret\x1b[2J")

    monkeypatch.setattr("mmlongbench.web.viewer.pages.release.release_page", fail)
    answer = asked.get("/")
    assert (answer.status_code, answer.text) == (500, "the viewer failed: ValueError\n")
    assert "default-src 'none'" in answer.headers["content-security-policy"]
    assert [each.getMessage() for each in caplog.records if each.levelname == "ERROR"] == ["ValueError: secret\\x1b[2J"]
    assert not any(each.exc_info for each in caplog.records)


def test_with_a_token_only_who_has_it_is_answered_and_names_of_others_are_refused(tiles: Path) -> None:
    asked = viewer(tiles, "--host", "0.0.0.0", "--token", TOKEN, base="http://10.1.2.3:7870")
    for path in ("/", "/image/0/0", "/assets/view.js", "/?token=wrong", "/?token=", "/?token=%ff"):
        assert asked.get(path).status_code == 401, path
    entered = asked.get("/dataset/0", params={"token": TOKEN, "x": "1"})
    assert (entered.status_code, entered.headers["location"]) == (303, "/dataset/0?x=1")
    cookie = entered.headers["set-cookie"].lower()
    assert "httponly" in cookie
    assert "samesite=strict" in cookie
    assert asked.get("/").status_code == 200
    led = asked.get("http://10.1.2.3:7870//evil.example", params={"token": TOKEN})
    assert led.headers["location"].startswith("/evil.example")
    assert asked.get("/", headers={"host": "evil.example"}).status_code == 421


# Releases.

EVIL = "\"'><img src=x onerror=\"document.title='run'\"></script><script>document.title='run'</script>{{ 7 * 7 }}\u2028"
SVG = b'<svg xmlns="http://www.w3.org/2000/svg" onload="alert(1)"><script>alert(1)</script></svg>'
SECRET = "the content of a file outside"
QUOTED = "tiles/\"><img src=x onerror=alert(1)>'.png"


def bomb() -> bytes:
    """The beginning of a picture of 900 million pixels."""
    head = b"IHDR" + struct.pack(">IIBBBBB", 30_000, 30_000, 8, 2, 0, 0, 0)
    data = b"IDAT" + zlib.compress(bytes(90_001))
    chunks = (struct.pack(">I", len(each) - 4) + each + struct.pack(">I", zlib.crc32(each)) for each in (head, data))
    return b"\x89PNG\r\n\x1a\n" + b"".join(chunks)


@pytest.fixture(scope="module")
def hostile(tiles: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A release with markup in every field of the first record, and with images that lead out or are none."""
    folder = tmp_path_factory.mktemp("hostile")
    release = linked(tiles, folder / "release")
    (folder / "secret.png").write_text(SECRET, "utf-8")
    images = release / "mmlb_image/tiles"
    (images / "svg.png").write_bytes(SVG)
    (images / "page.jpg").write_bytes(b"<!doctype html><script>alert(1)</script>")
    (images / "link.png").symlink_to(folder / "secret.png")
    (images / "folder.png").symlink_to(folder, target_is_directory=True)
    os.mkfifo(images / "pipe.png")
    (images / "polyglot.png").write_bytes(b"\x89PNG\r\n\x1a\n" + SVG)
    (images / "bomb.png").write_bytes(bomb())
    shutil.copy(images / "0.png", release / "mmlb_image" / QUOTED)
    path = release / "mmlb_data/tiles/headed_K1.jsonl"
    first, *others = path.read_text("utf-8").splitlines()
    names = [
        *("tiles/svg.png", "tiles/page.jpg", "tiles/link.png", "tiles/folder.png/secret.png", "tiles/pipe.png"),
        *("tiles/polyglot.png", "tiles/bomb.png", QUOTED, "../../secret.png", "tiles/../../../secret.png"),
        *(str(folder / "secret.png"), "tiles/\x00.png", "tiles/\ud800.png", "x" * 5000),
    ]
    units = [[EVIL, f"image: {name}", EVIL] for name in names]
    record = json.loads(first) | {"id": EVIL, "answer": [EVIL], "units": units, "tile": EVIL}
    path.write_text("\n".join([json.dumps(record), *others]), "utf-8")
    (release / "items/tiles/headed_K1.parquet").unlink()
    return release


def test_only_pictures_inside_the_release_are_sent(hostile: Path) -> None:
    asked = viewer(hostile)
    pieces = [piece for row in asked.get("/data/example/0/0/rows/0").json() for piece in row["pieces"]]
    paths = {piece["image"]: piece["path"] for piece in pieces if "image" in piece}
    assert len(paths) == 14
    sent = {}
    for number in range(40):
        for kind in ("image", "small"):
            answer = asked.get(f"/{kind}/0/{number}")
            assert SECRET not in answer.text
            assert "Traceback" not in answer.text
            if answer.status_code != 200:
                assert answer.status_code == 404
                assert answer.headers["content-type"].startswith("text/plain")
            elif number in paths:
                sent[kind, paths[number]] = answer.headers["content-type"]
    assert sent == {
        ("image", QUOTED): "image/png",
        ("small", QUOTED): "image/jpeg",
        ("image", "tiles/polyglot.png"): "image/png",  # with `nosniff` it is only a broken picture
        ("image", "tiles/bomb.png"): "image/png",
    }


def test_nothing_of_data_is_markup(hostile: Path, tmp_path: Path) -> None:
    asked = viewer(hostile)
    pages = [asked.get(path) for path in ("/", "/dataset/0", "/rejects", "/example/tiles/headed_K1.jsonl/1")]
    assert {page.status_code for page in pages} == {200}
    ran = static(hostile, tmp_path / "site")
    assert ran.code == 0, ran.err
    written = [page.read_text("utf-8") for page in (tmp_path / "site").glob("*.html")]
    for text in (*(page.text for page in pages), *written):
        assert "<img src=x" not in text
        assert "<script>" not in text
    for path in ("dataset/0/rows", "example/0/0/rows/0", "example/0/0/messages"):
        answer = asked.get(f"/data/{path}")
        assert answer.headers["content-type"] == "application/json"
        assert "onerror" in answer.text
    for data in (tmp_path / "site/data").iterdir():
        assert data.read_text("utf-8").isascii()


@pytest.mark.parametrize(
    "path",
    [
        *("/image/0/../../secret.png", "/image/..%2f..%2fsecret.png/0", "/image/0/%2e%2e%2f%2e%2e%2fsecret.png"),
        *("/example/../../secret.png/0", "/example/..%2f..%2fbuild.lock.json/0", "/example/%2e%2e/build.lock.json/0"),
        *("/example//etc/passwd/0", "/example/%2fetc%2fpasswd/0", "/assets/../kit.py", "/assets/%2e%2e%2fkit.py"),
        *("/assets/..%5ckit.py", "/assets/%252e%252e%252fkit.py", "/mmlb_image/tiles/0.png", "/build.lock.json"),
        *("/image/-1/0", "/image/0/-1", "/image/0/1e3", "/image/0x0/0", "/image/٠/0", "/small/0/99999999999999999999"),
        *("/data/example/0/0/rows/-1", "/data/example/0/0/text/-1/-1", "/data/example/0/0/model/-1", "/dataset/-1"),
        *("/example/%00/0", "/example/%ff%fe/0", "/%", "/example/tiles/headed_K1.jsonl/0"),
        *("/example/tiles/headed_K1.jsonl/1/..;/x", "/\\..\\..\\secret.png"),
    ],
)
def test_no_address_leads_out(asked: TestClient, path: str) -> None:
    answer = asked.get(path)
    assert answer.status_code in (404, 405)
    assert "Traceback" not in answer.text
    assert "root:" not in answer.text


@pytest.mark.parametrize("has_lock", [True, False])
def test_a_folder_of_images_that_is_a_link_out_is_refused_unless_it_is_given(
    finished: Path, tmp_path: Path, has_lock: bool
) -> None:
    release = linked(finished, tmp_path / "release")
    outside = (release / "mmlb_image").rename(tmp_path / "outside")
    (release / "mmlb_image").symlink_to(outside)
    if not has_lock:
        (release / "build.lock.json").unlink()
    ran = static(release, tmp_path / "site")
    assert ran.code == 2
    assert "mmlb_image: is a link out of the release" in ran.err
    assert not (tmp_path / "site").exists()
    assert viewer(release, "--images", outside).get("/image/0/0").status_code == 200


def test_a_data_file_that_is_a_link_out_is_refused(tiles: Path, tmp_path: Path) -> None:
    release = linked(tiles, tmp_path / "release")
    path = release / "mmlb_data/tiles/headed_K1.jsonl"
    path.symlink_to(path.rename(tmp_path / "outside.jsonl"))
    ran = static(release, tmp_path / "site")
    assert ran.code == 2
    assert "is no file of the release" in ran.err
