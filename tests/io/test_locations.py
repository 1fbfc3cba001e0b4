"""Where a source may be: paths, the hub, URLs."""

import pickle
from pathlib import Path

import pytest

from mmlongbench.io.locations import HubFiles, LocalPath, Url, parse_location


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
