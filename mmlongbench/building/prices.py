"""Keeps token counts on disk, beside a corpus: each passage is tokenised once for all lengths, workers and builds.

There is one file for each tokenizer. It maps the hash of a text to the price of the text, which is its number of
tokens. A text is a passage as a prompt shows it; the task decides this form, so a corpus cannot have the prices itself.
If a file is lost, its texts are counted again.
"""

import hashlib
from pathlib import Path
from typing import ClassVar

from mmlongbench.errors import BuildError
from mmlongbench.io.store import Store

PRICES = "prices"
"""The name of the folder below `CorpusPlan.cache`."""
MAX_HELD = 1 << 16
"""The maximum number of prices that are held in memory."""


class KeptPrices(Store):
    """The prices of texts for one tokenizer, in tokens; new prices are written in groups, the last group when the file
    is closed.
    """

    table: ClassVar[str] = "prices"
    columns: ClassVar[str] = "text BLOB, tokens INTEGER NOT NULL"

    def __init__(self, folder: Path, tokenizer: str) -> None:
        """Open or make the price file of a tokenizer, given by its SHA-256, in a folder."""
        self._held: dict[str, int] = {}
        super().__init__(folder / f"{tokenizer[:32]}.sqlite")

    def unusable(self, error: Exception) -> BuildError:
        """Return the error to raise when the file cannot be used."""
        return BuildError(f"the price file {self.path} cannot be used: {error}; remove that file")

    def get(self, text: str) -> int | None:
        """Return the price of a text, or None if it was never kept."""
        price = self._held.get(text)
        if price is None and (row := self.row(_key(text))):
            price = self._hold(text, int(row[1]))
        return price

    def __setitem__(self, text: str, price: int) -> None:
        self.put(_key(text), self._hold(text, price))

    def _hold(self, text: str, price: int) -> int:
        if len(self._held) >= MAX_HELD:
            self._held.clear()
        self._held[text] = price
        return price


def _key(text: str) -> bytes:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()[:16]
