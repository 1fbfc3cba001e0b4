"""Prices on disk: kept, shared between two that are open at once, and never wrong."""

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


def test_a_full_disk_is_that_of_any_other_file(tmp_path: Path) -> None:
    prices = KeptPrices(tmp_path, "0" * 64)
    prices._database.execute("PRAGMA max_page_count = 2")
    for number in range(1000):
        prices[f"text {number}"] = number
    with pytest.raises(OSError, match="No space left on device"):
        prices.save()
