"""Turns names of documents into folder names of a release.

A name is kept if it can be a folder and contains nothing at which the public loaders split paths (`page`, `"`, `/`).
Any other name is replaced by a safe one with a hash of the original, so the new name is stable and cannot collide. A
name that already ends like a safe name, with such a hash, is replaced too.
"""

import hashlib
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Sequence
from posixpath import commonprefix

from mmlongbench.prompt import commands_in

LABEL_WIDTH = 15
"""How many characters of a document's name the templates of the public datasets print."""
_MAX_BYTES = 150
_FORBIDDEN = re.compile(r"""[\x00-\x1f\x7f-\x9f\u2028\u2029/\\"<>:|?*\ud800-\udfff]|page|^[\s.-]|[\s.]$""")
_MADE = re.compile(r"-[0-9a-f]{16}$")
_PAGE = re.compile("page", re.IGNORECASE)


def label(name: str) -> str:
    """Return the beginning of a document's name, which is the part that a prompt shows."""
    return name[:LABEL_WIDTH]


def distinct_labels(names: Iterable[str]) -> dict[str, str]:
    """Return the beginning of each name that tells it apart from all others: at least `LABEL_WIDTH` characters, as many
    more as are needed, and then the rest of the last word.

    >>> list(distinct_labels(["annual-report-acme-2019-final", "annual-report-acme-2020", "harbour-dredging-2019"]))
    ['annual-report-acme-2019-final', 'annual-report-acme-2020', 'harbour-dredging-2019']
    >>> distinct_labels(["annual-report-acme-2019-final", "annual-report-acme-2020", "harbour-dredging-2019"])[
    ...     "annual-report-acme-2019-final"
    ... ]
    'annual-report-acme-2019'
    """
    ordered = sorted(set(names))  # the name that has the longest beginning in common with a name stands beside it
    labels: dict[str, str] = {}
    for before, name, after in zip(["", *ordered], ordered, [*ordered[1:], ""], strict=False):
        shared = max(len(commonprefix([name, other])) for other in (before, after))
        width = LABEL_WIDTH
        if shared >= LABEL_WIDTH:
            width = shared + 1
            while width < len(name) and not (name[width - 1].isalnum() and not name[width].isalnum()):
                width += 1  # to the end of a word
        labels[name] = name[:width]
    return labels


def folder_names(ids: Iterable[str]) -> dict[str, str]:
    """Map each document id to its folder. Ids that differ only in case or Unicode form are all replaced by safe names.

    >>> folder_names(["a", "home page"])
    {'a': 'a', 'home page': 'home_pg-900cd0505dda3de0'}
    """
    wanted = sorted(set(ids))
    alike, names = Counter(map(_fold, wanted)), dict[str, str]()
    for id in wanted:
        is_strange = _MADE.search(_fold(id)) or _FORBIDDEN.search(id) or commands_in(id)
        is_kept = not is_strange and 0 < len(id.encode()) <= _MAX_BYTES and alike[_fold(id)] == 1
        names[id] = id if is_kept else safe_name(id)
    return names


def crop_path(page: str, box: Sequence[int]) -> str:
    """Return the path of a crop of a page, given the page's path and the corners of the crop in points.

    >>> crop_path("docs/ash/ash_page3.jpg", (50, 60, 500, 400))
    'docs/ash/ash_page3_50-60-500-400.jpg'
    """
    stem, _, _ = page.rpartition(".")
    return f"{stem}_{'-'.join(map(str, box))}.jpg"


def safe_name(id: str) -> str:
    """Return a folder name for any id: its safe characters (at most 80), then sixteen hexadecimal digits of the id's
    SHA-256.
    """
    data = id.encode("utf-8", "surrogatepass")
    kept = re.sub(r"[^\w.-]+", "_", id.encode("ascii", "ignore").decode()).strip("._-")
    return f"{_PAGE.sub('pg', kept)[:80] or 'document'}-{hashlib.sha256(data).hexdigest()[:16]}"


def _fold(id: str) -> str:
    return unicodedata.normalize("NFC", id).casefold()
