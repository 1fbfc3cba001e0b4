"""Randomness without a generator: every draw is a hash of what it is for.

Nothing here keeps state, so a draw cannot depend on the rows before it, on the number of workers, or on the version of
Python or numpy. Each draw has a name, so a new draw does not change the others. A draw that should be the same at every
length has no length in its key.
"""

import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

T = TypeVar("T")
KeyPart = str | int | float


def digest(*parts: KeyPart) -> bytes:
    """Return the SHA-256 of the parts, each tagged with its type and length, so that two different lists of parts are
    never hashed as the same bytes.

    >>> digest("ab", "c") == digest("a", "bc")
    False
    >>> digest(1) == digest("1")
    False
    """
    return hashlib.sha256(_tagged(parts)).digest()


def _tagged(parts: Iterable[KeyPart]) -> bytes:
    tagged = b""
    for part in parts:
        data = f"{type(part).__name__}:{part!r}".encode("utf-8", "surrogatepass")
        tagged += len(data).to_bytes(8, "big") + data
    return tagged


@dataclass(frozen=True, slots=True)
class Draws:
    """The named draws of one question (or of one dataset), under the key (seed, dataset, question id)."""

    key: tuple[KeyPart, ...]
    """The values that every draw depends on besides its name: seed, dataset, question."""
    _tagged_key: bytes = field(init=False, repr=False, compare=False)
    """The key in the form in which it is hashed. It is made once, because some questions have thousands of draws."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "_tagged_key", _tagged(self.key))

    def _digest(self, *parts: KeyPart) -> bytes:
        """Return the same bytes as `digest(*self.key, *parts)`."""
        return hashlib.sha256(self._tagged_key + _tagged(parts)).digest()

    def at(self, *parts: KeyPart) -> "Draws":
        """Return the draws under this key with more parts, such as the number of a permutation."""
        return Draws((*self.key, *parts))

    def integer(self, name: str, low: int, high: int) -> int:
        """Return a drawn whole number n with low <= n <= high."""
        if high < low:
            raise ValueError(f"draw {name!r}: no integer between {low} and {high}")
        return low + int.from_bytes(self._digest(name)) % (high - low + 1)

    def fraction(self, name: str) -> float:
        """Return a drawn number n with 0 <= n < 1; 53 of its bits are drawn."""
        return (int.from_bytes(self._digest(name)[:8]) >> 11) / (1 << 53)

    def choice(self, name: str, items: Sequence[T]) -> T:
        """Return a drawn item. The result depends on the order of the items, so give them in a fixed order."""
        if not items:
            raise ValueError(f"draw {name!r}: nothing to choose from")
        return items[self.integer(name, 0, len(items) - 1)]

    def rank(self, name: str, id: str) -> int:
        """Return the position of an id in the drawn order called `name`, as a 63-bit number to sort by."""
        return int.from_bytes(self._digest(name, id)[:8]) >> 1

    def order(self, name: str, items: Iterable[T], id: Callable[[T], str] = str) -> list[T]:
        """Return the items in a drawn order, by the hash of each item's id; the input order does not matter."""
        begun = hashlib.sha256(self._tagged_key + _tagged((name,)))  # hashed once, since there may be many items

        def key(item: T) -> tuple[int, str]:
            """Return the rank of an item, as `rank` has it, and its id."""
            digest = begun.copy()
            digest.update(_tagged((text := id(item),)))
            return int.from_bytes(digest.digest()[:8]) >> 1, text

        return sorted(items, key=key)

    def permutation(self, name: str, n: int) -> Iterator[int]:
        """Yield each whole number below n once, in a drawn order. It is lazy, so n may be large (a Feistel network of 4
        rounds).

        >>> sorted(Draws(("seed",)).permutation("pages", 5))
        [0, 1, 2, 3, 4]
        """
        half = max(1, (max(n - 1, 0).bit_length() + 1) // 2)
        mask = (1 << half) - 1
        for start in range(1 << 2 * half):
            left, right = start >> half, start & mask
            for turn in range(4):
                left, right = right, left ^ (int.from_bytes(self._digest(name, turn, right)[:8]) & mask)
            if (number := left << half | right) < n:
                yield number
