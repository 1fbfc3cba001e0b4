"""Who may enter and what leads out: nothing outside the release is served, and nothing of it is markup."""

import json
import os
import shutil
from pathlib import Path

import pytest
from claimed_png import claimed_png
from once import linked
from starlette.testclient import TestClient
from viewing import serve, static, viewer

POLICY = {
    *("default-src 'none'", "script-src 'self'", "style-src 'self'", "img-src 'self'", "connect-src 'self'"),
    *("base-uri 'none'", "form-action 'none'", "frame-ancestors 'none'"),
}


@pytest.fixture(scope="module")
def asked(tiles: Path) -> TestClient:
    return viewer(tiles)


# Requests.


def test_without_the_token_of_the_printed_address_nothing_is_answered(tiles: Path) -> None:
    app, token = serve(tiles)
    _, other = serve(tiles)
    assert token != other
    asked = TestClient(app, base_url="http://evil.example", follow_redirects=False)
    for path in ("/", "/index.html", "/images/large-0-0.jpg", "/assets/view.js", other, f"{other}/", f"{token}x/"):
        answer = asked.get(path)
        assert (answer.status_code, answer.text) == (404, "Not Found"), path
    assert "headed" in asked.get(f"{token}/").text


def test_no_answer_leads_to_the_host_that_a_request_claims(tiles: Path) -> None:
    app, token = serve(tiles)
    asked = TestClient(app, base_url="http://evil.example", follow_redirects=False)
    entered = asked.get(token)
    assert (entered.status_code, entered.headers["location"]) == (307, f"{token}/")
    for path in (f"{token}/index.html/", f"{token}/dataset-0.html/", f"{token}/assets/view.js/", f"{token}//", "//"):
        answer = asked.get(path)
        assert (answer.status_code, answer.headers.get("location")) == (404, None), path
    for path in (token, f"{token}/", f"{token}/index.html"):
        assert "evil.example" not in str(asked.get(path).headers)


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE"])
@pytest.mark.parametrize("path", ["/", "/dataset-0.html", "/data/rows-0.json"])
def test_nothing_is_written(asked: TestClient, method: str, path: str) -> None:
    assert asked.request(method, path).status_code == 405


def fail(*_: object) -> bytes:
    raise ValueError("secret\x1b[2J" + "x" * 1000)


LONG = f"/example-0-{'9' * 5000}.html"
"""An address with a number that Python refuses to read."""


@pytest.mark.parametrize(
    ("path", "status"),
    [
        *(("/", 200), ("/data/rows-0.json", 200), ("/images/small-0-0.jpg", 200), ("/assets/view.js", 200)),
        *(("/dataset-9.html", 404), ("/nothing", 404), (LONG, 404), ("/data/rows-0.json", 500)),
    ],
    ids=lambda value: str(value)[:30],
)
def test_every_answer_has_the_headers_of_safety(
    asked: TestClient, monkeypatch: pytest.MonkeyPatch, path: str, status: int
) -> None:
    if status == 500:
        monkeypatch.setattr("mmlongbench.web.viewer.serve.plain", fail)
    answer = asked.get(path)
    assert answer.status_code == status
    headers = answer.headers
    assert {each.strip() for each in headers["content-security-policy"].split(";")} == POLICY
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["referrer-policy"] == "no-referrer", "a link of a page would give the token away"
    assert headers["cache-control"]
    assert "access-control-allow-origin" not in headers


def test_a_fault_of_the_viewer_is_one_short_line_and_ends_one_answer(
    asked: TestClient, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("mmlongbench.web.viewer.serve.plain", fail)
    answer = asked.get("/data/rows-0.json")
    assert (answer.status_code, answer.text) == (500, "the viewer failed: ValueError\n")
    (logged,) = (each for each in caplog.records if each.levelname == "ERROR")
    assert logged.getMessage() == "ValueError: secret\\x1b[2J" + "x" * 287
    assert logged.exc_info is None
    monkeypatch.undo()
    assert asked.get("/data/rows-0.json").status_code == 200


@pytest.mark.parametrize("digits", [10, 5000])
@pytest.mark.parametrize(
    "path", ["/dataset-{}.html", "/data/rows-{}.json", "/images/small-0-{}.jpg", "/review-{}.html"]
)
def test_a_long_number_is_not_found(
    asked: TestClient, caplog: pytest.LogCaptureFixture, path: str, digits: int
) -> None:
    assert asked.get(path.format("1" * digits)).status_code == 404
    assert caplog.records == []


# Releases.

EVIL = "\"'><img src=x onerror=\"document.title='run'\"></script><script>document.title='run'</script>{{ 7 * 7 }}\u2028"
SVG = b'<svg xmlns="http://www.w3.org/2000/svg" onload="alert(1)"><script>alert(1)</script></svg>'
SECRET = "the content of a file outside"
QUOTED = "tiles/\"><img src=x onerror=alert(1)>'.png"


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
    (images / "bomb.png").write_bytes(claimed_png(30_000, 30_000, bytes(90_001)))
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
    pieces = [piece for row in asked.get("/data/example-0-0-rows-0.json").json() for piece in row["pieces"]]
    paths = {piece["image"]: piece["path"] for piece in pieces if "image" in piece}
    assert len(paths) == 14
    sent = {}
    for number in range(40):
        for kind in ("large", "small"):
            answer = asked.get(f"/images/{kind}-0-{number}.jpg")
            assert SECRET not in answer.text
            assert "Traceback" not in answer.text
            if answer.status_code != 200:
                assert answer.status_code == 404
                assert answer.headers["content-type"].startswith("text/plain")
            elif number in paths:
                sent[kind, paths[number]] = answer.headers["content-type"]
    assert sent == {
        ("large", QUOTED): "image/png",
        ("small", QUOTED): "image/jpeg",
        ("large", "tiles/polyglot.png"): "image/png",  # with `nosniff` it is only a broken picture
        ("large", "tiles/bomb.png"): "image/png",
    }


def test_nothing_of_data_is_markup(hostile: Path, tmp_path: Path) -> None:
    asked = viewer(hostile)
    pages = [asked.get(path) for path in ("/", "/dataset-0.html", "/rejects.html", "/example-0-1.html")]
    assert {page.status_code for page in pages} == {200}
    ran = static(hostile, tmp_path / "site")
    assert ran.code == 0, ran.err
    written = [page.read_text("utf-8") for page in (tmp_path / "site").glob("*.html")]
    for text in (*(page.text for page in pages), *written):
        assert "<img src=x" not in text
        assert "<script>" not in text
    for path in ("rows-0", "example-0-0-rows-0", "example-0-0-messages"):
        answer = asked.get(f"/data/{path}.json")
        assert answer.headers["content-type"] == "application/json"
        assert "onerror" in answer.text
    for data in (tmp_path / "site/data").iterdir():
        assert data.read_text("utf-8").isascii()


@pytest.mark.parametrize(
    "path",
    [
        *(
            "/images/large-0-../../secret.png",
            "/images/..%2f..%2fsecret.png",
            "/images/large-0-%2e%2e%2fsecret.png.jpg",
        ),
        *("/assets/../kit.py", "/assets/%2e%2e%2fkit.py", "/assets/..%5ckit.py", "/assets/%252e%252e%252fkit.py"),
        *("/mmlb_image/tiles/0.png", "/build.lock.json", "/%2e%2e/build.lock.json", "//etc/passwd", "/%2fetc%2fpasswd"),
        *("/images/large--1-0.jpg", "/images/large-0--1.jpg", "/images/large-0-1e3.jpg", "/images/large-0-٠.jpg"),
        *(
            "/images/small-0-99999999999999999999.jpg",
            "/images/small-99-0.jpg",
            "/example-0-0.html",
            "/dataset--1.html",
        ),
        *("/data/example-0-0-rows--1.json", "/data/example-0-0-text--1--1.json", "/data/example-0-0-model-0.json"),
        *("/example-%00-1.html", "/example-%ff%fe-1.html", "/%", "/\\..\\..\\secret.png", "/index.html/..;/x"),
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
    assert viewer(release, "--images", outside).get("/images/large-0-0.jpg").status_code == 200


def test_a_data_file_that_is_a_link_out_is_refused(tiles: Path, tmp_path: Path) -> None:
    release = linked(tiles, tmp_path / "release")
    path = release / "mmlb_data/tiles/headed_K1.jsonl"
    path.symlink_to(path.rename(tmp_path / "outside.jsonl"))
    ran = static(release, tmp_path / "site")
    assert ran.code == 2
    assert "is no file of the release" in ran.err
