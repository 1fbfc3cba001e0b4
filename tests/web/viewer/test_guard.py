"""Who may enter: requests of other sites, of other names, without the token, or that write get nothing."""

from pathlib import Path

import pytest
from starlette.testclient import TestClient
from viewing import HOST, client, site_of

from mmlongbench.web.viewer.guard import POLICY, Door
from mmlongbench.web.viewer.pages import release
from mmlongbench.web.viewer.site import Site

TOKEN = "a token of sufficient length"


@pytest.fixture(scope="module")
def site(tiles: Path) -> Site:
    return site_of(tiles)


@pytest.fixture(scope="module")
def asked(site: Site) -> TestClient:
    return client(site)


@pytest.mark.parametrize("host", ["127.0.0.1:7870", "localhost:7870", "LOCALHOST", "[::1]:7870"])
def test_this_machine_is_answered_by_its_own_names(asked: TestClient, host: str) -> None:
    assert asked.get("/", headers={"host": host}).status_code == 200


@pytest.mark.parametrize(
    "host",
    [
        *(
            "evil.example",
            "evil.example:7870",
            "127.0.0.1.evil.example",
            "localhost.evil.example",
            "10.0.0.1",
            "0.0.0.0",
        ),
        *("evil@127.0.0.1", "127.0.0.1/evil", "127.0.0.1#evil", "", "[::1", "::1:7870", "127.1", "localhost%00.evil"),
    ],
)
def test_any_other_name_of_the_host_is_refused(asked: TestClient, host: str) -> None:
    answer = asked.get("/", headers={"host": host})
    assert answer.status_code == 421
    assert "tiles" not in answer.text


@pytest.mark.parametrize(
    "origin",
    [
        "http://evil.example",
        "null",
        "http://127.0.0.1:9999",
        "file://",
        "http://localhost:7870",
        "http://[",
        "http://[::1",
    ],
)
def test_a_request_of_another_origin_is_refused(asked: TestClient, origin: str) -> None:
    assert asked.get("/data/dataset/0/rows", headers={"origin": origin}).status_code == 403


def test_a_request_of_two_origins_is_refused(asked: TestClient) -> None:
    headers = [("origin", HOST), ("origin", "http://evil.example")]
    assert asked.get("/", headers=headers).status_code == 403


def test_a_request_of_its_own_origin_is_answered(asked: TestClient) -> None:
    assert asked.get("/", headers={"origin": HOST}).status_code == 200


@pytest.mark.parametrize(
    ("site_", "mode", "dest", "status"),
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
    asked: TestClient, site_: str, mode: str, dest: str, status: int
) -> None:
    headers = {"sec-fetch-site": site_, "sec-fetch-mode": mode, "sec-fetch-dest": dest}
    assert asked.get("/", headers=headers).status_code == status


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE"])
def test_nothing_is_written(asked: TestClient, method: str) -> None:
    assert asked.request(method, "/").status_code == 405


@pytest.mark.parametrize("path", ["/", "/nothing", "/data/dataset/0/rows", "/small/0/0", "/assets/view.js"])
def test_every_answer_has_the_headers_of_safety(asked: TestClient, path: str) -> None:
    headers = asked.get(path).headers
    assert headers["content-security-policy"] == POLICY
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["cross-origin-resource-policy"] == "same-origin"
    assert headers["x-frame-options"] == "DENY"
    assert "access-control-allow-origin" not in headers
    assert "unsafe" not in POLICY


@pytest.mark.parametrize(
    "path", ["/dataset/{0}", "/example/x/{0}", "/data/example/{0}/{0}/rows/{0}", "/small/0/{0}", "/image/{0}/0"]
)
def test_a_number_that_python_does_not_read_is_not_found(asked: TestClient, path: str) -> None:
    answer = asked.get(path.format("9" * 5000))
    assert answer.status_code == 404
    assert answer.headers["content-security-policy"] == POLICY


def test_a_fault_of_the_viewer_is_one_line_with_the_headers_of_safety(
    site: Site, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(*_: object) -> str:
        raise ValueError("secret\x1b[2J")

    monkeypatch.setattr(release, "release_page", fail)
    answer = client(site).get("/")
    assert (answer.status_code, answer.text) == (500, "the viewer failed: ValueError\n")
    assert answer.headers["content-security-policy"] == POLICY
    assert [each.getMessage() for each in caplog.records if each.levelname == "ERROR"] == ["ValueError: secret\\x1b[2J"]
    assert not any(each.exc_info for each in caplog.records)


def test_with_a_token_only_who_has_it_is_answered(site: Site) -> None:
    asked = client(site, Door("10.1.2.3", TOKEN), "http://10.1.2.3:7870")
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


def test_on_an_address_of_the_network_names_of_others_are_refused(site: Site) -> None:
    asked = client(site, Door("0.0.0.0", TOKEN), "http://10.1.2.3:7870")
    assert asked.get("/", params={"token": TOKEN}).status_code == 303
    assert asked.get("/", headers={"host": "evil.example"}).status_code == 421
