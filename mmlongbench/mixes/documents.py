"""The documents that an example shows, also those that only fill its context, by their names.

A record names the document that its question is about. Of a page that only fills the context, the items of the release
have the id of the unit. The id names the document in the same place where the ids of the own pages name theirs.
"""

from collections.abc import Mapping, Sequence

from mmlongbench.likeness import words
from mmlongbench.release.example_cost import placement_of
from mmlongbench.release.items import items_in_order
from mmlongbench.release.layout import as_utf8
from mmlongbench.release.release import Example, Release

_ENDING = " pdf "
_Units = Mapping[tuple[str, float | None], Sequence[str]]


class ContextDocuments:
    """Says which documents the contexts of a release show. The ids of units of one file are in memory at a time."""

    def __init__(self, release: Release) -> None:
        """Take the release."""
        self._release = release
        self._file = ""
        self._units: _Units = {}

    def __call__(self, example: Example) -> tuple[str, ...]:
        """Return the names of the documents, the one that the question is about first.

        Without items, or if the ids of own pages do not name their document, it is the only one.

        Raises:
            ReleaseError: the items cannot be read.

        """
        own = (example.evidence.document or "") if example.evidence else ""
        if not own:
            return ()
        if self._file != example.file:
            self._file, self._units = example.file, _units_of(self._release, example)
        id = as_utf8(example.id)
        return (own, *named_by(self._units.get((id, placement_of(example.record)), ()), own))


def named_by(units: Sequence[str], own: str) -> list[str]:
    """Return the other documents that ids of units name, each once.

    >>> named_by(["reports/harbour-2019/page1.jpg", "reports/tram-review/page7.jpg"], "Harbour_2019.pdf")
    ['tram-review']
    """
    key, paths = document_key(own), [unit.split("/") for unit in units]
    places = {(len(path), at) for path in paths for at, part in enumerate(path) if document_key(part) == key}
    named = dict.fromkeys(path[at] for path in paths for size, at in sorted(places) if len(path) == size)
    return [name for name in named if document_key(name) != key]


def document_key(name: str) -> str:
    """Return the words of a document's name, without the ending of PDFs: names that differ in nothing else are one.

    >>> document_key("Harbour_2019.PDF") == document_key("harbour-2019")
    True
    """
    found = words(name)
    return found.removesuffix(_ENDING) + " " if found.endswith(_ENDING) else found


def _units_of(release: Release, example: Example) -> _Units:
    found = items_in_order(release.path, example.file, example.length)
    return {(id, placement): tuple(dict.fromkeys(item["unit"] for item in items)) for id, placement, items in found}
