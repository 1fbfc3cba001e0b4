"""The other documents of a context: which ones may be shown, and in which order."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import mmlongbench.task as mt


@dataclass(frozen=True, slots=True)
class Padding:
    """Documents left and right of the document that is asked about; those that may not be shown are excluded."""

    own: mt.Document
    evidence: frozenset[str]
    """The keys of the answer pages."""
    others: tuple[mt.Document, ...]
    """The documents, in the order in which they are taken."""
    units: Callable[[mt.Document], list[mt.Unit]]

    def __call__(self) -> Iterator[mt.Unit]:
        """Yield the pages of documents, alternately left and right; the pages of an excluded document have a reason."""
        return mt.alternate_sides(self._documents())

    def _documents(self) -> Iterator[list[mt.Unit]]:
        labels, contents = {mt.label(self.own.name)}, {self.own.sha256}
        for other in self.others:
            if reason := self._reason(other, labels, contents):
                yield [replace(unit, excluded=reason) for unit in self.units(other)]
            else:
                labels.add(mt.label(other.name))
                contents.add(other.sha256)
                yield self.units(other)

    def _reason(self, other: mt.Document, labels: set[str], contents: set[str]) -> str:
        """Return why a document may not be in the context; empty if it may."""
        if other.sha256 in contents:
            return "page of a document that stands there already"
        if mt.label(other.name) in labels:
            return "page of a document with another one's label"
        if not self.evidence.isdisjoint(other.keys):
            return "page of a document that repeats an answer page"
        return ""
