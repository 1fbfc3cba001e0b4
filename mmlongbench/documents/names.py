"""Names of documents as folders of a release.

A name is kept where it can be: it must be able to be a folder, and must not hold what the public loaders split paths by
(`page`, `"`, `/`). Any other gets a safe one with a hash of the original, so it is stable and cannot collide.
"""

import hashlib
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable

LABEL_WIDTH = 15
"""How much of a document's name the public templates print."""
_MOST_BYTES = 150
_FORBIDDEN = re.compile(r"""[\x00-\x1f\x7f/\\"<>:|?*\ud800-\udfff]|^\.+$|^[\s-]|\s$|\.$""")


def label(name: str) -> str:
    """The part of a document's name that a prompt shows."""
    return name[:LABEL_WIDTH]


def folder_names(ids: Iterable[str]) -> dict[str, str]:
    """Map each document id to its folder; ids that differ only by case both get a safe one.

    >>> folder_names(["a", "home page"])
    {'a': 'a', 'home page': 'home_pg-900cd050'}
    """
    wanted = sorted(set(ids))
    alike = Counter(_fold(id) for id in wanted)
    kept = {id for id in wanted if _is_safe(id) and alike[_fold(id)] == 1}
    kept -= {safe_name(id) for id in wanted if id not in kept}
    return {id: id if id in kept else safe_name(id) for id in wanted}


def safe_name(id: str) -> str:
    """A folder name for any id: what can be kept of it, and eight digits of its SHA-256."""
    data = id.encode("utf-8", "surrogatepass")
    kept = re.sub(r"[^\w.-]+", "_", id.encode("ascii", "ignore").decode()).strip("._-")
    return (
        f"{re.sub('page', 'pg', kept, flags=re.IGNORECASE)[:80] or 'document'}-{hashlib.sha256(data).hexdigest()[:8]}"
    )


def _is_safe(id: str) -> bool:
    return bool(id) and not _FORBIDDEN.search(id) and "page" not in id and len(id.encode()) <= _MOST_BYTES


def _fold(id: str) -> str:
    return unicodedata.normalize("NFC", id).casefold()
