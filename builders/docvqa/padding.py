"""The other documents of a context: which may stand there, and in which order."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import mmlongbench as mm


@dataclass(frozen=True, slots=True)
class Padding:
    """Documents left and right of the one that is asked about; those that may not stand there are excluded."""

    own: mm.Document
    evidence: frozenset[str]
    """The keys of the answer pages."""
    others: tuple[mm.Document, ...]
    """In the order of being taken."""
    units: Callable[[mm.Document], list[mm.Unit]]

    def __call__(self) -> Iterator[mm.Unit]:
        """Documents alternately left and right; the pages of an excluded one say why."""
        return mm.alternate_sides(self._documents())

    def _documents(self) -> Iterator[list[mm.Unit]]:
        labels, contents = {mm.label(self.own.name)}, {self.own.sha256}
        for other in self.others:
            if reason := self._reason(other, labels, contents):
                yield [replace(unit, excluded=reason) for unit in self.units(other)]
            else:
                labels.add(mm.label(other.name))
                contents.add(other.sha256)
                yield self.units(other)

    def _reason(self, other: mm.Document, labels: set[str], contents: set[str]) -> str:
        """Why a document may not stand in the context, if so."""
        if other.sha256 in contents:
            return "page of a document that stands there already"
        if mm.label(other.name) in labels:
            return "page of a document with another one's label"
        if not self.evidence.isdisjoint(other.keys):
            return "page of a document that repeats an answer page"
        return ""
