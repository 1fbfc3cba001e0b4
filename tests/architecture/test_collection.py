"""Tests have plain ids; processes that run them side by side compare what each collects under its own hash seed."""

import re

import pytest


def test_ids_are_plain(request: pytest.FixtureRequest) -> None:
    ids = [item.nodeid for item in request.session.items]
    assert [id for id in ids if not id.isascii() or re.search(r"\\x|\\u| at 0x|<lambda>", id)] == []
