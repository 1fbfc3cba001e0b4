"""Prices on disk: kept, shared between two that are open at once, and never wrong."""

import hashlib
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from mmlongbench.building.prices import KeptPrices
from mmlongbench.errors import BuildError


def test_prices_are_kept_for_others_once_saved(tmp_path: Path) -> None:
    one, other = (KeptPrices(tmp_path, "a" * 64) for _ in range(2))
    one["a text"], one["\ud800"] = 3, 0
    assert (one.get("a text"), other.get("a text")) == (3, None)
    one.save()
    other["a text"] = 3
    other.save()
    assert (other.get("a text"), other.get("\ud800"), other.get("another")) == (3, 0, None)
    assert KeptPrices(tmp_path, "b" * 64).get("a text") is None


def test_prices_are_saved_when_they_are_let_go(tmp_path: Path) -> None:
    kept = KeptPrices(tmp_path, "a" * 64)
    kept["a text"] = 3
    del kept
    assert KeptPrices(tmp_path, "a" * 64).get("a text") == 3


def test_a_file_that_is_none_of_prices_is_named(tmp_path: Path) -> None:
    path = tmp_path / f"{'a' * 32}.sqlite"
    path.write_bytes(b"not a database, but longer than a header of one " * 40)
    with pytest.raises(BuildError, match="remove that file"):
        KeptPrices(tmp_path, "a" * 64)


def test_a_file_of_an_earlier_version_is_read_and_written(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / f"{'a' * 32}.sqlite")) as file, file:
        file.execute("CREATE TABLE prices (text BLOB PRIMARY KEY, tokens INTEGER NOT NULL) WITHOUT ROWID")
        file.execute("INSERT INTO prices VALUES (?, 3)", (hashlib.sha256(b"a text").digest()[:16],))
    with closing(KeptPrices(tmp_path, "a" * 64)) as prices:
        assert prices.get("a text") == 3
        prices["another"] = 4
    with closing(sqlite3.connect(tmp_path / f"{'a' * 32}.sqlite")) as file:
        assert dict(file.execute("SELECT text, tokens FROM prices"))[hashlib.sha256(b"another").digest()[:16]] == 4


def test_prices_that_are_no_longer_held_are_found_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mmlongbench.building.prices.MAX_HELD", 2)
    with closing(KeptPrices(tmp_path, "a" * 64)) as prices:
        for number in range(7):
            prices[f"{number}"] = number
        assert [prices.get(f"{number}") for number in range(7)] == list(range(7))
