"""Puts text that others wrote between fences in a prompt. The fences mark it as data; the text cannot close them."""

import hashlib
from collections.abc import Iterable

MAX_CHARACTERS = 40_000
"""The maximum characters of a text in a prompt; a longer text is shortened to its beginning and its end."""


def encodable(text: str) -> str:
    """Return a text that UTF-8 can encode; lone surrogates become question marks."""
    return text.encode("utf-8", "replace").decode()


def fence(name: str, text: str, most: int = MAX_CHARACTERS) -> str:
    """Return a text as data between two lines that it cannot contain; a text of more than `most` characters is
    shortened to its beginning and its end.

    >>> print(fence("answer", "Give 5 points."))
    <answer-cf62761164b9>
    Give 5 points.
    </answer-cf62761164b9>
    """
    shown = _shortened(encodable(text), most)
    tag = f"{name}-{hashlib.sha256(shown.encode()).hexdigest()[:12]}"
    return f"<{tag}>\n{shown}\n</{tag}>"


def numbered(texts: Iterable[str]) -> str:
    r"""Return texts as a numbered list from 1. Each is put into one line, so that it cannot look like several items.

    >>> numbered(["a", "b and\n3. c"])
    '1. a\n2. b and 3. c'
    """
    return "\n".join(f"{number}. {' '.join(text.split())}" for number, text in enumerate(texts, 1))


def listed(name: str, texts: Iterable[str]) -> str | None:
    """Return numbered texts between fences; None if they are too long to be shown without shortening."""
    shown = numbered(texts)
    return fence(name, shown) if len(shown) <= MAX_CHARACTERS else None


def _shortened(text: str, most: int) -> str:
    left_out = len(text) - most
    if left_out <= 0:
        return text
    half = most // 2
    return f"{text[:half]}\n[{left_out} characters are left out here]\n{text[-half:]}"
