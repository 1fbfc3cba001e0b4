"""The names of SlideVQA's slides: `<slug>-<page from 1>-1024.jpg`. Released images keep them, because public loaders
expect them.
"""

import re

SLIDE = re.compile(r"(.+)-(\d+)-\d+\.(?:jpe?g|png)", re.IGNORECASE)
"""Matches the name of a slide's file."""
_SAFE = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,150}")
_PNG = b"\x89PNG"


def slide_number(name: str) -> int:
    """Return a slide's number, from 1, from its file's name; 0 for any other name."""
    match = SLIDE.fullmatch(name)
    return int(match[2]) if match and len(match[2]) < 9 else 0


def released_name(name: str, deck: str, number: int, data: bytes = b"") -> str:
    """Return a slide's name in the release: `name`, the name of its file, if loaders accept this name and the name has
    the slide's number; otherwise a name made from the deck and the number. `data` has the first bytes of the picture,
    if the file has no name that tells its format.

    >>> released_name("tea-4-1024.jpg", "tea", 4), released_name("", "Tea & co", 4), released_name("x", "tea", 4, _PNG)
    ('tea-4-1024.jpg', 'tea-co-4-1024.jpg', 'tea-4-1024.png')
    """
    if slide_number(name) == number and _SAFE.fullmatch(name):
        return name
    slug = re.sub(r"[^A-Za-z0-9]+", "-", deck).strip("-").lower()[:100] or "deck"
    return f"{slug}-{number}-1024.{'png' if data.startswith(_PNG) else 'jpg'}"
