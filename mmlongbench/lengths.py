"""Lengths and token budgets. K = 1024 tokens."""

import re
from dataclasses import dataclass

from mmlongbench.errors import ManifestError

K = 1024
STANDARD_LENGTHS = tuple(n * K for n in (8, 16, 32, 64, 128))
"""The five standardized lengths of the benchmark (paper, section 3)."""
_FACTORS = {"K": K, "M": K * K}


@dataclass(frozen=True, slots=True)
class TokenBudget:
    """How many tokens a prompt may have: prompt + reserve never exceeds the length."""

    length: int
    """L, in tokens."""
    reserve: int
    """Tokens kept free for the answer and the chat template."""
    variants: int = 0
    """Tokens kept free for what other forms of the prompt add."""

    @property
    def room(self) -> int:
        """The tokens that the prompt may cost."""
        return self.length - self.reserve - self.variants

    def fill(self, prompt: int) -> float:
        """Return which part of the length is used: (prompt + reserve) / length."""
        return (prompt + self.reserve) / self.length


def parse_length(text: str | int) -> int:
    """Return a length in tokens. `text` is a text such as `8K`, `96K` or `1M`, or a multiple of 1024.

    >>> parse_length("8K"), parse_length("1M"), parse_length(16384)
    (8192, 1048576, 16384)
    """
    found = re.fullmatch(r"\s*(\d{1,9})\s*([KM]?)\s*", str(text), re.IGNORECASE)
    tokens = int(found[1]) * _FACTORS.get(found[2].upper(), 1) if found else 0
    # who writes 128000 means 128K, not 125K; numbers come from files that state lengths in tokens
    in_thousands = isinstance(text, str) and bool(found and not found[2]) and tokens % 1000 == 0
    if tokens < K or tokens % K or in_thousands:
        near = dict.fromkeys((max(1, tokens // K), tokens // K + 1, tokens // 1000)) if found and tokens >= 1000 else ()
        hint = "".join(f", {number}K = {number * K:,} tokens" for number in near if 0 < number * K < 2 * tokens + K)
        raise ManifestError(
            f"length {repr(text)[:40]}: expected a whole number of K (1024 tokens) or M, at least 1K, such as 8K, 96K "
            f"or 1M{f'; near it are{hint[1:]}' if hint else ''}"
        )
    return tokens


def format_length(tokens: int) -> str:
    """Return a length as people write it.

    >>> format_length(8192), format_length(1048576)
    ('8K', '1M')
    """
    return f"{tokens // (K * K)}M" if tokens % (K * K) == 0 else f"{tokens // K}K"
